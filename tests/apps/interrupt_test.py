#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""While a client looks for its server: does Ctrl-C end it, and for how long does it look?
interrupt_test.py URMA_PERF URMA_NOTIFY URMA_FEED"""

import os
import signal
import subprocess
import sys
import tempfile
import time

PERF, NOTIFY, FEED = sys.argv[1:]
# No program listens at this address.
VACANT = f"127.3.{os.getpid() % 250}.9"


def interrupted(*command):
    """Returns the exit code of a program that is interrupted in a call of two seconds."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(0.4)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=100)
    # Until the program handles signals, the system ends it. A shell reports 130 in both cases.
    assert process.returncode in (130, -signal.SIGINT), (command, process.returncode, out, err)
    assert "reaching the" not in err, (command, err)


def gives_up(*command):
    """A client waits 2 s for a server that has not started, as the client's --help says."""
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    took = time.monotonic() - began
    assert done.returncode == 5 and "Fix: start it there" in done.stderr, (command, done)
    assert took > 1.5, (command, took)
    said = subprocess.run([command[0], "--help-all" if command[0] == PERF else "--help"],
                          capture_output=True, text=True, timeout=60).stdout
    assert "waits 2 s for" in said, said


def main():
    with tempfile.TemporaryDirectory() as runtime:
        os.chmod(runtime, 0o700)
        os.environ["XDG_RUNTIME_DIR"] = runtime  # so that no server is found
        with tempfile.NamedTemporaryFile() as file:
            for host in ("localhost", VACANT):
                interrupted(PERF, "write_lat", host)
                interrupted(NOTIFY, "send", file.name, host)
                interrupted(FEED, "produce", host, "--topic", "3")
            interrupted(PERF, "--budget")
            gives_up(PERF, "write_lat", VACANT)
            gives_up(NOTIFY, "send", file.name, VACANT)
            gives_up(NOTIFY, "send", file.name, VACANT, "--patience", "60")
            gives_up(FEED, "produce", VACANT)


main()
