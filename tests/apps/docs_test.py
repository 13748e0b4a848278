#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the programs in the documents compile and run? docs_test.py ROOT COMPILER STATIC_LIBRARY

A ```cpp block that contains `main` is a whole program, compiled without a warning and linked; one
marked ```cpp run is also run. Any other block is compiled as a part of a function. Without Boost,
programs that use it are skipped.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])
COMPILER, LIBRARY = sys.argv[2:4]
BLOCK = re.compile(r"^```cpp( run)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STRICT = [COMPILER, "-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}"]
PROGRAMS = {"README.md": 2, "docs/tutorial.md": 4}
PART = ["-fsyntax-only", "-Wno-unused", "-Wno-unused-parameter", "-xc++", "-"]
# Parts of programs use these names without making them.
AROUND = """#include <cstdio>
#include <urma/urma.hpp>
using namespace std::chrono_literals;
void part(urma::Device& device, urma::Jetty& jetty, const urma::RemoteSegment& memory,
          const urma::RemoteJetty& target, std::span<const std::byte> data,
          std::span<const std::byte> done, std::span<std::byte> log) {
%s
}
"""


def compiled(options, source):
    built = subprocess.run([*STRICT, *options], input=source, capture_output=True, text=True,
                           timeout=200)
    assert built.returncode == 0, built.stderr


def try_program(source, is_run):
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/program"
        compiled(["-xc++", "-", "-xnone", LIBRARY, "-pthread", "-o", program], source)
        if is_run:
            done = subprocess.run([program], capture_output=True, text=True, timeout=30)
            assert done.returncode == 0 and done.stdout, (done.stdout, done.stderr)


def has_boost():
    asked = "#if !__has_include(<boost/asio.hpp>)\n#error\n#endif\n"
    return subprocess.run([COMPILER, "-fsyntax-only", "-xc++", "-"], input=asked, text=True,
                          capture_output=True, timeout=200).returncode == 0


def main():
    parts = 0
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        name = path.relative_to(ROOT).as_posix()
        programs = 0
        for number, (run, source) in enumerate(
                BLOCK.findall(path.read_text(encoding="utf-8")), 1):
            if "<boost/" in source and not has_boost():
                print(name, number, "(skipped: built without Boost.Asio)")
                programs += 1
                continue
            print(name, number, flush=True)
            if re.search(r"\bmain\(", source):
                programs += 1
                try_program(source, run)
            else:
                assert not run, f"{name}: a part of a program cannot run"
                parts += 1
                compiled(PART, AROUND % source)
        assert programs >= PROGRAMS.get(name, 0), f"{name} has {programs} programs"
    assert parts >= 3, f"the documents have {parts} parts of programs"


main()
