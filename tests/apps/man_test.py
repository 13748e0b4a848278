#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the man pages have exactly the options that the tools have? man_test.py ROOT TOOL...

Compares the options of each page with the tool's help, and the device strings that urma_info(1)
and docs/devices.md list with the table of drivers that this build has.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

from running import help_of

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "site"))
from devices import document  # noqa: E402
LONG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
SECTIONS = ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "FILES", "EXAMPLES",
            "SEE ALSO")
IMPLIED = {"--help"}  # not every help names itself


def device_strings_of(page):
    """Returns the text of the page under DEVICE, as one line."""
    entry = re.search(r"^\.B DEVICE\n(.*?)^\.", page.replace("\\-", "-"), re.MULTILINE | re.DOTALL)
    assert entry, "the page has no entry DEVICE"
    return " ".join(entry.group(1).split())


def check_drivers(urma_info, page):
    """Checks that the page lists every form of every driver, in the order of the table."""
    listed = json.loads(subprocess.run([urma_info, "--json"], capture_output=True, text=True,
                                       timeout=20, check=True).stdout)
    forms = list(dict.fromkeys(device["form"] for device in listed["devices"]))
    assert len(forms) >= len({device["driver"] for device in listed["devices"]}) >= 5, forms
    assert (ROOT / "docs/devices.md").read_text(encoding="utf-8") == document(listed["devices"]), (
        "docs/devices.md differs from the table of the drivers. Fix: "
        f"{urma_info} --json | site/devices.py > docs/devices.md")
    wanted, has = ", ".join(forms), device_strings_of(page)
    assert has == wanted, f"urma_info.1: DEVICE is\n  {has}\nbut the drivers accept\n  {wanted}"


def warnings_of(page):
    if not shutil.which("groff"):
        return ""
    return subprocess.run(["groff", "-ww", "-man", "-Tutf8", "-z", page], capture_output=True,
                          text=True, timeout=20).stderr


def main():
    assert sys.argv[2:], "no tools were given"
    for tool in sys.argv[2:]:
        page = ROOT / "docs/man" / (pathlib.Path(tool).name + ".1")
        text = page.read_text(encoding="utf-8")
        told = set(LONG.findall(text.replace("\\-", "-")))
        has = set(LONG.findall(help_of(tool)))
        assert len(has) > 1, f"{tool}: no options found in its help"
        assert told | IMPLIED == has | IMPLIED, f"{page}: lacks {has - told}, invents {told - has}"
        sections = [line[4:].strip() for line in text.splitlines() if line.startswith(".SH ")]
        assert [one for one in sections if one in SECTIONS] == list(SECTIONS), (page, sections)
        assert warnings_of(page) == "", warnings_of(page)
        if page.stem == "urma_info":
            check_drivers(tool, text)


main()
