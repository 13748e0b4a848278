#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two processes reach each other over the adapter of one machine, and survive what happens to them:
verbs_failures.py PEER RC KILLS [removal] [link]

Each of them is killed KILLS times; the adapter is removed; its link goes down and up. RC: whether
adapters move data by themselves (never, auto, always).
"""

import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "drivers"))
from peers import Process, disturbed

PEER, RC, KILLS, OTHERS = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
SERVER = "10.2.0.1"
WIRE = os.environ["BED_WIRE"]


def run(words):
    subprocess.run(words.split(), check=True)


def start(end):
    own = f"verbs:rxe0?rc={RC}"
    words = [own, "serve"] if end == 0 else [own + "&service=4793", "write", SERVER]
    process = Process(PEER, *words)
    process.await_line("ready")
    return process


def timed(name, test):
    begun = time.monotonic()
    test()
    print(f"{name}: {time.monotonic() - begun:.1f} s", flush=True)


def cut_link():
    for _ in range(3):
        run(f"ip link set {WIRE} down")
        time.sleep(0.7)
        run(f"ip link set {WIRE} up")
        time.sleep(0.7)


def remove_adapter():
    """Works end, or the writer would. The command waits until no process uses the adapter."""
    ends = [start(0), start(1)]
    ends[1].await_line("reached")
    with subprocess.Popen("rdma link delete rxe0".split()) as removal:
        time.sleep(4)
        alive = [end.process.poll() is None for end in ends]
        for end in ends:
            end.kill()
        assert removal.wait(10) == 0
    assert all(alive), "a process has ended"
    run(f"rdma link add rxe0 type rxe netdev {WIRE}")
    disturbed(start, [1, 1])


timed(f"{2 * KILLS} killed", lambda: disturbed(start, [KILLS, KILLS]))
if "removal" in OTHERS:
    timed("adapter removed", remove_adapter)
if "link" in OTHERS:
    timed("link down and up", lambda: disturbed(start, [0, 0], cut_link))
