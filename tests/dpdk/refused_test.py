#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are devices refused, with what to do, that the machine or another process does not allow?
refused_test.py PEER

PEER is driver_peer. Each device is opened by a process of its own, because EAL starts once in each.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from ordinary_user import ordinary_user

PEER = sys.argv[1]
PATIENCE = 60


def words_of(port, options=""):
    return [PEER, f"dpdk:{port}?ip=10.9.0.1/24{options}", "serve"]


def check(why, words, *says):
    """The process must end with an error that says all this."""
    done = subprocess.run(words, timeout=PATIENCE, stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.DEVNULL, text=True)
    for text in ("failed: dpdk: ", *says):
        if done.returncode != 1 or text not in done.stdout:
            sys.exit(f"{why}: {words} returned {done.returncode}: {done.stdout}")
    print(f"{why}: refused", flush=True)


def check_permission(folder):
    user = ordinary_user(folder, PEER)
    if user is None:
        return
    before = user[1]
    closed = folder / "closed"
    closed.mkdir(mode=0o500)
    check("no permission for packets of an interface",
          [*before, *words_of("net_af_packet0,iface=lo")], "AF_PACKET", "run as root")
    check("no permission for the folder of a socket",
          [*before, *words_of(f"net_vhost0,iface={closed}/socket")], "Permission denied",
          "Fix: a socket path that this user may create")


def check_no_huge_pages():
    pools = pathlib.Path("/sys/kernel/mm/hugepages").glob("*/free_hugepages")
    if any(int(pool.read_text()) > 0 for pool in pools):
        print("skipped: no huge pages: this machine has some")
        return
    check("no huge pages", words_of("net_null0", "&eal=--in-memory"), "hugepage",
          "Fix: add eal=--no-huge")


@contextlib.contextmanager
def primary_process(folder):
    """Yields the prefix of the files of a primary process of DPDK, which holds its lock."""
    prefix = f"urma-test-{os.getpid()}"
    run = pathlib.Path("/var/run") if os.geteuid() == 0 else folder
    files = run / "dpdk" / prefix
    files.mkdir(parents=True)
    try:
        with open(files / "config", "wb+") as config:
            config.truncate(1 << 20)
            fcntl.lockf(config, fcntl.LOCK_EX)
            yield prefix
    finally:
        shutil.rmtree(files)


def check_second_primary(folder):
    with primary_process(folder) as prefix:
        check("a second primary process", words_of("net_null0", f"&eal=--file-prefix={prefix}"),
              "another primary process", "Fix: end that process, or add eal=--file-prefix=NAME")


def check_busy(folder):
    """A port that another process has. That process is reached as before."""
    for kind, argument in (("net_vhost0", "iface"), ("net_memif0,role=server", "socket")):
        port = f"{kind},{argument}={folder}/{argument}"
        with subprocess.Popen(words_of(port), stdout=subprocess.PIPE, text=True) as owner:
            try:
                assert owner.stdout.readline() == "ready\n", port
                for _ in range(2):
                    check(f"{kind} of another process", words_of(port),
                          "Fix: a socket path that this user may create and no other process uses")
                client = (f"net_virtio_user0,path={folder}/iface" if argument == "iface" else
                          f"net_memif0,role=client,socket={folder}/socket")
                words = [PEER, f"dpdk:{client}?ip=10.9.0.2/24", "write", "10.9.0.1"]
                with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as writer:
                    lines = [writer.stdout.readline() for _ in range(2)]
                    writer.kill()
                assert lines == ["ready\n", "reached 1\n"], (port, lines)
            finally:
                owner.kill()


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.chmod(folder, 0o711)
        os.environ["XDG_RUNTIME_DIR"] = name  # other tests publish the same names
        check_permission(folder)
        check_no_huge_pages()
        check_second_primary(folder)
        check_busy(folder)


main()
