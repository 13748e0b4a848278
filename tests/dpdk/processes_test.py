#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do two processes reach each other over each kind of virtual port, and do they survive each other?
processes_test.py PEER sockets|kernel [KILLS]

PEER is driver_peer. "sockets" are memif, and vhost with virtio_user. "kernel" is af_packet, and
af_xdp, on a pair of veth between namespaces of this test's own; without root it is skipped (77).
KILLS is how often each side is killed; if it is given, nothing else is tested.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "apps"), str(TESTS / "drivers")]
from ordinary_user import ordinary_user
from peers import Process, disturbed
from running import skip

PEER, MEDIUM = sys.argv[1:3]
ONLY_KILLS = len(sys.argv) > 3
KILLS = int(sys.argv[3]) if ONLY_KILLS else 5
SERVER, CLIENT = "10.9.0.1", "10.9.0.2"


class Link:
    """The commands of both ends. The server is started first."""

    def __init__(self, name, server, client, before=((), ()), kills=(True, True), mtu=9000,
                 released_late=False):
        self.name, self.before, self.kills = name, before, kills
        self.released_late = released_late
        # Packets of each size leave from the application's memory, where the port can do that.
        options = f"mtu={mtu}&gather=always"
        self.devices = (f"dpdk:{server}?ip={SERVER}/24&{options}",
                        f"dpdk:{client}?ip={CLIENT}/24&{options}")

    def process(self, end, *words):
        return Process(*self.before[end], PEER, self.devices[end], *words)

    def start(self, end):
        words = ["serve"] if end == 0 else ["write", SERVER]
        until = time.monotonic() + (10 if self.released_late else 0)
        while True:
            process = self.process(end, *words)
            try:
                process.await_line("ready")
                return process
            except SystemExit:
                process.kill()
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def count_sleeps(self):
        """Returns how often the threads of two processes that do nothing wake within 2 s."""
        ends = []
        for end in (0, 1):
            ends.append(self.process(end, "rest"))
            ends[end].await_line("ready")
        time.sleep(0.5)  # they poll before they sleep
        before = sum(end.sleeps() for end in ends)
        time.sleep(2)
        sleeps = sum(end.sleeps() for end in ends) - before
        for end in (1, 0):
            ends[end].kill()
        return sleeps

    def run(self, kills, disturb=lambda: None):
        """Kills each end so many times. `disturb` does something to the link after that, which
        both survive."""
        begun = time.monotonic()
        disturbed(self.start, [kills if each else 0 for each in self.kills], disturb)
        killed = kills * sum(self.kills)
        print(f"{self.name}: {killed} killed, {time.monotonic() - begun:.1f} s", flush=True)


def make_veth():
    """Returns the names of two namespaces, each with one end of a pair of veth."""
    if os.geteuid() != 0:
        skip("af_packet: only root may make network namespaces")
    if not shutil.which("ip"):
        skip("af_packet: the program ip is not installed (iproute2)")
    names = [f"urma-{os.getpid()}-{end}" for end in "ab"]
    script = [f"netns add {name}" for name in names]
    script.append(f"link add va netns {names[0]} type veth peer name vb netns {names[1]}")
    for name, end in zip(names, ("va", "vb")):
        script.append(f"-n {name} link set {end} mtu 9000 up")
    for words in script:
        done = subprocess.run(["ip", *words.split()], stderr=subprocess.PIPE, text=True,
                              check=False)
        if done.returncode != 0:
            remove_veth(names)
            skip(f"af_packet: ip {words}: {done.stderr.strip()}")
    return names


def cut_link(names):
    """Takes each end of the link down for a while."""
    for name, end in zip(names, ("va", "vb")):
        for state in ("down", "up"):
            subprocess.run(["ip", "-n", name, "link", "set", end, state], check=True)
            time.sleep(0.7)


def in_namespace(name, command):
    return subprocess.run(["ip", "netns", "exec", name, *command.split()], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def check_kernel(names, before):
    """The kernel of the other namespace is a neighbour like any other: it pings the device, and a
    udp: device there writes to it."""
    for address, own, prefix in (("10.9.0.1", "10.9.0.9", 24), ("fd00::1", "fd00::9", 64)):
        begun = time.monotonic()
        nodad = " nodad" if ":" in own else ""
        # Between interfaces of one host the kernel leaves checksums to a NIC that is not there.
        for command in (f"ip addr add {own}/{prefix} dev vb{nodad}", "ethtool -K vb tx off"):
            done = in_namespace(names[1], command)
            if done.returncode != 0:
                sys.exit(f"{command}: {done.stdout}")
        device = f"dpdk:net_af_packet0,iface=va?ip={address}/{prefix}&mtu=9000"
        server = Process(*before[0], PEER, device, "serve")
        server.await_line("ready")
        if shutil.which("ping"):
            for size in (56, 9000 - (48 if nodad else 28)):
                done = in_namespace(names[1], f"ping -c 3 -i 0.2 -W 5 -M do -s {size} {address}")
                if " 0% packet loss" not in done.stdout:
                    sys.exit(f"ping -s {size} {address}: {done.stdout}")
        bracket = f"[{own}]" if nodad else own
        client = Process(*before[1], PEER, f"udp:{bracket}", "write",
                         f"[{address}]" if nodad else address)
        client.await_line("reached")
        client.kill()
        server.kill()
        print(f"af_packet and the kernel at {own}: {time.monotonic() - begun:.1f} s", flush=True)


def remove_veth(names):
    for name in names:
        subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


def run_af_xdp(names, before):
    """XDP needs a smaller MTU of the interfaces. On a busy machine the queue of a
    killed process was once not free when its successor asked for it."""
    for name, end in zip(names, ("va", "vb")):
        in_namespace(name, f"ip link set {end} mtu 1500")
    Link("af_xdp", "net_af_xdp0,iface=va", "net_af_xdp0,iface=vb", before, mtu=1500,
         released_late=True).run(KILLS)


def compare_sleeps(polled, signalled):
    """Idle processes wake far less often over a link that signals packets."""
    counts = [link.count_sleeps() for link in (polled, signalled)]
    print(f"idle: {counts[0]} wake-ups over {polled.name}, {counts[1]} over {signalled.name}",
          flush=True)
    if counts[1] * 10 > counts[0]:
        sys.exit("threads that wait for a signal wake as often as those that poll")


def test_sockets(folder):
    socket = folder / "socket"
    # When one end of net_memif dies, DPDK may crash the other (docs/dpdk.md).
    memif = Link("memif", f"net_memif0,role=server,socket={socket}",
                 f"net_memif0,role=client,socket={socket}", kills=(False, False))
    vhost = Link("vhost", f"net_vhost0,iface={socket}2", f"net_virtio_user0,path={socket}2")
    if not ONLY_KILLS:
        memif.run(0)
        compare_sleeps(memif, vhost)
    vhost.run(KILLS)
    user = None if ONLY_KILLS else ordinary_user(folder, PEER)
    if user is None:
        return
    home, before = user
    Link("vhost without root", f"net_vhost0,iface={home}/socket",
         f"net_virtio_user0,path={home}/socket", (before, before)).run(1)


def test_kernel(_folder):
    names = make_veth()
    try:
        before = tuple(("nsenter", f"--net=/run/netns/{name}") for name in names)
        link = Link("af_packet", "net_af_packet0,iface=va", "net_af_packet0,iface=vb", before)
        link.run(KILLS, lambda: None if ONLY_KILLS else cut_link(names))
        if not ONLY_KILLS:
            check_kernel(names, before)
            run_af_xdp(names, before)
    finally:
        remove_veth(names)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.environ["XDG_RUNTIME_DIR"] = name  # other tests publish the same names
        os.chmod(folder, 0o711)
        {"sockets": test_sockets, "kernel": test_kernel}[MEDIUM](folder)


main()
