# SPDX-License-Identifier: Apache-2.0
"""Does each test that docs/reliability.md names exist, as often as it says?"""

import re

from tree import expect, main

DOCUMENT = "docs/reliability.md"
# `sim`: "R6" (3), deadlock_test; the swarm. A directory of tests, until the next one is named.
TOKEN = re.compile(r"`([a-z_/.]+)`|\"([^\"]+)\"(?: \((\d+)\))?|"
                   r"\b([a-z0-9]+(?:_[a-z0-9]+)*_(?:test|fuzz))\b")
CASE = re.compile(r'TEST_CASE\(\s*"((?:\\.|[^"\\])*)"(?:\s*"((?:\\.|[^"\\])*)")*', re.DOTALL)
FUNCTION = re.compile(r"^def test_(\w+)", re.MULTILINE)


def cases(tree):
    """Returns the names of cases and the stems of files, by directory below tests/."""
    named, files = {}, {}
    for path in tree.files:
        if not path.startswith("tests/") or path.count("/") < 2:
            continue
        directory = path.split("/")[1]
        files.setdefault(directory, set()).add(path.rsplit("/", 1)[1].split(".")[0])
        found = named.setdefault(directory, [])
        if path.endswith(".cc"):
            found += [re.sub(r'"\s*"', "", case.group(0)).split('"')[1]
                      for case in CASE.finditer(tree.text(path))]
        elif path.endswith(".py"):
            found += FUNCTION.findall(tree.text(path))
    return named, files


def rows(text):
    """Yields (line, last cell) of each row of a table whose last column is "held by"."""
    held = False
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            held = False
        elif cells[-1] == "held by":
            held = True
        elif held and not set(cells[-1]) <= set("-"):
            yield number, cells[-1]


def check(tree):
    return list(problems(tree)) if DOCUMENT in tree.files else []


def problems(tree):
    named, files = cases(tree)
    for line, cell in rows(tree.text(DOCUMENT)):
        directory = None
        for token in TOKEN.finditer(cell):
            where, case, times, stem = token.groups()
            if where:
                if "/" not in where and "tests/" + where not in tree.directories:
                    yield f"{DOCUMENT}:{line}: there is no tests/{where}; name one that is there"
                directory = where
                continue
            if directory is None:
                yield f"{DOCUMENT}:{line}: {token.group(0)} of which directory of tests/?"
                continue
            if stem:
                if stem not in files.get(directory, ()):
                    yield (f"{DOCUMENT}:{line}: tests/{directory} has no {stem}; name the file "
                           "that is there")
                continue
            count = sum(name.startswith(case) for name in named.get(directory, ()))
            if count == 0 or (times and count != int(times)):
                yield (f"{DOCUMENT}:{line}: {count} cases of tests/{directory} begin with "
                       f"\"{case}\"; name one that is there, and how many")


def self_test():
    table = "| | promise | held by |\n|---|---|---|\n| P1 | x | %s |\n"
    sim = 'TEST_CASE("R6: one") {}\nTEST_CASE("R6: another, "\n          "longer") {}\n'
    whole = {"tests/sim/a_test.cc": sim, "tests/apps/b.py": "def test_r7_x():\n    pass\n"}

    def held(cell, *fragments):
        expect(check, {**whole, DOCUMENT: table % cell}, *fragments)

    held('`sim`: "R6" (2), a_test; `apps`: "r7"')
    held('`sim`: "R6: another, longer"; the swarm')
    held('`sim`: "R5"', '0 cases of tests/sim begin with "R5"')
    held('`sim`: "R6" (3)', '2 cases of tests/sim begin with "R6"')
    held("`sim`: c_test", "tests/sim has no c_test")
    held("`none`", "there is no tests/none")
    held('"R6"', "of which directory")


if __name__ == "__main__":
    main(__doc__, check, self_test)
