# SPDX-License-Identifier: Apache-2.0
"""Which class has more methods, or which function more lines, than a reader can keep in mind?
ctags counts the methods in headers."""

import json
import shutil
import subprocess
import sys

from tree import CPP, HEADERS, expect, main

METHODS = 34
LINES = 60
# ctest shows a test that exits with this code as skipped.
SKIPPED = 77
EXEMPT = {
    # Its overloads are its interface: a user chooses among fewer names than there are declarations.
    "urma::Device",
}
# This table of states and events has a line for each pair.
LONG = ("urma::jetty::step",)
TYPES = ("class", "struct", "union")
FIX = ("Fix: move the members that belong together, and the methods that use them, to a class of "
       "their own")


def find_ctags():
    """Returns the path of Universal Ctags. Without it, ends the program with a message."""
    tool = shutil.which("ctags")
    version = tool and subprocess.run([tool, "--version"], capture_output=True, text=True,
                                      check=False).stdout
    if version and version.startswith("Universal Ctags") and "+json" in version:
        return tool
    print("classes are not counted: %s. Fix: apt-get install universal-ctags"
          % ("this ctags is not Universal Ctags with JSON" if tool else "ctags is not installed"))
    sys.exit(SKIPPED)


def tags_of(tree, tool, suffixes, kinds):
    """Yields what ctags finds in files with these suffixes outside tests/."""
    paths = [path for path in tree.named(*suffixes) if not path.startswith("tests/")]
    command = [tool, "--options=NONE", "--languages=C++", "--langmap=C++:+.h",
               "--kinds-C++=" + kinds, "--fields=NFnkse", "--output-format=json", "--sort=no",
               "-f", "-", "-L", "-"]
    result = subprocess.run(command, cwd=tree.root, input="\n".join(paths), capture_output=True,
                            text=True, check=True)
    return map(json.loads, result.stdout.splitlines())


def methods_of(tree, tool):
    """Returns the number of methods by class, and the (file, line) where each class begins.

    Each declaration in the class counts, also those of overloads, of constructors, of the
    destructor and of operators. A definition behind the class does not count again."""
    counts, places, ends, methods = {}, {}, {}, []
    for tag in tags_of(tree, tool, HEADERS, "csupf"):
        scope = tag.get("scope", "")
        if tag["kind"] in TYPES:
            name = (scope + "::" + tag["name"]).removeprefix("::")
            places[name] = (tag["path"], tag["line"])
            ends[name] = tag.get("end", sys.maxsize)
        elif tag.get("scopeKind") in TYPES:
            methods.append((scope, tag["path"], tag["line"]))
    for scope, path, line in methods:
        place = places.setdefault(scope, (path, line))
        if place[0] == path and place[1] <= line <= ends.get(scope, sys.maxsize):
            counts[scope] = counts.get(scope, 0) + 1
    return counts, places


def long_functions(tree, tool):
    for tag in tags_of(tree, tool, CPP, "f"):
        name = (tag.get("scope", "") + "::" + tag["name"]).removeprefix("::")
        lines = tag.get("end", tag["line"]) - tag["line"] + 1
        if lines > LINES and name not in LONG:
            yield ("%s:%d: %s has %d lines, at most %d. Fix: let each function answer one question"
                   % (tag["path"], tag["line"], name, lines, LINES))


def check(tree):
    tool = find_ctags()
    counts, places = methods_of(tree, tool)
    problems = list(long_functions(tree, tool))
    for scope, count in sorted(counts.items()):
        place = "%s:%d: " % places[scope]
        if scope in EXEMPT and count <= METHODS:
            problems.append(place + "%s has %d methods now. Fix: remove it from EXEMPT in "
                            "tests/tidy/classes.py" % (scope, count))
        elif scope not in EXEMPT and count > METHODS:
            problems.append(place + "%s has %d methods, at most %d. %s"
                            % (scope, count, METHODS, FIX))
    return problems


def self_test():
    find_ctags()

    def methods(count, first="m"):
        return "".join("  void %s%d();\n" % (first, number) for number in range(count))

    def finds(text, *fragments, path="jetty/a.h"):
        expect(check, {path: text}, *fragments)

    def device(body):
        return "namespace urma {\nclass Device {\n" + body + "};\n}\n"

    finds("namespace urma {\nclass A {\n public:\n" + methods(34) + "};\n}\n")
    finds("namespace urma {\nclass A {\n public:\n" + methods(35) + "};\n}\n",
          "jetty/a.h:2: urma::A has 35 methods, at most 34. Fix: ")
    finds("struct A {\n" + methods(35) + "};\n", "urma/a.hpp:1: A has 35", path="urma/a.hpp")
    # Each overload and each constructor counts; bodies count like declarations, but once.
    finds("struct A {\n" + methods(33) + "  void m0(int);\n};\n")
    finds("struct A {\n" + methods(34) + "  void m0(int);\n};\n", "A has 35")
    finds("struct A {\n" + methods(34) + "};\ninline void A::m0() {}\n")
    finds("struct A {\n" + methods(30) + "  A();\n  explicit A(int);\n  ~A();\n"
          "  bool operator==(const A&) const;\n};\n")
    finds("struct A {\n" + methods(32) + "  A();\n  ~A();\n  int n() { return 1; }\n};\n",
          "A has 35")
    # What is not a method of the class: fields, friends, free functions, methods of an inner class.
    finds("void f();\nstruct A {\n  struct B {\n" + methods(34, "b") + "  };\n" + methods(34) +
          "  int field = 0;\n  friend void g(A&);\n};\n")
    finds("struct A {\n  struct B {\n" + methods(35, "b") + "  };\n};\n", "a.h:2: A::B has 35")
    # Fixtures of tests are not part of the library.
    finds("struct A {\n" + methods(35) + "};\n", path="tests/a.h")
    # Lines of a function, from its head to its closing bracket.
    def lines(count, name="f"):
        return "void %s() {\n" % name + "  g();\n" * (count - 2) + "}\n"

    finds(lines(60), path="jetty/a.cc")
    finds("\n" + lines(61), "jetty/a.cc:2: f has 61 lines, at most 60. Fix: ", path="jetty/a.cc")
    finds("struct A {\n" + lines(61) + "};\n", "A::f has 61 lines")
    finds(lines(61), path="tests/a.cc")
    finds("namespace urma::jetty {\n" + lines(61, "step") + "}\n")
    # A class that is exempt although it has become small could grow again without notice.
    finds(device(methods(35)))
    finds(device(methods(34)), "jetty/a.h:2: urma::Device has 34 methods now")


if __name__ == "__main__":
    main(__doc__, check, self_test)
