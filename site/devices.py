#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/devices.md from the table of drivers of a build:

    build/release/apps/urma_info/urma_info --json | site/devices.py > docs/devices.md

A test compares the two. `urma-devices(7)` is made of that document.
"""

import json
import sys
import textwrap

BEGIN = """\
# Device strings

The argument of `urma::open`, of `--device` and of `URMA_DEVICE` is a device string: the name of a
driver, a colon, and what this driver needs, such as `udp:10.0.0.5`. Options follow a question mark
and are separated by `&`: `udp:10.0.0.5?mtu=4096&ecn=yes`. A wrapper contains another device string;
its options are in parentheses and are separated by commas: `fault(loss=5%,seed=7):udp:10.0.0.5`. In
a shell, quote a string with such characters.

`urma_info DEVICE` opens a device and describes it, `urma_info --help DRIVER` prints a part of this
document, and `urma_info --config DEVICE` prints the values of all options. `site/devices.py` writes
this document from the table of the drivers.
"""


def filled(text):
    return "\n".join(textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False))


def cell(text):
    return text.replace("|", "\\|")


def form(one):
    """Returns what the document says of one way to write a driver's device strings."""
    kind = "a wrapper; " if one["wraps"] else ""
    lines = [filled(f"`{one['form']}`: {one['meaning']} ({kind}for example `{one['device']}`)."),
             ""]
    options = one.get("options", [])
    # Options of both directions have the same meaning.
    options = [each for each in options if not each["key"].startswith("in.")]
    if options:
        lines += ["| option | values | default | meaning |", "|---|---|---|---|"]
        lines += [f"| `{each['key']}=` | {cell(each['values'])} | {cell(each['default'])} "
                  f"| {cell(each['meaning'])} |" for each in options]
        lines.append("")
    return lines


def document(devices):
    """Returns the document, from the devices that urma_info --json lists."""
    lines = ["\n\n".join(filled(part) for part in BEGIN.split("\n\n")), ""]
    for driver in dict.fromkeys(each["driver"] for each in devices):
        forms = [each for each in devices if each["driver"] == driver]
        summary = forms[0]["summary"]
        lines += [f"## {driver}", "", filled(summary[0].upper() + summary[1:] + "."), ""]
        for each in forms:
            lines += form(each)
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    sys.stdout.write(document(json.load(sys.stdin)["devices"]))
