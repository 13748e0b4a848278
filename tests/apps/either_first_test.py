#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Either side may start first, also if both are on 127.0.0.1:
either_first_test.py PATH_TO_URMA_PERF PATH_TO_URMA_NOTIFY PATH_TO_URMA_FEED

Runs in a network namespace that has only a loopback interface, and with an empty /dev/shm."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

from running import end, finish, skip, start

PERF, NOTIFY, FEED = sys.argv[1:4]
INSIDE = "--inside"
ROUNDS = 3
ATTEMPTS = 10


def sockets():
    """Returns the number of UDP sockets in this network namespace."""
    return len(pathlib.Path("/proc/net/udp").read_text(encoding="ascii").splitlines()) - 1


def client_first(client_words, server_words):
    """Returns the exit code and the output of the client, and the output of the server."""
    for _ in range(ATTEMPTS):
        client = start(*client_words)
        while sockets() == 0 and client.poll() is None:
            time.sleep(0.001)
        server = start(*server_words)
        try:
            # The line of a server whose device is on the loopback interface.
            line = server.stdout.readline()
            while "127." not in line:
                assert line != "", finish(server)
                line = server.stdout.readline()
            late = client.poll() is not None
            code, out, err = finish(client)
        finally:
            said = end(server)
        # A client looks for its server for 2 s. On a busy machine, a server may take longer to
        # start.
        if code == 0 or not late:
            return code, out, err, line, said
    raise AssertionError("no server started within 2 s")


def main_inside(folder):
    file = folder / "file"
    file.write_bytes(os.urandom(100_000))
    taken = folder / "taken"
    taken.mkdir()
    for number in range(ROUNDS):
        for client, server in (
                ([PERF, "write_lat", "127.0.0.1", "--count", "100"], [PERF, "server"]),
                ([NOTIFY, "send", file, "127.0.0.1", "--as", f"file{number}"],
                 [NOTIFY, "serve", taken]),
                ([FEED, "produce", "127.0.0.1", "--count", "100"], [FEED, "consume"])):
            code, out, err, line, said = client_first(client, server)
            assert code == 0, (client, out, err, line, said)
            # The client must not have taken the address that it asks.
            assert " 127.0.0.1:4792" in line, (client, line)
        assert (taken / f"file{number}").read_bytes() == file.read_bytes()


def main():
    if INSIDE in sys.argv:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_RUNTIME_DIR"] = folder
            main_inside(pathlib.Path(folder))
        return
    words = ["unshare", "--mount", "--net", "sh", "-c",
             "ip link set lo up && mount -t tmpfs tmpfs /dev/shm && exec \"$@\"", "sh"]
    if subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        skip("no network and mount namespaces can be made")
    sys.exit(subprocess.run([*words, sys.executable, "-B", *sys.argv, INSIDE]).returncode)


main()
