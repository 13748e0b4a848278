#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs spin over the Promela models and their mutants: a model that finds no fault in a wrong
variant proves nothing about the right one.
usage: exhaust.py DIRECTORY"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
# Each row: the variant, the macros that are defined, and whether spin must find a fault.
RUNS = [
    ("safe", [], False),
    ("live", ["LIVE"], False),
    ("safe, one berth", ["BERTHS=1"], False),
    ("answers behind requests", ["ONE_QUEUE"], True),
    ("fewer answers than berths", ["ONE_ANSWER"], True),
    ("arrivals without a permit", ["NO_PERMIT"], True),
    ("messages are not polled", ["LIVE", "NEVER_POLLS"], True),
]


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
    if done.returncode != 0 and command[0] != "./pan":
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def exhaust(model, name, defines, wrong):
    with tempfile.TemporaryDirectory() as folder:
        flags = [f"-D{define}" for define in defines]
        run(["spin", "-a", *flags, str(model)], folder)
        live = "LIVE" in defines
        # Weak fairness is assumed: a process that can always continue does so at some time.
        options = ["-DNFAIR=8"] if live else ["-DSAFETY"]
        run(["gcc", "-O2", "-w", *options, "-o", "pan", "pan.c"], folder)
        out = run(["./pan", "-m1000000", *(["-a", "-f"] if live else [])], folder)
    errors = int(re.search(r"errors: (\d+)", out).group(1))
    states = re.search(r"(\S+) states, stored", out).group(1)
    print(f"{model.name}, {name}: {states} states, {errors} errors")
    if "Search not completed" in out and not wrong:
        sys.exit(f"{name}: not exhausted\n{out}")
    if (errors > 0) != wrong:
        sys.exit(f"{name}: {'no fault was found' if wrong else 'a fault was found'}\n{out}")


def main():
    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            print(f"models: skipped, there is no {tool}. Fix: apt-get install spin gcc")
            sys.exit(SKIPPED)
    for name, defines, wrong in RUNS:
        exhaust(pathlib.Path(sys.argv[1]).resolve() / "berths.pml", name, defines, wrong)


if __name__ == "__main__":
    main()
