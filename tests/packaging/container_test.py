#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the commands of packaging/container work? container_test.py ROOT URMA_PERF

A container is a network namespace here, and this program also stands for podman: `two-nodes` runs
as it is, with an engine that makes namespaces instead of containers. Skipped where they cannot be
made.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
STATE = "URMA_TEST_CONTAINERS"  # for the engine: a folder of its own
ADDRESSES = ("10.97.0.1/24", "10.97.0.2/24")


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True).returncode == 0


def make_network(name):
    """Makes a namespace for the client and one for the server, and a cable between them."""
    sides = [f"{name}{side}" for side in "cs"]
    made = all(ip("netns", "add", side) for side in sides) and ip(
        "link", "add", "cable", "netns", sides[0], "type", "veth", "peer", "cable", "netns",
        sides[1])
    for side, address in zip(sides, ADDRESSES):
        made = made and ip("-n", side, "addr", "add", address, "dev", "cable")
        made = made and ip("-n", side, "link", "set", "cable", "up")
    return made


def remove_network(name):
    for side in "cs":
        ip("netns", "delete", f"{name}{side}")


def inside(namespace, server, command):
    """Returns a command line that runs a command in a namespace where the server has its name."""
    hosts = pathlib.Path(os.environ[STATE], "hosts")
    hosts.write_text(f"127.0.0.1 localhost\n{ADDRESSES[1].split('/')[0]} {server}\n")
    return ["ip", "netns", "exec", namespace, "unshare", "--mount", "sh", "-c",
            f'mount --bind {hosts} /etc/hosts && exec "$@"', "-", *command]


def image_command(root):
    text = (root / "packaging/container/Containerfile").read_text()
    return re.findall(r'"(.*?)"', re.search(r"^CMD \[(.*)\]$", text, re.MULTILINE)[1])


def engine(words):
    """Does what two-nodes asks podman for."""
    root, network = pathlib.Path.cwd(), words[-1]
    if words[0] == "build":
        file, context = words[words.index("-f") + 1], words[-1]
        return not (pathlib.Path(file).is_file() and any(pathlib.Path(context).glob("*.deb")))
    if words[:2] == ["network", "create"]:
        return not make_network(network)
    if words[:2] == ["network", "rm"]:
        return remove_network(network)
    pids = pathlib.Path(os.environ[STATE], "pid")
    if words[:2] == ["rm", "-f"]:
        return pids.exists() and os.kill(int(pids.read_text()), 9)
    assert words[0] == "run", words
    network, image = words[words.index("--network") + 1:][:2]
    command = words[words.index(image) + 1:]
    if "-d" not in words:
        return subprocess.run(inside(network + "c", f"{network}-server", command)).returncode
    server = subprocess.Popen(inside(network + "s", "nobody", command or image_command(root)),
                              stdout=subprocess.DEVNULL)
    pids.write_text(str(server.pid))
    return 0


def test_two_nodes(root, folder):
    copy = pathlib.Path(folder, "tree")
    shutil.copytree(root / "packaging/container", copy / "packaging/container")
    (copy / "build/packages").mkdir(parents=True)
    (copy / "build/packages/urma-tools_0_amd64.deb").touch()
    done = subprocess.run([copy / "packaging/container/two-nodes"], capture_output=True, text=True,
                          env={**os.environ, "ENGINE": os.path.abspath(__file__)}, timeout=60)
    assert done.returncode == 0 and "write_imm_lat" in done.stdout, done


def test_compose(root, folder):
    text = (root / "packaging/container/compose.yaml").read_text()
    client = [word.strip().strip('"') for word in
              re.search(r"^    command: \[(.*)\]$", text, re.MULTILINE)[1].split(",")]
    context, file = (root / "packaging/container" / re.search(rf"{key}: (\S+)", text)[1]
                     for key in ("context", "dockerfile"))
    assert context.resolve() == root / "build/packages"
    assert (context.parent / "packages" / re.search(r"dockerfile: (\S+)", text)[1]).resolve() == (
        root / "packaging/container/Containerfile"), file
    network = f"urma{os.getpid()}"
    assert make_network(network)
    server = None
    try:
        server = subprocess.Popen(inside(network + "s", "nobody", image_command(root)),
                                  stdout=subprocess.DEVNULL)
        done = subprocess.run(inside(network + "c", "server", client), capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 0 and "write_imm_lat" in done.stdout, done
    finally:
        if server:
            server.kill()
            server.wait()
        remove_network(network)


def main():
    root, program = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    probe = f"urmaprobe{os.getpid()}"
    possible = make_network(probe)
    remove_network(probe)
    if not possible:
        print("skipped: no network namespaces can be made")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[STATE] = folder
        os.environ["PATH"] = f"{program.parent}:{os.environ['PATH']}"
        test_two_nodes(root, folder)
        test_compose(root, folder)


if __name__ == "__main__":
    if STATE in os.environ:
        sys.exit(engine(sys.argv[1:]) or 0)
    main()
