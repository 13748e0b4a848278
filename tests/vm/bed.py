#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program in emulated machines: bed.py one|two FOLDER PROGRAM WORD...

Each machine boots Debian's kernel, which is kept in FOLDER, and sees this machine's files, without
the right to change them: what is written stays in its memory. It has two processors, the software
adapter rxe0, and an address 10.2.0.N on an Ethernet wire, N from 1 on. BED_NODE is N, and BED_WIRE
the name of the wire's interface. Of two machines, both run the program; the test passes if it exits
with 0 in each. Skipped (77) where a machine cannot be made.
"""

import contextlib
import fcntl
import lzma
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "apps"))
from running import skip

# The modules of machines. rxe needs the last ones without saying so.
MODULES = ("virtio_pci", "virtio_net", "9pnet_virtio", "9p", "overlay", "dummy", "sch_netem",
           "rdma_rxe", "rdma_ucm", "ib_uverbs", "crc32_generic", "crc32c_generic")
PROGRAMS = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "cpio": "cpio",
            "modprobe": "kmod", "depmod": "kmod", "zstd": "zstd", "apt-get": "apt",
            "dpkg-deb": "dpkg", "rdma": "iproute2"}
MEMORY = 768  # MiB
PATIENCE = 150  # seconds
ENVIRONMENT = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")


def run(*command, **more):
    return subprocess.run(command, check=True, env=ENVIRONMENT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **more).stdout


def check_programs():
    for program, package in PROGRAMS.items():
        if not shutil.which(program, path=ENVIRONMENT["PATH"]):
            skip(f"{program} is not installed (apt-get install {package})")
    if "=>" in subprocess.run(["ldd", shutil.which("busybox")], check=False, capture_output=True,
                              text=True).stdout:
        skip("busybox needs libraries (apt-get install busybox-static)")


def kernel_package():
    """Returns the package of this system's newest kernel."""
    with contextlib.suppress(subprocess.CalledProcessError):
        found = re.search(r"Depends: (linux-image-\S+)", run("apt-cache", "depends",
                                                             "linux-image-amd64"))
        if found:
            return found[1]
    skip("apt knows no package linux-image-amd64: the machines need Debian's kernel")


def uncompressed(kernel):
    """Returns the ELF program inside a compressed kernel. The x86 boot protocol of Linux says where
    it is (setup_sects, payload_offset and payload_length); its size follows it in 4 bytes."""
    sectors, (offset, length) = kernel[0x1f1], struct.unpack_from("<II", kernel, 0x248)
    begin = (sectors + 1) * 512 + offset
    payload = kernel[begin:begin + length - 4]
    if payload.startswith(b"\xfd7zXZ\0"):
        return lzma.decompress(payload)
    return subprocess.run(["zstd", "-dc"], check=True, input=payload, stdout=subprocess.PIPE).stdout


def unpack_kernel(package, folder):
    """Writes the kernel as a program, which boots faster than the compressed one."""
    try:
        run("apt-get", "download", "-q", package, cwd=folder)
    except subprocess.CalledProcessError as failure:
        skip(f"{package} cannot be fetched: {failure.stdout.strip()[-200:]}")
    (deb,) = folder.glob("*.deb")
    run("dpkg-deb", "-x", deb.name, ".", cwd=folder)
    deb.unlink()
    (compressed,) = (folder / "boot").glob("vmlinuz-*")
    (folder / "vmlinux").write_bytes(uncompressed(compressed.read_bytes()))
    return compressed.name.removeprefix("vmlinuz-")


def modules_of(release, folder):
    """Returns the files of all modules, each behind those that it needs."""
    run("depmod", "-b", folder, release)
    files = []
    for module in MODULES:
        shown = run("modprobe", "-d", folder, "-S", release, "--show-depends", module)
        files += re.findall(r"^insmod (\S+)", shown, re.MULTILINE)
    return list(dict.fromkeys(files))


def archive(folder, out):
    names = "\n".join(str(path.relative_to(folder)) for path in sorted(folder.rglob("*")))
    with open(out, "wb") as file:
        subprocess.run(["cpio", "-o", "-H", "newc", "-R", "0:0", "--quiet"], check=True, cwd=folder,
                       input=names.encode(), stdout=file)


def make_base(package, folder):
    """Makes the kernel and the first file system of all machines."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        work = pathlib.Path(name)
        release = unpack_kernel(package, work)
        root = work / "root"
        for directory in ("bin", "modules", "proc", "sys", "dev", "lower", "upper", "root"):
            (root / directory).mkdir(parents=True)
        shutil.copy(shutil.which("busybox"), root / "bin/busybox")
        shutil.copy(HERE / "init", root / "init")
        for number, module in enumerate(map(pathlib.Path, modules_of(release, work))):
            data = module.read_bytes()
            if module.suffix == ".xz":
                data = lzma.decompress(data)
            (root / f"modules/{number:03}-{module.name}").write_bytes(data)
        archive(root, work / "base")
        run("zstd", "-q", "-f", work / "base", "-o", folder / "base")
        (work / "vmlinux").rename(folder / "vmlinux")


def base(folder):
    """Returns the folder with the base, which is made if it is not there."""
    package = kernel_package()
    made = folder / package
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other tests may be making it
        newest = max((HERE / name).stat().st_mtime for name in ("init", "bed.py"))
        if not (made / "vmlinux").exists() or (made / "base").stat().st_mtime < newest:
            made.mkdir(exist_ok=True)
            make_base(package, made)
    return made


class Machine:
    """A machine that runs a command, and has the wire between `folder`/1 and `folder`/2."""

    def __init__(self, made, folder, node, command):
        self.log = folder / f"log{node}"
        job = folder / f"job{node}"
        job.mkdir()
        (job / "job").write_text(
            f"export BED_NODE={node}\ncd {shlex.quote(os.getcwd())}\nexec {shlex.join(command)}\n",
            encoding="utf-8")
        archive(job, folder / f"front{node}")
        # A kernel takes several archives, one behind the other.
        with open(folder / f"initrd{node}", "wb") as out:
            for part in (folder / f"front{node}", made / "base"):
                out.write(part.read_bytes())
        wire = ",".join(("dgram,id=wire", "local.type=unix", f"local.path={folder}/{node}",
                         "remote.type=unix", f"remote.path={folder}/{3 - node}"))
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max",
             # With one processor, processes that poll advance once in 4 ms.
             "-smp", "2", "-M", "q35", "-m", str(MEMORY), "-nodefaults", "-no-user-config",
             "-display", "none", "-no-reboot", "-serial", f"file:{self.log}",
             "-kernel", made / "vmlinux", "-initrd", folder / f"initrd{node}",
             "-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap",
             "-device", "virtio-9p-pci,fsdev=host,mount_tag=host",
             "-netdev", wire,
             "-device", f"virtio-net-pci,netdev=wire,mac=52:54:00:00:00:0{node},romfile=",
             "-append", "console=ttyS0 quiet panic=-1 no_timer_check mitigations=off"],
            stdin=subprocess.DEVNULL)

    def said(self):
        if not self.log.exists():
            return ""
        return self.log.read_text(encoding="utf-8", errors="replace").replace("\r", "")

    def verdict(self):
        """Returns the exit code of the command, or None if the machine ended without one."""
        found = re.search(r"^BED-EXIT (\d+)$", self.said(), re.MULTILINE)
        return int(found[1]) if found else None


def await_all(machines):
    """Returns when all have ended, or one has failed."""
    until = time.monotonic() + PATIENCE
    while any(machine.process.poll() is None for machine in machines):
        if any(machine.process.poll() is not None and machine.verdict() != 0
               for machine in machines):
            return
        if time.monotonic() > until:
            print(f"a machine did not end within {PATIENCE} s", flush=True)
            return
        time.sleep(0.1)


def main():
    count = {"one": 1, "two": 2}[sys.argv[1]]
    check_programs()
    made = base(pathlib.Path(sys.argv[2]))
    # The paths of sockets are short.
    with tempfile.TemporaryDirectory(prefix="urma-bed-") as name:
        machines = [Machine(made, pathlib.Path(name), node + 1, sys.argv[3:])
                    for node in range(count)]
        try:
            await_all(machines)
        finally:
            for machine in machines:
                machine.process.kill()
                machine.process.wait()
        for node, machine in enumerate(machines, 1):
            print(f"== machine {node}\n{machine.said()}", flush=True)
        verdicts = [machine.verdict() for machine in machines]
    sys.exit(77 if 77 in verdicts else int(any(code != 0 for code in verdicts)))


main()
