#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the reference have every public declaration, and each with its documentation?
reference_test.py ROOT

Reads the public headers as the site does, compares what it finds with the symbols that the shared
library exports, and tries the reader on headers with gaps.
"""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "site"))

import declarations  # noqa: E402

SKIPPED = 77


def undocumented(found):
    return [f"{one.path}:{one.line}: {one.full} has no comment. Fix: write one above it"
            for header in found.values() for one in header
            if one.kind != "note" and not one.special and not one.comment]


def exported():
    """Yields the names of the functions that the shared library exports."""
    symbols = (ROOT / "tests/install/symbols.txt").read_text(encoding="utf-8")
    plain = subprocess.run(["c++filt"], input=symbols, capture_output=True, text=True, check=True)
    for line in plain.stdout.splitlines():
        name = line.split("(")[0].split("[")[0].split()[-1]
        # The library exports what inline functions call, and what a friend makes.
        if name.startswith("urma::") and "::detail::" not in name:
            yield name


def check_headers():
    found = declarations.read_declarations(ROOT)
    names = {one.full for header in found.values() for one in header if one.kind != "note"}
    assert len(names) > 500, len(names)
    problems = undocumented(found)
    problems += [f"the reference lacks {name}, which the library exports"
                 for name in exported() if name not in names and not is_private(name)]
    assert not problems, "\n".join(problems)


def is_private(name):
    """Whether only inline functions of the class call it."""
    return name in ("urma::Lane::operate", "urma::Jfce::Jfce")


def read(text):
    """Returns what the reader finds in a header with this text."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "cmake").mkdir()
        (root / "urma").mkdir()
        (root / "cmake/install.cmake").write_text("set(public_headers\n)\n", encoding="utf-8")
        (root / "urma/a.hpp").write_text("#pragma once\n\nnamespace urma {\n\n" + text +
                                         "\n}  // namespace urma\n", encoding="utf-8")
        return declarations.read_declarations(root)


def check_reader():
    text = """// A class.
class A {
 public:
  // Makes it.
  explicit A(int value);
  A(A&&) noexcept;
  ~A();

  // These two share a comment.
  template <class T>
  int f(T first, int second = {}) const {
    return second;
  }
  int g();

  int lonely();
  int field = 0;  // behind it
  int bare = 0;
  // Short.
  enum class S { x, y };

 private:
  int hidden();
};
// Values.
enum class E : int {
  one,  // the first
  two,
};
namespace detail {
int h();
}
"""
    found = read(text)
    shown = {one.full: one for one in found["urma/a.hpp"]}
    assert set(shown) == {"urma::A", "urma::A::A", "urma::A::~A", "urma::A::f", "urma::A::g",
                          "urma::A::lonely", "urma::A::field", "urma::A::bare", "urma::A::S",
                          "urma::A::S::x", "urma::A::S::y", "urma::E", "urma::E::one",
                          "urma::E::two"}, sorted(shown)
    assert shown["urma::A::f"].text == "template <class T>\nint f(T first, int second = {}) const"
    for name in ("f", "g"):
        assert shown[f"urma::A::{name}"].comment == "These two share a comment."
    assert shown["urma::A::field"].comment == "behind it"
    missing = [problem.split()[1] for problem in undocumented(found)]
    assert missing == ["urma::A::lonely", "urma::A::bare", "urma::E::two"], missing
    try:
        read("int (*pointer_to)(int);\nauto [a, b] = f();\n")
    except declarations.Unreadable as why:
        assert "ctags finds no declaration here" in str(why), why
    else:
        raise AssertionError("the reader passed over a declaration")


def main():
    if not declarations.find_ctags():
        print("the headers are not read: ctags is not Universal Ctags with JSON. "
              "Fix: apt-get install universal-ctags")
        sys.exit(SKIPPED)
    check_reader()
    check_headers()


main()
