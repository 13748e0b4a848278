#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does urma_switch forward between ports of DPDK, and between these and udp?
switch_test.py URMA_SWITCH URMA_PERF

One process serves behind a port of vhost. One behind another such port and one behind udp write to
it at the same time, through the switch: three and more pollers on few processors.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from running import await_line, end, finish, start

SWITCH, PERF = sys.argv[1:3]
HOST = f"127.3.{os.getpid() % 250}.9"


def vhost(number, folder):
    return f"dpdk:net_vhost{number},iface={folder}/{number}?ip=10.9.{number}.9/24"


def device(number, folder):
    """The device with this CNA at the other end of that port."""
    port = f"dpdk:net_virtio_user0,path={folder}/{number}?ip=10.9.{number}.1/24"
    return f"link(10.9.{number}.9,cna={number},late=5ms):{port}"


def ready(says, *words):
    """Starts a process, and waits for the line that says that it is ready."""
    process = start(*words, stderr=subprocess.STDOUT)
    await_line(process, says)
    return process


def said_by(process):
    """Ends a process. Returns what it wrote."""
    code, out, _ = end(process, timeout=30)
    assert code == 0, (process.args, code, out)
    return out


def write(at):
    return start(PERF, "write_bw", "fd55:4200::1", "--served", "--size", "16K", "--depth", "8",
                 "--seconds", "1", "--cc", "caqm_r", "--device", at, "--json")


def check_report(report):
    assert [medium["address"] for medium in report["media"]] == [
        f"{HOST}:4794", "10.9.1.9:4794", "10.9.2.9:4794"], report["media"]
    ports = {port["cna"]: port for port in report["ports"]}
    assert set(ports) == {1, 2, 3}, ports
    for cna, port in ports.items():
        lane = port["lanes"][0]
        assert port["received_packets"] > 0 and lane["packets"] > 0, port
        assert port["drops"]["spoofed_source"] == 0, port
        assert port["bits_per_second"] == (2e8 if cna == 1 else 1e8), port
    # The queue is that of the port to which both write.
    lane = ports[1]["lanes"][0]
    assert lane["most_queue_bytes"] > 0 and lane["congested"] > 0, lane
    assert lane["bytes"] <= 1.01 * 2e8 / 8 * report["seconds"], (lane, report["seconds"])


def run(folder):
    switch = ready(f"attaches by: --device 'link({HOST}:4794):udp:' or "
                   "'link(10.9.1.9:4794):dpdk:PORT' or 'link(10.9.2.9:4794):dpdk:PORT'",
                   SWITCH, HOST, "--device", vhost(1, folder), "--device", vhost(2, folder),
                   "--rate", "100Mbit", "--line", "1=200Mbit", "--rtt", "2000", "--json")
    server = ready("measure it by", PERF, "server", "--served", "--device", device(1, folder))
    udp = f"link({HOST},cna=3,late=5ms):udp:{HOST}:0"
    writers = [write(device(2, folder)), write(udp)]
    for writer in writers:
        code, out, errors = finish(writer)
        assert code == 0, (writer.args, errors)
        assert '"wrong": 0' in json.dumps(json.loads(out)), out
    said_by(server)
    check_report(json.loads(said_by(switch).splitlines()[-1]))


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder  # the names of other tests are not found
        run(pathlib.Path(folder))


main()
