#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does urma_perf --limit measure bare frames over a second pair of ports?
limit_test.py URMA_PERF
"""

import json
import pathlib
import subprocess
import sys
import tempfile

PERF = sys.argv[1]
SERVER = "10.9.0.1"


def check(name, ends):
    server, client = (f"dpdk:{port}?ip=10.9.0.{i}/24" for i, port in enumerate(ends, 1))
    process = subprocess.Popen([PERF, "server", "--device", server], stdout=subprocess.PIPE,
                               text=True)
    try:
        if not process.stdout.readline():
            sys.exit(f"{name}: the server has ended")
        for test, size, pattern in (("write_imm_lat", "64", "dpdk ping-pong"),
                                    ("write_lat", "20000", "dpdk ping-pong"),
                                    ("write_bw", "64K", "dpdk bursts, CRC"),
                                    ("read_bw", "64", "dpdk bursts, CRC")):
            done = subprocess.run(
                [PERF, test, SERVER, "--device", client, "--limit", "--json", "--size", size,
                 "--seconds", "0.2", "--rounds", "2"], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, timeout=60, check=False)
            if done.returncode != 0:
                sys.exit(f"{name}: {test}: {done.returncode}: {done.stderr}")
            result = json.loads(done.stdout)["results"][0]
            # A ping-pong takes from 0.1 us to 10 s, because the ends may wait for a processor. A
            # rate is that of at least one burst.
            least, most = (0.1, 1e7) if result["limit_unit"] == "us" else (1e-6, 1e12)
            if result["limit_pattern"] != pattern or not least <= result["limit"] <= most:
                sys.exit(f"{name}: {test}: {result['limit']} {result['limit_unit']} by "
                         f"{result['limit_pattern']}")
            print(f"{name}: {test}: {result['limit']:.4g} {result['limit_unit']}", flush=True)
    finally:
        process.terminate()
        process.wait()


def main():
    with tempfile.TemporaryDirectory() as folder:
        socket = pathlib.Path(folder) / "s"
        memif = [f"net_memif0,role={role},socket={socket}" for role in ("server", "client")]
        check("memif", memif)
        check("vhost", [f"net_vhost0,iface={socket}2", f"net_virtio_user0,path={socket}2"])


main()
