# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of programs: runs the tests of a file, starts and ends programs, and checks
what several tests check."""

import os
import select
import signal
import subprocess
import sys
import time

SKIPPED = 77  # an exit code


def run_tests(module):
    """Calls each function of a module, given as its globals(), whose name begins with test_."""
    for name, test in list(module.items()):
        if name.startswith("test_"):
            began = time.monotonic()
            print(name, end=" ", flush=True)
            test()
            print(f"{time.monotonic() - began:.1f} s", flush=True)


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def start(program, *arguments, **more):
    """Starts a program that writes to pipes, unless `more` says otherwise."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([program, *map(str, arguments)], **{**pipes, **more})


def await_line(process, text):
    """Reads the next line of a process, which must contain this text."""
    line = process.stdout.readline()
    if text not in line:
        process.kill()
        raise AssertionError((process.args, line, *finish(process)))
    return line


def finish(process, timeout=100):
    """Waits for the end of a process. Returns its exit code, and what it wrote."""
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


def end(process, timeout=100):
    """Sends Ctrl-C to a process, and waits for its end, as `finish`."""
    process.send_signal(signal.SIGINT)
    return finish(process, timeout)


def kill(process):
    """Kills a process without reading what it wrote: a child of the process may still write."""
    process.kill()
    process.wait()
    process.stdout.close()


def ip(*arguments):
    """Runs the program ip. Returns whether it succeeded."""
    return subprocess.run(["ip", *arguments], capture_output=True).returncode == 0


def shown_on(terminal):
    """Returns what was written to this pseudo-terminal, and closes it."""
    shown = b""
    while select.select([terminal], [], [], 0)[0]:
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the other end is closed, and everything has been read
            break
    os.close(terminal)
    return shown


def start_without_window(program, *arguments):
    """Starts a program in namespaces with a network, but without room for a window in /dev/shm.

    Returns None if this machine does not allow namespaces.
    """
    words = ["unshare", "--mount", "--net", "sh", "-c", "ip link set lo up && "
             "mount -t tmpfs -o size=4k,mode=1777 tmpfs /dev/shm && exec \"$@\"", "sh"]
    if subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        print("(skipped: no namespaces)")
        return None
    return start(*words, program, *arguments)


def cpu_seconds(process):
    """Returns the processor time of a process. A busy machine does not increase it, unlike the time
    of a clock, so a test may limit it for a process that has nothing to do."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check_idle(process):
    """The process sleeps while nothing arrives: one that polls would use most of a second."""
    time.sleep(0.2)
    before = cpu_seconds(process)
    time.sleep(1)
    assert cpu_seconds(process) - before < 0.1


def check_help(program):
    """--help and --version print at most a screen, and no error."""
    for option in ("--help", "--version"):
        done = subprocess.run([program, option], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stderr == "", done
        assert len(done.stdout.splitlines()) <= 30, done.stdout
        assert max(map(len, done.stdout.splitlines())) <= 100, done.stdout


def help_of(tool):
    """Returns the longest help of a program."""
    for option in ("--help-all", "--help"):
        done = subprocess.run([tool, option], capture_output=True, text=True, timeout=20,
                              check=False)
        if done.returncode == 0:
            return done.stdout
    raise AssertionError(f"{tool} --help: {done.stderr}")
