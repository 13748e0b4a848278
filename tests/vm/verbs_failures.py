#!/usr/bin/env python3
"""Two processes over an adapter are killed, its link goes down, and it is removed:
verbs_failures.py PEER"""

import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "drivers"))
from peers import Process, disturbed

PEER = sys.argv[1]
SERVER = "10.2.0.1"
WIRE = "eth0"


def run(words):
    subprocess.run(words.split(), check=True)


def start(end):
    words = ["verbs:rxe0", "serve"] if end == 0 else ["verbs:rxe0?service=4793", "write", SERVER]
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


timed("20 killed", lambda: disturbed(start, [10, 10]))
timed("adapter removed", remove_adapter)
timed("link down and up", lambda: disturbed(start, [0, 0], cut_link))
