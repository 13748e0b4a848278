# SPDX-License-Identifier: Apache-2.0
"""Does tshark show liburma's packets correctly? wireshark_test.py ROOT EMIT_PACKETS URMA_PERF"""

import ipaddress
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

import pcapng

ROOT = pathlib.Path(sys.argv[1])
EMIT_PACKETS, URMA_PERF = sys.argv[2:4]
DISSECTOR = ROOT / "tools/wireshark/uboe.lua"
VECTORS = ROOT / "tests/golden/wire_vectors.txt"
ROUNDS = 8
KINDS = 32  # kinds of packets that emit_packets makes
HERE, THERE = bytes.fromhex("0a000001"), bytes.fromhex("0a000002")
WINDOW = bytes.fromhex("fd75726d610001020304050607000001")
# Vectors that do not name this field have another value than zero.
SENT_AS = {"uboe.btah.ee_bits": 1, "uboe.link_word.version": 1}
PSNS = 1 << 24


def tshark(path, *arguments):
    done = subprocess.run(["tshark", "-n", "-X", f"lua_script:{DISSECTOR}", "-r", path, *arguments],
                          capture_output=True, text=True, timeout=120, errors="replace")
    assert done.returncode == 0, done.stderr
    assert "Lua" not in done.stderr, done.stderr
    return done.stdout


BYTES = ("uboe.data", "uboe.padding", "uboe.undecoded", "uboe.saetph.bitmap")
ADDRESS = ("uboe.addresses.source", "uboe.addresses.destination")


def value_of(field, text):
    if field in BYTES:
        return text.replace(":", "")
    if field in ADDRESS:
        return ipaddress.IPv6Address(text).packed.hex()
    if text in ("True", "False"):  # as later versions say it
        return int(text == "True")
    if field.startswith("uboe.") and text:
        return int(text, 0)
    return text


def leaves(tree, found):
    """Returns {field: [values]} of a tree whose branches are fields, too."""
    for field, value in tree.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                leaves(one, found)
            else:
                found.setdefault(field, []).append(value_of(field, one))
    return found


def dissected(packets):
    """Returns for each packet {field: [values]} of all that tshark shows."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.pcapng")
        pcapng.write(path, packets)
        text = tshark(path, "-T", "json", "--no-duplicate-keys")
    assert "Lua Error" not in text, text[text.index("Lua Error"):][:500]
    told = json.loads(text)
    assert len(told) == len(packets), (len(told), len(packets))
    return [leaves(packet["_source"]["layers"], {}) for packet in told]


def ours(found):
    return {field: values for field, values in found.items() if field.startswith("uboe.")}


# ---- golden vectors, and packets of emit_packets

def read_vectors():
    """Returns [(header, name, {field: text})]."""
    vectors = []
    for line in VECTORS.read_text(encoding="utf-8").splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("["):
            header, _, name = line[1:].partition("] ")
            vectors.append((header, name, {}))
        elif line:
            field, _, value = line.partition("=")
            vectors[-1][2][field.strip()] = value.strip()
    return vectors


RTPH = "81 00 000001 000002 00 000100 00 000004 "
RTPH_ACK_CC = "03 00 000001 000002 00 000100 00 000000 "
RTPH_CNP = "08 00 000001 000002 00 000000 00 000000 "
RTPH_SACK = "05 00 000001 000002 00 000100 00 000000 "
UTPH = "00 01" + 14 * "00"
ADDRESSES = "00 000001" + 32 * "00"
MTETAH, OFSTETAH, MAETAH, TVETAH = 4 * "00", 4 * "00", 16 * "00", 4 * "00"
SETUP_HEAD = UTPH + ADDRESSES + "00 10 0000 08 000000" + MTETAH + OFSTETAH
# Headers of UB links whose vectors do not fit into a packet of liburma.
ON_LINKS = ("cci_", "nth_")
LINK_WORD, LINK_NTH = "70 01 00 00", "000001 000002 0000 00 02"
# The forms of a CETPH. Without an OPEN and an ACCEPT, each is shown.
FORMS = {"cetph_ldcp", "cetph_caqm", "cetph_rate"}
# The bytes before and behind a header, in a packet that contains it.
EMBEDDED = {
    "rtph": ("", ""),
    "utph": ("", ""),
    "addresses": (UTPH, ""),
    "saetph": (RTPH_SACK, ""),
    "cetph_ldcp": (RTPH_ACK_CC, ""),
    "cetph_caqm": (RTPH_ACK_CC, ""),
    "cetph_rate": (RTPH_ACK_CC, ""),
    "cetph_cnp": (RTPH_CNP, ""),
    "btah": (RTPH, 64 * "00"),
    "atah": (RTPH, 4 * "00"),
    "maetah": (RTPH + "06 10 0001 00 000001", ""),
    "mtetah": (RTPH + "00 10 0001 08 000001", OFSTETAH),
    "tvetah": (RTPH + "06 18 0001 00 000001" + MAETAH, ""),
    "ofstetah": (RTPH + "00 10 0001 08 000001" + MTETAH, ""),
    "immetah": (RTPH + "01 10 0001 08 000001" + MTETAH + OFSTETAH, ""),
    "ntfetah": (RTPH + "05 10 0001 00 000001" + MAETAH, ""),
    "udetah": (RTPH + "0a 11 0001 00 000001", MAETAH),
    "setup": (SETUP_HEAD, ""),
}


def on_link(word, nth, body, icrc=None):
    """Returns a packet between a device and a switch: of the NTH, CCI and LBF are ones for the
    ICRC."""
    covered = nth[:6] + b"\xff\xff\xff" + nth[9:]
    icrc = icrc or struct.pack("<I", zlib.crc32(covered + body))
    return pcapng.in_udp(HERE, THERE, word + nth + body + icrc, (50000, pcapng.LINK_PORT))


def link_datagram(header, wire):
    message = wire if header == "link_control" else bytes(28)
    word = wire if header == "link_word" else bytes.fromhex("00 01 00 00")
    if word[0] >> 4 == 0:
        return pcapng.in_udp(HERE, THERE, word + message, (pcapng.LINK_PORT, 50000))
    return on_link(word, bytes.fromhex(LINK_NTH), bytes.fromhex(RTPH))


def packet_around(header, hexadecimal):
    if header == "ctph":
        return pcapng.in_udp(WINDOW, WINDOW, bytes.fromhex(hexadecimal),
                             (pcapng.UB_PORT, pcapng.CTP_PORT))
    if header.startswith("link_"):
        return link_datagram(header, bytes.fromhex(hexadecimal))
    before, behind = EMBEDDED[header]
    body = bytes.fromhex(before + hexadecimal + behind)
    return pcapng.with_icrc(HERE, THERE, body)


def check_header(header, expected, found, about):
    """`expected` is in the form of the vectors: numbers, EIDs, or a list of ones."""
    expected = dict(expected)
    if header == "saetph":
        first = found["uboe.rtph.psn"][0]
        received = found.get("uboe.saetph.received", [])
        ones = [(psn - first) % PSNS for psn in received]
        assert ones == [int(one) for one in expected.pop("bits", "").split(",") if one], about
        newest = (found["uboe.saetph.max_received"][0] - first) % PSNS
        holes = [i for i in range(min(newest, found["uboe.saetph.bit_count"][0])) if i not in ones]
        assert [(psn - first) % PSNS for psn in found.get("uboe.saetph.missing", [])] == holes
    for name, text in expected.items():
        value = text if re.fullmatch("[0-9a-f]{32}", text) else int(text, 0)
        assert found[f"uboe.{header}.{name}"] == [value], (about, header, name, value, found)


def test_golden_vectors():
    vectors = [vector for vector in read_vectors()
               if vector[0] != "icrc" and not vector[0].startswith(ON_LINKS)]
    packets = [packet_around(header, fields["hex"]) for header, _, fields in vectors]
    icrcs = icrc_packets()
    found = dissected(packets + [packet for packet, _ in icrcs])
    check_vectors(vectors, found[:len(packets)])
    check_icrcs(icrcs, found[len(packets):])


def check_vectors(vectors, founds):
    seen, named = set(), set()
    for (header, name, vector), found in zip(vectors, founds):
        about = f"[{header}] {name}"
        said = {field: text for field, text in vector.items()
                if field not in ("hex", "ignored", "reject")}
        if "reject" in vector:
            assert "uboe.malformed" in found or f"uboe.{header}.next" not in found, (about, found)
            continue
        check_header(header, said, found, about)
        named.update(f"uboe.{header}.{field}" for field in said)
        seen.update(ours(found))
        if "ignored" in vector:
            continue
        for field, values in ours(found).items():
            parts = field.split(".")
            derived = header == "saetph" and parts[-1] not in ("max_received", "bit_count")
            if parts[1] == header and parts[-1] not in said and not derived:
                assert values == [SENT_AS.get(field, 0)], (about, field, values)
        if header not in ("ctph", "link_control"):
            assert found["uboe.icrc.status"] == [1], (about, found)
    # A field that no vector names belongs to no header, or is not used here.
    unused = {"version", "ee_bits", "poison", "no_taack", "completion_order", "alloc", "e_bit",
              "rc_type", "sv", "hint", "tc_type", "bitmap_size", "bitmap", "received", "missing",
              "padding", "opcode"}
    for field in seen:
        parts = field.split(".")
        used = len(parts) == 3 and parts[1] != "icrc" and parts[2] not in unused
        used = used and not parts[1].startswith(ON_LINKS)
        assert field in named or not used, field


def link_icrc_packets(fields, body):
    """Packets with this ICRC between a device and a switch, which may change CCI and LBF."""
    ends = bytes.fromhex(fields["source"][-6:] + fields["destination"][-6:])
    icrc = bytes.fromhex(fields["icrc"])
    packets = []
    for changed, status in (("0000 00 02", [1]), ("1234 56 02", [1]), ("0000 00 12", [0])):
        nth = ends + bytes.fromhex(changed)
        packets.append((on_link(bytes.fromhex(LINK_WORD), nth, body, icrc), status))
    return packets


def icrc_packets():
    """[(IP packet, what uboe.icrc.status says of it)]"""
    packets = []
    for header, _, fields in read_vectors():
        if header != "icrc":
            continue
        source, destination = (pcapng.address(fields[end]) for end in ("source", "destination"))
        ports = int(fields["source_port"]), int(fields["destination_port"])
        body = bytes.fromhex(fields["body"])
        if fields["source"].startswith("fd5542"):
            packets += link_icrc_packets(fields, body)
            continue
        whole = pcapng.in_udp(source, destination, body + bytes.fromhex(fields["icrc"]), ports)
        assert whole == pcapng.with_icrc(source, destination, body, ports)
        packets.append((whole, [1]))
        if pcapng.UB_PORT in ports:  # on other ports the heuristic does not apply
            packets.append((whole[:-1] + bytes([whole[-1] ^ 1]), [0]))
    # A change of bytes that a path may change, or of IPv4's ID, does not matter. Any other change
    # does.
    for at, status in ((1, [1]), (5, [1]), (8, [1]), (10, [1]), (26, [1]), (12, [0]), (40, [0])):
        changed = bytearray(pcapng.with_icrc(HERE, THERE, bytes.fromhex(RTPH)))
        changed[at] ^= 0x10
        packets.append((bytes(changed), status))
    return packets


def check_icrcs(packets, founds):
    for (packet, status), found in zip(packets, founds):
        assert found.get("uboe.icrc.status") == status, (packet.hex(), status, found)
        assert ("uboe.icrc.bad" in found) == (status == [0])


def emitted():
    """[(route and kind, [(header, {field: text})], bytes from the transport header on)]"""
    lines = subprocess.run([EMIT_PACKETS, "7", str(ROUNDS)], capture_output=True, text=True,
                           timeout=60, check=True).stdout.splitlines()
    packets = []
    for line in lines:
        layers = []
        for text in line.split(" | "):
            name, *fields = text.split(" ")
            layers.append((name, dict(field.split("=", 1) for field in fields)))
        packets.append((layers[0][1], layers[1:-1], bytes.fromhex(layers[-1][1]["hex"])))
    return packets


def on_ip(route, wire):
    source, destination = (pcapng.address(route[end]) for end in ("source", "destination"))
    return pcapng.in_udp(source, destination, wire,
                         (int(route["source_port"], 0), int(route["destination_port"], 0)))


def check_layers(layers, found, about):
    for header, fields in layers:
        if header == "data":
            field = "uboe.padding" if layers[-2][0] == "setup" else "uboe.data"
            assert found[field] == [fields["hex"]], (about, found)
        else:
            check_header(header, fields, found, about)
    present = {field.split(".")[1] for field in found
               if field.count(".") == 2 and field.startswith("uboe.")}
    expected = {header for header, _ in layers} - {"data"}
    if expected & FORMS:
        expected |= FORMS
    assert present - {"icrc"} == expected, (about, present)


def test_packets_of_every_kind():
    made = emitted()
    assert len({route["kind"] for route, _, _ in made}) == KINDS
    expected, packets = [], []
    for route, layers, wire in made:
        packets.append(on_ip(route, wire))
        expected.append((route, layers))
        # The same packet without the numbers of its transport header, as it would be in a window.
        headers = [header for header, _ in layers]
        if headers[0] == "rtph" and headers[1:2] in (["btah"], ["atah"]):
            padding = int(layers[0][1]["padding"], 0)
            rest = wire[16:len(wire) - 4 - padding]
            kind = 2 if route["kind"] == "filler" else 0
        elif headers[0] == "utph":
            rest, kind = wire[16:-4], 0
        else:
            continue
        ctph = {"opcode": str(kind), "next": "1" if headers[0] == "utph" else "0"}
        packets.append(pcapng.in_udp(WINDOW, WINDOW,
                                     bytes([kind << 6 | int(ctph["next"])]) + rest,
                                     (pcapng.UB_PORT, pcapng.CTP_PORT)))
        expected.append((route, [("ctph", ctph)] + layers[1:]))
    others = taken = 0
    for (route, layers), found in zip(expected, dissected(packets)):
        about = route["kind"]
        if not ours(found) and str(pcapng.UB_PORT) not in found["udp.port"]:
            taken += 1  # it came to a port that belongs to another protocol by chance
            continue
        assert "uboe.malformed" not in found and "uboe.unknown" not in found, (about, found)
        check_layers(layers, found, about)
        if layers[0][0] != "ctph":
            assert found["uboe.icrc.status"] == [1], (about, found)
            others += str(pcapng.UB_PORT) not in found["udp.port"]
        if layers[0][0] == "rtph":
            assert found["uboe.psn"] == [int(layers[0][1]["psn"], 0)]
        for header, said in layers:
            if header in ("btah", "atah"):
                assert found["uboe.tassn"] == [int(said["tassn"], 0)]
                assert found["uboe.rc_id"] == [int(said["rc_id"], 0)]
    assert others > 10 and taken < 10, (others, taken)


def setup_packet(kind, features, from_tpn, to_tpn):
    body = struct.pack(">BBBBIQQIIII", kind, 1, 0, 12, features, 1, 2, from_tpn, to_tpn, 3, 4)
    return pcapng.with_icrc(HERE, THERE, bytes.fromhex(SETUP_HEAD) + body.ljust(64, b"\0"))


def ack_packet(from_tpn, to_tpn):
    head = bytes.fromhex("0300") + from_tpn.to_bytes(3, "big") + to_tpn.to_bytes(3, "big")
    return pcapng.with_icrc(HERE, THERE, head + bytes(8 + 8))


def forms_shown(found):
    return {field.split(".")[1] for field in ours(found)} & FORMS


def test_forms_that_were_agreed_on():
    """Each direction has the form that its sender wants, if its receiver gives it."""
    names = {1: "cetph_ldcp", 3: "cetph_caqm", 4: "cetph_rate"}
    packets, expected = [], []
    tpn = 16
    for wanted, given in ((1, 0x0d), (3, 0x0d), (4, 0x0d), (4, 0x05), (0, 0x0d), (9, 0xff)):
        for other in (1, 3):
            tpn += 2
            opener = 0x23 | 1 << 16 + other - 1 | wanted << 24
            accepter = 0x23 | given << 16 | other << 24
            packets += [setup_packet(1, opener, tpn, 0), setup_packet(3, accepter, tpn + 1, tpn),
                        ack_packet(tpn + 1, tpn), ack_packet(tpn, tpn + 1)]
            agreed = wanted in names and given >> wanted - 1 & 1
            expected += [set(), set(), {names[wanted]} if agreed else FORMS, {names[other]}]
    # An end without the feature has not offered anything, whatever its other bits are.
    packets += [setup_packet(1, 0x040f0003, 1, 0), setup_packet(3, 0x030f0023, 2, 1),
                ack_packet(2, 1), ack_packet(1, 2), ack_packet(5, 6)]
    expected += [set(), set(), FORMS, FORMS, FORMS]
    for number, (found, forms) in enumerate(zip(dissected(packets), expected)):
        assert forms_shown(found) == forms, (number, forms, found)
        assert found["uboe.icrc.status"] == [1] and "uboe.malformed" not in found, found


# ---- broken packets

def broken_packets():
    rng = random.Random(1)
    packets, whole, kinds = [], [], set()
    for route, _, wire in emitted():
        route = {**route, "destination_port": str(pcapng.UB_PORT)}
        first = route["kind"] not in kinds
        kinds.add(route["kind"])
        if first:
            packets += [on_ip(route, wire[:bytes_]) for bytes_ in range(1, min(len(wire), 160))]
            # With a matching length and a valid ICRC.
            for bytes_ in range(4, min(len(wire), 160), 4):
                packets.append(pcapng.with_icrc(HERE, THERE, wire[:bytes_]))
            for kept in range(29, len(on_ip(route, wire)), 3 if len(wire) < 160 else 29):
                packets.append((on_ip(route, wire), kept))
        for _ in range(6):
            changed = bytearray(wire)
            for _ in range(rng.choice((1, 1, 2, 20))):
                changed[rng.randrange(min(len(changed), 80))] ^= 1 << rng.randrange(8)
            if rng.random() < 0.5:
                packets.append(on_ip(route, bytes(changed)))
            else:
                packets.append(pcapng.with_icrc(HERE, THERE, bytes(changed[:-4])))
            packets.append(pcapng.in_udp(WINDOW, WINDOW, bytes(changed[rng.randrange(20):]),
                                         (pcapng.UB_PORT, pcapng.CTP_PORT)))
        packets.append(on_ip(route, rng.randbytes(rng.randrange(1, 100))))
        whole.append(on_ip(route, wire))
    packets = [packet for packet in packets if packet not in whole]
    assert len(packets) > 4000, len(packets)
    return packets


def cut_packets():
    """Packets that lack their end, and packets of which not all was captured."""
    packets = []
    for route, _, wire in emitted()[:KINDS]:
        route = {**route, "destination_port": str(pcapng.UB_PORT)}
        packets += [on_ip(route, wire[:bytes_]) for bytes_ in range(1, len(wire))][-24:]
        packets += [(on_ip(route, wire), len(on_ip(route, wire)) - less) for less in (1, 5, 20)]
    return packets


def test_broken_packets():
    broken, cut = broken_packets(), cut_packets()
    packets = broken + cut
    fields = ("_ws.lua.error", "_ws.expert.message", "uboe.icrc.status", "uboe.malformed")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.pcapng")
        pcapng.write(path, packets)
        lines = tshark(path, "-T", "fields", *(word for field in fields
                                               for word in ("-e", field))).split("\n")[:-1]
    assert len(lines) == len(packets)
    for number, (packet, line) in enumerate(zip(packets, lines)):
        error, message, status, malformed = line.split("\t")
        assert not error and "Lua" not in message and "Exception" not in message, (packet, line)
        if number < len(broken):
            continue
        if isinstance(packet, tuple):  # what was not captured is not an error of the packet
            assert status == "", (packet, line)
        else:
            assert status == "0" or malformed, (packet, line)


# ---- captures of real processes

def captured(folder, devices, *arguments):
    """Returns the captures of both sides of one run between two processes."""
    paths = [os.path.join(folder, name) for name in ("client.pcapng", "server.pcapng")]
    sides = [device.replace("PCAP", f"pcap(file={path})") for device, path in zip(devices, paths)]
    done = subprocess.run([URMA_PERF, "--self", *arguments, "--device", sides[0], "--peer-device",
                           sides[1]], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, (devices, done)
    return paths


def test_captures_of_real_processes():
    with tempfile.TemporaryDirectory() as folder:
        for devices, test in (
                (2 * ["PCAP:udp:"], "read_lat --size 70000"),
                (2 * ["PCAP:cxl:"], "write_imm_lat --size 100,20000"),
                # One capture holds what the network did to packets, and the other one does not.
                (["fault(loss=5%,dup=2%,seed=3):PCAP:udp:", "PCAP:fault(reorder=3%,seed=4):udp:"],
                 "send_lat --size 20000")):
            paths = captured(folder, devices, *test.split(), "--count", "40", "--rounds", "1")
            check_captures(devices, paths)


def check_captures(devices, paths):
    compact = devices[0] == "PCAP:cxl:"
    said, heard = [], []
    for path in paths:
        packets, ended = pcapng.read(path)
        assert ended, path
        said.append([pcapng.payload_of(packet) for flags, packet in packets if flags == 2])
        heard.append([pcapng.payload_of(packet) for flags, packet in packets if flags == 1])
        assert len(said[-1]) > 50 and len(said[-1]) + len(heard[-1]) == len(packets)
        lines = tshark(path, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-T",
                       "fields", "-e", "_ws.col.Protocol", "-e", "uboe.icrc.status", "-e",
                       "uboe.malformed", "-e", "uboe.unknown", "-e", "udp.checksum.status", "-e",
                       "_ws.malformed").splitlines()
        right = "UB CTP\t\t\t\t1\t" if compact else "UBoE\t1\t\t\t1\t"
        wrong = [line for line in lines if line != right]
        assert len(lines) == len(packets) and not wrong, (devices, wrong[:5])
    for one, other in ((0, 1), (1, 0)):
        if compact:
            assert heard[one] == said[other][:len(heard[one])], devices
        elif devices[0] == devices[1]:
            assert set(heard[one]) <= set(said[other]), devices


def test_a_full_disk():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.pcapng")
        perf = (f"'{URMA_PERF}' --self write_imm_bw --size 16K --count 300 --rounds 1 --device "
                f"'pcap(file={path}):udp:' --peer-device udp:")
        with tempfile.NamedTemporaryFile(suffix=".pcapng") as copy:
            script = (f"mount -t tmpfs -o size=1m none '{folder}' || exit 1; {perf}; ended=$?; "
                      f"cp '{path}' '{copy.name}' && exit $ended")
            probe = subprocess.run(["unshare", "-rm", "true"], capture_output=True, timeout=20)
            if probe.returncode != 0:
                print("(skipped: no file system can be mounted)")
                return
            done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True,
                                  text=True, timeout=100)
            assert done.returncode == 7, done
            assert "packets are missing in the capture" in done.stderr, done
            packets, ended = pcapng.read(copy.name)
            assert ended and 900_000 < os.path.getsize(copy.name) <= 1 << 20
            lines = tshark(copy.name, "-T", "fields", "-e", "uboe.icrc.status").splitlines()
            assert lines == ["1"] * len(packets), lines[-5:]


def main():
    if not shutil.which("tshark"):
        print("skipped: needs tshark (Debian: tshark)")
        return 77
    version = subprocess.run(["tshark", "--version"], capture_output=True, text=True, timeout=60)
    if " Lua " not in version.stdout.replace("\n", " "):
        print("skipped: this tshark has no Lua")
        return 77
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            begin = time.time()
            test()
            print(f"{name}: {time.time() - begin:.1f} s", flush=True)
    return 0


sys.exit(main())
