# SPDX-License-Identifier: Apache-2.0
"""The measurements that are compared: rows of the tables, and lines of the picture. Data only."""

import dataclasses

from programs import MEMIF, VHOST, Perftest, Pingpong, Testpmd, Ucx, Urma, UrmaPorts

# The field of the figures that a row of the tables shows.
LATENCY, RATE, BANDWIDTH = "us", "per_second", "bytes_per_second"


@dataclasses.dataclass(frozen=True)
class Row:
    """A work of liburma, its bound, and the works of other programs for the same purpose."""

    name: str
    ours: Urma
    size: int
    by: str
    peers: tuple = ()
    most_times: float = None  # at most so many times slower than the limit
    least_rate: float = None  # or at least so many messages per second
    most_times_peer: float = None  # or at most so many times slower than the first peer


STREAM = " --depth 256 --signal-every 64"
# urma_perf uses as many source and target buffers as --depth says, with 4 MiB in total by default;
# ucx_perftest uses one. That matters because of the cache, so these rows use few.


def uct(test, layout="short", transport="posix"):
    return Ucx(test, transport, layout)


# A send of 64 B is an Ethernet frame of so many bytes.
FRAME_BYTES = 146


def over(ports):
    """The rows of two ports of DPDK."""
    return (
        Row(ports.name + ": write_imm 64 B, half round trip", UrmaPorts("write_imm_lat", ports), 64,
            LATENCY, most_times=1.5),
        Row(ports.name + ": send 64 B, rate", UrmaPorts("send_bw" + STREAM, ports), 64, RATE,
            (Testpmd(ports, FRAME_BYTES),), most_times_peer=1.67),
        # Its limit computes a CRC, too.
        Row(ports.name + ": write 1 MiB, MTU 9000", UrmaPorts("write_bw", ports, 9000), 1 << 20,
            BANDWIDTH, most_times=1.18),
    )


ROWS = (
    Row("send 8 B, half round trip", Urma("send_lat"), 8, LATENCY,
        (uct("am_lat"), Ucx("tag_lat"), Pingpong()), most_times=1.5),
    Row("send 64 B, half round trip", Urma("send_lat"), 64, LATENCY,
        (uct("am_lat"), Ucx("tag_lat"), Pingpong()), most_times=1.6),
    Row("send 8 B, rate", Urma("send_bw" + STREAM), 8, RATE,
        (uct("am_bw"), Ucx("tag_bw")), least_rate=10e6),
    Row("write_imm 8 B, half round trip", Urma("write_imm_lat"), 8, LATENCY,
        (uct("put_lat"), Ucx("ucp_put_lat")), most_times=1.5),
    Row("write 8 B, post to completion", Urma("write_lat"), 8, LATENCY, (uct("put_bw"),)),
    Row("write 8 B, by a lane", Urma("lane_write_lat"), 8, LATENCY, (uct("put_bw"),)),
    Row("write 8 B, rate", Urma("write_bw" + STREAM), 8, RATE,
        (uct("put_bw"), uct("am_bw"), Ucx("ucp_put_bw")), least_rate=15e6),
    Row("write 64 KiB", Urma("write_bw"), 1 << 16, BANDWIDTH, most_times=1.11),
    Row("write 1 MiB", Urma("write_bw"), 1 << 20, BANDWIDTH, most_times=1.11),
    Row("write 64 KiB, one place", Urma("write_bw --depth 1"), 1 << 16, BANDWIDTH,
        (uct("put_bw", "bcopy"), Ucx("ucp_put_bw"))),
    Row("write 1 MiB, one place", Urma("write_bw --depth 1"), 1 << 20, BANDWIDTH,
        (uct("put_bw", "bcopy"), Ucx("ucp_put_bw"))),
    Row("read 8 B of 64 MiB, post to completion", Urma("read_lat --spread 64M"), 8, LATENCY,
        most_times=1.3),
    Row("read 4 KiB of 64 MiB, post to completion", Urma("read_lat --spread 64M"), 4096, LATENCY,
        most_times=1.3),
    Row("read 8 B, cached, post to completion", Urma("read_lat"), 8, LATENCY,
        (uct("get", "bcopy"), Ucx("ucp_get"))),
    Row("read 8 B, by a lane", Urma("lane_read_lat"), 8, LATENCY,
        (uct("get", "bcopy"), Ucx("ucp_get"))),
    Row("read 4 KiB, cached, post to completion", Urma("read_lat"), 4096, LATENCY,
        (uct("get", "bcopy"), Ucx("ucp_get"))),
    Row("write 64 KiB, private", Urma("write_bw --private"), 1 << 16, BANDWIDTH, most_times=1.33),
    Row("write 1 MiB, private", Urma("write_bw --private"), 1 << 20, BANDWIDTH, most_times=1.33),
    Row("write 64 KiB, private, 4 places", Urma("write_bw --private --depth 4"), 1 << 16, BANDWIDTH,
        (uct("put_bw", "zcopy", "cma"), Ucx("tag_bw"))),
    Row("write 1 MiB, private, 4 places", Urma("write_bw --private --depth 4"), 1 << 20, BANDWIDTH,
        (uct("put_bw", "zcopy", "cma"), Ucx("tag_bw"))),
    Row("udp: write_imm 64 B, half round trip", Urma("write_imm_lat --device udp:"), 64, LATENCY,
        (Pingpong("udp;ofi_rxd"), Pingpong("tcp;ofi_rxm"), Ucx("tag_lat", tls="tcp")),
        most_times=1.6),
    Row("udp: send 64 B, rate", Urma("send_bw --device udp:" + STREAM), 64, RATE,
        (Ucx("tag_bw", tls="tcp"),)),
    Row("udp: write 1 MiB", Urma("write_bw --device udp:"), 1 << 20, BANDWIDTH,
        (Ucx("tag_bw", tls="tcp"),)),
    # Its limit computes the CRC of each datagram, as the works do for the ICRC of each packet.
    Row("udp: write 1 MiB, limit with CRC", Urma("write_bw --device udp: --summed"), 1 << 20,
        BANDWIDTH, most_times=1.15),
    *over(VHOST),
    *over(MEMIF),
)

# They need an adapter, which has no addresses in a network namespace of their own.
ADAPTER_ROWS = (
    Row("verbs: write_imm 64 B, half round trip", Urma("write_imm_lat --device verbs:"), 64,
        LATENCY, (Perftest("ib_send_lat", "-c UD"),), most_times_peer=1.4),
    Row("verbs: write 64 KiB", Urma("write_bw --device verbs:"), 1 << 16, BANDWIDTH,
        (Perftest("ib_write_bw"),), most_times_peer=1.11),
)


@dataclasses.dataclass(frozen=True)
class Line:
    """A panel of the picture: a work at each size, and the name of the line of its limit, if any.
    """

    name: str
    work: object
    limit: str = ""
    large: object = None  # instead, from 16 KiB on

    def at(self, size):
        return self.large if self.large and size >= 1 << 14 else self.work


SIZES = (8,) + tuple(4 ** i for i in range(2, 12))  # to 4 MiB

# The other programs do not read the data that arrives, so here liburma and its limit do not either.
MAPPED, PRIVATE = "liburma, mapped", "liburma, private (packets)"
RAW_MAPPED, RAW_PRIVATE = "raw limit, mapped", "raw limit, private"
NAMES = (MAPPED, PRIVATE, "UCX put", "UCX tag", RAW_MAPPED, RAW_PRIVATE, "libfabric shm")
COLOUR_OF = {RAW_MAPPED: 0, RAW_PRIVATE: 1}  # a limit looks like what it limits, but dashed


WRITES, PRIVATE_WRITES = "write_bw --no-verify", "write_bw --no-verify --private"
LATENCY_LINES = (
    Line(MAPPED, Urma("write_imm_lat --no-verify"), RAW_MAPPED),
    Line(PRIVATE, Urma("write_imm_lat --no-verify --private")),
    Line("UCX tag", Ucx("tag_lat")),
    Line("libfabric shm", Pingpong()),
)
BANDWIDTH_LINES = (
    Line(MAPPED, Urma(WRITES), RAW_MAPPED, Urma(WRITES + " --depth 4")),
    Line(PRIVATE, Urma(PRIVATE_WRITES), RAW_PRIVATE, Urma(PRIVATE_WRITES + " --depth 4")),
    Line("UCX put", Ucx("ucp_put_bw")),
    Line("UCX tag", Ucx("tag_bw")),
)
