#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests rates, histograms and drawings of urma_perf: urma_perf_results_test.py URMA_PERF ROOT"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

from running import await_line, end, finish, kill, run_tests, start

PROGRAM = sys.argv[1]


def run(*arguments, limit=60):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=limit)


def result(*arguments):
    done = run(*arguments, "--json")
    assert done.returncode == 0, (arguments, done)
    (one,) = json.loads(done.stdout)["results"]
    assert one["wrong"] == 0, one
    return one


def test_rate():
    """Each kind of work is posted at the asked rate, by one thread and by several."""
    for test, device, more in (("write_bw", "cxl:", []), ("read_lat", "udp:", []),
                               ("send_bw", "udp:", ["--served"]), ("atomic_bw", "cxl:", []),
                               ("write_imm_bw", "udp:", ["--threads", "2"])):
        one = result("--self", test, "--size", "8", "--device", device, "--rate", "2K",
                     "--seconds", "0.3", "--rounds", "3", *more)
        assert one["rate"] == 2000, one
        assert all(part["messages"] <= 201 for part in one["rounds"]), one
        assert 0 < one["rate_percent"] <= 101, one
        assert one["rate_reached"] == (one["rate_percent"] >= 97.5 and one["unsent"] == 0), one
    one = result("--self", "write_lat", "--rate", "1K", "--count", "60", "--rounds", "2")
    assert all(part["messages"] == 30 for part in one["rounds"]), one
    assert "rate" not in result("--self", "write_lat", "--count", "60")


def test_short_rounds_on_a_busy_machine():
    """Works that are due before this process gets a processor are posted later."""
    busy = [start("nice", "-n", "10", "sh", "-c", "while :; do :; done")
            for _ in range(4 * os.cpu_count())]
    try:
        for _ in range(4):
            done = subprocess.run(["nice", "-n", "15", PROGRAM, "--self", "write_lat",
                                   "--rate", "5K", "--count", "10"], capture_output=True, text=True)
            assert done.returncode == 0, done
    finally:
        for process in busy:
            kill(process)


def test_rate_that_is_not_reached():
    """No sender reaches it: the result says so, and latencies are those of a queue."""
    arguments = ("--self", "read_bw", "--size", "1M", "--rate", "1M", "--seconds", "0.4",
                 "--rounds", "2")
    one = result(*arguments)
    assert not one["rate_reached"] and one["unsent"] > 1000, one
    assert one["rate_percent"] < 50, one
    # A closed loop would hide that works waited for most of a round.
    assert one["max_us"] > 100_000, one
    done = run(*arguments)
    assert done.returncode == 0 and "THE RATE WAS NOT REACHED" in done.stdout, done
    done = run(*arguments, "--fail-if", "rate_percent<98")
    assert done.returncode == 3 and "rate_percent is " in done.stderr, done


def test_server_that_dies_during_a_rate():
    server = start(PROGRAM, "server", "--device", "udp:127.0.0.1:0")
    at = await_line(server, "measure it by").split(" at ")[1].split(";")[0]
    with tempfile.TemporaryDirectory() as folder:
        client = start(PROGRAM, "write_bw", at, "--size", "64", "--rate", "10K", "--seconds", "60",
                       "--json", "--hist", f"{folder}/out.hgrm")
        time.sleep(0.7)
        kill(server)
        code, out, err = finish(client)
        assert code == 5 and "Fix: " in err and out == "", (code, out, err)
        assert os.listdir(folder) == [], "a part of a result was left"


def test_histogram_file():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "out.hgrm")
        for more in ((), ("--threads", "3")):
            one = result("--self", "write_bw", "--size", "64", "--count", "30000", "--rounds", "2",
                         "--hist", str(path), *more)
            lines = path.read_text().splitlines()
            assert lines[0].split() == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
            rows = [line.split() for line in lines[2:] if not line.startswith("#")]
            assert all(len(row) == 4 for row in rows[:-1]), rows
            # All values of all threads, and the same percentiles as in the JSON.
            assert int(rows[-1][2]) == one["messages"], (rows[-1], one)
            assert abs(float(rows[-1][0]) - one["max_us"]) < 0.001, (rows[-1], one)
            (p50,) = [float(row[0]) for row in rows if float(row[1]) == 0.5]
            assert abs(p50 / one["p50_us"] - 1) < 0.003, (p50, one)
            assert f"Total count    = {one['messages']:12}]" in lines[-2], lines[-2]
        assert os.listdir(folder) == ["out.hgrm"]


def test_drawings():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "out.svg")
        for sizes, titles in (("64", ["Latency by percentile"]),
                              ("64,4K", ["Latency", "Throughput"])):
            done = run("--self", "write_bw", "--size", sizes, "--count", "3000", "--rounds", "1",
                       "--plot", str(path))
            assert done.returncode == 0, done
            tree = xml.etree.ElementTree.parse(path).getroot()
            assert tree.tag == "{http://www.w3.org/2000/svg}svg"
            texts = [one.text for one in tree.iter("{http://www.w3.org/2000/svg}text")]
            assert all(title in texts for title in titles), texts
            assert any("liburma" in text for text in texts), texts
            tags = {one.tag.split("}")[1] for one in tree.iter()}
            assert tags <= {"svg", "rect", "line", "text", "polyline", "circle"}, tags
        assert os.listdir(folder) == ["out.svg"]


def test_intervals():
    """--json-stream prints an object each second at once, so a run that is killed leaves them."""
    client = start(PROGRAM, "--self", "write_lat", "--device", "udp:", "--seconds", "60",
                   "--json-stream")
    lines = [json.loads(client.stdout.readline()) for _ in range(3)]
    kill(client)
    before = 0
    for line in lines:
        assert (line["type"], line["schema"]) == ("interval", "urma_perf/1"), line
        assert (line["test"], line["device"], line["size_bytes"]) == ("write_lat", "udp:", 64), line
        assert line["elapsed_seconds"] > before and line["interval_seconds"] >= 1, line
        before = line["elapsed_seconds"]
        rate = line["messages_per_second"]
        assert abs(line["bytes_per_second"] - 64 * rate) <= 1e-9 * rate, line
        assert abs(rate * line["measured_seconds"] - line["messages"]) <= 1e-6 * rate + 1e-6, line
    works = [line["counters"].get("client_works", 0) for line in lines]
    assert sum(line["messages"] for line in lines) > 0 and sum(works) > 0, lines
    # The result ends the stream of its size, and Ctrl-C does not leave it out.
    client = start(PROGRAM, "--self", "write_lat", "--size", "8", "--seconds", "60", "--rounds",
                   "600", "--json-stream")
    first = client.stdout.readline()
    code, out, err = end(client)
    types = [json.loads(line)["type"] for line in [first, *out.splitlines()]]
    assert code == 130 and err == "", (code, err)
    assert types[-1] == "result" and set(types[:-1]) == {"interval"}, types


def test_intervals_that_cannot_be_printed():
    """The run ends with the first one, however long it was to measure."""
    for target in ("/dev/full", None):
        with open("/dev/full", "w") as full:
            client = start(PROGRAM, "--self", "write_lat", "--seconds", "100", "--json-stream",
                           stdout=full if target else subprocess.PIPE)
        if not target:
            client.stdout.close()
        assert client.wait(timeout=60) == 1
        err = client.stderr.read()
        client.stderr.close()
        assert "Fix: " in err and "--json-stream: writing to stdout" in err, err


def test_progress_without_a_terminal():
    """Plain lines on stderr, only with the table; -q leaves them out."""
    one = ("--self", "write_lat", "--seconds", "1.1", "--rounds", "1")
    done = run(*one)
    lines = done.stderr.splitlines()
    assert lines and all(line.startswith("write_lat cxl: 64: ") for line in lines), done
    assert " msg/s, " in done.stderr and "\x1b" not in done.stderr, done
    done = run("--self", "send_bw", "--pattern", "incast", "--processes", "3", "--seconds", "1.8")
    assert done.stderr.startswith("send_bw cxl: 64K: 1 s"), done
    for quiet in ("-q", "--csv"):
        assert run(*one, quiet).stderr == "", quiet
    lines = run(*one, "-q", "--json-stream").stdout.splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["result"], lines


def test_files_that_cannot_be_written():
    for option in ("--hist", "--plot"):
        for path in ("/nonexistent/x", "/dev/full"):
            done = run("--self", "write_lat", "--count", "10", option, path)
            assert done.returncode == 1 and f"{option} {path}" in done.stderr, done
            assert "Fix: " in done.stderr, done
    for path in ("/proc/x", ".", "/dev/null/x", "", "/" + 300 * "x"):
        for option in ("--json-file", "--hist", "--plot"):
            done = run("--self", "write_lat", "--count", "10", option, path)
            assert done.returncode == (1 if path else 2) and done.stdout == "", done
            assert f"{option}" in done.stderr and "Fix: " in done.stderr, done
    # The path is tried before anything is measured.
    assert run("--self", "write_lat", "--plot", "/nonexistent/x").stdout == ""


def test_output_that_cannot_be_printed():
    """No part of a result passes for all of it, in no form and in no mode."""
    one = ("--self", "write_lat", "--count", "10", "--rounds", "1")
    reg = ("reg", "--self", "--size", "4K", "--seconds", "0.05")
    for words in (one, (*one, "--json"), (*one, "--csv"), (*one, "--json-stream"),
                  ("--self", "write_bw", "--bidirectional", "--count", "10"), reg,
                  (*reg, "--json"), ("--selftest", "--device", "cxl:"),
                  ("--budget", "--jetties", "256"), ("--help",), ("--help-all",), ("--version",)):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, *words], stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=60)
        assert done.returncode == 1, (words, done)
        assert "writing " in done.stderr and "Fix: free some space" in done.stderr, (words, done)


def test_schema():
    """Each object that urma_perf prints is as docs/urma_perf.schema.json says, and the document
    describes each field."""
    try:
        import jsonschema
    except ImportError:
        print("(skipped: install python3-jsonschema)")
        return
    schema = json.loads(pathlib.Path(sys.argv[2], "docs/urma_perf.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)

    def check(kind, text):
        one = {**schema, "anyOf": [{"$ref": f"#/$defs/{kind}"}]}
        jsonschema.Draft202012Validator(one).validate(json.loads(text))

    short = ("--count", "100", "--rounds", "1")
    for arguments in (("--self", "write_bw", "--size", "8,4K", "--limit", *short),
                      ("--self", "lane_read_lat", *short),
                      ("--self", "write_lat", "--rate", "10K", *short),
                      ("--self", "send_lat", "--profile", *short),
                      ("--self", "kv", "--block", "64K", "--blocks", "40", "--entries", "1,32",
                       "--count", "2", "--rounds", "1"),
                      ("--self", "write_lat", "--device", "paths():udp:+udp:", *short),
                      ("--self", "atomic_lat", "--device", "fault(loss=5%,seed=7):udp:", *short),
                      ("--self", "write_bw", "--bidirectional", "--count", "100"),
                      ("--self", "send_bw", "--pattern", "incast", "--size", "64", "--count",
                       "100")):
        done = run(*arguments, "--json")
        assert done.returncode == 0, (arguments, done)
        check("run", done.stdout)
    for arguments in (("--self", "write_lat", "--size", "8,64", *short),
                      ("--self", "write_lat", "--device", "fault(loss=5%,seed=7):udp:", "--seconds",
                       "1.5"),
                      ("--self", "write_bw", "--bidirectional", "--seconds", "1.5")):
        types = []
        for line in run(*arguments, "--json-stream").stdout.splitlines():
            types.append(json.loads(line)["type"])
            check(types[-1], line)
        assert types.count("result") == (1 if "1.5" in arguments else 2), types
        assert "interval" in types or "1.5" not in arguments, types
    check("registration", run("reg", "--self", "--size", "4K", "--seconds", "0.05",
                              "--json").stdout)
    check("selftest", run("--selftest", "--device", "cxl:", "--json").stdout)
    check("ping", run("--ping", "127.77.77.77", "--count", "1", "--json").stdout)
    # A field that is not described, or of another type, is found.
    whole = json.loads(run("--self", "write_lat", *short, "--json").stdout)
    for wrong in ({"new": 1}, {"p50_us": "5"}):
        whole["results"][0].update(wrong)
        try:
            check("run", json.dumps(whole))
        except jsonschema.ValidationError:
            continue
        raise AssertionError(f"the schema accepts {wrong}")


run_tests(globals())
