# SPDX-License-Identifier: Apache-2.0
"""Runs programs as an ordinary user, also if the test runs as root."""

import os
import subprocess

NOBODY = 65534


def ordinary_user(folder, program):
    """Returns a directory of the user in `folder`, and what goes in front of the words of the
    program. Returns None if this user may not run the program, because it lies in root's home."""
    home = folder / "ordinary"
    home.mkdir(mode=0o700)
    if os.geteuid() != 0:
        return home, ()
    os.chown(home, NOBODY, NOBODY)
    before = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "env",
              f"XDG_RUNTIME_DIR={home}")
    if subprocess.run([*before, "test", "-x", program], check=False).returncode == 0:
        return home, before
    print(f"skipped: an ordinary user may not run {program}", flush=True)
    return None
