#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the log of events that is made of a capture: qlog_test.py SOURCES URMA_QLOG URMA_PERF"""

import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile

SOURCES, TOOL, PERF = pathlib.Path(sys.argv[1]), *sys.argv[2:]
sys.path.insert(0, str(SOURCES / "tests/wireshark"))
import pcapng  # noqa: E402
from running import run_tests  # noqa: E402

HERE, THERE = bytes([127, 0, 0, 1]), bytes([127, 0, 0, 2])
RECEIVED, SENT = 1, 2


def convert(*words):
    return subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=100)


def records_in(text):
    """Returns the records of JSON text sequences (RFC 7464)."""
    assert text.startswith("\x1e") and text.endswith("\n"), text[:100]
    parts = text[1:].split("\x1e")
    assert all(part.endswith("\n") and part.count("\n") == 1 for part in parts)
    first, *events = map(json.loads, parts)
    assert first["file_schema"] == "urn:ietf:params:qlog:file:sequential", first
    assert first["serialization_format"] == "application/qlog+json-seq", first
    trace = first["trace"]
    assert trace["vantage_point"]["type"] == "unknown" and len(trace["event_schemas"]) == 2, first
    assert trace["common_fields"]["reference_time"]["epoch"].endswith(".000Z"), first
    for event in events:
        assert set(event) <= {"time", "name", "data", "group_id"} and ":" in event["name"], event
    assert [one["time"] for one in events] == sorted(one["time"] for one in events)
    return events


def block(kind, body):
    body += bytes(-len(body) % 4)
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


def statistics(missing):
    why = b"disk full..." if missing else b""
    return block(5, bytes(12) + struct.pack("<HHQ", 5, 8, missing) +
                 struct.pack("<HH", 1, len(why)) + why + bytes(4))


def capture(path, packets, missing=0, link=pcapng.RAW_IP):
    """Writes a capture. Each packet is (direction, us, payload of UDP)."""
    with open(path, "wb") as file:
        file.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
        file.write(block(1, struct.pack("<HHI", link, 0, 0)))
        for direction, us, payload in packets:
            ends = (HERE, THERE) if direction == SENT else (THERE, HERE)
            packet = pcapng.in_udp(*ends, payload)
            time = 1_700_000_000 * 10**9 + us * 1000
            padded = packet + bytes(-len(packet) % 4)
            file.write(block(6, struct.pack("<IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(packet),
                                            len(packet)) + padded +
                             struct.pack("<HHII", 2, 4, direction, 0)))
        file.write(statistics(missing))


def header(opcode, psn, ours=0x111111, theirs=0x222222, status=0):
    return (bytes([opcode, 0]) + ours.to_bytes(3, "big") + theirs.to_bytes(3, "big") + b"\0" +
            psn.to_bytes(3, "big") + bytes([status, 0, 0, 0]))


def data(psn):
    # A write with the TASSN 7 of the queue 0x8f1c2.
    return header(1, psn) + bytes([3, 0x48, 0, 7, 0, 8, 0xF1, 0xC2]) + bytes(40)


def ack(psn, bits=0, opcode=2, status=0):
    back = header(opcode, psn, 0x222222, 0x111111, status)
    if opcode in (3, 6):
        back += bytes(8)
    if opcode in (5, 6):
        back += bytes(4) + bits.to_bytes(8, "little")
    return back + bytes(4)


def test_a_small_capture_is_told_event_by_event():
    last = (1 << 24) - 1
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.pcapng"
        capture(path, [(SENT, 0, data(last)), (SENT, 10, data(0)), (SENT, 20, data(1)),
                       (RECEIVED, 100, ack(last, 0b101, 6)),  # 1 has arrived, and 0 has not
                       (SENT, 150, data(0)),
                       (RECEIVED, 250, ack(1)),
                       (RECEIVED, 260, header(1, 5, 0x222222, 0x111111) +
                        bytes([0x11, 0, 0, 7, 1 << 5, 8, 0xF1, 0xC2]) + bytes(4)),
                       (RECEIVED, 270, ack(2, status=3 << 5))], missing=4)
        done = convert(path)
        assert done.returncode == 7, done
        told = [(round(one["time"] * 1000), one["name"].split(":")[1], one["data"])
                for one in records_in(done.stdout)]
        assert [(time, name) for time, name, _ in told] == [
            (0, "packet_sent"), (10, "packet_sent"), (20, "packet_sent"),
            (100, "packet_received"), (100, "metrics_updated"),
            (150, "packet_lost"), (150, "packet_sent"),
            (250, "packet_received"), (250, "metrics_updated"),
            (260, "packet_received"), (270, "packet_received"), (270, "warning")], told
        assert told[0][2]["header"] == {"packet_type": "rtp", "source_tpn": 0x111111,
                                        "destination_tpn": 0x222222, "packet_number": last}, told
        assert told[0][2]["frames"] == [{"frame_type": "write", "tassn": 7, "queue": 0x8F1C2}], told
        assert told[3][2]["frames"] == [{"frame_type": "tpsack", "in_order": last,
                                         "beyond": [[1, 1]]}], told[3]
        assert told[4][2]["packets_in_flight"] == 1 and told[4][2]["latest_rtt"] == 0.08, told[4]
        assert told[5][2] == {"header": {"packet_type": "rtp", "packet_number": 0}, "copies": 1,
                              "after_ms": 0.14}, told[5]
        assert told[6][2]["is_retransmission"] and "is_retransmission" not in told[1][2], told
        # A packet that was sent again measures no round trip.
        assert told[8][2] == {"bytes_in_flight": 0, "packets_in_flight": 0}, told[8]
        assert told[9][2]["frames"][0]["status"] == "receiver_not_ready", told[9]
        assert told[10][2]["frames"][0] == {"frame_type": "tpnak", "in_order": 1, "beyond": []}
        assert "4 packets are not in the capture: disk full" in told[11][2]["message"], told
        line, lacks = done.stderr.splitlines()
        assert line.startswith("127.0.0.1:4792 to 127.0.0.2:4792, TPN 0x111111 to 0x222222: 4 ")
        assert "1 sent again; round trips 80.0 us" in line and "0.15 ms, at 0.000 s" in line, line
        assert lacks.startswith(f"urma_qlog: {path}: 4 packets are not in the capture: disk full")
        assert "Fix: " in lacks, lacks
        again = convert("--summary", path)
        assert (again.returncode, again.stdout.splitlines()) == (7, [line]), again
        assert again.stderr.splitlines() == [lacks], again


def test_the_packets_of_a_program_are_told_without_their_data():
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([PERF, "write_bw", "--self", "--count", "200", "--size", "64K",
                               "--device", "fault(loss=5%):udp:", "--peer-device", "udp:",
                               "--json"],
                              capture_output=True, text=True, timeout=100,
                              env={**os.environ, "URMA_CAPTURE": folder})
        assert done.returncode == 0, done
        counters = json.loads(done.stdout)["results"][0]["counters"]
        sent_again = 0
        for path in pathlib.Path(folder).iterdir():
            packets, _ = pcapng.read(path)
            done = convert(path)
            assert done.returncode == 0 and " sent again" in done.stderr, done
            events = records_in(done.stdout)
            names = [one["name"].split(":")[1] for one in events]
            assert names.count("packet_sent") == sum(flags & 3 == SENT for flags, _ in packets)
            assert names.count("packet_received") == sum(flags & 3 == RECEIVED
                                                         for flags, _ in packets)
            sent_again += names.count("packet_lost")
            frames = [frame for one in events for frame in one["data"].get("frames", [])]
            messages = [one["message"] for one in frames if one["frame_type"] == "setup"]
            assert {"open", "accept"} <= set(messages), messages
            metrics = [one["data"] for one in events if one["name"] == "urma:metrics_updated"]
            assert any(one["latest_rtt"] >= one["min_rtt"] > 0 for one in metrics
                       if "latest_rtt" in one), metrics[:3]
            assert len(done.stdout) < path.stat().st_size  # no data
        assert sent_again >= counters["retransmitted"] > 0, (sent_again, counters["retransmitted"])


def test_what_is_not_such_a_capture_is_said():
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a"
        whole = f"{folder}/whole"
        capture(whole, [(SENT, 0, data(1))])
        with open(whole, "rb") as file:
            good = file.read()
        for content, why in ((b"", "it has no packet"), (b"hello world", "it is not a capture"),
                             (b"hi", "it is not a capture"), (good[:5], "it is cut off"),
                             (good[:20], "it is cut off"), (good[:60], "it is cut off"),
                             (good[:48], "it has no packet"),
                             (good[:48] + statistics(0), "it has no packet"),
                             (good[:8] + b"\0\0\0\0" + good[12:], "it is not a capture"),
                             (good[:28] + b"\x06\0\0\0\x0d\0\0\0" + good, "it is damaged")):
            with open(path, "wb") as file:
                file.write(content)
            done = convert(path)
            assert done.returncode == 1 and why in done.stderr and "Fix: " in done.stderr, done
            assert "Traceback" not in done.stderr, done
        capture(path, [(SENT, 0, data(1))], link=1)
        assert "another program" in convert(path).stderr
        capture(path, [(0, 0, data(1))])
        assert "no direction" in convert(path).stderr
        done = convert("/nonexistent")
        assert done.returncode == 1 and "No such file" in done.stderr and "Fix: " in done.stderr
        capture(path, [(SENT, 0, b"\x01"), (SENT, 1, b""), (SENT, 2, bytes(70))])
        names = [one["data"]["header"]["packet_type"] for one in records_in(convert(path).stdout)]
        assert names == ["short", "short", "utp"], names


def test_a_part_of_a_capture_is_not_passed_off_as_the_whole():
    with tempfile.TemporaryDirectory() as folder:
        path, end = f"{folder}/a", len(statistics(0))
        capture(path, [(SENT, 0, data(1)), (SENT, 1, data(2))])
        whole = pathlib.Path(path).read_bytes()
        assert convert(path).returncode == 0
        for left_out, events, why in ((1, 3, f"it ends inside a block, of which it has {end - 1} "),
                                      (end - 3, 3, "of which it has 3 bytes"), (end, 3, "no end"),
                                      (end + 8, 2, "it ends inside a block")):
            pathlib.Path(path).write_bytes(whole[:-left_out])
            done = convert(path)
            *lines, lacks = done.stderr.splitlines()
            assert done.returncode == 7 and len(lines) == 1, done
            assert lacks.startswith(f"urma_qlog: {path}: it ") and why in lacks, lacks
            assert "Fix: " in lacks and "Traceback" not in done.stderr, done
            told = records_in(done.stdout)
            assert len(told) == events and told[-1]["name"] == "loglevel:warning", told
        capture(path, [(SENT, 0, data(1))], missing=1)
        assert "1 packet is not in the capture" in convert(path).stderr


def test_several_captures_are_converted_one_after_the_other():
    with tempfile.TemporaryDirectory() as folder:
        one, two = f"{folder}/one", f"{folder}/two"
        capture(one, [(SENT, 0, data(1))])
        capture(two, [(SENT, 0, data(1)), (SENT, 1, data(2))])
        done = convert(one, two)
        assert done.returncode == 0 and done.stdout == convert(one).stdout + convert(two).stdout
        lines = done.stderr.splitlines()
        assert [line.split(": ")[0] for line in lines] == [one, two], lines
        # One that cannot be converted leaves out no other.
        done = convert("--summary", f"{folder}/none", two)
        assert done.returncode == 1 and done.stdout.startswith(f"{two}: 127.0.0.1"), done
        assert f"{folder}/none: No such file" in done.stderr, done


def test_an_output_that_cannot_be_written_is_not_the_fault_of_the_capture():
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a"
        capture(path, [(SENT, us, data(us)) for us in range(1000)])
        read_end, ended = os.pipe()
        os.close(read_end)
        full = os.open("/dev/full", os.O_WRONLY)
        for out, why in ((ended, "Broken pipe"), (full, "No space left on device")):
            for words in ([path], ["--summary", path], ["--help"], ["--version"]):
                done = subprocess.run([TOOL, *words], stdout=out, stderr=subprocess.PIPE, text=True,
                                      timeout=100)
                said = f"urma_qlog: writing to stdout: {why}. Fix: "
                assert done.returncode == 1 and done.stderr.startswith(said), (words, done)
                assert done.stderr.count("\n") == 1, done
            os.close(out)


def test_ctrl_c_ends_it_without_a_traceback():
    with tempfile.TemporaryDirectory() as folder:
        path, pipe = f"{folder}/a", f"{folder}/pipe"
        capture(path, [(SENT, us, data(us)) for us in range(100)])
        os.mkfifo(pipe)
        with subprocess.Popen([TOOL, pipe], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tool:
            # The tool has read some of the pipe, and waits for more.
            with open(pipe, "wb") as file:
                file.write(pathlib.Path(path).read_bytes()[:-100])
                file.flush()
                assert tool.stdout.read(1) == b"\x1e"
                tool.send_signal(signal.SIGINT)
                out, err = tool.communicate(timeout=60)
            assert tool.returncode == 130 and err == b"", (tool.returncode, err)


def test_it_says_its_version():
    versions = {subprocess.run([tool, "--version"], capture_output=True, text=True, timeout=20,
                               check=True).stdout.split()[1].rstrip(",") for tool in (TOOL, PERF)}
    assert len(versions) == 1, versions
    done = convert()
    assert done.returncode == 2 and "Fix: " in done.stderr, done


run_tests(globals())
