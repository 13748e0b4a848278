# SPDX-License-Identifier: Apache-2.0
"""urma_perf between two network namespaces with four cables: a cable is pulled and put back while
urma_perf writes and verifies, and the process at either end is killed and started again. Skipped if
no namespaces can be made."""

import json
import os
import pty
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

from running import finish, ip, kill, start

PROGRAM = sys.argv[1]
MOVING = sys.argv[2]
CABLES = 4
WORK_LASTS = 2000  # milliseconds: operation_timeout


class Machines:
    """Makes two namespaces, and a cable between them for each path."""

    def __init__(self):
        self.names = [f"urmap{os.getpid()}{side}" for side in "ab"]

    def __enter__(self):
        here, there = self.names
        made = ip("netns", "add", here) and ip("netns", "add", there)
        for n in range(CABLES):
            made = made and ip("link", "add", f"c{n}", "netns", here, "type", "veth", "peer",
                               f"c{n}", "netns", there)
            for side, name in enumerate(self.names):
                made = made and ip("-n", name, "addr", "add", f"10.98.{n}.{side + 1}/24", "dev",
                                   f"c{n}")
                made = made and ip("-n", name, "link", "set", f"c{n}", "up")
        self.made = made
        return self

    def __exit__(self, *_):
        for name in self.names:
            ip("netns", "delete", name)

    def command(self, side, *arguments):
        return ["ip", "netns", "exec", self.names[side], PROGRAM, *arguments]

    def device(self, side, options=""):
        return f"paths({options}):" + "+".join(f"udp:10.98.{n}.{side + 1}" for n in range(CABLES))

    def pull(self, n, out=True):
        assert ip("-n", self.names[1], "link", "set", f"c{n}", "down" if out else "up")

    def take_address(self, side, n, away=True):
        """Removes the address of a port in use. The port keeps its socket."""
        assert ip("-n", self.names[side], "addr", "del" if away else "add",
                  f"10.98.{n}.{side + 1}/24", "dev", f"c{n}")

    def start_server(self):
        server = subprocess.Popen(self.command(1, "server", "--device", self.device(1)),
                                  stdout=subprocess.PIPE, text=True)
        while "10.98.0.2" not in server.stdout.readline():
            assert server.poll() is None
        return server


def write(machines, options, seconds, during):
    """Runs a measurement, and calls `meanwhile`. Returns the JSON of the measurement."""
    client = start(
        *machines.command(0, "write_bw", "10.98.0.2", "--size", "64K", "--depth", "16", "--seconds",
                          str(seconds), "--device", machines.device(0, options), "--json"))
    during()
    code, out, err = finish(client)
    assert code == 0, (code, out, err)
    (result,) = json.loads(out)["results"]
    assert result["wrong"] == 0
    return result


def test_a_cable_is_pulled_and_put_back(machines):
    for options in ("balance=slice", "balance=packet"):
        def during():
            time.sleep(0.8)
            machines.pull(2)
            time.sleep(0.6)
            machines.pull(2, out=False)
        usual, slowest = [], []
        for _ in range(3):
            result = write(machines, options, 2.4, during)
            slowest.append(result["max_us"] / 1000)
            counters = result["counters"]
            assert counters["client_channels_lost"] == 0 and counters["client_unknown"] == 0
            assert counters["client_paths_lost"] >= 1 and counters["client_paths_back"] >= 1
            assert slowest[-1] < WORK_LASTS
            # On an otherwise idle machine each write takes less than 100 ms. Other processes may
            # delay one, as they do with all cables in, so the bound is tried up to three times.
            if slowest[-1] < 100:
                break
            usual.append(write(machines, options, 1, lambda: None)["max_us"] / 1000)
            if slowest[-1] < 100 + 2 * usual[-1]:
                break
        rate = result["bytes_per_second"] / 1e9
        print(f"R6 {options}: the slowest write took {statistics.median(slowest):.1f} ms, at best "
              f"{min(slowest):.1f} (with all cables in {usual}); {rate:.2f} GB/s")
        assert min(slowest) < 100 + 2 * max(usual, default=0)


def test_a_port_loses_its_address_and_gets_it_back(machines):
    for side in (0, 1):
        def during():
            time.sleep(0.7)
            machines.take_address(side, 3)
            time.sleep(0.7)
            machines.take_address(side, 3, away=False)
        result = write(machines, "", 2.5, during)
        counters = result["counters"]
        assert counters["client_channels_lost"] == 0, counters
        for what in ("paths_lost", "paths_back"):
            assert counters["client_" + what] + counters["server_" + what] >= 1, counters
        assert len(result["paths"]) == CABLES
        assert result["paths"][3]["usable"] and result["paths"][3]["share"] > 0.05, result["paths"]
        assert all(path["rtt_us"] > 0 for path in result["paths"])


def many_works(machines, seconds):
    """Starts a client with 1000 writes in flight."""
    return start(
        *machines.command(0, "write_bw", "10.98.0.2", "--size", "4K", "--depth", "1000",
                          "--seconds", str(seconds), "--device", machines.device(0), "--json"))


def test_r7_a_peer_is_stopped_for_less_than_the_verdict(machines, server):
    client = many_works(machines, 2.5)
    time.sleep(1)
    children = pids_below(server.pid)
    signal_all(children, signal.SIGSTOP)
    time.sleep(0.8)
    signal_all(children, signal.SIGCONT)
    code, out, err = finish(client)
    assert code == 0, (code, out, err)
    (result,) = json.loads(out)["results"]
    assert result["wrong"] == 0 and result["counters"]["client_channels_lost"] == 0
    assert result["counters"]["client_unknown"] == 0


def test_r7_a_peer_is_stopped_for_5_s(machines, server):
    client = many_works(machines, 30)
    time.sleep(1)
    children = pids_below(server.pid)
    signal_all(children, signal.SIGSTOP)
    began = time.monotonic()
    out, err = client.communicate(timeout=60)
    took = time.monotonic() - began
    print(f"R7: the works to a stopped peer ended {took:.1f} s after it was stopped")
    # The client ends although its peer is still stopped: its works end after 2 s.
    assert client.returncode == 5 and "Fix: " in err, (client.returncode, out, err)
    time.sleep(max(0, 5 - took))
    signal_all(children, signal.SIGCONT)
    write(machines, "", 1, lambda: None)


def test_r8_a_peer_restarts_at_its_address(machines, server):
    """Each time, packets for the last incarnation are still on their way to the new one."""
    for life in range(2):
        client = many_works(machines, 30)
        time.sleep(0.7)
        kill(server)
        server = machines.start_server()
        write(machines, "", 0.5, lambda: None)
        code, out, err = finish(client)
        assert code == 5 and "Fix: " in err, (life, code, out, err)
    return server


def pids_below(pid):
    """Returns the id of the program: `ip netns exec` becomes it, or is its parent."""
    found = [pid]
    for one in found:
        with open(f"/proc/{one}/task/{one}/children", encoding="ascii") as children:
            found += [int(child) for child in children.read().split()]
    return found


def signal_all(pids, number):
    for pid in pids:
        os.kill(pid, number)


def test_the_cable_of_the_set_up_is_pulled(machines):
    def during():
        time.sleep(1)
        machines.pull(0)
    try:
        result = write(machines, "", 2, during)
        assert result["counters"]["client_channels_lost"] == 0
    finally:
        machines.pull(0, out=False)


def test_the_live_line_says_so(machines):
    ours, theirs = pty.openpty()
    client = subprocess.Popen(
        machines.command(0, "write_bw", "10.98.0.2", "--seconds", "3", "--device",
                         machines.device(0)), stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = bytearray()

    def listen():
        while select.select([ours], [], [], 20)[0]:
            try:
                shown.extend(os.read(ours, 4096))
            except OSError:
                return
    listener = threading.Thread(target=listen)
    listener.start()
    time.sleep(1)
    machines.pull(1)
    time.sleep(1.6)
    machines.pull(1, out=False)
    client.communicate(timeout=30)
    listener.join()
    os.close(ours)
    assert client.returncode == 0
    assert re.search(r"msg/s, .* GB/s, 1 path lost", shown.decode()), shown.decode()


def test_a_server_is_killed_and_started_again(machines, server):
    client = start(
        *machines.command(0, "write_bw", "10.98.0.2", "--seconds", "30", "--device",
                          machines.device(0)))
    time.sleep(1)
    kill(server)
    again = machines.start_server()
    code, out, err = finish(client)
    assert code == 5 and "Fix: " in err, (code, out, err)
    write(machines, "", 1, lambda: None)
    return again


class Moving:
    """One end of a flow whose paths are added and removed (moving.cc)."""

    def __init__(self, machines, side, *peer):
        device = "paths():" + "+".join(f"udp:10.98.{n}.{side + 1}" for n in range(2))
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", machines.names[side], MOVING, device, *peer],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def paths(self):
        """For each local address of a path: the other end, whether it works, the packets sent."""
        out = {}
        for path in filter(None, self.say("paths").split(";")):
            one, other, state, sent = path.split()
            out[one] = (other, state, int(sent))
        return out

    def wait_for(self, place, other):
        """Waits until the path to the other place works. Returns how long that took.

        Before this end knows that place, its path may lead to another one, and work.
        """
        began = time.monotonic()
        while True:
            path = self.paths().get(place)
            if path and path[:2] == (other, "usable") and path[2] > 0:
                return time.monotonic() - began
            assert time.monotonic() - began < 60, self.paths()


def is_free(machines, side, address):
    """Returns whether another process could bind this address now."""
    code = f"import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind({address!r})"
    return subprocess.run(["ip", "netns", "exec", machines.names[side], sys.executable, "-c", code],
                          capture_output=True).returncode == 0


def test_paths_are_added_and_removed_while_data_flows(machines):
    there = Moving(machines, 1)
    here = Moving(machines, 0, there.process.stdout.readline().strip())
    try:
        for side, end in enumerate((here, there)):
            assert end.say(f"add udp:10.98.2.{side + 1}") == f"10.98.2.{side + 1}:4792"
        took = here.wait_for("10.98.2.1:4792", "10.98.2.2:4792")
        assert not is_free(machines, 0, ("10.98.0.1", 4792))
        began = time.monotonic()
        assert here.say("remove 10.98.0.1:4792") == "removed"
        removing = time.monotonic() - began
        assert is_free(machines, 0, ("10.98.0.1", 4792))
        assert "10.98.0.1:4792" not in here.paths()
        assert there.say("remove 10.98.1.2:4792") == "removed"
        # The remaining path was added later, and carries all packets.
        (before,) = here.paths().values()
        time.sleep(0.3)
        (after,) = here.paths().values()
        assert after[0] == "10.98.2.2:4792" and after[2] > before[2], (before, after)
        assert "last path" in (here.say("remove 10.98.2.1:4792") + here.say("remove 10.98.1.1:4792")
                               + here.say("remove 10.98.2.1:4792"))
        assert "Fix: " in here.say("add udp:10.77.0.1")
        posted, failed = map(int, here.say("end").split())
        time.sleep(0.2)
        arrived, again = map(int, there.say("end").split())
        assert failed == 0 and again == 0 and posted == arrived > 1000, (posted, arrived, again)
        print(f"an added path worked after {took * 1000:.0f} ms; one was removed within "
              f"{removing * 1000:.0f} ms; {arrived} messages arrived once each")
    finally:
        for end in (here, there):
            kill(end.process)
            end.process.stdin.close()


def test_two_ports_at_one_address_are_two_paths():
    """Switches that balance flows distinguish these paths by their UDP ports."""
    server = subprocess.Popen(
        [PROGRAM, "server", "--device", "paths():udp:127.0.0.77+udp:127.0.0.77"],
        stdout=subprocess.PIPE, text=True)
    try:
        while "127.0.0.77" not in server.stdout.readline():
            assert server.poll() is None
        for balance in ("slice", "packet"):
            device = f"paths(balance={balance}):udp:127.0.0.78+udp:127.0.0.78"
            out = subprocess.run([PROGRAM, "write_bw", "127.0.0.77", "--size", "64K", "--depth",
                                  "16", "--seconds", "0.5", "--json", "--device", device],
                                 capture_output=True, text=True, timeout=60)
            assert out.returncode == 0, out.stderr
            (result,) = json.loads(out.stdout)["results"]
            assert result["wrong"] == 0
            one, other = result["paths"]
            assert all(path["from"].startswith("127.0.0.78") for path in (one, other))
            assert one["from"] != other["from"] and one["to"] != other["to"]
            assert 0.3 < one["share"] < 0.7, result["paths"]
            assert one["rtt_us"] > 0 and other["rtt_us"] > 0
    finally:
        kill(server)


def main():
    test_two_ports_at_one_address_are_two_paths()
    if not shutil.which("ip"):
        return print("(skipped: there is no ip program)")
    with Machines() as machines:
        if not machines.made:
            return print("(skipped: no network namespaces with cables can be made)")
        test_paths_are_added_and_removed_while_data_flows(machines)
        server = machines.start_server()
        try:
            test_a_cable_is_pulled_and_put_back(machines)
            test_a_port_loses_its_address_and_gets_it_back(machines)
            test_the_cable_of_the_set_up_is_pulled(machines)
            test_the_live_line_says_so(machines)
            test_r7_a_peer_is_stopped_for_less_than_the_verdict(machines, server)
            test_r7_a_peer_is_stopped_for_5_s(machines, server)
            server = test_a_server_is_killed_and_started_again(machines, server)
            server = test_r8_a_peer_restarts_at_its_address(machines, server)
        finally:
            kill(server)


if __name__ == "__main__":
    main()
