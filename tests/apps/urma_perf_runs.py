# SPDX-License-Identifier: Apache-2.0
"""Runs urma_perf, the first argument of the script, and checks what every result has."""

import json
import subprocess
import sys

PROGRAM = sys.argv[1]
FIELDS = ["test", "device", "size_bytes", "p50_us", "p90_us", "p99_us", "p99_9_us", "max_us",
          "messages_per_second", "bytes_per_second", "wrong", "counters"]
ENVIRONMENT = ["kernel", "cpu_model", "cpus", "governor", "compiler", "library_version", "device",
               "date", "command", "autogroup", "run_queue_wait_percent"]


def command(*arguments, within=None):
    """Runs the program, in the network namespace of this name if one is given."""
    return (["ip", "netns", "exec", within] if within else []) + [PROGRAM, *arguments]


def run(*arguments, limit=180, within=None):
    return subprocess.run(command(*arguments, within=within), capture_output=True, text=True,
                          timeout=limit)


def results(*arguments, limit=180, within=None):
    done = run(*arguments, "--json", limit=limit, within=within)
    assert done.returncode == 0, (arguments, done)
    whole = json.loads(done.stdout)
    assert whole["schema"] == "urma_perf/1"
    for field in ENVIRONMENT:
        assert field in whole["environment"], field
    for result in whole["results"]:
        for field in FIELDS:
            assert field in result, field
        assert result["wrong"] == 0
        assert result["messages_per_second"] > 0
        assert 0 < result["p50_us"] <= result["p99_us"] <= result["max_us"]
        assert all(isinstance(value, int) for value in result["counters"].values())
    return whole["results"]


CALLS = ["build", "post", "poll_found", "poll_nothing", "wait", "over_1ms", "timing",
         "elsewhere"]
STAGES = ["copy_in_post", "send_ahead", "look", "receive", "commands", "take", "timers", "send",
          "settle", "finish", "report", "over_1ms", "timing", "no_pass"]


def stages_of(side, works):
    """Checks one side of a profile. Returns how often each stage ran."""
    assert side["seconds"] > 0 and side["cost_ns"] > 0
    times = {}
    for part, names, threads in (("calls", CALLS, side["threads"]), ("device", STAGES, 1)):
        assert [row["stage"] for row in side[part]] == names
        measured = side["seconds"] * 1e9 * threads
        # A row of the rest makes each part complete. A stage may have begun just before the round.
        total = sum(row["total_ns"] for row in side[part])
        assert 0.999 < total / measured < 1.05, (part, side)
        assert abs(sum(row["share"] for row in side[part]) - total / measured) < 1e-6
        for row in side[part]:
            assert row["total_ns"] >= 0 and row["share"] >= 0, row
            assert abs(row["ns_per_work"] * works - row["total_ns"]) <= 1e-6 * row["total_ns"], row
            if row["stage"] not in ("timing", "over_1ms"):
                times[row["stage"]] = row["times"]
        (timing,) = (row for row in side[part] if row["stage"] == "timing")
        assert timing["times"] == sum(row["times"] for row in side[part]
                                      if row["stage"] not in ("timing", "build", "over_1ms"))
    return times
