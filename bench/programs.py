# SPDX-License-Identifier: Apache-2.0
"""The programs that are compared: how each is started, and its figures in common units.

Figures are a dict: us (of one message), per_second (messages), bytes_per_second; of liburma also
limit_us, or limit_per_second and limit_bytes_per_second, times_limit, limit_pattern. Runner.measure
adds seconds, wait_percent and the command.
"""

import ctypes
import dataclasses
import fcntl
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

CURE = "apt-get install ucx-utils libfabric-bin"
CURES = {"dpdk-testpmd": "apt-get install dpdk-dev",  # of programs that CURE does not install
         **dict.fromkeys(("ib_send_lat", "ib_write_bw"), "apt-get install perftest")}
SERVER_CPU, CLIENT_CPU = 0, 1  # indices of those that this process may use, as urma_perf --self

_libc = ctypes.CDLL(None, use_errno=True)


class Failed(Exception):
    """A program did not measure; the text says which program and why."""


# ---- the measurements


@dataclasses.dataclass(frozen=True)
class Urma:
    """A test of urma_perf and its options."""

    test: str
    program = "urma_perf"

    def command(self, path, size, seconds):
        return [path, "--self", *self.test.split(), "--size", str(size), "--seconds", str(seconds),
                "--rounds", "1", "--limit", "--json"]


@dataclasses.dataclass(frozen=True)
class Ucx:
    """A test of ucx_perftest: of UCT with a transport and a layout, else of UCP over `tls`."""

    test: str
    transport: str = ""
    layout: str = ""
    tls: str = "sm"
    program = "ucx_perftest"

    def name(self):
        if self.transport:
            return "UCX uct %s %s %s" % (self.transport, self.test, self.layout)
        return "UCX ucp %s %s" % (self.tls, self.test)

    def environment(self):
        return {} if self.transport else {"UCX_TLS": self.tls}

    def commands(self, size, count, port):
        device = {"posix": "memory", "cma": "memory"}.get(self.transport)
        uct = ["-x", self.transport, "-d", device, "-D", self.layout] if self.transport else []
        server = [self.program, "-p", str(port)]
        return server, server + ["127.0.0.1", "-v", "-t", self.test, *uct, "-s", str(size), "-n",
                                 str(count)]

    def figures(self, output, size):
        """The last line of its CSV: a run of more than a second prints one for each second."""
        lines = [line.split("]")[-1].strip() for line in output.splitlines()]
        names = next((line.split(",") for line in lines if line.startswith("iterations,")), [])
        rows = [line.split(",") for line in lines if re.fullmatch(r"[\d.,]+", line)]
        rows = [dict(zip(names, map(float, row))) for row in rows if len(row) == len(names)]
        if not rows or not {"50.0_percentile_lat", "overall_bw", "overall_mr"} <= rows[-1].keys():
            raise Failed("%s printed no figures: %s" % (self.name(), last_words(output)))
        # Latencies are one-way already, and "MB" means MiB.
        return {"us": rows[-1]["50.0_percentile_lat"], "per_second": rows[-1]["overall_mr"],
                "bytes_per_second": rows[-1]["overall_bw"] * (1 << 20)}


@dataclasses.dataclass(frozen=True)
class Pingpong:
    """fi_pingpong over a provider of libfabric. libfabric has no other test."""

    provider: str = "shm"
    endpoint: str = "rdm"
    program = "fi_pingpong"

    def name(self):
        return "libfabric %s fi_pingpong" % self.provider

    def environment(self):
        return {}

    def commands(self, size, count, port):
        both = [self.program, "-p", self.provider, "-e", self.endpoint, "-I", str(count), "-S",
                str(size)]
        return both + ["-B", str(port)], both + ["-P", str(port), "127.0.0.1"]

    def figures(self, output, size):
        """bytes, #sent, #ack, total, time, MB/sec, usec/xfer, Mxfers/sec: 10^6 bytes; one way."""
        rows = [line.split() for line in output.splitlines()]
        rows = [row for row in rows if len(row) == 8 and re.fullmatch(r"[\d.]+", row[5])]
        if not rows or float(rows[-1][5]) <= 0:
            raise Failed("%s printed no figures: %s" % (self.name(), last_words(output)))
        # For small messages two digits of usec/xfer are too few; those of MB/sec suffice.
        rate = float(rows[-1][5]) * 1e6
        return {"us": size / rate * 1e6, "per_second": rate / size, "bytes_per_second": rate}


ADAPTERS = "/sys/class/infiniband"


def adapter_port():
    """The first RDMA adapter whose first port is active, and the number of its GID: the first one
    of RoCE v2 with an IPv4 address, as that of a device, else 0."""
    for name in sorted(os.listdir(ADAPTERS)) if os.path.isdir(ADAPTERS) else ():
        port = os.path.join(ADAPTERS, name, "ports/1")
        if "ACTIVE" not in first_line(port + "/state"):
            continue
        mapped = "0000:0000:0000:0000:0000:ffff:"
        numbers = sorted(os.listdir(port + "/gids"), key=int)
        routed = [number for number in numbers
                  if first_line("%s/gids/%s" % (port, number)).startswith(mapped)
                  and first_line("%s/gid_attrs/types/%s" % (port, number)) == "RoCE v2"]
        return name, (routed or ["0"])[0]
    raise Failed("no RDMA adapter of this machine has an active port. Fix: docs/verbs.md makes a "
                 "software one")


@dataclasses.dataclass(frozen=True)
class Perftest:
    """A program of perftest and its options, between two processes on one adapter."""

    program: str
    options: str = ""

    def name(self):
        return " ".join(filter(None, (self.program, self.options)))

    def environment(self):
        return {}

    def commands(self, size, count, port):
        adapter, gid = adapter_port()
        units = ["--report_gbits"] if self.program.endswith("bw") else []
        server = [self.program, *self.options.split(), "-d", adapter, "-x", gid, "-F", "-s",
                  str(size), "-n", str(count), "-p", str(port), *units]
        return server, server + ["127.0.0.1"]

    def figures(self, output, size):
        """A latency is printed as bytes, iterations, least, most and typical us one way, ...; a
        rate as bytes, iterations, peak and average Gb/s, 10^6 messages in a second."""
        rows = [line.split() for line in output.splitlines()]
        column = 3 if self.program.endswith("bw") else 4
        printed = [row[column] for row in rows if len(row) >= 5 and row[0] == str(size)
                   and re.fullmatch(r"[\d.]+", row[column])]
        if not printed or float(printed[-1]) <= 0:
            raise Failed("%s printed no figures: %s" % (self.name(), last_words(output)))
        if self.program.endswith("bw"):
            rate = float(printed[-1]) * 1e9 / 8
            return {"us": size / rate * 1e6, "per_second": rate / size, "bytes_per_second": rate}
        us = float(printed[-1])
        return {"us": us, "per_second": 1e6 / us, "bytes_per_second": size / us * 1e6}


@dataclasses.dataclass(frozen=True)
class Ports:
    """Two ports of DPDK that are each other's peers; they meet at a socket, whose path is %s."""

    name: str
    server: str
    client: str


VHOST = Ports("vhost", "net_vhost0,iface=%s", "net_virtio_user0,path=%s,queue_size=1024")
MEMIF = Ports("memif", "net_memif0,role=server,socket=%s,socket-abstract=no",
              "net_memif0,role=client,socket=%s,socket-abstract=no")


@dataclasses.dataclass(frozen=True)
class UrmaPorts:
    """A test of urma_perf and its options, between two processes over ports of DPDK."""

    test: str
    ports: Ports
    mtu: int = 1500
    program = "urma_perf"

    def name(self):
        return "urma_perf over %s" % self.ports.name

    def commands(self, path, socket_path, size, seconds):
        def device(port, number):
            return ["--device", "dpdk:%s?ip=10.9.0.%d/24&mtu=%d"
                    % (port % socket_path, number, self.mtu)]
        return ([path, "server", *device(self.ports.server, 1)],
                [path, *self.test.split(), "10.9.0.1", *device(self.ports.client, 2), "--size",
                 str(size), "--seconds", str(seconds), "--rounds", "1", "--limit", "--json"])


@dataclasses.dataclass(frozen=True)
class Testpmd:
    """dpdk-testpmd: one process sends frames of one length as fast as it can, another one counts
    those that arrive, in each second."""

    ports: Ports
    frame_bytes: int
    program = "dpdk-testpmd"
    intervals = 2  # whole ones

    def name(self):
        return "testpmd, frames of %d B" % self.frame_bytes

    def commands(self, socket_path, server_cpu, client_cpu):
        def command(processor, port, *options):
            return [self.program, "--lcores=0@%d,1@%d" % (processor, processor), "--no-pci",
                    "--no-telemetry", "--no-shconf", "--no-huge", "-m", "256", "--iova-mode=va",
                    "--vdev", port % socket_path, "--", "--auto-start",
                    "--total-num-mbufs=16384", "--stats-period", "1", *options]
        return (command(server_cpu, self.ports.server, "--forward-mode=rxonly"),
                command(client_cpu, self.ports.client, "--forward-mode=txonly",
                        "--txpkts=%d" % self.frame_bytes))

    def rates(self, output):
        """Those of whole intervals: in the first one that has packets, the sender began."""
        rates = [int(rate) for rate in re.findall(r"Rx-pps:\s+(\d+)", output)]
        return [rate for rate in rates if rate > 0][1:]

    def figures(self, output, size):
        rates = sorted(self.rates(output))
        if len(rates) < self.intervals:
            raise Failed("%s printed no figures: %s" % (self.name(), last_words(output)))
        rate = sum(rates) / len(rates)
        return {"us": 1e6 / rate, "per_second": rate, "bytes_per_second": rate * size}


def urma_figures(output):
    """The figures of the one result in the JSON of urma_perf."""
    try:
        whole = json.loads(output)
    except ValueError:
        raise Failed("urma_perf printed no JSON: %s" % last_words(output)) from None
    if whole.get("schema") != "urma_perf/1" or len(whole.get("results", [])) != 1:
        raise Failed("the JSON of urma_perf has another schema. Fix: build urma_perf in this tree")
    result = whole["results"][0]
    if result["wrong"]:
        raise Failed("urma_perf: %d messages with WRONG bytes: %s"
                     % (result["wrong"], result.get("first_wrong")))
    figures = {"us": result["p50_us"], "per_second": result["messages_per_second"],
               "bytes_per_second": result["bytes_per_second"],
               "wait_percent": result["run_queue_wait_percent"]}
    for name in ("times_limit", "limit_pattern"):
        figures[name] = result[name]
    size, limit = result["size_bytes"], result["limit"]
    if result["limit_unit"] == "us":
        return {**figures, "limit_us": limit}
    rate = limit if result["limit_unit"] == "messages_per_second" else limit / size
    return {**figures, "limit_per_second": rate, "limit_bytes_per_second": rate * size}


def first_line(path, otherwise="unknown"):
    try:
        with open(path) as file:
            return file.readline().strip()
    except OSError:
        return otherwise


def last_words(output):
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return "; ".join(lines[-2:]) if lines else "(nothing)"


# ---- running them


class Process:
    """A child process on one processor. It ends with this object or with this program."""

    living = []
    ends_us = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self, command, processor, environment):
        # A file instead of a pipe: a pipe that is not read would block the child.
        self.output_file = tempfile.TemporaryFile()

        def bind():
            _libc.prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
            os.setpgid(0, 0)  # Ctrl-C comes from us, once
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self.ends_us)
            if processor is not None:
                os.sched_setaffinity(0, {processor})

        # Signals are blocked between the start of the process and the moment at which this program
        # has recorded it.
        signal.pthread_sigmask(signal.SIG_BLOCK, self.ends_us)
        self.begin = time.monotonic()
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.output_file,
                                      stderr=subprocess.STDOUT, preexec_fn=bind,
                                      env={**os.environ, **environment})
        self.descriptor = os.pidfd_open(self.child.pid)
        self.wait_percent = 0.0
        self.living.append(self)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self.ends_us)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        # First it is asked to end: urma_perf then ends its server, and libfabric removes its files
        # in /dev/shm.
        for number, patience in ((signal.SIGINT, 2), (signal.SIGTERM, 1), (signal.SIGKILL, 10)):
            if self.child.poll() is None:
                self.child.send_signal(number)
                select.select([self.descriptor], [], [], patience)
        self.child.wait()
        os.close(self.descriptor)
        self.output_file.close()
        self.living.remove(self)

    def wait(self, patience):
        """Returns its exit status, or None if it still runs. Sleeps: both processors are in use."""
        if self.child.returncode is None:
            if not select.select([self.descriptor], [], [], max(patience, 0))[0]:
                return None
            self.note_wait()  # it is not reaped, so its file can still be read
        return self.child.wait()

    def note_wait(self):
        """How long it has waited for a processor."""
        took = time.monotonic() - self.begin
        with open("/proc/%d/schedstat" % self.child.pid) as file:
            self.wait_percent = 100 * int(file.read().split()[1]) / 1e9 / took

    def output(self):
        self.output_file.seek(0)
        return self.output_file.read().decode(errors="replace")


class Runner:
    def __init__(self, urma_perf, patience):
        self.urma_perf = urma_perf
        self.patience = patience
        self.counts = {}  # of messages, for each (peer, size): they take no time, only a number
        processors = sorted(os.sched_getaffinity(0))
        if len(processors) < 2:
            raise Failed("two processors are needed, %d may be used. Fix: taskset, another machine"
                         % len(processors))
        self.server_cpu, self.client_cpu = processors[SERVER_CPU], processors[CLIENT_CPU]

    def has(self, work):
        ours = isinstance(work, (Urma, UrmaPorts))
        return shutil.which(self.urma_perf if ours else work.program) is not None

    def measure(self, work, size, seconds):
        """Returns the figures of one run of about `seconds`."""
        if isinstance(work, Urma):
            return self._urma(work, size, seconds)
        if isinstance(work, (UrmaPorts, Testpmd)):
            with tempfile.TemporaryDirectory() as folder:
                return self._over_ports(work, os.path.join(folder, "s"), size, seconds)
        if (work, size) not in self.counts:
            self.counts[work, size] = max(20, min(20000, (64 << 20) // size))
            self._pair(work, size, seconds / 4)
        return self._pair(work, size, seconds)

    def _urma(self, work, size, seconds):
        command = work.command(self.urma_perf, size, seconds)
        with Process(command, None, {}) as process:
            status = process.wait(self.patience + 10 * seconds)
            if status != 0:
                raise Failed("%s: %s: %s" % (" ".join(command), how_it_ended(status),
                                             last_words(process.output())))
            figures = urma_figures(process.output())
        return {**figures, "seconds": seconds, "command": " ".join(command)}

    def _pair(self, work, size, seconds):
        """Starts the server first. The next run gets as many messages as take `seconds` at
        this rate."""
        count, port = self.counts[work, size], free_port()
        server_command, client_command = work.commands(size, count, port)
        until = time.monotonic() + self.patience + 10 * seconds
        with Process(server_command, self.server_cpu, work.environment()) as server:
            self._until_it_listens(server, work, port, until)
            with Process(client_command, self.client_cpu, work.environment()) as client:
                for name, process in (("client", client), ("server", server)):
                    status = process.wait(until - time.monotonic())
                    if status != 0:
                        raise Failed("%s, %d bytes, its %s: %s: %s" % (
                            work.name(), size, name, how_it_ended(status),
                            last_words(process.output())))
                figures = work.figures(client.output(), size)
                waited = max(client.wait_percent, server.wait_percent)
        pace = max(figures["per_second"], 0.1)
        self.counts[work, size] = int(max(10, min(pace * seconds, 2e9)))
        words = ["%s=%s" % pair for pair in work.environment().items()]
        return {**figures, "seconds": count / pace, "wait_percent": waited,
                "command": " ".join(words + client_command)}

    def _over_ports(self, work, socket_path, size, seconds):
        """The server is ended by this function, and its port may crash it then: DPDK's memif."""
        ours = isinstance(work, UrmaPorts)
        if ours:
            commands = work.commands(self.urma_perf, socket_path, size, seconds)
        else:
            commands = work.commands(socket_path, self.server_cpu, self.client_cpu)
        until = time.monotonic() + self.patience + 10 * seconds
        with Process(commands[0], self.server_cpu, {}) as server:
            self._until(work, server, until, lambda: (
                "measure it by" in server.output() if ours else os.path.exists(socket_path)))
            begin = time.monotonic()
            with Process(commands[1], self.client_cpu, {}) as client:
                if ours:
                    status = client.wait(until - time.monotonic())
                    if status != 0:
                        raise Failed("%s: %s: %s" % (work.name(), how_it_ended(status),
                                                     last_words(client.output())))
                    figures = urma_figures(client.output())
                else:
                    self._until(work, server, until, lambda: (
                        len(work.rates(server.output())) >= work.intervals))
                    client.note_wait()
                    figures = work.figures(server.output(), size)
                server.note_wait()
                waited = max(client.wait_percent, server.wait_percent)
        return {**figures, "seconds": time.monotonic() - begin, "wait_percent": waited,
                "command": " ".join(commands[1])}

    @staticmethod
    def _until(work, server, until, ready):
        while not ready():
            if server.wait(0.02) is not None or time.monotonic() > until:
                raise Failed("%s: its server is not ready: %s"
                             % (work.name(), last_words(server.output())))

    def _until_it_listens(self, server, work, port, until):
        while not listens(port):
            if server.wait(0.002) is not None or time.monotonic() > until:
                raise Failed("%s: its server does not listen: %s"
                             % (work.name(), last_words(server.output())))


def how_it_ended(status):
    if status is None:
        return "hung, and was ended"
    return "signal %d" % -status if status < 0 else "exit code %d" % status


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    """Does not connect, because the server would take the connection for its client."""
    with open("/proc/self/net/tcp") as file:
        fields = [line.split() for line in file][1:]
    return any(row[3] == "0A" and int(row[1].split(":")[1], 16) == port for row in fields)


def enter_own_namespaces():
    """A network with a loopback interface only: the peers' servers listen at all addresses, and
    have no option for it. And a /dev/shm: no other program's window is used, and nothing that a
    killed peer leaves stays. False where the system does not allow them."""
    new_user, new_network, new_mounts = 0x10000000, 0x40000000, 0x00020000
    user, group = os.getuid(), os.getgid()
    if _libc.unshare(new_network | new_mounts) != 0:
        if _libc.unshare(new_user | new_network | new_mounts) != 0:
            return False
        for name, text in (("setgroups", "deny"), ("uid_map", "%d %d 1" % (user, user)),
                           ("gid_map", "%d %d 1" % (group, group))):
            with open("/proc/self/" + name, "w") as file:
                file.write(text)
    up, get_flags, set_flags = 1, 0x8913, 0x8914
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = fcntl.ioctl(any_socket, get_flags, struct.pack("16sh14x", b"lo", 0))
        flags = struct.unpack("16sh14x", request)[1]
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh14x", b"lo", flags | up))
    recursive, private = 0x4000, 0x40000
    return (_libc.mount(b"none", b"/", None, recursive | private, None) == 0 and
            _libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"mode=1777") == 0)
