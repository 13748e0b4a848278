#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what the errors advise work when it is typed? advice_test.py SOURCES PROGRAM...

advice.txt has each cure that the sources name. Those that can be typed are: a command that is
refused with the cure, and then the cure, which must succeed. All of it happens in namespaces of
its own, whose /dev/shm and work folder are their own: however this ends, nothing is left.
"""

import os
import pathlib
import re
import select
import shutil
import subprocess
import sys
import time

import cures

HERE = pathlib.Path(__file__).resolve().parent
SHARED = pathlib.Path("/dev/shm")
# Directories that systems have and seldom use: the work directory is mounted at one of them.
FOLDERS = [pathlib.Path(name) for name in ("/mnt", "/media", "/srv", "/opt")]
PATIENCE = 60  # with a command that hangs
AT_ONCE = 4
NAMESPACES = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount", "--net",
              "--pid", "--fork", "--kill-child", "--mount-proc"]
INSIDE = "URMA_TEST_ADVICE_INSIDE"
ROOT = "URMA_TEST_ADVICE_ROOT"  # 1 if started by root, which every user is in its namespaces
# Cures of python/ are typed in Python: tests/python fails if no refused call of its names one.
NO_SOURCES = ("build", "tests", "bench", "python")


class Wrong(Exception):
    pass


class Row:
    """Cures that are tried together, as (file, cure), and the steps of the trial, as (kind,
    text)."""

    def __init__(self, line):
        self.line, self.heads, self.steps = line, [], []

    def typed(self):
        return any(what == ">" for what, _ in self.steps)

    def needs_root(self):
        """Returns whether the row needs a second user, or mounts over the first mount namespace."""
        return any(re.search(r"\b(setpriv|chown|unshare) ", text) for _, text in self.steps)


def read_rows(text):
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not line.startswith(" "):
            if not rows or rows[-1].steps:
                rows.append(Row(number))
            path, cure = line.split(": ", 1)
            rows[-1].heads.append((path, cure))
            continue
        what, rest = line.strip().split(" ", 1)
        if what not in ("&", "+", "$", "%", "~", "?", ">", "not:"):
            raise Wrong(f"advice.txt:{number}: begins with none of & + $ % ~ ? > not:")
        rows[-1].steps.append((what, rest))
    return rows


# ---- comparison with the sources


def cures_of(root):
    found = {}
    for folder in sorted(pathlib.Path(root).iterdir()):
        if folder.name in NO_SOURCES or folder.name.startswith("."):
            continue
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".cc", ".h", ".hpp"):
                name = path.relative_to(root).as_posix()
                for cure in cures.cures_in(name, path.read_text(encoding="utf-8")):
                    if cure:  # else it is said elsewhere
                        found[(name, cure)] = True
    return found


def compare(rows, found):
    listed = [head for row in rows for head in row.heads]
    problems = [f"{path}: its cure has no row in tests/advice/advice.txt:\n{path}: {cure}"
                for path, cure in found if (path, cure) not in listed]
    problems += [f"advice.txt: no source has this cure:\n{path}: {cure}"
                 for path, cure in listed if (path, cure) not in found]
    problems += [f"advice.txt: twice:\n{path}: {cure}"
                 for path, cure in set(listed) if listed.count((path, cure)) > 1]
    for row in rows:
        whats = {what for what, _ in row.steps}
        typed = ">" in whats and "not:" not in whats and whats & {"$", "%", "~"}
        if not (whats == {"not:"} or typed):
            problems.append(f"advice.txt:{row.line}: neither a command with its cure, nor a reason")
    return problems


def self_test():
    """Checks that a cure without a row, a row without a cure, and a row without steps are found."""
    source = ('usage("none. Fix: see " + name + " --help"); // Fix: no\n'
              'return wide ? fmt::format("one. Fix: {} or less", most) : what + ". Fix: two";\n')
    said = cures.cures_in("apps/a.cc", source)
    assert said == ["see {} --help", "{} or less", "two"], said
    source = 'return because(Status::x, path, f(a, b), "do it");'
    handed = cures.cures_in("drivers/pcap/capture_file.cc", source)
    assert handed == ["do it"], handed
    source = 'failed(x, "no ", y).fix("give ", f(a, "b"), g, " or " "6"); // failed(x).fix("no")'
    built = cures.cures_in("api/a.cc", source)
    assert built == ["give {} or 6"], built
    rows = read_rows("a.cc: two\n  $ false\n  > true\n\na.cc: three\n  not: a reason\n\n"
                     "a.cc: four\n  $ false\n")
    problems = compare(rows, {("a.cc", cure): True for cure in ("one", "two", "four")})
    assert len(problems) == 3, problems
    for problem, words in zip(problems, ("no row", "no source", "neither")):
        assert words in problem, problem
    assert pattern_of("see {} --help").search("a. Fix: see this --help")
    assert not pattern_of("see {} --help").search("a. Fix: see it")


# ---- typing the cures


def pattern_of(cure):
    parts = [re.escape(part) for part in cure.split(cures.ANY)]
    return re.compile(r"Fix:\s.*?" + r".*?".join(parts).replace(r"\ ", r"\s+"), re.DOTALL)


class Trial:
    """Runs one row, in a folder that is empty at first."""

    def __init__(self, row, folder):
        self.row, self.work, self.own = row, folder / "work", folder / "run"
        self.unseen = dict.fromkeys(row.heads)
        self.servers = []
        self.said = ""
        self.groups = ()

    def run(self):
        for path in (self.work, self.own):
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(mode=0o700)
        try:
            for what, text in self.row.steps:
                self.step(what, text)
            for path, cure in self.unseen:
                raise Wrong(f"was never printed: {path}: {cure}")
        finally:
            for server in self.servers:
                server.kill()
                server.wait()
                server.stdout.close()
            for path in SHARED.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def step(self, what, text):
        for number, group in enumerate(self.groups, 1):
            text = text.replace("{%d}" % number, group)
        if what == "&":
            self.start(text)
        elif what == "?":
            found = re.search(text, self.said)
            if not found:
                raise Wrong(f"no text like {text} in:\n{self.said}")
            self.groups = found.groups()
        else:
            self.type(what, text)

    def start(self, command):
        server = subprocess.Popen(["bash", "-c", "exec " + command], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, cwd=self.work)
        self.servers.append(server)
        readable = select.select([server.stdout], [], [], PATIENCE)[0]
        self.said = server.stdout.readline() if readable else ""
        if not self.said:
            raise Wrong(f"a server does not start: {command}")

    def type(self, what, command):
        try:
            done = subprocess.run(["bash", "-o", "pipefail", "-c", command], text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, errors="replace",
                                  timeout=PATIENCE, cwd=self.work)
        except subprocess.TimeoutExpired as late:
            raise Wrong(f"hangs: {command}\n{late.output}") from late
        if what in ("+", ">"):
            if done.returncode != 0:
                raise Wrong(f"fails with {done.returncode}: {command}\n{done.stdout}")
            return
        if what != "%" and done.returncode == 0:
            raise Wrong(f"is not refused: {command}\n{done.stdout}")
        self.said = done.stdout
        seen = [head for head in self.row.heads
                if what == "~" or pattern_of(head[1]).search(self.said)]
        if not seen:
            raise Wrong(f"gives other advice: {command}\n{self.said}")
        for head in seen:
            self.unseen.pop(head, None)


def used(folder):
    """Returns whether this tree or its programs use the folder: a mount would hide them."""
    return any(pathlib.Path(path).resolve().is_relative_to(folder) for path in sys.argv)


def try_all(rows):
    """Runs in a namespace."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    folder = next(path for path in FOLDERS if path.is_dir() and not used(path))
    # Without XDG_RUNTIME_DIR names lie in /tmp, in a folder that another user may have there.
    names = [path for path in [pathlib.Path("/tmp")] if not used(path)]
    for path in (SHARED, folder, *names):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g,mode=1777", "tmpfs", path],
                       check=True)
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)  # this network's
    os.environ.update(XDG_RUNTIME_DIR=str(folder / "run"), TMPDIR=str(folder / "work"))
    problems = []
    for row in rows:
        began = time.monotonic()
        try:
            Trial(row, folder).run()
        except Wrong as wrong:
            problems.append(f"advice.txt:{row.line}: {wrong}")
        if time.monotonic() - began > 3:
            print(f"advice.txt:{row.line}: {time.monotonic() - began:.1f} s", flush=True)
    return problems


def inside(number):
    """Starts this program again in its own namespaces. Rows mostly wait, so several processes
    share them."""
    return [*NAMESPACES, "env", f"{INSIDE}={number}", sys.executable, "-B", *sys.argv]


def main():
    root, programs = sys.argv[1], sys.argv[2:]
    rows = read_rows((HERE / "advice.txt").read_text(encoding="utf-8"))
    chosen = os.environ.get("URMA_ADVICE")  # a part of a row's cure or path, for debugging
    is_root = os.environ.setdefault(ROOT, "01"[os.geteuid() == 0]) == "1"
    typed = [row for row in rows if row.typed() and (is_root or not row.needs_root())
             and (not chosen or any(chosen in path + ": " + cure for path, cure in row.heads))]
    number = os.environ.get(INSIDE)
    problems = []
    if number is None:
        self_test()
        problems = compare(rows, cures_of(root))
        if not problems:
            probe = [*NAMESPACES, "ip", "link", "set", "lo", "up"]
            probed = subprocess.run(probe, capture_output=True, text=True)
            if probed.returncode != 0:
                print(f"(skipped, so nothing was typed: {probed.stderr.strip()})")
                return 0
            folders = [str(pathlib.Path(program).resolve().parent) for program in programs]
            os.environ["SOURCES"] = str(pathlib.Path(root).resolve())
            os.environ["PATH"] = ":".join([*folders, os.environ["PATH"]])
            # Replaces this process: when it ends, all processes in the namespace end.
            os.execvp(NAMESPACES[0], inside("all"))
    elif number == "all":
        parts = [subprocess.Popen(inside(part)) for part in range(AT_ONCE)]
        print(f"{len(typed)} of {len(rows)} rows are typed", flush=True)
        return 1 if any([part.wait() for part in parts]) else 0
    else:
        problems = try_all(typed[int(number)::AT_ONCE])
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
