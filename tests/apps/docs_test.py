#!/usr/bin/env python3
"""Do the programs in README.md and docs/tutorial.md compile and run? docs_test.py ROOT COMPILER
STATIC_LIBRARY

Every ```cpp block is a whole program, compiled without a warning and linked; one marked ```cpp run
is also run. Without Boost, programs that use it are skipped."""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])
COMPILER, LIBRARY = sys.argv[2:4]
BLOCK = re.compile(r"^```cpp( run)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def has_boost():
    asked = "#if !__has_include(<boost/asio.hpp>)\n#error\n#endif\n"
    return subprocess.run([COMPILER, "-fsyntax-only", "-xc++", "-"], input=asked, text=True,
                          capture_output=True, timeout=200).returncode == 0


def main():
    for name, least in (("README.md", 2), ("docs/tutorial.md", 2)):
        blocks = BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))
        assert len(blocks) >= least, f"{name} has {len(blocks)} programs"
        for number, (run, source) in enumerate(blocks, 1):
            if "<boost/" in source and not has_boost():
                print(name, number, "(skipped: built without Boost.Asio)")
                continue
            print(name, number, flush=True)
            with tempfile.TemporaryDirectory() as folder:
                program = f"{folder}/program"
                built = subprocess.run(
                    [COMPILER, "-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}",
                     "-xc++", "-", "-xnone", LIBRARY, "-pthread", "-o", program],
                    input=source, capture_output=True, text=True, timeout=200)
                assert built.returncode == 0, built.stderr
                if run:
                    done = subprocess.run([program], capture_output=True, text=True, timeout=30)
                    assert done.returncode == 0 and done.stdout, (done.stdout, done.stderr)


main()
