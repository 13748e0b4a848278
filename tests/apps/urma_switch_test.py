#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests urma_switch as people use it: urma_switch_test.py PATH_TO_URMA_SWITCH PATH_TO_URMA_PERF

Two processes send to a third one through a switch of 100 Mbit/s, with each congestion control; the
queue, the marks and the shares come from the counters of the switch. The machine may be busy, so
the test asserts their order, and no times."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

from running import await_line, check_help, end, run_tests, start

SWITCH, PERF = sys.argv[1:3]
HOST = f"127.2.{os.getpid() % 250}.9"
RATE = 100e6
LATE = "late=5ms"  # how late a process on a busy machine may run
UB_PORT = 4794


class Switch:
    """Runs a switch; after `stop` its last report is in `report`."""

    def __init__(self, *options, port=UB_PORT):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [SWITCH, f"{HOST}:{port}", "--json", *options], stdout=subprocess.PIPE,
            stderr=self.errors, text=True)
        self.report = None
        for _ in range(100):
            self.errors.seek(0)
            if "attaches" in self.errors.read():
                return
            assert self.process.poll() is None, self.said()
            time.sleep(0.02)
        raise AssertionError("the switch does not start")

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        out, _ = self.process.communicate(timeout=20)
        assert self.process.returncode == 0, (self.process.returncode, self.said())
        self.report = json.loads(out.splitlines()[-1])
        assert self.report["schema"] == "urma_switch/1", self.report
        return self.report

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.errors.close()


def device(cna, *options):
    return f"link({HOST},{','.join((f'cna={cna}', *options))}):udp:{HOST}:0"


def port_of(report, cna):
    return next(port for port in report["ports"] if port["cna"] == cna)


def lane_of(report, cna):
    return port_of(report, cna)["lanes"][0]


def start_server(cna, *options):
    return start_server_on(device(cna, *options))


def start_server_at(switch, cna):
    return start_server_on(f"link({HOST}:{UB_PORT + switch},cna={cna},{LATE}):udp:{HOST}:0")


def start_server_on(text):
    server = start(PERF, "server", "--served", "--device", text, stderr=subprocess.STDOUT)
    await_line(server, "measure it by")
    return server


def client(cna, control, *more):
    return start_client(device(cna, LATE), control, *more)


def start_client(text, control, *more):
    return start(PERF, "write_bw", "fd55:4200::1", "--served", "--size", "16K", "--depth", "64",
                 "--cc", control, "--device", text, "--json", *more)


def compete(control):
    """Two senders for 2 s. Returns the report of the switch."""
    meter = control if control.startswith("caqm") else "none"
    with Switch("--rate", "100Mbit", "--cc", meter, "--rtt", "2000") as switch:
        server = start_server_on(device(1, LATE) + "?ecn=yes")
        senders = [start_client(device(cna, LATE) + "?ecn=yes", control, "--seconds", "2")
                   for cna in (2, 3)]
        for sender in senders:
            out, errors = sender.communicate(timeout=60)
            assert sender.returncode == 0, errors
            assert '"wrong": 0' in json.dumps(json.loads(out)), out
        end(server)
        return switch.stop()


def jain(values):
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def test_competition():
    rows = {}
    for control in ("aimd", "ldcp", "caqm_w", "caqm_r"):
        report = compete(control)
        lane = lane_of(report, 1)
        shares = [port_of(report, cna)["received_bytes"] for cna in (2, 3)]
        rows[control] = {"queue": lane["queue_p99_bytes"], "most": lane["most_queue_bytes"],
                         "congested": lane["congested"], "marked": lane["marked"],
                         "jain": jain(shares), "drops": sum(port_of(report, 1)["drops"].values()),
                         "bytes": lane["bytes"]}
        print(control, rows[control])
        most = RATE / 8 * report["seconds"]
        assert 0.1 * most < lane["bytes"] <= 1.01 * most, (control, lane, report["seconds"])
        assert all(port_of(report, cna)["drops"]["spoofed_source"] == 0 for cna in (1, 2, 3))
    aimd, caqm_w, caqm_r = rows["aimd"], rows["caqm_w"], rows["caqm_r"]
    assert aimd["congested"] == 0 and aimd["drops"] > 0, aimd
    # A switch without port meters marks packets, and senders that read marks lose few.
    assert rows["ldcp"]["marked"] > 0 and rows["ldcp"]["drops"] < aimd["drops"], rows
    assert caqm_w["marked"] == 0 and caqm_r["marked"] == 0, rows
    assert caqm_r["congested"] > 0 and caqm_r["drops"] < aimd["drops"], caqm_r
    assert min(caqm_w["bytes"], caqm_r["bytes"]) > 0.5 * aimd["bytes"], rows
    # A switch that grants increases, or names rates, keeps the queue shorter than losses do.
    assert caqm_r["queue"] < aimd["queue"], rows
    assert caqm_w["congested"] > 0 and caqm_w["queue"] <= aimd["queue"], rows
    assert caqm_r["most"] < caqm_w["most"] < aimd["most"], rows
    assert caqm_w["drops"] < aimd["drops"], rows
    # 0.5 would be one sender alone. On a busy machine the two do not begin and end together.
    assert all(row["jain"] > 0.75 for row in rows.values()), rows


def alone(control):
    """One sender for 2 s. Neither it nor the server sleeps or says how late it may run, and two
    processors have three processes. Returns the bytes in a second."""
    with Switch("--rate", "100Mbit", "--cc", "none" if control == "aimd" else control) as switch:
        server = start(PERF, "server", "--device", device(1), stderr=subprocess.STDOUT)
        await_line(server, "measure it by")
        sender = start(PERF, "write_bw", "fd55:4200::1", "--size", "16K", "--depth", "64", "--cc",
                       control, "--device", device(2), "--json", "--seconds", "2")
        out, errors = sender.communicate(timeout=60)
        assert sender.returncode == 0, errors
        end(server)
        switch.stop()
        return json.loads(out)["results"][0]["bytes_per_second"]


def test_ends_that_spin():
    """On a machine without other work they carry 0.8 of what aimd does, whose queue fills the line
    while a process does not run."""
    rates = {control: alone(control) for control in ("aimd", "caqm_w", "caqm_r")}
    print(rates)
    assert min(rates["caqm_w"], rates["caqm_r"]) > 0.2 * rates["aimd"], rates


def test_each_c_aqm_behind_each_switch():
    """A device whose C-AQM its switch does not answer uses that of the switch, and says why."""
    for meter in ("caqm_w", "caqm_r"):
        with Switch("--rate", "100Mbit", "--cc", meter, "--rtt", "2000") as switch:
            server = start_server(1, LATE)
            for control in ("caqm_w", "caqm_r"):
                sender = client(2, control, "--count", "200")
                out, errors = sender.communicate(timeout=60)
                assert sender.returncode == 0, (meter, control, errors)
                result = json.loads(out)
                assert result["results"][0]["wrong"] == 0, (meter, control, out)
                assert result["results"][0]["counters"]["client_channels_lost"] == 0, out
                said = f"congestion {meter} (warning: {control} asks for"
                device_text = result["environment"]["device"]
                assert (said in device_text) == (meter != control), (meter, device_text)
                assert ("Fix: use " + meter in errors) == (meter != control), (meter, errors)
            end(server)
            report = switch.stop()
        assert lane_of(report, 1)["bytes"] > 2 * 200 * 16384, report


def test_refusals():
    """Errors that say what to do: no switch, and a CNA that is claimed twice."""
    def attempt(cna, *options):
        return subprocess.run(
            [PERF, "write_lat", "fd55:4200::1", "--device", device(cna, *options)],
            capture_output=True, text=True, timeout=30, check=False)

    done = attempt(2)
    assert done.returncode != 0 and "no switch answers" in done.stderr, done
    assert "Fix: start it" in done.stderr, done.stderr
    with Switch("--lease", "1") as switch:
        server = start_server(1)
        done = attempt(1)
        assert done.returncode != 0 and "another device with the CNA 1" in done.stderr, done
        # Killed: the switch forgets the device after its lease, and another one may have its CNA.
        server.kill()
        server.communicate()
        time.sleep(1.5)
        server = start_server(1)
        end(server)
        report = switch.stop()
    assert report["hosts"]["refused_taken"] >= 1, report
    assert report["hosts"]["aged_out"] == 1, report
    assert report["hosts"]["detached"] == 1, report


def datagram(source, destination, bytes_behind=40, hops=0):
    word = struct.pack(">BBBB", 0x70, 1, hops, 0)
    return (word + source.to_bytes(3, "big") + destination.to_bytes(3, "big")
            + bytes([0, 0, 0, 2]) + bytes(bytes_behind))


def message(kind, cna=0, nonce=0, cookie=0):
    body = (bytes([0, 1, 0, 0, kind]) + cna.to_bytes(3, "big") + bytes([0, 13, 0, 0])
            + struct.pack(">QQ", nonce, cookie))
    return body + struct.pack(">I", zlib.crc32(body))


class Liar:
    """A device of this test's own, which knows the bytes of docs/protocol.md, section 17."""

    def __init__(self, cna, nonce):
        self.cna, self.nonce = cna, nonce
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(5)
        self.socket.bind((HOST, 0))
        self.socket.connect((HOST, UB_PORT))

    def ask(self, cookie=0):
        self.socket.send(message(1, self.cna, self.nonce, cookie))
        answer = self.socket.recv(2048)
        return answer[4], struct.unpack(">Q", answer[20:28])[0]

    def attach(self):
        kind, cookie = self.ask()
        assert kind == 2, kind
        return self.ask(cookie)[0]


def test_bad_input():
    with Switch() as switch:
        honest, liar = Liar(7, 1), Liar(7, 2)
        assert honest.attach() == 3
        assert liar.attach() == 4  # the CNA is taken
        liar.cna = 8
        liar.socket.send(datagram(7, 7))  # not attached: it is told so
        assert liar.socket.recv(2048)[4] == 6
        assert liar.attach() == 3
        liar.socket.send(datagram(7, 7))  # as the other one
        liar.socket.send(datagram(8, 7, hops=200))
        liar.socket.send(datagram(8, 99))
        liar.socket.send(datagram(8, 7, 9300))
        liar.socket.send(b"")
        liar.socket.send(bytes(500))
        liar.socket.send(message(3, 7, 1))  # as the switch
        liar.socket.send(message(5, 7, 1))  # as the other one, that it leaves
        liar.socket.send(datagram(8, 7))
        got = honest.socket.recv(2048)
        assert got == datagram(8, 7, hops=1), got.hex()
        report = switch.stop()
    drops = port_of(report, 8)["drops"]
    for reason in ("spoofed_source", "hop_limit", "unknown_destination", "bad_size"):
        assert drops[reason] == 1, (reason, drops)
    assert report["strangers"] == 1 and report["malformed"] >= 1, report
    assert report["misdirected"] == 1 and report["hosts"]["refused_taken"] == 1, report
    assert report["devices"] == 2, report
    assert lane_of(report, 7)["packets"] == 1, report


def test_restart():
    """Devices attach again to a switch that was started again, and go on."""
    with Switch() as first:
        server = start_server(1)
        sender = client(2, "aimd", "--seconds", "3")
        time.sleep(0.8)
        first.process.kill()
        first.process.wait()
        with Switch() as second:
            out, errors = sender.communicate(timeout=60)
            assert sender.returncode == 0, (out, errors)
            end(server)
            report = second.stop()
    assert report["hosts"]["attached"] == 2, report
    assert lane_of(report, 1)["packets"] > 0, report


def test_restart_with_another_meter():
    """Devices learn of the new meter when they attach again. They ask nothing of it, because it
    would misread them, and read delays."""
    with Switch("--cc", "caqm_r") as first:
        server = start_server(1, LATE)
        sender = client(2, "caqm_r", "--seconds", "3")
        time.sleep(0.8)
        first.process.kill()
        first.process.wait()
        with Switch("--cc", "caqm_w", "--rate", "20Mbit") as second:
            out, errors = sender.communicate(timeout=60)
            assert sender.returncode == 0, (out, errors)
            assert json.loads(out)["results"][0]["wrong"] == 0, out
            end(server)
            report = second.stop()
    assert report["meter"] == "caqm_w" and report["hosts"]["attached"] == 2, report
    # Only packets that left before the devices knew it were misread. If all were, most would be
    # marked.
    lane = lane_of(report, 1)
    assert lane["packets"] > 0 and 4 * lane["congested"] < lane["packets"], lane


def switch_of_two(first, *options):
    """One of two switches with a trunk between them: the first one has the CNAs from 1 to 99, the
    second one those from 100 to 199. Each sends those from 200 to 299 to the other: a loop."""
    own, others = ("1-99", "100-199") if first else ("100-199", "1-99")
    other = f"{HOST}:{UB_PORT + 1}" if first else HOST
    return Switch("--cnas", own, "--trunk", f"{other}={others}", "--trunk", f"{other}=200-299",
                  "--lanes", "2", *options, port=UB_PORT if first else UB_PORT + 1)


def trunk_of(report):
    return next(port for port in report["ports"] if port["switch"])


def test_two_switches():
    """A device at each switch; the one that writes uses lane 1, the other one lane 0. The queues
    have room for what leaves while a process is late."""
    rates = ("--rate", "1Gbit", "--trunk-rate", "500Mbit", "--queue", "1M")
    with switch_of_two(True, *rates) as first, switch_of_two(False, *rates) as second:
        server = start_server(1, LATE)
        there = f"link({HOST}:{UB_PORT + 1},cna=100,sl=1,{LATE}):udp:{HOST}:0"
        done = subprocess.run(
            [PERF, "write_bw", "fd55:4200::1", "--served", "--size", "16K", "--depth", "64", "--cc",
             "caqm_r", "--device", there, "--seconds", "1", "--json"], capture_output=True,
            text=True, timeout=60, check=False)
        assert done.returncode == 0, done
        assert '"wrong": 0' in json.dumps(json.loads(done.stdout)), done.stdout
        wrong = subprocess.run(
            [PERF, "write_lat", "fd55:4200::1", "--device", device(150)], capture_output=True,
            text=True, timeout=30, check=False)
        assert "belongs to another switch. Fix: " in wrong.stderr, wrong
        end(server)
        reports = first.stop(), second.stop()
    assert reports[0]["hosts"]["refused_elsewhere"] == 1, reports[0]
    # Data goes over the trunk of the second switch on lane 1, acknowledgements return on lane 0.
    data = trunk_of(reports[1])["lanes"]
    back = trunk_of(reports[0])["lanes"]
    assert data[1]["bytes"] > 100_000 and data[0]["packets"] == 0, data
    assert back[0]["packets"] > 0 and back[1]["packets"] == 0, back
    assert port_of(reports[0], 1)["lanes"][1]["packets"] == data[1]["packets"], reports
    assert trunk_of(reports[1])["bits_per_second"] == 500e6, reports[1]
    for report in reports:
        assert trunk_of(report)["drops"]["spoofed_source"] == 0, report


def test_bad_input_of_two():
    """A loop between switches, and a switch that speaks for devices which it does not have."""
    with switch_of_two(True) as first, switch_of_two(False) as second:
        host, other = Liar(1, 1), Liar(100, 2)
        other.socket.connect((HOST, UB_PORT + 1))
        assert host.attach() == 3
        assert other.attach() == 3
        for _ in range(5):
            host.socket.send(datagram(1, 250))  # a loop
        other.socket.send(datagram(1, 1))  # as the other one
        other.socket.send(datagram(100, 1))
        got = host.socket.recv(2048)
        assert got == datagram(100, 1, hops=2), got.hex()
        time.sleep(0.5)  # The others take another way.
        reports = first.stop(), second.stop()
    # The switch of the source sees that they come back.
    forged = [trunk_of(report)["drops"]["spoofed_source"] for report in reports]
    assert forged == [5, 0], forged
    assert trunk_of(reports[1])["received_packets"] == 5, reports[1]
    assert port_of(reports[1], 100)["drops"]["spoofed_source"] == 1, reports[1]


def one_of_three(number, own, trunks, *options):
    """A switch with the CNAs `own`; `trunks`: other switches, and the CNAs behind them."""
    words = ["--cnas", own, "--rate", "20Mbit", *options]
    for other, cnas in trunks.items():
        words += ["--trunk", f"{HOST}:{UB_PORT + other}={cnas}"]
    return Switch(*words, port=UB_PORT + number)


def follow(switch):
    """Reads the reports of a switch while it runs. The latest one is the last of the list."""
    reports = []

    def read():
        for line in switch.process.stdout:
            reports.append(json.loads(line))
    reader = threading.Thread(target=read)
    reader.start()
    return reports, reader


def trunk_to(report, number):
    return next(port for port in report["ports"] if port["switch"] == f"{HOST}:{UB_PORT + number}")


def comes_to(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "did not come to it within 60 s"
        time.sleep(0.05)


def test_a_switch_is_killed():
    """Two ways from the first switch to the second one: directly, and over a third one, which is
    killed while flows use it. They go on over the other way, and all works are done."""
    with one_of_three(0, "1-99", {1: "100-199", 2: "100-199"}, "--interval", "0.1") as first, \
         one_of_three(1, "100-199", {0: "1-99", 2: "1-99"}) as second, \
         one_of_three(2, "200-299", {0: "1-99", 1: "100-199"}) as third:
        reports, reader = follow(first)
        server = start_server_at(1, 100)
        comes_to(lambda: reports and not trunk_to(reports[-1], 1)["silent"]
                 and not trunk_to(reports[-1], 2)["silent"])

        def bytes_over_third():
            return trunk_to(reports[-1], 2)["lanes"][0]["bytes"]

        senders = []
        for cna in range(2, 12):  # each flow takes one of the ways by chance
            before = bytes_over_third()
            senders.append(subprocess.Popen(
                [PERF, "write_bw", "fd55:4200::64", "--served", "--size", "4K", "--depth", "2",
                 "--count", "3000", "--device", device(cna, LATE), "--json"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            seen = len(reports)
            comes_to(lambda: len(reports) >= seen + 10)
            if bytes_over_third() > before + 100_000:
                break
        else:
            raise AssertionError("no flow takes the third switch")
        third.process.kill()
        third.process.wait()
        comes_to(lambda: trunk_to(reports[-1], 2)["silent"])
        for sender in senders:
            out, errors = sender.communicate(timeout=100)
            assert sender.returncode == 0, (out, errors)
            assert json.loads(out)["results"][0]["wrong"] == 0, out
        end(server)
        first.process.send_signal(signal.SIGINT)
        reader.join(timeout=20)
        assert first.process.wait(timeout=20) == 0, first.said()
        there = second.stop()
    for report in (reports[-1], there):
        gone = trunk_to(report, 2)
        assert gone["silent"] and gone["silences"] >= 1, gone
    assert trunk_to(reports[-1], 1)["lanes"][0]["bytes"] > 0, reports[-1]


def test_a_port_that_vanishes():
    """A device that is killed while others send to it: the switch forgets it, and counts."""
    with Switch("--lease", "1") as switch:
        host, gone = Liar(7, 1), Liar(8, 2)
        assert host.attach() == 3
        assert gone.attach() == 3
        gone.socket.close()
        host.socket.send(datagram(7, 8))
        time.sleep(1.3)
        host.attach()
        host.socket.send(datagram(7, 8))
        host.socket.send(datagram(7, 7))
        assert host.socket.recv(2048) == datagram(7, 7, hops=1)
        report = switch.stop()
    assert report["hosts"]["aged_out"] >= 1, report
    assert port_of(report, 7)["drops"]["unknown_destination"] == 1, report
    assert port_of(report, 7)["drops"]["port_down"] == 0, report


def test_words():
    for words in (["--rate", "fast"], ["--cc", "fastest"], ["--lanes", "0"], ["127.0.0.1", "x"],
                  ["--queue", "3M"], ["--cnas", "9-8"], ["--cnas", "0-8"], ["--trunk", "10.0.0.8"],
                  ["--trunk", "10.0.0.8=1-x"], ["--trunk", "10.0.0.8=5-9"],
                  ["--cnas", "1-4", "--trunk", "10.0.0.8=5-9", "--trunk", "10.0.0.7=9-12"]):
        done = subprocess.run([SWITCH, *words], capture_output=True, text=True, timeout=20,
                              check=False)
        assert done.returncode == 2 and "Fix: " in done.stderr, (words, done)


def test_device_without_a_port():
    """The switch listens at its own UDP port, not at that of devices."""
    for device in "udp:127.55.1.9", "fault(loss=0):udp:127.55.1.9?ecn=yes":
        process = subprocess.Popen([SWITCH, "--device", device], stderr=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, text=True)
        try:
            assert "127.55.1.9:4794" in process.stderr.readline()
        finally:
            end(process)


def test_help():
    check_help(SWITCH)


def test_which_switch_leads_to_a_name():
    with Switch() as switch:
        server = start_server(1)
        done = subprocess.run([PERF, "write_lat", "--device", "udp:127.0.0.1:0"],
                              capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 5, done
        assert f"Fix: open link({HOST}):udp:" in done.stderr, done
        end(server)
        switch.stop()


# A name that another test publishes would be found here, and the reverse.
with tempfile.TemporaryDirectory() as names:
    os.environ["XDG_RUNTIME_DIR"] = names
    run_tests(globals())
