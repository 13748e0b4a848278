#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does EAL start with the arguments and with the memory that it is given?
eal_start_test.py PEER arguments|huge_pages

PEER is driver_peer. EAL starts once in each process. "huge_pages" writes the kernel's number of
huge pages and restores it: it is skipped (77) without root, or if the kernel gives none.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from running import skip

PEER, WHAT = sys.argv[1:3]
POOL = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
WANTED_PAGES = 320  # 256 MiB have to be free when the second process starts


@contextlib.contextmanager
def started(port, address, *words, options=""):
    """Yields a process that has opened its device."""
    device = f"dpdk:{port}?ip={address}/24{options}"
    with subprocess.Popen([PEER, device, *words], stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            assert line == "ready\n", (device, line)
            yield process
        finally:
            process.kill()


def test_arguments(_folder):
    """The driver leaves out its own choice of processors."""
    processor = min(os.sched_getaffinity(0))
    for given in (f"-l {processor}", f"--lcores=0@{processor}", f"-c {1 << processor:x}"):
        with started("net_null0", "10.9.0.1", "rest", options=f"&eal={given}") as process:
            allowed = os.sched_getaffinity(process.pid)
            assert allowed == os.sched_getaffinity(0), (given, allowed)
        print(f"eal={given}: starts, and the process keeps its processors", flush=True)


def read_pages(name):
    return int((POOL / name).read_text())


@contextlib.contextmanager
def huge_pages():
    if os.geteuid() != 0:
        skip("huge pages: only root may reserve them")
    if not POOL.exists():
        skip("huge pages: this kernel has none of 2 MiB")
    before = read_pages("nr_hugepages")
    try:
        (POOL / "nr_hugepages").write_text(str(before + WANTED_PAGES))
    except OSError as error:
        skip(f"huge pages: nr_hugepages cannot be written: {error}")
    try:
        if read_pages("free_hugepages") < WANTED_PAGES:
            skip(f"huge pages: the kernel gives {read_pages('free_hugepages')} of {WANTED_PAGES}")
        yield
    finally:
        (POOL / "nr_hugepages").write_text(str(before))


def huge_kib(process):
    words = pathlib.Path(f"/proc/{process.pid}/status").read_text().split()
    return int(words[words.index("HugetlbPages:") + 1])


def test_huge_pages(folder):
    pairs = ((f"net_vhost0,iface={folder}/vhost", f"net_virtio_user0,path={folder}/vhost"),
             (f"net_memif0,role=server,socket={folder}/memif",
              f"net_memif0,role=client,socket={folder}/memif"))
    with huge_pages():
        for server, client in pairs:
            with started(server, "10.9.0.1", "serve") as first, \
                    started(client, "10.9.0.2", "write", "10.9.0.1") as second:
                line = second.stdout.readline()
                assert line == "reached 1\n", (client, line)
                used = [huge_kib(process) for process in (first, second)]
                assert min(used) > 0, (server, used)
                # When one end of net_memif dies, DPDK may crash the other (docs/dpdk.md).
                second.kill()
            print(f"{server}: {used[0]} and {used[1]} KiB of huge pages", flush=True)


def main():
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_RUNTIME_DIR"] = name  # other tests publish the same names
        {"arguments": test_arguments, "huge_pages": test_huge_pages}[WHAT](pathlib.Path(name))


main()
