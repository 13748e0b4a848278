# SPDX-License-Identifier: Apache-2.0
"""Which layers include which? Checks every #include against edges.txt, and looks for cycles."""

import fnmatch
import re

from tree import CPP, expect, main

TABLE = "tests/tidy/edges.txt"
ANYTHING = "anything"
# Headers that users include; they include each other as users do, with angle brackets.
PUBLIC = re.compile(r"urma/[^/]+\.hpp$")
SYSTEM_FOLDERS = ("sys/", "net/", "netinet/", "arpa/", "linux/")


class Row:
    def __init__(self, line, layer, patterns, allowed):
        self.line, self.layer, self.allowed = line, layer, allowed
        self.first = patterns[0]
        self.exact = [p for p in patterns if not re.search(r"[*<]", p)]
        # Matches the files of a folder, and not those of folders in it.
        self.globs = [re.compile(re.escape(p).replace(r"\*", "[^/]*").replace("<name>", "([^/]+)")
                                 + "$") for p in patterns if p not in self.exact]
        if allowed == [ANYTHING]:
            self.globs = [re.compile(fnmatch.translate(p)) for p in patterns]
        self.files = 0
        self.used = set()

    def match(self, path):
        """Returns None or the layer's name, with its folder if each folder is a layer of
        its own."""
        for glob in self.globs:
            found = glob.match(path)
            if found:
                return " ".join((self.layer,) + tuple(found.groups()))
        return None


def read_table(text):
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.split("#")[0].strip()
        if line:
            layer, patterns, allowed = (part.strip() for part in line.split(":"))
            rows.append(Row(number, layer, patterns.split(), allowed.split()))
    return rows


def table_problems(rows):
    """An edge leads to a layer above its own, so that layers cannot form a cycle."""
    above = set()
    for row in rows:
        for word in row.allowed:
            if "/" not in word and word != ANYTHING and word not in above:
                yield "%s:%d: %s is not a layer above %s" % (TABLE, row.line, word, row.layer)
        above.add(row.layer)


def place(rows, path):
    """Returns the row and the layer of a file; (None, None) if no row has it."""
    for row in rows:
        if path in row.exact:
            return row, row.layer
    for row in rows:
        layer = row.match(path)
        if layer:
            return row, layer
    return None, None


def check_edge(rows, path, line, name):
    row, layer = place(rows, path)
    to_row, to_layer = place(rows, name)
    if row.allowed == [ANYTHING] or to_layer == layer:
        return None
    if name in row.allowed:
        row.used.add(name)
        return None
    if to_row and to_row.layer in row.allowed and to_row is not row:
        row.used.add(to_row.layer)
        return None
    return ("%s:%d: %s must not include %s (%s); it may include itself, %s, and the standard "
            "library (%s:%d)" % (path, line, layer, name, to_layer or "in no layer",
                                 ", ".join(row.allowed) or "nothing else", TABLE, row.line))


def is_foreign(row, name):
    if "/" not in name or name.startswith(SYSTEM_FOLDERS) or row.allowed == [ANYTHING]:
        return False
    for word in row.allowed:
        if word.endswith("/") and name.startswith(word):
            row.used.add(word)
            return False
    return True


def check_includes(tree, rows, graph):
    existing = set(tree.files)
    for path in tree.named(*CPP):
        row, layer = place(rows, path)
        if row is None:
            yield "%s:1: belongs to no layer of %s" % (path, TABLE)
            continue
        row.files += 1
        for line, name, quoted in tree.includes(path):
            if not quoted and not (name in existing and PUBLIC.match(name)):
                if name in existing:
                    yield "%s:%d: our own %s is included with quotes" % (path, line, name)
                elif is_foreign(row, name):
                    yield ("%s:%d: %s is not a header of the standard library or the system; "
                           "%s may not include others (%s:%d)"
                           % (path, line, name, layer, TABLE, row.line))
                continue
            if name not in existing:
                yield ("%s:%d: there is no %s; includes are written from the top of the tree"
                       % (path, line, name))
                continue
            graph.setdefault(path, []).append((line, name))
            problem = check_edge(rows, path, line, name)
            if problem:
                yield problem


def cycles(graph):
    """Yields each cycle once, at the include that closes it."""
    state = {}
    for start in sorted(graph):
        if start in state:
            continue
        stack = [(start, iter(graph[start]))]
        state[start] = "open"
        while stack:
            path, edges = stack[-1]
            for line, name in edges:
                if state.get(name) == "open":
                    way = [p for p, _ in stack]
                    way = way[way.index(name):] + [name]
                    yield "%s:%d: closes a cycle: %s" % (path, line, " -> ".join(way))
                elif name not in state:
                    state[name] = "open"
                    stack.append((name, iter(graph.get(name, []))))
                    break
            else:
                state[path] = "closed"
                stack.pop()


def unused(rows):
    for row in rows:
        if row.files == 0:
            yield "%s:%d: no file is in layer %s" % (TABLE, row.line, row.layer)
            continue
        for word in row.allowed:
            if word != ANYTHING and word not in row.used:
                yield ("%s:%d: no file of %s includes %s any more: take it out of the row"
                       % (TABLE, row.line, row.layer, word))


def check(tree):
    rows = read_table(tree.text(TABLE))
    graph = {}
    problems = list(table_problems(rows))
    problems += check_includes(tree, rows, graph)
    problems += cycles(graph)
    problems += unused(rows)
    return problems


def self_test():
    table = ("base : base/* :\n"
             "core : core/* : base\n"
             "face : net/face.h : core\n"
             "net  : net/* : face core base/time.h\n"
             "driver : drivers/<name>/* : core\n"
             "apps : apps/<name>/* : core urma/all.hpp fmt/\n"
             "all : urma/all.hpp :\n"
             "tests : tests/* : anything\n")
    good = {
        TABLE: table,
        "base/time.h": "#include <ctime>\n#include <sys/time.h>\n",
        "base/bits.h": '#include "base/time.h"\n',
        "core/ids.h": '#include "base/bits.h"\n',
        "net/face.h": '#include "core/ids.h"\n',
        "net/tp.cc": '#include "net/face.h"\n#include "core/ids.h"\n  # include "base/time.h"\n',
        "drivers/a/a.cc": '#include "core/ids.h"\n',
        "drivers/b/b.h": '#include "core/ids.h"\n',
        "urma/all.hpp": "",
        "apps/one/main.cc": '#include <fmt/format.h>\n#include "core/ids.h"\n',
        "apps/two/main.cc": '#include <urma/all.hpp>\n',
        "tests/x/y/z.cc": '#include <catch2/catch.hpp>\n#include "net/face.h"\n',
    }
    expect(check, good)

    def bad(path, text, *fragments):
        expect(check, {**good, path: text}, *fragments)

    bad("base/list.h", '\n#include "core/ids.h"\n', "base/list.h:2: base must not include core/ids")
    bad("net/rtt.h", '#include "base/bits.h"\n', "net must not include base/bits.h (base); it may "
        "include itself, face, core, base/time.h, and")
    bad("drivers/a/a.h", '#include "drivers/b/b.h"\n', "driver a must not include drivers/b/b.h")
    bad("net/face.h", '#include "core/ids.h"\n#include "net/tp.h"\n', "there is no net/tp.h")
    expect(check, {**good, "net/tp.h": "", "net/face.h": good["net/face.h"] +
                   '#include "net/tp.h"\n'}, "face must not include net/tp.h (net)")
    bad("core/x.h", '#include <urma/x/y.h>\n', "not a header of the standard library")
    bad("apps/one/x.h", '#include <CLI/CLI.hpp>\n', "apps one may not include others (")
    bad("core/x.h", '#include <urma/all.hpp>\n', "core must not include urma/all.hpp")
    bad("apps/one/main.cc", '#include "core/ids.h"\n', "no file of apps includes fmt/ any more")
    bad("core/x.h", '#include <base/time.h>\n', "included with quotes")
    bad("core/x.h", '#include "x2.h"\n', "there is no x2.h")
    bad("core/a/x.h", "", "core/a/x.h:1: belongs to no layer")
    expect(check, {**good, "base/a.h": '#include "base/b.h"\n', "base/b.h": '#include "base/c.h"\n',
                   "base/c.h": '\n#include "base/a.h"\n'},
           "base/c.h:2: closes a cycle: base/a.h -> base/b.h -> base/c.h -> base/a.h")
    bad("base/self.h", '#include "base/self.h"\n', "base/self.h -> base/self.h")
    bad("net/tp.cc", '#include "net/face.h"\n#include "core/ids.h"\n',
        "edges.txt:4: no file of net includes base/time.h any more")
    bad(TABLE, table + "gone : gone/* :\n", "edges.txt:9: no file is in layer gone")
    bad(TABLE, table.replace("core/* : base", "core/* : base tests"), "not a layer above core",
        "no file of core includes tests")


if __name__ == "__main__":
    main(__doc__, check, self_test)
