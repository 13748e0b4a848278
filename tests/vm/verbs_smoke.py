#!/usr/bin/env python3
"""Two processes of an emulated machine reach each other over its adapter, and survive each other's
death: verbs_smoke.py PEER KILLS"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "drivers"))
from peers import Process, disturbed

PEER, KILLS = sys.argv[1], int(sys.argv[2])
SERVER = "10.2.0.1"


def start(end):
    words = ["verbs:rxe0", "serve"] if end == 0 else ["verbs:rxe0?service=4793", "write", SERVER]
    process = Process(PEER, *words)
    process.await_line("ready")
    return process


begun = time.monotonic()
disturbed(start, [KILLS, KILLS])
print(f"{2 * KILLS} killed, {time.monotonic() - begun:.1f} s")
