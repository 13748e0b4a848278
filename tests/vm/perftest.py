#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two machines: do the tools of rdma-core and perftest reach the other one over the adapter?
perftest.py URMA_PERF

Prints also the times of perftest's datagrams, and of writes with immediate beside their limit: bare
datagrams of a second queue pair. All are measured in turns. If other programs use the processors,
these times and their ratios differ many times between rounds.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from running import skip

PERF = sys.argv[1]
NODE = int(os.environ["BED_NODE"])
OTHER = "10.2.0.2"
END = (OTHER, 4795)  # a connection to it ends the other machine
PACKAGES = {"ib_send_lat": "perftest", "rping": "rdmacm-utils"}
ROUNDS = 3
SIZE, COUNT = "64", "200"
PATIENCE = 30  # seconds, until a server listens
DATAGRAMS = ["ib_send_lat", "-d", "rxe0", "-c", "UD", "-F", "-s", SIZE, "-n", COUNT]


def gid_index():
    """Returns the number of the adapter's IPv4 address, which appears soon after it."""
    while True:
        for gid in pathlib.Path("/sys/class/infiniband/rxe0/ports/1/gids").iterdir():
            if gid.read_text().startswith("0000:0000:0000:0000:0000:ffff:"):
                return gid.name
        time.sleep(0.05)


def reach(words):
    """Runs a client until its server listens. Returns what it wrote."""
    until = time.monotonic() + PATIENCE
    while True:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=PATIENCE, check=False)
        if done.returncode == 0:
            return done.stdout
        if time.monotonic() > until:
            sys.exit(f"{words}: {done.stdout}")
        time.sleep(0.2)


def datagram_us():
    said = reach([*DATAGRAMS, "-x", gid_index(), OTHER])
    (row,) = [line.split() for line in said.splitlines() if line.split()[:2] == [SIZE, COUNT]]
    return float(row[4])  # t_typical


def write_beside_limit():
    said = reach([PERF, "write_imm_lat", OTHER, "--device", "verbs:rxe0", "--json", "--size", SIZE,
                  "--seconds", "3", "--limit"])
    (result,) = json.loads(said)["results"]
    assert result["limit_pattern"] == "verbs ping-pong" and result["limit"] > 0, result
    return result


def first():
    assert "ping data" in reach(["rping", "-c", "-v", "-a", OTHER, "-C", "20"])
    print("rping: 20 round trips", flush=True)
    rounds = [(datagram_us(), write_beside_limit()) for _ in range(ROUNDS)]
    for theirs, ours in rounds:
        print(f"one way, {SIZE} B: ib_send_lat -c UD {theirs:.0f} us, "
              f"write_imm_lat {ours['p50_us']:.0f} us, "
              f"{ours['times_limit']:.2f} times bare datagrams", flush=True)
    socket.create_connection(END).close()


def serve(words):
    """Each of these servers ends with its client."""
    while True:
        subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def second():
    subprocess.Popen([PERF, "server", "--device", "verbs:rxe0"])
    for words in ([*DATAGRAMS, "-x", gid_index()], ["rping", "-s", "-a", OTHER]):
        threading.Thread(target=serve, args=(words,), daemon=True).start()
    socket.create_server(END).accept()


for program, package in PACKAGES.items():
    if not shutil.which(program):
        skip(f"{program} is not installed (apt-get install {package})")
first() if NODE == 1 else second()
