# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel: CMake builds the module, which contains the library.

    python3 -m pip wheel --no-build-isolation --no-deps -w build python/

URMA_BUILD_DIR names a build tree of CMake for this interpreter, which saves building the library.
"""

import os
import pathlib
import re
import subprocess
import sys

import setuptools
from setuptools.command.build_ext import build_ext

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = ROOT / "build" / "wheel"
VERSION = re.search(r"project\(urma VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


class ByCMake(build_ext):
    def build_extension(self, ext):
        given = os.environ.get("URMA_BUILD_DIR")
        tree = pathlib.Path(given).resolve() if given else BUILD / "cmake"
        if not given:
            subprocess.run(
                ["cmake", "-S", ROOT, "-B", tree, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                 "-DBUILD_TESTING=OFF", "-DURMA_WITH_PYTHON=ON",
                 f"-DURMA_PYTHON={sys.executable}"], check=True)
        subprocess.run(["cmake", "--build", tree, "--target", "urma_python"], check=True)
        target = pathlib.Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        built = tree / "python/package/urma" / target.name
        if not built.exists():
            sys.exit(f"setup.py: {built} was not built: the tree is for another Python. "
                     f"Fix: cmake {tree} -DURMA_PYTHON={sys.executable}")
        self.copy_file(str(built), str(target))


os.chdir(HERE)
BUILD.mkdir(parents=True, exist_ok=True)
setuptools.setup(
    name="urma",
    version=VERSION,
    description="The Unified Bus programming model in user space",
    license="Apache-2.0",
    python_requires=">=3.9",
    packages=["urma"],
    package_data={"urma": ["*.pyi", "py.typed"]},
    ext_modules=[setuptools.Extension("urma._urma", sources=[])],
    cmdclass={"build_ext": ByCMake},
    options={"build": {"build_base": str(BUILD)}, "egg_info": {"egg_base": str(BUILD)}},
)
