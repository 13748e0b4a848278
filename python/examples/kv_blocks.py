#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hands blocks of a KV cache from a prefill process to a decode process, without a copy at the
sender.

    kv_blocks.py [BLOCKS]     starts both processes
"""

import os
import subprocess
import sys

import numpy as np

import urma

LAYERS, HEADS, TOKENS, WIDTH = 2, 4, 16, 64  # of a block
BLOCK = (2, LAYERS, HEADS, TOKENS, WIDTH)  # 2: keys and values
SLOTS = 4


def block_of(number):
    """Stands for what a model computes."""
    return np.random.default_rng(number).standard_normal(BLOCK, np.float32)


def prefill(device, name, blocks):
    """Fills slots of its cache, announces each, and fills a slot again once it is free."""
    size = block_of(0).nbytes
    memory = device.allocate(SLOTS * size)
    cache = np.frombuffer(memory, np.float32).reshape(SLOTS, *BLOCK)
    jetty = device.jetty(receives=SLOTS)
    device.publish(name, memory, jetty)
    # The decoder introduces itself by the descriptor of its Jetty.
    decoder = device.import_(jetty.receive(10).data.decode()).jetty
    free = list(range(SLOTS))
    for number in range(blocks):
        if not free:
            free.append(jetty.receive(10).immediate)
        slot = free.pop(0)
        cache[slot] = block_of(number)
        jetty.send(number.to_bytes(4, "little"), decoder, immediate=slot).wait(10)
    while len(free) < SLOTS:
        free.append(jetty.receive(10).immediate)


def decode(device, name, blocks):
    """Reads each block into its own memory, and frees the slot."""
    found = device.import_("urma://localhost/" + name, timeout=10)
    jetty = device.jetty(receives=SLOTS)
    jetty.send(jetty.descriptor.encode(), found.jetty).wait(10)
    block = np.empty(BLOCK, np.float32)
    for _ in range(blocks):
        arrival = jetty.receive(10)
        number, slot = int.from_bytes(arrival.data, "little"), arrival.immediate
        jetty.read(block, found.segment, slot * block.nbytes).wait(10)
        jetty.send(b"", found.jetty, immediate=slot).wait(10)
        if not (block == block_of(number)).all():
            raise SystemExit(f"kv_blocks: block {number} is damaged")
    print(f"{blocks} blocks of {block.nbytes} bytes are correct")


def main():
    if len(sys.argv) > 3:
        role, name, blocks = sys.argv[1:]
        with urma.open() as device:
            (prefill if role == "prefill" else decode)(device, name, int(blocks))
        return
    blocks = sys.argv[1] if len(sys.argv) > 1 else "32"
    name = f"kv-{os.getpid()}"
    both = [subprocess.Popen([sys.executable, __file__, role, name, blocks])
            for role in ("prefill", "decode")]
    sys.exit(max(abs(one.wait()) for one in both))


if __name__ == "__main__":
    main()
