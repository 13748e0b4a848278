# SPDX-License-Identifier: Apache-2.0
"""Does clang-tidy find anything in the library and the tools (.clang-tidy says what for)?

Takes minutes at first. Files without a finding are not checked again before they, a file that they
include, or the settings change. Needs a build directory: --build.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import tempfile

from headers import closure
from tree import LIBRARY, Tree, main

PLACES = LIBRARY + ("apps/", "examples/", "fabric/", "tools/")
# Files that are built where their SDK is installed, or where it is not.
OPTIONAL = ("drivers/dpdk/", "drivers/verbs/", "drivers/udp/uring_", "drivers/udp/no_uring.cc")
SETTING = ".clang-tidy"
# Options that gcc knows and clang does not, and headers that gcc has precompiled.
FOREIGN = re.compile(r" -(mmem\w+-strategy=\S+|Wno-restrict|Werror|Wshadow=local|ffat-lto-objects"
                     r"|flto\S*|fno-fat-lto-objects|Winvalid-pch|include \S+/cmake_pch\.hxx)")
UNITED = re.compile(r'^#include "(.+)"$', re.MULTILINE)


def sources_of(entry):
    """Returns the sources of an entry: several if CMake compiles them as one."""
    place = pathlib.Path(entry["directory"], entry["file"])
    if place.parent.name != "Unity":
        return [str(place)]
    return UNITED.findall(place.read_text(encoding="utf-8"))


def commands(tree, build):
    """Returns the compile command of each file, in a form that clang accepts."""
    database = pathlib.Path(build) / "compile_commands.json"
    if not database.exists():
        raise SystemExit("%s is missing. Fix: cmake --preset dev" % database)
    found = {}
    for entry in json.loads(database.read_text(encoding="utf-8")):
        command = re.sub(r"^\S*ccache ", "", FOREIGN.sub("", entry["command"]))
        for source in sources_of(entry):
            path = os.path.relpath(source, tree.root)
            if path.startswith(PLACES) and path in tree.files:
                found[path] = dict(entry, file=source,
                                   command=command.replace(entry["file"], source))
    return found


def without_command(tree, found):
    """Returns a problem for each source that the build directory does not compile."""
    return ["%s:1: has no compile command. Fix: configure with all of its packages installed" % path
            for path in tree.named(".cc")
            if path.startswith(PLACES) and path not in found and not path.startswith(OPTIONAL)]


def fingerprint(tree, path, entry, tool):
    digest = hashlib.sha256((tool + entry["command"] + tree.text(SETTING)).encode())
    for name in closure(tree, path):
        digest.update(name.encode() + b"\0" + tree.text(name).encode() + b"\0")
    return digest.hexdigest()


def look_at(tree, path, folder):
    command = ["clang-tidy", "--quiet", "--warnings-as-errors=*", "-p", folder, path]
    result = subprocess.run(command, cwd=tree.root, text=True, capture_output=True, check=False)
    if result.returncode == 0:
        return None
    return result.stdout.replace(str(tree.root) + "/", "") or result.stderr


def check(tree, options):
    tool = subprocess.run(["clang-tidy", "--version"], text=True, capture_output=True,
                          check=True).stdout
    wanted = commands(tree, options.build)
    cache = pathlib.Path(options.build) / "clang_tidied"
    fine = set(json.loads(cache.read_text(encoding="utf-8"))) if cache.exists() else set()
    prints = {path: fingerprint(tree, path, entry, tool) for path, entry in wanted.items()}
    pending = [path for path, mark in prints.items() if mark not in fine]
    good = fine & set(prints.values())
    problems = {}
    with tempfile.TemporaryDirectory() as folder:
        database = pathlib.Path(folder) / "compile_commands.json"
        database.write_text(json.dumps(list(wanted.values())), encoding="utf-8")
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            answers = pool.map(lambda path: look_at(tree, path, folder), pending)
            for number, (path, answer) in enumerate(zip(pending, answers), 1):
                print("%d of %d: %s%s" % (number, len(pending), path,
                                          ": found something" if answer else ""), flush=True)
                if answer is None:
                    good.add(prints[path])
                    cache.write_text(json.dumps(sorted(good)), encoding="utf-8")
                # A finding in a header is printed for each file that includes it.
                for finding in re.split(r"\n(?=\S+:\d+:\d+: )", answer or ""):
                    problems.setdefault(finding.split("\n", maxsplit=1)[0], finding.rstrip())
    return without_command(tree, wanted) + [finding for place, finding in problems.items() if place]


def self_test(options):
    files = {
        SETTING: "Checks: '-*,modernize-use-bool-literals'\nHeaderFilterRegex: '/urma/'\n",
        "urma/bad.h": "inline bool bad() { return 1; }\n",
        "urma/one.cc": '#include "urma/bad.h"\n',
        "urma/two.cc": '#include "urma/bad.h"\n',
        "urma/good.cc": "bool good() { return true; }\n",
        "urma/also.cc": "bool also() { return true; }\n",
        "tests/other.cc": "bool other() { return 1; }\n",
    }
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            pathlib.Path(root, path).parent.mkdir(exist_ok=True)
            pathlib.Path(root, path).write_text(text, encoding="utf-8")
        database = [{"directory": root, "file": path,
                     "command": "c++ -mmemset-strategy=x -Winvalid-pch -include "
                                "/x/cmake_pch.hxx -I %s -c %s" % (root, path)}
                    for path in ("urma/one.cc", "urma/good.cc", "tests/other.cc")]
        united = pathlib.Path(root, "Unity", "unity_0.cxx")
        united.parent.mkdir()
        united.write_text("".join('#include "%s/%s"\n' % (root, path)
                                  for path in ("urma/two.cc", "urma/also.cc")), encoding="utf-8")
        database.append({"directory": root, "file": str(united),
                         "command": "c++ -I %s -c %s" % (root, united)})
        pathlib.Path(root, "compile_commands.json").write_text(json.dumps(database),
                                                               encoding="utf-8")
        options.build = root
        for _ in range(2):
            found = check(Tree(root), options)
            assert len(found) == 1 and found[0].startswith("urma/bad.h:1:"), found
        assert len(json.loads(pathlib.Path(root, "clang_tidied").read_text())) == 2
        pathlib.Path(root, "urma/bad.h").write_text("inline bool fine() { return true; }\n",
                                                    encoding="utf-8")
        assert check(Tree(root), options) == []


if __name__ == "__main__":
    main(__doc__.split("\n", maxsplit=1)[0], check, self_test,
         [("--build", {"default": "build/dev", "help": "where the tree was configured"})])
