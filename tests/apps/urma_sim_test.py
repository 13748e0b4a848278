#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests urma_sim as people and scripts use it: urma_sim_test.py URMA_SIM"""

import json
import subprocess
import sys

from running import run_tests

PROGRAM = sys.argv[1]
SHORT = ("--duration", "400")
# The fields of schema urma_sim/1.
KEYS = """schema scenario topology cc cc_in_effect meter hosts senders bits_per_second rtt_us
message_bytes lanes flow_bytes seed complete utilisation jain off_fair last_over_ideal completion_us
slowdown join_rounds leave_rounds queue marked congested dropped packets retransmitted timeouts
flows trace_hash virtual_us seconds virtual_us_per_second""".split()


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=100)


def simulated(*arguments):
    done = run("--json", *arguments)
    assert done.returncode == 0, done
    result = json.loads(done.stdout)
    assert sorted(result) == sorted(KEYS), result
    assert result["schema"] == "urma_sim/1"
    assert result["cc_in_effect"] == result["cc"], result
    return result


def test_each_incast_without_an_end():
    for scenario, meter in (("I1", "caqm_r"), ("I2", "caqm_r"), ("M1", "caqm_r"), ("X1", "caqm_r"),
                            ("X2", "none"), ("X3", "none")):
        result = simulated("--scenario", scenario, "--cc", "caqm_r", *SHORT)
        assert result["meter"] == meter, result
        assert 0.7 < result["utilisation"] <= 1, result
        assert result["jain"] > 0.5, result
        assert result["retransmitted"] == 0 and result["dropped"] == 0, result
        histogram = result["queue"]["histogram"]
        assert sum(row["samples"] for row in histogram) > 1000, result
        assert (result["congested"] > 0) == (meter != "none"), result


def test_marks_of_ecn_slow_both_forms_of_c_aqm():
    """X2 and X3 have no port meter; they differ in marks alone."""
    for cc in "caqm_w", "caqm_r":
        without, marks = (simulated("--scenario", scenario, "--cc", cc, *SHORT)
                          for scenario in ("X2", "X3"))
        assert marks["marked"] > without["marked"] == 0, (without, marks)
        assert marks["flows"] != without["flows"], marks


def test_scenarios_that_are_the_same_run():
    """bench/congestion makes the second of each pair once, for both rows (`twin_of`)."""
    for first, second in (("X2 aimd", "I1 aimd"), ("X2 ldcp", "I1 ldcp"), ("X2 dcqcn", "I1 dcqcn"),
                          ("X3 aimd", "I1 aimd"), ("X2 caqm_r", "X2 caqm_w"),
                          ("X3 caqm_r", "X3 caqm_w")):
        one, other = (simulated("--scenario", scenario, "--cc", cc, *SHORT)["trace_hash"]
                      for scenario, cc in (first.split(), second.split()))
        assert one == other, (first, second)


def test_flows_that_end():
    result = simulated("--scenario", "I3", "--cc", "caqm_r", "--senders", "4", "--flow", "512K")
    assert result["complete"] and 1 <= result["last_over_ideal"] < 1.5, result
    assert len(result["flows"]) == 4
    for flow in result["flows"]:
        assert flow["completion_us"] > 0 and flow["slowdown"] >= 1, flow
    assert result["slowdown"]["p50"] <= result["slowdown"]["p99"] <= result["slowdown"]["most"]
    assert simulated("--scenario", "I3", "--cc", "caqm_r")["complete"]
    late = simulated("--scenario", "I3", "--duration", "20")
    assert not late["complete"] and late["slowdown"]["p50"] is None, late


def test_one_flow_alone():
    """Timers expire up to 1.024 us late, in which three packets leave, or 12 at 400 Gb/s."""
    for scenario in "I1", "I2":
        for message in "4K", "64K":
            result = simulated("--scenario", scenario, "--cc", "caqm_r", "--senders", "1",
                               "--message", message)
            assert result["utilisation"] > 0.93, result


def test_flows_join_and_leave():
    result = simulated("--scenario", "J1", "--cc", "caqm_w", "--senders", "2")
    assert result["join_rounds"] is not None and result["leave_rounds"] is not None, result
    rates = simulated("--scenario", "J1", "--cc", "caqm_r")
    assert rates["join_rounds"] <= 15 and rates["leave_rounds"] <= 20, rates


def test_a_parking_lot():
    result = simulated("--scenario", "L1", "--cc", "caqm_r")
    assert result["topology"] == "parking" and len(result["flows"]) == 8, result
    assert result["flows"][0]["fair_share"] == 0.2
    assert result["off_fair"] <= 0.12, result
    assert result["jain"] > 0.99, result  # of shares, which are fair, not of rates


def test_small_messages_beside_bulk():
    """Flows that have little to send do not hold the others back."""
    for cc in "caqm_r", "caqm_w":
        for senders in "12", "52", "202":
            result = simulated("--scenario", "S1", "--cc", cc, "--senders", senders)
            assert result["utilisation"] > 0.9 and result["jain"] > 0.98, result
            assert result["queue"]["p99_packets"] < 30, result
            small = [flow["bits_per_second"] for flow in result["flows"][2:]]
            assert 19e9 < sum(small) < 20.5e9, result
    tiny = simulated("--scenario", "S1", "--message", "64", "--senders", "12", "--cc", "caqm_r")
    assert 17e9 < sum(flow["bits_per_second"] for flow in tiny["flows"][2:]) < 20.5e9, tiny
    alone = simulated("--scenario", "S1", "--senders", "1", "--cc", "caqm_r", *SHORT)
    assert alone["off_fair"] < 0.1, alone


def test_two_tiers():
    result = simulated("--scenario", "I1", "--cc", "caqm_r", "--topology", "leaf_spine",
                       "--senders", "12", *SHORT)
    assert result["utilisation"] > 0.7 and result["dropped"] == 0, result


def test_lanes():
    """The highest lane has the line, and the others wait in short queues, one in each lane."""
    result = simulated("--scenario", "I1", "--cc", "caqm_r", "--lanes", "2")
    rates = [flow["bits_per_second"] for flow in result["flows"]]
    assert min(rates[1::2]) > 10 * max(rates[0::2]) > 0, result
    assert result["utilisation"] > 0.9 and result["dropped"] == 0, result
    assert result["queue"]["most_packets"] < 50, result
    result = simulated("--scenario", "I3", "--cc", "caqm_r", "--rate", "10Gbit", "--rtt", "100",
                       "--lanes", "4")
    assert result["queue"]["p999_packets"] <= result["queue"]["most_packets"], result


def test_many_that_begin_at_once():
    """Only the first packets of all queue at a port that was idle before."""
    result = simulated("--scenario", "I1", "--cc", "caqm_r", "--senders", "128", *SHORT)
    assert 120 < result["queue"]["most_packets"] <= 136, result


def test_slow_cables():
    """Without --duration, each flow is measured long enough to send many works, whatever the rate,
    and only what was delivered in that time counts."""
    for rate, cc in (("100Mbit", "aimd"), ("100Mbit", "caqm_r"), ("1Gbit", "aimd")):
        for message in "16K", "1M":
            result = simulated("--scenario", "I1", "--rate", rate, "--rtt", "1000", "--cc", cc,
                               "--message", message)
            assert 0.85 < result["utilisation"] <= 1, result
            assert result["packets"] > 9000, result
    fair = simulated("--scenario", "I1", "--rate", "100Mbit", "--rtt", "1000", "--cc", "caqm_r",
                     "--senders", "128")
    assert fair["jain"] > 0.99 and fair["utilisation"] > 0.7, fair
    lost = run("--scenario", "I1", "--rate", "100Mbit", "--rtt", "1000", "--senders", "128")
    assert lost.returncode == 1 and not lost.stdout, lost
    assert "dropped too many packets" in lost.stderr and "fewer --senders" in lost.stderr, lost


def test_a_first_queue_longer_than_a_time_out():
    """The first packets of 32 senders wait longer than a time-out in the queue, and are sent again,
    although none is lost. Later packets are sent once."""
    result = simulated("--scenario", "I1", "--rate", "100Mbit", "--rtt", "1000", "--senders", "32",
                       "--duration", "250000", "--cc", "caqm_r")
    assert result["utilisation"] > 0.6, result
    assert 2 * result["retransmitted"] < result["packets"], result


def test_the_order_of_controls():
    """As in the model of flows (tests/congestion): hints, then marks, then loss."""
    queues = [simulated("--scenario", "I1", "--cc", cc)["queue"]["p99_bytes"]
              for cc in ("caqm_r", "ldcp", "aimd")]
    assert queues == sorted(queues) and queues[0] < queues[2], queues


def test_the_same_run_again():
    hashes = {run("--scenario", "I1", "--cc", "caqm_r", "--trace-hash", "--seed", seed,
                  *SHORT).stdout for seed in ("1", "1", "2")}
    assert len(hashes) == 2 and all(len(one.strip()) == 16 for one in hashes), hashes


def test_the_table():
    done = run("--scenario", "I1", *SHORT)
    assert done.returncode == 0 and "utilisation" in done.stdout, done
    assert "us of virtual time in" in done.stdout and "trace hash" in done.stdout, done


def test_bad_options():
    for arguments, fix in (((), "give one of I1, I2, I3, J1, L1, M1, S1, X1, X2, X3"),
                           (("--scenario", "I9"), "I1, I2, I3"),
                           (("--scenario", "I1", "--cc", "reno"), "aimd"),
                           (("--scenario", "I1", "--topology", "ring"), "star, parking"),
                           (("--scenario", "I1", "--topology", "parking"), "star or leaf_spine"),
                           (("--scenario", "L1", "--senders", "4"), "leave --senders out"),
                           (("--scenario", "J1", "--senders", "100"), "give 1 to 16"),
                           (("--scenario", "I1", "--flow", "1M"), "--scenario I3"),
                           (("--scenario", "I3", "--flow", "100K"), "multiple of --message"),
                           (("--scenario", "I1", "--rate", "fast"), "100Mbit to 800Gbit"),
                           (("--scenario", "I1", "--rate", "100Mbit"), "at least 666"),
                           (("--scenario", "I1", "--senders", "0"), "1 to 1000"),
                           (("--scenario", "I1", "--lanes", "17"), "1 to 16")):
        done = run(*arguments)
        assert done.returncode == 2 and not done.stdout, done
        assert done.stderr.startswith("urma_sim: ") and fix in done.stderr, done


run_tests(globals())
