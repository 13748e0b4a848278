#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the shared library export the recorded symbols? symbols.py LIBRARY NODE [--update]

Holds its dynamic symbols, and the version NODE of each, against symbols.txt beside this file.
"""

import pathlib
import shutil
import subprocess
import sys

RECORDED = pathlib.Path(__file__).resolve().parent / "symbols.txt"
ADVICE = """
An application that was linked against this version needs what is recorded. If it is removed or
changed on purpose, the next release has another minor version. What is new and meant for users has
URMA_API in a public header; what is not, is marked URMA_LOCAL, or not at all (urma/core/export.h).
When all is as it should be: python3 tests/install/symbols.py %s %s --update"""


def readable(name):
    if not shutil.which("c++filt"):
        return name
    return subprocess.run(["c++filt", name], text=True, check=True,
                          stdout=subprocess.PIPE).stdout.strip()


def shown(library, node):
    """Returns the names without their version. Ends the test if the version differs."""
    said = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library],
                          text=True, check=True, stdout=subprocess.PIPE).stdout
    names = set()
    for line in said.splitlines():
        kind, symbol = line.split()[1:3]
        name, _, version = symbol.partition("@@")
        if kind == "A":  # the version itself
            continue
        if version != node:
            sys.exit(f"{readable(name)} has version {version!r} and not {node}. Fix: the node in "
                     "api/exports.map is called URMA_ and the project's major.minor version")
        names.add(name)
    return names


def main():
    library, node = sys.argv[1:3]
    names = shown(library, node)
    if sys.argv[3:] == ["--update"]:
        RECORDED.write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")
        print(f"{RECORDED} records {len(names)} names")
        return
    recorded = set(RECORDED.read_text(encoding="utf-8").split())
    for name in sorted(names - recorded):
        print(f"new:  {name}  {readable(name)}")
    for name in sorted(recorded - names):
        print(f"gone: {name}  {readable(name)}")
    if names != recorded:
        sys.exit(ADVICE % (library, node))
    print(f"{len(names)} names, as recorded")


main()
