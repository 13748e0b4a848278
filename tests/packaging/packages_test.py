#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a fresh Debian 12 install, use and remove our packages? packages_test.py SOURCES [PACKAGES]

Builds the packages, unless a folder has them, and installs them in a system that debootstrap makes.
It runs in a mount namespace of its own, so that nothing stays mounted.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCES = pathlib.Path(sys.argv[1]).resolve()
CONSUMERS = SOURCES / "tests/install/consumers"
SUITE = "bookworm"
MIRROR = "http://deb.debian.org/debian"
INSIDE = "URMA_PACKAGES_TEST"  # set in the namespace
LINK = re.compile(r"\]\(([^()\s#]+)(?:#[^()\s]*)?\)")
# A device of each optional driver, and words that its object says of that device.
DRIVERS = {"dpdk:net_null0?ip=10.9.0.1/24": "net_null0", "verbs:nothing": "RDMA adapter"}


def run(*command, **more):
    """Returns the output of a command, which must succeed."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=3000, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout[-8000:]}")
    return done.stdout


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


class System:
    """A fresh system in a folder."""

    def __init__(self, root):
        self.root = root
        run("debootstrap", "--variant=minbase", SUITE, root, MIRROR)
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        (root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n", encoding="utf-8")
        (root / "usr/sbin/policy-rc.d").chmod(0o755)
        run("mount", "-t", "proc", "proc", root / "proc")
        run("mount", "-t", "sysfs", "sysfs", root / "sys")
        run("mount", "--bind", "/dev", root / "dev")
        run("mount", "-t", "tmpfs", "tmpfs", root / "dev/shm")
        run("mount", "-t", "tmpfs", "tmpfs", root / "tmp")

    def run(self, command, **more):
        """Types a command in this system."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                       "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        return run("chroot", self.root, "sh", "-ec", command, env=environment, **more)

    def answer(self, command):
        """Returns what a command says, whether or not it succeeds."""
        return self.run(f"{command} 2>&1 || true")

    def files(self):
        """Returns what a package could leave behind."""
        return {str(path.relative_to(self.root)) for part in ("etc", "usr", "opt", "var/lib/urma")
                for path in (self.root / part).rglob("*")}


def packages_in(folder):
    """Returns the packages by name, without those with debugging symbols."""
    names = {path.name.split("_")[0]: path for path in sorted(folder.glob("*.deb"))}
    return {name: path for name, path in names.items() if not name.endswith("-dbgsym")}


def check_lintian(folder):
    said = run("lintian", "--allow-root", "--display-info", "--fail-on", "error,warning,info",
               *folder.glob("liburma_*.changes"))
    assert not re.search(r"^[EWI]: ", said, re.MULTILINE), said


def check_names(packages, soversion):
    wanted = {f"liburma{soversion}", f"liburma-dpdk{soversion}", f"liburma-verbs{soversion}",
              "liburma0", "liburma-umdk-dev", "liburma-dev", "urma-tools", "liburma-doc",
              "python3-urma", "urma-nccl", "urma-nixl"}
    assert wanted <= set(packages), set(packages)


def use_tools(system):
    """Measures in a system that has urma-tools and nothing else of ours."""
    for tool in ("urma_perf", "urma_qlog"):
        assert tool in system.run(f"{tool} --version")
    for device in ("cxl:", "udp:127.0.0.1"):
        said = system.run(f"urma_perf --self write_imm_lat --seconds 0.1 --json --device {device}")
        assert '"wrong":0' in said.replace(" ", ""), said
    assert "Fix: install liburma_dpdk.so" in system.answer("urma_info dpdk:net_null0")
    for place in ("bash-completion/completions/urma_perf", "zsh/vendor-completions/_urma_perf",
                  "fish/vendor_completions.d/urma_perf.fish"):
        assert (system.root / "usr/share" / place).exists(), place


def check_tracepoints(system, soversion):
    said = system.run(f"readelf -n -W /usr/lib/*/liburma.so.{soversion}.*")
    found = set(re.findall(r"Provider: urma\s+Name: (\w+)", said))
    assert found == {"post", "transmit", "receive", "execute", "complete"}, said
    assert (system.root / "usr/share/urma/bpftrace/latency.bt").exists()


def use_drivers(system):
    for device, words in DRIVERS.items():
        assert words in system.answer(f"urma_info '{device}'"), system.answer(f"urma_info {device}")


def use_library(system):
    """Compiles programs as users of liburma-dev do, and runs them."""
    shutil.copytree(CONSUMERS, system.root / "tmp/consumers")
    system.run("cd /tmp/consumers && c++ -std=c++20 write.cc $(pkg-config --cflags --libs urma) "
               "-o /tmp/by-pkg-config")
    system.run("cd /tmp/consumers/find_package && cmake -G Ninja -B /tmp/build && "
               "cmake --build /tmp/build --target shared static")
    for program in ("/tmp/by-pkg-config", "/tmp/build/shared", "/tmp/build/static"):
        assert system.run(f"{program} udp:127.0.0.1") == "written\n", program
    assert "liburma.so.0." in system.run("ldd /tmp/by-pkg-config"), "linked statically"
    examples = "/usr/share/doc/liburma-doc/examples"
    system.run(f"cmake -G Ninja -S {examples} -B /tmp/examples && cmake --build /tmp/examples")
    system.run("/tmp/examples/example_write")


def use_umdk(system):
    """Compiles a program of UMDK, beside liburma-dev, and runs it."""
    system.run("cd /tmp/consumers/umdk && make")
    for program in ("long", "short"):
        assert system.run(f"/tmp/consumers/umdk/{program} udp:127.0.0.1") == "written\n", program


def check_links(system):
    """Checks that links of the documents lead to installed files."""
    broken = []
    for document in (system.root / "usr/share/doc/liburma-doc").rglob("*.md"):
        for link in LINK.findall(document.read_text(encoding="utf-8")):
            if "://" not in link and not (document.parent / link).exists():
                broken.append(f"{document.name}: {link}")
    assert not broken, broken


def load_plugins(system):
    """Loads the plugins as their programs do: NCCL by name, NIXL from its folder."""
    for place, name in (("libnccl-net-urma.so", "ncclNetPlugin_v11"),
                        ("$(ls /usr/lib/*/nixl/libplugin_URMA.so)", "nixl_plugin_init")):
        system.run("python3 -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])[sys.argv[2]]' "
                   f"{place} {name}")


def use_python(system):
    said = system.run("python3 -c 'import urma; urma.open(\"udp:127.0.0.1\").close(); print(1)'")
    assert said == "1\n", said


def use(system, packages, soversion):
    (system.root / "packages").mkdir()
    for path in packages.values():
        shutil.copy(path, system.root / "packages")

    def install(*names):
        words = " ".join(f"/packages/{packages[name].name}" if name in packages else name
                         for name in names)
        system.run(f"apt-get install -q -y --no-install-recommends {words}")

    # Files of the compiler and of apt are not ours.
    install("g++", "cmake", "ninja-build", "pkgconf", "make")
    before = system.files()
    install("urma-tools")
    use_tools(system)
    install(f"liburma{soversion}", f"liburma-dpdk{soversion}", f"liburma-verbs{soversion}",
            "librte-meta-net")
    check_tracepoints(system, soversion)
    use_drivers(system)
    install("liburma-dev", "liburma-doc")
    use_library(system)
    install("liburma0", "liburma-umdk-dev")
    use_umdk(system)
    check_links(system)
    install("python3-urma")
    use_python(system)
    install("urma-nccl", "urma-nixl")
    load_plugins(system)
    system.run("apt-get purge -q -y --autoremove " + " ".join(packages))
    left = {path for path in system.files() - before if "urma" in path}
    assert not left, f"left after removal: {sorted(left)}"
    assert "urma" not in system.run("dpkg --get-selections"), "not removed"


def main():
    if os.geteuid() != 0:
        skip("only root can make a system. Fix: run it as root")
    for tool in ("debootstrap", "lintian", "unshare"):
        if not shutil.which(tool):
            skip(f"{tool} is not installed. Fix: apt-get install debootstrap lintian")
    if INSIDE not in os.environ:
        if subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0:
            skip("this process may not make a mount namespace")
        if subprocess.run(["curl", "-sfI", f"{MIRROR}/dists/{SUITE}/Release"], check=False,
                          stdout=subprocess.DEVNULL).returncode != 0:
            skip(f"{MIRROR} does not answer")
        os.environ[INSIDE] = "yes"
        os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, "-B",
                              *sys.argv])
    version = re.search(r"project\(urma VERSION (\d+\.\d+)",
                        (SOURCES / "CMakeLists.txt").read_text(encoding="utf-8")).group(1)
    with tempfile.TemporaryDirectory(prefix="urma-packages-") as folder:
        work = pathlib.Path(folder)
        built = pathlib.Path(sys.argv[2]) if sys.argv[2:] else work / "built"
        if not sys.argv[2:]:
            run(SOURCES / "packaging/make-packages", built)
        packages = packages_in(built)
        check_names(packages, version)
        check_lintian(built)
        system = System(work / "system")
        try:
            use(system, packages, version)
        finally:
            for place in ("proc", "sys", "dev", "tmp"):
                run("umount", "-R", system.root / place)
    print("built, checked, installed, used and removed:", ", ".join(packages))


main()
