#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs each example as its row in the README says: examples_test.py FOLDER_OF_PROGRAMS"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from running import await_line, end, finish, kill, run_tests, start

FOLDER = pathlib.Path(sys.argv[1])
SOURCES = pathlib.Path(__file__).resolve().parents[2] / "examples"
OWN = os.getpid()  # names of our own, also if several copies of this run


def example(name, *arguments):
    return start(FOLDER / f"example_{name}", *arguments, stderr=subprocess.STDOUT)


def run(name, *arguments):
    done = subprocess.run([FOLDER / f"example_{name}", *arguments], capture_output=True, text=True,
                          timeout=60)
    return done.returncode, done.stdout.strip(), done.stderr


class Server:
    """Starts a program on a window of its own, and waits until it says that it is ready."""

    def __init__(self, name):
        self.window = f"/dev/shm/urma-examples-{OWN}-{name}"
        self.device = f"cxl:{self.window}?size=16M"
        self.process = example(name, "serve", self.device)

    def __enter__(self):
        await_line(self.process, " at ")
        return self

    def __exit__(self, *_):
        kill(self.process)
        os.unlink(self.window)


def test_write():
    assert run("write") == (0, "hello, memory", "")
    assert len((SOURCES / "write.cc").read_text().splitlines()) <= 26


def test_one_command_starts_all_processes():
    script = SOURCES / "run"
    environment = {**os.environ, "EXAMPLES": str(FOLDER)}
    last = {"write": "hello, memory", "echo": "hello", "scatter": ", 3 of all", "kv": "green",
            "block_mover": "wrong 0, recovered 0", "replicated_log": "unknown 0",
            "all_to_all": "wrong 0"}
    known = subprocess.run([script], capture_output=True, text=True).stderr
    assert known.split(":")[-1].split() == list(last), known
    for name, words in last.items():
        if not (FOLDER / f"example_{name}").exists():
            assert name == "echo"  # built without Boost.Asio
            continue
        done = subprocess.run([script, name], capture_output=True, text=True, timeout=60,
                              env=environment)
        assert done.returncode == 0 and words in done.stdout, (name, done)
    environment["EXAMPLES"] = "/nowhere"
    done = subprocess.run([script, "kv"], capture_output=True, text=True, env=environment)
    assert done.returncode == 1 and "Fix: cmake --build" in done.stderr, done


def test_echo():
    if not (FOLDER / "example_echo").exists():
        print("(skipped: built without Boost.Asio)")
        return
    with Server("echo") as server:
        for text in ("hello", "x" * 60000):
            assert run("echo", "say", text, "localhost", server.device) == (0, text, "")
        several = [example("echo", "say", f"of {i}", "localhost", server.device) for i in range(8)]
        for i, one in enumerate(several):
            assert one.communicate(timeout=60)[0].strip() == f"of {i}"
        assert end(server.process)[0] == 0
    code, _, why = run("echo", "say", "hello", "localhost", "udp:127.0.0.1")
    assert code == 1 and "Fix: " in why, why


def test_scatter():
    names = [f"scatter-{OWN}-{i}" for i in range(4)]
    owners = [example("scatter", "own", name) for name in names]
    for owner, name in zip(owners, names):
        assert owner.stdout.readline() == f"{name} is ready\n"
    code, said, why = run("scatter", "send", "10000", *names)
    assert code == 0, (said, why)
    assert said.splitlines() == [f"{name} ok" for name in names]
    for i, owner in enumerate(owners):
        assert f'has "part {i}", 65536 bytes, 4 of all' in owner.communicate(timeout=20)[0]


def test_scatter_names_the_process_that_lacks_its_part():
    names = [f"scatter-{OWN}-{i}" for i in range(4, 7)]
    owners = [example("scatter", "own", name) for name in names]
    for owner in owners:
        owner.stdout.readline()
    owners[1].send_signal(signal.SIGSTOP)
    try:
        code, said, why = run("scatter", "send", "300", *names)
        assert code == 1, (said, why)
        ends = dict(line.split() for line in said.splitlines())
        assert ends[names[0]] == ends[names[2]] == "ok", ends
        assert ends[names[1]] in ("flushed", "unknown"), ends
    finally:
        owners[1].send_signal(signal.SIGCONT)
        for owner in owners:
            kill(owner)


def test_kv():
    with Server("kv") as server:
        where = ("localhost", server.device)
        assert run("kv", "get", "missing", *where)[:2] == (1, "(nothing)")
        for key, value in (("a", "1"), ("b", ""), ("a", "2"), ("k" * 48, "v" * 960)):
            assert run("kv", "put", key, value, *where)[0] == 0
            assert run("kv", "get", key, *where)[:2] == (0, value)
        assert run("kv", "put", "k" * 49, "v", *where)[0] == 1
        for i in range(20):
            assert run("kv", "put", f"key {i}", f"value {i}", *where)[0] == 0
        for i in range(20):
            assert run("kv", "get", f"key {i}", *where)[1] == f"value {i}"

        # One process writes, and two read all the time: no value that they read may be partly old
        # and partly new. On a busy machine, the readers may end before the writer has begun.
        for _ in range(20):
            writer = example("kv", "churn", "hot", "8000", *where)
            readers = [example("kv", "watch", "hot", "10000", *where) for _ in range(2)]
            seen = [reader.communicate(timeout=120)[0].strip() for reader in readers]
            writer.communicate(timeout=120)
            assert writer.returncode == 0
            assert all(line.endswith("wrong 0") for line in seen), seen
            if all(int(line.split("changes ")[1].split(",")[0]) > 1 for line in seen):
                break
        else:
            raise AssertionError(f"in twenty rounds no reader saw a change:  {seen}")


def await_text(process, text):
    """Reads the lines of a process up to the one that contains this text, and returns it."""
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError((process.args, text))


def numbers(line):
    """Returns the numbers of a line, by the word before each."""
    return {word: int(number) for word, number in re.findall(r"(\w+) (\d+)", line)}


def test_block_mover_survives_the_end_of_prefill():
    name = f"prefill-{OWN}"
    prefill = example("block_mover", "prefill", name, 2)
    await_line(prefill, "ready")
    decode = example("block_mover", "decode", name, 90)
    await_text(decode, "30 prompts")
    kill(prefill)
    prefill = example("block_mover", "prefill", name, 2)
    try:
        end_of = numbers(await_text(decode, "recovered"))
        assert decode.wait(60) == 0
        assert end_of["recovered"] >= 1, end_of
        assert end_of["blocks"] == len(blocks_of_prompts(90)), end_of
        assert end_of["wrong"] == end_of["twice"] == 0 and end_of["prompts"] == 90, end_of
    finally:
        kill(prefill)


def blocks_of_prompts(count):
    """Returns each block as a line of the log: prompt i has 1 + i % 16 blocks in each layer."""
    return {f"{prompt} {layer} {block}" for prompt in range(count) for layer in range(4)
            for block in range(1 + prompt % 16)}


def await_lines(log, count, process):
    """Waits until so many blocks were taken."""
    until = time.monotonic() + 60
    while not log.exists() or log.read_bytes().count(b"\n") < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, (log.read_text(), count)
        time.sleep(0.002)


def test_block_mover_survives_kills_of_either_process():
    """Each block of the cache is taken once, with its bytes, although both processes are killed
    and started again in the middle, in turns."""
    name, prompts = f"either-{OWN}", 150
    wanted = blocks_of_prompts(prompts)
    with tempfile.TemporaryDirectory() as place:
        log = pathlib.Path(place, "taken.log")
        prefill = example("block_mover", "prefill", name, 1)
        decode = example("block_mover", "decode", name, prompts, log)
        try:
            for part in range(1, 7):
                await_lines(log, part * len(wanted) // 8, decode)
                if part % 2 == 0:
                    kill(decode)
                    decode = example("block_mover", "decode", name, prompts, log)
                else:
                    kill(prefill)
                    prefill = example("block_mover", "prefill", name, 1)
            # Both at the same time, and a log whose last line is not whole.
            await_lines(log, 7 * len(wanted) // 8, decode)
            kill(prefill)
            kill(decode)
            with log.open("a") as file:
                file.write("149 3")
            prefill = example("block_mover", "prefill", name, 1)
            decode = example("block_mover", "decode", name, prompts, log)
            end_of = numbers(await_text(decode, "recovered"))
            assert decode.wait(60) == 0
        finally:
            kill(prefill)
            kill(decode)
        taken = log.read_text().splitlines()
        assert len(taken) == len(set(taken)), "a block was taken twice"
        assert set(taken) == wanted, (wanted - set(taken), set(taken) - wanted)
        assert {key: end_of[key] for key in ("prompts", "blocks", "twice", "wrong")} == {
            "prompts": prompts, "blocks": len(wanted), "twice": 0, "wrong": 0}, end_of
        # A log that is complete asks for nothing; one that is not a log is refused.
        prefill = example("block_mover", "prefill", name)
        try:
            again = run("block_mover", "decode", name, str(prompts), log)
            assert again[0] == 0 and again[1].endswith("recovered 0"), again
            log.write_text("0 4 0\n")
            refused = run("block_mover", "decode", name, "1", log)
            assert refused[0] == 1 and "is not a block: 0 4 0" in refused[2], refused
        finally:
            kill(prefill)


def test_block_mover_survives_a_slow_prefill():
    """A stopped prefill goes on later, when decode has given its blocks to other prompts."""
    name = f"slow-{OWN}"
    prefill = example("block_mover", "prefill", name, 2)
    await_line(prefill, "ready")
    decode = example("block_mover", "decode", name, 60)
    await_text(decode, "20 prompts")
    prefill.send_signal(signal.SIGSTOP)
    time.sleep(2.5)  # longer than decode's deadline
    prefill.send_signal(signal.SIGCONT)
    try:
        await_text(prefill, "was not moved: remote_access")
        end_of = numbers(await_text(decode, "recovered"))
        assert decode.wait(60) == 0
        assert end_of["recovered"] >= 1 and end_of["wrong"] == 0, end_of
    finally:
        kill(prefill)


def test_replicated_log_survives_a_follower_that_stops_and_is_restarted():
    names = [f"log-{OWN}-{i}" for i in range(2)]
    count = 200000
    for _ in range(10):
        followers = [example("replicated_log", "follow", name) for name in names]
        for follower in followers:
            await_line(follower, "ready")
        leader = example("replicated_log", "lead", count, *names)
        await_line(leader, "committed")
        followers[0].send_signal(signal.SIGSTOP)
        # The leader and the other follower are a majority.
        await_text(leader, f"committed {count}")
        kill(followers[0])
        followers[0] = example("replicated_log", "follow", names[0])
        code, said, why = finish(leader)
        assert code == 0, (said, why)
        found = numbers(re.search(f"{names[0]}: (.*)", said)[1])["found"]
        if found > 1:
            break
        for follower in followers:
            kill(follower)
    else:
        raise AssertionError("in ten runs the leader was done before the follower was stopped")
    for follower in followers:
        last = follower.communicate(timeout=60)[0].splitlines()[-1]
        assert last.endswith(f"applied {count}, wrong 0, the end"), last
        assert follower.returncode == 0


def group(name, size, rounds):
    return [example("all_to_all", name, rank, size, rounds) for rank in range(size)]


def test_all_to_all_ends_when_a_rank_dies_and_can_be_restarted():
    name = f"experts-{OWN}-"
    ranks = group(name, 4, 1000000)
    await_line(ranks[0], "round")
    kill(ranks[2])
    ends = [finish(rank) for rank in ranks[:2] + ranks[3:]]
    assert [code for code, _, _ in ends] == [1, 1, 1], ends
    # The others may notice first that a rank has ended because of rank 2.
    assert any("rank 2" in said for _, said, _ in ends), ends
    for size in (1, 4):
        ends = [finish(rank) for rank in group(name, size, 50)]
        assert [code for code, _, _ in ends] == [0] * size, ends
        last = [numbers(said.splitlines()[-1]) for _, said, _ in ends]
        assert sum(one["computed"] for one in last) == sum(one["sent"] for one in last), last
        assert all(one["sent"] == 256 * 50 and one["wrong"] == 0 for one in last), last


run_tests(globals())
