#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests urma_info as people and scripts use it: urma_info_test.py PATH_TO_URMA_INFO"""

import json
import os
import socket
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
COLUMNS = 100
# The package that a driver which may be left out of a build needs.
SDKS = {"dpdk": "libdpdk-dev", "verbs": "librdmacm-dev"}


def run(*arguments, **keywords):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60,
                          **keywords)


def asked(*arguments, code=0, **keywords):
    """Returns the object that it prints, and checks that stderr is empty."""
    done = run(*arguments, "--json", **keywords)
    assert done.returncode == code and not done.stderr, (arguments, done)
    whole = json.loads(done.stdout)
    assert whole["schema"] == "urma_info/1" and whole["version"], whole
    return whole


def settings(*arguments, **keywords):
    device = asked("--config", *arguments, **keywords)["device"]
    return {one["name"]: one for one in device["settings"]}


def test_devices(window):
    done = run()
    assert done.returncode == 0 and not done.stderr, done
    for driver in ("cxl - ", "udp - ", "sim - ", "fault - "):
        assert "\n" + driver in done.stdout, done.stdout
    assert "cxl:   (the default)" in done.stdout, done.stdout
    devices = asked()["devices"]
    assert [one["device"] for one in devices if one["default"]] == ["cxl:"]
    for one in devices:
        if one["driver"] == "link":  # needs a switch, and none runs
            assert not one["usable"] and "urma_switch" in one["fix"], one
        elif one["driver"] in SDKS and not one["usable"]:  # may be left out of a build
            left_out = "without this driver" in one["why"] and SDKS[one["driver"]] in one["fix"]
            assert left_out or "no RDMA adapter" in one["why"], one
        else:
            assert one["usable"] and one["address"] and one["abilities"], one
        assert all(option["meaning"] and option["values"] for option in one["options"]), one
    (fault,) = [one for one in devices if one["driver"] == "fault"]
    assert fault["wraps"] and not fault["abilities"]["lossless"]

    text = "cxl:" + window + "?size=16M"
    device = asked(text)["device"]
    assert device["abilities"] == {"lossless": True, "mapped_memory": True, "descriptor": True,
                                   "atomics": True}, device
    printed = run(text).stdout
    assert "opens: window " + window in printed, printed
    # Lines are wrapped at any space.
    assert "; atomics of 1 to 8 bytes, by the initiator" in " ".join(printed.split()), printed
    assert not asked("sim:x")["device"]["abilities"]["descriptor"]


def test_congestion_controls_and_what_they_come_to(window):
    def used(device):
        return {one["name"]: (one["used"], one["why"])
                for one in asked(device)["device"]["congestion"]}
    plain = used("udp:")
    assert list(plain) == ["aimd", "fixed", "ldcp", "dcqcn", "caqm_w", "caqm_r"], plain
    assert plain["aimd"] == ("aimd", "") and plain["fixed"] == ("fixed", ""), plain
    assert plain["caqm_r"] == ("caqm_r", ""), plain
    for name, instead in (("ldcp", "aimd"), ("dcqcn", "aimd"), ("caqm_w", "caqm_r")):
        assert plain[name][0] == instead and f"{name} needs " in plain[name][1], plain
        assert "Fix: " in plain[name][1], plain
    marked = used("udp:?ecn=yes")
    assert marked["caqm_r"] == ("caqm_r", "") and marked["caqm_w"][0] == "ldcp", marked
    assert all(one[0] == "none" for one in used("cxl:" + window + "?size=16M").values())
    for meter, other in (("caqm_w", "caqm_r"), ("caqm_r", "caqm_w")):
        switched = f"sim:meters?topology=star&rate=1Gbit&meter={meter}"
        assert asked(switched)["device"]["port_meters"] == meter, meter
        assert used(switched)[meter] == (meter, ""), meter
        instead, why = used(switched)[other]
        assert instead == meter and f"port meters of {meter}" in why and "Fix: " in why, why
    device = asked("fault(rate=10Mbit):udp:?ecn=yes")["device"]
    assert device["carries"] == "ecn" and device["line_rate"] == "10Mbit", device
    text = " ".join(run("udp:").stdout.split())
    assert "packets carry nothing; port meters none; link unknown" in text, text
    assert "ldcp: aimd, because ldcp needs ECN marks" in text, text
    assert "aimd (the default): loss-driven window" in text, text


def test_config(window):
    defaults = settings()
    assert defaults["window"]["origin"] == "default"
    assert defaults["operation_timeout"] == {
        "name": "operation_timeout", "value": "2s", "origin": "default", "source": "",
        "meaning": "a work without progress for this long ends"}
    assert all(one["meaning"] for one in defaults.values()), defaults

    chosen = settings("cxl:" + window + "?size=16M")
    assert chosen["cxl.size"]["value"] == chosen["window_size"]["value"] == "16M"
    assert chosen["cxl.size"]["origin"] == chosen["window"]["origin"] == "device string"
    assert chosen["mapped_memory"]["value"] == "yes"
    found = settings("cxl:" + window)
    assert found["cxl.size"]["origin"] == "default" and found["window_size"]["origin"] == "system"

    udp = settings("fault(loss=5%,in.delay=3us):udp:127.0.0.77:4000?mtu=2K&gro=no")
    assert udp["udp.mtu"]["origin"] == udp["mtu"]["origin"] == "device string"
    assert udp["mtu"]["value"] == "2K" and udp["udp.gso"]["origin"] == "default"
    assert udp["coalescing"]["value"] == "no" and udp["coalescing"]["origin"] == "device string"
    assert udp["address"]["value"] == "127.0.0.77:4000"
    assert udp["eid"]["origin"] == "drawn"
    assert udp["fault.loss"]["value"] == "5%" and udp["fault.in.delay"]["value"] == "3us"
    assert udp["fault.dup"]["origin"] == "default"
    # The MTU is that of the interface.
    loopback = settings("udp:127.0.0.78")
    assert loopback["mtu"]["origin"] == "system" and "lo has an MTU of" in loopback["mtu"]["source"]
    # A wrapper that changes the properties of the medium says so.
    fault = settings("fault():cxl:" + window)
    assert fault["mtu"]["value"] == "8K" and fault["mtu"]["source"].startswith("fault: ")
    assert fault["lossless"]["value"] == fault["mapped_memory"]["value"] == "no"

    with tempfile.TemporaryDirectory() as mine:
        os.chmod(mine, 0o700)
        names = settings("udp:", env={**os.environ, "XDG_RUNTIME_DIR": mine})["names"]
    assert names["origin"] == "environment" and names["value"] == mine + "/urma", names

    plain, verbose = run("--config", "udp:"), run("--config", "udp:", "-v")
    assert plain.returncode == verbose.returncode == 0
    assert "congestion control" in verbose.stdout and "congestion control" not in plain.stdout


def test_device_that_does_not_open():
    taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    taken.bind(("127.0.0.79", 4001))
    for text, code, status in (("udp:127.0.0.79:4001", 1, "address_in_use"),
                               ("cxl:/nonexistent/window", 1, "io_error"),
                               ("udp:192.0.2.1", 2, "invalid_argument"),
                               ("udp:?mtu=7", 2, "invalid_argument"),
                               ("wires:", 2, "invalid_argument"),
                               ("nonsense", 2, "invalid_argument"),
                               ("x" * 600, 2, "invalid_argument")):
        for mode in ([], ["--config"]):
            done = run(*mode, text)
            assert done.returncode == code and not done.stdout, (text, done)
            assert done.stderr.startswith("urma_info: ") and done.stderr.count("Fix: ") == 1, done
            device = asked(*mode, text, code=code)["device"]
            assert not device["usable"] and device["status"] == status, device
            assert device["why"] and device["fix"], device
    taken.close()


def test_doctor():
    done = run("--doctor")
    assert done.returncode in (0, 3) and not done.stderr, done
    found = asked("--doctor", code=done.returncode)
    checks = found["checks"]
    assert (found["fix"] > 0) == (done.returncode == 3), found
    assert len(checks) == found["ok"] + found["warn"] + found["fix"] >= 19
    for check in checks:
        assert check["level"] in ("ok", "warn", "fix")
        assert bool(check["fix"]) == (check["level"] != "ok"), check
    lines = done.stdout.splitlines()
    assert sum(line.startswith(("ok  ", "warn", "fix ")) for line in lines) == len(checks)
    assert lines[-1].endswith("fix")

    # A shell can set this limit. --doctor reports the problem, and the exit code shows that there
    # is one.
    done = run("--doctor", "--json", preexec_fn=lambda: __import__("resource").setrlimit(
        __import__("resource").RLIMIT_NOFILE, (48, 48)))
    assert done.returncode == 3, done
    (files,) = [one for one in json.loads(done.stdout)["checks"] if one["check"] == "open files"]
    assert files["level"] == "fix" and files["fix"] == "ulimit -n 1024", files


def test_errors():
    every = asked("--error")["statuses"]
    assert [one["number"] for one in every] == list(range(len(every))) and len(every) > 20
    text = run("--error").stdout
    for one in every:
        assert one["name"] in text
        assert one["meaning"] and one["cure"] and (one["causes"] or one["name"] == "ok"), one
        by_name, by_number = run("--error", one["name"]), run("--error", str(one["number"]))
        assert by_name.returncode == 0 and by_name.stdout == by_number.stdout
        assert by_name.stdout.startswith("%s (%d)\n" % (one["name"], one["number"]))
        assert by_name.stdout.count("Cause: ") == len(one["causes"])
        assert asked("--error", one["name"])["statuses"] == [one]
    for wrong, near in (("remot_acess", "perhaps remote_access;"), ("peer", "peer_unreachable or"),
                        ("UNKNOWN!", ""), ("99", ""), ("-1", ""), ("x" * 5000, "")):
        done = run("--error", "--", wrong)
        assert done.returncode == 2 and not done.stdout, done
        assert "Fix: " in done.stderr and near in done.stderr and len(done.stderr) < 300, done


def test_help():
    done = run("--help")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) <= 30, len(lines)
    assert max(len(line) for line in lines) <= COLUMNS, lines
    for driver in ("udp", "cxl", "sim", "fault"):
        done = run("--help", driver)
        assert done.returncode == 0 and done.stdout.startswith(driver + " - "), done
        assert max(len(line) for line in done.stdout.splitlines()) <= COLUMNS
    assert "rcvbuf=" in run("--help", "udp").stdout
    done = run("--help", "wires")
    assert done.returncode == 2 and "Fix: name one of cxl, " in done.stderr, done
    assert run("--version").stdout.startswith("urma_info ")


def test_nonsense():
    for arguments in (["a:", "b:"], ["--nope"], [""], ["--doctor", "cxl:"], ["--version", "x"],
                      ["--doctor", "--error"], ["--config", "--help"], ["-v"], ["--doctor", "-v"],
                      ["--json=maybe"], ["--config=cxl:"], ["\x01\xff\n"], ["--error", "\n"],
                      ["--help", "\t"]):
        done = run(*arguments)
        assert done.returncode == 2 and not done.stdout, (arguments, done)
        assert done.stderr.startswith("urma_info: ") and "Fix: " in done.stderr, (arguments, done)


def test_output_that_cannot_be_written():
    for arguments in ([], ["--json"], ["--doctor"], ["--error"], ["--help"], ["--version"],
                      ["--config", "--json"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=60, check=False)
        assert done.returncode == 1 and "No space left" in done.stderr, (arguments, done)
        assert "Fix: " in done.stderr
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run([PROGRAM, *arguments], stdout=writing, stderr=subprocess.PIPE,
                              text=True, timeout=60, check=False)
        os.close(writing)
        assert done.returncode == 1 and "Broken pipe" in done.stderr, (arguments, done)


def main():
    window = "/dev/shm/urma-info-test-%d" % os.getpid()
    try:
        test_devices(window)
        test_congestion_controls_and_what_they_come_to(window)
        test_config(window)
    finally:
        if os.path.exists(window):
            os.unlink(window)
    test_device_that_does_not_open()
    test_doctor()
    test_errors()
    test_help()
    test_nonsense()
    test_output_that_cannot_be_written()


main()
