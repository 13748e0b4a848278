#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is an installation complete, movable, and usable by other projects? install_test.py SOURCES BUILD
COMPILER [files]

Installs a build tree into a temporary directory, moves that, and builds the projects of consumers/
against it, outside the tree. Each of their programs writes from one device to another. With `files`
it only looks at the files that are installed, which takes a second.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCES, BUILD = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
COMPILER = sys.argv[3]
INCLUDE = re.compile(r'^#include ["<](urma/[^">]+)[">]', re.MULTILINE)
LINK = re.compile(r"\]\(([^()\s]+)\)")
SYSTEM_LIBRARIES = re.compile(r"(libc|libm|libpthread|libstdc\+\+|libgcc_s|ld-linux.*)\.so\.\d+")
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-fsyntax-only"]
DIALECTS = (["-std=c++20"], ["-std=c++2b"], ["-std=c++20", "-fno-exceptions", "-fno-rtti"])


def run(*command, cwd=None, **environment):
    """Returns the output of a command. Ends the test if it fails."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, text=True, timeout=120,
                          env={**os.environ, "CXX": COMPILER, **environment}, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}")
    return done.stdout


def needed(binary):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", binary))


def check_write(program, static):
    """Runs a consumer: over sockets, and in a window of its own. It finds the library itself."""
    wants_us = any(name.startswith("liburma") for name in needed(program))
    assert wants_us != static, f"{program} is linked against {needed(program)}"
    window = program.parent / "window"
    for device in ("udp:127.0.0.1", f"cxl:{window}?size=16M"):
        said = run(program, device, LD_LIBRARY_PATH="")
        assert said == "written\n", f"{program} {device} said {said!r}"


def check_files(prefix):
    """Checks that only public headers are installed, and no build or install path is in a file."""
    include = prefix / "include"
    installed = {str(path.relative_to(include)) for path in include.rglob("*") if path.is_file()}
    wanted = {f"urma/{header.name}" for header in (SOURCES / "urma").glob("*.hpp")}
    pending = sorted(wanted)
    while pending:
        name = pending.pop()
        assert (include / name).exists(), (
            f"{name} is public, or a public header includes it. Fix: add it to "
            "cmake/install.cmake")
        found = set(INCLUDE.findall((include / name).read_text(encoding="utf-8"))) - wanted
        wanted |= found
        pending += found
    # The C API of UMDK has headers of its own.
    wanted |= {str(header.relative_to(SOURCES / "umdk/include"))
               for header in (SOURCES / "umdk/include").rglob("*.h")}
    extra = installed - wanted
    assert not extra, f"installed, but no public header includes {extra}. Fix: cmake/install.cmake"
    assert not wanted - installed, f"not installed: {wanted - installed}"
    for path in prefix.rglob("*"):
        if path.suffix in (".cmake", ".pc"):
            text = path.read_text(encoding="utf-8")
            for place in (SOURCES, BUILD, prefix):
                assert str(place) not in text, f"{path} names {place}"
    documents = [f"share/doc/urma/{name}" for name in ("README.md", "LICENSE", "docs/protocol.md")]
    pages = [f"share/man/man1/{page.name}" for page in (SOURCES / "docs/man").glob("*.1")]
    for name in documents + pages:
        assert (prefix / name).exists(), name
    for name in needed(prefix / "lib/liburma.so"):
        assert SYSTEM_LIBRARIES.fullmatch(name), f"liburma.so needs {name}"


def anchors_of(text):
    """Returns the valid anchors of a document: its headings, as GitHub writes them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links(prefix):
    """Checks that every relative link of an installed document leads to an installed file."""
    wrong, count = [], 0
    for document in sorted(prefix.rglob("*.md")):
        for link in LINK.findall(document.read_text(encoding="utf-8")):
            if "://" in link:
                continue
            count += 1
            name, _, anchor = link.partition("#")
            target = (document.parent / name).resolve() if name else document
            if not target.exists() or not target.is_relative_to(prefix.resolve()):
                wrong.append(f"{document.relative_to(prefix)}: {link} is not installed")
            elif anchor and anchor not in anchors_of(target.read_text(encoding="utf-8")):
                wrong.append(f"{document.relative_to(prefix)}: {link}: no such heading")
    assert count > 40 and not wrong, "\n".join([f"{len(wrong)} of {count} are broken", *wrong])


def check_tools(prefix):
    """Checks that installed tools find the library beside them."""
    for tool in sorted((prefix / "bin").iterdir()):
        run(tool, "--help", LD_LIBRARY_PATH="")


# Each driver that has a shared object of its own: a device of it, words that the object says of
# that device, and whether the device opens.
PLUGINS = {"dpdk": ("dpdk:net_null0?ip=10.9.0.1/24", "net_null0", True),
           "verbs": ("verbs:nothing", "RDMA adapter", False)}


def check_plugin(prefix, driver):
    """Checks that a tool finds the object of a driver beside the library, wherever that is, and
    says what to do without it."""
    names = [path.name for path in (prefix / "lib").glob(f"liburma_{driver}.so*")]
    if not names:
        print(f"the driver {driver} was not built: its object is not tried")
        return
    wanted = rf"liburma_{driver}\.so\.\d+\.\d+"
    assert any(re.fullmatch(wanted, name) for name in names), names
    assert f"liburma_{driver}.so" not in names, "nothing is linked against it"
    device, answer, opens = PLUGINS[driver]
    command = [prefix / "bin/urma_info", device]
    done = subprocess.run(command, text=True, capture_output=True, check=False, timeout=60,
                          env={**os.environ, "LD_LIBRARY_PATH": ""})
    assert answer in done.stdout + done.stderr, done
    assert (done.returncode == 0) == opens, done
    shutil.move(prefix / "lib", prefix / "elsewhere")
    (prefix / "lib").mkdir()
    for library in (prefix / "elsewhere").glob("liburma.so*"):
        shutil.copy(library, prefix / "lib", follow_symlinks=False)
    done = subprocess.run(command, text=True, capture_output=True, check=False, timeout=60,
                          env={**os.environ, "LD_LIBRARY_PATH": ""})
    assert done.returncode != 0 and f"Fix: install liburma_{driver}.so" in done.stderr, done.stderr
    shutil.rmtree(prefix / "lib")
    shutil.move(prefix / "elsewhere", prefix / "lib")


def check_headers(prefix, work):
    """Compiles each public header as other projects would."""
    source = work / "headers.cc"
    for compiler in filter(shutil.which, dict.fromkeys((COMPILER, "clang++"))):
        for dialect in DIALECTS:
            for header in sorted((prefix / "include/urma").glob("*.hpp")):
                if header.name != "urma.hpp" and "-fno-exceptions" in dialect:
                    continue  # those that adapt others' libraries have their demands
                source.write_text(f"#include <urma/{header.name}>\n", encoding="utf-8")
                run(compiler, *dialect, *STRICT, f"-I{prefix / 'include'}", source)


def check_dialect(prefix, work):
    """Checks that with an older C++ the compiler stops with an error that says so."""
    source = work / "dialect.cc"
    for header in sorted((prefix / "include/urma").glob("*.hpp")):
        program = f"#include <urma/{header.name}>\nint main() {{ return urma::open().ok(); }}\n"
        source.write_text(program, encoding="utf-8")
        for compiler in filter(shutil.which, dict.fromkeys((COMPILER, "clang++"))):
            done = subprocess.run([compiler, "-std=c++17", f"-I{prefix / 'include'}",
                                   "-fsyntax-only", source], text=True, stderr=subprocess.PIPE,
                                  check=False)
            said = re.findall(r"error: (.*)", done.stderr)
            assert done.returncode != 0 and len(said) == 2, done.stderr
            assert "liburma needs C++20. Fix: compile with -std=c++20" in said[0], done.stderr
            assert "-std=c++20" in said[1], done.stderr


def check_without_boost(prefix, work):
    """Checks that without Boost, or with an old one, urma::asio fails and says what to install."""
    sentence = "urma::asio needs Boost 1.74 or newer. Fix: apt-get install libboost-dev"
    project = work / "without_boost"
    project.mkdir()
    (project / "main.cc").write_text("int main() {}\n", encoding="utf-8")
    for components, links in (("COMPONENTS asio", ""), ("", "target_link_libraries(m urma::asio)")):
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(without_boost LANGUAGES CXX)\n"
            f"find_package(urma CONFIG REQUIRED {components})\n"
            f"add_executable(m main.cc)\n{links}\n", encoding="utf-8")
        done = subprocess.run(["cmake", "-S", project, "-B", project / "build", "-G", "Ninja",
                               f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={COMPILER}",
                               "-DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON"],
                              text=True, capture_output=True, check=False)
        said = " ".join(done.stderr.split())
        assert done.returncode != 0 and sentence in said, done.stderr
        shutil.rmtree(project / "build")
    old = work / "old_boost/boost"
    old.mkdir(parents=True)
    (old / "asio.hpp").write_text("", encoding="utf-8")
    (old / "version.hpp").write_text("#define BOOST_VERSION 107300\n", encoding="utf-8")
    source = work / "old.cc"
    source.write_text("#include <urma/asio.hpp>\n", encoding="utf-8")
    done = subprocess.run([COMPILER, "-std=c++20", f"-I{prefix / 'include'}", f"-I{old.parent}",
                           "-fsyntax-only", source], text=True, capture_output=True, check=False)
    assert done.returncode != 0 and done.stderr.count("error: ") == 2, done.stderr
    assert "needs Boost 1.74 or newer, and this one is older. Fix: " in done.stderr, done.stderr


def check_find_package(prefix, work, *libraries):
    project = work / "consumers/find_package"
    build = project / f"build-{prefix.name}"
    run("cmake", "-G", "Ninja", "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={COMPILER}")
    made = run("ninja", "-C", build, "-t", "targets", "all")
    if "asio: phony" not in made:  # no Boost, or an old one
        libraries = [name for name in libraries if name != "asio"]
    run("cmake", "--build", build, "--target", *libraries)
    for library in libraries:
        check_write(build / library, static=library == "static")


def check_pkg_config(prefix, work):
    if not shutil.which("pkg-config"):
        print("pkg-config is not installed: urma.pc is not tried")
        return
    project = work / "consumers/pkg_config"
    run("make", cwd=project, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
    check_write(project / "shared", static=False)
    check_write(project / "static", static=True)
    check_readme_line(work)


def check_umdk(prefix, work):
    """Checks that the links of both libraries lead to the right ones, and that a program in C finds
    the C API by both names of its header."""
    for link, soname in (("lib/liburma.so", r"liburma\.so\.0\.\d+"),
                         ("lib/umdk/liburma.so", r"liburma\.so\.0")):
        said = re.search(r"\(SONAME\).*\[(.*)\]", run("readelf", "-d", prefix / link)).group(1)
        assert re.fullmatch(soname, said), (link, said)
    if not shutil.which("pkg-config"):
        print("pkg-config is not installed: urma-umdk.pc is not tried")
        return
    project = work / "consumers/umdk"
    run("make", cwd=project, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
    for program in ("long", "short"):
        assert "liburma.so.0" in needed(project / program), needed(project / program)
        for device in ("udp:127.0.0.1", f"cxl:{project / 'window'}?size=16M"):
            assert run(project / program, device, LD_LIBRARY_PATH="") == "written\n", device


def check_readme_line(work):
    """Runs the README's command in a shell whose ~/urma is the moved prefix."""
    readme = " ".join((SOURCES / "README.md").read_text(encoding="utf-8").split())
    shown = re.search(r"with `(PKG_CONFIG_PATH=~/urma\S*)`: `(g\+\+ [^`]*)`", readme)
    path, command = shown.groups()
    project = work / "readme"
    project.mkdir()
    shutil.copy(work / "consumers/write.cc", project / "service.cc")
    run("sh", "-ec", f"export {path}\n{command}", cwd=project, HOME=str(work))
    check_write(project / "a.out", static=False)


def check_subdirectory(work):
    """Checks that add_subdirectory builds the library and nothing else. aarch64.py builds it;
    here it is looked at."""
    build = work / "subdirectory"
    run("cmake", "-G", "Ninja", "-S", work / "consumers/subdirectory", "-B", build,
        f"-DLIBURMA={SOURCES}", "-DURMA_INSTALL=ON", "-DCMAKE_INSTALL_LIBDIR=lib/triplet",
        f"-DCMAKE_CXX_COMPILER={COMPILER}")
    built = run("ninja", "-C", build, "-t", "targets", "all")
    assert "liburma/liburma.so" in built and "urma_perf" not in built, built
    if shutil.which("pkg-config"):
        pkgconfig = work / "other/lib/triplet/pkgconfig"
        pkgconfig.mkdir(parents=True)
        shutil.copy(build / "liburma/urma.pc", pkgconfig)
        libdir = run("pkg-config", "--variable=libdir", "urma", PKG_CONFIG_PATH=str(pkgconfig))
        assert os.path.normpath(libdir.strip()) == str(work / "other/lib/triplet"), libdir


def check_destdir(work):
    run("cmake", "--install", BUILD, "--prefix", "/usr", DESTDIR=str(work / "staged"))
    for name in ("include/urma/urma.hpp", "lib/liburma.so", "lib/pkgconfig/urma.pc"):
        assert (work / "staged/usr" / name).exists(), name


def check_completion(prefix):
    """Checks that each tool has a script for each shell, but the one that is a script itself."""
    for tool in (prefix / "bin").iterdir():
        if tool.name == "urma_qlog":
            continue
        for script in (f"bash-completion/completions/{tool.name}",
                       f"zsh/site-functions/_{tool.name}",
                       f"fish/vendor_completions.d/{tool.name}.fish"):
            text = (prefix / "share" / script).read_text(encoding="utf-8")
            assert f"Completion of {tool.name}" in text and "version" in text, script


def check_examples(prefix, work):
    """Builds the installed examples as they are, as a project of their own."""
    sources = prefix / "share/doc/urma/examples"
    said = run("cmake", "-G", "Ninja", "-S", sources, "-B", work / "examples",
               f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={COMPILER}")
    run("cmake", "--build", work / "examples")
    built = {path.name for path in (work / "examples").glob("example_*") if path.is_file()}
    wanted = {f"example_{source.stem}" for source in sources.glob("*.cc")}
    without_boost = set(re.findall(r"(example_\w+) left out: it needs Boost", said))
    assert built and built == wanted - without_boost, (wanted, built)


def check_uninstall(prefix):
    """Checks that all installed files go, that others stay, and that there is nothing to repeat."""
    (prefix / "bin/another").touch()
    (prefix / "share/urma/mine").mkdir()
    said = run("cmake", "--build", BUILD, "--target", "uninstall")
    assert re.search(r"uninstall: removed \d{2,} files", said), said
    left = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}
    assert left == {"bin/another"}, left
    assert not (prefix / "include/urma").exists() and (prefix / "share/urma/mine").exists()
    done = subprocess.run(["cmake", "-P", BUILD / "uninstall.cmake"], text=True,
                          capture_output=True, check=False)
    said = " ".join(done.stderr.split())
    assert done.returncode != 0 and "nothing was installed from this build tree" in said, done
    assert f"Fix: cmake --install {BUILD}" in said, done


def main():
    with tempfile.TemporaryDirectory(prefix="urma-install-") as folder:
        work = pathlib.Path(folder)
        shutil.copytree(HERE / "consumers", work / "consumers")
        run("cmake", "--install", BUILD, "--prefix", work / "first")
        check_files(work / "first")
        check_links(work / "first")
        check_completion(work / "first")
        if sys.argv[4:] == ["files"]:
            check_uninstall(work / "first")
            return
        check_find_package(work / "first", work, "shared")
        shutil.move(work / "first", work / "urma")
        check_find_package(work / "urma", work, "shared", "static", "asio")
        check_examples(work / "urma", work)
        check_without_boost(work / "urma", work)
        check_pkg_config(work / "urma", work)
        check_umdk(work / "urma", work)
        check_tools(work / "urma")
        for driver in PLUGINS:
            check_plugin(work / "urma", driver)
        check_headers(work / "urma", work)
        check_dialect(work / "urma", work)
        check_destdir(work)
        check_subdirectory(work)
    print("installed, moved, and used")


main()
