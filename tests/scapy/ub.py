# SPDX-License-Identifier: Apache-2.0
"""The wire format of UB on IP and UDP, in scapy.

Written from the protocol notes (docs/protocol.md), not from the C++
library: it is the second opinion that the library's bytes are held against. Where the two texts
leave room, the line says AMBIGUOUS and what was chosen; where the choice is the project's own,
OURS. What is marked INFERRED there is INFERRED here.

    IPv6(...)/UDP(...)/RTPH(...)/BTAH(...)/MAETAH(...)/TVETAH(...)/Raw(data)   -> seal() -> bytes
    IPv6(bytes).show()                                                        dissects them again
"""

import zlib

from scapy.fields import (BitEnumField, BitField, ByteField, IntField, ShortField,
                          StrFixedLenField, StrLenField, X3BytesField, XByteField, XIntField,
                          XLongField)
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IP6Field, IPv6
from scapy.packet import Packet, Raw, bind_layers

UB_PORT = 4792  # section 1: "UDP destination port 4792 identifies UB"
ICRC_BYTES = 4

# ---- transport layer (section 4.2)

TP_OPCODES = {0: "UTP", 1: "data", 2: "TPACK", 3: "TPACK-CC", 5: "TPSACK", 6: "TPSACK-CC", 8: "CNP"}
DATA, TPACK, TPACK_CC, TPSACK, TPSACK_CC, CNP = 1, 2, 3, 5, 6, 8


class _Transport(Packet):
    """The base of RTPH and UTPH: the last bytes of the packet are padding and ICRC."""

    def extract_padding(self, rest):
        end = len(rest) - ICRC_BYTES - self.padding
        return (rest[:end], rest[end:]) if end >= 0 else (b"", rest)


class RTPH(_Transport):
    name = "RTPH"
    fields_desc = [
        BitField("last", 0, 1),
        BitEnumField("opcode", DATA, 7, TP_OPCODES),
        BitField("version", 0, 2),
        BitField("padding", 0, 2),
        BitField("next", 0, 4),  # NLP
        X3BytesField("source", 0),
        X3BytesField("destination", 0),
        BitField("ack_request", 0, 1),  # A
        BitField("fake", 0, 1),  # F
        BitField("reserved", 0, 6),
        X3BytesField("psn", 0),
        BitField("status", 0, 3),  # RSPST
        BitField("info", 0, 5),  # RSPINFO
        X3BytesField("tpmsn", 0),
    ]

    @classmethod
    def dispatch_hook(cls, _pkt=None, *args, **kargs):
        # A packet that begins with opcode 0 is UTP.
        return UTPH if _pkt and _pkt[0] & 0x7F == 0 else cls

    def guess_payload_class(self, payload):
        if self.opcode == TPSACK:
            return SAETPH
        if self.opcode in (TPACK_CC, TPSACK_CC):
            return report_form
        if self.opcode == CNP:
            return CnpCETPH
        if self.opcode != DATA:
            return Raw
        return UPIH32 if self.next == 1 else transaction_class(payload)


class UTPH(_Transport):
    """AMBIGUOUS: the text says "byte0 opcode, byte1 ver/pad/NLP, rest reserved". The two halves of
    byte 1 are taken to be where RTPH has them."""

    name = "UTPH"
    fields_desc = [
        XByteField("opcode", 0),
        BitField("version", 0, 2),
        BitField("padding", 0, 2),
        BitField("next", 1, 4),
        StrFixedLenField("reserved", bytes(14), 14),
    ]

    def guess_payload_class(self, payload):
        return UPIH32 if self.next == 1 else transaction_class(payload)


class CTPH(Packet):
    """Not used on IP, where its first byte would be that of UTPH: in front of what lies in a
    window's rings,
    without padding and ICRC. Opcode 2 is OURS."""

    name = "CTPH"
    fields_desc = [
        BitEnumField("opcode", 0, 2, {0: "packet", 1: "CNP", 2: "filler"}),
        BitField("padding", 0, 2),
        BitField("next", 0, 4),
    ]

    def guess_payload_class(self, payload):
        return UPIH32 if self.next == 1 else transaction_class(payload)


class UPIH32(Packet):
    """UPIH32 and the EIDH256 that always follows it on IP (section 3.4, NLP 1)."""

    name = "UPIH32+EIDH256"
    fields_desc = [
        ByteField("reserved", 0),
        X3BytesField("upi", 1),  # WIRE: default 1
        IP6Field("source", "::"),
        IP6Field("destination", "::"),
    ]

    def guess_payload_class(self, payload):
        return transaction_class(payload)


class _CETPH(Packet):
    """Ack_Seq and Ce_Seq are in units of 2 bytes."""

    def guess_payload_class(self, payload):
        selective = isinstance(self.underlayer, RTPH) and self.underlayer.opcode == TPSACK_CC
        return SAETPH if selective else Raw


class LdcpCETPH(_CETPH):
    name = "CETPH (LDCP)"
    fields_desc = [XIntField("ack_seq", 0), XIntField("ce_seq", 0)]


class CaqmCETPH(_CETPH):
    """UBQ, in six reserved bits, is OURS."""

    name = "CETPH (C-AQM)"
    fields_desc = [
        XIntField("ack_seq", 0),
        BitField("switch_queue", 0, 6),  # UBQ; 0: no switch took part
        BitField("last_hop", 0, 1),  # Loc
        BitField("increase", 0, 1),  # I
        ByteField("marked", 0),  # C
        ShortField("hint", 0),
    ]


class RateCETPH(_CETPH):
    """OURS: as C-AQM's form, and S in the first bit of the Hint."""

    name = "CETPH (rate)"
    fields_desc = [
        XIntField("ack_seq", 0),
        BitField("switch_queue", 0, 6),  # UBQ
        BitField("last_hop", 0, 1),
        BitField("increase", 0, 1),
        ByteField("marked", 0),
        BitField("switched", 0, 1),  # S
        BitField("hint", 0, 15),
    ]


class CnpCETPH(Packet):
    """AMBIGUOUS: the text says "ECN2 Loc1 then reserved". INFERRED: from the first bit on."""

    name = "CETPH (CNP)"
    fields_desc = [
        BitField("congestion", 0, 2),  # ECN: 0 none, 1 minor, 3 severe
        BitField("last_hop", 0, 1),
        BitField("reserved", 0, 125),
    ]


# The form of the CETPH in a TPACK-CC or TPSACK-CC. The two ends agree on it beforehand, so it is
# set here before such a packet is dissected.
REPORT_FORMS = {1: LdcpCETPH, 3: CaqmCETPH, 4: RateCETPH}
report_form = CaqmCETPH


class SAETPH(Packet):
    """Bit i of the bitmap stands for RTPH.PSN + i. AMBIGUOUS: the order of bits within a byte is
    INFERRED to be least significant first (section 4.2: "SIM uses LSB-first")."""

    name = "SAETPH"
    fields_desc = [
        BitField("reserved", 0, 5),
        BitField("bitmap_size", 0, 3),
        X3BytesField("max_received", 0),
        StrLenField("bitmap", bytes(8), length_from=lambda header: 8 << header.bitmap_size),
    ]

    @classmethod
    def of(cls, max_received, bit_count, ones):
        bitmap = bytearray(bit_count // 8)
        for one in ones:
            bitmap[one // 8] |= 1 << one % 8
        size = {64: 0, 128: 1, 256: 2, 512: 3, 1024: 4}[bit_count]
        return cls(max_received=max_received, bitmap_size=size, bitmap=bytes(bitmap))

    def ones(self):
        return [i for i in range(len(self.bitmap) * 8) if self.bitmap[i // 8] >> i % 8 & 1]

    def guess_payload_class(self, payload):
        return Raw


# ---- network layer on UB links (section 3), in network order: AMBIGUOUS, a simulator writes the
# addresses of 16 bits in host order


class CaqmCCI(Packet):
    """Bit S is OURS; the text says that it is reserved."""

    name = "CCI (C-AQM)"
    fields_desc = [
        BitField("mode", 0, 3),
        BitField("last_hop", 0, 1),
        BitField("switched", 0, 1),  # S
        BitField("enabled", 0, 1),
        BitField("congested", 0, 1),  # C
        BitField("increase", 0, 1),  # I
        ByteField("hint", 0),
    ]


class FecnRttCCI(Packet):
    name = "CCI (FECN_RTT)"
    fields_desc = [
        BitField("mode", 2, 3),
        BitField("last_hop", 0, 1),
        BitField("timestamp", 0, 10),
        BitField("fecn", 0, 2),
    ]


class FecnCCI(Packet):
    name = "CCI (FECN)"
    fields_desc = [
        BitField("mode", 4, 3),
        BitField("last_hop", 0, 1),
        BitField("reserved", 0, 10),
        BitField("fecn", 0, 2),
    ]


class Cna16NTH(Packet):
    name = "NTH (CNA, 16 bits)"
    fields_desc = [
        ShortField("source", 0),
        ShortField("destination", 0),
        ShortField("cci", 0),
        ByteField("lbf", 0),
        BitField("service_level", 0, 4),
        BitField("management", 0, 1),
        BitField("next", 0, 3),
    ]


class Cna24NTH(Packet):
    name = "NTH (CNA, 24 bits)"
    fields_desc = [
        X3BytesField("source", 0),
        X3BytesField("destination", 0),
        ShortField("cci", 0),
        ByteField("lbf", 0),
        BitField("service_level", 0, 4),
        BitField("reserved", 0, 1),
        BitField("next", 0, 3),
    ]


class IpNTH(Packet):
    """AMBIGUOUS: the number of reserved bits is what 6 bytes leave. UBQ in them is OURS."""

    name = "NTH (IP)"
    fields_desc = [
        ShortField("cci", 0),
        BitField("reserved", 0, 1),
        BitField("switch_queue", 0, 6),  # UBQ
        BitField("permission", 0, 1),
        X3BytesField("partition", 0),
    ]


# ---- datagrams between a device and a switch (OURS)


class LinkWord(Packet):
    name = "Link word"
    fields_desc = [
        BitField("form", 7, 4),
        BitField("shortest", 0, 1),
        BitField("per_packet", 0, 1),
        BitField("reserved", 0, 2),
        ByteField("version", 1),
        ByteField("hops", 0),
        BitField("switch_queue", 0, 6),  # UBQ
        BitField("reserved2", 0, 2),
    ]


class LinkControl(Packet):
    name = "Link control"
    fields_desc = [
        ByteField("type", 1),
        X3BytesField("cna", 0),
        BitField("rated", 0, 1),
        BitField("refusal", 0, 7),
        ByteField("mtu_log2", 0),
        ShortField("lease_ms", 0),
        XLongField("nonce", 0),
        XLongField("cookie", 0),
        XIntField("crc", 0),
    ]


def linked_headers(source, destination):
    """Returns what the ICRC of a packet between these CNAs covers instead of addresses: the NTH,
    with CCI and LBF as ones, because switches change them."""
    return bytes(Cna24NTH(source=source, destination=destination, cci=0xffff, lbf=0xff, next=2))


def linked_icrc(source, destination, body):
    return zlib.crc32(linked_headers(source, destination) + body).to_bytes(4, "little")


# ---- transaction layer (section 5)

SEND, SEND_IMM, WRITE, WRITE_IMM, WRITE_NOTIFY, READ = 0x00, 0x01, 0x03, 0x04, 0x05, 0x06
CAS, SWAP, ATOMIC_STORE, ATOMIC_LOAD = 0x07, 0x08, 0x09, 0x0A
FETCH_ADD, FETCH_SUB, FETCH_AND, FETCH_OR, FETCH_XOR = 0x0B, 0x0C, 0x0D, 0x0E, 0x0F
ATOMICS = tuple(range(CAS, FETCH_XOR + 1))
UPDATES = (ATOMIC_STORE, ATOMIC_LOAD)  # with a UDETAH: how
TAACK, READ_RESPONSE, ATOMIC_RESPONSE = 0x11, 0x12, 0x13
RESPONSES = (TAACK, READ_RESPONSE, ATOMIC_RESPONSE)
TA_OPCODES = {SEND: "Send", SEND_IMM: "Send_imm", WRITE: "Write", WRITE_IMM: "Write_imm",
              WRITE_NOTIFY: "Write_notify", READ: "Read", CAS: "CAS", SWAP: "Swap",
              ATOMIC_STORE: "Atomic_store", ATOMIC_LOAD: "Atomic_load", FETCH_ADD: "Fetch_add",
              FETCH_SUB: "Fetch_sub", FETCH_AND: "Fetch_and", FETCH_OR: "Fetch_or",
              FETCH_XOR: "Fetch_xor", TAACK: "TAACK", READ_RESPONSE: "Read_response",
              ATOMIC_RESPONSE: "Atomic_response"}


def transaction_class(payload):
    if not payload:
        return Raw
    return ATAH if payload[0] in RESPONSES else BTAH


def chain_of(base):
    """Returns the headers behind a BTAH or ATAH, or None (5.3, "Order of headers after BTAH").

    AMBIGUOUS: in the text OFSTETAH is optional in a Read and in a Read_response. Here a Read never
    has it, and a Read_response always has it (WIRE: it places the packet in its slice). The text
    names MT_EN beside MTETAH without saying that one implies the other; here it does."""
    if isinstance(base, ATAH):
        return {TAACK: [], READ_RESPONSE: [OFSTETAH], ATOMIC_RESPONSE: []}.get(base.opcode)
    # WIRE: filler (F = 1) is a BTAH alone. AMBIGUOUS: its opcode is not named; it is not looked at,
    # and sent as 0.
    if isinstance(base.underlayer, RTPH) and base.underlayer.fake:
        return []
    chain = {
        WRITE: [MAETAH],
        READ: [MAETAH],
        SEND: [MTETAH, OFSTETAH],
        SEND_IMM: [MTETAH, OFSTETAH, IMMETAH],
        WRITE_IMM: [MTETAH, MAETAH, IMMETAH],
        WRITE_NOTIFY: [MAETAH, NTFETAH],
    }.get(base.opcode)
    if base.opcode in ATOMICS:
        chain = [UDETAH, MAETAH] if base.opcode in UPDATES else [MAETAH]
    if chain is None or bool(base.target_present) != (MTETAH in chain):
        return None
    if bool(base.user_data) != (UDETAH in chain):
        return None
    return chain + ([TVETAH] if base.token_present else [])


class _Transaction(Packet):
    def guess_payload_class(self, payload):
        base = self
        while not isinstance(base, (BTAH, ATAH)):
            base = base.underlayer
        chain = [type(base)] + (chain_of(base) or [])
        at = chain.index(type(self)) + 1
        if at < len(chain):
            return chain[at]
        carries_setup = (isinstance(base.underlayer, UPIH32) and base.opcode == SEND and
                         self.underlayer.target == 0)
        return SetupBody if carries_setup else Raw


class BTAH(_Transaction):
    name = "BTAH"
    fields_desc = [
        BitEnumField("opcode", WRITE, 8, TA_OPCODES),
        BitField("version", 0, 2),
        BitField("ee_bits", 1, 2),  # 01: no trusted execution environment
        BitField("token_present", 0, 1),  # TV_EN
        BitField("poison", 0, 1),
        BitField("reserved1", 0, 1),
        BitField("user_data", 0, 1),  # UD_Flag
        ShortField("tassn", 0),  # INI_TASSN
        BitField("no_taack", 0, 1),
        BitField("completion_order", 0, 1),  # ODR[2]
        BitField("order", 0, 2),  # ODR[1:0]: 0 NO, 1 RO, 2 SO
        BitField("target_present", 0, 1),  # MT_EN
        BitField("solicited", 0, 1),  # FCE
        BitField("retry", 0, 1),
        BitField("allocate", 0, 1),  # Alloc
        BitField("reserved2", 0, 1),
        BitField("e_bit", 0, 1),
        BitField("in_context", 0, 1),  # INI_RC_Type: 00 a send queue, 10 its sequence context
        BitField("rc_type", 0, 1),
        BitField("rc_id", 0, 20),
    ]


class ATAH(_Transaction):
    name = "ATAH"
    fields_desc = [
        BitEnumField("opcode", TAACK, 8, TA_OPCODES),
        BitField("version", 0, 2),
        BitField("reserved1", 0, 2),
        BitField("sv", 0, 1),
        BitField("poison", 0, 1),
        BitField("reserved2", 0, 2),
        ShortField("tassn", 0),
        BitField("status", 0, 3),  # RSPST
        BitField("info", 0, 5),  # RSPINFO
        BitField("reserved3", 0, 2),
        BitField("rc_type", 0, 2),
        BitField("rc_id", 0, 20),
    ]


class MAETAH(_Transaction):
    """WIRE: address of this packet's bytes, length of the slice (INFERRED)."""

    name = "MAETAH"
    fields_desc = [
        XLongField("address", 0),
        BitField("reserved1", 0, 4),
        BitField("token_id", 0, 20),
        BitField("reserved2", 0, 8),
        IntField("length", 0),
    ]


class MTETAH(_Transaction):
    name = "MTETAH"
    fields_desc = [
        ByteField("hint", 0),
        BitField("reserved", 0, 2),
        BitField("tc_type", 0, 2),  # 00 taken for a Jetty or JFR; 10 is a Jetty group
        BitField("target", 0, 20),
    ]


class TVETAH(_Transaction):
    name = "TVETAH"
    fields_desc = [XIntField("token", 0)]


class OFSTETAH(_Transaction):
    """AMBIGUOUS: the text says "offset of this segment in the message". WIRE: of this packet in its
    slice (INFERRED), in units of 1 KiB."""

    name = "OFSTETAH"
    fields_desc = [ByteField("reserved", 0), X3BytesField("kib", 0)]


class IMMETAH(_Transaction):
    """AMBIGUOUS: the last two fields are "Write_imm only"; whether Send_imm's header is 8 bytes or
    16 with zeros is not said. INFERRED: 16, the last 8 zero."""

    name = "IMMETAH"
    fields_desc = [
        XLongField("immediate", 0),
        XIntField("token", 0),
        IntField("message_length", 0),
    ]


class NTFETAH(_Transaction):
    """WIRE: in each packet of its slice, as all headers (INFERRED)."""

    name = "NTFETAH"
    fields_desc = [
        XLongField("address", 0),
        BitField("reserved1", 0, 4),
        BitField("token_id", 0, 20),
        BitField("reserved2", 0, 8),
        XIntField("token", 0),
        XLongField("value", 0),
    ]


class UDETAH(_Transaction):
    """AMBIGUOUS: the text describes CLR as exclusive or and EOR as and-not. INFERRED: swapped."""

    name = "UDETAH"
    fields_desc = [
        ByteField("reserved1", 0),
        BitField("update", 0, 4),
        BitField("reserved2", 0, 20),
    ]


# ---- set-up (OURS: the specification leaves it out, section 4.3)


FEATURE_PATHS = 1 << 2  # OPEN, ACCEPT, PATHS: they follow the body


class SetupBody(Packet):
    """The 64 bytes behind UTPH | UPIH32 | EIDH256 | BTAH | MTETAH(0) | OFSTETAH(0). WIRE names what
    they say; where each field lies is taken from the bit positions in wire/setup_message.cc.
    All numbers most significant byte first, TPNs and PSNs in 32 bits each:

        byte  0  type 8 | version 8 | reason 8 | log2 of the MTU 8
              4  features 32                    40  receive window 16 | W 16
              8  incarnation of the sender 64   44  R 16 | reads 16
             16  of the receiver 64             48  receive-buffer bytes 32
             24  TPN of the sender 32           52  echoed PSN 32 (RESET)
             28  TPN of the receiver 32         56  cookie 64
             32  first PSN 32
             36  attempt 32
    """

    name = "Setup"
    fields_desc = [
        ByteField("type", 1),
        ByteField("version", 1),
        ByteField("reason", 0),
        ByteField("mtu_log2", 0),
        XIntField("features", 0),
        XLongField("from_life", 0),
        XLongField("to_life", 0),
        XIntField("from_tpn", 0),
        XIntField("to_tpn", 0),
        XIntField("first_psn", 0),
        IntField("attempt", 0),
        ShortField("receive_window", 0),
        ShortField("tassn_window", 0),
        ShortField("atomic_results", 0),
        ShortField("reads", 0),
        IntField("buffer_bytes", 0),
        XIntField("echoed_psn", 0),
        XLongField("cookie", 0),
    ]


# ---- ICRC (section 3.3)


def canonical_headers(headers):
    """Returns the IP and UDP headers with ones in the fields that the network may change: ToS or
    traffic class, TTL or hop limit, checksums. AMBIGUOUS: the IPv6 flow label (RoCE replaces it) is
    not named, and stays as sent; WIRE says that it is zero. The IPv4 ID and flags stay, too: 0 and
    DF."""
    out = bytearray(headers)
    if out[0] >> 4 == 4:
        out[1] = 0xFF
        out[8] = 0xFF
        out[10:12] = b"\xff\xff"
        udp = 20
    else:
        out[0] |= 0x0F
        out[1] |= 0xF0
        out[7] = 0xFF
        udp = 40
    out[udp + 6:udp + 8] = b"\xff\xff"
    return bytes(out)


def icrc(packet):
    """Returns the ICRC of a whole IP packet, whose last four bytes are ignored. zlib's CRC-32 is
    the specified one: 0x04C11DB7 reflected, all ones, inverted. AMBIGUOUS: it is INFERRED that the
    number is sent least significant byte first, like those of Ethernet and RoCE."""
    headers = (20 if packet[0] >> 4 == 4 else 40) + 8
    covered = canonical_headers(packet[:headers]) + packet[headers:-ICRC_BYTES]
    return zlib.crc32(covered).to_bytes(4, "little")


def seal(packet):
    """Pads, fills in RTPH.padding and appends the ICRC. Returns the bytes of the whole IP packet.

    AMBIGUOUS: padding makes "TPH..payload" a multiple of 4. Acks, which carry no payload, are
    padded, too (their lengths are multiples of 4 anyway)."""
    transport = packet[UDP].payload
    padding = -len(bytes(transport)) % 4
    transport.padding = padding
    whole = bytes(packet / Raw(bytes(padding) + bytes(ICRC_BYTES)))
    return whole[:-ICRC_BYTES] + icrc(whole)


def ip_udp(source, source_port, destination, destination_port):
    if source.ipv4_mapped is not None:
        ip = IP(src=str(source.ipv4_mapped), dst=str(destination.ipv4_mapped), id=0, flags="DF")
    else:
        ip = IPv6(src=str(source), dst=str(destination), fl=0)
    return ip / UDP(sport=source_port, dport=destination_port)


bind_layers(UDP, RTPH, dport=UB_PORT)
