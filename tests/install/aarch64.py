#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the library compile for aarch64, without a warning? aarch64.py SOURCES

Builds the consumer that adds this tree as a directory (consumers/subdirectory), unoptimised, with a
cross compiler. Nothing is run. The exit code is 77 if that
compiler is not installed.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = pathlib.Path(sys.argv[1]).resolve()
COMPILER = "aarch64-linux-gnu-g++"
# The headers of the standard library take half of the time, so they are precompiled once.
FLAGS = "-O0 -fPIC -Winvalid-pch -include {std}"
STANDARD = re.compile(r"^#include <[a-z_]+>$", re.MULTILINE)


def run(*command):
    done = subprocess.run([str(word) for word in command], text=True, timeout=600, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout[-20000:]}")
    return done.stdout


def standard_headers():
    found = set()
    for folder in ("urma", "base", "wire", "congestion", "memseg", "ordering", "transport",
                   "jetty", "drivers", "engine", "api"):
        for path in (SOURCES / folder).rglob("*"):
            if path.suffix in (".h", ".hpp", ".cc"):
                found |= set(STANDARD.findall(path.read_text(encoding="utf-8")))
    return "\n".join(sorted(found)) + "\n"


def main():
    if not shutil.which(COMPILER):
        print(f"skipped: there is no {COMPILER}. Fix: apt-get install g++-aarch64-linux-gnu")
        sys.exit(77)
    # Compiler variables of the environment do not fit this compiler.
    os.environ.pop("CMAKE_CXX_COMPILER_LAUNCHER", None)
    with tempfile.TemporaryDirectory(prefix="urma-aarch64-") as folder:
        work = pathlib.Path(folder)
        shutil.copytree(HERE / "consumers", work / "consumers")
        std = work / "std.h"
        std.write_text(standard_headers(), encoding="utf-8")
        flags = FLAGS.format(std=std)
        run(COMPILER, "-std=c++20", "-O0", "-fPIC", "-x", "c++-header", std, "-o", f"{std}.gch")
        run("cmake", "-G", "Ninja", "-S", work / "consumers/subdirectory", "-B", work / "build",
            f"-DLIBURMA={SOURCES}", "-DCMAKE_SYSTEM_NAME=Linux", "-DURMA_WERROR=ON",
            "-DCMAKE_SYSTEM_PROCESSOR=aarch64", f"-DCMAKE_CXX_COMPILER={COMPILER}",
            f"-DCMAKE_CXX_FLAGS={flags}")
        said = run("cmake", "--build", work / "build", "--parallel", str(os.cpu_count() or 1))
        assert "warning" not in said, said
        for program in ("shared", "static"):
            kind = run("readelf", "-h", work / "build" / program)
            assert "AArch64" in kind, kind
    print("compiled and linked for aarch64")


main()
