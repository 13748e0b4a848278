# SPDX-License-Identifier: Apache-2.0
"""Shared by the tidy scripts: the files of a tree, C++ without its comments, and self-tests."""

import argparse
import os
import pathlib
import re
import sys
import tempfile

CPP = (".h", ".hpp", ".cc")
HEADERS = (".h", ".hpp")
# What is installed, or part of it.
LIBRARY = ("api/", "base/", "congestion/", "drivers/", "engine/", "jetty/", "memseg/", "ordering/",
           "transport/", "urma/", "wire/")
# One of the dot directories belongs to the project; build outputs do not.
KEPT_DOT_DIRECTORIES = (".ci",)
KEPT_DOT_FILES = (".clang-format", ".clang-tidy", ".gitignore")
C_API = "umdk/include/"
OUTPUTS = ("build", "__pycache__")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.directories = []
        self.files = []
        self._texts = {}
        self._includes = {}
        self._walk(self.root)

    def _walk(self, directory):
        for entry in sorted(directory.iterdir()):
            path = entry.relative_to(self.root).as_posix()
            if entry.is_dir():
                hidden = entry.name.startswith(".") and entry.name not in KEPT_DOT_DIRECTORIES
                if hidden or entry.name in OUTPUTS:
                    continue
                self.directories.append(path)
                self._walk(entry)
            elif not entry.name.startswith(".") or entry.name in KEPT_DOT_FILES:
                self.files.append(path)

    def named(self, *suffixes):
        return [path for path in self.files if path.endswith(suffixes)]

    def cmake(self):
        return [p for p in self.files if p.endswith((".cmake", "CMakeLists.txt"))]

    def text(self, path):
        if path not in self._texts:
            self._texts[path] = (self.root / path).read_text(encoding="utf-8", errors="replace")
        return self._texts[path]

    def lines(self, path):
        return self.text(path).split("\n")

    def _named(self, path, name):
        """Returns an included name from the top of the tree. The headers of the C API include each
        other as they are installed, in one directory."""
        beside = os.path.join(os.path.dirname(path), name)
        return beside if path.startswith(C_API) and beside in self.files else name

    def includes(self, path):
        """Yields (line, name, whether it is in quotes) of each include, in order."""
        if path not in self._includes:
            text = self.text(path)
            self._includes[path] = [
                (text.count("\n", 0, found.start()) + 1, self._named(path, found.group(2)),
                 found.group(1) == '"')
                for found in INCLUDE.finditer(text)]
        return self._includes[path]


_NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)


def code_of(text):
    """Returns C++ with comments and literals replaced by blanks, with the same lines and
    columns."""
    # A digit separator is not a quote.
    text = re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "0", text)
    return _NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


# ---- running and self-testing


def expect(check, files, *fragments):
    """Compares the problems that `check` finds in a tree of these files with the expected ones."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            target = pathlib.Path(root, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                target.mkdir(exist_ok=True)
            else:
                target.write_text(text, encoding="utf-8")
        found = check(Tree(root))
    missed = [f for f in fragments if not any(f in problem for problem in found)]
    if missed or len(found) != len(fragments):
        sys.exit("self-test: expected %r, found %r" % (list(fragments), found))


def main(question, check, self_test, arguments=()):
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--self-test", action="store_true")
    for name, keywords in arguments:
        parser.add_argument(name, **keywords)
    options = parser.parse_args()
    if options.self_test:
        self_test(options) if arguments else self_test()
        print("self-test passed")
        return
    tree = Tree(options.root)
    problems = check(tree, options) if arguments else check(tree)
    for problem in problems:
        print(problem)
    if problems:
        sys.exit("%d problem%s" % (len(problems), "s" if len(problems) > 1 else ""))
    print("%d files, no problem" % len(tree.files))
