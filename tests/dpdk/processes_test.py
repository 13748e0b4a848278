#!/usr/bin/env python3
"""Do two processes reach each other over each kind of virtual port, and do they survive each other?
processes_test.py PEER [KILLS]

PEER is dpdk_peer. Links through the kernel need root and are skipped without: they are pairs of
veth in namespaces of this test's own. KILLS is how often each side of a link is killed.
"""

import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time

PEER = sys.argv[1]
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
PATIENCE = 60
SERVER, CLIENT = "10.9.0.1", "10.9.0.2"


class Process:
    def __init__(self, words, before=()):
        # Each is in the autogroup of this test, so that they yield to each other.
        self.process = subprocess.Popen([*before, PEER, *words], stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.strip())
        self.lines.put("")

    def await_line(self, begin):
        """Returns the next line that begins so."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                line = self.lines.get(timeout=max(0.1, until - time.monotonic()))
            except queue.Empty:
                sys.exit(f"no \"{begin}\" within {PATIENCE} s from {self.process.args}")
            if line.startswith(begin):
                return line
            if not line or line.startswith("failed"):
                sys.exit(f"{self.process.args}: {line or 'ended'} ({self.process.poll()})")

    def forget(self):
        """Drops the lines that have come."""
        while not self.lines.empty():
            line = self.lines.get()
            if not line or line.startswith("failed"):
                sys.exit(f"{self.process.args}: {line or 'ended'} ({self.process.poll()})")

    def kill(self):
        self.process.kill()
        self.process.wait()


class Link:
    """The commands of both ends. The server is started first."""

    def __init__(self, name, server, client, before=((), ()), kills=(True, True)):
        self.name, self.before, self.kills = name, before, kills
        # Packets of each size leave from the application's memory, where the port can do that.
        options = "mtu=9000&gather=always"
        self.devices = (f"dpdk:{server}?ip={SERVER}/24&{options}",
                        f"dpdk:{client}?ip={CLIENT}/24&{options}")

    def start(self, end):
        words = ["serve"] if end == 0 else ["write", SERVER]
        process = Process([self.devices[end], *words], self.before[end])
        process.await_line("ready")
        return process

    def run(self, kills):
        begun = time.monotonic()
        ends = [self.start(0), self.start(1)]
        ends[1].await_line("reached")
        for end in (0, 1):
            for _ in range(kills if self.kills[end] else 0):
                ends[end].kill()
                ends[end] = self.start(end)
                if end == 0:
                    time.sleep(0.05)
                    ends[1].forget()
                ends[1].await_line("reached")
                if ends[1 - end].process.poll() is not None:
                    sys.exit(f"{self.name}: the survivor has ended")
        for end in (1, 0):
            ends[end].kill()
        print(f"{self.name}: {time.monotonic() - begun:.1f} s", flush=True)


def make_veth():
    """Returns the commands in front of those that run in the two namespaces, or None."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        return None
    names = [f"urma-{os.getpid()}-{end}" for end in "ab"]
    script = [f"netns add {name}" for name in names]
    script.append(f"link add va netns {names[0]} type veth peer name vb netns {names[1]}")
    for name, end in zip(names, ("va", "vb")):
        script.append(f"-n {name} link set {end} mtu 9000 up")
    for words in script:
        done = subprocess.run(["ip", *words.split()], stderr=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            remove_veth(names)
            return None
    return names


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
        server = Process([f"dpdk:net_af_packet0,iface=va?ip={address}/{prefix}&mtu=9000", "serve"],
                         before[0])
        server.await_line("ready")
        if shutil.which("ping"):
            done = in_namespace(names[1], f"ping -c 3 -i 0.2 -W 5 {address}")
            if " 0% packet loss" not in done.stdout:
                sys.exit(f"ping {address}: {done.stdout}")
        bracket = f"[{own}]" if nodad else own
        client = Process([f"udp:{bracket}", "write", f"[{address}]" if nodad else address],
                         before[1])
        client.await_line("reached")
        client.kill()
        server.kill()
        print(f"af_packet and the kernel at {own}: {time.monotonic() - begun:.1f} s", flush=True)


def remove_veth(names):
    for name in names:
        subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        socket = pathlib.Path(folder) / "socket"
        # When one end of net_memif dies, DPDK may crash the other (docs/dpdk.md).
        Link("memif", f"net_memif0,role=server,socket={socket}",
             f"net_memif0,role=client,socket={socket}", kills=(False, False)).run(0)
        vhost = Link("vhost", f"net_vhost0,iface={socket}2", f"net_virtio_user0,path={socket}2")
        vhost.run(KILLS)
        names = make_veth()
        if names is None:
            print("skipped: af_packet, another user: only root may make namespaces")
            return
        try:
            before = tuple(("nsenter", f"--net=/run/netns/{name}") for name in names)
            Link("af_packet", "net_af_packet0,iface=va", "net_af_packet0,iface=vb",
                 before).run(KILLS)
            check_kernel(names, before)
        finally:
            remove_veth(names)
        unprivileged = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        Link("vhost without root", f"net_vhost0,iface={socket}3",
             f"net_virtio_user0,path={socket}3", (unprivileged, unprivileged)).run(1)


main()
