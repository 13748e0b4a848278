#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does urma_perf --budget report what idle objects cost? A small run: urma_perf --budget of 20 000
Jetties and 256 peers.
usage: budget_test.py URMA_PERF"""

import subprocess
import sys

# Only figures that do not depend on the speed of the machine are checked.
HOLD = ["an idle Jetty", "a peer and its idle channel", "Jetty, idle", "peer, idle",
        "channel, idle", "packet in flight, idle", "a peer with 4 paths and its idle channel",
        "10 000 peers with 4 paths each, idle"]


def main():
    done = subprocess.run([sys.argv[1], "--budget", "--jetties", "20000"], capture_output=True,
                          text=True, timeout=100)
    if done.returncode not in (0, 3):
        sys.exit(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    missed = [line for line in done.stdout.splitlines() if line.endswith("MISSED")]
    if (done.returncode == 3) != bool(missed):
        sys.exit(f"exit code {done.returncode}, but it should be 0\n{done.stdout}")
    for what in HOLD:
        lines = [line for line in done.stdout.splitlines() if line.strip().startswith(what)]
        if len(lines) != 1 or lines[0].endswith("MISSED"):
            sys.exit(f"{what}: not held\n{done.stdout}")
    wrong = subprocess.run([sys.argv[1], "--budget", "write_lat"], capture_output=True, text=True,
                           timeout=20)
    if wrong.returncode != 2 or "Fix: " not in wrong.stderr:
        sys.exit(f"--budget write_lat: exit code {wrong.returncode}\n{wrong.stderr}")


if __name__ == "__main__":
    main()
