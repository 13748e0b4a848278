#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the two programs of README.md: hello_test.py ROOT OWNER WRITER"""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(sys.argv[1])
PROGRAMS = sys.argv[2:4]


def run(first, second):
    """Starts two programs, one some time after the other. Returns the output of each."""
    started = [subprocess.Popen([first], stdout=subprocess.PIPE, text=True)]
    time.sleep(0.3)
    started.append(subprocess.Popen([second], stdout=subprocess.PIPE, text=True))
    said = {process.args[0]: process.communicate(timeout=30)[0].strip() for process in started}
    assert all(process.returncode == 0 for process in started), said
    return said


def run_without_names(program):
    """Runs a program where names can be neither published nor found. Returns its stderr."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "urma").write_text("a file instead of the directory of names")
        done = subprocess.run([program], env={**os.environ, "XDG_RUNTIME_DIR": folder}, timeout=30,
                              capture_output=True, text=True)
        assert done.returncode == 1, done
        return done.stderr


def run_without_descriptors(program):
    """Runs a program whose device cannot be opened. Returns its stderr."""
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6))

    done = subprocess.run([program], preexec_fn=few, timeout=30, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == "", done
    return done.stderr


def main():
    owner, writer = PROGRAMS
    for order in ((owner, writer), (writer, owner)):
        assert run(*order) == {owner: "hello, memory", writer: "written"}, order
    for program in PROGRAMS:
        said = run_without_names(program)
        assert said.startswith(pathlib.Path(program).name + ": ") and ". Fix: " in said, said
        said = run_without_descriptors(program)
        assert said.startswith(pathlib.Path(program).name + ": ") and "Fix: " in said, said
        assert "Too many open files" in said or "descriptors" in said, said
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in ("owner", "writer"):
        source = (ROOT / "apps/hello" / f"{name}.cc").read_text(encoding="utf-8")
        source = source.split("\n", 1)[1]  # without the license
        assert len(source.splitlines()) <= 25, f"{name}.cc has more than 25 lines"
        assert source in readme, f"README.md does not show {name}.cc as it is"


main()
