#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests urma_stat as people and scripts use it:
urma_stat_test.py URMA_STAT URMA_TEST_PEER URMA_PERF URMA_TOP"""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import urllib.request
import zlib

import prometheus_text
from prometheus_text import of
from running import check_idle, kill, run_tests

PROGRAM, PEER, PERF, TOP = sys.argv[1:5]
DIRECTORY = f"/dev/shm/urma-devices-{os.geteuid()}"
STRANGER = 64124  # a user that does not exist


def run(*arguments, program=PROGRAM, **more):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=30, **more)


def look(*arguments):
    """Returns what urma_stat prints, by process."""
    done = run("--json", *arguments)
    assert done.returncode == 0, done
    whole = json.loads(done.stdout)
    assert whole["schema"] == "urma_stat/1" and isinstance(whole["time"], int)
    return {device["pid"]: device for device in whole["devices"]}


def comes_to(what):
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if what():
            return
        time.sleep(0.02)
    raise AssertionError("timed out: the condition did not become true")


@contextlib.contextmanager
def peer(*arguments, program=PEER, **more):
    process = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, text=True, **more)
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        kill(process)


@contextlib.contextmanager
def two_at_work():
    name = f"stat-{os.getpid()}"
    with peer("udp:", "serve", name) as server:
        with peer("udp:", "write", name + "-writer", f"urma://localhost/{name}", "0") as writer:
            yield server, writer


def pages_of(process):
    return [name for name in os.listdir(DIRECTORY) if name.startswith(f"{process.pid}-")]


def test_two_processes_are_seen_at_work_and_not_when_killed():
    with two_at_work() as (server, writer):
        before = look()[writer.pid]
        assert before["device"] == "udp:" and before["process"] == os.path.basename(PEER)
        assert before["process_started"] <= before["opened"] <= time.time() + 1
        comes_to(lambda: look()[writer.pid]["metrics"]["works"]["value"]
                 > before["metrics"]["works"]["value"])
        comes_to(lambda: look()[server.pid]["metrics"]["executed"]["value"] > 0)
        for one in look()[writer.pid]["metrics"].values():
            assert one["unit"] and one["meaning"] and one["window"] in ("since open", "now")

        # The table has both devices. The whole list has those that were asked for, by number or
        # name.
        table = run().stdout
        assert all(f" {process.pid} " in table for process in (server, writer)), table
        whole = run(str(writer.pid)).stdout
        assert f"process      {writer.pid} " in whole and "past_caches_from" in whole
        assert "Works that the device has taken from Jetties." in whole and "EID 127." in whole
        by_name = look(os.path.basename(PEER))
        assert {server.pid, writer.pid} <= set(by_name)
        assert set(look(str(server.pid))) == {server.pid}

        done = run("--watch", "0.3", "--count", "2", "--json", str(writer.pid))
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert done.returncode == 0 and len(lines) == 2
        for line in lines:
            (device,) = line["devices"]
            assert line["interval_seconds"] == 0.3
            assert device["metrics"]["works"]["per_second"] > 0
            assert device["metrics"]["jetties"]["per_second"] is None
        done = run("--watch", "0.2", "--count", "2")
        assert done.stdout.count("works/s") == 2 and "\x1b" not in done.stdout, done

        (page,) = pages_of(writer)
        assert os.stat(f"{DIRECTORY}/{page}").st_mode & 0o777 == 0o600
        assert os.stat(DIRECTORY).st_mode & 0o777 == 0o700
        watching = subprocess.Popen([PROGRAM, str(writer.pid), "--watch", "0.2"],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert watching.stdout.readline()
        writer.kill()
        writer.wait()
        out, err = watching.communicate(timeout=20)
        assert watching.returncode == 0 and "closed its device, or ended" in err, err
        assert writer.pid not in look() and server.pid in look()
        assert not pages_of(writer)


@contextlib.contextmanager
def two_that_measure(control, device, peer_device):
    """Runs urma_perf, whose two ends are processes of their own."""
    process = subprocess.Popen(
        [PERF, "write_bw", "--self", "--seconds", "60", "--size", "4K", "--cc", control,
         "--device", device, "--peer-device", peer_device],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)


def test_channels_say_which_congestion_control_they_use_and_why():
    host = f"127.6.{os.getpid() % 250}"
    for control, device, peer_device, used, why in (
            ("ldcp", f"udp:{host}.1?ecn=yes", f"udp:{host}.2?ecn=yes", "ldcp", ""),
            ("ldcp", f"udp:{host}.1?ecn=yes", f"udp:{host}.2", "aimd",
             "the peer does not report what ldcp needs"),
            ("dcqcn", f"udp:{host}.1", f"udp:{host}.2", "aimd", "dcqcn needs ECN marks"),
            ("caqm_r", f"udp:{host}.1", f"udp:{host}.2", "caqm_r", "")):
        with two_that_measure(control, device, peer_device) as process:
            def channels():
                return look().get(process.pid, {}).get("channels")
            comes_to(lambda: any(one["acknowledged_bytes"] for one in channels() or []))
            (channel,) = channels()
            assert channel["peer"].startswith(f"{host}.2:"), channel
            assert channel["congestion"] == used and channel["congestion_asked"] == control, channel
            assert why in channel["why"] and bool(why) == bool(channel["why"]), channel
            assert channel["window_bytes"] > 0 and channel["rtt_seconds"] > 0, channel
            assert channel["channel_age_seconds"] >= 0 and channel["state"] == "up", channel

            table = run("--peers", str(process.pid)).stdout
            title, line, *notes = table.splitlines()
            assert title.split()[:3] == ["pid", "device", "peer"] and "window" in title, table
            assert line.split()[0] == str(process.pid) and channel["peer"] in line, table
            assert f" {used}{'*' if why else ''} " in line, table
            if why:
                assert notes[0].startswith(f"* {used} instead of {control}: "), table
                assert why in notes[0], table
            else:
                assert not notes, table
            assert channel["acknowledged_bytes"] > 0, channel
            # All that the channel has fits on a usual terminal, below the name of its process.
            shown = on_a_terminal(24, 80, "--peers", str(process.pid))
            titles, *_ = [line for line in shown.split("\r\n") if " window" in line]
            assert f"{process.pid} urma_perf, udp:" in shown, shown
            assert channel["peer"].removesuffix(":4792") in shown, shown
            for name in ("state", "rate", "window", "flight", "rtt", "least", "resent", "spur",
                         "rnr", "age"):
                assert f" {name}" in titles, shown


def test_counters_that_are_0_are_shown_only_if_asked_for():
    with peer("udp:", "serve", f"stat-{os.getpid()}") as process:
        short, whole = run(str(process.pid)).stdout, run(str(process.pid), "--all").stdout
        assert " dropped_icrc " not in short and " counters are 0; --all shows them" in short, short
        assert " dropped_icrc " in whole and "--all" not in whole, whole
        names = [line.split()[0] for line in whole.splitlines() if re.match("  [a-z]", line)]
        assert set(json.loads(run("--json", str(process.pid)).stdout)["devices"][0]["metrics"]) \
            == set(names)


def test_no_channel_is_said():
    with peer("udp:", "serve", f"stat-{os.getpid()}") as process:
        done = run("--peers", str(process.pid))
        assert done.returncode == 0, done
        assert done.stdout == "No device that is shown here has a channel.\n", done
        assert look()[process.pid]["channels"] == [] and look()[process.pid]["more_channels"] == 0


def test_what_was_closed_in_peace_leaves_nothing():
    with peer("udp:", "serve", f"stat-{os.getpid()}") as process:
        assert pages_of(process)
        # A sleeping device is visible, and is not woken.
        comes_to(lambda: look()[process.pid]["age_seconds"] is not None)
        comes_to(lambda: look()[process.pid]["age_seconds"] > 0.5)
    run()
    assert not pages_of(process)


def test_strangers_files_are_said_and_skipped():
    os.makedirs(DIRECTORY, mode=0o700, exist_ok=True)
    junk = f"{DIRECTORY}/junk-{os.getpid()}"
    spoiled = f"{DIRECTORY}/{os.getpid()}-0123456789abcdef"
    many = []
    try:
        with open(junk, "w") as file:
            file.write("hello")
        with open(spoiled, "wb") as file:
            file.write(os.urandom(8000))
            file.flush()
            fcntl.flock(file, fcntl.LOCK_EX)
            done = run()
            assert done.returncode == 0, done
            for path in (junk, spoiled):
                assert f"{path} is not a file with a device's counters. Fix: " in done.stderr, done
            skipped = json.loads(run("--json").stdout)["skipped"]
            assert any(junk in one for one in skipped) and any(spoiled in one for one in skipped)
        run()  # it is no longer held
        assert not os.path.exists(spoiled) and os.path.exists(junk)
        many = [f"{junk}-{number}" for number in range(5)]
        for path in many:
            open(path, "w", encoding="ascii").close()
        done = run()
        assert "more pages cannot be read; --json names them\n" in done.stderr, done
        assert done.stderr.count("Fix: ") == 3, done
    finally:
        for path in (junk, spoiled, *many):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def test_only_root_sees_other_users():
    if os.geteuid() != 0:
        print("(skipped: only root can play another user)")
        return
    as_stranger = {"user": STRANGER, "group": STRANGER, "extra_groups": [], "cwd": "/"}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        # Other users may not read the build directory.
        program, other = (shutil.copy(path, folder) for path in (PROGRAM, PEER))
        done = run(program=program, **as_stranger)
        assert done.returncode == 0 and done.stdout == "No device of this user is open here.\n"
        name = f"stat-{os.getpid()}"
        with peer("udp:", "serve", name, program=other, **as_stranger) as process:
            # Root sees the process, and whose it is.
            seen = look()[process.pid]
            assert seen["uid"] == STRANGER and seen["user"] == str(STRANGER), seen
            title, *rows = run().stdout.splitlines()
            assert title.split()[:3] == ["pid", "user", "process"], title
            assert any(row.split()[:2] == [str(process.pid), str(STRANGER)] for row in rows), rows
            assert set(look("--user", str(STRANGER))) == {process.pid}
            assert process.pid not in look("--user", "root")
            done = run("--user", "no-such-user")
            assert done.returncode == 2 and "Fix: " in done.stderr, done

            done = run(str(process.pid), program=program, **as_stranger)
            assert done.returncode == 0 and "jetties" in done.stdout, done
            done = run("--user", "root", program=program, **as_stranger)
            assert done.returncode == 1 and "only root sees" in done.stderr, done
            with peer("udp:", "serve", name + "-root") as own:
                done = run("--json", program=program, **as_stranger)
                assert {one["pid"] for one in json.loads(done.stdout)["devices"]} == {process.pid}
                assert {own.pid, process.pid} <= set(look())
        run(program=program, **as_stranger)
    os.rmdir(f"/dev/shm/urma-devices-{STRANGER}")  # fails if a page was left there


def test_metrics():
    whole = json.loads(run("--metrics", "--json").stdout)
    text = run("--metrics").stdout
    assert whole["schema"] == "urma_stat/1" and len(whole["metrics"]) > 40
    for metric in whole["metrics"]:
        assert set(metric) == {"name", "unit", "window", "part", "meaning"}
        (line,) = [line for line in text.splitlines() if line.split()[:1] == [metric["name"]]
                   and line.startswith("  ")]
        assert metric["unit"] in line and line.endswith(metric["meaning"])


def on_a_terminal(rows, columns, *arguments):
    """Returns what two looks print on the terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, 0x5414, struct.pack("HHHH", rows, columns, 0, 0))  # TIOCSWINSZ
    done = subprocess.run([PROGRAM, *arguments, "--watch", "0.2", "--count", "2"],
                          stdout=theirs, stderr=subprocess.PIPE, timeout=30, text=True,
                          env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # what there was has been read
        while part := os.read(ours, 65536):
            shown += part
    os.close(ours)
    assert done.returncode == 0, done
    assert shown.count(b"\x1b[2J") == 1 and shown.count(b"\x1b[H") == 2, shown
    lines = shown.split(b"\r\n")
    assert all(len(line.replace(b"\x1b[K", b"")) <= columns + len(b"\x1b[2J\x1b[H\x1b[J")
               for line in lines), lines
    return shown.replace(b"\x1b[K", b"").decode()


def test_on_a_terminal_each_look_takes_the_place_of_the_one_before():
    with peer("udp:", "serve", f"stat-{os.getpid()}") as process:
        assert "... the rest does not fit" in on_a_terminal(5, 40, str(process.pid))


def test_narrow_terminals_show_trouble():
    with peer("udp:", "serve", f"stat-{os.getpid()}"):
        for columns, title, lost in (
                (200, "open peers    works/s", ""),
                (80, "pid process device", ": open, peers, done"),
                (56, "pid process device", " 6 columns"),
                (40, "    pid unknown refused resent dropped", " 8 columns")):
            shown = on_a_terminal(50, columns, "--user", str(os.geteuid()))
            (titles, *_) = [line for line in shown.split("\r\n") if "pid" in line.split()]
            words = " ".join(titles.split())
            assert " ".join(title.split()) in words and len(titles) <= columns, (columns, shown)
            for name in ("unknown", "refused", "resent", "dropped"):
                assert name in titles, (columns, shown)
            assert lost and f"too narrow for{lost}" in shown or "narrow" not in shown, shown


def test_errors_have_codes_and_cures():
    for code, arguments in ((2, ["--nonsense"]), (2, ["one", "two"]), (2, ["--watch", "0"]),
                            (2, ["--watch", "nan"]), (2, ["--watch", "1x"]), (2, ["--watch"]),
                            (2, ["--watch", "1e9"]), (2, ["--count", "3"]),
                            (2, ["--watch", "1", "--count", "0"]),
                            (2, ["--watch", "1", "--count", "-1"]), (2, ["--metrics", "1"]),
                            (2, ["--metrics", "--peers"]),
                            (1, ["no-such-process"]), (1, ["no-such-process", "--watch", "1"]),
                            (1, ["999999999999999999999"])):
        done = run(*arguments)
        assert done.returncode == code, (arguments, done)
        assert done.stderr.startswith("urma_stat: ") and "Fix: " in done.stderr, done
        assert not done.stdout, done
    for arguments in ([], ["--json"], ["--peers"], ["--metrics"], ["--help"], ["--watch", "0.2"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=30)
        assert done.returncode == 1 and "No space left" in done.stderr, (arguments, done)
        assert "Fix: " in done.stderr, done
        read_end, write_end = os.pipe()
        os.close(read_end)
        with os.fdopen(write_end, "w") as pipe:
            done = subprocess.run([PROGRAM, *arguments], stdout=pipe, stderr=subprocess.PIPE,
                                  text=True, timeout=30)
        assert done.returncode == 1 and "Broken pipe" in done.stderr, (arguments, done)


def scraped(*arguments):
    """Returns the series that urma_stat prints."""
    return prometheus_text.parse(run("--prometheus", *arguments).stdout)


def test_prometheus():
    with two_at_work() as (server, writer):
        pid = str(writer.pid)
        comes_to(lambda: look()[writer.pid]["channels"])
        series = scraped()
        assert of(series, "urma_works_total", pid=pid) > 0
        assert of(series, "urma_executed_total", pid=str(server.pid)) > 0
        assert of(series, "urma_channel_rtt_seconds", pid=pid) > 0
        assert of(series, "urma_channel_state", pid=pid, state="up") == 1
        assert of(series, "urma_channel_state", pid=pid, state="lost") == 0
        assert of(series, "urma_device_channels_left_out", pid=pid) == 0
        assert of(series, "urma_devices") >= 2 and of(series, "urma_devices_left_out") == 0
        one = scraped(pid)
        assert {dict(labels).get("pid") for _, labels in one} == {pid, None}
        server.send_signal(signal.SIGSTOP)  # over UDP such a peer is lost, its channel ends
        comes_to(lambda: of(scraped(pid), "urma_channel_up", pid=pid) is None)
        server.send_signal(signal.SIGCONT)


def with_text(page, change):
    """Returns the page of a device with another text, as a hostile user could write it."""
    form = "<QIIII"  # magic, layout, bytes of the text, metrics, checksum
    magic, layout, size, _, _ = struct.unpack_from(form, page)
    start = struct.calcsize(form)
    lines = change(page[start:start + size].decode().splitlines())
    text = "".join(line + "\n" for line in lines).encode()
    head = struct.pack("<QIII", magic, layout, len(text),
                       sum(line.startswith("metric\t") for line in lines))
    return head + struct.pack("<I", zlib.crc32(head + text)) + text + page[start + size:]


@contextlib.contextmanager
def forged(page, number):
    """Puts a page beside those of this user's devices, as that of a process."""
    path = f"{DIRECTORY}/{os.getpid()}-{number:016x}"
    with open(path, "wb") as file:
        file.write(page)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield path
        finally:
            os.unlink(path)


def test_prometheus_stays_valid_whatever_pages_contain():
    def renamed(names):
        return lambda lines: ["\t".join(["metric", names[line.split("\t")[1]],
                                         *line.split("\t")[2:]])
                              if line.split("\t")[1] in names and line.startswith("metric")
                              else line for line in lines]

    def hostile(lines):
        lines = renamed({"works": "channel_up", "held": "devices", "retries": "WORKS",
                         "timeouts": "completions_total", "unknown": "other"})(lines)
        out = []
        for line in lines:
            key, *rest = line.split("\t")
            if key == "device":
                rest = ['a"b\\c,pid="1"}']
            if key == "metric" and rest[0] == "other":
                rest[-1] = "A \\ in a \\n meaning."
            if key == "metric" and rest[0] == "completions":
                rest[-1] = "A lie."
            out.append("\t".join([key, *rest]))
        return out

    with two_at_work() as (_, writer):
        comes_to(lambda: look()[writer.pid]["channels"])
        (name,) = pages_of(writer)
        with open(f"{DIRECTORY}/{name}", "rb") as file:
            page = file.read()
        before = of(scraped(), "urma_pages_left_out")
        with forged(with_text(page, renamed({"held": "works"})), 1) as twice, \
                forged(with_text(page, lambda lines: lines), 2), \
                forged(with_text(page, hostile), 3):
            done = run("--prometheus")
            assert f"{twice} names a counter twice" in done.stderr and "Fix: " in done.stderr, done
            series = prometheus_text.parse(done.stdout)
            assert of(series, "urma_pages_left_out") == before + 1
            pid = str(writer.pid)
            # A second device with the same labels has one more.
            copies = [dict(labels) for (one, labels) in series if one == "urma_works_total"
                      and ("pid", pid) in labels and ("device", "udp:") in labels]
            assert sorted(one.get("copy", "") for one in copies) == ["", "2"], copies
            odd = 'a"b\\c,pid="1"}'
            assert of(series, "urma_device_metrics_left_out", device=odd) == 4
            assert of(series, "urma_other_total", device=odd) is not None
            assert "A lie" not in done.stdout and "# TYPE urma_channel_up gauge" in done.stdout


@contextlib.contextmanager
def exporter():
    """Starts an exporter. Returns its process, its address and its URL."""
    with socket.create_server(("127.0.0.1", 0)) as vacant:
        at = vacant.getsockname()
    process = subprocess.Popen([PROGRAM, "--prometheus", "--listen", "127.0.0.1:%d" % at[1]],
                               stdout=subprocess.PIPE, text=True)
    try:
        yield process, at, process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 130
    finally:
        kill(process)


def scrape(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.status == 200 and "version=0.0.4" in answer.headers["Content-Type"]
        return prometheus_text.parse(answer.read().decode())


def test_the_exporter_answers_requests():
    with peer("udp:", "serve", f"stat-{os.getpid()}") as process, exporter() as (_, at, url):
        assert of(scrape(url), "urma_jetties", pid=str(process.pid)) > 0
        for request, begin in ((b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1.1 404"),
                               (b"POST /metrics HTTP/1.0\r\n\r\n", b"HTTP/1.1 405"),
                               (b"\xff\x00\n\n", b"HTTP/1.1 405"), (b"x" * 20000, b"")):
            with socket.create_connection(at, timeout=10) as client:
                with contextlib.suppress(OSError):
                    client.sendall(request)
                    assert client.recv(100).startswith(begin), request
        scrape(url)
        taken = run("--prometheus", "--listen", "127.0.0.1:%d" % at[1])
        assert taken.returncode == 1 and "Fix: " in taken.stderr, taken


def is_open(client):
    """Returns whether the exporter has not closed this connection."""
    return not select.select([client], [], [], 0)[0]


def test_a_scrape_does_not_wait_for_other_clients():
    most = 32
    with exporter() as (process, at, url):
        def clients(stack, count):
            return [stack.enter_context(socket.create_connection(at)) for _ in range(count)]

        def answered_beside_silent_ones():
            with contextlib.ExitStack() as stack:
                silent = clients(stack, most - 1)
                scrape(url)
                return all(map(is_open, silent))
        # On a busy machine the silent ones may be dropped before the scrape.
        comes_to(answered_beside_silent_ones)

        def only_the_oldest_are_replaced():
            with contextlib.ExitStack() as stack:
                silent = clients(stack, most + 8)
                scrape(url)
                # The scrape was one more.
                return [is_open(client) for client in silent] == [False] * 9 + [True] * (most - 1)
        comes_to(only_the_oldest_are_replaced)

        # A request that trickles in ends, too.
        with contextlib.ExitStack() as stack:
            (slow,) = clients(stack, 1)
            with contextlib.suppress(OSError):
                comes_to(lambda: slow.send(b"x") != 1 or not is_open(slow))
        check_idle(process)


def in_terminal(command, keys, size=(24, 80)):
    """Runs a program on a terminal of its own, and presses each key, or does each action, 0.6 s
    after the one before. Returns the exit code, all that it printed, and the terminal's modes
    before and after."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, 0x5414, struct.pack("HHHH", *size, 0, 0))
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs,
                               start_new_session=True, env={**os.environ, "TERM": "xterm"},
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    shown, until = b"", time.monotonic() + 20
    due = time.monotonic() + 0.6
    while process.poll() is None and time.monotonic() < until:
        if select.select([ours], [], [], 0.05)[0]:
            shown += os.read(ours, 65536)
        if keys and time.monotonic() > due:
            due = time.monotonic() + 0.6
            key, *keys = keys
            if callable(key):
                key(process, theirs)
            else:
                os.write(ours, key)
    process.kill()
    process.wait()
    while select.select([ours], [], [], 0)[0]:
        shown += os.read(ours, 65536)
    after = termios.tcgetattr(theirs)
    os.close(ours)
    os.close(theirs)
    return process.returncode, shown.decode(), before, after


def widen(process, terminal):
    fcntl.ioctl(terminal, 0x5414, struct.pack("HHHH", 40, 160, 0, 0))
    process.send_signal(signal.SIGWINCH)


def test_top_shows_the_busiest_first_and_gives_the_terminal_back():
    def screens_in(shown):
        return [[line.removesuffix("\x1b[K") for line in one.split("\r\n")]
                for one in shown.split("\x1b[H")[1:]]
    with two_at_work() as (server, writer):
        code, shown, before, after = in_terminal([TOP, "--watch", "0.3"], [widen, b"a", b"q"])
        assert code == 0 and before == after, (code, shown)
        assert shown.startswith("\x1b[?1049h\x1b[?25l") and shown.endswith("\x1b[?1049l"), shown
        narrow, wide = screens_in(shown)[0], screens_in(shown)[-1]
        assert all(len(line) <= 80 for line in narrow[:-1]), narrow
        assert len(narrow) <= 24 and max(map(len, wide)) > 80, wide
        assert "a: show idle" in shown and "a: hide idle" in shown, shown
        places = {}
        for at, line in enumerate(wide):
            places.setdefault((line.split() or [""])[0], at)
        assert places[str(writer.pid)] < places[str(server.pid)], wide
        (title,) = [line for line in wide if " unknown/s" in line]
        assert "bytes/s" in title, wide

        for press, code in ((b"\x03", 130), (lambda process, _: process.terminate(), 130)):
            ended, shown, before, after = in_terminal([TOP], [press])
            assert ended == code and before == after, (ended, shown)
            assert shown.endswith("\x1b[?25h\x1b[?1049l"), shown
        for size in ((2, 1), (3, 10), (5, 20)):
            ended, shown, _, _ = in_terminal([TOP, "--watch", "0.2", "--count", "2"], [], size)
            assert ended == 0, (size, shown)


def test_top_needs_a_terminal():
    done = run(program=TOP)
    assert done.returncode == 1 and not done.stdout, done
    assert "not a terminal" in done.stderr and "urma_stat --watch 1" in done.stderr, done
    for arguments in (["--nonsense"], ["--watch", "0"], ["--json"], ["one", "two"]):
        done = run(*arguments, program=TOP)
        assert done.returncode == 2 and "Fix: " in done.stderr, done
    done = run("--help", program=TOP)
    assert done.returncode == 0 and len(done.stdout.splitlines()) <= 40, done
    assert all(len(line) <= 100 for line in done.stdout.splitlines())
    assert run("--version", program=TOP).stdout.startswith("urma_top ")


def test_ctrl_c():
    watching = subprocess.Popen([PROGRAM, "--watch", "0.2"], stdout=subprocess.PIPE, text=True)
    assert watching.stdout.readline()
    watching.send_signal(signal.SIGINT)
    out, _ = watching.communicate(timeout=20)
    assert watching.returncode == 130


def test_help_is_one_screen():
    done = run("--help")
    assert done.returncode == 0 and len(done.stdout.splitlines()) <= 40
    assert all(len(line) <= 100 for line in done.stdout.splitlines())
    assert run("--version").stdout.startswith("urma_stat ")


run_tests(globals())
