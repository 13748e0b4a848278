# SPDX-License-Identifier: Apache-2.0
"""Does every error contain its fix, once?"""

import re

from tree import CPP, code_of, expect, main

WHERE = ("urma/", "api/", "engine/", "drivers/", "apps/")
# Constructors of errors: the message is in the braces or parentheses.
MAKERS = re.compile(r"\b(?:Error|Failure|runtime_error)\s*(?=[{(])|"
                    r"\breturn\s*(?=\{\s*(?:Status|Exit)::|\{\s*status,)")
# Words after which the cure comes from another text: a message, or a reason that has one.
HANDED_ON = re.compile(r"(?:\.|\b)(?:message|why|why_silent|fix|cure)\b")
# Helpers that add no cure, so their argument must contain one.
TOLD = {"apps/": re.compile(r"(?<![\w.:>])usage\s*(?=\()"),
        "urma/core/endpoint.cc": re.compile(r"\bbad\s*(?=\()")}
# This function adds the cure of the status.
ADDS = re.compile(r"(?<![\w.:>])error\s*(?=\()")
LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')
FIX = "Fix: "


def extent(code, at):
    """Returns the position at which the bracket that opens at `at` is closed."""
    depth = 0
    for end in range(at, len(code)):
        depth += (code[end] in "({[") - (code[end] in ")}]")
        if depth == 0:
            return end + 1
    return len(code)


def uses(pattern, text, code):
    """Yields (line, joined literals, code) of each use."""
    for found in pattern.finditer(code):
        begin, end = found.end(), extent(code, found.end())
        literals = "".join(LITERAL.findall(text[begin:end]))
        yield code.count("\n", 0, found.start()) + 1, literals, code[begin:end]


def has_words(literals):
    return re.search(r"[A-Za-z]{2}", literals) is not None


def check(tree):
    problems = []
    for path in tree.named(*CPP):
        if not path.startswith(WHERE):
            continue
        text = tree.text(path)
        code = code_of(text)
        for line, literals, inside in uses(MAKERS, text, code):
            if has_words(literals) and FIX not in literals and not HANDED_ON.search(inside):
                problems.append("%s:%d: an error without its cure: \"what, where, why. Fix: how\""
                                % (path, line))
        for prefix, helper in TOLD.items():
            for line, literals, inside in uses(helper, text, code):
                if path.startswith(prefix) and has_words(literals) and FIX not in literals:
                    problems.append("%s:%d: an error without its cure" % (path, line))
        for line, literals, _ in uses(ADDS, text, code):
            if FIX in literals:
                problems.append("%s:%d: error() adds the status's cure: with one of its own write "
                                "Error{...}" % (path, line))
    return problems


def self_test():
    def finds(path, text, *fragments):
        expect(check, {path: text}, *fragments)

    finds("urma/a.cc", 'return Error{Status::closed, "a (b" +\n  name + ". Fix: do"};\n'
          'return {Status::closed, "a. Fix: b"};\nreturn {Status::closed, {}};\n'
          'return error(Status::closed, "what");\nError none(int why);\nx.error();\n'
          'return {status, "here: " + why};\nreturn {Exit::error, text + ": "};\n'
          '// Error{Status::closed, "no"}\n')
    finds("urma/a.cc", 'f();\nreturn Error{Status::closed,\n  "no cure"};\n', "a.cc:2: an error")
    finds("drivers/a/b.cc", 'return {Status::closed, "no cure"};\n', "drivers/a/b.cc:1:")
    finds("urma/a.cc", 'return {status, std::string("no") + call()};\n', "urma/a.cc:1:")
    finds("apps/x/a.cc", 'throw Failure(Exit::error, "no");\nreturn Failure{Exit::error, "no"};\n'
          'usage("no cure");\nusage("a. Fix: b");\nusage(why);\n', ":1:", ":2:", ":3:")
    finds("urma/core/endpoint.cc", 'bad(text, "no cure");\nbad(text, "a. Fix: b");\n', ":1:")
    finds("urma/core/descriptor.cc", 'bad(text, "adds one");\n')
    finds("urma/a.cc", 'return error(Status::closed,\n "a. Fix: b");\n', ":1: error() adds")
    finds("tests/a.cc", 'Error{Status::closed, "in a test"};\n')


if __name__ == "__main__":
    main(__doc__, check, self_test)
