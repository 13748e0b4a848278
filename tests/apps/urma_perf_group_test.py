#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests urma_perf between several processes, --selftest and --ping: urma_perf_group_test.py PATH"""

import csv
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from running import await_line, end, finish, kill, run_tests, start

PROGRAM = sys.argv[1]


def run(*arguments, limit=60):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=limit)


def results(*arguments):
    done = run(*arguments, "--json")
    assert done.returncode == 0, (arguments, done)
    each = json.loads(done.stdout)["results"]
    assert all(one["wrong"] == 0 and one["messages"] > 0 for one in each), each
    return each


def start_server():
    server = start(PROGRAM, "server", "--device", "udp:127.0.0.1:0")
    return server, await_line(server, "measure it by").split(" at ")[1].split(";")[0]


def check_sum(one):
    """The result is the sum of its flows."""
    for field in ("messages_per_second", "bytes_per_second"):
        total = sum(flow[field] for flow in one["flows"])
        assert abs(total / one[field] - 1) < 0.001, one
    least = min(flow["p50_us"] for flow in one["flows"])
    most = max(flow["p50_us"] for flow in one["flows"])
    assert least * 0.998 <= one["p50_us"] <= most * 1.002, one


def test_both_directions():
    (one,) = results("--self", "write_bw", "--bidirectional", "--size", "4K", "--seconds", "0.3")
    assert one["traffic"] == "bidirectional" and one["processes"] == 2, one
    assert [(flow["from"], flow["to"], flow["test"]) for flow in one["flows"]] == [
        (0, 1, "write_bw"), (1, 0, "read_bw")]
    check_sum(one)
    server, at = start_server()
    try:
        (one,) = results("read_bw", at, "--bidirectional", "--size", "4K", "--seconds", "0.3")
        check_sum(one)
        done = run("write_bw", at, "--bidirectional", "--size", "4K", "--seconds", "0.3")
        assert "bidirectional, 2 processes: the sum of 2 flows" in done.stdout, done
        assert "0 > 1 write_bw " in done.stdout and "1 > 0 read_bw " in done.stdout, done
        assert max(map(len, done.stdout.splitlines())) <= 80, done.stdout
    finally:
        kill(server)


def test_patterns():
    for pattern, number, pairs in (("one_to_one", 4, [(0, 2), (1, 3)]),
                                   ("incast", 3, [(1, 0), (2, 0)]),
                                   ("all_to_all", 2, [(0, 1), (1, 0)])):
        (one,) = results("--self", "send_bw", "--size", "64", "--pattern", pattern, "--processes",
                         str(number), "--seconds", "0.2")
        assert [(flow["from"], flow["to"]) for flow in one["flows"]] == pairs, one
        assert one["traffic"] == pattern and one["processes"] == number, one
        check_sum(one)


def test_table_of_latencies():
    """The same figures as text, as values and as a drawing."""
    arguments = ("--self", "write_lat", "--pattern", "incast", "--processes", "2,3", "--size",
                 "4,8M", "--seconds", "0.1")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "out.svg")
        done = run(*arguments, "--plot", str(path))
        assert done.returncode == 0, done
        lines = done.stdout.splitlines()
        at = lines.index("p50 us, by size and processes")
        table = [line.split() for line in lines[at + 1:at + 4]]
        assert table[0] == ["size", "2", "3"], table
        assert [row[0] for row in table[1:]] == ["4", "8M"], table
        assert all(float(cell) > 0 for row in table[1:] for cell in row[1:]), table
        assert "write_lat cxl: incast 3, p50" in path.read_text()
    rows = list(csv.DictReader(io.StringIO(run(*arguments, "--csv").stdout)))
    assert [(row["processes"], row["size_bytes"]) for row in rows] == [
        (processes, size) for processes in "23" for size in ("4", str(8 << 20))], rows
    assert all(row["traffic"] == "incast" and float(row["p50_us"]) > 0 for row in rows), rows


def test_both_directions_of_other_tests():
    """Each of two processes here sends to the other one."""
    for test in ("send_bw", "write_imm_bw", "atomic_bw", "send_lat"):
        (one,) = results("--self", test, "--bidirectional", "--size", "8", "--seconds", "0.2")
        assert one["traffic"] == "bidirectional" and one["processes"] == 2, one
        assert [(flow["from"], flow["to"], flow["test"]) for flow in one["flows"]] == [
            (0, 1, test), (1, 0, test)], one
        check_sum(one)
    done = run("send_bw", "--bidirectional")
    assert done.returncode == 2 and "urma_perf --self send_bw --bidirectional" in done.stderr, done


def test_group_that_fails():
    """A flow without a server or with one that dies leaves no result, and no process."""
    done = run("write_bw", "127.77.77.77", "--bidirectional", "--json")
    assert done.returncode == 5 and done.stdout == "" and "Fix: " in done.stderr, done
    server, at = start_server()
    client = start(PROGRAM, "write_bw", at, "--bidirectional", "--seconds", "60")
    time.sleep(1)
    senders = pathlib.Path(f"/proc/{client.pid}/task/{client.pid}/children").read_text().split()
    assert len(senders) == 2, senders
    kill(server)
    code, out, err = finish(client, timeout=40)
    assert code == 5 and "write_bw" not in out and "one of 2 senders has no result" in err, (
        code, out, err)
    assert not any(os.path.exists(f"/proc/{one}") for one in senders)
    for one, text in ((["--pattern", "ring"], "one of one_to_one"),
                      (["--pattern", "incast", "--limit"], "leave --limit out"),
                      (["--pattern", "one_to_one", "--processes", "3"], "--processes 4"),
                      (["--pattern", "incast", "--processes", "1"], "from 2 to 64"),
                      (["--processes", "4"], "give --pattern incast"),
                      (["--bidirectional", "--pattern", "incast"], "leave one of them out")):
        done = run("--self", "write_bw", *one)
        assert done.returncode == 2 and text in done.stderr, done
    for one in (["send_bw", "--bidirectional"], ["write_bw", "--pattern", "incast"]):
        done = run(*one)
        assert done.returncode == 2 and "Fix: " in done.stderr, done


def test_ctrl_c_ends_all_processes():
    """It comes to all processes of the terminal, or, by kill, to one."""
    for interrupt in (os.killpg, os.kill):
        client = start(PROGRAM, "--self", "write_bw", "--size", "4K", "--pattern", "incast",
                       "--seconds", "60", "--json", process_group=0)
        time.sleep(1)
        interrupt(client.pid, signal.SIGINT)
        code, out, err = finish(client, timeout=20)
        assert code == 130, (code, out, err)
        whole = json.loads(out)
        assert whole["environment"]["interrupted"] and len(whole["results"]) == 1, whole


def test_selftest():
    done = run("--selftest")
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"PASS: 27 checks in \d+\.\d s", lines[-1]), done.stdout
    assert all(line.startswith("ok    ") for line in lines[:-1]), done.stdout
    for device in ("cxl:", "udp:", "fault(loss=5%,seed=7):udp:"):
        for test in ("write_bw 64K", "read_lat 64", "send_bw 4K", "write_imm_lat 1"):
            (line,) = [one for one in lines if one.startswith(f"ok    {device} {test}: ")]
            assert re.search(r": [1-9]\d* messages, each byte right$", line), line


def test_selftest_that_fails():
    done = run("--selftest", "--device", "fault(corrupt=oops):udp:")
    assert done.returncode == 3 and "FAIL: 1 of 1 checks in " in done.stdout, done
    assert "Fix: urma_info --doctor" in done.stderr, done
    done = run("--selftest", "--device", "nonsense", "--json")
    whole = json.loads(done.stdout)
    assert done.returncode == 3 and whole["passed"] is False, done
    assert "Fix: " in whole["checks"][0]["why"], whole
    for wrong in (["--selftest", "write_lat"], ["--selftest", "--size", "64"],
                  ["--selftest", "--csv"], ["--selftest", "--json-file", "x"]):
        done = run(*wrong)
        assert done.returncode == 2 and "Fix: " in done.stderr, done


def test_ping():
    server, at = start_server()
    done = run("--ping", at, "--count", "2")
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines[1:3]] == ["answer 1", "answer 2"], lines
    assert f"--- {at}: 2 asked, 2 answered, 0 % lost, " in lines[3], lines
    assert re.fullmatch(r"round trip min/avg/max/mdev = [\d.]+/[\d.]+/[\d.]+/[\d.]+ us", lines[4])
    whole = json.loads(run("--ping", at, "--count", "1", "--json").stdout)
    assert whole["answered"] == 1 and 0 < whole["min_us"] == whole["max_us"], whole
    # Ctrl-C prints the summary. A server that has ended answers nothing more.
    client = start(PROGRAM, "--ping", at)
    await_line(client, "ping ")
    await_line(client, "answer 1: ")
    kill(server)
    assert any("none" in client.stdout.readline() for _ in range(2))
    code, out, err = end(client)
    assert code == 0 and " 1 answered, " in out, (code, out, err)


def test_ping_without_an_answer():
    done = run("--ping", "127.77.77.77", "--count", "1")
    assert done.returncode == 1 and "1 asked, 0 answered, 100 % lost" in done.stdout, done
    assert "Fix: start it there" in done.stderr, done
    for wrong in (["--ping", "local/host"], ["--ping", "write_lat", "localhost"],
                  ["--ping", "--self"], ["--ping", "--depth", "4"], ["--ping", "--hist", "x"]):
        done = run(*wrong)
        assert done.returncode == 2 and "Fix: " in done.stderr, (wrong, done)


run_tests(globals())
