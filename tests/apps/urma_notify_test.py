#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests urma_notify as people use it: urma_notify_test.py PATH_TO_URMA_NOTIFY PATH_TO_RUDE"""

import hashlib
import json
import os
import pathlib
import pty
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib

from running import (await_line, check_help, check_idle, cpu_seconds, end, finish, kill, run_tests,
                     shown_on, start, start_without_window)

PROGRAM, RUDE = sys.argv[1:3]
WINDOW = f"/dev/shm/urma-notify-test-{os.getpid()}"
SHARED = f"cxl:{WINDOW}?size=16M"
NETWORK = f"udp:127.1.{os.getpid() % 250}.7"
ADDRESS = NETWORK.removeprefix("udp:")
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="urma-notify-"))
RANDOM = random.Random(7)
BLOCK = 256 * 1024
WAYS = ((("localhost", "--device", SHARED)), ((ADDRESS, "--device", "fault(loss=1%,seed=3):udp:")))


def make_file(name, size):
    path = FOLDER / name
    path.write_bytes(RANDOM.randbytes(size))
    return path


class Server:
    """Starts a receiver in the window and on the network, with its own folder."""

    def __init__(self, folder=None, limit=None, preload=None):
        self.folder = folder or pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
        self.limit = limit
        self.more = {"LD_PRELOAD": str(preload)} if preload else {}
        self.start()

    def start(self):
        def less():
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.limit, self.limit))

        self.process = start(
            PROGRAM, "serve", self.folder, "--device", SHARED, "--device", NETWORK, stderr=None,
            preexec_fn=less if self.limit else None, env={**os.environ, **self.more})
        for _ in range(2):
            await_line(self.process, "urma_notify send FILE")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(timeout=20) == 0

    def seen(self):
        """Returns the names of the files, and checks that none is partial."""
        return sorted(name for name in os.listdir(self.folder) if not name.startswith("."))

    def part(self, name):
        return self.folder / f".{name}.urma-part"


def sender_of(*arguments):
    return start(PROGRAM, "send", *arguments)


def send(*arguments):
    return finish(sender_of(*arguments))


def until(condition, limit=30):
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.02)


def size_of(path):
    return path.stat().st_size if path.exists() else 0


def test_several_senders():
    files = [make_file(f"file {i}", 20_000_123 + i * 77_777) for i in range(3)]
    for way in WAYS:
        with Server() as server:
            senders = [sender_of(file, *way) for file in files]
            for sender in senders:
                code, out, err = finish(sender)
                assert code == 0 and "sent and verified" in out, (out, err)
            assert server.seen() == sorted(file.name for file in files)
            for file in files:
                assert (server.folder / file.name).read_bytes() == file.read_bytes(), way
            assert len(os.listdir(server.folder)) == len(files)
            code, out, _ = send(files[0], *way)
            assert code == 0 and "is the same" in out, out


def test_sizes():
    with Server() as server:
        for size in (0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 8 * BLOCK, 9 * BLOCK + 5):
            file = make_file(f"of {size}", size)
            for i, way in enumerate(WAYS):
                assert send(file, *way, "--as", f"{i} {size}")[0] == 0
                assert (server.folder / f"{i} {size}").read_bytes() == file.read_bytes()


def test_a_rude_sender_is_refused_and_others_are_served():
    """`rude` sends texts that are not messages, wrong numbers, and questions whose answers it does
    not take."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
    server = start(PROGRAM, "serve", folder, "--device", NETWORK)
    await_line(server, "urma_notify send FILE")
    rude = start(RUDE, ADDRESS)
    file = make_file("polite", 3 * BLOCK + 1)
    code, out, err = send(file, ADDRESS, "--device", "udp:")
    assert code == 0, (out, err)
    code, out, err = finish(rude)
    assert code == 0, (code, out, err)
    # The server has answered those invalid offers that name a Jetty for answers.
    assert '"bytes\\" is not a whole number from 0 to 18446744073709551615' in out, out
    assert '"name\\" is missing' in out and '"replace\\" is not true or false' in out, out
    out = ""
    while not all(f"\n{name}: " in "\n" + out for name in ("flooded", "failed", "complete")):
        out += server.stdout.readline()
    server.send_signal(signal.SIGINT)
    out += server.stdout.read()
    err = server.stderr.read()
    assert server.wait(timeout=20) == 0, (server.returncode, out, err)
    # Each transfer ends with one line, also if its sender does not take the last message.
    last = {name: [line for line in out.splitlines() if line.startswith(f"{name}: ")]
            for name in ("flooded", "failed", "complete")}
    assert all(len(lines) == 1 for lines in last.values()), out
    assert "given up: 64 messages wait for this peer, which does not" in last["flooded"][0], out
    assert "given up: a message is not understood: it is not JSON" in last["failed"][0], out
    assert "complete: 0 bytes, 0 of them before" in last["complete"][0], out
    assert "9 messages were not understood and dropped; the last one from peer" in err, err
    assert "1 message could not be answered; the last one from peer" in err, err
    assert "json.exception" not in err + out, (err, out)


def test_killed_senders_resume():
    file = make_file("resumed", 12_345_678)
    for way in WAYS:
        with Server() as server:
            resumed = 0
            for _ in range(3):
                before = size_of(server.part(file.name))
                sender = sender_of(file, *way, "--rate", "8M")
                until(lambda: size_of(server.part(file.name)) >= before + BLOCK)
                time.sleep(RANDOM.random() * 0.2)
                sender.kill()
                _, out, _ = finish(sender)
                resumed += "resumes at" in out
                assert server.seen() == []
            code, out, err = send(file, *way)
            assert code == 0, (out, err)
            assert "resumes at" in out, out
            assert (server.folder / file.name).read_bytes() == file.read_bytes()
            assert len(os.listdir(server.folder)) == 1


def test_killed_receivers_resume():
    file = make_file("goes on", 12_345_678)
    for way in WAYS:
        server = Server()
        sender = sender_of(file, *way, "--rate", "8M", "--patience", "30")
        for part in (2_000_000, 5_000_000):
            until(lambda: size_of(server.part(file.name)) >= part)
            kill(server.process)
            server.start()
        with server:
            code, out, err = finish(sender)
            assert code == 0, (out, err)
            assert "resumes at" in out and "trying again" in err, (out, err)
            assert (server.folder / file.name).read_bytes() == file.read_bytes()


def test_what_was_received_is_verified():
    file = make_file("verified", 6_000_000)
    with Server() as server:
        # A part of another file, a part that is too long, and a part with a wrong byte do not
        # count.
        right = file.read_bytes()
        wrong = bytearray(right[:5 * BLOCK])
        wrong[3 * BLOCK + 17] ^= 1
        for part in (RANDOM.randbytes(1_000_000), right + b"more", bytes(wrong)):
            server.part("verified").write_bytes(part)
            code, out, err = send(file, *WAYS[0], "--replace")
            assert code == 0, (out, err)
            assert (server.folder / "verified").read_bytes() == right
        assert "resumes at 786 kB" in out, out


def test_files_that_change():
    for way in WAYS:
        with Server() as server:
            for change in ("shorter", "longer", "otherwise"):
                file = make_file(change, 6_000_000)
                sender = sender_of(file, *way, "--rate", "8M")
                until(lambda: size_of(server.part(change)) >= BLOCK)
                with open(file, "r+b") as open_file:
                    if change == "shorter":
                        open_file.truncate(3_000_000)
                    open_file.seek(0, os.SEEK_END if change == "longer" else os.SEEK_SET)
                    open_file.write(b"other")
                code, out, err = finish(sender)
                assert code == 1 and "while it was sent" in err and "Fix: " in err, (out, err)
                assert server.seen() == []


def test_no_room():
    file = make_file("large", 6_000_000)
    with Server(limit=2_000_000) as server:
        for way in WAYS:
            code, out, err = send(file, *way)
            assert code == 1 and "File too large" in err and "Fix: make room" in err, (out, err)
            assert server.seen() == []
    with Server(folder=server.folder) as server:
        code, out, err = send(file, *WAYS[0])
        assert code == 0 and "resumes at" in out, (out, err)
        assert (server.folder / file.name).read_bytes() == file.read_bytes()
    folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        print("(skipped: no small disk can be mounted)")
        return
    try:
        with Server(folder=folder) as server:
            code, out, err = send(file, *WAYS[0])
            assert code == 1 and "the disk has room for" in err, (out, err)
            # Room that disappears while the file is being received.
            small = make_file("small", 3_000_000)
            sender = sender_of(small, *WAYS[0], "--rate", "2M")
            until(lambda: size_of(server.part("small")) >= BLOCK)
            (folder / "other").write_bytes(bytes(3_000_000))
            code, out, err = finish(sender)
            assert code == 1 and "No space left" in err, (out, err)
            assert server.seen() == ["other"]
            (folder / "other").unlink()
            code, out, err = send(small, *WAYS[0])
            assert code == 0 and "resumes at" in out, (out, err)
            # Holes need no room.
            os.truncate(small, 100_000_000)
            code, out, err = send(small, *WAYS[0], "--replace", "--as", "sparse")
            assert code == 1 and "3000000 bytes are still to come" not in err, (out, err)
            (folder / "small").unlink()
            code, out, err = send(small, *WAYS[0], "--as", "sparse")
            assert code == 0, (out, err)
    finally:
        subprocess.run(["umount", folder], check=True)


def test_holes_stay_holes():
    """Also behind the last data, and in a resumed transfer."""
    file = FOLDER / "sparse"
    with open(file, "wb") as sparse:
        for at in (0, 100 * BLOCK - 7, 200 * BLOCK):
            sparse.seek(at)
            sparse.write(RANDOM.randbytes(BLOCK))
        sparse.truncate(300 * BLOCK + 5)
    stored = file.stat().st_blocks * 512
    if stored > 10 * BLOCK:
        print("(skipped: this file system stores holes)")
        return
    (FOLDER / "all-hole").write_bytes(b"")
    os.truncate(FOLDER / "all-hole", 3 * BLOCK + 1)
    with Server() as server:
        for way in WAYS:
            code, out, err = send(file, "--replace", *way)
            assert code == 0, (out, err)
            code, out, err = send(FOLDER / "all-hole", "--replace", *way)
            assert code == 0, (out, err)
            for name, most in (("sparse", stored + 2 * BLOCK), ("all-hole", 0)):
                assert (server.folder / name).read_bytes() == (FOLDER / name).read_bytes()
                assert (server.folder / name).stat().st_blocks * 512 <= most, name
        server.part("sparse").write_bytes(file.read_bytes()[:150 * BLOCK])
        code, out, err = send(file, "--replace", *WAYS[0])
        assert code == 0 and "resumes at 39.3 MB" in out, (out, err)
        assert (server.folder / "sparse").read_bytes() == file.read_bytes()


def test_names():
    file = make_file("plain", 1000)
    with Server() as server:
        for name in ("../out", "/etc/out", "a//b", "a/../b", "a/", ".hidden", "..", ".",
                     "a/.b.urma-part", "x" * 201, "new\nline",
                     "\x1b[2J", "\x7f", "c1 \u009b31m", "gpj.\u202eexe", "\u2066x\u2069",
                     "\u2713" * 100):
            code, _, err = send(file, *WAYS[0], "--as", name)
            assert code == 2 and "is not accepted as the name of a file" in err, (name, err)
            assert not set("\x1b\x7f\u009b\u202e\u2066") & set(err), err
        code, _, err = send(file, *WAYS[0], "--as", "\udcff\udcfe")
        assert code == 2 and "UTF-8" in err, err
        code, _, err = send(file, *WAYS[0], "--as", "gr\u00fcn \u2713")
        assert code == 0, err
        os.symlink("/dev/null", server.folder / "link")
        os.symlink("/tmp/elsewhere", server.part("next"))
        for name in ("link", "next"):
            code, _, err = send(file, *WAYS[0], "--as", name)
            assert code == 1 and "Fix: remove the symbolic link" in err, err
        os.mkdir(server.folder / "folder")
        code, _, err = send(file, *WAYS[0], "--as", "folder")
        assert code == 1 and "Fix: " in err, err
    assert not (FOLDER / "out").exists()


def test_one_name_for_two():
    one, two = make_file("one", 4_000_000), make_file("two", 4_000_000)
    with Server() as server:
        first = sender_of(one, *WAYS[0], "--as", "both", "--rate", "1M")
        until(server.part("both").exists)
        code, _, err = send(two, *WAYS[1], "--as", "both", "--patience", "1")
        assert code == 1 and "another sender" in err, err
        first.kill()
        first.wait()
        # A sender that has died blocks others only for a short time.
        code, out, err = send(two, *WAYS[1], "--as", "both")
        assert code == 0, (out, err)
        code, _, err = send(one, *WAYS[0], "--as", "both")
        assert code == 1 and "--replace" in err, err
        assert (server.folder / "both").read_bytes() == two.read_bytes()
        longer = make_file("longer still", 4_000_001)
        code, _, err = send(longer, *WAYS[0], "--as", "both")
        assert code == 1 and "--replace" in err, err
        assert send(longer, *WAYS[0], "--as", "both", "--replace")[0] == 0
        assert (server.folder / "both").read_bytes() == longer.read_bytes()
        assert os.listdir(server.folder) == ["both"]


def make_tree(name):
    """A folder with files, an empty folder, hidden names, modes and times of its own."""
    tree = FOLDER / name
    (tree / ".git" / "hooks").mkdir(parents=True)
    (tree / "deep" / "er").mkdir(parents=True)
    (tree / "empty").mkdir()
    (tree / ".git" / "config").write_bytes(b"hidden")
    (tree / "deep" / "er" / "big").write_bytes(RANDOM.randbytes(3 * BLOCK + 5))
    (tree / "gr\u00fcn \u2713").write_bytes(b"")
    os.chmod(tree / "deep" / "er" / "big", 0o640)
    os.chmod(tree / "deep", 0o710)
    for number, path in enumerate(sorted(tree.rglob("*"), reverse=True)):
        os.utime(path, ns=(10**18 + number, 10**18 + 7 * number))
    os.utime(tree, ns=(10**18, 10**18 + 999))
    return tree


def all_about(tree):
    """Returns each path with its mode, its time and its bytes."""
    return {str(path.relative_to(tree)):
            (path.stat().st_mode, path.stat().st_mtime_ns, path.is_file() and path.read_bytes())
            for path in [tree, *tree.rglob("*")]}


def test_folders_keep_everything():
    tree, more = make_tree("tree"), make_file("more", 1000)
    os.utime(more, ns=(0, 5_000_000_001))
    with Server() as server:
        for way in WAYS:
            for same in (0, 3):
                device = way[1:]
                code, out, err = send(tree, f"{tree}/.", more, "--to", way[0], *device)
                assert code == 0 and "complete; 7 files have the same SHA-256" in out, (out, err)
                assert f"({same + (4 if same else 3)} were there before)" in out, out
            assert all_about(server.folder / "tree") == all_about(tree)
            assert (server.folder / "more").stat().st_mtime_ns == 5_000_000_001
            shutil.rmtree(server.folder / "tree")
            (server.folder / "more").unlink()
        code, out, err = send(tree, "--as", "other", *WAYS[0])
        assert code == 0 and all_about(server.folder / "other") == all_about(tree), (out, err)


def test_what_is_not_sent_is_said():
    """Each failure is printed and counted, the others are sent, and the exit code is not 0."""
    tree = make_tree("mixed")
    (tree / "link").symlink_to("/etc/passwd")
    os.mkfifo(tree / "pipe")
    os.symlink("loop", tree / "loop")
    (tree / "a.txt").write_bytes(b"ours")
    (tree / ".x.urma-part").write_bytes(b"not sent")
    with Server() as server:
        (server.folder / "mixed").mkdir()
        (server.folder / "mixed" / "a.txt").write_bytes(b"theirs")
        (server.folder / "mixed" / "empty").symlink_to("/tmp")
        code, out, err = send(tree, *WAYS[0])
        assert code != 0 and "NOT COMPLETE, 6 of " in out, (out, err)
        assert err.count("Fix: ") == 6, err
        for what in ("link: a symbolic link", "pipe: a pipe", "loop: a symbolic link",
                     "another file has its name", "partial files have such names",
                     "remove the symbolic link"):
            assert what in err, (what, err)
        assert (server.folder / "mixed" / "a.txt").read_bytes() == b"theirs"
        assert (server.folder / "mixed" / "deep/er/big").exists()
        code, out, err = send(tree, *WAYS[0], "--replace")
        assert code != 0 and "NOT COMPLETE, 5 of " in out, (out, err)
        assert (server.folder / "mixed" / "a.txt").read_bytes() == b"ours"


def test_a_folder_without_some_of_its_entries_is_incomplete():
    tree = make_tree("part")
    (tree / "deep" / "link").symlink_to("/etc/passwd")
    (tree / "neighbour").mkdir()
    with Server() as server:
        code, out, _ = send(tree, *WAYS[0])
        assert code == 1 and "NOT COMPLETE, 1 of " in out and "folders is not there" in out, out
        os.mkfifo(tree / "pipe")
        code, out, _ = send(tree, *WAYS[0])
        assert "part/: incomplete, 2 entries were not sent" in out, out
        assert "part/: complete" not in out and "part/neighbour/: complete" in out, out
        for line in ("part/deep/: incomplete, 1 entry was not sent",
                     "part/: incomplete, 2 entries were not sent"):
            assert any(line in told for told in server.process.stdout), line
        code, out, _ = send(tree, *WAYS[0], "--json")
        (verdict,) = json.loads(out)["receivers"]
        told = {one["name"]: (one["result"], one.get("not_sent")) for one in verdict["sent"]}
        assert told["part"] == ("incomplete", 2) and told["part/deep"] == ("incomplete", 1), told
        assert told["part/neighbour"] == ("sent", None), told


def test_several_receivers():
    tree = make_tree("to all")
    end_of_address = os.getpid() % 250
    servers = []
    try:
        for number in range(3):
            folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
            address = f"127.{20 + number}.{end_of_address}.3"
            servers.append((start(PROGRAM, "serve", folder, "--device", f"udp:{address}"), folder,
                            address))
            await_line(servers[-1][0], "urma_notify send FILE")
        (servers[1][1] / "to all").write_bytes(b"a file instead")
        hosts = [word for _, _, address in servers for word in ("--to", address)]
        code, out, err = send(tree, *hosts, "--to", "127.77.77.77", "--json")
        told = json.loads(out)
        assert code == told["exit"] == 1 and told["schema"] == 1, (out, err)
        verdicts = {one["host"]: one for one in told["receivers"]}
        assert [one["exit"] for one in told["receivers"]] == [0, 1, 0, 5], out
        assert "Fix: start it there" in verdicts["127.77.77.77"]["error"]
        for number, (_, folder, address) in enumerate(servers):
            verdict = verdicts[address]
            files = {one["name"]: one for one in verdict["sent"]}
            assert len(files) == verdict["items"]
            if number == 1:
                assert verdict["failures"] == verdict["items"], verdict
                assert all("Fix: " in one["error"] for one in verdict["sent"])
                continue
            big = tree / "deep" / "er" / "big"
            assert files["to all/deep/er/big"] == {
                "name": "to all/deep/er/big", "kind": "file", "result": "sent",
                "bytes": big.stat().st_size, "resumed_bytes": 0,
                "sha256": hashlib.sha256(big.read_bytes()).hexdigest()}
            assert all_about(folder / "to all") == all_about(tree)
        code, out, err = send(tree, *hosts)
        assert code == 1 and out.count(": complete; ") == 2 and "NOT COMPLETE, 9 of 9" in out, out
    finally:
        for process, _, _ in servers:
            end(process)


def test_standard_input():
    data = RANDOM.randbytes(2_000_003)
    with Server() as server:
        for text in (data, b""):
            done = subprocess.run([PROGRAM, "send", "-", *WAYS[0], "--as", "piped", "--replace"],
                                  input=text, capture_output=True, timeout=60)
            assert done.returncode == 0, done
            assert (server.folder / "piped").read_bytes() == text
        for folder, why in (("/nowhere", "No such file"), ("/proc", "")):
            done = subprocess.run([PROGRAM, "send", "-", *WAYS[0], "--as", "kept"], input=data,
                                  env={**os.environ, "TMPDIR": folder}, capture_output=True,
                                  timeout=60)
            assert done.returncode == 1 and b"Fix: name a folder with more room" in done.stderr
            assert why.encode() in done.stderr, done
        waiting = start(PROGRAM, "send", "-", *WAYS[0], "--as", "never", stdin=subprocess.PIPE)
        time.sleep(0.3)
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(timeout=20) == 130 and "nothing was sent" in waiting.stderr.read()
        waiting.stdin.close()
        assert server.seen() == ["piped"]


def test_a_digest_that_differs_discards_what_was_received():
    """A partial file whose blocks have the right CRC-32 and the wrong bytes would be resumed again
    and again. Bytes that keep the CRC-32 are found here: it is linear."""
    file = make_file("collides", 2 * BLOCK)
    right = bytearray(file.read_bytes())
    polynomial = (0x1 << 32 | 0x04C11DB7)
    for bit in range(33):  # adding the polynomial itself keeps the remainder
        if polynomial >> (32 - bit) & 1:
            right[1000 + bit // 8] ^= 1 << bit % 8
    wrong = bytes(right[:BLOCK])
    assert zlib.crc32(wrong) == zlib.crc32(file.read_bytes()[:BLOCK])
    with Server() as server:
        server.part("collides").write_bytes(wrong)
        code, out, err = send(file, *WAYS[0])
        assert code == 4 and "the bytes on the disk are not those that were sent" in err, (out, err)
        assert os.listdir(server.folder) == []
        assert send(file, *WAYS[0])[0] == 0
        assert (server.folder / "collides").read_bytes() == file.read_bytes()


def test_full_outputs():
    file = make_file("json", 1000)
    with Server() as server:
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PROGRAM, "send", file, *WAYS[0], "--json"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 1 and "--json: writing to stdout" in done.stderr, done
        assert server.seen() == ["json"]


def test_demo():
    """The lines without a terminal are those of a recording: each work is posted, and then
    its immediate arrives and it completes."""
    before = set(os.listdir("/tmp"))
    done = subprocess.run([PROGRAM, "--demo"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "" and "\x1b" not in done.stdout, done
    lines = done.stdout.splitlines()
    times = [float(line.split(" us ")[0]) for line in lines[1:-1]]
    assert times == sorted(times) and len(times) > 40, done.stdout
    for work in range(1, 9):
        order = [next(i for i, line in enumerate(lines) if text in line) for text in (
            f"posts write {work} with",
            f"polls immediate {work}; its memory has \"text {work} of 8",
            f"polls the completion of write {work};")]
        # The receiver's device answers before its application polls, so either may come first.
        assert order[0] < min(order[1:]), done.stdout
    assert "Write_imm, PSN" in done.stdout and "TAACK, PSN" in done.stdout, done.stdout
    assert "8 writes, 8 immediates, 8 completions" in lines[-1], lines[-1]
    assert max(map(len, lines)) < 80, max(lines, key=len)  # a longer one is cut on a terminal
    held = [int(line.rsplit(" ", 1)[1]) for line in lines if "berths held" in line]
    assert min(held) == 0 and max(held) == 3, held
    ours, theirs = pty.openpty()
    shown = b""
    process = subprocess.Popen([PROGRAM, "--demo", "--speed", "100"], stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        while some := os.read(ours, 65536):
            shown += some
    except OSError:  # the program has ended
        pass
    os.close(ours)
    assert process.wait(timeout=60) == 0
    begin, end_ = shown.index(b"\x1b[?1049h"), shown.index(b"\x1b[?1049l")
    assert begin == 0 and b"\x1b[?25h" in shown[end_ - 10:end_], shown
    screens = shown[:end_].decode().split("\x1b[H")[1:]
    for screen in screens:
        rows = re.sub(r"\x1b\[[KJ]", "", screen).split("\r\n")
        assert len(rows) <= 24 and max(map(len, rows)) <= 80, screen
    assert any("[1]" in one for one in screens) and any("-( " in one for one in screens)
    # Ctrl-C restores the terminal.
    ours, theirs = pty.openpty()
    process = subprocess.Popen([PROGRAM, "--demo"], stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.read(ours, 10)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    assert b"\x1b[?1049l" in shown_on(ours)
    assert not [one for one in set(os.listdir("/tmp")) - before if one.startswith("urma_notify-")]


def test_file_systems_that_cannot_rename_to_vacant_names():
    """Some file systems return EINVAL for such a rename, after all data was sent. The test is
    skipped with a sanitizer that must be loaded first."""
    compiler = shutil.which("cc")
    if compiler is None or any(
            one in pathlib.Path(PROGRAM).read_bytes() for one in (b"libasan", b"libtsan")):
        print("(skipped: no compiler, or a sanitizer)")
        return
    source, library = FOLDER / "einval.c", FOLDER / "einval.so"
    source.write_text("#include <errno.h>\n"
                      "int renameat2(int a, const char *b, int c, const char *d, unsigned e) {\n"
                      "  (void)a, (void)b, (void)c, (void)d, (void)e;\n"
                      "  errno = EINVAL;\n"
                      "  return -1;\n"
                      "}\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    file = make_file("linked", 2_000_000)
    with Server(preload=library) as server:
        code, out, err = send(file, *WAYS[0])
        assert code == 0, (out, err)
        assert os.listdir(server.folder) == ["linked"]
        assert (server.folder / "linked").read_bytes() == file.read_bytes()
        # The file of the transfer that came first is not replaced.
        sender = sender_of(file, *WAYS[0], "--as", "late", "--rate", "1M")
        until(lambda: size_of(server.part("late")) >= BLOCK)
        (server.folder / "late").write_bytes(b"first")
        code, out, err = finish(sender)
        assert code == 1 and "File exists" in err, (out, err)
        assert (server.folder / "late").read_bytes() == b"first"
        assert send(file, *WAYS[0], "--as", "late", "--replace")[0] == 0
        assert (server.folder / "late").read_bytes() == file.read_bytes()


def test_receiver_sleeps():
    file = make_file("slow", 2_000_000)
    for way in WAYS:
        with Server() as server:
            check_idle(server.process)
            before, began = cpu_seconds(server.process), time.monotonic()
            assert send(file, *way, "--rate", "1M")[0] == 0
            used, took = cpu_seconds(server.process) - before, time.monotonic() - began
            # Waiting for a processor uses no processor time, so a busy machine makes the share
            # smaller. A process that polls would have used all of the time.
            assert used < 0.4 * took, (used, took)


def test_bar_on_a_terminal():
    file = make_file("shown", 3_000_000)
    with Server():
        ours, theirs = pty.openpty()
        sender = subprocess.Popen([PROGRAM, "send", file, *WAYS[0], "--rate", "2M"],
                                  stdout=subprocess.PIPE, stderr=theirs, text=True)
        out, _ = sender.communicate(timeout=60)
        os.close(theirs)
        shown = shown_on(ours)
        assert sender.returncode == 0 and "\x1b" not in out, out
        assert b" %, " in shown and b"#" in shown and b" left [" in shown, shown
        assert shown.endswith(b"\r\x1b[K"), shown


def test_ctrl_c():
    file = make_file("interrupted", 4_000_000)
    with Server() as server:
        sender = sender_of(file, *WAYS[0], "--rate", "1M")
        until(lambda: size_of(server.part(file.name)) >= BLOCK)
        code, _, err = end(sender)
        assert code == 130 and "the transfer resumes" in err, err
        code, out, _ = send(file, *WAYS[0])
        assert code == 0 and "resumes at" in out, out


def test_lines_that_are_not_read():
    """urma_notify serve DIR | head -1: files are still received, and their senders get answers."""
    file = make_file("untold", 3_000_000)
    folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
    server = start(PROGRAM, "serve", folder, "--device", SHARED)
    await_line(server, "urma_notify send FILE")
    server.stdout.close()
    slow = sender_of(file, *WAYS[0], "--as", "slow", "--rate", "2M")
    for name in ("one", "two"):
        code, out, err = send(file, *WAYS[0], "--as", name)
        assert code == 0, (out, err)
    code, out, err = finish(slow)
    assert code == 0, (out, err)
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([PROGRAM, "send", file, *WAYS[0], "--as", "three"], stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0 and "writing to stdout: No space" in done.stderr, done
    for name in ("one", "two", "three", "slow"):
        assert (folder / name).read_bytes() == file.read_bytes()
    assert server.poll() is None
    server.send_signal(signal.SIGINT)
    assert server.wait(timeout=20) == 0
    said = server.stderr.read()
    server.stderr.close()
    assert said.count("writing to stdout: Broken pipe") == 1 and "Fix: " in said, said


def test_devices_that_cannot_be_opened_are_said():
    process = start_without_window(PROGRAM, "serve", FOLDER)
    if process is None:
        return
    assert "urma_notify at 127." in process.stdout.readline()
    code, out, err = end(process)
    assert code == 0, (code, out, err)
    assert err.startswith("urma_notify: without cxl:: ") and err.count("\n") == 1, err
    assert "Fix: " in err, err


def test_errors_have_codes_and_cures():
    file = make_file("some", 1000)
    missing = FOLDER / "missing"
    with Server() as server:
        for code, words in ((6, ["send", file, *WAYS[0], "--speaks", "99"]),
                            (1, ["send", missing, *WAYS[0]]),
                            (2, ["send", file, "a/b"]),
                            (2, ["send", file, file]),
                            (2, ["send", "-", *WAYS[0]]),
                            (2, ["send", "/dev/null", *WAYS[0]]),
                            (2, ["send", file, "--to", ADDRESS, "--to", ADDRESS]),
                            (2, ["send", file, missing, "--to", ADDRESS, "--as", "x"]),
                            (1, ["send", file, missing, "--to", ADDRESS]),
                            (2, ["serve", FOLDER, "--json"]),
                            (2, ["--demo", "send"]), (2, ["--speed", "2"]),
                            (2, ["--demo", "--speed", "0"]), (2, ["--demo", "--json"]),
                            (2, ["send"]),
                            (2, []),
                            (2, ["take", file]),
                            (2, ["send", file, "--rate", "much"]),
                            (2, ["send", file, "--device", "nonsense"]),
                            (5, ["send", file, "127.77.77.77"]),
                            (1, ["serve", missing, "--device", "udp:"]),
                            (2, ["serve", FOLDER, "--device", "nonsense"])):
            done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True,
                                  timeout=60)
            assert done.returncode == code and "Fix: " in done.stderr, (words, done)
        assert server.seen() == []
    check_help(PROGRAM)


def main():
    try:
        run_tests(globals())
    finally:
        subprocess.run(["rm", "-rf", FOLDER, WINDOW], check=True)


main()
