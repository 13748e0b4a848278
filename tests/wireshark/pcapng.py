# SPDX-License-Identifier: Apache-2.0
"""Writes and reads pcapng files of IP packets, and puts UB packets into IP and UDP headers."""

import struct
import zlib

UB_PORT = 4792
CTP_PORT = 4793
LINK_PORT = 4794
RAW_IP = 101


def _block(kind, body):
    body += bytes(-len(body) % 4)
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def write(path, packets):
    """Writes packets. Each is the bytes of an IP packet, or a pair of these and how many are
    kept."""
    with open(path, "wb") as file:
        file.write(_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
        file.write(_block(1, struct.pack("<HHI", RAW_IP, 0, 0)))
        for number, packet in enumerate(packets):
            packet, kept = packet if isinstance(packet, tuple) else (packet, len(packet))
            head = struct.pack("<IIIII", 0, 0, number, kept, len(packet))
            file.write(_block(6, head + packet[:kept]))


def read(path):
    """Returns [(flags, IP packet)], and whether statistics end the file; fails if it is cut off."""
    with open(path, "rb") as file:
        whole = file.read()
    packets, ended, at = [], False, 0
    while at < len(whole):
        kind, length = struct.unpack_from("<II", whole, at)
        assert length % 4 == 0 and at + length <= len(whole), (path, at)
        assert struct.unpack_from("<I", whole, at + length - 4)[0] == length, (path, at)
        assert not ended, (path, at)
        if kind == 6:
            kept, had = struct.unpack_from("<II", whole, at + 20)
            options = at + 28 + (kept + 3) // 4 * 4
            code, size, flags = struct.unpack_from("<HHI", whole, options)
            assert kept == had and (code, size) == (2, 4), (path, at)
            packets.append((flags, whole[at + 28:at + 28 + kept]))
        ended = kind == 5
        at += length
    return packets, ended


def payload_of(packet):
    """Returns the payload of a UDP datagram in an IP packet."""
    if packet[0] >> 4 == 4:
        return packet[28:]
    return packet[48:] if packet[6] == 17 else packet[56:]  # a jumbogram


def in_udp(source, destination, payload, ports=(UB_PORT, UB_PORT)):
    """Returns an IP packet. Addresses have 4 or 16 bytes; checksums are left out."""
    udp = struct.pack(">HHHH", *ports, 8 + len(payload), 0) + payload
    if len(source) == 4:
        return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17,
                           0) + source + destination + udp
    return struct.pack(">IHBB", 6 << 28, len(udp), 17, 64) + source + destination + udp


def with_icrc(source, destination, body, ports=(UB_PORT, UB_PORT)):
    """Returns the IP packet of a UB packet that lacks its ICRC."""
    covered = bytearray(in_udp(source, destination, body + bytes(4), ports))
    covered = covered[:-4]
    if len(source) == 4:
        covered[1] = covered[8] = covered[10] = covered[11] = 0xFF
        covered[26:28] = b"\xff\xff"
    else:
        covered[0], covered[1], covered[7] = 0x6F, 0xF0, 0xFF
        covered[46:48] = b"\xff\xff"
    icrc = struct.pack("<I", zlib.crc32(bytes(covered)))
    return in_udp(source, destination, body + icrc, ports)


def address(digits):
    """Returns the address of 32 hexadecimal digits; IPv4 if it is a mapped one."""
    whole = bytes.fromhex(digits)
    return whole[12:] if whole.startswith(bytes(10) + b"\xff\xff") else whole
