#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests bench/compare without UCX and libfabric: compare_test.py ROOT. Their output was
recorded."""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(sys.argv[1])
COMPARE = ROOT / "bench/compare"
sys.path.insert(0, str(ROOT / "bench"))

import cases  # noqa: E402
import plot  # noqa: E402
import programs  # noqa: E402
import report  # noqa: E402

UCX = """\
iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
[thread 0]1383,354.667,360.953,360.953,11081.77,11081.77,2770,2770
2000,354.662,361.758,361.201,11057.13,11074.16,2764,2769
"""
PINGPONG = """\
bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
4m      2k      =2k      15g         1.37s  12223.75     343.13       0.00
"""
TESTPMD = """\
Port statistics ====================================
  Throughput (since last show)
  Rx-pps:            0          Rx-bps:            0
  Rx-pps:        44829          Rx-bps:     57382008
  Tx-pps:            0          Tx-bps:            0
  Rx-pps:       400000          Rx-bps:    602112544
  Rx-pps:       600000          Rx-bps:    602112544
"""
# Programs that replace those of UCX and libfabric: they take the same arguments, find each other,
# and print the recorded output.
FAKE = '''#!%s
import json, os, signal, socket, sys, time
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
def option(*names):
    return next(words[words.index(one) + 1] for one in names if one in words)
if name == "dpdk-testpmd":
    open(option("--vdev").split("=")[1].split(",")[0], "a")
    print(%r, flush=True)
    time.sleep(600)
elif words[0] == "server":
    print("measure it by: urma_perf", flush=True)
    time.sleep(600)
elif name == "urma_perf":
    if os.environ.get("FAKE") == "hang":
        time.sleep(600)
    rate = any(word.endswith("bw") for word in words[:2])
    print(json.dumps({"schema": "urma_perf/1", "results": [{
        "size_bytes": int(option("--size")), "wrong": int(os.environ.get("FAKE") == "wrong"),
        "p50_us": 0.3, "messages_per_second": 2e6, "bytes_per_second": 16e6,
        "run_queue_wait_percent": 50 if os.environ.get("FAKE") == "busy" else 1,
        "limit": 3e6 if rate else 0.2, "limit_unit": "messages_per_second" if rate else "us",
        "times_limit": 1.5, "limit_pattern": "a ring"}]}))
elif "127.0.0.1" not in words:
    server = socket.create_server(("127.0.0.1", int(option("-p" if "ucx" in name else "-B"))))
    server.accept()
else:
    socket.create_connection(("127.0.0.1", int(option("-p" if "ucx" in name else "-P"))))
    if os.environ.get("FAKE") == "hang":
        time.sleep(600)
    if os.environ.get("FAKE") == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    print(%r if "ucx" in name else %r)
''' % (sys.executable, TESTPMD, UCX, PINGPONG)


def near(value, expected):
    assert abs(value - expected) <= 1e-9 * abs(expected), (value, expected)


def fails(action, *words):
    try:
        action()
    except programs.Failed as failure:
        assert all(word in str(failure) for word in words), failure
        return
    raise AssertionError("nothing failed: " + " ".join(words))


# ---- the parts of bench/compare


def test_what_ucx_prints():
    figures = cases.uct("put_bw").figures(UCX, 4 << 20)
    near(figures["us"], 354.662)
    near(figures["per_second"], 2769)
    near(figures["bytes_per_second"], 11074.16 * 1048576)
    for output in ("", "ucx_perftest: unrecognized\n", UCX.split("\n")[0], "1,2,3,4,5,6,7,8\n"):
        fails(lambda: programs.Ucx("tag_lat").figures(output, 8), "ucp sm tag_lat", "no figures")


def test_what_fi_pingpong_prints():
    figures = programs.Pingpong().figures(PINGPONG, 4 << 20)
    near(figures["bytes_per_second"], 12223.75e6)
    near(figures["us"], (4 << 20) / 12223.75)
    near(figures["per_second"], 12223.75e6 / (4 << 20))
    small = PINGPONG.split("\n")[0] + "\n8  20k  =20k  312k  0.02s  13.41  0.60  1.68\n"
    near(programs.Pingpong().figures(small, 8)["us"], 8 / 13.41)
    for output in ("", PINGPONG.split("\n")[0], small.replace("13.41", "0.00")):
        fails(lambda: programs.Pingpong().figures(output, 8), "shm", "no figures")


def test_what_urma_perf_prints():
    result = {"size_bytes": 64, "wrong": 0, "p50_us": 5.0, "messages_per_second": 2e6,
              "bytes_per_second": 128e6, "run_queue_wait_percent": 1, "limit": 3e6,
              "limit_unit": "messages_per_second", "times_limit": 1.5, "limit_pattern": "a ring"}

    def figures(schema="urma_perf/1", **more):
        return programs.urma_figures(json.dumps({"schema": schema, "results": [result | more]}))

    near(figures()["limit_bytes_per_second"], 192e6)
    near(figures()["limit_per_second"], 3e6)
    near(figures(limit_unit="bytes_per_second", limit=192e6)["limit_per_second"], 3e6)
    near(figures(limit_unit="us", limit=0.2)["limit_us"], 0.2)
    fails(lambda: figures(wrong=2), "2 messages with WRONG bytes")
    fails(lambda: figures(schema="urma_perf/2"), "Fix: ")
    fails(lambda: programs.urma_figures("oops\n"), "no JSON: oops")


def test_what_testpmd_prints():
    work = programs.Testpmd(programs.VHOST, 146)
    near(work.figures(TESTPMD, 64)["per_second"], 500000)
    near(work.figures(TESTPMD, 64)["bytes_per_second"], 32e6)
    for output in ("", TESTPMD.replace("600000", "0"), "EAL: no memory"):
        fails(lambda: work.figures(output, 64), "testpmd", "no figures")
    assert work.commands("/s", 0, 1)[0][1] == "--lcores=0@0,1@0"


def test_what_perftest_prints():
    latency = ("#bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]\n"
               "64      200          155.20         1423.11      206.50     \t       230.12\n")
    rate = ("#bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
            "65536      1000             0.40               0.32               0.000610\n")
    figures = programs.Perftest("ib_send_lat").figures(latency, 64)
    near(figures["us"], 206.5)
    near(figures["per_second"], 1e6 / 206.5)
    figures = programs.Perftest("ib_write_bw").figures(rate, 65536)
    near(figures["bytes_per_second"], 40e6)
    near(figures["per_second"], 40e6 / 65536)
    slow = rate.replace("0.000610", "0.000000")  # rounded: the rate in bytes is still right
    near(programs.Perftest("ib_write_bw").figures(slow, 65536)["bytes_per_second"], 40e6)
    fails(lambda: programs.Perftest("ib_write_bw").figures(rate.replace("0.32", "0.00"), 65536),
          "ib_write_bw", "no figures")
    for output in ("", latency, latency.replace("206.50", "inf"), "64 200 0 0 0\n"):
        size = 65536 if output == latency else 64
        fails(lambda: programs.Perftest("ib_send_lat", "-c UD").figures(output, size),
              "ib_send_lat -c UD", "no figures")


def test_which_adapter_is_compared():
    with tempfile.TemporaryDirectory() as folder:
        programs.ADAPTERS = folder
        fails(programs.adapter_port, "Fix: ")
        mapped = "0000:0000:0000:0000:0000:ffff:0a02:0001"
        for name, state in (("a0", "1: DOWN"), ("b0", "4: ACTIVE")):
            port = pathlib.Path(folder) / name / "ports/1"
            (port / "gids").mkdir(parents=True)
            (port / "gid_attrs/types").mkdir(parents=True)
            (port / "state").write_text(state + "\n")
            for number, gid, kind in ((0, "fe80::1", "RoCE v2"), (2, mapped, "IB/RoCE v1"),
                                      (10, mapped, "RoCE v2")):
                (port / "gids" / str(number)).write_text(gid + "\n")
                (port / "gid_attrs/types" / str(number)).write_text(kind + "\n")
        assert programs.adapter_port() == ("b0", "10"), programs.adapter_port()
        server, client = programs.Perftest("ib_write_bw").commands(65536, 100, 7)
        assert client == server + ["127.0.0.1"] and "--report_gbits" in server, client
        (pathlib.Path(folder) / "b0/ports/1/gids/10").unlink()
        assert programs.adapter_port() == ("b0", "0"), programs.adapter_port()


def run_of(key, number, good=True, **figures):
    return {"key": key, "round": number, "good": good, "wait_percent": 1, **figures}


def test_medians_and_ratios():
    assert report.median([]) is None
    assert report.median([3, 1, 2]) == 2 and report.median([4, 1, 2, 3]) == 2.5
    # The peer failed in its third round, and the repeated fourth one counts.
    runs = [run_of("a", i, us=us) for i, us in enumerate((2, 3, 100, 4))]
    runs += [run_of("b", i, i != 2, us=us) for i, us in enumerate((1, 2, 1, 1))]
    runs += [run_of("b", 3, False, us=50)]
    assert report.typical(runs, "a", "us") == 3.5 and report.typical(runs, "c", "us") is None
    assert report.times_peer(runs, "a", "b", "us") == (2, 1.5, 4)
    rates = [run_of("a", 0, per_second=10), run_of("b", 0, per_second=20)]
    assert report.times_peer(rates, "a", "b", "per_second") == (2, 2, 2)
    assert report.times_peer(runs, "a", "c", "us") is None
    texts = [report.three_digits(value) for value in (0, 0.01234, 0.25, 1.5, 12.345, 9876)]
    assert report.amount(0.004, cases.LATENCY) == "0.004 us"
    assert report.amount(0.85e6, cases.RATE) == "0.850 M/s"
    assert texts == ["0", "0.0123", "0.250", "1.50", "12.3", "9876"], texts


def test_bounds():
    row = cases.ROWS[0]
    assert row.most_times == 1.5
    assert report.bound(row, 1, (1.5, 1, 2)) == "1.5: kept"
    assert report.bound(row, 1, (1.6, 1, 2)) == "1.5: **missed**"
    assert report.bound(row, None, None) == "1.5"
    row = next(row for row in cases.ROWS if row.least_rate)
    assert report.bound(row, 9e6, None) == "10 M/s: **missed**"
    row = next(row for row in cases.ROWS if row.most_times_peer)
    assert report.bound(row, 9e6, (1.7, 1, 2)) == "1.67 times testpmd, frames of 146 B: **missed**"
    rows = cases.ROWS + cases.ADAPTER_ROWS
    names = [report.peer_key(row, peer) for row in rows for peer in row.peers]
    assert len(names) == len(set(names))


def test_page():
    page = "a\n%s\nold\n%s\nb\n" % report.marks()
    assert report.put_into(page, "new\n") == page.replace("old", "new")
    for bad in ("", report.marks()[0], "".join(reversed(report.marks()))):
        assert report.put_into(bad, "new\n") is None


def test_picture():
    lines = {"one": [(8, 0.2), (4 << 20, 300)], "two": [(8, 1)]}
    panels = [plot.Panel("A <b> & c", "us", lines), plot.Panel("Nothing", "GB/s", {})]
    styles = {"one": plot.Style("#000000"), "two": plot.Style("#ff0000", dashed=True)}
    whole = xml.etree.ElementTree.fromstring(plot.svg(panels, styles, "a note"))
    names = {text.text for text in whole.iter("{http://www.w3.org/2000/svg}text")}
    assert {"A <b> & c", "us", "GB/s", "one", "two", "a note"} <= names
    assert {"8", "4M", "1", "100", "500"} <= names
    lines = [line.get("points") for line in whole.iter("{http://www.w3.org/2000/svg}polyline")]
    assert len(lines) == 2 and len(lines[0].split()) == 2
    assert whole.find("{http://www.w3.org/2000/svg}rect").get("fill") == plot.PAPER


def test_linear_picture():
    lines = {"one": [(0, 0), (0.5, 240), (5.2, 100)]}
    panels = [plot.Panel("Queue", "KiB", lines, "seconds", linear=True),
              plot.Panel("Nothing", "", {}, linear=True)]
    whole = xml.etree.ElementTree.fromstring(plot.svg(panels, {"one": plot.Style("#000000")}, ""))
    names = {text.text for text in whole.iter("{http://www.w3.org/2000/svg}text")}
    assert {"0", "6", "250", "seconds"} <= names and "300" not in names, names
    drawn = whole.find("{http://www.w3.org/2000/svg}polyline").get("points").split()
    bottom = plot.TOP + plot.PANEL_HEIGHT
    assert drawn[0] == "%.1f,%.1f" % (plot.LEFT, bottom), drawn
    assert len(drawn) == 3 and whole.find("{http://www.w3.org/2000/svg}circle") is None


# ---- the whole program


class Place:
    """A directory with programs that replace those of the peers."""

    def __init__(self, folder, *present):
        self.folder = pathlib.Path(folder)
        for name in present:
            path = self.folder / name
            path.write_text(FAKE)
            path.chmod(0o755)

    def start(self, *arguments, fake=""):
        words = [sys.executable, COMPARE, "--urma-perf", self.folder / "urma_perf", "--seconds",
                 "0.01", "--rounds", "2", "--only", "send 8 B, half", "--most-wait", "1e6",
                 *arguments]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={"PATH": str(self.folder), "FAKE": fake})

    def run(self, *arguments, fake=""):
        process = self.start(*arguments, fake=fake)
        out, err = process.communicate(timeout=30)
        assert self.living() == [], self.living()
        return process.returncode, out, err

    def living(self):
        """The ids of the processes whose programs lie in this directory."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if len(words) > 1 and words[1].startswith(bytes(self.folder) + b"/"):
                found.append(int(entry.name))
        return found

    def until(self, condition):
        end = time.monotonic() + 10
        while not condition(self.living()):
            assert time.monotonic() < end, self.living()
            time.sleep(0.01)


def test_a_whole_run(folder):
    place = Place(folder, "urma_perf", "ucx_perftest", "fi_pingpong")
    page, figures = place.folder / "page.md", place.folder / "figures.json"
    page.write_text("x\n%s\n%s\ny\n" % report.marks())
    code, out, err = place.run("--into", page, "--json", figures)
    assert code == 0, (out, err)
    assert "| send 8 B, half round trip | 0.300 us | 0.200 us | a ring | 1.50 (1.50..1.50)" in out
    assert "| UCX uct posix am_lat short | 355 us |" in out
    assert page.read_text() == "x\n%s\n%s%s\ny\n" % (report.marks()[0], out, report.marks()[1])
    whole = json.loads(figures.read_text())
    assert whole["schema"] == "urma_compare/1" and whole["rounds"] == 2
    # Each program has run once in each round.
    assert len({(run["key"], run["round"]) for run in whole["runs"]}) == 8
    for run in whole["runs"]:
        assert run["us"] > 0 and run["wait_percent"] >= 0 and run["command"]
    code, out, err = place.run("--most-wait", "10", fake="busy")
    assert code == 0 and "| send 8 B, half round trip | - | - |" in out, (out, err)


def test_ports_of_dpdk(folder):
    place = Place(folder, "urma_perf", "dpdk-testpmd")
    code, out, err = place.run("--only", "vhost: send 64 B")
    assert code == 0, (out, err)
    assert "| vhost: send 64 B, rate | 2.00 M/s | 3.00 M/s | a ring |" in out, out
    assert "| testpmd, frames of 146 B | 0.500 M/s | 0.250 (0.250..0.250) |" in out, out
    assert "1.67 times testpmd, frames of 146 B: kept" in out, out


def test_missing_peers(folder):
    place = Place(folder, "urma_perf")
    code, out, err = place.run()
    assert code == 0 and "0.300 us" in out and "| UCX" not in out, (out, err)
    for name in ("ucx_perftest", "fi_pingpong"):
        assert name + " is not installed" in err, err
    assert "apt-get install ucx-utils libfabric-bin" in err
    code, out, err = place.run("--urma-perf", "/nonexistent/urma_perf")
    assert code == 1 and "Fix: ./quickstart" in err and not out, (out, err)


def test_peers_that_fail(folder):
    place = Place(folder, "urma_perf", "ucx_perftest")
    code, out, err = place.run(fake="crash")
    assert code == 0 and "am_lat short, 8 bytes, its client: signal 11" in out.replace(
        "\n  ", " "), (out, err)
    (place.folder / "urma_perf").write_text(FAKE.replace('"hang"', '"never"'))
    code, out, err = place.run("--patience", "2", "--rounds", "1", fake="hang")
    assert code == 0 and "hung, and was ended" in out.replace("\n  ", " "), (out, err)
    code, out, err = place.run(fake="wrong")
    assert code == 1 and "WRONG bytes" in out, (out, err)


def test_no_process_is_left_behind(folder):
    place = Place(folder, "urma_perf")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        process = place.start(fake="hang")
        place.until(lambda living: len(living) == 1)
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
        assert process.returncode in (130, 143, -signal.SIGKILL), (out, err)
        place.until(lambda living: not living)


def test_usage(folder):
    place = Place(folder, "urma_perf")
    code, out, err = place.run("--help")
    assert code == 0 and "--rounds" in out and "--svg" in out and not err
    page = place.folder / "page.md"
    page.write_text("no marks\n")
    for words in (["--only", "tickle"], ["--into", page], ["--into", "/nonexistent/page.md"]):
        code, out, err = place.run(*words)
        assert code == 1 and "Fix: " in err and not out, (words, out, err)
    assert place.run("--rounds", "0")[0] == 2


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            if test.__code__.co_argcount == 0:
                test()
                continue
            with tempfile.TemporaryDirectory() as folder:
                test(folder)


main()
