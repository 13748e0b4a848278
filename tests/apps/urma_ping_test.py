#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests urma_ping between two processes, as people and scripts use it:
urma_ping_test.py URMA_PING"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from running import await_line, check_help, check_idle, end, ip, kill, run_tests, start

PROGRAM = sys.argv[1]
# An address of the loopback and a window that no other program uses.
PID = os.getpid()
ADDRESS = f"127.{64 + PID // 16384 % 128}.{PID // 128 % 128}.{1 + PID % 128}"
WINDOW = f"/dev/shm/urma-ping-test-{PID}"
NAMES = tempfile.TemporaryDirectory()
os.environ.update({"URMA_DEVICES": f"network=udp:{ADDRESS}:0;window=cxl:{WINDOW}?size=64M",
                   "XDG_RUNTIME_DIR": NAMES.name})
NETWORK_EID = "0000:0000:0000:0000:0000:ffff:" + "{:02x}{:02x}:{:02x}{:02x}".format(
    *map(int, ADDRESS.split(".")))

ANSWER = r"(\d+) bytes from (\S+): seq=(\d+) time=(\d+\.\d{3}) ms"
STATISTICS = (r"\n--- ping statistics ---\n"
              r"(\d+) packets transmitted, (\d+) received, (\d+\.\d)% packet loss, time (\d+)ms\n"
              r"rtt min/avg/max/mdev = (\S+)/(\S+)/(\S+)/(\S+) ms\n$")


def run(*arguments, timeout=60, **more):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=timeout, **more)


@contextlib.contextmanager
def server(*arguments):
    """Answers at all EIDs, and yields these."""
    process = start(PROGRAM, "--serve", *arguments)
    try:
        lines = [await_line(process, "answers at") for _ in range(1 if arguments else 2)]
        yield process, [line.split()[2] for line in lines]
    finally:
        if process.poll() is None:
            assert end(process)[0] == 130


def statistics_of(text):
    found = re.search(STATISTICS, text)
    assert found, text
    return found.groups()


def test_help():
    check_help(PROGRAM)


def test_answers_over_the_network_and_in_the_window():
    with server() as (process, eids):
        assert eids[0] == NETWORK_EID and eids[1].startswith("fd75:726d:61"), eids
        for eid in eids:
            done = run("-c", 4, "-i", 0.05, "-s", 1024, eid)
            assert done.returncode == 0 and done.stderr == "", done
            lines = done.stdout.splitlines()
            assert lines[0] == f"URMA_PING {eid} 1024 bytes of data.", lines
            answers = [re.fullmatch(ANSWER, line).groups() for line in lines[1:5]]
            assert [one[:3] for one in answers] == [("1024", eid, str(i + 1)) for i in range(4)]
            sent, received, lost, whole, least, mean, most, _ = statistics_of(done.stdout)
            assert (sent, received, lost) == ("4", "4", "0.0"), done.stdout
            times = [float(one[3]) for one in answers]
            assert float(least) == min(times) and float(most) == max(times), (times, least, most)
            assert abs(float(mean) - sum(times) / 4) < 0.01 and int(whole) >= 150
        check_idle(process)


def test_the_address_is_an_eid_and_the_source_a_device():
    with server(ADDRESS) as (_, eids):
        assert eids == [NETWORK_EID]
        done = run("-v", "-c", 1, "-I", ADDRESS, ADDRESS)
        assert done.returncode == 0, done
        assert f"\nfrom {NETWORK_EID} (network)\n" in done.stdout, done.stdout
        quiet = run("-q", "-c", 2, "-i", 0, ADDRESS)
        assert quiet.returncode == 0 and " from " not in quiet.stdout, quiet
        assert statistics_of(quiet.stdout)[:2] == ("2", "2")
        for size in (1, 4096):
            assert run("-q", "-c", 1, "-s", size, ADDRESS).returncode == 0


def test_nobody_answers():
    began = time.monotonic()
    done = run("-c", 2, "-i", 0, "-W", 0.2, ADDRESS)
    assert done.returncode == 1, done
    assert re.search(r"Request timeout for seq=1\nRequest timeout for seq=2\n", done.stdout), done
    assert statistics_of(done.stdout)[:3] == ("2", "0", "100.0"), done.stdout
    assert "no process answers pings at the EID" in done.stderr, done.stderr
    assert "Fix: run urma_ping --serve there" in done.stderr, done.stderr
    assert time.monotonic() - began < 30


def test_a_device_that_reaches_no_such_eid():
    """Waiting would not help, also if there is no limit."""
    with server() as (_, (network, window)):
        for source, there in ((network, window), (window, network)):
            done = run("-W", 0, "-c", 1, "-I", source, there)
            assert done.returncode == 1 and "Fix:" in done.stderr, done
            assert "time=" not in done.stdout, done


def test_names_that_cannot_be_read():
    with tempfile.TemporaryDirectory() as folder:
        open(f"{folder}/urma", "w", encoding="ascii").close()  # a directory is needed there
        done = run("-W", 0, ADDRESS, env={**os.environ, "XDG_RUNTIME_DIR": folder})
        assert done.returncode == 1 and "is not a directory of this user" in done.stderr, done


def test_a_deadline_ends_it():
    with server(ADDRESS):
        began = time.monotonic()
        done = run("-w", 1, "-i", 0.1, ADDRESS)
        assert done.returncode == 0 and 0.9 < time.monotonic() - began < 20, done
        assert int(statistics_of(done.stdout)[0]) >= 2, done.stdout


def await_line_with(process, text):
    while text not in (line := process.stdout.readline()):
        assert line, text


def test_the_server_starts_later_and_again():
    pinger = start(PROGRAM, "-i", "0.1", "-W", "0.5", ADDRESS)
    await_line(pinger, "URMA_PING")
    await_line(pinger, "Request timeout for seq=1")
    for _ in range(2):
        with server(ADDRESS) as (process, _):
            await_line_with(pinger, "time=")
            kill(process)  # says no good-bye
        await_line_with(pinger, "Request timeout")
    code, out, err = end(pinger)
    assert code == 0 and err == "", (code, err)
    assert int(statistics_of(out)[1]) >= 2, out


def test_more_messages_than_may_wait_for_their_answers():
    with server(ADDRESS) as (process, _):
        pinger = start(PROGRAM, "-i", "0", "-W", "0.02", ADDRESS)
        await_line_with(pinger, "time=")
        process.send_signal(signal.SIGSTOP)
        for _ in range(60):
            await_line_with(pinger, "Request timeout")
        process.send_signal(signal.SIGCONT)
        await_line_with(pinger, "time=")
        code, out, err = end(pinger)
        assert code == 0 and err == "", (code, err)
        statistics_of(out)


def test_one_of_several_servers_answers_and_another_one_takes_over():
    with server() as (_, eids):
        with server() as (second, _):
            second.send_signal(signal.SIGSTOP)  # it does not answer, so it is not asked
            for eid in eids:
                assert run("-c", 3, "-i", 0, eid).stdout.count("time=") == 3
            second.send_signal(signal.SIGCONT)
    with server() as (first, eids):
        with server():
            assert end(first)[0] == 130
            for eid in eids:
                until = time.monotonic() + 20
                while run("-c", 1, eid).stdout.count("time=") == 0:
                    assert time.monotonic() < until, eid


def test_ctrl_c_ends_with_the_statistics():
    with server(ADDRESS):
        pinger = start(PROGRAM, "-i", "0.1", ADDRESS)
        await_line(pinger, "URMA_PING")
        await_line(pinger, "seq=1 ")
        code, out, err = end(pinger)
        assert code == 0 and err == "", (code, err)
        statistics_of(out)


def test_bad_input():
    for arguments, said in (
            ((), "missing destination. Fix: give its EID"),
            (("host.example",), 'eid: "host.example" is invalid. Fix: give an EID'),
            (("::",), 'eid: "::" is invalid'),
            (("-c", "0", ADDRESS), '--count: "0" is invalid'),
            (("-c", "x", ADDRESS), '--count: "x" is invalid'),
            (("-s", "0", ADDRESS), '--size: "0" is invalid'),
            (("-s", "4097", ADDRESS), '--size: "4097" is invalid. Fix: give 1 to 4K bytes'),
            (("-i", "-1", ADDRESS), "-i"),
            (("-W", "soon", ADDRESS), '--timeout: "soon" is invalid'),
            (("-w", "1e9", ADDRESS), '--deadline: "1e9" is invalid'),
            (("-I", "eth0", ADDRESS), '--source: "eth0" is invalid'),
            (("--cuont", "1", ADDRESS), "--count"),
            (("-q", "-v", ADDRESS), "--quiet and --verbose"),
            (("--serve", "-c", "1"), "--serve and --count"),
            ((ADDRESS, ADDRESS), ADDRESS)):
        done = run(*arguments)
        assert done.returncode == 2 and said in done.stderr and "Fix:" in done.stderr, (said, done)
        assert done.stdout == "", done


def test_devices_that_do_not_exist():
    for arguments, said in (
            (("-I", "127.255.255.254", ADDRESS), "no device has the EID"),
            (("--serve", "127.255.255.254"), "no device of this host answers at that EID"),
            (("fd75:726d:6100::",), "is the EID of a window that is not a device here")):
        done = run(*arguments)
        assert done.returncode == 1 and said in done.stderr and "Fix:" in done.stderr, done
    environment = {**os.environ, "URMA_DEVICES": "nonsense"}
    done = run("--serve", env=environment)
    assert done.returncode == 1 and "URMA_DEVICES" in done.stderr, done


def test_names_that_cannot_be_written():
    with tempfile.TemporaryDirectory() as folder:
        open(f"{folder}/urma", "w", encoding="ascii").close()  # a directory is needed there
        process = start(PROGRAM, "--serve", ADDRESS,
                        env={**os.environ, "XDG_RUNTIME_DIR": folder})
        await_line(process, "answers at")
        code, _, said = end(process)
        assert code == 130 and said.count("pings are not answered: ") == 1 and "Fix:" in said, said


def test_from_another_host():
    """Two network namespaces with a cable; the names of one are not those of the other."""
    if os.geteuid() != 0 or not ip("netns", "list"):
        return print("(skipped: no namespaces)", end=" ")
    near, far = (f"urma-ping-{os.getpid()}-{end}" for end in "ab")
    try:
        if not (ip("netns", "add", near) and ip("netns", "add", far)):
            return print("(skipped: no namespaces)", end=" ")
        assert ip("-n", near, "link", "add", "cable", "type", "veth", "peer", "name", "cable",
                  "netns", far)
        for space, address in ((near, "10.97.0.1"), (far, "10.97.0.2")):
            assert ip("-n", space, "address", "add", address + "/24", "dev", "cable")
            assert ip("-n", space, "link", "set", "cable", "up")
            assert ip("-n", space, "link", "set", "lo", "up")
        environment = {key: value for key, value in os.environ.items() if key != "URMA_DEVICES"}
        with tempfile.TemporaryDirectory() as names:
            answers = start("ip", "netns", "exec", far, PROGRAM, "--serve", "10.97.0.2",
                            env={**environment, "XDG_RUNTIME_DIR": names})
            await_line(answers, "answers at")
            done = subprocess.run(["ip", "netns", "exec", near, PROGRAM, "-v", "-c", "3", "-i",
                                   "0.1", "10.97.0.2"], capture_output=True, text=True, timeout=60,
                                  env=environment)
            assert done.returncode == 0 and done.stdout.count("time=") == 3, done
            assert end(answers)[0] == 130
    finally:
        ip("netns", "delete", near)
        ip("netns", "delete", far)


try:
    run_tests(globals())
finally:
    NAMES.cleanup()
    if os.path.exists(WINDOW):
        os.unlink(WINDOW)
