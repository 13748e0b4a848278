# SPDX-License-Identifier: Apache-2.0
"""Does the library export the functions that its headers declare, and nothing else?"""

import pathlib
import re
import subprocess
import sys

HEADERS = ("urma_api.h", "urma_types.h", "urma_perf.h", "urma_types_str.h", "urma_provider.h")
FUNCTION = re.compile(r"^(?!typedef|static|#)[a-z][\w\s*]*?\b(urma_\w+)\(", re.MULTILINE)


def declared(include):
    names = set()
    for header in HEADERS:
        text = pathlib.Path(include, "ub/umdk/urma", header).read_text(encoding="utf-8")
        text = re.sub(r"//[^\n]*", "", text)
        names.update(FUNCTION.findall(text))
    return names


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True,
                           capture_output=True).stdout.splitlines()
    # Weak and unique ones are instances of templates of the standard library.
    return {line.split()[2] for line in lines if line.split()[1] not in "WVu"}


def main(include, library):
    wanted, there = declared(include), exported(library)
    print(len(wanted), "declared,", len(there), "exported")
    assert len(wanted) > 130, sorted(wanted)
    missing, extra = sorted(wanted - there), sorted(there - wanted)
    print("missing:", *missing)
    print("not declared:", *extra)
    return bool(missing or extra)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
