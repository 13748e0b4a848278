#!/usr/bin/env python3
"""Does the compiler warn when a result is dropped? discarded_test.py ROOT COMPILER

A program that ignores the result of post, poll, wait, receive or take has a bug that nothing else
shows: a work that was never posted, or a completion that is lost."""

import re
import subprocess
import sys

ROOT, COMPILER = sys.argv[1:3]
CALLS = """\
jetty.post(work);
jetty.post(std::span(&work, 1));
jetty.post({work, work});
jetty.receive(bytes);
jetty.receive(buffers);
jetty.poll(completions);
jetty.wait(limit);
jfr.receive(bytes);
jfr.receive(buffers);
jfr.poll(completions);
jfr.wait(limit);
jfc.poll(completions);
jfc.wait(limit);
jfce.take(tags);
jfce.wait(limit);
""".splitlines()
HEAD = """\
#include <urma/urma.hpp>
void drop(urma::Jetty& jetty, urma::Jfr& jfr, urma::Jfc& jfc, urma::Jfce& jfce,
          const urma::Work& work, std::span<std::byte> bytes, std::span<const urma::Buffer> buffers,
          std::span<urma::Completion> completions, std::span<uint64_t> tags, urma::Duration limit) {
"""


def main():
    first = HEAD.count("\n") + 1
    done = subprocess.run([COMPILER, "-std=c++20", "-fsyntax-only", f"-I{ROOT}", "-xc++", "-"],
                          input=HEAD + "\n".join(CALLS) + "\n}\n", capture_output=True, text=True,
                          timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    warned = {int(line) for line in re.findall(r"^<stdin>:(\d+):\d+: warning: ", done.stderr,
                                               re.MULTILINE)}
    silent = [call for line, call in enumerate(CALLS, first) if line not in warned]
    assert not silent, f"no warning for {silent}"


main()
