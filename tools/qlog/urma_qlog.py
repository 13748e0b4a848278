#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts captures (pcap(...), URMA_CAPTURE) to an event log (qlog)."""

import argparse
import datetime
import ipaddress
import json
import os
import struct
import sys

VERSION = "@PROJECT_VERSION@"  # CMake writes the version into the program that it installs
SCHEMA = "urn:liburma:qlog:events:urma-1"
CTP_PORT = 4793
PSNS = 1 << 24
SECTION, INTERFACE, STATISTICS, PACKET = 0x0A0D0D0A, 1, 5, 6
CUT = None  # in place of a kind: the file ends inside this block
RAW_IP = 101
DIRECTIONS = {1: "packet_received", 2: "packet_sent"}
OPCODES = {0x00: "send", 0x01: "send_imm", 0x03: "write", 0x04: "write_imm", 0x05: "write_notify",
           0x06: "read", 0x07: "cas", 0x08: "swap", 0x09: "atomic_store", 0x0A: "atomic_load",
           0x0B: "fetch_add", 0x0C: "fetch_sub", 0x0D: "fetch_and", 0x0E: "fetch_or",
           0x0F: "fetch_xor", 0x11: "taack", 0x12: "read_response", 0x13: "atomic_response"}
ANSWERS = (0x11, 0x12, 0x13)
ACKNOWLEDGEMENTS = {2: "tpack", 3: "tpack", 5: "tpsack", 6: "tpsack"}
WITH_REPORT = (3, 6)
REPORT_BYTES = 8
ANSWER_STATUS = {0: "success", 1: "receiver_not_ready", 2: "page_fault", 3: "completer_error",
                 5: "not_yet_placed"}
SETUP = {1: "open", 2: "retry", 3: "accept", 4: "refuse", 5: "reset", 6: "close", 7: "closed",
         8: "question", 9: "answer", 10: "paths", 11: "noted"}


OK, ERROR, USAGE, INCOMPLETE, INTERRUPTED = 0, 1, 2, 7, 130
USAGE_TEXT = """\
  urma_qlog a.pcapng > a.sqlog    writes the log, and a line for each channel to stderr
  urma_qlog --summary *.pcapng    prints only these lines, to stdout

Each log begins with a record that names its capture. Python 3 is needed and nothing else.
Exit codes: 0 ok  1 error  2 usage  7 ok, but a capture lacks packets  130 Ctrl-C
"""
NO_END = ("it has no end, because its program still runs or was killed: the last packets may be "
          "missing")

FOREIGN = ("it is not a capture of this library. Fix: make one by pcap(file=...) or URMA_CAPTURE")


class Unusable(Exception):
    """The file cannot be converted. The text says why, and what to do."""


class OutputFailed(Exception):
    """Standard output cannot be written. The text says why."""


# ---- the capture

def options_of(body):
    """Returns the options at the end of a block, by code."""
    found, at = {}, 0
    while at + 4 <= len(body):
        code, size = struct.unpack_from("<HH", body, at)
        if code == 0:
            break
        found[code] = body[at + 4:at + 4 + size]
        at += 4 + (size + 3) // 4 * 4
    return found


def blocks_of(file):
    """Yields the kind and the body of each whole block, then CUT and the bytes left, if any."""
    first = True
    while head := file.read(8):
        if first and not struct.pack("<I", SECTION).startswith(head[:4]):
            raise Unusable(FOREIGN)
        first = False
        if len(head) < 8:
            yield CUT, head
            return
        kind, size = struct.unpack("<II", head)
        if size < 12 or size % 4 or size > 1 << 24:
            raise Unusable("it is damaged. Fix: name another capture")
        body = file.read(size - 8)
        if len(body) < size - 8:
            yield CUT, head + body
            return
        yield kind, body[:-4]


def packet_of(body):
    """Returns (time in ns since 1970, direction, bytes kept, length) of a packet."""
    _, high, low, kept, length = struct.unpack_from("<IIIII", body)
    flags = options_of(body[20 + (kept + 3) // 4 * 4:]).get(2, bytes(4))
    direction = struct.unpack("<I", flags)[0] & 3
    if direction not in DIRECTIONS:
        raise Unusable("its packets have no direction. Fix: capture by pcap(file=...) or "
                       "URMA_CAPTURE")
    return (high << 32 | low), DIRECTIONS[direction], body[20:20 + kept], length


def losses_of(body):
    """Yields a text if the statistics at the end of a capture count packets that it lost."""
    found = options_of(body[12:])
    missing = struct.unpack("<Q", found[5])[0] if 5 in found else 0
    if missing:
        why = found.get(1, b"").decode("ascii", "replace") or "they are too large for it"
        what = "1 packet is" if missing == 1 else f"{missing} packets are"
        yield f"{what} not in the capture: {why}"


def packets_of(file):
    """Yields each packet as `packet_of` returns it, then texts about packets that are missing."""
    kind, ended = CUT, False
    for kind, body in blocks_of(file):
        if kind == SECTION and body[:4] != b"\x4d\x3c\x2b\x1a":
            raise Unusable(FOREIGN)
        if kind == INTERFACE and struct.unpack_from("<H", body)[0] != RAW_IP:
            raise Unusable("it was made by another program, so it has no directions. Fix: capture "
                           "by pcap(file=...) or URMA_CAPTURE")
        if kind == PACKET:
            yield packet_of(body)
        elif kind == STATISTICS:
            ended = True
            yield from ((None, "missing", text, 0) for text in losses_of(body))
        elif kind == CUT:
            yield None, "cut", f"it ends inside a block, of which it has {len(body)} bytes", 0
    if not ended and kind != CUT:
        yield None, "missing", NO_END, 0


# ---- a packet

def in_udp(packet):
    """Returns (source, destination, payload, whether it is CTP) of a UDP datagram; each address
    has its port."""
    if packet[0] >> 4 == 4:
        start, addresses = (packet[0] & 15) * 4, (packet[12:16], packet[16:20])
    else:
        start, addresses = 40 if packet[6] == 17 else 48, (packet[8:24], packet[24:40])
    ports = struct.unpack_from(">HH", packet, start)

    def text(address, port):
        one = str(ipaddress.ip_address(address))
        return f"[{one}]:{port}" if ":" in one else f"{one}:{port}"
    return (text(addresses[0], ports[0]), text(addresses[1], ports[1]), packet[start + 8:],
            CTP_PORT in ports)


def transaction(data):
    """Returns what a packet carries, by its BTAH or ATAH."""
    if len(data) < 8:
        return []
    code = data[0]
    one = {"frame_type": OPCODES.get(code, f"opcode_{code:#04x}"),
           "tassn": int.from_bytes(data[2:4], "big"),
           "queue": int.from_bytes(data[5:8], "big") & 0xFFFFF}
    if code in ANSWERS:
        one["status"] = ANSWER_STATUS.get(data[4] >> 5, "other")
    elif data[4] & 2:
        one["retry"] = True
    return [one]


def acknowledgement(data, opcode):
    """Returns what a packet acknowledges: the highest PSN in order, and others beyond it."""
    psn, nak = int.from_bytes(data[9:12], "big"), data[12] == 3 << 5
    ranges, at = [], 16 + (REPORT_BYTES if opcode in WITH_REPORT else 0)
    if ACKNOWLEDGEMENTS[opcode] == "tpsack" and len(data) >= at + 12:
        bits = int.from_bytes(data[at + 4:at + 4 + (8 << min(data[at] & 7, 4))], "little")
        for place in range(1, bits.bit_length()):
            if not bits >> place & 1:
                continue
            one = (psn + place) % PSNS
            if ranges and (ranges[-1][1] + 1) % PSNS == one:
                ranges[-1][1] = one
            else:
                ranges.append([one, one])
    in_order = (psn - 1) % PSNS if nak else psn
    return {"frame_type": "tpnak" if nak else ACKNOWLEDGEMENTS[opcode], "in_order": in_order,
            "beyond": ranges}


def dissect(payload, compact):
    """Returns the header and the frames of a packet, as the event has them."""
    if compact:
        kind = {0: "ctp", 1: "ctp_cnp", 2: "ctp_filler"}.get(payload[0] >> 6, "ctp")
        return {"packet_type": kind}, []
    if len(payload) < 16:
        return {"packet_type": "short"}, []
    opcode = payload[0] & 0x7F
    if opcode == 0:
        # A set-up message is a Send to Jetty 0 behind UPIH32 and EIDH256.
        body = payload[16 + 36:]
        setup = len(body) >= 80 and body[0] == 0 and int.from_bytes(body[9:12], "big") == 0
        frames = ([{"frame_type": "setup", "message": SETUP.get(body[16], "unknown"),
                    "reason": body[18]}] if setup else transaction(body))
        return {"packet_type": "utp"}, frames
    header = {"packet_type": "rtp", "source_tpn": int.from_bytes(payload[2:5], "big"),
              "destination_tpn": int.from_bytes(payload[5:8], "big")}
    if opcode in ACKNOWLEDGEMENTS:
        return header, [acknowledgement(payload, opcode)]
    if opcode != 1:
        return {**header, "packet_type": "cnp" if opcode == 8 else "other"}, []
    header["packet_number"] = int.from_bytes(payload[9:12], "big")
    if payload[8] & 0x40:
        return header, [{"frame_type": "filler"}]
    return header, transaction(payload[16:-4])


# ---- channels

class Channel:
    """The packets that this end sends over a channel, and their acknowledgements."""

    def __init__(self, name):
        self.name = name
        self.flight = {}  # by PSN: [first sent, last sent, copies, bytes]
        self.packets = self.sent_again = self.sent_bytes = self.bytes_in_flight = 0
        self.round_trips, self.least = [], None
        self.news = None  # when something was last acknowledged, or sent into an empty flight
        self.longest = (0, 0)  # without an acknowledgement: how long, and from when

    def send(self, time, psn, size):
        """Returns the data of a packet_lost if the packet was sent before."""
        self.packets += 1
        if psn not in self.flight:
            if not self.flight:
                self.news = time
            self.flight[psn] = [time, time, 1, size]
            self.sent_bytes += size
            self.bytes_in_flight += size
            return None
        one = self.flight[psn]
        lost = {"copies": one[2], "after_ms": (time - one[1]) / 1e6}
        one[1], one[2] = time, one[2] + 1
        self.sent_again += 1
        return lost

    def acknowledge(self, time, ack):
        """Returns the data of a metrics_updated if anything is acknowledged for the first time."""
        def is_acknowledged(psn):
            if (ack["in_order"] - psn) % PSNS < PSNS // 2:
                return True
            return any((psn - low) % PSNS <= (high - low) % PSNS for low, high in ack["beyond"])
        done = [psn for psn in self.flight if is_acknowledged(psn)]
        if not done:
            return None
        gone = [self.flight.pop(psn) for psn in done]
        self.bytes_in_flight -= sum(one[3] for one in gone)
        self.longest = max(self.longest, (time - self.news, self.news))
        self.news = time
        out = {"bytes_in_flight": self.bytes_in_flight, "packets_in_flight": len(self.flight)}
        # The acknowledgement of a packet that was sent again may be that of either copy.
        if once := [one[1] for one in gone if one[2] == 1]:
            self.round_trips.append(time - max(once))
            latest = self.round_trips[-1]
            self.least = min(self.least or latest, latest)
            out.update({"latest_rtt": latest / 1e6, "min_rtt": self.least / 1e6})
        return out

    def summary(self, start):
        """Returns a line for people."""
        text = (f"{self.name}: {self.packets} packets sent, {self.sent_bytes} bytes, "
                f"{self.sent_again} sent again")
        if self.round_trips:
            trips = sorted(self.round_trips)
            least, half, most = (trips[int(len(trips) * part)] / 1e3 for part in (0, .5, .99))
            text += f"; round trips {least:.1f} us at least, {half:.1f} half, {most:.1f} 99 %"
        if self.longest[0]:
            text += (f"; longest wait for an acknowledgement {self.longest[0] / 1e6:.2f} ms, at "
                     f"{(self.longest[1] - start) / 1e9:.3f} s")
        return text


class Converter:
    """Turns packets into events, and remembers the channels."""

    def __init__(self):
        self.channels = {}
        self.start = None

    def channel(self, here, there, ours, theirs):
        key = here, there, ours, theirs
        if key not in self.channels:
            self.channels[key] = Channel(f"{here} to {there}, TPN {ours:#08x} to {theirs:#08x}")
        return self.channels[key]

    def events(self, time, kind, packet, length):
        """Yields (name, group, data) of a packet."""
        if time is None:
            yield "loglevel:warning", None, {"message": packet}
            return
        try:
            source, destination, payload, compact = in_udp(packet)
            header, frames = dissect(payload, compact)
        except (IndexError, ValueError, struct.error):
            yield f"urma:{kind}", None, {"header": {"packet_type": "malformed"},
                                         "raw": {"length": length}}
            return
        sent = kind == "packet_sent"
        here, there = (source, destination) if sent else (destination, source)
        data = {"header": header, "raw": {"length": length}, "frames": frames}
        group = f"{here} {there}"
        channel = None
        if "source_tpn" in header:
            ours, theirs = header["source_tpn"], header["destination_tpn"]
            if not sent:
                ours, theirs = theirs, ours
            group += f" {ours:06x} {theirs:06x}"
            channel = self.channel(here, there, ours, theirs)
        if sent and channel and "packet_number" in header:
            if lost := channel.send(time, header["packet_number"], length):
                again = {"packet_type": "rtp", "packet_number": header["packet_number"]}
                yield "urma:packet_lost", group, {"header": again, **lost}
                data["is_retransmission"] = True
        yield f"urma:{kind}", group, data
        if not sent and channel and frames and "in_order" in frames[0]:
            if metrics := channel.acknowledge(time, frames[0]):
                yield "urma:metrics_updated", group, metrics


def preamble(name, start):
    """Returns the first record of a file (draft-ietf-quic-qlog-main-schema)."""
    epoch = datetime.datetime.fromtimestamp(start // 10**9, datetime.timezone.utc)
    return {"file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq", "title": name,
            "trace": {"vantage_point": {"name": "liburma", "type": "unknown"},
                      "event_schemas": [SCHEMA, "urn:ietf:params:qlog:events:loglevel"],
                      "common_fields": {"time_format": "relative_to_epoch", "reference_time": {
                          "clock_type": "system",
                          "epoch": epoch.strftime("%Y-%m-%dT%H:%M:%S.000Z")}}}}


def convert(file, name, write):
    """Passes each record to `write`. Returns the lines about the channels, and the texts about
    packets that are missing."""
    converter, start, latest, lacks = Converter(), None, 0, []
    for time, kind, packet, length in packets_of(file):
        if start is None:
            if kind == "cut":
                raise Unusable("it is cut off before its first packet ends. Fix: copy the whole "
                               "file, or capture again")
            if packet is NO_END:
                break
            start = latest = time or 0
            write(preamble(name, start))
        if time is None:
            lacks.append(packet)
        latest = time or latest
        for event, group, data in converter.events(time, kind, packet, length):
            record = {"time": (latest - start // 10**9 * 10**9) / 1e6, "name": event, "data": data}
            write({**record, "group_id": group} if group else record)
    if start is None:
        raise Unusable("it has no packet. Fix: name a capture of a device that has sent something")
    lines = [channel.summary(start) for channel in converter.channels.values() if channel.packets]
    return lines, lacks


# ---- the program

def print_out(text):
    """Writes to standard output."""
    try:
        if sys.stdout is None:
            raise OutputFailed("it is closed")
        sys.stdout.write(text)
    except OSError as why:
        raise OutputFailed(why.strerror) from why


def flush_out():
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as why:
        raise OutputFailed(why.strerror) from why


def print_error(text):
    """Prints a line on stderr. If that fails, the exit code still says what happened."""
    try:
        if sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)
    except OSError:
        pass


def convert_file(path, options):
    """Converts one capture. Returns the exit code."""
    def write(record):
        if not options.summary:
            print_out("\x1e" + json.dumps(record, separators=(",", ":")) + "\n")
    try:
        with open(path, "rb") as file:
            lines, lacks = convert(file, path.rsplit("/", 1)[-1], write)
    except (Unusable, struct.error, IndexError, KeyError) as why:
        text = why if isinstance(why, Unusable) else "it is damaged. Fix: name another capture"
        print_error(f"urma_qlog: {path}: {text}")
        return ERROR
    except OSError as why:
        print_error(f"urma_qlog: {path}: {why.strerror}. Fix: name a file that can be read")
        return ERROR
    flush_out()
    for line in lines:
        text = f"{path}: {line}" if len(options.captures) > 1 else line
        if options.summary:
            print_out(text + "\n")
        else:
            print_error(text)
    flush_out()
    for text in lacks:
        print_error(f"urma_qlog: {path}: {text}. Fix: capture again, with room for the whole file "
                    "(df, limit=), and convert it after the program has ended")
    return INCOMPLETE if lacks else OK


class Parser(argparse.ArgumentParser):
    def error(self, message):
        # argparse would print it on stdout if stderr is closed.
        print_error(f"urma_qlog: {message}. Fix: urma_qlog CAPTURE, or see "
                    "--help")
        raise SystemExit(USAGE)


def parser():
    one = Parser(
        prog="urma_qlog", description=__doc__ + "\n\n" + USAGE_TEXT, add_help=False,
        usage="urma_qlog [OPTIONS] CAPTURE...", formatter_class=argparse.RawTextHelpFormatter)
    one.add_argument("captures", metavar="CAPTURE", nargs="*",
                     help="a file of pcap(file=...) or URMA_CAPTURE")
    one.add_argument("--summary", action="store_true", help="print only a line for each channel")
    # argparse's own actions would end with 0 even if the text cannot be written.
    one.add_argument("--version", action="store_true", help="print the version")
    one.add_argument("-h", "--help", action="store_true", help="print this help")
    return one


def run(words):
    """Returns the exit code."""
    options = parser().parse_args(words)
    if options.help or options.version:
        version = "of the source tree" if VERSION.startswith("@") else VERSION
        print_out(parser().format_help() if options.help else f"urma_qlog {version}\n")
        flush_out()
        return OK
    if not options.captures:
        parser().error("no capture is named")
    exits = [convert_file(path, options) for path in options.captures]
    return ERROR if ERROR in exits else max(exits)


def main(words):
    """Returns the exit code."""
    try:
        return run(words)
    except SystemExit as end:
        return end.code  # of argparse
    except OutputFailed as why:
        print_error(f"urma_qlog: writing to stdout: {why}. Fix: free some space, or let the next "
                    "program of the pipe read all output")
        return ERROR
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    # The interpreter's own end would try again to write what could not be written.
    os._exit(main(sys.argv[1:]))
