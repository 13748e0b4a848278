# SPDX-License-Identifier: Apache-2.0
"""Which rules of UB have no code, and which code has no test? See rules.txt."""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CODE = ("wire", "transport", "congestion", "jetty", "engine", "urma")
RULE = re.compile(r"UB (4\.\d+\.\d+)")


def rules(text):
    found = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split("|")]
        known = len(parts) in (3, 4) and re.fullmatch(r"4\.\d+\.\d+", parts[0])
        if not known or parts[0] in found:
            sys.exit("rules.txt:%d: NUMBER | RULE | WHERE [| DIFFERENCE], each number once" %
                     number)
        found[parts[0]] = parts[2]
    return found


def cited(paths):
    where = {}
    for path in paths:
        for number in RULE.findall(path.read_text(encoding="utf-8")):
            where.setdefault(number, []).append(path)
    return where


def problems(known, code, scripts, read):
    for number, where in known.items():
        if where.startswith("not: "):
            if number in code or number in scripts:
                yield "UB %s is not implemented, but code or a script cites it" % number
            continue
        if number not in code:
            yield "UB %s: no code" % number
        if where == "script":
            if number not in scripts:
                yield "UB %s: code without a test" % number
        elif number not in RULE.findall(read(where)):
            yield "UB %s: code without a test: %s does not name it" % (number, where)
    for kind, places in (("code", code), ("a script", scripts)):
        for number in sorted(set(places) - set(known)):
            yield "UB %s is cited by %s (%s) and no rule" % (number, kind, places[number][0])


def self_test():
    known = {"4.1.1": "script", "4.1.2": "t.cc", "4.1.3": "not: why", "4.1.4": "script"}
    good = list(problems(known, dict.fromkeys(("4.1.1", "4.1.2", "4.1.4")),
                         dict.fromkeys(("4.1.1", "4.1.4")), lambda path: "UB 4.1.2"))
    bad = list(problems(known, {"4.1.1": ["a"], "4.1.2": ["a"], "4.9.9": ["a"]},
                        {"4.1.3": ["b"], "4.1.4": ["b"]}, lambda path: ""))
    assert not good, good
    assert len(bad) == 5, bad


def main():
    self_test()
    known = rules((HERE / "rules.txt").read_text(encoding="utf-8"))
    code = cited(path for folder in CODE for path in sorted((ROOT / folder).rglob("*"))
                 if path.suffix in (".h", ".cc", ".hpp"))
    scripts = cited(sorted((HERE / "scripts").glob("*.txt")))

    def read(path):
        return (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).is_file() else ""

    found = list(problems(known, code, scripts, read))
    for problem in found:
        print(problem)
    done = sum(1 for where in known.values() if not where.startswith("not: "))
    print("%d rules: %d implemented and tested but for %d problems, %d not, with their reasons"
          % (len(known), done, len(found), len(known) - done))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
