# SPDX-License-Identifier: Apache-2.0
"""Writes the results as Markdown: medians over the rounds, ratios within each, and the machine.

A run is a dict: key, round, good (it waited little for a processor), and its figures.
"""

import math
import os
import platform
import re
import subprocess
import textwrap

from cases import LATENCY, RATE
from programs import CURE, CURES, first_line



# ---- figures


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    if not values:
        return None
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def good(runs, key):
    return [run for run in runs if run["key"] == key and run["good"]]


def typical(runs, key, field):
    return median([run[field] for run in good(runs, key)])


def spread(values):
    """Returns (median, least, most), or None without values."""
    return (median(values), min(values), max(values)) if values else None


def times_limit(runs, key):
    return spread([run["times_limit"] for run in good(runs, key)])


def times_peer(runs, ours, peer, by):
    """How many times slower liburma is, in each round in which both results are valid."""
    peers = {run["round"]: run[by] for run in good(runs, peer)}
    both = [(run[by], peers[run["round"]]) for run in good(runs, ours) if run["round"] in peers]
    return spread([one / other if by == LATENCY else other / one for one, other in both])


# ---- as text


def three_digits(value):
    if value <= 0:
        return "0"
    return "%.*f" % (max(0, 2 - math.floor(math.log10(value))), value)


def amount(value, by):
    if value is None:
        return "-"
    if by == LATENCY and value < 0.1:
        return "%.3f us" % value  # nothing shorter than a nanosecond is measured
    unit, scale = {LATENCY: (" us", 1), RATE: (" M/s", 1e6)}.get(by, (" GB/s", 1e9))
    return three_digits(value / scale) + unit


def ratio(values):
    return "%s (%s..%s)" % tuple(map(three_digits, values)) if values else "-"


def bound(row, value, times):
    """Returns the bound of the row, and whether the row keeps it. `times`: the limit, or the first
    peer."""
    if row.most_times is not None:
        text, kept = "%g" % row.most_times, times and times[0] <= row.most_times
    elif row.least_rate is not None:
        text, kept = "%g M/s" % (row.least_rate / 1e6), value and value >= row.least_rate
    elif row.most_times_peer is not None:
        text = "%g times %s" % (row.most_times_peer, row.peers[0].name())
        kept = times and times[0] <= row.most_times_peer
    else:
        return ""
    return text + ("" if kept is None else ": kept" if kept else ": **missed**")


def item(line):
    """Returns one item of a list, wrapped."""
    return textwrap.fill(line, 118, initial_indent="- ", subsequent_indent="  ",
                         break_long_words=False, break_on_hyphens=False)


def table(head, lines):
    return ["| %s |" % " | ".join(head), "|" + "---|" * len(head),
            *("| %s |" % " | ".join(line) for line in lines)]


def limits_table(rows, runs):
    lines = []
    for row in rows:
        value, times = typical(runs, row.name, row.by), times_limit(runs, row.name)
        judged = times
        if row.most_times_peer is not None:
            judged = times_peer(runs, row.name, peer_key(row, row.peers[0]), row.by)
        patterns = [run["limit_pattern"] for run in good(runs, row.name)] or ["-"]
        lines.append([row.name, amount(value, row.by),
                      amount(typical(runs, row.name, "limit_" + row.by), row.by), patterns[0],
                      ratio(times), bound(row, value, judged)])
    return table(["work", "liburma", "raw limit", "limit by", "times the limit", "bound"], lines)


def peer_key(row, peer):
    return "%s / %s" % (row.name, peer.name())


def peers_table(rows, runs):
    lines = []
    for row in rows:
        ours = amount(typical(runs, row.name, row.by), row.by)
        for peer in row.peers:
            key = peer_key(row, peer)
            if any(run["key"] == key for run in runs):
                lines.append([row.name, ours, peer.name(), amount(typical(runs, key, row.by),
                                                                  row.by),
                              ratio(times_peer(runs, row.name, key, row.by))])
    return table(["work", "liburma", "peer", "", "times the peer"], lines) if lines else []


# ---- the machine


def said(*command):
    """Returns the output of a command; empty if it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def chosen(line):
    found = re.search(r"\[(\w+)\]", line)
    return found.group(1) if found else line


def processor(name):
    """Returns this field of /proc/cpuinfo."""
    with open("/proc/cpuinfo") as file:
        found = re.search(r"^%s\s*: (.*)$" % name, file.read(), re.MULTILINE)
    return found.group(1) if found else "unknown"


def machine():
    here = os.path.dirname(os.path.abspath(__file__))
    pages = "/sys/kernel/mm/transparent_hugepage/"
    return {
        "processor": "%s, family %s, model %s, %s MHz, cache %s" % tuple(map(
            processor, ("model name", "cpu family", "model", "cpu MHz", "cache size"))),
        "processors": os.cpu_count(),
        "virtual machine": "hypervisor" in processor("flags").split(),
        "kernel": platform.release(),
        "huge pages": "%s, of shared memory %s" % tuple(
            chosen(first_line(pages + name)) for name in ("enabled", "shmem_enabled")),
        "liburma": said("git", "-C", here, "describe", "--always", "--dirty"),
        "UCX": said("ucx_info", "-v").split("\n")[0].removeprefix("# Version "),
        "libfabric": said("fi_info", "--version").split("\n")[0].removeprefix("fi_info: "),
        "DPDK": said("pkg-config", "--modversion", "libdpdk"),
    }


def steal():
    """(stolen by the hypervisor, total) time of all processors, in hundredths of seconds."""
    fields = [int(word) for word in first_line("/proc/stat").split()[1:]]
    return fields[7], sum(fields[:8])


def machine_text(whole):
    about = whole["machine"]
    yield "%s; %d processors, %s; kernel %s; huge pages: %s." % (
        about["processor"], about["processors"],
        "a virtual machine" if about["virtual machine"] else "no virtual machine", about["kernel"],
        about["huge pages"])
    yield "liburma %s, UCX %s, libfabric %s, DPDK %s. Server on processor %d, client on %d%s." % (
        about["liburma"] or "unknown", about["UCX"] or "not installed",
        about["libfabric"] or "not installed", about["DPDK"] or "not installed", *whole["pinned"],
        ", in namespaces of their own" if whole["own_namespaces"] else "")
    yield "%s, %d rounds of %g s, %.0f s in all; load %s before, %s after; %.1f %% stolen." % (
        whole["date"], whole["rounds"], whole["seconds"], whole["took"], *whole["load"],
        whole["stolen_percent"])
    runs = whole["runs"]
    bad = sum(not run["good"] for run in runs)
    yield ("%d of %d runs were discarded, because they waited for a processor more than %g %% of "
           "their time; median wait %.1f %%." % (
               bad, len(runs), whole["most_wait"],
               median([run["wait_percent"] for run in runs]) or 0))


def markdown(whole, rows):
    runs = whole["runs"]
    about = [*machine_text(whole), *("Missing: " + line for line in whole["missing"])]
    parts = ["    " + whole["command"], "", *map(item, about), "", *limits_table(rows, runs)]
    beside = peers_table(rows, runs)
    return "\n".join(parts + ([""] + beside if beside else [])) + "\n"


def missing_text(program):
    return "%s is not installed, its rows are left out. Fix: %s" % (program,
                                                                    CURES.get(program, CURE))


def marks():
    """Returns the lines of a page between which the figures of this processor's vendor are."""
    known = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD"}
    vendor = known.get(processor("vendor_id"), platform.machine())
    return tuple("<!-- bench/compare, %s: %s -->" % (vendor, which) for which in ("begin", "end"))


def put_into(page, text):
    """Returns the page with `text` between its two marks, or None if a mark is missing."""
    before, after = marks()
    begin, end = page.find(before), page.find(after)
    if begin < 0 or end < begin:
        return None
    return page[:begin + len(before)] + "\n" + text + page[end:]
