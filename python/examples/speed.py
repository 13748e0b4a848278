#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures works of Python between two processes and, in turns, the same works by urma_perf.

    speed.py [DEVICE [COUNT]]     cxl: is the default; urma_perf is looked for in PATH
"""

import collections
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

import urma

ROUNDS = 3
SMALL, LARGE = 64, 1 << 20
PROCESSORS = sorted(os.sched_getaffinity(0))
DEPTH = 4  # works outstanding when bandwidth is measured, as urma_perf has them for 1 MiB


def median_us(call, count):
    took = []
    for _ in range(count):
        begin = time.perf_counter_ns()
        call()
        took.append(time.perf_counter_ns() - begin)
    return statistics.median(took) / 1000


def write_lat(jetty, found, count):
    data = bytes(SMALL)
    return median_us(lambda: jetty.write(data, found.segment).wait(10), count)


def send_lat(jetty, found, count):
    """Half of a round trip."""
    data = bytes(SMALL)

    def there_and_back():
        jetty.send(data, found.jetty)
        jetty.receive(10)

    return median_us(there_and_back, count) / 2


def lane_write_lat(jetty, found, count):
    if not found.segment.mapped:
        return None
    lane, data = jetty.lane(found.segment), bytes(SMALL)
    return median_us(lambda: lane.write(data), count)


def write_bw(jetty, found, count):
    """In GB/s."""
    data, works = bytearray(LARGE), collections.deque()
    begin = time.perf_counter()
    for _ in range(count):
        if len(works) == DEPTH:
            works.popleft().wait(10)
        works.append(jetty.write(data, found.segment))
    jetty.drain(10)
    return count * LARGE / (time.perf_counter() - begin) / 1e9


TESTS = (  # what, its function, its unit, bytes of a message, the fraction of COUNT
    ("write of 64 B, to completion", write_lat, "us", SMALL, 1),
    ("send of 64 B, one way", send_lat, "us", SMALL, 1),
    ("write of 64 B by a lane", lane_write_lat, "us", SMALL, 1),
    ("writes of 1 MiB", write_bw, "GB/s", LARGE, 1 / 8),
)


def by_urma_perf(program, test, size, device):
    said = subprocess.run([program, "--self", test, "--size", str(size), "--seconds", "1",
                           "--device", device, "--json"], stdout=subprocess.PIPE, check=True)
    result = json.loads(said.stdout)["results"][0]
    return result["bytes_per_second"] / 1e9 if test.endswith("_bw") else result["p50_us"]


def stay_on_processor(number):
    """As urma_perf does: each side has a processor of its own, if there are two."""
    if len(PROCESSORS) > 1:
        os.sched_setaffinity(0, {PROCESSORS[number]})


def serve(device, name):
    """The other side: memory, and messages that are sent back."""
    memory, jetty = device.allocate(LARGE), device.jetty(receives=64)
    device.publish(name, memory, jetty)
    client = device.import_(jetty.receive(10).data.decode()).jetty
    while (message := jetty.receive(60).data) != b"over":
        jetty.send(message, client)
    jetty.drain(10)


def measure(text, count):
    name = f"speed-{os.getpid()}"
    program = shutil.which("urma_perf")
    peer = subprocess.Popen([sys.executable, __file__, "serve", name, text])
    with urma.open(text) as device:
        found = device.import_("urma://localhost/" + name, timeout=10)
        jetty = device.jetty(receives=64)
        jetty.send(jetty.descriptor.encode(), found.jetty).wait(10)
        for what, test, unit, size, part in TESTS:
            own, theirs = [], []
            for _ in range(ROUNDS):
                stay_on_processor(0)
                own.append(test(jetty, found, max(int(count * part), 1)))
                os.sched_setaffinity(0, PROCESSORS)
                if program and own[-1]:
                    theirs.append(by_urma_perf(program, test.__name__, size, text))
            if own[0] is None:
                continue
            line = f"{what:30} {statistics.median(own):8.3g} {unit:4}"
            if theirs:
                other = statistics.median(theirs)
                line += f"   urma_perf {other:8.3g}   x {statistics.median(own) / other:.3g}"
            print(line, flush=True)
        jetty.send(b"over", found.jetty).wait(10)
        peer.wait(10)
    if not program:
        print("urma_perf is not in PATH, so there is nothing to compare with")


def main():
    if sys.argv[1:2] == ["serve"]:
        stay_on_processor(1)
        with urma.open(sys.argv[3]) as device:
            serve(device, sys.argv[2])
        return
    measure(sys.argv[1] if len(sys.argv) > 1 else "cxl:",
            int(sys.argv[2]) if len(sys.argv) > 2 else 20_000)


if __name__ == "__main__":
    main()
