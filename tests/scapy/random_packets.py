# SPDX-License-Identifier: Apache-2.0
"""Packets that ub.py makes, which the library must accept or refuse."""

import ipaddress

from scapy.layers.inet import UDP
from scapy.packet import Raw

import ub


def _bits(rng, width):
    return rng.choice([0, (1 << width) - 1] + [rng.getrandbits(width)] * 6)


def _address(rng, four):
    return ipaddress.IPv6Address(b"\0" * 10 + b"\xff\xff" + rng.randbytes(4) if four
                                 else b"\xfd" + rng.randbytes(15))


class RandomPacket:
    """A transport header and what follows it, sent from one address to another."""

    def __init__(self, rng, sent):
        four = rng.random() < 0.5
        self.source, self.destination = _address(rng, four), _address(rng, four)
        self.port = rng.randrange(1, 1 << 16)
        self.sent = sent

    def is_rtp(self):
        return isinstance(self.sent, ub.RTPH)

    def on_the_wire(self):
        """A packet: source, destination, source port, bytes from the transport header to
        the ICRC."""
        ip = ub.ip_udp(self.source, self.port, self.destination, ub.UB_PORT)
        skip = len(bytes(ip))
        packet = ip / self.sent
        wire = ub.seal(packet)
        self.sent = packet[UDP].payload  # with the padding that it has got
        return self.source, self.destination, self.port, wire[skip:]

    def with_bytes(self, body):
        """Returns other bytes between the same addresses, with a valid ICRC."""
        ip = ub.ip_udp(self.source, self.port, self.destination, ub.UB_PORT)
        whole = bytes(ip / Raw(body + bytes(4)))
        wire = whole[len(bytes(ip)):-4] + ub.icrc(whole)
        return self.source, self.destination, self.port, wire


def _rtph(rng, **fields):
    return ub.RTPH(last=_bits(rng, 1), source=_bits(rng, 24), destination=_bits(rng, 24),
                   ack_request=_bits(rng, 1), psn=_bits(rng, 24), tpmsn=_bits(rng, 24),
                   reserved=_bits(rng, 6), **fields)


def _btah(rng, opcode, **fields):
    # A receiver without the option ignores these fields, so they are random.
    return ub.BTAH(opcode=opcode, tassn=_bits(rng, 16), order=rng.randrange(3),
                   completion_order=_bits(rng, 1), ee_bits=rng.choice([1, 3]), retry=_bits(rng, 1),
                   solicited=_bits(rng, 1), allocate=_bits(rng, 1), no_taack=_bits(rng, 1),
                   reserved1=_bits(rng, 1), reserved2=_bits(rng, 1), e_bit=_bits(rng, 1),
                   in_context=_bits(rng, 1), rc_type=_bits(rng, 1), rc_id=_bits(rng, 20), **fields)


def _header(rng, layer):
    if layer is ub.MAETAH:
        return ub.MAETAH(address=_bits(rng, 64), token_id=_bits(rng, 20), length=_bits(rng, 32),
                         reserved1=_bits(rng, 4), reserved2=_bits(rng, 8))
    if layer is ub.MTETAH:
        return ub.MTETAH(hint=_bits(rng, 8), tc_type=_bits(rng, 2), target=_bits(rng, 20))
    if layer is ub.OFSTETAH:
        return ub.OFSTETAH(reserved=_bits(rng, 8), kib=_bits(rng, 24))
    if layer is ub.IMMETAH:
        return ub.IMMETAH(immediate=_bits(rng, 64), token=_bits(rng, 32),
                          message_length=_bits(rng, 32))
    if layer is ub.NTFETAH:
        return ub.NTFETAH(address=_bits(rng, 64), token_id=_bits(rng, 20), token=_bits(rng, 32),
                          value=_bits(rng, 64), reserved1=_bits(rng, 4), reserved2=_bits(rng, 8))
    if layer is ub.UDETAH:
        return ub.UDETAH(update=_bits(rng, 4), reserved1=_bits(rng, 8), reserved2=_bits(rng, 20))
    return ub.TVETAH(token=_bits(rng, 32))


def _data(rng):
    return Raw(rng.randbytes(rng.choice([1, 2, 3, 4, 63, 64, 1024])))


_REQUESTS = [ub.SEND, ub.SEND_IMM, ub.WRITE, ub.WRITE_IMM, ub.WRITE_NOTIFY, ub.READ,
             *ub.ATOMICS]


def request(rng, opcode=None):
    opcode = rng.choice(_REQUESTS) if opcode is None else opcode
    packet = _rtph(rng) / _btah(rng, opcode, token_present=_bits(rng, 1), target_present=int(
        opcode in (ub.SEND, ub.SEND_IMM, ub.WRITE_IMM)), user_data=int(opcode in ub.UPDATES))
    for layer in ub.chain_of(packet[ub.BTAH]):
        packet /= _header(rng, layer)
    if opcode != ub.READ and rng.random() < 0.8:
        packet /= _data(rng)
    return packet


def response(rng):
    opcode = rng.choice([ub.TAACK, ub.READ_RESPONSE, ub.ATOMIC_RESPONSE])
    packet = _rtph(rng) / ub.ATAH(
        opcode=opcode, tassn=_bits(rng, 16), status=rng.choice([0, 1, 2, 3, 5]),
        info=_bits(rng, 5), sv=_bits(rng, 1), poison=_bits(rng, 1), rc_type=_bits(rng, 2),
        rc_id=_bits(rng, 20))
    if opcode == ub.READ_RESPONSE:
        packet /= _header(rng, ub.OFSTETAH)
    if opcode != ub.TAACK and rng.random() < 0.8:
        packet /= _data(rng)
    return packet


def filler(rng):
    packet = _rtph(rng, fake=1)
    return packet if rng.random() < 0.3 else packet / _btah(rng, 0)


def ack(rng):
    # Includes the transaction statuses that an ack can carry: RNR, page fault, piggybacked answers.
    status = rng.choice([0, 1, 2, 3, 5])
    if rng.random() < 0.5:
        return _rtph(rng, opcode=ub.TPACK, status=status, info=_bits(rng, 5))
    return _rtph(rng, opcode=ub.TPSACK) / _saetph(rng)


def _saetph(rng):
    count = rng.choice([64, 128, 256, 512, 1024])
    ones = [i for i in range(count) if rng.random() < 0.3]
    return ub.SAETPH.of(_bits(rng, 24), count, ones)


def _cetph(rng):
    form = rng.choice(list(ub.REPORT_FORMS.values()))
    if form is ub.LdcpCETPH:
        return form(ack_seq=_bits(rng, 32), ce_seq=_bits(rng, 32))
    if form is ub.CaqmCETPH:
        return form(ack_seq=_bits(rng, 32), switch_queue=_bits(rng, 6), last_hop=_bits(rng, 1),
                    increase=_bits(rng, 1), marked=_bits(rng, 8), hint=_bits(rng, 16))
    return form(ack_seq=_bits(rng, 32), switch_queue=_bits(rng, 6), last_hop=_bits(rng, 1),
                increase=_bits(rng, 1), marked=_bits(rng, 8), switched=_bits(rng, 1),
                hint=_bits(rng, 15))


def ack_cc(rng):
    """Acknowledgements with a CETPH, and CNPs."""
    opcode = rng.choice([ub.TPACK_CC, ub.TPSACK_CC, ub.CNP])
    packet = _rtph(rng, opcode=opcode, status=rng.choice([0, 3]))
    if opcode == ub.CNP:
        return packet / ub.CnpCETPH(congestion=_bits(rng, 2), last_hop=_bits(rng, 1),
                                    reserved=_bits(rng, 125))
    packet /= _cetph(rng)
    return packet / _saetph(rng) if opcode == ub.TPSACK_CC else packet


def setup(rng):
    body = ub.SetupBody(
        type=rng.choice((*range(1, 10), 11)), version=_bits(rng, 8), reason=_bits(rng, 8),
        mtu_log2=_bits(rng, 8), features=_bits(rng, 32) & ~ub.FEATURE_PATHS,
        from_life=_bits(rng, 64), to_life=_bits(rng, 64), from_tpn=_bits(rng, 32),
        to_tpn=_bits(rng, 32), first_psn=_bits(rng, 32), attempt=_bits(rng, 32),
        receive_window=_bits(rng, 16),
        tassn_window=_bits(rng, 16), atomic_results=_bits(rng, 16), reads=_bits(rng, 16),
        buffer_bytes=_bits(rng, 32), echoed_psn=_bits(rng, 32), cookie=_bits(rng, 64))
    addresses = ub.UPIH32(upi=_bits(rng, 24), source=str(_address(rng, False)),
                          destination=str(_address(rng, rng.random() < 0.5)))
    return (ub.UTPH(reserved=rng.randbytes(14)) / addresses /
            _btah(rng, ub.SEND, target_present=1) / ub.MTETAH() / ub.OFSTETAH() / body)


def unknown_request(rng):
    """Operations that the library does not have, or with a UDETAH that is missing or not
    allowed."""
    opcode = rng.choice([ub.WRITE, ub.FETCH_ADD, ub.ATOMIC_LOAD, 0x02, 0x14, 0x15, 0x17, 0xFF])
    base = _btah(rng, opcode, user_data=int(opcode in (ub.WRITE, ub.FETCH_ADD)),
                 token_present=_bits(rng, 1), target_present=_bits(rng, 1))
    return _rtph(rng) / base / _data(rng)


def random_packets(rng, count):
    makers = [request, request, request, response, filler, ack, ack_cc, setup]
    for i in range(count):
        yield RandomPacket(rng, makers[i % len(makers)](rng))


def malformed_packets(rng, rounds):
    """Yields (reason, packet on the wire) of packets that the library must refuse."""
    for _ in range(rounds):
        way = RandomPacket(rng, request(rng))
        *route, wire = way.on_the_wire()
        damaged = bytearray(wire)
        damaged[rng.randrange(len(wire))] ^= 1 << rng.randrange(8)
        yield "a bit was flipped on the way", (*route, bytes(damaged))
        yield "the packet was cut on the way", (*route, wire[:-rng.randrange(1, len(wire))])
        yield "it comes from another port", (route[0], route[1], route[2] ^ 1, wire)
        yield "it comes from elsewhere", (route[0] + 1, *route[1:], wire)

        # All packets from here on have a valid ICRC.
        for opcode in _REQUESTS:
            whole = request(rng, opcode)
            packet = bytes(whole)
            headers = len(packet) - (len(whole[Raw].load) if Raw in whole else 0)
            cut = rng.randrange(1, headers)
            yield f"headers of opcode {opcode} end after {cut} bytes", way.with_bytes(packet[:cut])
        read = bytes(request(rng, ub.READ))
        yield "a Read with data", way.with_bytes(read + b"data")
        for version in (1, 2, 3):
            yield "another TPVer", way.with_bytes(bytes(_rtph(rng, version=version)))
            other = _btah(rng, ub.READ, version=version, token_present=0)
            other = _rtph(rng) / other / _header(rng, ub.MAETAH)
            yield "another TAver", way.with_bytes(bytes(other))
        for size in (5, 6, 7):
            sack = _rtph(rng, opcode=ub.TPSACK) / ub.SAETPH(bitmap_size=size, bitmap=bytes(1024))
            yield "an undefined bitmap size", way.with_bytes(bytes(sack))
        for size, octets in ((0, 8), (4, 128)):
            short = ub.SAETPH(bitmap_size=size, bitmap=bytes(octets - 1))
            sack = bytes(_rtph(rng, opcode=ub.TPSACK) / short)
            yield "a bitmap that is cut", way.with_bytes(sack)
        for opcode, octets in ((ub.TPACK_CC, 8), (ub.TPSACK_CC, 8), (ub.CNP, 16)):
            report = bytes(_rtph(rng, opcode=opcode)) + rng.randbytes(rng.randrange(octets))
            yield "a CETPH that is cut", way.with_bytes(report)
        sack = bytes(_rtph(rng, opcode=ub.TPSACK_CC) / _cetph(rng) / _saetph(rng))
        yield "a bitmap behind a CETPH that is cut", way.with_bytes(sack[:-1])
        yield "a TPSACK-CC without its bitmap", way.with_bytes(sack[:24])
        response_cut = _rtph(rng) / ub.ATAH(opcode=ub.READ_RESPONSE)
        yield "a Read_response without OFSTETAH", way.with_bytes(bytes(response_cut))
        answer = _rtph(rng) / ub.ATAH(opcode=ub.TAACK) / Raw(b"data")
        yield "a TAACK with data", way.with_bytes(bytes(answer))
        half = _rtph(rng, fake=1) / Raw(bytes(7))
        yield "filler with half a BTAH", way.with_bytes(bytes(half))
        padded = _rtph(rng, padding=3)
        yield "padding that is not there", way.with_bytes(bytes(padded))

        opening = bytes(setup(rng))
        yield "a set-up that is cut", way.with_bytes(opening[:rng.randrange(1, len(opening))])
        for kind in (0, 12, 255):
            message = setup(rng)
            message[ub.SetupBody].type = kind
            yield "a set-up of no known type", way.with_bytes(bytes(message))
        for kind, name in ((1, "an OPEN"), (10, "a PATHS")):
            message = setup(rng)
            message[ub.SetupBody].type = kind
            message[ub.SetupBody].features |= ub.FEATURE_PATHS
            yield f"{name} that names no paths and says so", way.with_bytes(bytes(message))
        message = setup(rng)
        message[ub.MTETAH].target = rng.randrange(1, 1 << 20)
        yield "a set-up to another Jetty", way.with_bytes(bytes(message))
