#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests urma_feed as people use it: urma_feed_test.py PATH_TO_URMA_FEED"""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
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
        self.wait_for(f" of {number} producers")

    def wait_for_silence(self):
        """Waits until the consumer has handled all that has arrived."""
        self.wait_for(" messages, 0 a second")

    def wait_for(self, words):
        shown = ""
        while words not in shown:
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
    watched.wait_for_silence()
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


def lines_of(count, begin=0):
    return "".join(f"line {number}\n" for number in range(begin, begin + count)).encode()


def printing(*arguments, device=SHARED, to=subprocess.PIPE):
    """Starts a consumer that prints payloads, and waits until it is ready."""
    consumer = start(PROGRAM, "consume", "--print", "--device", device, *arguments, stdout=to,
                     text=False)
    started.append(consumer)
    assert b"urma_feed produce" in consumer.stderr.readline()
    return consumer


def produce(text, *arguments):
    done = subprocess.run([PROGRAM, "produce", *map(str, arguments)], input=text,
                          capture_output=True, timeout=100)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_payloads_arrive_whole_and_in_order():
    records = os.urandom(2 * 65_520)
    for way, device in zip(WAYS, (SHARED, NETWORK)):
        for text, words in ((lines_of(20_000), ["--lines"]), (b"", ["--lines"]),
                            (b"no end", ["--lines"]), (b"\n\0\xff\n", ["--lines"]),
                            (records, ["--records", 80]), (records, ["--records", 65_520])):
            consumer = printing("--producers", "1", device=device)
            read = []
            reader = threading.Thread(target=lambda: read.extend(consumer.communicate(timeout=90)))
            reader.start()
            code, out, err = produce(text, *way, *words)
            assert code == 0 and "NOT DELIVERED" not in out, (out, err)
            reader.join()
            got, said = read
            if words == ["--lines"] and text and not text.endswith(b"\n"):
                text += b"\n"
            assert consumer.returncode == 0 and got == text, (way, words, len(got), said)
            assert b" 0 missing, 0 repeated" in said, said


def test_payloads_reach_several_consumers():
    """One of three consumers is slow, and one does not exist: it has a verdict of its own."""
    text = lines_of(3000)
    other = f"127.12.{os.getpid() % 250}.7"
    consumers = [printing("--producers", "1", device=f"udp:{other}"),
                 printing("--producers", "1", "--work", "100", device=NETWORK)]
    code, out, err = produce(text, other, "--to", ADDRESS, "--to", "127.77.77.77", "--lines")
    assert code == 5, (out, err)
    assert out.count("3000 of 3000 messages acknowledged\n") == 2, (out, err)
    assert "127.77.77.77: 0 of 3000 messages acknowledged; NOT DELIVERED: 3000" in out, out
    assert "Fix: start it there" in err, err
    for consumer in consumers:
        got, _ = consumer.communicate(timeout=60)
        assert got == text


def test_a_restarted_consumer_gets_what_the_old_one_did_not_write():
    """Each message is written by one of the consumers, and by both only if the producer says so."""
    text = lines_of(6000)
    for way, device in zip(WAYS, (SHARED, NETWORK)):
        first = printing(device=device)
        producer = start(PROGRAM, "produce", *way, "--lines", "--rate", "4000",
                         stdin=subprocess.PIPE, text=False)
        started.append(producer)
        writer = threading.Thread(target=lambda: (producer.stdin.write(text),
                                                  producer.stdin.close()))
        writer.start()
        got = [first.stdout.read1(1 << 16)]
        first.kill()
        got[0] += first.communicate(timeout=60)[0]
        second = printing("--producers", "1", device=device)
        got.append(second.communicate(timeout=100)[0])
        assert second.returncode == 0
        writer.join()
        assert producer.wait(timeout=60) == 0
        said = producer.stdout.read().decode()
        err = producer.stderr.read().decode()
        assert "6000 of 6000 messages acknowledged; once a new connection, " in said, (said, err)
        again = int(re.search(r"(\d+) messages sent again", said).group(1))
        # A killed consumer may have written a part of its last line.
        before = got[0][:got[0].rfind(b"\n") + 1]
        repeated = len(before.splitlines()) + len(got[1].splitlines()) - 6000
        assert 0 <= repeated <= again, (repeated, again)
        assert text.startswith(before) and text.endswith(got[1]), way
        producer.stdout.close(), producer.stderr.close()


def test_a_consumer_that_does_not_come_back():
    consumer = printing("--count", "10")
    code, out, err = produce(lines_of(100), *WAYS[0], "--lines", "--patience", "1")
    got, said = consumer.communicate(timeout=60)
    assert consumer.returncode == 0 and got == lines_of(10), (got, said)
    assert code == 5 and "10 of 100 messages acknowledged" in out, (out, err)
    assert "NOT DELIVERED: 90" in out and "Fix: " in err, (out, err)
    assert "the consumer has ended: it has received what it was started for" in err, err


def test_outputs_and_inputs_that_fail():
    with open("/dev/full", "wb") as full:
        consumer = printing(to=full)
        code, out, err = produce(lines_of(10), *WAYS[0], "--lines", "--patience", "1")
    said = consumer.communicate(timeout=60)[1].decode()
    assert consumer.returncode == 1 and "not acknowledged. Fix: free some space" in said, said
    assert code == 5 and "0 of 10 messages acknowledged; NOT DELIVERED: 10" in out, (out, err)
    # The producer says why, too.
    assert ("the consumer has ended: --print: writing to stdout: No space left on device" in err
            and "Fix: free some space" in err), err
    consumer = printing()
    # The consumer gets all that came before the fault, and the exit code is not 0.
    for text, words, whole in ((b"12345678abc", ["--records", "8"], b"12345678"),
                               (b"a\n" + b"x" * 65_521 + b"\nb\n", ["--lines"], b"a\n")):
        code, out, err = produce(text, *WAYS[0], *words)
        assert code == 1 and "not sent" in err and "Fix: " in err, (out, err)
        assert "1 of 1 messages acknowledged" in out, out
        assert consumer.stdout.read(len(whole)) == whole
    with open(os.devnull, "wb") as unreadable:
        done = subprocess.run([PROGRAM, "produce", *WAYS[0], "--lines"], stdin=unreadable,
                              capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "reading standard input" in done.stderr, done
    waiting = start(PROGRAM, "produce", *WAYS[0], "--lines", stdin=subprocess.PIPE)
    time.sleep(0.3)
    code, out, err = end(waiting)
    assert code == 130 and "0 messages" in out, (code, out, err)
    code, _, said = end(consumer)
    assert code == 130, said


def test_wake_ups_are_measured():
    for words, text in ((["--lines"], lines_of(60)), (["--count", "60"], b"")):
        consumer = consume("--producers", "1")
        code, out, err = produce(text, *WAYS[0], "--rate", "200", *words)
        assert code == 0, (out, err)
        code, out, err = finish(consumer)
        found = re.search(r"wake-ups: (\d+) messages found the consumer asleep; from post to "
                          r"handler, in us: p50 ([\d.]+), p90 ([\d.]+), p99 ([\d.]+), p99.9 "
                          r"([\d.]+), max ([\d.]+)\n", out)
        assert code == 0 and found, (out, err)
        assert 10 < int(found.group(1)) <= 60, out
        times = [float(one) for one in found.groups()[1:]]
        assert 0 < times[0] and times == sorted(times), out


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
                        (2, ["consume", "--lines"]), (2, ["produce", "--print"]),
                        (2, ["produce", "--to", "127.0.0.1"]),
                        (2, ["produce", "--lines", "--records", "8"]),
                        (2, ["produce", "--records", "1M"]), (2, ["produce", "--records", "-8"]),
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
