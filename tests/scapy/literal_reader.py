# SPDX-License-Identifier: Apache-2.0
"""Does a reader that knows only the specification accept each packet that is sent?

UB 3.3 puts the IPv4 header into the ICRC and names the fields that are replaced by ones; the
identification is not among them. So a literal reader computes the ICRC over the ID as it arrived;
`ub.icrc` does. With `udp:...?ipid=0` it accepts each packet of both sides: small messages, a
conversation, and large writes. Without the option it does not, which shows that it would notice.

    literal_reader.py URMA_PERF

Runs in network namespaces of its own: over the loopback interface, and over a pair of virtual
Ethernet interfaces. Exit code 77 where none can be made.
"""

import os
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import ub
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

EVERYTHING = 3  # what is sent is shown to those only that read every protocol
IPV4 = b"\x08\0"
ETHERNET = 14
ENOUGH = 20_000  # packets of one run
SO_RCVBUFFORCE = 33
INSIDE = "URMA_LITERAL_READER_INSIDE"


class Reader(threading.Thread):
    """Reads the packets on an interface, and counts how many a literal reader would accept."""

    def __init__(self, interface):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERYTHING))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 256 << 20)
        self.socket.bind((interface, EVERYTHING))
        self.socket.settimeout(0.2)
        self.over = False
        self.packets = self.accepted = self.numbered = self.large = 0
        self.small_both_ways = set()
        self.first_rejected = None

    def run(self):
        while self.packets < ENOUGH:
            try:
                frame, _ = self.socket.recvfrom(1 << 17)
            except TimeoutError:
                if self.over:
                    return
                continue
            if frame[12:ETHERNET] == IPV4:
                self.look(frame[ETHERNET:])

    def look(self, packet):
        packet = packet[:int.from_bytes(packet[2:4], "big")]
        if packet[0] != 0x45 or packet[9] != socket.IPPROTO_UDP:
            return
        ports = int.from_bytes(packet[20:22], "big"), int.from_bytes(packet[22:24], "big")
        if ub.UB_PORT not in ports:
            return
        self.packets += 1
        self.large += len(packet) > 1000
        if len(packet) < 300:
            self.small_both_ways.add(packet[12:16])
        self.numbered += packet[4:6] != b"\0\0"
        assert packet[6:8] == b"\x40\0", "DF is set, and it is not a fragment"
        if ub.icrc(packet) == packet[-ub.ICRC_BYTES:]:
            self.accepted += 1
        elif self.first_rejected is None:
            self.first_rejected = packet[:60].hex()

    def finish(self):
        self.over = True
        self.join()
        self.socket.close()


def start_server(within, device):
    server = subprocess.Popen([*within, PROGRAM, "server", "--once", "--device", device],
                              stdout=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    assert line.startswith("urma_perf server at "), line
    return server


def measure(interface, within, addresses, option, test):
    """Runs one measurement, and returns what the interface carried meanwhile."""
    here, there = (f"udp:{address}{option}" for address in addresses)
    reader = Reader(interface)
    reader.start()
    server = start_server(within, there)
    done = subprocess.run([PROGRAM, *test, addresses[1], "--device", here], capture_output=True,
                          text=True, timeout=240)
    server.stdout.close()
    assert done.returncode == 0 and server.wait(30) == 0, done
    reader.finish()
    return reader


# Counts, not times: a busy machine may be slow, but a conversation takes its turns.
TESTS = (["send_lat", "--size", "64", "--count", "600"],
         ["write_imm_lat", "--size", "8", "--count", "300"],
         ["send_bw", "--size", "64", "--count", "3000"],
         ["write_bw", "--size", "1M", "--count", "30"])


def check(interface, within, addresses):
    for test in TESTS:
        literal = measure(interface, within, addresses, "?ipid=0", test)
        print(f"{interface}: {' '.join(test)}: {literal.accepted} of {literal.packets} accepted",
              flush=True)
        assert literal.packets > 100 and literal.numbered == 0, vars(literal)
        assert literal.accepted == literal.packets, literal.first_rejected
        large = test[0] == "write_bw"
        assert literal.large > 100 if large else len(literal.small_both_ways) == 2, vars(literal)
    # Without the option the reader rejects packets that the kernel numbers: those of a conversation
    # on a connected socket, and those that an interface segments by itself.
    usual = measure(interface, within, addresses, "", TESTS[0])
    print(f"{interface}: without the option: {usual.accepted} of {usual.packets} accepted, "
          f"{usual.numbered} have an ID", flush=True)
    assert usual.accepted + usual.numbered <= usual.packets, vars(usual)
    assert usual.accepted < usual.packets, vars(usual)


def run(*words):
    subprocess.run(words, check=True, timeout=20)


def inside():
    run("ip", "link", "set", "lo", "up")
    check("lo", [], ("127.0.0.1", "127.0.0.2"))
    other = subprocess.Popen(["unshare", "--net", "sleep", "600"])
    try:
        within = ["nsenter", "--net", "-t", str(other.pid)]
        ours = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{other.pid}/ns/net") == ours:
            assert other.poll() is None
            time.sleep(0.01)
        run("ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns",
            str(other.pid))
        run("ip", "addr", "add", "10.77.0.1/24", "dev", "cable")
        run("ip", "link", "set", "cable", "up")
        run(*within, "ip", "addr", "add", "10.77.0.2/24", "dev", "cable")
        run(*within, "ip", "link", "set", "cable", "up")
        check("cable", within, ("10.77.0.1", "10.77.0.2"))
    finally:
        other.kill()
        other.wait()


def main():
    if os.environ.get(INSIDE):
        return inside()
    words = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "-r", "--net"]
    try:
        made = subprocess.run([*words, "ip", "link", "set", "lo", "up"], capture_output=True)
    except FileNotFoundError as error:
        print(f"skipped: {error}")
        return 77
    if made.returncode != 0:
        print(f"skipped: no network namespace can be made: {made.stderr.decode()}")
        return 77
    sys.stdout.flush()
    return subprocess.run([*words, sys.executable, "-B", __file__, PROGRAM],
                          env={**os.environ, INSIDE: "1"}).returncode


if __name__ == "__main__":
    PROGRAM = sys.argv[1]
    sys.exit(main())
