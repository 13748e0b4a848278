#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the programs of the documents, the examples, an installed package and a wheel work?"""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import urma

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ["URMA_BUILD_DIR"]
EXAMPLES = ROOT / "python/examples"
HAS_NUMPY = importlib.util.find_spec("numpy") is not None
NO_NUMPY = "numpy is not installed (apt-get install python3-numpy)"
WHEEL_PARTS = ("pip", "setuptools", "wheel")


def run(*command, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=150, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


class ProgramsTest(unittest.TestCase):
    def test_blocks_of_the_document(self):
        text = (ROOT / "docs/python.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        said = [run(sys.executable, "-c", block) for block in blocks
                if HAS_NUMPY or "numpy" not in block]
        self.assertIn("42 b'hello'\n", said)
        self.assertIn("message 0\nmessage 1\nmessage 2\n", said)
        self.assertEqual("256.0 1048576\n" in said, HAS_NUMPY)

    @unittest.skipUnless(HAS_NUMPY, NO_NUMPY)
    def test_kv_blocks(self):
        self.assertIn("12 blocks of 65536 bytes are correct",
                      run(sys.executable, EXAMPLES / "kv_blocks.py", 12))

    def test_notify(self):
        self.assertEqual(run(sys.executable, EXAMPLES / "notify.py"), "hello\nlisteners\n")

    def test_speed(self):
        for device, kinds in (("cxl:", 4), ("udp:", 3)):
            said = run(sys.executable, EXAMPLES / "speed.py", device, 50, PATH="/nowhere")
            self.assertEqual(len(re.findall(r"^.* of .* [\d.e+-]+ (?:us|GB/s)", said, re.M)), kinds)
            self.assertIn("urma_perf is not in PATH", said)

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "no mypy (apt-get install mypy)")
    def test_mypy_accepts_hints_and_examples(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(urma.__file__).parent
            run(sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder,
                package / "__init__.pyi")
            run(sys.executable, "-m", "mypy", "--check-untyped-defs", "--cache-dir", folder,
                EXAMPLES / "notify.py", MYPYPATH=str(package.parent))
            wrong = pathlib.Path(folder, "wrong.py")
            wrong.write_text("import urma\nurma.open().allocate('1')\n")
            done = subprocess.run(
                [sys.executable, "-m", "mypy", "--cache-dir", folder, wrong], check=False,
                env={**os.environ, "MYPYPATH": str(package.parent)}, capture_output=True,
                text=True)
            self.assertIn('incompatible type "str"; expected "int"', done.stdout)

    def check_package(self, folder):
        said = run(sys.executable, "-c",
                   "import urma\nwith urma.open() as d: s = d.allocate(8)\nprint(urma.__file__)",
                   PYTHONPATH=str(folder))
        self.assertTrue(pathlib.Path(said.strip()).is_relative_to(folder))

    def test_installed(self):
        with tempfile.TemporaryDirectory() as folder:
            run("cmake", "--install", BUILD, "--component", "python", "--prefix", folder)
            self.check_package(next(pathlib.Path(folder).rglob("urma")).parent)

    @unittest.skipUnless(all(map(importlib.util.find_spec, WHEEL_PARTS)),
                         "no pip, setuptools or wheel (apt-get install python3-pip "
                         "python3-setuptools python3-wheel)")
    def test_wheel(self):
        with tempfile.TemporaryDirectory() as folder:
            run(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps",
                "--no-index", "-w", folder, ROOT / "python")
            wheel, = pathlib.Path(folder).glob("urma-*.whl")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)
            self.assertTrue((pathlib.Path(folder) / "urma/py.typed").exists())
            needed = run("readelf", "-d", *pathlib.Path(folder).glob("urma/_urma*.so"))
            self.assertNotIn("liburma", "".join(re.findall(r"NEEDED.*", needed)))
            self.check_package(pathlib.Path(folder))
            self.assertFalse((ROOT / "python/build").exists())


if __name__ == "__main__":
    if shutil.which("cmake") is None:
        sys.exit(77)
    unittest.main()
