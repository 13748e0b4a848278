# SPDX-License-Identifier: Apache-2.0
"""Does the prose contain a habit that a reader has to decode?"""

import ast
import re

from tree import CPP, expect, main

LIST = "tests/tidy/prose.txt"
# Sentences are looked for in comments, in literals of several words, and in documents.
COMMENTS = re.compile(r'(?P<skip>R"(\w*)\(.*?\)\2"|\'(?:\\.|[^\'\\\n])+\')|'
                      r'(?P<comment>(?://[^\n]*\n?[ \t]*)+|/\*.*?\*/)|'
                      r'(?P<literal>"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*)', re.DOTALL)
HASHES = re.compile(r"(?m)(?:^[ \t]*#(?!!)[^\n]*\n?)+")
DASHES = re.compile(r"(?m)(?:^[^\n\"']*?--(?!\[\[)[^\n]*\n?(?:^[ \t]*--[^\n]*\n?)*)")
LUA_STRINGS = re.compile(r'"(?:\\.|[^"\\\n])*"')
# Paragraphs of a manual page end at requests other than changes of font.
MAN_PARAGRAPHS = re.compile(r"(?m)(?:^(?!\.(?!(?:B|I|BR|RB|BI|IR|RI) ))[^\n]+\n?)+")
FENCES = re.compile(r"(?ms)^[ \t]*```.*?^[ \t]*```|^(?: {4,}|\t)[^\n]*")
MANUAL = re.compile(r"\.[1-8]$")
OPENING = re.compile(r"^(?:Of|Whose|What)\b")
TICS = (
    (re.compile(r"\b(?:[Ww]ho|[Ww]hoever|[Ww]hom|[Nn]obody|[Ss]omebody)\b"),
     "name the actor: the caller, the peer, the process"),
    (re.compile(r"(?<![Tt]here )\b(?:is|are|was|were) no (?!longer\b|(?:\w+ )?than\b)[a-z]"),
     '"is not a" or "has no"'),
    (re.compile(r"\b(?:[Ff]alse|[Tt]rue|[Nn]ull|[Nn]othing|[Zz]ero): [a-z]"),
     '"Returns false if"'),
    (re.compile(r"\btime is (?:up|over)\b"), '"times out", "within 50 ms"'),
    (re.compile(r"\bno more[.,;:)]|\bno more$"), '"no longer"'),
    (re.compile(r"\b(?:cannot|can not) be meant\b"), '"invalid", and what is valid'),
    (re.compile(r"\b[Ff]or want of\b"), '"because there is no"'),
)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def blocks_of(path, text):
    """Yields (line, words, whether it is a comment or a paragraph) of each piece of prose."""
    if path.endswith(CPP):
        for found in COMMENTS.finditer(text):
            if found["comment"] is not None:
                words = re.sub(r"(?m)^[ \t]*///?<?|/\*|\*/", "", found["comment"])
                yield line_of(text, found.start()), words, True
            elif found["literal"] is not None and " " in found["literal"]:
                yield line_of(text, found.start()), re.sub(r'"\s*"', "", found["literal"]), False
    elif path.endswith(".md"):
        blank = FENCES.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
        for found in re.finditer(r"(?ms)\S.*?(?=\n\s*\n|\n[ \t]*(?:[-*|#]|\d+\.) |\Z)", blank):
            words = re.sub(r"`[^`]*`", "`", found.group())
            yield line_of(text, found.start()), re.sub(r"^[-*#\d. ]+", "", words), True
    elif path.endswith(".lua"):
        for found in DASHES.finditer(text):
            yield line_of(text, found.start()), re.sub(r"(?m)^.*?--", "", found.group()), True
        for found in LUA_STRINGS.finditer(text):
            if " " in found.group():
                yield line_of(text, found.start()), found.group()[1:-1], False
    elif MANUAL.search(path):
        for found in MAN_PARAGRAPHS.finditer(text):
            words = re.sub(r"(?m)^\.[A-Z]+ |\\f.|\\", "", found.group())
            yield line_of(text, found.start()), words, True
    elif path.endswith(".py") or text.startswith("#!/usr/bin/env python3"):
        yield from blocks_of_python(text)
    elif path.endswith((".txt", ".cmake", ".in", ".sh")) or is_plain(path):
        for found in HASHES.finditer(text):
            yield line_of(text, found.start()), re.sub(r"(?m)^[ \t]*#", "", found.group()), True


def is_plain(path):
    """Returns whether a file without an ending, or with a leading dot, is a script or settings."""
    name = path.rsplit("/", 1)[-1]
    return "fuzz/corpus" not in path and (name.startswith(".") or "." not in name)


def blocks_of_python(text):
    """Yields comments, and strings of several words; a format string piece by piece."""
    for found in HASHES.finditer(text):
        yield line_of(text, found.start()), re.sub(r"(?m)^[ \t]*#", "", found.group()), True
    whole = ast.parse(text)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    about = {ast.get_docstring(node, False) for node in ast.walk(whole)
             if isinstance(node, documented)}
    for node in ast.walk(whole):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value, node.value in about


def tics_of(path, text):
    for line, words, opens in blocks_of(path, text):
        words = re.sub(r"\s+", " ", words).strip()
        first = re.split(r"[.:?!](?:\s|$)", words + " ", maxsplit=1)
        question = words[len(first[0]):len(first[0]) + 1] == "?"
        if opens and OPENING.match(words) and not question:
            yield line, words[:40], "begin with the subject"
        for pattern, better in TICS:
            for found in pattern.finditer(words):
                yield line, words[max(0, found.start() - 20):found.end() + 12], better


def allowed(tree):
    """Returns how many findings a file may still have. The list only shrinks."""
    rows = {}
    if LIST in tree.files:
        for row in tree.lines(LIST):
            if row and not row.startswith("#"):
                path, count = row.split()
                rows[path] = int(count)
    return rows


def check(tree):
    problems = []
    rows = allowed(tree)
    for path in tree.files:
        if path == LIST or path.startswith("tests/tidy/") and path.endswith(".py"):
            continue
        found = list(tics_of(path, tree.text(path)))
        most = rows.pop(path, 0)
        if len(found) > most:
            problems += ['%s:%d: "%s": %s' % (path, line, words, better)
                         for line, words, better in found]
        elif len(found) < most:
            problems.append("%s: %s allows %d, and there are %d: write that"
                            % (LIST, path, most, len(found)))
    return problems + ["%s: there is no %s" % (LIST, path) for path in rows]


def self_test():
    def finds(path, text, *fragments, **others):
        expect(check, {path: text, **others}, *fragments)

    finds("a.h", "// Who reads it.\nint a;  // nobody\n", "a.h:1:", "a.h:2:")
    finds("a.h", "// Of two, the first.\n// Whose is it?\nint a;\n\n// Whose it is.\n",
          ":1:", ":5:")
    finds("a.h", "// What is it for?\nint who;\n// A peer whose memory it is. There is no room.\n")
    finds("a.h", "// It is no\n// segment.\nint a;\n// It is no longer than that.\n", "a.h:1:")
    finds("a.h", "// False: it is full.\n", "a.h:1:")
    finds("a.cc", 'f("who", "time is " \n "up");\nR"(who is)";\n', "a.cc:1:")
    finds("a.md", "# A\n\n- Of two.\n- two\n\n    who\n\n`who`, good no\nmore.\n", ":3:", ":8:")
    finds("a.py", "# nobody\nwho = 1\n", "a.py:1:")
    finds("a.py", '"""Of two."""\nx = "by nobody"\ny = f"{x} for want of it"\n',
          ":1:", ":2:", ":3:")
    finds("a", "#!/usr/bin/env python3\nx = 'by nobody'\n", "a:2:")
    finds("check", "# nobody\n", "check:1:")
    finds(".clang-tidy", "# nobody\n", ".clang-tidy:1:")
    finds("a.lua", 'local a = 1  -- nobody\n-- It is no\n-- name.\nf("by nobody")\n',
          ":1:", ":1:", ":4:")
    finds("a.1", ".TH A 1\n.SH NAME\nIt is no\n.B name\nof a file.\n.TP\nOf two.\n", ":3:", ":7:")
    finds("a.h", "// who\n", **{LIST: "# a list\na.h 1\n"})
    finds("a.h", "// who\n", "allows 2, and there are 1", **{LIST: "a.h 2\n"})
    finds("a.h", "", "there is no b.h", **{LIST: "b.h 2\n"})


if __name__ == "__main__":
    main(__doc__, check, self_test)
