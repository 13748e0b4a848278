#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Has the library the tracepoints that docs/operating.md lists? probes.py LIBRARY SOURCE BUILT"""

import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77


def documented(text):
    """Returns the number of arguments of each probe in the table."""
    rows = re.findall(r"^\| `urma:(\w+)` \|[^|]*\|([^|]*)\|$", text, re.MULTILINE)
    return {name: len(arguments.split(",")) for name, arguments in rows}


def built(library):
    said = subprocess.run(["readelf", "-n", "-W", library], text=True, check=True,
                          stdout=subprocess.PIPE).stdout
    notes = re.findall(r"Provider: urma\s+Name: (\w+)\s+Location:.*\s+Arguments: (.*)", said)
    counts = {}
    for name, arguments in notes:
        counts.setdefault(name, set()).add(len(arguments.split()))
    return counts


def main():
    library, source, has_probes = sys.argv[1:4]
    if has_probes != "1":
        print("skipped: this tree is built without tracepoints (URMA_WITH_PROBES, sys/sdt.h)")
        sys.exit(SKIPPED)
    if not shutil.which("readelf"):
        print("skipped: there is no readelf")
        sys.exit(SKIPPED)
    text = (pathlib.Path(source) / "docs/operating.md").read_text(encoding="utf-8")
    expected = {name: {count} for name, count in documented(text).items()}
    assert len(expected) == 5, expected
    assert built(library) == expected, (built(library), expected)
    print(f"{len(expected)} tracepoints, as documented")


main()
