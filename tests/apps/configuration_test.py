#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests what the environment and the configuration file set:
configuration_test.py URMA_INFO URMA_STAT URMA_FEED URMA_PERF"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from running import run_tests

INFO, STAT, FEED, PERF = sys.argv[1:5]
OURS = ("URMA_DEVICE", "URMA_LOG", "URMA_CONGESTION", "URMA_CAPTURE", "URMA_CONFIG",
        "XDG_CONFIG_HOME", "HOME")
STRANGER = 64125  # a user that does not exist


@contextlib.contextmanager
def home():
    """A home directory, and the path of the configuration file in it."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = pathlib.Path(folder) / ".config" / "urma" / "urma.conf"
        path.parent.mkdir(parents=True)
        yield folder, path


def run(*command, home="/nonexistent", program=INFO, **variables):
    environment = {name: value for name, value in os.environ.items() if name not in OURS}
    return subprocess.run([program, *command], capture_output=True, text=True, timeout=30,
                          env={**environment, "HOME": home, **variables})


def settings(*command, **how):
    done = run("--config", "--json", *command, **how)
    assert done.returncode == 0, done
    whole = json.loads(done.stdout)
    return whole["device"], {one["name"]: one for one in whole["configuration"]}


def test_a_variable_precedes_the_file_which_precedes_the_default():
    with home() as (folder, path):
        device, chosen = settings(home=folder)
        assert device["device"] == "cxl:" and chosen["device"]["origin"] == "default", chosen
        assert chosen["config"]["value"] == "none" and chosen["log"]["value"] == "off", chosen

        path.write_text("# ours\ndevice = udp:127.0.0.3:0\n")
        device, chosen = settings(home=folder)
        assert device["device"] == "udp:127.0.0.3:0", device
        assert chosen["device"]["origin"] == "file", chosen
        assert chosen["device"]["source"] == f"{path}:2", chosen
        assert chosen["config"]["value"] == str(path), chosen

        device, chosen = settings(home=folder, URMA_DEVICE="udp:127.0.0.4:0")
        assert device["device"] == "udp:127.0.0.4:0", device
        assert chosen["device"]["origin"] == "environment", chosen
        assert chosen["device"]["source"] == "URMA_DEVICE", chosen
        device, _ = settings("udp:127.0.0.5:0", home=folder, URMA_DEVICE="udp:127.0.0.4:0")
        assert device["device"] == "udp:127.0.0.5:0", device

        other = pathlib.Path(folder) / "other.conf"
        other.write_text("log = off")
        for how in ({"URMA_CONFIG": str(other)}, {"URMA_CONFIG": "/dev/null"}):
            device, chosen = settings(home=folder, **how)
            assert device["device"] == "cxl:" and chosen["config"]["origin"] == "environment"
        device, chosen = settings(home="/nonexistent", XDG_CONFIG_HOME=f"{folder}/.config")
        assert device["device"] == "udp:127.0.0.3:0", device
        text = run("--config", home=folder).stdout
        assert f"file: {path}:2" in text and "URMA_LOG sets it" in text, text


def test_what_is_wrong_is_an_error_with_a_cure():
    with home() as (folder, path):
        for text, why in ((b"devise = udp:\n", f"{path}:1: \"devise\" is not a setting; perhaps"),
                          (b"\ndevice\n", f"{path}:2: \"device\" is not NAME = VALUE"),
                          (b"log = off\nlog = off\n", f"{path}:2: log is set in line 1 already"),
                          (b"x" * 70000, f"{path}: has more than 65536 bytes"),
                          (bytes(range(256)), f"{path}:1: ")):
            path.write_bytes(text)
            for command in (("--config",), ("--config", "udp:")):
                done = run(*command, home=folder)
                assert done.returncode == 2 and why in done.stderr, (text, done)
                assert "Fix: " in done.stderr and not done.stdout, done
        path.unlink()
        for variables, why in (({"URMA_DEVICE": "upd:"}, "URMA_DEVICE: "),
                               ({"URMA_CONGESTION": "fast"},
                                'URMA_CONGESTION: open: there is no congestion control "fast"'),
                               ({"URMA_CAPTURE": "/nonexistent"},
                                "URMA_CAPTURE: pcap: /nonexistent/urma_feed-"),
                               ({"URMA_CONFIG": "/nonexistent/x"}, "No such file"),
                               ({"URMA_CONFIG": "/"}, "/: Is a directory")):
            done = run("consume", "--count", "1", program=FEED, home=folder, **variables)
            assert done.returncode != 0 and "Fix: " in done.stderr, done
            assert why in done.stderr or "URMA_DEVICE" in variables, done
        os.mkfifo(path)
        done = run("--config", home=folder)  # does not wait for a writer
        assert done.returncode == 0, done
        assert f"{path} is not read: it is a pipe" in done.stderr, done
        named = run("--config", URMA_CONFIG=str(path))
        assert named.returncode == 2 and "it is a pipe" in named.stderr, named
        path.unlink()


def test_an_unknown_variable_is_a_warning():
    done = run(program=STAT, URMA_DEVCIE="udp:")
    assert done.returncode == 0, done
    warning = "urma_stat: warning: the variable URMA_DEVCIE has no effect; " \
              "perhaps URMA_DEVICE is meant\n"
    assert done.stderr.startswith(warning), done
    alone = "urma_stat: warning: the variable URMA_FOO has no effect\n"
    assert run(program=STAT, URMA_FOO="1").stderr.startswith(alone)
    # Below the warning, root sees complaints about files of all users.
    assert "warning" not in run(program=STAT, URMA_TEST_X="1").stderr
    # With a log, the library says it, once.
    done = run("udp:", URMA_DEVCIE="x", URMA_LOG="warn")
    assert done.returncode == 0, done
    assert done.stderr.count("URMA_DEVCIE") == 1, done
    assert done.stderr.startswith("liburma: warning: the variable URMA_DEVCIE"), done


def test_the_log_is_written_to_stderr():
    done = run("udp:", URMA_LOG="info")
    assert done.returncode == 0, done
    assert "liburma: info: udp:: opened: " in done.stderr and done.stderr.endswith(": closed\n")
    for level in ("off", "error", "warning", "warn"):
        assert run("udp:", URMA_LOG=level).stderr == "", level


def measured(*command, **how):
    """Returns the devices that urma_perf --self has measured, and what it said."""
    done = run("--self", *command, "--json", program=PERF, **how)
    assert done.returncode == 0, done
    return {one["device"] for one in json.loads(done.stdout)["results"]}, done.stderr


def test_a_measurement_in_one_program_uses_the_chosen_device():
    """urma_perf --self opens it as urma::open() would, and says so."""
    one = ("write_lat", "--count", "20", "--rounds", "1")
    with home() as (folder, path):
        assert measured(*one, home=folder) == ({"cxl:"}, "")
        path.write_text("device = udp:127.0.0.3:0\n")
        said = f"urma_perf: device: udp:127.0.0.3:0, from {path}:1\n"
        assert measured(*one, home=folder) == ({"udp:127.0.0.3:0"}, said)
        chosen = {"home": folder, "URMA_DEVICE": "udp:"}
        said = "urma_perf: device: udp:, from URMA_DEVICE\n"
        assert measured(*one, **chosen) == ({"udp:"}, said)
        assert measured(*one, "-q", **chosen) == ({"udp:"}, "")
        assert measured(*one, "--device", "cxl:", **chosen) == ({"cxl:"}, "")
        assert measured("write_bw", "--bidirectional", "--count", "20", **chosen)[1] == said
        done = run("reg", "--self", "--size", "4K", "--seconds", "0.05", program=PERF, **chosen)
        assert done.returncode == 0 and done.stdout.startswith("udp:, us: "), done
        # The device counts where options depend on it.
        done = run("--self", "lane_write_lat", program=PERF, **chosen)
        assert done.returncode == 2 and "udp: maps no memory of peers" in done.stderr, done
        done = run("--self", *one, program=PERF, home=folder, URMA_DEVICE="upd:")
        assert done.returncode == 2 and "upd:, from URMA_DEVICE" in done.stderr, done
        done = run("--self", *one, program=PERF, home=folder, URMA_CONFIG="/nonexistent")
        assert done.returncode == 1 and done.stdout == "" and "Fix: " in done.stderr, done


def test_a_wrong_level_of_the_log_is_a_warning():
    with home() as (folder, path):
        for value, used, why in (
                ("loud", "off", '"loud" is not a level of the log'),
                ("wran", "off", "perhaps warn is meant"),
                ("info,tq=debug", "info", '"tq" is not a layer of the log'),
                ("tp=debg,engine=info", "off,engine=info", "perhaps debug is meant")):
            path.write_text(f"log = {value}\n")
            for source, how in (("URMA_LOG", {"URMA_LOG": value}),
                                (f"{path}:1", {"home": folder})):
                done = run("udp:", **how)
                assert done.returncode == 0 and "udp:" in done.stdout, done
                (warning,) = [line for line in done.stderr.splitlines() if "Fix: " in line]
                assert warning.startswith(f"liburma: warning: {source}: ") and why in warning, done
                # A log that has a level is written nevertheless.
                assert (": opened: " in done.stderr) == ("info" in used), done
                _, chosen = settings("udp:", **how)
                assert chosen["log"]["value"] == used and why in chosen["log"]["source"], chosen
        assert run(program=STAT, URMA_LOG="loud").returncode == 0


def test_layers_of_the_log_have_levels_of_their_own():
    def lines(log):
        done = run("udp:", URMA_LOG=log)
        assert done.returncode == 0, done
        return done.stderr.splitlines()
    for log, shown in (("info", 2), ("engine=info", 2), ("warning,engine=debug", 2),
                       ("info,engine=off", 0), ("debug,engine=warning", 0), ("tp=debug", 0)):
        assert len(lines(log)) == shown, (log, lines(log))
    done = run("write_bw", "--self", "--count", "3000", "--size", "4K", "--device",
               "fault(loss=10%):udp:", "--peer-device", "udp:", program=PERF, URMA_LOG="tp=debug")
    assert done.returncode == 0, done
    assert "were sent again, because" in done.stderr, done
    assert ": opened: " not in done.stderr, done


def test_the_congestion_control_of_any_program():
    device, chosen = settings("udp:", URMA_CONGESTION="caqm_r")
    (control,) = [one for one in device["settings"] if one["name"] == "congestion"]
    assert control["value"] == "caqm_r" and control["origin"] == "environment", control
    assert control["source"] == "URMA_CONGESTION" and chosen["congestion"]["value"] == "caqm_r"
    with home() as (folder, path):
        path.write_text("congestion = caqm_r\n")
        device, _ = settings("udp:", home=folder)
        (control,) = [one for one in device["settings"] if one["name"] == "congestion"]
        assert control["origin"] == "file" and control["source"] == f"{path}:1", control
        # A list shows it once.
        assert run("--config", "udp:", home=folder).stdout.count("congestion ") == 1
    done = run("write_lat", "--self", "--count", "10", "--json", "--device", "udp:", "--cc", "aimd",
               program=PERF, URMA_CONGESTION="caqm_r")
    assert done.returncode == 0 and '"caqm_r"' not in done.stdout, done


def test_packets_of_any_program_are_captured():
    with tempfile.TemporaryDirectory() as folder:
        done = run("write_lat", "--self", "--count", "10", "--device", "udp:", program=PERF,
                   URMA_CAPTURE=folder)
        assert done.returncode == 0, done
        captures = list(pathlib.Path(folder).iterdir())
        assert len(captures) == 2, captures  # of each end
        for path in captures:
            assert path.name.startswith("urma_perf-") and path.name.endswith("-1.pcapng"), captures
            assert path.stat().st_mode & 0o777 == 0o600 and path.stat().st_size > 1000, path
            assert path.read_bytes().startswith(b"\x0a\x0d\x0d\x0a"), path
        device, chosen = settings("udp:", URMA_CAPTURE=folder)
        (file,) = [one for one in device["settings"] if one["name"].endswith("pcap.file")]
        assert file["origin"] == "environment" and file["source"] == "URMA_CAPTURE", file
        assert file["value"].startswith(folder) and device["device"] == "udp:", file
        done = run("--config", "udp:?engines=2", URMA_CAPTURE=folder)
        assert done.returncode != 0 and "URMA_CAPTURE: a device with several" in done.stderr, done


def test_a_look_at_a_window_does_not_make_it():
    window = f"/dev/shm/urma-test-look-{os.getpid()}"
    for command in ((), ("--config",), ("--config", "--json")):
        done = run(*command, f"cxl:{window}")
        assert done.returncode == 0 and window in done.stdout, done
        assert "urma-info" not in done.stdout, done
        assert not os.path.exists(window), command
    assert not [name for name in os.listdir("/dev/shm") if name.startswith(".urma-info")]
    device, _ = settings(f"cxl:{window}?size=4M")
    found = {one["name"]: one for one in device["settings"]}
    assert found["window"]["value"] == window and found["window_size"]["value"] == "4M", found
    with open(window, "wb"):  # a window that exists is used
        pass
    try:
        assert run(f"cxl:{window}").returncode == 0 and os.path.getsize(window) > 0
    finally:
        os.unlink(window)
    if os.geteuid() == 0:
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            program = shutil.copy(INFO, folder)
            own = f"/dev/shm/urma-{STRANGER}"
            for command in ([], ["--config"], ["--doctor"]):
                done = subprocess.run([program, *command], capture_output=True, text=True,
                                      timeout=60, user=STRANGER, group=STRANGER, extra_groups=[],
                                      cwd="/", env={})
                assert own in done.stdout and not os.path.exists(own), (command, done)
            os.rmdir(f"/dev/shm/urma-devices-{STRANGER}")


def test_a_privileged_program_reads_no_environment():
    if os.geteuid() != 0:
        print("(skipped: only root can make a program that has its rights)")
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = shutil.copy(INFO, folder)
        os.chmod(program, 0o4755)
        done = subprocess.run([program, "--config", "--json", "udp:"], capture_output=True,
                              text=True, timeout=30, user=STRANGER, group=STRANGER,
                              extra_groups=[], cwd="/",
                              env={"URMA_DEVICE": "upd:", "URMA_LOG": "info", "URMA_X": "",
                                   "URMA_CAPTURE": folder, "URMA_CONGESTION": "none",
                                   "URMA_CONFIG": "/nonexistent"})
        if "nosuid" in subprocess.run(["findmnt", "-no", "OPTIONS", "-T", folder],
                                      capture_output=True, text=True).stdout:
            print("(skipped: set-user-ID has no effect here)")
            return
        assert done.returncode == 0 and done.stderr == "", done
        chosen = json.loads(done.stdout)["configuration"]
        values = [one["value"] for one in chosen]
        assert values == ["cxl:", "off", "default", "none", "none"], chosen


run_tests(globals())
