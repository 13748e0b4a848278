#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the tools report that their output cannot be written? output_test.py TOOL..."""

import os
import subprocess
import sys
import tempfile

CLOSED = "closed"
ENDED = "ended"  # a pipe without a reader


def run(words, stdout=None, stderr=None):
    """Returns the exit code, and the output on the stream that can still be written."""
    def close():
        for descriptor, what in ((1, stdout), (2, stderr)):
            if what is CLOSED:
                os.close(descriptor)

    def opened(what):
        if what is None:
            return subprocess.PIPE
        if what is ENDED:
            read_end, write_end = os.pipe()
            os.close(read_end)
            return write_end
        return os.open("/dev/full" if what is not CLOSED else "/dev/null", os.O_WRONLY)

    ends = [opened(stdout), opened(stderr)]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=ends[0], stderr=ends[1],
                              preexec_fn=close, text=True, timeout=60)
    finally:
        for end in ends:
            if end != subprocess.PIPE:
                os.close(end)
    return done.returncode, (done.stdout or "") + (done.stderr or "")


def main():
    assert sys.argv[1:], "no tools were given"
    for tool in sys.argv[1:]:
        for bad in ("/dev/full", CLOSED, ENDED):
            # The exit code is the same if the error cannot be printed.
            assert run([tool, "--bogus"], stderr=bad) == (2, ""), (tool, bad)
            code, text = run([tool, "--version"], stderr=bad)
            assert code == 0 and text.startswith(os.path.basename(tool)), (tool, bad, text)
    # If descriptor 2 were free, the first opened file would get it, and with it the messages of the
    # program.
    notify = [tool for tool in sys.argv[1:] if tool.endswith("urma_notify")]
    for tool in notify:
        with tempfile.NamedTemporaryFile("w+") as file:
            file.write("mine")
            file.flush()
            code, _ = run([tool, "send", file.name, "localhost", "--device", "nonsense"],
                          stderr=CLOSED)
            with open(file.name, encoding="utf-8") as again:
                assert code == 2 and again.read() == "mine"
            # Output that cannot be printed is an error, and is not lost in /dev/null.
            code, text = run([tool, "--version"], stdout=CLOSED)
            assert code == 1 and "writing to stdout" in text and "Fix: " in text, (code, text)


main()
