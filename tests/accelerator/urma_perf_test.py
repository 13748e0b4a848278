# SPDX-License-Identifier: Apache-2.0
"""urma_perf with memory of a GPU: two processes, and the driver of tests/accelerator/fake_cuda.cc.

Usage: urma_perf_test.py URMA_PERF FAKE_CUDA
"""

import json
import os
import subprocess
import sys
import unittest

URMA_PERF = sys.argv.pop(1)
FAKE_CUDA = sys.argv.pop(1)
LIMIT = 120


def run(*words, driver=FAKE_CUDA):
    environment = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(driver))
    return subprocess.run(
        [URMA_PERF, *words], env=environment, capture_output=True, text=True, timeout=LIMIT
    )


class Memory(unittest.TestCase):
    def test_each_byte_arrives_in_memory_of_a_gpu(self):
        for device in ("cxl:", "udp:"):
            for test in ("write_bw", "read_bw", "send_bw", "write_imm_lat", "read_lat", "send_lat"):
                with self.subTest(device=device, test=test):
                    depth = ("--depth", "16") if test.endswith("_bw") else ()
                    done = run(
                        "--self", test, "--memory", "cuda:1", "--device", device, "--size",
                        "8,5000,64K", "--seconds", "0.1", "--rounds", "1", "--json", *depth,
                    )
                    self.assertEqual(done.returncode, 0, done.stderr)
                    rows = json.loads(done.stdout)["results"]
                    self.assertEqual([row["size_bytes"] for row in rows], [8, 5000, 65536])
                    self.assertEqual({row["memory"] for row in rows}, {"cuda:1"})

    def test_a_plan_moves_blocks_between_memory_of_gpus(self):
        done = run(
            "--self", "kv", "--block", "100K", "--blocks", "20", "--memory", "cuda:0",
            "--seconds", "0.1", "--rounds", "1",
        )
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_is_not_possible_is_refused_with_the_fix(self):
        for words, says in (
            (("--self", "atomic_lat", "--memory", "cuda:0"), "no atomics"),
            (("--self", "write_bw", "--memory", "cuda:0", "--limit"), "leave --limit out"),
            (("--self", "write_bw", "--memory", "gpu"), "cuda:0"),
            (("--self", "lane_write_lat", "--memory", "cuda:0"), "--memory"),
        ):
            with self.subTest(words=words):
                done = run(*words)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(says, done.stderr)
        done = run("--self", "write_bw", "--memory", "cuda:7")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("nvidia-smi", done.stderr)


if __name__ == "__main__":
    unittest.main()
