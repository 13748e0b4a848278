#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `urma_perf --cc` with each congestion control: cc_test.py PATH_TO_URMA_PERF"""

import json
import os
import subprocess
import sys
import tempfile

from running import run_tests

PERF = sys.argv[1]
HOSTS = [f"127.4.{os.getpid() % 250}.{n}" for n in (1, 2)]
CONTROLS = ["aimd", "fixed", "ldcp", "dcqcn", "caqm_w", "caqm_r"]


def run(control, *options, fault=""):
    """Returns the exit code, the results, and the text on stderr. `fault`: around the client."""
    done = subprocess.run(
        [PERF, "write_bw", "--self", "--count", "50", "--size", "64K", "--json", "--cc", control,
         "--device", f"{fault}udp:{HOSTS[0]}{options[0]}",
         "--peer-device", f"udp:{HOSTS[1]}{options[1]}"],
        capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


def test_each_control_moves_bytes():
    for control in CONTROLS:
        code, whole, errors = run(control, "?ecn=yes", "?ecn=yes")
        assert code == 0, (control, errors)
        result = whole["results"][0]
        assert result["wrong"] == 0 and result["bytes_per_second"] > 0, (control, result)
        assert result["counters"]["client_channels_lost"] == 0, (control, result)
        # caqm_w gives way to ldcp here, which does not pace.
        paced = result["counters"]["client_paced_packets"]
        assert paced >= result["counters"]["client_paced_trains"], (control, result)
        assert (paced > 0) == (control in ("dcqcn", "caqm_r")), (control, result)
        # Only switches grant increases, and plain UDP reaches none.
        device = whole["environment"]["device"]
        gives_way = "congestion ldcp (warning: caqm_w needs switches" in device
        assert gives_way == (control == "caqm_w"), (control, device)
        assert ("Fix: " in errors) == (control == "caqm_w"), (control, errors)


def test_marks_over_udp():
    """A slow line marks, the IP header carries the marks, and the receiver counts them."""
    for control in ("ldcp", "caqm_r"):
        code, whole, errors = run(control, "?ecn=yes", "?ecn=yes",
                                  fault="fault(rate=1Gbit,mark=16K,queue=4M):")
        assert code == 0, (control, errors)
        result = whole["results"][0]
        assert result["wrong"] == 0 and result["bytes_per_second"] > 0, (control, result)
        assert result["counters"]["server_packets_marked"] > 0, (control, result)
        assert result["counters"]["client_channels_lost"] == 0, (control, result)


def test_a_peer_that_cannot_report():
    """The channel then uses the default, and the peer says what it lacks."""
    for control in ("ldcp", "dcqcn"):
        code, whole, errors = run(control, "?ecn=yes", "")
        assert code == 0, (control, errors)
        assert whole["results"][0]["wrong"] == 0, (control, whole["results"][0])
        peer = whole["environment"]["peer_device"]
        assert f"congestion aimd (warning: {control} needs" in peer, (control, peer)
        assert "ecn=yes" in errors, (control, errors)


def test_c_aqm_that_reads_delays_alone():
    """Without marks and switches the guard of caqm_r needs nothing of the peer."""
    for control in ("caqm_r", "caqm_w"):
        for peers in ("", "?ecn=yes"):
            code, whole, errors = run(control, "", peers)
            assert code == 0, (control, peers, errors)
            result = whole["results"][0]
            assert result["wrong"] == 0, (control, result)
            assert result["counters"]["client_paced_packets"] > 0, (control, result)
            said = "congestion caqm_r (warning: caqm_w needs" in whole["environment"]["device"]
            assert said == (control == "caqm_w"), (control, whole["environment"])


def test_an_unknown_name():
    code, _, errors = run("nosuch", "", "")
    assert code == 2, errors
    assert "Fix: use one of " + ", ".join(CONTROLS) in errors, errors


# A name that another test publishes would be found here, and the reverse.
with tempfile.TemporaryDirectory() as names:
    os.environ["XDG_RUNTIME_DIR"] = names
    run_tests(globals())
