# SPDX-License-Identifier: Apache-2.0
"""Does each library export the functions that its headers declare, and nothing else?"""

import pathlib
import re
import subprocess
import sys

# The headers of each library, in the order of the arguments, and how few functions it may have.
LIBRARIES = (
    (("urma_api.h", "urma_types.h", "urma_perf.h", "urma_types_str.h", "urma_provider.h",
      "urma_log.h", "urma_ubagg.h"), 130),
    (("ub_util.h", "ub_get_clock.h", "ub_barrier.h"), 10),
    (("uvs_api.h", "uvs_types.h"), 1),
)
FUNCTION = re.compile(r"^(?!typedef|static|#)(?:__attribute__\(\(.*?\)\)\) )?[a-z][\w\s*]*?"
                      r"\b((?:urma|ub|uvs|get)_\w+)\(", re.MULTILINE)


def declared(include, headers):
    names = set()
    for header in headers:
        text = pathlib.Path(include, "ub/umdk/urma", header).read_text(encoding="utf-8")
        text = re.sub(r"//[^\n]*", "", text)
        names.update(FUNCTION.findall(text))
    return names


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True,
                           capture_output=True).stdout.splitlines()
    # Weak and unique ones are instances of templates of the standard library.
    return {line.split()[2] for line in lines if line.split()[1] not in "WVu"}


def differs(include, library, headers, least):
    wanted, there = declared(include, headers), exported(library)
    print(library, len(wanted), "declared,", len(there), "exported")
    assert len(wanted) >= least, sorted(wanted)
    missing, extra = sorted(wanted - there), sorted(there - wanted)
    print("missing:", *missing)
    print("not declared:", *extra)
    return bool(missing or extra)


def main(include, *libraries):
    assert len(libraries) == len(LIBRARIES), libraries
    return any([differs(include, library, *expected)
                for library, expected in zip(libraries, LIBRARIES)])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
