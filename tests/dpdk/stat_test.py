#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does urma_stat show the statistics of a port of DPDK, by the names that DPDK gives them?
stat_test.py URMA_STAT PEER

Two processes work over vhost; the writer ends and begins again, and its peer counts on.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from running import await_line, kill, start

STAT, PEER = sys.argv[1:3]


def peer(*words):
    process = start(PEER, *words, stderr=None)
    await_line(process, "ready\n")
    return process


def counters(process):
    done = subprocess.run([STAT, "--json", str(process.pid)], stdout=subprocess.PIPE, text=True,
                          check=True)
    return json.loads(done.stdout)["devices"][0]["metrics"]


def await_more(process, name, least):
    until = time.monotonic() + 30
    while time.monotonic() < until:
        metric = counters(process)[name]
        if metric["value"] > least:
            return metric
        time.sleep(0.05)
    sys.exit(f"{name}: {counters(process)[name]}, expected more than {least}")


def run(socket):
    device = f"fault():dpdk:net_vhost0,iface={socket}?ip=10.9.0.1/24"
    server = peer(device, "serve")
    writer = None
    try:
        least = 0
        for _ in range(2):
            words = (f"dpdk:net_virtio_user0,path={socket}?ip=10.9.0.2/24", "write", "10.9.0.1")
            writer = peer(*words)
            metric = await_more(server, "dpdk_rx_good_packets", least + 1000)
            assert metric["unit"] == "packets" and metric["part"] == "port of DPDK", metric
            assert "rx_good_packets" in metric["meaning"], metric
            kill(writer)
            least = metric["value"]
        own = [one for one in counters(server) if one.startswith("dpdk_")]
        assert 8 <= len(own) <= 64, own
    finally:
        for process in (server, writer):
            if process is not None:
                kill(process)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder  # other tests publish the same names
        run(pathlib.Path(folder) / "s")


main()
