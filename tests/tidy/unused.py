# SPDX-License-Identifier: Apache-2.0
"""Is there a file, a document or a directory that is not used, or a directory without README?"""

import os.path
import re

from tree import CPP, HEADERS, expect, main

README_LINES = 20
# Headers for users, which no file of the tree has to include.
PUBLIC = re.compile(r"urma/[^/]+\.hpp$|umdk/include/")
# Scripts that people start by hand.
STARTED_BY_HAND = re.compile(r"[^/]+$|\.ci/|python/setup\.py$")


# A command with its arguments, which may contain one level of parentheses.
COMMAND = re.compile(r"(\w+)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)")


def cmake_words(text):
    text = re.sub(r"#[^\n]*", "", text)
    return [(command.lower(), arguments.replace('"', " ").split())
            for command, arguments in COMMAND.findall(text)]


# Separate projects, which a test builds.
CONSUMERS = re.compile(r"tests/install/consumers/[^/]+/CMakeLists\.txt$")


def reached_by_cmake(tree):
    """Returns the CMake files that the top one reaches, and every path that they name."""
    reached, named = set(), set()
    open_ = ["CMakeLists.txt"] + [path for path in tree.cmake() if CONSUMERS.match(path)]
    while open_:
        path = open_.pop()
        if path in reached or path not in tree.files:
            continue
        reached.add(path)
        folder = os.path.dirname(path)
        for command, words in cmake_words(tree.text(path)):
            for word in words:
                word = re.sub(r"\$\{(PROJECT|CMAKE)_SOURCE_DIR\}/", "/", word)
                word = re.sub(r"\$\{CMAKE_CURRENT_(SOURCE|LIST)_DIR\}/", "", word)
                target = word[1:] if word.startswith("/") else os.path.join(folder, word)
                target = os.path.normpath(target)
                named.add(target)
                if command == "add_subdirectory":
                    open_.append(os.path.join(target, "CMakeLists.txt"))
                elif command == "include":
                    open_.append(target)
    return reached, named


def check_sources(tree):
    reached, named = reached_by_cmake(tree)
    for path in tree.cmake():
        if path not in reached:
            yield "%s:1: is not reached from the top CMakeLists.txt" % path
    for path in tree.named(".cc"):
        if path not in named:
            yield "%s:1: no CMakeLists.txt that is reached names it" % path


def check_headers(tree):
    users = {}
    for path in tree.named(*CPP, ".c"):
        for _, name, _ in tree.includes(path):
            users.setdefault(name, set()).add(path)
    for header in tree.named(*HEADERS):
        own = os.path.splitext(header)[0] + ".cc"
        if not users.get(header, set()) - {own, header} and not PUBLIC.match(header):
            yield "%s:1: only its own source includes it" % header


def check_scripts(tree):
    texts = {path: tree.text(path) for path in tree.files if "/corpus/" not in path}
    for path in tree.named(".py", ".sh"):
        if STARTED_BY_HAND.match(path):
            continue
        name = os.path.basename(path)
        module = re.compile(r"^(?:from|import) %s\b" % re.escape(name[:-3]), re.MULTILINE)
        for other, text in texts.items():
            uses = not other.endswith(".md") and name in text or (
                other.endswith(".py") and module.search(text))
            if other != path and uses:
                break
        else:
            yield "%s:1: no build file and no other script uses it" % path


def check_documents(tree):
    linked = set()
    for path in tree.named(".md"):
        for target in re.findall(r"\]\(([^)#\s]+)", tree.text(path)):
            linked.add(os.path.normpath(os.path.join(os.path.dirname(path), target)))
    for path in tree.named(".md"):
        top = "/" not in path
        if not top and os.path.basename(path) != "README.md" and path not in linked:
            yield "%s:1: no document links to it" % path


def readme_of(tree, folder):
    own = folder + "/README.md"
    # One README explains all folders of unit tests: they are named after what they test.
    if own not in tree.files and folder.startswith("tests/unit/"):
        return "tests/unit/README.md"
    return own


def check_directories(tree):
    for folder in tree.directories:
        inside = [path for path in tree.files if path.startswith(folder + "/")]
        if not inside:
            yield "%s: is empty" % folder
        direct = [path for path in inside if os.path.dirname(path) == folder]
        if not any(path.endswith(CPP + (".py",)) for path in direct):
            continue
        readme = readme_of(tree, folder)
        if readme not in tree.files:
            yield "%s: has sources and no %s" % (folder, readme)
    for path in tree.files:
        if not path.endswith("/README.md"):
            continue
        written = sum(1 for line in tree.lines(path) if line.strip())
        if written > README_LINES:
            yield ("%s:%d: a directory's README has at most %d lines of text"
                   % (path, written, README_LINES))


def check(tree):
    problems = []
    for part in (check_sources, check_headers, check_scripts, check_documents, check_directories):
        problems += part(tree)
    return problems


def self_test():
    good = {
        "CMakeLists.txt": "include(cmake/x.cmake)\nadd_subdirectory(a) # and\nadd_subdirectory(t)\n"
                          "add_subdirectory(tests)\nadd_subdirectory(urma)\n",
        "cmake/x.cmake": "",
        "a/CMakeLists.txt": "layer(a\n  one.cc\n  ${PROJECT_SOURCE_DIR}/a/two.cc)\n",
        "a/README.md": "what\n" * 20 + "\n" * 9,
        "a/one.cc": '#include "a/one.h"\n',
        "a/one.h": "",
        "a/two.cc": '#include "a/one.h"\n',
        "urma/CMakeLists.txt": "",
        "urma/urma.hpp": "",
        "urma/README.md": "see [that](../docs/that.md#part)\n",
        "docs/that.md": "",
        "OTHER.md": "",
        "t/CMakeLists.txt": "add_test(NAME x COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/x.py)\n",
        "t/README.md": "",
        "t/x.py": "import shared\n",
        "t/shared.py": "",
        "tests/unit/README.md": "",
        "tests/CMakeLists.txt": "add_subdirectory(unit/deep)\n",
        "tests/install/consumers/one/CMakeLists.txt": "add_executable(x ../use.cc)\n",
        "tests/install/consumers/use.cc": "",
        "tests/install/consumers/README.md": "",
        "tests/unit/deep/CMakeLists.txt": "if(X)\n  test(\"y.cc\")\nendif()\n",
        "tests/unit/deep/y.cc": "",
        "run": "",
    }
    expect(check, good)

    def bad(files, *fragments):
        expect(check, {**good, **files}, *fragments)

    bad({"a/three.cc": ""}, "a/three.cc:1: no CMakeLists.txt")
    bad({"b/CMakeLists.txt": "l(x.cc)\n", "b/x.cc": "", "b/README.md": ""},
        "b/CMakeLists.txt:1: is not reached", "b/x.cc:1: no CMakeLists.txt")
    bad({"a/three.cc": '#include "a/three.h"\n', "a/three.h": "",
         "a/CMakeLists.txt": "layer(a one.cc two.cc three.cc)\n"},
        "a/three.h:1: only its own")
    bad({"t/unused.py": "", "t/README.md": "unused.py\n"}, "t/unused.py:1: no build file")
    bad({"docs/other.md": ""}, "docs/other.md:1: no document links")
    bad({"empty": None}, "empty: is empty")
    bad({"a/README.md": "what\n" * 21}, "a/README.md:21: a directory's README")
    bad({"t2/z.h": "", "a/one.cc": '#include "t2/z.h"\n#include "a/one.h"\n'},
        "t2: has sources and no t2/README.md")
    without = {path: text for path, text in good.items() if path != "tests/unit/README.md"}
    expect(check, without, "tests/unit/deep: has sources and no tests/unit/README.md")
    bad({"tests/other/z.h": "", "a/one.cc": '#include "tests/other/z.h"\n#include "a/one.h"\n'},
        "tests/other: has sources and no tests/other/README.md")


if __name__ == "__main__":
    main(__doc__, check, self_test)
