#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes one line of the code at a time, in a copy, and checks that `ctest -L kill` fails.

    tests/mutants/mutants.py [--only WORD] [--keep] [--copies N]    30 s for each on two cores
    tests/mutants/mutants.py --check                     do all mutants still fit the code?
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIMIT_S = 60  # of the tests, at least
SLOWNESS = 4  # How many times longer a mutant's tests may take than those of the code as it is.
BUILD_LIMIT_S = 1800
CORES = len(os.sched_getaffinity(0))
TARGETS = ["packet_scripts", "loss_tests", "memory_tests", "gate_tests", "order_tests",
           "settle_tests", "carried_tests", "control_tests", "fabric_tests", "forged_hints",
           "number_tests", "engines_tests", "lane_tests", "light_works_tests", "ring_tests",
           "target_tests", "accelerator_tests", "swarm"]
DPDK, VERBS = "drivers/dpdk/", "drivers/verbs/"  # Tested where their kits are installed.
# Only this program uses the verbs driver.
VERBS_TARGETS = ["verbs_tests"]


def mutants():
    heading = ""
    for number, line in enumerate((HERE / "mutants.txt").read_text().split("\n"), 1):
        if line.startswith("#"):
            heading = line
        if not line or line.startswith("#"):
            continue
        parts = [part.strip().replace("\\|", "|") for part in re.split(r" \| ", line)]
        if len(parts) != 3:
            sys.exit("mutants.txt:%d: FILE | AS IT IS | AS IT MUST NOT BE" % number)
        yield number, heading, *parts


def misfits(root):
    for number, _, path, is_now, _ in mutants():
        text = (root / path).read_text()
        if text.count(is_now) != 1:
            yield "mutants.txt:%d: %s has \"%s\" %d times, not once. Fix: write it as it is" % (
                number, path, is_now, text.count(is_now))


def run(words, where, limit):
    return subprocess.run(words, cwd=where, timeout=limit, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)


def copy_tree(to):
    names = run(["git", "ls-files", "-z"], ROOT, 60).stdout.split("\0")
    for name in filter(None, names):
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)


def targets_of(path):
    return VERBS_TARGETS if path.startswith(VERBS) else TARGETS


def build(tree, jobs, targets):
    return run(["cmake", "--build", "build/dev", "-j", str(jobs), "--target", *targets], tree,
               BUILD_LIMIT_S)


def tests_pass(tree, limit, targets):
    """Returns None if they took too long, which counts as noticed."""
    chosen = ["-L", "kill"] if targets is TARGETS else ["-R", "^(%s)$" % "|".join(targets)]
    try:
        done = run(["ctest", "--preset", "dev", *chosen], tree, limit)
    except subprocess.TimeoutExpired:
        return None
    return done.returncode == 0


def try_one(tree, jobs, limit, number, path, is_now, must_not):
    """Returns whether the tests failed, as they must."""
    file = tree / path
    good = file.read_text()
    started = time.monotonic()
    file.write_text(good.replace(is_now, must_not))
    verdict = "does not compile"
    targets = targets_of(path)
    if build(tree, jobs, targets).returncode == 0:
        passed = tests_pass(tree, limit, targets)
        verdict = {True: "SURVIVES", False: "killed", None: "killed (hangs)"}[passed]
    file.write_text(good)
    print("%-16s %3.0f s  %s:%d  %s  ->  %s" % (
        verdict, time.monotonic() - started, path, number, is_now, must_not), flush=True)
    return verdict.startswith("killed")


def make_tree(tree):
    """Builds a copy of the code. Returns how long tests may take there."""
    copy_tree(tree)
    if (run(["cmake", "--preset", "dev"], tree, 300).returncode
            or build(tree, CORES, TARGETS).returncode):
        sys.exit("the copy does not build. Fix: what the build of the tree says")
    listed = run(["ctest", "--show-only=json-v1", "-L", "kill"], tree / "build/dev", 60)
    unbuilt = [test["name"] for test in json.loads(listed.stdout)["tests"] if "command" not in test]
    if unbuilt:
        sys.exit("no target makes %s. Fix: add it to TARGETS in mutants.py" % ", ".join(unbuilt))
    started = time.monotonic()
    if not tests_pass(tree, BUILD_LIMIT_S, TARGETS):
        sys.exit("the tests fail on the code as it is. Fix: ctest --preset dev -L kill")
    return max(LIMIT_S, SLOWNESS * (time.monotonic() - started))


def try_here(tree, limit, chosen, jobs):
    """Tries the mutants in this tree, one by one. Returns how many survive."""
    for driver in (DPDK, VERBS):
        wanted = any(mutant[2].startswith(driver) for mutant in chosen)
        if wanted and (build(tree, jobs, targets_of(driver)).returncode
                       or not list((tree / "build/dev" / driver).glob("*.so"))):
            print("skipped: mutants of %s, whose kit is not installed" % driver)
            chosen = [mutant for mutant in chosen if not mutant[2].startswith(driver)]
    return sum(not try_one(tree, jobs, limit, number, path, is_now, must_not)
               for number, _, path, is_now, must_not in chosen)


def try_in_copies(tree, limit, chosen, copies):
    """Tries the mutants in copies of the built tree, at the same time. A build refers to the folder
    that it was made in, so a process for each copy sees its copy there, by a mount of its own."""
    tried = []
    for i in range(copies):
        copy = "%s.%d" % (tree, i)
        run(["cp", "-a", tree, copy], ROOT, 600)
        tried.append(subprocess.Popen(
            ["unshare", "--mount", "--map-root-user", "sh", "-c",
             'mount --bind "$0" "$1" && shift && exec "$@"', copy, tree, sys.executable, "-B",
             __file__, "--tree", tree, "--limit", str(limit),
             "--jobs", str(max(1, CORES // copies)),
             "--lines", ",".join(str(mutant[0]) for mutant in chosen[i::copies])]))
    survivors = sum(one.wait() for one in tried)
    for i in range(copies):
        shutil.rmtree("%s.%d" % (tree, i), ignore_errors=True)
    return survivors


def try_all(chosen, copies, keep):
    """Returns how many survive."""
    tree = pathlib.Path(tempfile.mkdtemp(prefix="urma-mutants-"))
    try:
        limit = make_tree(tree)
        if copies > 1:
            return try_in_copies(tree, limit, chosen, copies)
        return try_here(tree, limit, chosen, CORES)
    finally:
        if keep:
            print(tree)
        else:
            shutil.rmtree(tree)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="",
                        help="mutants of a heading, file or line with this in it")
    parser.add_argument("--keep", action="store_true", help="leave the copy, and say where it is")
    parser.add_argument("--copies", type=int, default=1,
                        help="try so many at a time, if the kernel allows mounts")
    parser.add_argument("--check", action="store_true", help="change nothing")
    parser.add_argument("--lines", default="", help="mutants of these lines of mutants.txt")
    for of_a_copy in ("--tree", "--limit", "--jobs"):
        parser.add_argument(of_a_copy, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = parse_options()
    lines = {int(line) for line in options.lines.split(",") if line}
    chosen = [mutant for mutant in mutants() if options.only in "".join(mutant[1:4])
              and (not lines or mutant[0] in lines)]
    if options.tree:
        return try_here(pathlib.Path(options.tree), float(options.limit), chosen,
                        int(options.jobs))
    wrong = list(misfits(ROOT))
    for problem in wrong:
        print(problem)
    if wrong or options.check:
        print("%d mutants, %d do not fit" % (len(list(mutants())), len(wrong)))
        return 1 if wrong else 0
    survivors = try_all(chosen, min(options.copies, len(chosen)), options.keep)
    print("%d survive" % survivors)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
