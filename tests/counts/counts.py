#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the important steps take more instructions than recorded?

    tests/counts/counts.py PROGRAM            against tests/counts/counts.txt: a test
    tests/counts/counts.py --record PROGRAM   records the present counts

PROGRAM is build/counts/tests/counts/counted."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

RECORD = pathlib.Path(__file__).resolve().parent / "counts.txt"
SKIPPED = 77
MOST = 1.03
# The cases that callgrind counts, and how often each is executed. The function that is counted has
# the name up to the first "_".
CASES = {"register": 300, "access": 20000, "send": 300, "post_write": 20000,
         "poll_write": 20000, "post_read": 20000, "poll_read": 20000, "post_add": 20000,
         "poll_add": 20000, "lane_write": 20000,
         "lane_read": 20000, "lane_add": 20000, "packet": 300, "packet_ldcp": 300,
         "packet_64k": 100, "packet_1m": 20,
         "packet_caqm_w": 300, "packet_caqm_r": 300, "packet_beside_idle": 300,
         "packet_beside_paced": 300, "meter_caqm_w": 20000, "meter_caqm_r": 20000,
         "hop_none": 20000, "hop_caqm_w": 20000, "hop_caqm_r": 20000, "forward_16": 20000,
         "forward_1024": 20000, "transmit_dpdk": 3200, "arrive_dpdk": 3200,
         "transmit_verbs": 3200, "arrive_verbs": 3200}
# The first case may not take more than the second one: channels that wait for their departure cost
# a pass nothing.
NO_MORE_THAN = ("packet_beside_paced", "packet_beside_idle")
# The C library chooses its memcpy by the processor; this selects the one that all have.
PLAIN = "glibc.cpu.hwcaps=-AVX2,-AVX,-AVX512F,-AVX512VL,-ERMS,-FSRM,-AVX_Fast_Unaligned_Load"


def records():
    """Returns {(compiler, case): instructions}."""
    out = {}
    for line in RECORD.read_text().splitlines():
        if line and not line.startswith("#"):
            compiler, case, count = line.split()
            out[compiler, case] = float(count)
    return out


def count(program, case):
    times = CASES[case]
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no",
         f"--toggle-collect=counted_{case.partition('_')[0]}*", program, case, str(times)],
        env={**os.environ, "GLIBC_TUNABLES": PLAIN}, capture_output=True, text=True, timeout=120,
        check=False)
    if done.returncode == SKIPPED:
        print(f"counts: {case} is skipped: {done.stdout}{done.stderr}")
        return None
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or found is None or int(found.group(1)) == 0:
        sys.exit(f"counts: {case} was not counted\n{done.stdout}{done.stderr}")
    return int(found.group(1)) / times


def record(compiler, counts):
    all_of_them = records()
    all_of_them.update({(compiler, case): value for case, value in counts.items()})
    heading = [line for line in RECORD.read_text().splitlines() if line.startswith("#")]
    rows = [f"{by} {case} {value:.1f}" for (by, case), value in sorted(all_of_them.items())]
    RECORD.write_text("\n".join(heading + rows) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write it down")
    parser.add_argument("program")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("counts: skipped, there is no valgrind. Fix: apt-get install valgrind")
        sys.exit(SKIPPED)
    compiler = subprocess.run([options.program], capture_output=True, text=True, timeout=60,
                              check=True).stdout.strip()
    known = records()
    if not options.record and not any(by == compiler for by, _ in known):
        print(f"counts: skipped, nothing is written down of {compiler}. Fix: --record")
        sys.exit(SKIPPED)
    counts = {case: count(options.program, case) for case in CASES}
    counts = {case: value for case, value in counts.items() if value is not None}
    if options.record:
        record(compiler, counts)
    more = False
    for case, value in counts.items():
        was = known.get((compiler, case))
        print(f"{compiler} {case}: {value:.1f} instructions" +
              ("" if was is None else f", {100 * (value / was - 1):+.1f} % of {was:.1f}"))
        more = more or was is None or value > was * MOST
        if was is not None and value < was / MOST:
            print(f"  that is less: write it down, so that it stays (--record {options.program})")
    first, second = NO_MORE_THAN
    if counts[first] > counts[second] * MOST:
        sys.exit(f"counts: {first} takes more than {second}. Fix: find what each pass does for "
                 "channels that wait for their departure (transport/medium.h, `active`)")
    if more and not options.record:
        print(f"counts: more than {MOST - 1:.0%} over what is written down, or nothing is. Fix: "
              f"make it less; or, if it is worth that, tests/counts/counts.py --record "
              f"{options.program}, and say why in the commit")
        sys.exit(1)


if __name__ == "__main__":
    main()
