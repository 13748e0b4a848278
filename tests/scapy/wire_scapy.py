# SPDX-License-Identifier: Apache-2.0
"""Compares the library's bytes with those of ub.py, in both directions, and ub.py with the vectors.

    wire_scapy.py EMIT_PACKETS WIRE_VECTORS [SEED [ROUNDS]]
"""

import ipaddress
import itertools
import random
import subprocess
import sys
import unittest

try:
    import ub
except ImportError as problem:
    if problem.name is None or not problem.name.startswith("scapy"):
        raise
    print("skipped: needs scapy (Debian: python3-scapy)")
    sys.exit(77)

from scapy.packet import Raw

from layers import LAYERS, expect_reports, fields_of, header_of, layers_of, parse_value
from random_packets import RandomPacket, malformed_packets, random_packets, unknown_request

EMIT_PACKETS, WIRE_VECTORS = sys.argv[1:3]
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
ROUNDS = int(sys.argv[4]) if len(sys.argv) > 4 else 12
CNA_PREFIX = "fd554200"  # of the addresses of devices behind a switch

KINDS = {"write", "write_imm", "write_notify", "read", "send", "send_imm", "answer",
         "read_response", "filler", "keep_alive", "ack", "nak", "sack64", "sack128", "sack256",
         "sack512", "sack1024", "ack_ldcp", "ack_caqm", "ack_rate", "nak_caqm", "sack_ldcp",
         "sack_caqm", "sack_rate", "cnp", "open", "retry", "accept", "refuse", "reset", "close",
         "closed"}


def parse_line(line):
    """Converts "name field=value ... | name field=value ..." to [(name, {field: value})]."""
    layers = []
    for text in line.strip().split(" | "):
        name, *fields = text.split(" ")
        layers.append((name, dict(field.split("=", 1) for field in fields)))
    return layers


def eid(text):
    return ipaddress.IPv6Address(bytes.fromhex(text))


def address_of(packet):
    return ub.ip_udp(eid(packet["source"]), int(packet["source_port"], 0),
                     eid(packet["destination"]), int(packet["destination_port"], 0))


def headers_length(ip):
    return (20 if ip.version == 4 else 40) + 8


def run(*words, lines=()):
    text = "".join(line + "\n" for line in lines)
    return subprocess.run([EMIT_PACKETS, *words], input=text, capture_output=True, text=True,
                          check=True).stdout.splitlines()


class LibraryToScapy(unittest.TestCase):
    """Scapy builds the bytes that the library sends from the same values, and reads them back."""

    @classmethod
    def setUpClass(cls):
        cls.packets = [parse_line(line) for line in run(str(SEED), str(ROUNDS))]

    def test_every_kind_of_packet_is_compared_on_both_internet_protocols(self):
        for version in (4, 6):
            kinds = {packet[0][1]["kind"] for packet in self.packets
                     if address_of(packet[0][1]).version == version}
            self.assertEqual(kinds, KINDS, f"IPv{version}: another seed, or more rounds")

    def test_bytes_are_the_same(self):
        for (_, about), *layers, (_, wire) in self.packets:
            with self.subTest(kind=about["kind"]):
                packet = address_of(about)
                skip = headers_length(packet)
                for name, fields in layers:
                    packet /= header_of(name, fields)
                self.assertEqual(ub.seal(packet)[skip:].hex(), wire["hex"])

    def test_fields_are_the_same(self):
        for (_, about), *layers, (_, wire) in self.packets:
            with self.subTest(kind=about["kind"]):
                expect_reports([name for name, _ in layers])
                found = layers_of(ub.RTPH(bytes.fromhex(wire["hex"])))
                self.assertEqual([name for name, _ in found], [name for name, _ in layers])
                for (name, header), (_, fields) in zip(found, layers):
                    values = fields_of(name, header)
                    expected = {field: parse_value(text) for field, text in fields.items()}
                    self.assertEqual(values, {**values, **expected}, name)
                    # The library writes zero into fields that it does not name, except EE_bits: not
                    # trusted.
                    unnamed = {field: value for field, value in values.items()
                               if field not in fields and value}
                    self.assertEqual(unnamed, {"ee_bits": 1} if name == "btah" else {}, name)


class ScapyToLibrary(unittest.TestCase):
    """The library accepts the packets that scapy sends, and refuses malformed ones."""

    def answers(self, packets, reports=itertools.repeat(3)):
        """`reports` has the form of the CETPH for each packet."""
        lines = []
        for (source, destination, port, wire), form in zip(packets, reports):
            lines.append(f"packet reports={form} source={source.packed.hex()} source_port={port} "
                         f"destination={destination.packed.hex()} destination_port={ub.UB_PORT}"
                         f" | wire hex={wire.hex()}")
        return run("parse", lines=lines)

    def test_fields_are_the_same(self):
        packets = list(random_packets(random.Random(SEED), ROUNDS * 30))
        reports = [expect_reports([name for name, _ in layers_of(packet.sent)])
                   for packet in packets]
        answers = self.answers((packet.on_the_wire() for packet in packets), reports)
        self.assertEqual(len(answers), len(packets))
        for packet, answer in zip(packets, answers):
            with self.subTest(packet=packet.sent.summary()):
                self.assertNotEqual(answer, "refused")
                _, *layers = parse_line(answer)
                expected = [(name, header) for name, header in layers_of(packet.sent)
                            if packet.is_rtp() or name in ("addresses", "setup")]
                self.assertEqual([name for name, _ in layers], [name for name, _ in expected])
                for (name, fields), (_, header) in zip(layers, expected):
                    values = fields_of(name, header)
                    for field, text in fields.items():
                        self.assertEqual(parse_value(text), values[field], f"{name}.{field}")

    def test_a_request_of_an_unknown_kind_is_read_as_far_as_its_btah(self):
        rng = random.Random(SEED + 2)
        packets = [RandomPacket(rng, unknown_request(rng)) for _ in range(ROUNDS * 5)]
        answers = self.answers(packet.on_the_wire() for packet in packets)
        self.assertEqual(len(answers), len(packets))
        for packet, answer in zip(packets, answers):
            _, *layers = parse_line(answer)
            self.assertEqual([name for name, _ in layers], ["rtph", "btah"], answer)
            values = fields_of("btah", packet.sent[ub.BTAH])
            for field, text in layers[1][1].items():
                self.assertEqual(parse_value(text), values[field], field)

    def test_what_is_not_well_formed_is_refused(self):
        wrong = list(malformed_packets(random.Random(SEED + 1), ROUNDS))
        answers = self.answers(wire for _, wire in wrong)
        self.assertEqual(len(answers), len(wrong))
        for (why, _), answer in zip(wrong, answers):
            with self.subTest(why=why):
                self.assertEqual(answer, "refused")


class Golden(unittest.TestCase):
    """Scapy agrees with the golden vectors."""

    @classmethod
    def setUpClass(cls):
        cls.vectors = []
        with open(WIRE_VECTORS, encoding="utf-8") as lines:
            for line in lines:
                line = line.split("#")[0].strip()
                if line.startswith("["):
                    kind, _, name = line[1:].partition("] ")
                    fields = {}
                    cls.vectors.append((kind, name, fields))
                elif line:
                    field, _, value = line.partition("=")
                    fields[field.strip()] = value.strip()

    def test_headers(self):
        seen = set()
        for kind, name, fields in self.vectors:
            if kind == "icrc":
                continue
            with self.subTest(kind=kind, name=name):
                fields = dict(fields)
                wire = bytes.fromhex(fields.pop("hex"))
                if "reject" in fields:
                    continue
                ignored = "ignored" in fields
                fields.pop("ignored", None)
                header = header_of(kind, fields)
                if not ignored:
                    self.assertEqual(bytes(header).hex(), wire.hex())
                found = fields_of(kind, LAYERS[kind](wire))
                for field, value in fields_of(kind, header).items():
                    if field in fields or not ignored:
                        self.assertEqual(found[field], value, field)
                seen.add(kind)
        self.assertEqual(seen, set(LAYERS) - {"data"})

    def test_icrc(self):
        versions = set()
        for kind, name, fields in self.vectors:
            if kind != "icrc":
                continue
            with self.subTest(name=name):
                if fields["source"].startswith(CNA_PREFIX):
                    self.check_linked(fields)
                    continue
                ip = address_of(fields)
                body = bytes.fromhex(fields["body"])
                whole = bytes(ip / Raw(body + bytes(4)))
                self.assertEqual(ub.icrc(whole).hex(), fields["icrc"].replace(" ", ""))
                canonical = ub.canonical_headers(whole[:headers_length(ip)])
                self.assertEqual(canonical.hex(), fields["canonical"].replace(" ", ""))
                versions.add(ip.version)
        self.assertEqual(versions, {4, 6})

    def check_linked(self, fields):
        """Devices behind a switch have CNAs in their addresses, and no IP headers."""
        ends = [int(fields[end][-6:], 16) for end in ("source", "destination")]
        body = bytes.fromhex(fields["body"])
        self.assertEqual(ub.linked_headers(*ends).hex(), fields["canonical"].replace(" ", ""))
        self.assertEqual(ub.linked_icrc(*ends, body).hex(), fields["icrc"].replace(" ", ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
