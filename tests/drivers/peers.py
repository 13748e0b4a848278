# SPDX-License-Identifier: Apache-2.0
"""Processes of driver_peer, which are killed and started again."""

import atexit
import pathlib
import queue
import subprocess
import sys
import threading
import time

PATIENCE = 60


class Process:
    """A driver_peer, run by `command`."""

    def __init__(self, *command):
        # Each is in the autogroup of this test, so that they yield to each other.
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)  # otherwise it would keep the output of this test open
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.strip())
        self.lines.put("")

    def await_line(self, begin):
        """Returns the next line that begins so."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                line = self.lines.get(timeout=max(0.1, until - time.monotonic()))
            except queue.Empty:
                sys.exit(f"no \"{begin}\" within {PATIENCE} s from {self.process.args}")
            if line.startswith(begin):
                return line
            if not line or line.startswith("failed"):
                sys.exit(f"{self.process.args}: {line or 'ended'} ({self.process.poll()})")

    def forget(self):
        """Drops the lines that have come."""
        while not self.lines.empty():
            line = self.lines.get()
            if not line or line.startswith("failed"):
                sys.exit(f"{self.process.args}: {line or 'ended'} ({self.process.poll()})")

    def sleeps(self):
        """Returns how often threads of this process have gone to sleep."""
        sleeps = 0
        for status in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/status"):
            words = status.read_text().split()
            sleeps += int(words[words.index("voluntary_ctxt_switches:") + 1])
        return sleeps

    def kill(self):
        self.process.kill()
        self.process.wait()


def disturbed(start, kills, disturb=lambda: None):
    """Lets a server and a client run, which `start(end)` starts: 0 and 1. Kills each end so many
    times, and calls `disturb`: the client reaches the server after each of that."""
    ends = [start(0), start(1)]
    ends[1].await_line("reached")
    for end in (0, 1):
        for _ in range(kills[end]):
            ends[end].kill()
            ends[end] = start(end)
            if end == 0:
                time.sleep(0.05)
                ends[1].forget()
            ends[1].await_line("reached")
            if ends[1 - end].process.poll() is not None:
                sys.exit(f"the survivor has ended: {ends[1 - end].process.args}")
    disturb()
    ends[1].forget()
    ends[1].await_line("reached")
    for end in (1, 0):
        ends[end].kill()
