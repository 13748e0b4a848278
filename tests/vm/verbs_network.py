#!/usr/bin/env python3
"""Two machines, whose wire loses packets, and one of which dies:
verbs_network.py PEER URMA_PERF"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "drivers"))
from peers import Process

PEER, PERF = sys.argv[1:3]
NODE = int(os.environ["BED_NODE"])
WIRE = os.environ["BED_WIRE"]
OTHER = "10.2.0.2"
DEATH = (OTHER, 4795)  # a connection to it kills the other machine
ROWS = (("write_imm_lat", "64", "100"), ("write_bw", "64K", "20"), ("read_lat", "64", "50"),
        ("send_bw", "2K", "200"))


def run(words):
    return subprocess.run(words.split(), check=True, stdout=subprocess.PIPE, text=True).stdout


def measure(loss):
    """Returns the median of each row, after all its works completed with the right bytes."""
    medians = []
    for test, size, count in ROWS:
        done = run(f"{PERF} {test} {OTHER} --device verbs:rxe0 --json --size {size} "
                   f"--count {count}")
        (row,) = json.loads(done)["results"]
        assert row["wrong"] == 0, row
        medians.append(f"{test} {size} {row['p50_us']:.0f} us")
        if loss:
            assert row["counters"]["retransmitted"] > 0 or test.endswith("_lat"), row
    return ", ".join(medians)


def first():
    time.sleep(1)  # the other one is not faster
    for loss in (0, 2, 10):
        if loss:
            run(f"tc qdisc replace dev {WIRE} root netem loss {loss}%")
        print(f"loss {loss} %: {measure(loss)}", flush=True)
    run(f"tc qdisc del dev {WIRE} root")
    writer = Process(PEER, "verbs:rxe0", "write", f"{OTHER}:4793")
    writer.await_line("reached")
    socket.create_connection(DEATH).close()
    # A work that does not complete ends the writer.
    time.sleep(5)
    writer.forget()
    assert writer.process.poll() is None, "the writer has ended"
    writer.kill()
    print("the other machine died, and works to it ended", flush=True)


def second():
    subprocess.Popen([PERF, "server", "--device", "verbs:rxe0"])
    Process(PEER, "verbs:rxe0?service=4793", "serve").await_line("ready")
    socket.create_server(DEATH).accept()
    # The verdict, which bed.py reads, and a reset without a word to anybody.
    pathlib.Path("/dev/console").write_text("BED-EXIT 0\n", encoding="ascii")
    pathlib.Path("/proc/sysrq-trigger").write_text("b", encoding="ascii")
    time.sleep(60)


first() if NODE == 1 else second()
