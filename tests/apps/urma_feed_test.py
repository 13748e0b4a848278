#!/usr/bin/env python3
"""Tests urma_feed as people use it: urma_feed_test.py PATH_TO_URMA_FEED"""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

from running import (await_line, check_help, check_idle, end, finish, run_tests, start,
                     start_without_window)

PROGRAM = sys.argv[1]
WINDOW = f"/dev/shm/urma-feed-test-{os.getpid()}"
SHARED = f"cxl:{WINDOW}?size=16M"
NETWORK = f"udp:127.2.{os.getpid() % 250}.7"
ADDRESS = NETWORK.removeprefix("udp:")
started = []
WAYS = ((("localhost", "--device", SHARED)), ((ADDRESS, "--device", "fault(loss=1%,seed=3):udp:")))


def feed(*arguments, errors=subprocess.PIPE):
    started.append(start(PROGRAM, *arguments, stderr=errors))
    return started[-1]


def consume(*arguments, errors=subprocess.PIPE):
    consumer = feed("consume", "--device", SHARED, "--device", NETWORK, *arguments, errors=errors)
    for _ in range(2):
        await_line(consumer, "urma_feed produce")
    return consumer


class Watched:
    """A consumer on a terminal, where it shows how far it is."""

    def __init__(self, *arguments):
        self.terminal, theirs = pty.openpty()
        self.process = consume(*arguments, errors=theirs)
        os.close(theirs)

    def wait_for_producers(self, number):
        """Waits until messages of so many producers have arrived."""
        shown = ""
        while f" of {number} producers" not in shown:
            assert select.select([self.terminal], [], [], 60)[0], shown
            shown += os.read(self.terminal, 4096).decode()

    def __del__(self):
        os.close(self.terminal)


def table(text):
    """Returns the messages of each topic, and the numbers of the summary."""
    rows = dict((int(row[0]), int(row[1])) for row in
                (line.split() for line in text.splitlines()) if len(row) == 4 and row[0].isdigit())
    words = re.search(r"(\d+) messages of (\d+) producers \((\d+) ended\), (\d+) missing, "
                      r"(\d+) repeated, (\d+) sleeps", text)
    assert words, text
    names = ("messages", "producers", "ended", "missing", "repeated", "sleeps")
    return rows, dict(zip(names, map(int, words.groups())))


def test_many_producers():
    consumer = consume("--producers", "8")
    producers = [feed("produce", *WAYS[i % 2], "--topic", f"{i},{i + 1},200", "--count", 3000)
                 for i in range(8)]
    for producer in producers:
        code, out, err = finish(producer)
        assert code == 0 and out.startswith("3000 messages"), (out, err)
    code, out, err = finish(consumer)
    assert code == 0, (out, err)
    rows, sums = table(out)
    expected = {200: 8000, 0: 1000, 8: 1000, **{i: 2000 for i in range(1, 8)}}
    assert rows == expected, rows
    assert (sums["messages"], sums["producers"], sums["ended"]) == (24000, 8, 8), sums
    assert sums["missing"] == sums["repeated"] == 0, sums


def test_slow_consumer():
    """Producers wait for a slow consumer, and no message is lost."""
    for way in WAYS:
        consumer = consume("--producers", "2", "--work", "100")
        producers = [feed("produce", *way, "--topic", i, "--count", 3000) for i in range(2)]
        for producer in producers:
            code, out, err = finish(producer)
            waits = int(re.search(r"(\d+) waits", out).group(1))
            assert code == 0 and waits > 0, (out, err)
        code, out, err = finish(consumer)
        assert code == 0, (out, err)
        assert table(out)[0] == {0: 3000, 1: 3000}, out


def test_consumer_sleeps():
    for way in WAYS:
        consumer = consume("--producers", "1")
        check_idle(consumer)
        producer = feed("produce", *way, "--rate", "100", "--count", "150")
        assert finish(producer)[0] == 0
        code, out, err = finish(consumer)
        assert code == 0, (out, err)
        assert table(out)[1]["sleeps"] > 10, out


def test_ends():
    consumer = consume("--count", "500")
    producer = feed("produce", *WAYS[0], "--rate", "1000", "--count", "500", "--topic", "254")
    # The consumer may have ended before it learns that this was the last message.
    assert finish(producer)[0] in (0, 5)
    code, out, err = finish(consumer)
    assert code == 0 and table(out)[0] == {254: 500}, (out, err)

    watched = Watched()
    consumer = watched.process
    killed, living = [feed("produce", *WAYS[0], "--rate", "2000", "--topic", topic)
                      for topic in (1, 2)]
    watched.wait_for_producers(2)
    killed.kill()
    finish(killed)
    code, out, _ = end(living)
    assert code == 130 and " messages in " in out, out
    code, out, err = end(consumer)
    rows, sums = table(out)
    assert code == 130 and set(rows) == {1, 2} and sums["ended"] == 1, (out, err)

    for way in WAYS:
        watched = Watched()
        producer = feed("produce", *way, "--rate", "2000")
        watched.wait_for_producers(1)
        watched.process.kill()
        finish(watched.process)
        code, out, err = finish(producer)
        assert code == 5 and "Fix: " in err, (out, err)


def test_count_is_exact():
    """--count is exact although messages come in batches; no rate is printed for a very short
    time."""
    consumer = consume("--count", "10")
    producer = feed("produce", *WAYS[0], "--topic", "7")
    code, out, err = finish(consumer)
    assert code == 0 and table(out)[0] == {7: 10}, (out, err)
    (row,) = [line.split() for line in out.splitlines() if line.split()[0] == "7"]
    assert row[2] == "-", out
    assert "1 producer has not ended: its last messages may be missing" in out, out
    end(producer)
    consumer = consume("--producers", "1")
    assert finish(feed("produce", *WAYS[0], "--count", "10"))[0] == 0
    assert "not ended" not in finish(consumer)[1]


def test_ctrl_c():
    """A consumer ends before a batch of slow messages, which takes over a second; a producer ends
    although its consumer is stopped."""
    watched = Watched("--work", "20000")
    producer = feed("produce", *WAYS[0])
    watched.wait_for_producers(1)
    for process in (watched.process, producer):
        code, out, err = end(process, timeout=20)  # a producer leaves after 2 s at the latest
        assert code == 130 or process is producer and code == 5, (code, out, err)
    for way in WAYS:
        watched = Watched()
        producer = feed("produce", *way)
        watched.wait_for_producers(1)
        watched.process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        code, out, err = end(producer, timeout=20)
        assert code in (5, 130) and "Fix: " in err, (code, out, err)
        watched.process.kill()
        finish(watched.process)


def test_captures_that_stopped():
    capture = f"/tmp/urma-feed-test-{os.getpid()}.pcapng"
    try:
        for limit, missing in (("64K", True), ("64M", False)):
            device = f"pcap(file={capture},limit={limit}):udp:"
            consumer = consume("--producers", "1")
            code, _, err = finish(feed("produce", ADDRESS, "--device", device, "--count", 3000))
            assert code == (7 if missing else 0) and finish(consumer)[0] == 0, err
            assert (f"packets are missing in the capture {capture}: capture stopped: the file's "
                    "limit was reached. Fix: raise limit=" in err) == missing, err
            assert (err.count("Fix: ") == 1) == missing, err
    finally:
        if os.path.exists(capture):
            os.unlink(capture)


def test_devices_that_cannot_be_opened_are_said():
    process = start_without_window(PROGRAM, "consume")
    if process is None:
        return
    assert "urma_feed at 127." in process.stdout.readline()
    code, out, err = end(process)
    assert code == 130, (code, out, err)
    assert err.startswith("urma_feed: without cxl:: ") and err.count("\n") == 1, err
    assert "Fix: " in err, err


def test_errors_have_codes_and_cures():
    for code, words in ((2, []), (2, ["eat"]), (2, ["consume", "--topic", "1"]),
                        (2, ["produce", "a/b"]), (2, ["produce", "--topic", "255"]),
                        (2, ["produce", "--topic", "1,,2"]), (2, ["produce", "--rate", "0"]),
                        (2, ["produce", "--producers", "1"]), (2, ["consume", "--count", "-1"]),
                        (2, ["consume", "--device", "nonsense"]),
                        (5, ["produce", "127.77.77.77"])):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == code and "Fix: " in done.stderr, (words, done)
    # A name is a file, which this limit forbids.
    done = subprocess.run(["sh", "-c", f"ulimit -f 0; exec '{PROGRAM}' consume --device {NETWORK}"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "Fix: raise its limit (ulimit -f " in done.stderr, done
    check_help(PROGRAM)


def main():
    try:
        run_tests(globals())
    finally:
        for process in started:
            process.kill()
        if os.path.exists(WINDOW):
            os.unlink(WINDOW)


main()
