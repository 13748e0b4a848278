# SPDX-License-Identifier: Apache-2.0
"""Do the headers of the C API compile alone, as each version of C and C++, without a warning?"""

import pathlib
import shutil
import subprocess
import sys

C = ("c11", "c17")
CPP = ("c++11", "c++14", "c++17", "c++20", "c++2b")
COMPILERS = (("gcc", "g++"), ("clang", "clang++"))
FLAGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only")


def commands(include):
    for c, cpp in COMPILERS:
        for compiler, language, versions in ((c, "c", C), (cpp, "c++", CPP)):
            if shutil.which(compiler) is None:
                print("no", compiler)
                continue
            for version in versions:
                yield [compiler, "-x", language, "-std=" + version, "-I", include, *FLAGS, "-"]


def main(include):
    folder = pathlib.Path(include, "ub/umdk/urma")
    headers = sorted(folder.glob("*.h"))
    assert len(headers) > 4, headers
    texts = ["#include <ub/umdk/urma/%s>\n" % header.name for header in headers]
    texts.append("".join(texts))
    failed = 0
    compiled = 0
    for command in commands(include):
        for text in texts:
            result = subprocess.run(command, input=text, text=True, capture_output=True,
                                    check=False)
            compiled += 1
            if result.returncode != 0:
                failed += 1
                print(" ".join(command), text, result.stderr)
    print(compiled, "compiled,", failed, "failed")
    assert compiled > 0
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
