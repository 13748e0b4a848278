#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests urma_perf as people and scripts use it: urma_perf_test.py PATH_TO_URMA_PERF"""

import csv
import fcntl
import io
import json
import os
import pathlib
import pty
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import time

from running import finish, ip, kill, run_tests, shown_on, start
from urma_perf_runs import PROGRAM, command, results, run, stages_of

WINDOW = "[fd75:726d:61"  # addresses of devices in a window


def start_server(*arguments, within=None):
    """Starts a server. Returns it and its address: not the one in the window, unless there is
    no other."""
    server = subprocess.Popen(command("server", *arguments, within=within),
                              stdout=subprocess.PIPE, text=True)
    for _ in range(2):
        line = server.stdout.readline()
        assert "urma_perf server at" in line, line
        at = line.split(" at ")[1].split(";")[0]
        if not at.startswith(WINDOW) or "--device" in arguments:
            break
    return server, at


def stop(process):
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=10) in (0, 130)


def own_address():
    """Returns an address by which other machines may reach this one; None if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return None
        return probe.getsockname()[0]


def test_lane_between_two_programs():
    """The client measures a server that was started by itself, finds that it is not in a window,
    and notices that it is killed."""
    server, at = start_server("--device", "udp:127.0.0.1:0")
    try:
        done = run("lane_write_lat", at, "--count", "100")
        assert done.returncode == 2 and "Fix: " in done.stderr, done
        assert "maps no memory of peers" in done.stderr, done
    finally:
        stop(server)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        device = ["--device", f"cxl:{place}/window?size=64M"]
        server, at = start_server(*device)
        results("lane_write_lat", at, *device, "--count", "1000", "--limit")
        done = run("lane_write_lat", at, *device, "--count", "1000", "--size", "64M")
        assert done.returncode == 2 and "--device cxl:PATH?size=10G" in done.stderr, done
        client = start(PROGRAM, "lane_write_lat", at, *device, "--seconds", "60")
        time.sleep(0.5)
        kill(server)
        code, out, err = finish(client, timeout=20)
        assert code == 5 and "Fix: " in err, (code, out, err)


def test_profile_of_two_programs():
    """Each side is profiled if it was started so."""
    without = ("write_lat", "--size", "64", "--seconds", "0.05", "--rounds", "1")
    server, at = start_server("--device", "udp:127.0.0.1:0")
    try:
        (result,) = results(*without, at, "--profile")
        stages_of(result["profile"]["client"], result["profile"]["works"])
        assert "server" not in result["profile"]
        done = run(*without, at, "--profile")
        assert "server: not profiled; start it as urma_perf server --profile" in done.stdout, done
    finally:
        stop(server)
    server, at = start_server("--device", "udp:127.0.0.1:0", "--profile")
    try:
        (result,) = results(*without, at, "--profile")
        for side in ("client", "server"):
            stages_of(result["profile"][side], result["profile"]["works"])
        (result,) = results(*without, at)
        assert "profile" not in result
    finally:
        stop(server)


def test_server_is_reached_at_every_address():
    server, at = start_server()
    try:
        assert at.startswith("127."), at
        own = own_address()
        for host in [at] + ([own] if own else []):
            (result,) = results("send_lat", host, "--count", "20")
            assert result["device"].startswith("udp:"), result
        for host in ([], ["localhost"]):
            (result,) = results("send_lat", *host, "--seconds", "0.05", "--limit")
            assert result["device"] == "cxl:" and result["limit_pattern"] == "message, copied"
    finally:
        stop(server)
    server, at = start_server("--once", "--served")
    results("send_lat", own or at, "--count", "20")
    assert server.wait(timeout=10) == 0
    if own is None:
        return
    server, at = start_server("--device", "udp:127.0.0.241")
    try:
        assert run("send_lat", own).returncode == 5
    finally:
        stop(server)


def test_which_of_several_servers():
    servers = [start_server("--device", f"udp:127.0.0.{n}")[0] for n in (242, 243)]
    try:
        done = run("send_lat")
        assert done.returncode == 5 and done.stderr.endswith("Fix: give --device udp:\n"), done
        done = run("send_lat", "localhost", "--device", "udp:")
        assert done.returncode == 2, done
        for n in (242, 243):
            assert f"urma_perf send_lat 127.0.0.{n}" in done.stderr, done
        assert "urma://" not in done.stderr, done
    finally:
        for server in servers:
            stop(server)


def test_server_in_a_window_of_its_own():
    path = f"/dev/shm/urma-perf-test-{os.getpid()}"
    server, at = start_server("--device", f"cxl:{path}?size=8M")
    try:
        assert at.startswith(WINDOW), at
        results("send_lat", at, "--count", "20", "--device", f"cxl:{path}")
        for arguments in (["localhost"], [at], ["localhost", "--device", "udp:"]):
            done = run("send_lat", *arguments)
            assert done.returncode != 0 and "--device cxl:" in done.stderr, done
    finally:
        stop(server)
        os.unlink(path)


def test_two_machines():
    """Runs the two commands of the README in two network namespaces with a cable between them."""
    if not shutil.which("ip"):
        print("(skipped: there is no ip program)")
        return
    here, there = (f"urma{os.getpid()}{side}" for side in "ab")
    try:
        if not (ip("netns", "add", here) and ip("netns", "add", there)):
            print("(skipped: no network namespaces can be made)")
            return
        if not ip("link", "add", "cable", "netns", here, "type", "veth", "peer", "cable", "netns",
                  there):
            print("(skipped: no cable can be laid)")
            return
        for side, n in ((here, 1), (there, 2)):
            assert ip("-n", side, "addr", "add", f"10.99.7.{n}/24", "dev", "cable")
            ip("-n", side, "addr", "add", f"fd99::{n}/64", "dev", "cable", "nodad")
            assert ip("-n", side, "link", "set", "cable", "up")
        v6 = ip("-n", here, "route", "get", "fd99::2")
        server, _ = start_server(within=here)
        try:
            for host in ["10.99.7.1"] + (["fd99::1"] if v6 else []):
                results("read_bw", host, "--count", "200", "--size", "64K", within=there)
        finally:
            stop(server)
    finally:
        for side in (here, there):
            ip("netns", "delete", side)


def test_server_survives_its_clients():
    server, at = start_server()
    try:
        results("write_bw", at, "--seconds", "0.1")
        client = subprocess.Popen([PROGRAM, "write_imm_bw", at, "--seconds", "60"],
                                  stdout=subprocess.DEVNULL)
        time.sleep(0.5)
        client.kill()
        client.wait()
        results("send_lat", at, "--seconds", "0.1")
        several = [subprocess.Popen([PROGRAM, "write_lat", at, "--count", "100"],
                                    stdout=subprocess.DEVNULL) for _ in range(3)]
        for one in several:
            assert one.wait(timeout=60) == 0
    finally:
        stop(server)


def test_versions_are_compared():
    server, at = start_server()
    try:
        for speaks, side in (("0", "client"), ("99", "server")):
            done = run("write_lat", at, "--speaks", speaks)
            assert done.returncode == 6, done
            assert "upgrade the " + side in done.stderr
    finally:
        stop(server)


def test_lost_server():
    server, at = start_server()
    client = start(PROGRAM, "write_imm_lat", at, "--seconds", "60")
    time.sleep(0.5)
    kill(server)
    code, out, err = finish(client, timeout=20)
    assert code == 5 and "Fix: " in err, (code, out, err)


def await_text(process, text):
    """Reads lines of a process until one contains this text, and returns that."""
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError(f"{process.args} ended without {text}")


def test_lost_clients():
    """The server forgets a client that is killed, and one that is stopped."""
    server = start(PROGRAM, "server", "--verbose", "--device", "udp:127.0.0.1:0",
                   stderr=subprocess.STDOUT)
    at = await_text(server, "measure it by").split(" at ")[1].split(";")[0]
    clients = []
    for number in (1, 2):
        clients.append(start(PROGRAM, "write_bw", at, "--seconds", "60"))
        await_text(server, f"client {number} (")
    time.sleep(0.5)
    clients[0].kill()
    clients[1].send_signal(signal.SIGSTOP)
    began = time.monotonic()
    gone = {await_text(server, "is gone").strip() for _ in clients}
    assert gone == {"client 1 is gone", "client 2 is gone"}, gone
    # A client whose device is not lost gets a minute.
    assert time.monotonic() - began < 40
    for client in clients:
        kill(client)
    stop(server)


def test_ctrl_c_prints_what_there_is():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out.json")
        client = subprocess.Popen([PROGRAM, "--self", "write_lat", "--seconds", "60", "--rounds",
                                   "600", "--json-file", path], stdout=subprocess.PIPE, text=True)
        time.sleep(1)
        client.send_signal(signal.SIGINT)
        out, _ = client.communicate(timeout=20)
        assert client.returncode == 130
        assert "write_lat" in out
        with open(path) as file:
            whole = json.load(file)
        assert whole["environment"]["interrupted"] and len(whole["results"]) == 1
        assert os.listdir(folder) == ["out.json"]


def test_second_ctrl_c():
    """The first one prints what there is, and the second one ends a program that is still busy with
    that: here with a reader that does not read."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writer, b"x" * 4096)
    client = subprocess.Popen([PROGRAM, "--self", "write_lat", "--seconds", "60", "--rounds", "600",
                               "--json"], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    time.sleep(1)
    client.send_signal(signal.SIGINT)
    try:
        client.wait(timeout=2)
        raise AssertionError("it has printed into a full pipe")
    except subprocess.TimeoutExpired:
        client.send_signal(signal.SIGINT)
    assert client.wait(timeout=10) == 130
    os.close(reader)
    client.stderr.close()


def test_what_was_chosen():
    """--verbose says which device is used and why, which others are not, and the parameters."""
    one = ("write_bw", "--count", "100", "--rounds", "1", "-v")
    done = run("--self", *one)
    assert done.returncode == 0, done
    for text in ("device: cxl:, memory that both processes share, because ", "\nnot udp:, which ",
                 "\nnot dpdk: and verbs:, which ", "\nprocessors: of the client ",
                 "\nwrite_bw 64K: depth 64, Jetties 1, threads 1, inlined, 1 round of 100 ",
                 "\nclient 1: write_bw 64K: depth 64, Jetties 1\n"):
        assert text in done.stderr, (text, done.stderr)
    server, at = start_server("--device", "udp:127.0.0.1:0")
    try:
        done = run(*one[:1], at, *one[1:])
        assert f"device: udp:127.0.0.1:0, because {at} is an address of this host" in done.stderr
        assert "\nnot cxl:, which reaches only processes of this host: leave" in done.stderr, done
        done = run(*one[:1], at, *one[1:], "--device", "udp:")
        assert "device: udp:, from --device\n" in done.stderr, done
    finally:
        stop(server)


def test_self_at_the_address_of_a_server():
    server, at = start_server("--device", "udp:127.0.0.1:0")
    try:
        results("--self", "write_lat", "--device", "udp:127.0.0.1:0", "--count", "100")
        results("write_lat", at, "--count", "100")
    finally:
        stop(server)


def test_a_server_names_its_clients_on_a_terminal():
    ours, theirs = pty.openpty()
    server = subprocess.Popen(command("server", "--device", "udp:127.0.0.1:0", "--once"),
                              stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    at = server.stdout.readline().split(" at ")[1].split(";")[0]
    results("write_bw", at, "--count", "100", "--order", "so")
    assert server.wait(timeout=20) == 0
    shown = shown_on(ours).decode()
    assert "client 1 (liburma " in shown and "): 127.0.0.1:" in shown, shown
    assert "client 1: write_bw 64K: depth 64, Jetties 1, order so" in shown, shown
    assert "client 1 is gone" in shown, shown


def test_errors_have_codes_and_cures():
    for code, arguments in ((2, ["tickle", "localhost"]),
                            (2, ["--self", "write_lat", "--device", "nonsense"]),
                            (2, ["--self", "write_lat", "--device", "udp:", "--peer-device", "no"]),
                            (2, ["--self", "write_lat", "--cpu", "1000"]),
                            (2, ["--self", "write_lat", "--spread", "64M"]),
                            (2, ["--self", "write_lat", "--fence-every", "2"]),
                            (2, ["--self", "write_bw", "--device", "udp:", "--summed"]),
                            (2, ["--self", "write_lat", "--device", "udp:", "--limit", "--summed"]),
                            (2, ["--self", "write_bw", "--size", "1023", "--device", "udp:",
                                 "--limit", "--summed"]),
                            (2, ["--self", "write_bw", "--limit", "--summed"]),
                            (2, ["--self", "--summed"]),
                            (2, ["--self", "write_bw", "--order", "total"]),
                            (2, ["--self", "write_bw", "--mode", "uno"]),
                            (2, ["--self", "write_bw", "--mode", "rol"]),
                            (2, ["--self", "send_bw", "--mode", "uno", "--size", "16K"]),
                            (2, ["--self", "send_bw", "--mode", "uno", "--size", "64",
                                 "--order", "so"]),
                            (2, ["--self", "atomic_lat", "--atomic", "xor"]),
                            (2, ["--self", "lane_write_lat", "--private"]),
                            (2, ["--self", "lane_write_lat", "--device", "udp:"]),
                            (2, ["--self", "lane_write_lat", "--jetties", "2"]),
                            (2, ["--self", "lane_write_lat", "--jetties", "1,2"]),
                            (2, ["--self", "write_lat", "--jetties", "1,0"]),
                            (2, ["--self=3", "write_lat"]),
                            (2, ["--self", "write_lat", "--sweep=size=64..4M:x2,jetties=1,8"]),
                            (2, ["--self", "send_bw", "--jetties", "2,8", "--threads", "3"]),
                            (2, ["--self", "lane_write_lat", "--profile"]),
                            (2, ["--self", "--profile"]),
                            (2, ["reg", "--self", "--profile"]),
                            (2, ["--budget", "--profile"]),
                            (2, ["--self", "lane_write_lat", "--threads", "9"]),
                            (2, ["--self", "lane_read_lat", "--depth", "4"]),
                            (5, ["write_lat", "127.77.77.77"]),
                            (5, ["write_lat", "no-such-host.invalid"]),
                            (1, ["--self", "write_lat", "--json-file", "/nonexistent/x"]),
                            (1, ["--self", "write_lat", "--seconds", "0.1", "--json-file",
                                 "/dev/full"])):
        done = run(*arguments)
        assert done.returncode == code, (arguments, done)
        assert "Fix: " in done.stderr, done
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, "--self", "write_lat", "--seconds", "0.1", "--json"],
                              stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and "Fix: " in done.stderr


def test_registration():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        window = f"cxl:{place}/window?size=64M"
        for load in ([], ["--churn", "200"]):
            done = run("reg", "--self", "--size", "4K,1M", "--seconds", "0.1", "--json", "--device",
                       window, *load)
            assert done.returncode == 0, done
            rows = json.loads(done.stdout)["results"]
            assert [(row["memory"], row["size_bytes"]) for row in rows] == [
                (memory, size) for memory in ("own", "mapped") for size in (4096, 1 << 20)]
            for row in rows:
                for call in ("register", "unregister", "rotate", "retire", "revoke"):
                    assert row[call]["count"] > 0, (call, row)
                    assert 0 < row[call]["p50_us"] <= row[call]["max_us"], (call, row)
                assert (row["works_per_second"] > 0) == bool(load), row
                assert load or row["not_fenced"] == 0, row
    for wrong in (["reg"], ["reg", "--self", "localhost"], ["--self", "write_lat", "--churn", "5"]):
        done = run(*wrong)
        assert done.returncode == 2 and "Fix: " in done.stderr, done


def test_captures_that_lack_packets():
    """On both sides, the exit code is 7 and the message names the capture, the number, why and
    the fix."""
    with tempfile.TemporaryDirectory() as place:
        capture = f"{place}/x.pcapng"
        for side in (["--peer-device", "udp:", "--device"], ["--device", "udp:", "--peer-device"]):
            for limit, code in (("64K", 7), ("8G", 0)):
                done = run("--self", "send_lat", "--size", "1000", "--count", "300", "-q", *side,
                           f"pcap(file={capture},limit={limit}):udp:")
                assert done.returncode == code, done
                assert (f"packets are missing in the capture {capture}: capture stopped: the "
                        "file's limit was reached. Fix: raise limit=" in done.stderr) == (code == 7)
                assert code == 7 or done.stderr == "", done
        # A limit on the size of files, which would kill a process that does not handle it.
        words = [PROGRAM, "--self", "send_lat", "--size", "1000", "--count", "300", "-q",
                 "--peer-device", "udp:", "--device", f"pcap(file={capture}):udp:"]
        for blocks in (8, 100):
            done = subprocess.run(["sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh", *words],
                                  capture_output=True, text=True, timeout=120)
            assert done.returncode == 7, done
            assert "Fix: allow larger files (ulimit -f unlimited)" in done.stderr, done
            # One loss has one count.
            assert (done.stdout + done.stderr).count("packets are missing") == 1, done
        done = run("--self", "send_lat", "--count", "100", "-q", "--peer-device", "udp:",
                   "--device", "pcap(file=/dev/null):udp:")
        assert done.returncode == 0 and done.stderr == "", done
        # A full disk: the file system of the namespace.
        mount = ["unshare", "--mount", "sh", "-c", f"mount -t tmpfs -o size=64k tmpfs {place} && "
                 'exec "$@"', "sh"]
        if subprocess.run([*mount, "true"], capture_output=True).returncode != 0:
            print("(skipped: no mount namespace)")
            return
        done = subprocess.run([*mount, *words], capture_output=True, text=True, timeout=120)
        assert done.returncode == 7, done
        assert f"No space left on device. Fix: make room there (df -h {capture})" in done.stderr


def test_sweep():
    done = results("--self", "write_bw", "--sweep", "--seconds", "0.02", "--rounds", "1", "--limit",
                   "--device", "udp:")
    assert [result["size_bytes"] for result in done] == [8 << i for i in range(20)]
    assert {result["limit_pattern"] for result in done} == {"udp sendmmsg", "udp trains"}
    assert all(result["threads_mode"] == "inlined" for result in done)


def test_line_on_a_terminal():
    """The live line is printed on a terminal only, and erased at the end."""
    arguments = ("--self", "send_lat", "--seconds", "1.8", "--rounds", "1")
    for more, seen in (((), True), (("--json",), False)):
        ours, theirs = pty.openpty()
        done = subprocess.run(command(*arguments, *more), stdout=subprocess.PIPE, stderr=theirs,
                              timeout=60, text=True)
        os.close(theirs)
        shown = shown_on(ours)
        assert done.returncode == 0, done
        assert (b"send_lat cxl: 64: 1 s, " in shown) == seen, shown
        assert shown.endswith(b"\r\x1b[K") == seen, shown
        assert "\x1b" not in done.stdout


def test_line_on_a_narrow_terminal():
    """A line that is wider than the terminal could not be erased, so it lacks the device."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 60, 0, 0))
    done = subprocess.run(command("--self", "write_lat", "--size", "64,128", "--seconds", "1.2",
                                  "--rounds", "1", "--device", "fault(loss=1%,seed=7):udp:"),
                          stdout=subprocess.PIPE, stderr=theirs, timeout=60)
    os.close(theirs)
    lines = shown_on(ours).decode().split("\r\x1b[K")
    assert done.returncode == 0 and any("write_lat 64: 1 s" in line for line in lines), lines
    assert max(map(len, lines)) < 60, lines


def test_results_for_programs():
    """The same results as lines of JSON, and as lines of values."""
    arguments = ("--self", "send_lat", "--size", "8,64", "--count", "500", "--rounds", "1")
    done = run(*arguments, "--json-stream")
    assert done.returncode == 0, done
    # A measurement that takes a second has intervals, too.
    each = [one for one in map(json.loads, done.stdout.splitlines()) if one["type"] == "result"]
    assert [one["size_bytes"] for one in each] == [8, 64], each
    for one in each:
        assert one["schema"] == "urma_perf/1"
        assert one["p50_us"] <= one["p99_9_us"] <= one["p99_99_us"] <= one["max_us"], one
        assert 0 < one["mean_us"] <= one["max_us"] and one["deviation_us"] >= 0, one
    done = run(*arguments, "--csv", "--device", "fault(loss=1%,seed=7):udp:")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["size_bytes"] for row in rows] == ["8", "64"], done
    assert all(row["device"] == "fault(loss=1%,seed=7):udp:" for row in rows), rows
    assert all(float(row["p50_us"]) > 0 and row["limit"] == "" for row in rows), rows
    (whole,) = [json.loads(run(*arguments[:3], "8", "--count", "100", "--json").stdout)]
    assert "commit" in whole["environment"], whole


def test_thresholds():
    one = ("--self", "send_lat", "--count", "500", "--rounds", "1", "-q")
    done = run(*one, "--fail-if", "p50_us>1e6", "--fail-if", "wrong>0")
    assert done.returncode == 0 and not done.stderr, done
    done = run(*one, "--fail-if", "p50_us>1e6", "--fail-if", "p50_us>0", "--json")
    assert done.returncode == 3 and json.loads(done.stdout)["results"], done
    assert "p50_us is " in done.stderr and "--fail-if p50_us>0" in done.stderr, done.stderr
    done = run(*one, "--fail-if", "bw<1TB/s", "--fail-if", "lat > 5 s", "--fail-if", "x_limit>1e9",
               "--limit")
    assert done.returncode == 3 and done.stderr.count("bw is ") == 1, done
    assert " TB/s, so --fail-if bw<1TB/s ends" in done.stderr, done
    # A number that no result can have is refused before anything is measured.
    for wrong in ("p98>5us", "x_limit>2", "rate_percent<98", "overlap_percent<90", "bw<90", "p99"):
        done = run(*one, "--fail-if", wrong)
        assert done.returncode == 2 and done.stdout == "" and "Fix: " in done.stderr, done
    done = run("--self", "write_bw", "--bidirectional", "--count", "10", "--fail-if", "retx>0")
    assert done.returncode == 2 and done.stdout == "" and "Fix: " in done.stderr, done


def test_comparison():
    with tempfile.TemporaryDirectory() as folder:
        before, after, other = (f"{folder}/{name}.json" for name in ("before", "after", "other"))
        for path, test in ((before, "send_lat"), (other, "write_bw")):
            assert run("--self", test, "--count", "2000", "--rounds", "2", "--json-file",
                       path).returncode == 0
        whole = json.loads(pathlib.Path(before).read_text())
        # On a busy machine one round may take ten times as long as another.
        for path, p50 in ((before, 1.5), (after, 15)):
            for row in whole["results"]:
                row["p50_us"] = p50
                for part in row["rounds"]:
                    part["p50_us"] = p50
            pathlib.Path(path).write_text(json.dumps(whole))
        line = run("compare", before, after).stdout.splitlines()[1].split()
        assert line[0] == "send_lat" and line[-2:] == ["10.000", "worse"], line
        assert run("compare", after, before).stdout.splitlines()[1].endswith("better")
        assert run("compare", before, before).stdout.splitlines()[1].endswith("same")
        for files in ((before, other), (before, "/nonexistent"), (before, __file__), (before,)):
            done = run("compare", *files)
            assert done.returncode == 2 and "Fix: " in done.stderr, done


def test_main_job_between_two_programs():
    server, at = start_server("--device", "udp:127.0.0.91:0", "--once")
    done = run(at, "--json")
    assert server.wait(timeout=10) == 0
    assert done.returncode == 0, done
    tests = [result["test"] for result in json.loads(done.stdout)["results"]]
    assert tests == ["write_imm_lat", "send_lat", "read_lat", "write_bw", "read_bw", "send_bw"]


def test_main_job_in_short():
    """Ten rows within 80 columns, which are wider with --wide and on a wide terminal."""
    done = run("--self", "--short")
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80, done.stdout
    rows = [line for line in lines if line.startswith(("send_", "write_"))]
    assert len(rows) == 10 and all(row.split()[7] == "0" for row in rows), done.stdout
    assert [line for line in lines if line.startswith("on ")] == [
        "on cxl:", "on udp:", "on fault(loss=5%,seed=7):udp:"], done.stdout
    one = ("--self", "send_lat", "--count", "100", "--rounds", "1", "--limit")
    wide = run(*one, "--wide").stdout.splitlines()[0]
    assert "limit by" in wide and "p99.9" in wide, wide
    assert "p99.9" not in run(*one).stdout.splitlines()[0]


def test_progress_over_all_rows():
    ours, theirs = pty.openpty()
    subprocess.run(command("--self", "send_lat", "--size", "8,64", "--seconds", "1.5", "--rounds",
                           "1"), stdout=subprocess.PIPE, stderr=theirs, timeout=60, check=True)
    os.close(theirs)
    shown = shown_on(ours)
    for row in (b"row 1 of 2, ", b"row 2 of 2, "):
        assert row in shown, shown
    assert b" s left: send_lat cxl: 8: 1 s, " in shown, shown


def test_help_is_one_screen():
    done = run("--help")
    assert done.returncode == 0
    assert done.stdout.count("\n") <= 30
    for each in (done, run("--help-all")):
        assert max(map(len, each.stdout.splitlines())) <= 80, each.stdout


run_tests(globals())
