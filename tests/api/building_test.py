#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is a work built without a string instruction? building_test.py ROOT COMPILER

Compilers clear a large object by one, or by a call of memset, which takes longer than filling the
members, in the time of each caller of post."""

import re
import subprocess
import sys

ROOT, COMPILER = sys.argv[1:3]
WORKS = ["write(out, segment, 8)", "write(out, segment, 8).to(jetty).immediate(7).tag(9)",
         "read(in, segment, 8)", "send(out, jetty)", "fetch_add(segment, 8, 1)",
         "compare_swap(segment, 8, 1, 2).unsignalled()"]
HEAD = """\
#include <urma/urma.hpp>
using namespace urma;
"""
FUNCTION = """\
size_t build_%d(Jetty& at, std::span<const std::byte> out, std::span<std::byte> in,
                const RemoteSegment& segment, const RemoteJetty& jetty) {
  (void)out, (void)in, (void)segment, (void)jetty;
  return at.post(%s);
}
"""


def main():
    program = HEAD + "".join(FUNCTION % it for it in enumerate(WORKS))
    done = subprocess.run([COMPILER, "-std=c++20", "-O2", f"-I{ROOT}", "-S", "-o-", "-xc++", "-"],
                          input=program, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("build_") >= len(WORKS)
    found = re.findall(r"^\s*(rep\b.*|call\s+mem\w+.*)$", done.stdout, re.MULTILINE)
    assert not found, f"{found} in the code that builds {WORKS}"


main()
