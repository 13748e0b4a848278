#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests what urma_perf --self measures, and beside what: urma_perf_measures_test.py URMA_PERF"""

import csv
import io
import os
import pathlib
import tempfile

from running import kill, run_tests, start
from urma_perf_runs import CALLS, PROGRAM, STAGES, results, run, stages_of


def test_one_test_with_limit():
    (result,) = results("--self", "write_imm_lat", "--size", "64", "--seconds", "0.2", "--limit")
    assert result["test"] == "write_imm_lat" and result["size_bytes"] == 64
    assert result["limit"] > 0 and result["times_limit"] > 0
    assert len(result["rounds"]) >= 5
    for one in result["rounds"]:
        assert one["limit"] > 0 and one["times_limit"] > 0


def test_every_limit():
    """The loops of --limit run between the rounds of works."""
    sizes = [8, 64, 4096, 65536, 1 << 20]
    for device, test, patterns in (
            ("cxl:", "send_lat", ["inline ring"] + 3 * ["message, copied"]),
            ("cxl:", "write_imm_lat", 2 * ["write, slot"] + 3 * ["message, read"]),
            ("cxl:", "write_lat", 5 * ["copy"]),
            ("cxl:", "read_lat", 5 * ["copy"]),
            ("cxl:", "lane_write_lat", 5 * ["copy"]),
            ("cxl:", "lane_read_lat", 5 * ["copy"]),
            ("cxl:", "write_bw", 5 * ["copy"]),
            ("cxl:", "read_bw", 5 * ["copy"]),
            ("cxl:", "write_lat --private", 2 * ["data, slot"] + 3 * ["message, slot"]),
            ("cxl:", "read_lat --private", 2 * ["data, slot"] + 3 * ["message, slot"]),
            ("cxl:", "send_bw", 2 * ["stamped ring"] + 2 * ["two-copy pipe"]),
            ("cxl:", "write_bw --private", 2 * ["stamped ring"] + 3 * ["two-copy pipe"]),
            ("cxl:", "read_bw --private", 2 * ["stamped ring"] + 3 * ["two-copy pipe"]),
            ("cxl:", "wake_lat", 4 * ["futex wake"]),
            # A wrapper maps no memory.
            ("fault(seed=1):cxl:", "write_bw", 2 * ["stamped ring"] + 3 * ["two-copy pipe"]),
            ("udp:", "write_bw", 2 * ["udp sendmmsg"] + 3 * ["udp trains"]),
            ("udp:", "wake_lat", 4 * ["udp wake"])):
        some = sizes[:len(patterns)]
        done = results("--self", *test.split(), "--device", device, "--seconds", "0.02", "--limit",
                       "--rounds", "2", "--size", ",".join(map(str, some)))
        assert [result["size_bytes"] for result in done] == some
        assert [result["limit_pattern"] for result in done] == patterns, (device, test)
        assert all(result["mapped"] == (device == "cxl:" and "--private" not in test)
                   for result in done), (device, test)
        assert all(result["limit"] > 0 and result["device"] == device for result in done)


def test_limit_with_crc():
    """--summed names another limit, which either side may receive, on a wrapped device, too."""
    for device, test in (("udp:", "write_bw"), ("fault(seed=1):udp:", "read_bw")):
        done = results("--self", test, "--device", device, "--seconds", "0.05", "--rounds", "2",
                       "--size", "1K,1M", "--limit", "--summed")
        assert [result["limit_pattern"] for result in done] == 2 * ["udp trains, summed"], done
        assert all(one["limit"] > 0 for result in done for one in result["rounds"]), done


def test_spread():
    (near,) = results("--self", "read_lat", "--seconds", "0.05", "--rounds", "1", "--size", "64")
    (far,) = results("--self", "read_lat", "--seconds", "0.2", "--rounds", "2", "--size", "64",
                     "--spread", "64M", "--limit")
    assert near["spread_bytes"] == 0 and far["spread_bytes"] == 64 << 20
    assert far["mapped"] and far["limit_pattern"] == "copy" and far["limit"] > 0


def test_ordering():
    for device in ("cxl:", "udp:"):
        for order, mode, fence in (("ro", "auto", 0), ("so", "rot", 0), ("so", "roi", 16),
                                   ("chain", "auto", 3)):
            fenced = ["--fence-every", str(fence)] if fence else []
            for test in ("write_bw", "send_bw", "read_bw"):
                (done,) = results("--self", test, "--device", device, "--seconds", "0.05",
                                  "--size", "64", "--rounds", "1", "--order", order, "--mode", mode,
                                  *fenced)
                assert (done["order"], done["mode"], done["fence_every"]) == (order, mode, fence)
                assert done["wrong"] == 0 and done["messages"] > 0


def test_wake_served():
    results("--self", "wake_lat", "--seconds", "0.1", "--served", "--size", "4K")


def test_every_test_on_a_bad_network():
    bad = "fault(loss=2%,dup=1%,reorder=2%,seed=3):udp:"
    for name in ["write_lat", "write_bw", "read_lat", "read_bw", "send_lat", "send_bw",
                 "write_imm_lat", "write_imm_bw", "wake_lat"]:
        done = results("--self", name, "--size", "1,100,20000", "--count", "100", "--device", bad,
                       "--rounds", "2")
        assert [result["size_bytes"] for result in done] == [1, 100, 20000]
    for name in ["write_bw", "read_bw", "send_lat", "wake_lat"]:
        results("--self", name, "--size", "1,100,20000", "--count", "100", "--rounds", "2",
                "--device", bad + "?io=uring")
    for name in ["atomic_lat", "atomic_bw"]:
        done = results("--self", name, "--sweep", "--count", "100", "--device", bad)
        assert [result["size_bytes"] for result in done] == [1, 2, 4, 8]


def test_mapped_memory_that_later_messages_overwrite():
    """A message that a later one has overwritten before the server checked it is not wrong."""
    for _ in range(12):
        results("--self", "write_imm_bw", "--size", "4K", "--count", "400", "--rounds", "1")


def test_atomics_of_each_kind_beside_their_limit():
    for kind in ["fetch-add", "cas"]:
        for name in ["atomic_lat", "atomic_bw", "lane_atomic_lat"]:
            (result,) = results("--self", name, "--atomic", kind, "--limit", "--seconds", "0.1")
            assert result["atomic"] == kind and result["limit_pattern"] == "instruction"
            assert result["limit"] > 0 and result["times_limit"] > 0
    (result,) = results("--self", "atomic_lat", "--private", "--limit", "--seconds", "0.1")
    assert result["limit_pattern"] == "data, slot"


def test_lanes():
    for name in ["lane_write_lat", "lane_read_lat"]:
        done = results("--self", name, "--size", "1,8,1000,20000", "--count", "1000", "--rounds",
                       "2")
        assert [result["calls_per_group"] for result in done] == [64, 64, 16, 1]
        for result in done:
            assert result["mapped"], result
            assert all(one["messages"] == 500 for one in result["rounds"]), result
    for more in (["--threads", "3"], ["--served", "--threads", "2"], ["--auto"], ["--no-verify"]):
        (result,) = results("--self", "lane_read_lat", "--count", "6000", "--rounds", "2", *more)
        assert all(one["messages"] == 3000 for one in result["rounds"]), result
    (result,) = results("--self", "lane_read_lat", "--size", "64", "--spread", "64M", "--limit",
                        "--seconds", "0.1", "--rounds", "2")
    assert result["limit_unit"] == "us" and result["times_limit"] > 0, result
    done = results("--self", "lane_atomic_lat", "--sweep", "--count", "20000")
    assert [result["size_bytes"] for result in done] == [1, 2, 4, 8]


def test_profile():
    for device in ("cxl:", "udp:"):
        for name in ("write_lat", "write_imm_lat", "send_lat", "write_bw", "read_bw"):
            (result,) = results("--self", name, "--device", device, "--size", "64", "--seconds",
                                "0.1", "--rounds", "2", "--profile")
            works = result["profile"]["works"]
            assert works == sum(one["messages"] for one in result["rounds"]) or \
                result["discarded_rounds"] > 0
            client = stages_of(result["profile"]["client"], works)
            server = stages_of(result["profile"]["server"], works)
            assert client["build"] == works, (name, client)
            if name.endswith("_lat"):
                assert client["post"] == works, (name, client)
            assert 0 < client["poll_found"] <= works * 2, (name, client)
            assert client["wait"] == 0 and server["wait"] == 0
            assert client["settle"] == client["send"] == client["take"], (name, client)
            if name in ("write_imm_lat", "send_lat"):
                assert server["build"] >= works and server["post"] >= works, (name, server)
    (result,) = results("--self", "write_lat", "--size", "64", "--seconds", "0.1")
    assert "profile" not in result


def test_profile_with_threads_that_sleep():
    for threads in ("1", "2"):
        (result,) = results("--self", "write_bw", "--device", "udp:", "--served", "--profile",
                            "--threads", threads, "--seconds", "0.1", "--limit")
        assert result["profile"]["client"]["threads"] == int(threads)
        client = stages_of(result["profile"]["client"], result["profile"]["works"])
        assert client["wait"] > 0 and client["settle"] > 0


def test_profile_table():
    done = run("--self", "write_imm_lat", "--size", "8,64", "--seconds", "0.1", "--rounds", "1",
               "--profile")
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    for side in ("client", "server"):
        assert sum(line.startswith(f"  {side}: ") for line in lines) == 2, done.stdout
    # Each part of each table adds up.
    shares, sums = [], []
    for line in lines:
        words = line.split()
        if len(words) == 5 and words[0] in CALLS + STAGES:
            shares.append(float(words[4].rstrip("%")))
        if words and words[0] in ("elsewhere", "no_pass"):
            sums.append(sum(shares))
            shares = []
    assert len(sums) == 8 and not shares, done.stdout
    assert all(97 < one < 103 for one in sums), (sums, done.stdout)
    everything = run("--help-all").stdout
    for name in CALLS + STAGES:
        assert name in everything, name


def test_messages_that_may_be_lost():
    for device in ["cxl:", "udp:"]:
        for name in ["send_lat", "send_bw"]:
            (result,) = results("--self", name, "--mode", "uno", "--size", "64", "--count", "5000",
                                "--device", device, "--rounds", "2")
            assert result["mode"] == "uno" and 0 <= result["lost_percent"] < 100
            assert result["counters"]["client_datagrams_sent"] >= 5000
            assert result["counters"]["retransmitted"] < 100  # of what is beside
    (result,) = results("--self", "send_bw", "--mode", "uno", "--size", "64", "--count", "20000",
                        "--rounds", "2", "--device", "fault(loss=30%,seed=3):udp:")
    assert result["lost_percent"] > 15, result["lost_percent"]
    (result,) = results("--self", "send_lat", "--mode", "uno", "--size", "64", "--count", "40",
                        "--rounds", "1", "--device", "fault(loss=30%,seed=3):udp:")
    assert result["lost_percent"] > 5, result["lost_percent"]
    # Messages that count as lost arrive later, between those that followed.
    results("--self", "send_lat", "--mode", "uno", "--size", "64", "--count", "6",
            "--rounds", "1", "--device", "fault(jitter=150ms,seed=3):udp:")


def test_several_numbers_of_jetties_have_rows_of_each_size():
    rows = results("--self", "write_imm_lat", "--jetties", "1,3", "--size", "8,64", "--count",
                   "100", "--rounds", "1")
    assert [(row["jetties"], row["size_bytes"]) for row in rows] == [(1, 8), (1, 64), (3, 8),
                                                                     (3, 64)], rows


def test_threads_jetties_and_signals():
    results("--self", "send_bw", "--size", "64", "--count", "20000", "--threads", "3",
            "--jetties", "8")
    results("--self", "write_bw", "--size", "4K", "--count", "20000", "--depth", "64",
            "--signal-every", "16")
    (result,) = results("--self", "send_bw", "--size", "8", "--count", "20000", "--depth", "256",
                        "--signal-every", "64")
    assert result["depth"] == 256 and result["signal_every"] == 64
    for name in ("send_lat", "write_imm_lat"):
        results("--self", name, "--count", "2000", "--signal-every", "32", "--jetties", "3")
        (result,) = results("--self", name, "--count", "2000", "--auto")
        assert result["threads_mode"] == "automatic"
    results("--self", "write_imm_bw", "--size", "4K", "--count", "5000", "--served")
    results("--self", "read_bw", "--size", "64K", "--count", "500", "--served", "--no-verify")


def test_several_engines():
    """Each thread of the client has an engine, and so has each thread of the server."""
    for device in ("cxl:", "udp:"):
        for name in ("write_bw", "send_bw", "write_imm_bw", "read_bw", "atomic_bw"):
            (result,) = results("--self", name, "--count", "3000", "--threads", "3", "--rounds",
                                "1", "--device", device + "?engines=3")
            assert result["threads_mode"] == "automatic", result
        # Sides may have different numbers of engines.
        for ours, theirs in (("", "?engines=3"), ("?engines=2", "")):
            results("--self", "send_lat", "--count", "500", "--jetties", "4", "--rounds", "1",
                    "--auto", "--device", device + ours, "--peer-device", device + theirs)


def test_largest_messages():
    """A side that fills or compares a gigabyte is not considered dead meanwhile: for reads the
    server fills, for writes it compares. Each commit chooses one."""
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if available < 4 << 30:
        print("(skipped: 1G messages need 4 GiB of memory)")
        return
    name = ("read_lat", "write_lat")[int(os.environ.get("URMA_TEST_SEED", "0")) % 2]
    results("--self", name, "--size", "1G", "--count", "1", "--rounds", "1", limit=150)


def test_blocks_of_a_cache():
    """Blocks as one list of writes and as scatter lists, over each kind of medium, in each form."""
    plan = ("kv", "--block", "100K", "--blocks", "40", "--count", "4", "--rounds", "2")
    fields = ("blocks", "block_bytes", "entries", "works", "works_at_once")
    rows = [(40, 102400, 0, 40, 40), (40, 102400, 1, 40, 1), (40, 102400, 16, 3, 1),
            (40, 102400, 128, 3, 3)]
    for more in ([], ["--private"], ["--served"], ["--device", "udp:"],
                 ["--device", "fault(loss=2%,seed=3):udp:"], ["--order", "so"]):
        found = results("--self", *plan, "--entries", "1,16,128", *more)
        assert [tuple(row[field] for field in fields) for row in found] == rows, found
        for row in found:
            assert row["test"] == "kv" and row["size_bytes"] == 40 * 102400, row
            assert row["mapped"] == (not more or more[0] in ("--served", "--order")), (more, row)
            assert row["messages"] >= 2, row  # a round that lacked a processor does not count
            for field in ("prep_us", "post_us", "one_write_us", "of_one_write"):
                assert row[field] > 0, (field, row)
            assert abs(row["of_one_write"] * row["p50_us"] / row["one_write_us"] - 1) < 0.01, row
    assert len(results("--self", *plan, "--sweep")) == 9
    done = run("--self", *plan, "--entries", "32")
    lines = done.stdout.splitlines()
    assert lines[0].split()[:3] == ["blocks", "entries", "works"], done
    assert [line.split()[:3] for line in lines[2:4]] == [["40x100K", "-", "40"],
                                                         ["40x100K", "32", "2"]], done
    assert "a work gathers at most 16 blocks" in done.stdout, done
    (row,) = csv.DictReader(io.StringIO(run("--self", *plan, "--csv").stdout))
    assert row["blocks"] == "40" and float(row["prep_us"]) > 0 and float(row["post_us"]) > 0, row
    assert run("--self", *plan, "--fail-if", "of_one<1000").returncode == 3


def test_blocks_of_a_file():
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place, "plan.txt")
        short = ("--count", "3", "--rounds", "1")
        path.write_text("# target source bytes\n1M 0 100001\n0 4K 64K\n200K 8 1\n10K 30\n")
        for entries in ([], ["--entries", "4"]):
            for row in results("--self", "kv", "--plan", str(path), *entries, *short):
                assert row["blocks"] == 33 and row["block_bytes"] == 0, row
                assert row["size_bytes"] == 100001 + 65536 + 1 + 30 * 10240, row
        assert "33 blocks" in run("--self", "kv", "--plan", str(path), *short).stdout
        # A server of its own, which learns the blocks from the client.
        window = f"cxl:{place}/window?size=64M"
        server = start(PROGRAM, "server", "--once", "--device", window)
        try:
            assert "urma_perf server at" in server.stdout.readline()
            (row,) = results("kv", "--plan", str(path), "--device", window, *short)
            assert row["blocks"] == 33 and row["mapped"], row
        finally:
            kill(server)
        for text, why in (("8 1\n0 4 8\n", "line 2: the offset at the client, 4, is not a"),
                          ("0 0 8\n\n4 0 8\n", "line 3: its block at 4 overlaps"),
                          ("\x1b[31m\n", "line 1: "), ("", "has no blocks")):
            path.write_text(text)
            done = run("--self", "kv", "--plan", str(path))
            assert done.returncode == 2 and why in done.stderr and "Fix: " in done.stderr, done
            assert "\x1b" not in done.stderr and done.stdout == "", done


run_tests(globals())
