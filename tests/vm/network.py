#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two machines, whose wire loses packets, and one of which dies:
network.py PEER URMA_PERF verbs|udp"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "drivers"))
from peers import Process

PEER, PERF, DRIVER = sys.argv[1:4]
NODE = int(os.environ["BED_NODE"])
WIRE = os.environ["BED_WIRE"]
SELF, OTHER = f"10.2.0.{NODE}", "10.2.0.2"
DEVICE, SECOND_DEVICE = {"verbs": ("verbs:rxe0", "verbs:rxe0?service=4793"),
                         "udp": (f"udp:{SELF}", f"udp:{SELF}:4793")}[DRIVER]
DEATH = (OTHER, 4795)  # a connection to it kills the other machine
PATIENCE = 30  # seconds
ROWS = (("write_imm_lat", "64", "100"), ("write_bw", "64K", "20"), ("read_lat", "64", "50"),
        ("send_bw", "2K", "600"))  # so many that some are lost


def run(words):
    return subprocess.run(words.split(), check=True, stdout=subprocess.PIPE, text=True).stdout


def reach(words):
    """Runs a client of urma_perf. It gives up after 2 s without an answer of its server, which may
    be too short where packets are lost."""
    until = time.monotonic() + PATIENCE
    while True:
        done = subprocess.run(words.split(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, check=False)
        if done.returncode == 0:
            return done.stdout
        if "no process answered" not in done.stderr or time.monotonic() > until:
            sys.exit(f"{words}: {done.returncode}: {done.stderr}")
        print("the server was not found within 2 s", flush=True)


def measure(loss):
    """Returns the median of each row, after all its works completed with the right bytes."""
    medians = []
    for test, size, count in ROWS:
        done = reach(f"{PERF} {test} {OTHER} --device {DEVICE} --json --size {size} "
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
    writer = Process(PEER, DEVICE, "write", f"{OTHER}:4793")
    writer.await_line("reached")
    socket.create_connection(DEATH).close()
    # A work that does not complete ends the writer.
    time.sleep(5)
    writer.forget()
    assert writer.process.poll() is None, "the writer has ended"
    writer.kill()
    print("the other machine died, and works to it ended", flush=True)


def second():
    subprocess.Popen([PERF, "server", "--device", DEVICE])
    Process(PEER, SECOND_DEVICE, "serve").await_line("ready")
    socket.create_server(DEATH).accept()
    # The verdict, which bed.py reads, has left the machine before its reset.
    with open("/dev/console", "w", encoding="ascii") as console:
        print("BED-EXIT 0", file=console, flush=True)
        termios.tcdrain(console)
    pathlib.Path("/proc/sysrq-trigger").write_text("b", encoding="ascii")
    time.sleep(60)


first() if NODE == 1 else second()
