#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests urma_admin beside processes that run: urma_admin_test.py URMA_ADMIN URMA_PING"""

import contextlib
import fcntl
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
import zlib

from running import await_line, check_help, end, kill, run_tests, start

PROGRAM, PING = sys.argv[1:3]
PAGES = f"/dev/shm/urma-devices-{os.geteuid()}"
# An address of the loopback and a window that no other program uses.
PID = os.getpid()
ADDRESS = f"127.{64 + PID // 16384 % 128}.{PID // 128 % 128}.{1 + PID % 128}"
WINDOW = f"/dev/shm/urma-admin-test-{PID}"
NAMES = tempfile.TemporaryDirectory()
os.environ.update({"URMA_DEVICES": f"network=udp:{ADDRESS}:0;window=cxl:{WINDOW}?size=64M",
                   "XDG_RUNTIME_DIR": NAMES.name})
NETWORK_EID = "0000:0000:0000:0000:0000:ffff:" + "{:02x}{:02x}:{:02x}{:02x}".format(
    *map(int, ADDRESS.split(".")))
CAPABILITIES = (
    "feature", "max_jfc", "max_jfs", "max_jfr", "max_jetty", "max_jetty_grp",
    "max_jetty_in_jetty_grp", "max_jfc_depth", "max_jfs_depth", "max_jfr_depth",
    "max_jfs_inline_size", "max_jfs_sge", "max_jfs_rsge", "max_jfr_sge", "max_msg_size",
    "max_read_size", "max_write_size", "max_cas_size", "max_swap_size", "max_fetch_and_add_size",
    "max_fetch_and_sub_size", "max_fetch_and_and_size", "max_fetch_and_or_size",
    "max_fetch_and_xor_size", "atomic_feature", "trans_mode", "congestion_ctrl_alg", "ceq_cnt",
    "max_tp_in_tpg", "port_count", "reserved_jetty_id_min", "reserved_jetty_id_max")


def run(*arguments, **more):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=60, **more)


def show(*arguments):
    """Returns what urma_admin show prints without an error."""
    done = run("show", *arguments)
    assert done.returncode == 0, done
    return done.stdout


def look(device):
    """Returns what the JSON output says of the processes on a device, by process."""
    whole = json.loads(show("--json", "--dev", device))
    assert whole["schema"] == "urma_admin/1" and len(whole["devices"]) == 1, whole
    assert whole["devices"][0]["name"] == device
    return {one["pid"]: one for one in whole["devices"][0]["processes"]}


def comes_to(what):
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if what():
            return
        time.sleep(0.05)
    raise AssertionError("timed out: the condition did not become true")


@contextlib.contextmanager
def two_at_work(eid):
    """A process that answers, and one that has sent to it and now waits."""
    server = start(PING, "--serve")
    try:
        await_line(server, "answers at")
        await_line(server, "answers at")
        pinger = start(PING, "-i", "1000", "-s", "4096", eid)
        try:
            await_line(pinger, "URMA_PING")
            await_line(pinger, "seq=1 time=")
            # A page is written every tenth of a second, and may be older than the message.
            device = "window" if eid.startswith("fd75") else "network"
            comes_to(lambda: all(look(device)[one.pid]["metrics"]["works"] == 1
                                 for one in (server, pinger)))
            yield server, pinger
        finally:
            if pinger.poll() is None:
                kill(pinger)
    finally:
        if server.poll() is None:
            end(server)


def window_eid():
    return re.search(r"window +UB +eid0 (\S+)", show()).group(1)


def test_help():
    check_help(PROGRAM)


def test_devices_are_a_table():
    lines = show().splitlines()
    assert lines[:2] == [
        "num  ubep_dev            tp_type     eid                                             link",
        "---  ----------------    --------    --------------------------------------------    "
        "--------"], lines
    assert lines[2] == f"0    network             UB          eid0 {NETWORK_EID}    ACTIVE  ", lines
    assert lines[3].startswith("1    window              UB          eid0 fd75:726d:61"), lines
    assert len(lines) == 4
    for more in (("--brief",), ("--all",), ("--dev", "network"), ("dev", "network")):
        assert show(*more).splitlines()[2] == lines[2], more
    assert len(show("dev", "window").splitlines()) == 3


def test_a_device_shows_what_it_can_do():
    text = show("--dev", "network", "--whole")
    values = dict(re.findall(r"^(\w+) +: (.*)$", text, re.MULTILINE))
    assert set(CAPABILITIES) <= set(values), set(CAPABILITIES) - set(values)
    assert values["transport_type"] == "0 [UB]" and values["name"].strip() == "network"
    assert values["trans_mode"].startswith("0x7 [RM(Reliable message) RC"), values
    assert (values["reserved_jetty_id_min"], values["reserved_jetty_id_max"]) == ("2", "65535")
    assert f"  eid0                     : {NETWORK_EID}\n" in text
    assert re.search(r"^ tp_type  :(  RTP|  CTP){16}$", text, re.MULTILINE), text
    assert show("--whole").count("transport_type") == 2
    shown = json.loads(show("--json"))["devices"][0]["capabilities"]
    assert shown["max_jetty"] == int(values["max_jetty"]) and len(shown["priorities"]) == 16


def check_objects(device, server, pinger):
    """Compares the text with the JSON output."""
    processes = look(device)
    objects = processes[pinger.pid]["objects"]
    jetty, = (one for one in objects["jetties"] if one["kind"] == "jetty")
    jfr, = (one for one in objects["jetties"] if one["kind"] == "jfr")
    assert jetty["jfr"] == jfr["id"] and jetty["receives_jfc"] == jfr["jfc"], objects
    assert jetty["jfc"] != jfr["jfc"] and jetty["state"] == "ready" and jetty["weight"] == 7
    assert {one["id"] for one in objects["jfcs"]} == {jetty["jfc"], jfr["jfc"]}, objects
    assert [one["id"] for one in processes[server.pid]["objects"]["jetties"]] == [5]

    text = show("dev", device, "jetty")
    assert text.startswith("**********RES_JETTY**********\n\n---------JETTY---------\n"
                           "jetty_cnt             :2 \njetty_id[0]          \t:"), text
    owners = dict(re.findall(r"\t:(\d+) \tprocess (\d+)", text))
    assert owners == {"5": str(server.pid), str(jetty["id"]): str(pinger.pid)}, text
    one = show("dev", device, "jetty", jetty["id"])
    for line in (f"jetty_id            : {jetty['id']}", f"send_jfc_id         : {jetty['jfc']}",
                 f"recv_jfc_id         : {jfr['jfc']}", f"jfr_id              : {jfr['id']}",
                 f"jfs_depth           : {jetty['sends']}", "state               : 1 [READY]",
                 "pri                 : 6", f"process             : {pinger.pid} (urma_ping)"):
        assert line + "\n" in one, (line, one)
    assert f":{jfr['id']} \tprocess {pinger.pid}" in show("dev", device, "jfr")
    assert f"jfr_id              : {jfr['id']}\n" in show("dev", device, "jfr", jfr["id"])
    assert "jfs_cnt             :0 \n" in show("dev", device, "jfs")
    assert "jfc_cnt             :3 \n" in show("dev", device, "jfc")
    assert "state               : 1 [VALID]\n" in show("dev", device, "jfc", jfr["jfc"])

    segment, = objects["segments"]
    assert segment["bytes"] == 17 * 4096 and not segment["write"], segment
    text = show("dev", device, "seg", segment["token_id"])
    for line in (f"va                  : {segment['address']}", "len                 : 69632",
                 f"token_id            : {segment['token_id']}",
                 "access              : local only"):
        assert line + "\n" in text, (line, text)
    return processes


def check_topology(device, eid, server, pinger):
    """Each of two processes at one EID has the other one as its peer."""
    uasids = {pid: one["uasid"] for pid, one in look(device).items()}
    lines = show("topo", "--dev", device).splitlines()
    assert lines[0] == "========================== topo map start ============================="
    assert lines[1] == f"Dev 0 ({device}): {eid}", lines
    assert lines[-1] == "========================== topo map end ============================="
    form = r"\t Connected to (\S+), uasid (\d+), path 0: up, process (\d+) \(urma_ping\)"
    peers = {tuple(re.fullmatch(form, line).groups()) for line in lines[2:-1]}
    assert {(eid, str(uasids[server.pid]), str(pinger.pid)),
            (eid, str(uasids[pinger.pid]), str(server.pid))} == peers, (peers, uasids)
    both = show("topo")
    assert both.count("Dev ") == 2 and both.count("\t Not connected\n") == 1, both


def test_objects_of_two_processes_over_the_network():
    with two_at_work(ADDRESS) as (server, pinger):
        processes = check_objects("network", server, pinger)
        assert processes[pinger.pid]["eid"] == NETWORK_EID
        channels = processes[pinger.pid]["channels"]
        peer = f"{ADDRESS}:{processes[server.pid]['uasid']}"
        assert peer in [one["peer"] for one in channels], (peer, channels)
        text = show("dev", "network", "tp")
        assert text.startswith("dev_name      : network\n"), text
        assert f"peer_eid      : {NETWORK_EID}\n" in text and "tp_type       : 0 [RTP]\n" in text
        assert f"peer_uasid    : {processes[server.pid]['uasid']}\n" in text, text
        assert "tpid_list[0]" in text and show("dev", "network", "tp", 0).count("tpid_list") == 1
        check_topology("network", NETWORK_EID, server, pinger)
        stats = show("dev", "network", "stats", pinger.pid)
        values = dict(re.findall(r"^(\w+) +: (.*)$", stats, re.MULTILINE))
        assert values["process"] == f"{pinger.pid} (urma_ping)" and int(values["tx_pkt"]) > 0, stats
        assert values["uasid"] == str(processes[pinger.pid]["uasid"]) and int(values["works"]) == 1
        kill(pinger)
        assert pinger.pid not in look("network") and server.pid in look("network")


def test_objects_of_two_processes_in_a_window():
    eid = window_eid()
    with two_at_work(eid) as (server, pinger):
        processes = check_objects("window", server, pinger)
        uasids = {processes[one.pid]["uasid"] for one in (server, pinger)}
        assert len(uasids) == 2 and max(uasids) <= 64, processes
        assert {processes[one.pid]["eid"] for one in (server, pinger)} == {eid}
        text = show("dev", "window", "tp")
        assert "tp_type       : 1 [CTP]\n" in text and f"peer_eid      : {eid}\n" in text, text
        assert set(map(int, re.findall(r"peer_uasid +: (\d+)", text))) == uasids, text
        check_topology("window", eid, server, pinger)
        assert pinger.pid not in look("network"), "it is another device"


def test_nobody_has_opened_the_device():
    assert "jetty_cnt             :0 \n" in show("dev", "network", "jetty")
    assert "jetty_group_cnt       :0 \n" in show("dev", "network", "jetty_group")
    assert show("dev", "network", "tp") == "dev_name      : network\nNo tpid_list found.\n"
    assert show("dev", "network", "stats") == "No process has opened network.\n"
    assert f"Dev 0 (network): {NETWORK_EID}\n\t Not connected\nDev 1 (window): " in show("topo")


def test_kinds_of_which_there_are_none():
    for word, empty in (
            ("rc", "**********RES_RC**********\n\n----------RC-----------\n"
                   "rc_cnt              :0 \n"),
            ("tpreuse", "dev_name        : network\nNo tpid_reuse found.\n")):
        done = run("show", "dev", "network", word)
        assert done.returncode == 0 and done.stdout == empty, done
        assert f"urma_admin: {word}: liburma has none" in done.stderr, done


def with_more(page, jetties, jfcs, segments):
    """Returns a page that says that there are more objects than it shows."""
    slot_bytes = 32 + 96 * 56
    first = len(page) - 2 * slot_bytes
    slots = [page[first:first + slot_bytes], page[first + slot_bytes:]]
    for number, slot in enumerate(slots):
        rows, reports = struct.unpack_from("<IQ", slot, 4)
        covered = struct.pack("<IQIII", rows, reports, jetties, jfcs, segments) + slot[28:]
        checksum = zlib.crc32(covered[:28 + rows * 56])
        slots[number] = struct.pack("<I", checksum) + covered
    return page[:first] + b"".join(slots)


def with_text(page, change):
    """Returns a page with another text, and the right checksum."""
    form = "<QIIII"  # magic, layout, bytes of the text, metrics, checksum
    magic, layout, size, metrics, _ = struct.unpack_from(form, page)
    first = struct.calcsize(form)
    text = change(page[first:first + size].decode()).encode()
    head = struct.pack("<QIII", magic, layout, len(text), metrics)
    return head + struct.pack("<I", zlib.crc32(head + text)) + text + page[first + size:]


@contextlib.contextmanager
def forged(page, number):
    """Puts a page beside those of this user's devices."""
    path = f"{PAGES}/{os.getpid()}-{number:016x}"
    with open(path, "wb") as file:
        file.write(page)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield path
        finally:
            os.unlink(path)


def test_more_objects_than_a_page_has_room_for():
    with two_at_work(ADDRESS) as (_, pinger):
        own, = (name for name in os.listdir(PAGES) if name.startswith(f"{pinger.pid}-"))
        with open(f"{PAGES}/{own}", "rb") as file:
            page = file.read()
        page = with_text(page, lambda text: text.replace(f"pid\t{pinger.pid}\n", "pid\t99999\n"))
        with forged(with_more(page, 12, 1, 7), 1):
            for word, count, more in (
                    ("jetty", "jetty_cnt             :3 to 15 \n",
                     "12 more Jetties, JFSs, JFRs and groups"),
                    ("jfs", "jfs_cnt             :0 to 12 \n",
                     "12 more Jetties, JFSs, JFRs and groups"),
                    ("jfc", "jfc_cnt             :5 or more \n", "more JFCs"),
                    ("seg", "seg_cnt             : 9\n", "7 more segments")):
                done = run("show", "dev", "network", word)
                assert done.returncode == 0 and done.stderr == "", done
                assert count in done.stdout, (count, done)
                assert done.stdout.endswith(f"process 99999 (urma_ping) has {more}\n"), done
            done = run("show", "dev", "network", "jetty", 5)
            assert "process 99999 (urma_ping) has 12 more Jetties" in done.stderr, done


def test_pages_of_other_versions():
    with two_at_work(ADDRESS) as (_, pinger):
        own, = (name for name in os.listdir(PAGES) if name.startswith(f"{pinger.pid}-"))
        with open(f"{PAGES}/{own}", "rb") as file:
            page = file.read()
        # A page of a version that shows no objects.
        older = with_text(page, lambda text: re.sub(r"(?m)^objects\t.*\n", "", text).replace(
            f"pid\t{pinger.pid}\n", "pid\t99999\n").replace("process\turma_ping", "process\told"))
        with forged(older, 1):
            assert look("network")[99999]["objects"] is None
            done = run("show", "dev", "network", "jetty")
            assert done.returncode == 0, done
            assert "process 99999 (old) has another version of the library" in done.stderr, done
            assert "process 99999" not in done.stdout and f"process {pinger.pid}" in done.stdout
            assert "process             : 99999 (old)" in show("dev", "network", "stats")
        # A page of a later version, and files that are not pages.
        for wrong, said in ((page[:8] + b"\x63" + page[9:], "has layout 99"),
                            (b"nonsense" * 100, "is not a file with a device's counters"),
                            (page[:3000], "was truncated"),
                            (page[:100] + b"!" + page[101:], "is damaged")):
            with forged(wrong, 2) as path:
                done = run("show", "dev", "network", "jetty")
                assert done.returncode == 0 and f"urma_admin: {path} {said}" in done.stderr, done
                assert f"process {pinger.pid}" in done.stdout, done
                assert said in json.loads(show("--json"))["skipped"][0]
        # The objects are the last part of a page: two slots with a head and 96 rows.
        last = 2 * (32 + 96 * 56)
        with forged(page[:-last] + bytes(last), 3) as path:
            done = run("show", "dev", "network", "jetty")
            assert f"{path} is damaged, or being written" in done.stderr, done


def test_bad_input():
    for arguments, code, said in (
            ((), 2, "missing command. Fix: urma_admin show"),
            (("shwo",), 2, '"shwo" is not a word of urma_admin; perhaps show is meant'),
            (("show", "devs"), 2, "perhaps dev is meant"),
            (("show", "dev"), 2, "missing device. Fix: urma_admin show lists"),
            (("show", "dev", "network", "jety"), 2, "perhaps jetty is meant"),
            (("show", "dev", "network", "jetty", "-1"), 2, "-1"),
            (("show", "dev", "network", "jetty", "x"), 2, 'jetty: "x" is invalid'),
            (("show", "dev", "network", "jetty", "5000000000"), 2, "5000000000"),
            (("show", "dev", "network", "jetty", "1", "2"), 2, '"2" is one word too many'),
            (("show", "dev", "network", "--dev", "window"), 2, "the device is given twice"),
            (("show", "--brief", "--all"), 2, "--brief and --all"),
            (("show", "--who"), 2, "--whole"),
            (("show", "dev", "netwrok"), 1, 'there is no device "netwrok"; perhaps network'),
            (("show", "--dev", "bonding_dev_0"), 1, 'there is no device "bonding_dev_0"'),
            (("show", "dev", "network", "jetty", "7"), 1, "no process shows the jetty 7 on"),
            (("show", "dev", "network", "tp", "0"), 1, "no process shows the tp 0 on network"),
            (("show", "dev", "network", "seg", "0"), 1, "no process shows the seg 0"),
            (("show", "dev", "network", "rc", "1"), 1, "no process shows the rc 1 on network"),
            (("show", "tpo"), 2, "perhaps topo is meant"),
            (("show", "topo", "1"), 1, 'the node "1" is not known')):
        done = run(*arguments)
        assert done.returncode == code and said in done.stderr, (said, done)
        assert done.stdout == "" and "Fix:" in done.stderr, done


def test_devices_that_cannot_be_opened():
    environment = {**os.environ, "URMA_DEVICES": "good=udp:127.0.0.1:0;bad=udp:203.0.113.9:0"}
    done = run("show", env=environment)
    assert done.returncode == 0 and "bad" in done.stdout and " DOWN " in done.stdout, done
    assert "urma_admin: bad: urma_get_eid_list: " in done.stderr and "Fix:" in done.stderr, done
    devices = json.loads(run("show", "--json", env=environment).stdout)["devices"]
    assert devices[0]["error"] is None and "Fix:" in devices[1]["error"]
    done = run("show", env={**environment, "URMA_DEVICES": "="})
    assert done.returncode == 1 and "URMA_DEVICES names no device" in done.stderr, done


try:
    run_tests(globals())
finally:
    NAMES.cleanup()
    if os.path.exists(WINDOW):
        os.unlink(WINDOW)
