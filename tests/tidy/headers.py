# SPDX-License-Identifier: Apache-2.0
"""Does each header compile alone?

The build does not show that: it compiles most sources several at a time. What compiled once is
remembered until it, or something that it includes, changes. The headers below tests/ take as long
as all others, and only --all compiles them. With URMA_TEST_SEED, as ./check sets it, those are
compiled that the last commit or the working tree changed, MOST of those that include such a file,
and a part of the others; each commit chooses them anew.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import zlib

from tree import HEADERS, Tree, main

PARTS = 32
MOST = 8
# The SDK that a header needs, by the beginning of a header of that, and flags beside its own.
SDKS = (("<rte_", "libdpdk", ()), ("<infiniband/", "libibverbs", ()), ("<rdma/", "librdmacm", ()),
        ("<liburing.h>", "liburing", ()), ("<pybind11/", "python3", ("-fvisibility=hidden",)))
FLAGS = ("-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++", "-")


def of_tests(tree):
    return {path for path in tree.named(*HEADERS) if path.startswith("tests/")}


def closure(tree, header):
    known, seen, open_ = set(tree.files), {header}, [header]
    while open_:
        for _, name, _ in tree.includes(open_.pop()):
            if name in known and name not in seen:
                seen.add(name)
                open_.append(name)
    return sorted(seen)


def fingerprint(tree, header, compiler):
    digest = hashlib.sha256(repr((compiler, FLAGS)).encode())
    for path in closure(tree, header):
        digest.update(path.encode() + b"\0" + tree.text(path).encode() + b"\0")
    return digest.hexdigest()


def compile_alone(tree, header, compiler):
    """Returns None, or the first message of the compiler."""
    more = []
    for sign, package, others in SDKS:
        if any(sign in tree.text(path) for path in closure(tree, header)):
            flags = flags_of(package)
            if flags is None:
                return None
            more += [*flags, *others]
    command = [compiler, "-I", str(tree.root), *more, *FLAGS]
    result = subprocess.run(command, input='#include "%s"\n' % header, text=True,
                            capture_output=True, check=False)
    if result.returncode == 0:
        return None
    complaint = next((l for l in result.stderr.split("\n") if "error" in l), "no reason given")
    return "%s:1: does not compile alone: %s" % (header, complaint)


def flags_of(package):
    """Returns the flags with which headers of this package compile; None if it is not installed."""
    if shutil.which("pkg-config") is None:
        return None
    found = subprocess.run(["pkg-config", "--cflags", package], text=True, capture_output=True,
                           check=False)
    if found.returncode != 0:
        return None
    return re.sub(r"-I\s*", "-isystem ", found.stdout).split()


def git(root, *words):
    """Returns what git prints about this tree, whichever one the caller is a hook of."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return subprocess.run(["git", *words], cwd=root, env=clean, text=True, capture_output=True,
                          check=False).stdout


def changed(tree):
    """Returns what the last commit and the working tree changed; nothing where that is unknown."""
    if shutil.which("git") is None:
        return set()
    return set((git(tree.root, "diff", "--name-only", "HEAD~1") +
                git(tree.root, "ls-files", "--others", "--exclude-standard")).split())


def lot(seed, header):
    return zlib.crc32(f"{seed} {header}".encode())


def choose(tree, headers):
    seed = os.environ.get("URMA_TEST_SEED")
    if not seed:
        return headers
    new = changed(tree)
    chosen = [h for h in headers if h in new or lot(seed, h) % PARTS == 0]
    behind = [h for h in headers if h not in chosen and not new.isdisjoint(closure(tree, h))]
    return chosen + sorted(behind, key=lambda h: lot(seed, h))[:MOST]


def check(tree, options):
    version = subprocess.run([options.compiler, "--version"], text=True, capture_output=True,
                             check=True).stdout
    cache = pathlib.Path(options.cache) if options.cache else None
    fine = set(json.loads(cache.read_text())) if cache and cache.exists() else set()
    known_good = set() if options.all else of_tests(tree)
    pending = {}
    for header in tree.named(*HEADERS):
        if header not in known_good:
            pending[header] = fingerprint(tree, header, version)
    to_compile = [h for h, print_ in pending.items() if print_ not in fine]
    if not options.all:
        to_compile = choose(tree, to_compile)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = pool.map(lambda h: compile_alone(tree, h, options.compiler), to_compile)
        failed = dict(zip(to_compile, answers))
    if cache:
        good = [p for h, p in pending.items() if p in fine or failed.get(h, "") is None]
        cache.write_text(json.dumps(sorted(good)))
    return [problem for problem in failed.values() if problem]


def self_test(options):
    os.environ.pop("URMA_TEST_SEED", None)
    files = {
        "good.h": "#include <string>\ninline std::string f() { return {}; }\n",
        "bad.h": "inline std::string g() { return {}; }\n",
        "warns.h": "inline int h(int unused) { return 0; }\n",
        "needs.h": '#include "good.h"\n#include "bad.h"\n',
        "tests/bad.h": "inline std::string h() { return {}; }\n",
    }
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            place = pathlib.Path(root, path)
            place.parent.mkdir(exist_ok=True)
            place.write_text(text, encoding="utf-8")
        options.cache = os.path.join(root, "cache")
        for _ in range(2):
            found = check(Tree(root), options)
            assert len(found) == 2, found
            assert found[0].startswith("bad.h:1: does not compile alone: "), found
            assert found[1].startswith("warns.h:1: does not compile alone: "), found
        remembered = json.loads(pathlib.Path(options.cache).read_text())
        assert len(remembered) == 2, remembered  # good, needs
        pathlib.Path(root, "good.h").write_text("broken\n", encoding="utf-8")
        found = check(Tree(root), options)
        assert [f.split(":")[0] for f in found] == ["bad.h", "good.h", "needs.h", "warns.h"], found
        options.all = True
        assert "tests/bad.h" in [f.split(":")[0] for f in check(Tree(root), options)]
        assert {lot(seed, "bad.h") % PARTS == 0 for seed in range(20 * PARTS)} == {False, True}
        if shutil.which("git") is not None:
            check_choice(root, files)


def check_choice(root, files):
    """What the last commit changed, what the working tree changed, what is new, and what includes
    one of these, is chosen with a seed that draws nothing."""
    git(root, "init", "-q")
    for commit in ("bad.h", "warns.h"):
        git(root, "add", commit, "tests")
        git(root, "-c", "user.name=us", "-c", "user.email=us@here", "commit", "-qm", commit)
    pathlib.Path(root, "bad.h").write_text("still broken\n", encoding="utf-8")
    seed = next(seed for seed in range(20 * PARTS)
                if not any(lot(seed, path) % PARTS == 0 for path in files))
    os.environ["URMA_TEST_SEED"] = str(seed)
    chosen = choose(Tree(root), list(files))
    assert chosen == ["good.h", "bad.h", "warns.h", "needs.h"], chosen


if __name__ == "__main__":
    main(__doc__.split("\n", maxsplit=1)[0], check, self_test, [
        ("--compiler", {"default": os.environ.get("CXX", "c++")}),
        ("--cache", {"help": "a file that remembers what compiled"}),
        ("--all", {"action": "store_true", "help": "also those below tests/, whatever the seed"}),
    ])
