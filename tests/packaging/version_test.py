#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do all places that name the version agree? version_test.py SOURCES

CMakeLists.txt has the version. A tag of this commit, the first section of CHANGELOG.md and the
version of the symbols have to be the same.
"""

import pathlib
import re
import subprocess
import sys

SOURCES = pathlib.Path(sys.argv[1])


def found(pattern, path):
    match = re.search(pattern, (SOURCES / path).read_text(encoding="utf-8"), re.MULTILINE)
    assert match, f"{path} has no {pattern}"
    return match.group(1)


def tags():
    """Returns the tags of releases that this commit has; none without git."""
    done = subprocess.run(["git", "-C", SOURCES, "tag", "--points-at", "HEAD", "v[0-9]*"],
                          capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else []


def main():
    version = found(r"^project\(urma VERSION (\d+\.\d+\.\d+) ", "CMakeLists.txt")
    minor = version.rsplit(".", 1)[0]
    change = found(r"^## (\S+)", "CHANGELOG.md")
    assert change in (minor, version), f"CHANGELOG.md begins with {change}, not {version}"
    node = found(r"^URMA_([\d.]+) ", "api/exports.map")
    assert node == minor, f"api/exports.map has URMA_{node}, not URMA_{minor}"
    for tag in tags():
        assert tag == f"v{version}", f"this commit has the tag {tag}, and the version {version}"
    print(version)


main()
