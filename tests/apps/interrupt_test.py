#!/usr/bin/env python3
"""Does Ctrl-C end a program that is in a slow call? interrupt_test.py URMA_PERF URMA_NOTIFY
URMA_FEED"""

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


main()
