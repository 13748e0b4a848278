# SPDX-License-Identifier: Apache-2.0
"""Reads the public declarations of the headers, each with its comment.

Universal Ctags finds the names; the text of a declaration and its comment are taken from the lines
of the header, so that the reference shows them as the header has them. A comment documents the
declaration below it and those that follow without a blank line (of fields, only if it begins with
"These"), or the one on whose line it ends. A comment that a blank line follows is a note: it
documents the declarations from there on.
"""

import dataclasses
import json
import pathlib
import re
import shutil
import subprocess

TYPES = ("class", "struct", "union", "enum")
FUNCTIONS = ("function", "prototype")
# Universal Ctags 5.9 does not know concepts, constants with a braced value, and fields that hold a
# function.
EXTENSIONS = (r"--regex-C++=/^concept ([A-Za-z_]+) =/\1/q,concept/",
              r"--regex-C++=/constexpr [a-z0-9_]+ ([a-z_]+) = [a-z0-9_]+\{/\1/k,constant/",
              r"--regex-C++=/^ +std::function<.*> ([a-z_]+)\{\};/\1/w,field/")
COMMENT = re.compile(r"\s*//( ?)(.*)$")
WIDTH = 100  # of the headers
ACCESS = re.compile(r" (public|protected|private):$")
MARKS = re.compile(r"\b(?:URMA_API|inline) ")


class Unreadable(Exception):
    """The headers or the tools that read them are not as expected."""


@dataclasses.dataclass
class Declaration:
    path: str
    line: int  # of its first line
    end: int
    kind: str  # as ctags names it, or "note"
    name: str
    scope: str  # "urma::Device"
    text: str = ""  # without a body
    comment: str = ""
    group: int = 0  # the line of the comment that it shares with its neighbours, or of itself
    heading: str = ""  # a comment above several declarations that have comments of their own

    @property
    def full(self):
        return f"{self.scope}::{self.name}"

    @property
    def special(self):
        """Whether the compiler could have made it: the comment of the class is its comment."""
        owner = self.scope.rsplit("::", 1)[-1]
        return self.kind in FUNCTIONS and (
            self.name.startswith("~") or self.text.endswith("= default")
            or self.name in ("operator=", "operator==", "operator<=>")
            or self.name == owner and re.search(rf"\((const )?{owner} ?&", self.text) is not None)


def code_of(line):
    """Returns the line without its comment."""
    return re.sub(r'("(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\')|//.*', r"\1", line).rstrip()


def paragraphs(lines):
    """Returns the text of the lines of a comment, with an empty line where a sentence ended its
    line although the next word would have fitted."""
    out = []
    for line, below in zip(lines, [*lines[1:], ""]):
        text = COMMENT.fullmatch(line)[2]
        out.append(text)
        word = below.strip().removeprefix("//").split(" ")[1:2] if below else []
        if word and word[0] and text.endswith((".", ":")) and len(line) + 1 + len(word[0]) <= WIDTH:
            out.append("")
    return out


def find_ctags():
    """Returns the path of Universal Ctags, or None."""
    tool = shutil.which("ctags")
    version = tool and subprocess.run([tool, "--version"], capture_output=True, text=True,
                                      check=False).stdout
    known = version and version.startswith("Universal Ctags") and "+json" in version
    return tool if known else None


def public_headers(root):
    """Returns the paths of the installed headers, from the rules that install them."""
    rules = (root / "cmake/install.cmake").read_text(encoding="utf-8")
    listed = re.search(r"set\(public_headers\n(.*?)\)", rules, re.DOTALL)
    if not listed:
        raise Unreadable("cmake/install.cmake has no list public_headers")
    globbed = [*root.glob("urma/*.hpp"), *root.glob("urma/asio/*.h")]
    names = [path.relative_to(root).as_posix() for path in globbed]
    return sorted(names + [word for word in listed[1].split() if word.endswith(".h")])


class Header:
    """The lines of one header, and what ctags found in it."""

    def __init__(self, root, path, tags):
        self.path = path
        self.lines = (root / path).read_text(encoding="utf-8").split("\n")
        self.tags = tags
        self.code = [code_of(line) for line in self.lines]
        self.scopes = [(tag["line"], tag.get("end", tag["line"]), tag) for tag in tags
                       if tag["kind"] in TYPES or tag["kind"] == "namespace"]

    def owner_of(self, line):
        """Returns the innermost class, enumeration or namespace whose braces contain the line."""
        inside = [one for one in self.scopes if one[0] < line <= one[1]]
        return max(inside, key=lambda one: one[0])[2] if inside else None

    def is_public(self, line):
        """Whether the section of the class in which the line is, is public."""
        owner = self.owner_of(line)
        if owner is None or owner["kind"] in ("namespace", "enum"):
            return True
        begin = max(one[0] for one in self.scopes if one[2] is owner)
        for number in range(line - 1, begin, -1):
            found = ACCESS.fullmatch(self.lines[number - 1].removeprefix(
                " " * (len(self.lines[begin - 1]) - len(self.lines[begin - 1].lstrip()))))
            if found:
                return found[1] == "public"
        return owner["kind"] != "class"

    def first_line(self, line):
        """Returns the line on which the declaration begins whose name is on this line."""
        while line > 1:
            before = self.code[line - 2].strip()
            if not before or before.startswith("#") or before[-1] in ";{}:":
                break
            line -= 1
        return line

    def text_from(self, line, kind):
        """Returns the declaration that begins on this line without its body, and its last line."""
        text, depth, braces, number = "", 0, 0, line
        while number <= len(self.code):
            code = self.code[number - 1]
            for at, char in enumerate(code):
                depth += (char in "([") - (char in ")]")
                if depth == 0:
                    if char == ";" and braces == 0:
                        return text, number
                    if char == "{" and kind in (*FUNCTIONS, *TYPES):
                        return text, number
                    if (char == ":" and kind in FUNCTIONS and ":" not in code[at - 1:at]
                            and code[at + 1:at + 2] != ":"):
                        return text, number
                    braces += (char == "{") - (char == "}")
                text += char
            text += "\n"
            number += 1
        raise Unreadable(f"{self.path}:{line}: the declaration does not end")

    def comment_above(self, line):
        """Returns the lines of the comment that ends above this line, and its first line."""
        number = line
        while number > 1 and COMMENT.fullmatch(self.lines[number - 2]):
            number -= 1
        return paragraphs(self.lines[number - 1:line - 1]), number

    def trailing_comment(self, begin, end):
        """Returns the comment on the lines of a declaration, which may continue below it."""
        found = []
        for number in range(begin, end + 1):
            line = self.lines[number - 1]
            code = self.code[number - 1]
            if code.strip() and len(code) < len(line.rstrip()):
                found.append(line[len(code):].strip().removeprefix("//").strip())
                column = line.index("//", len(code))
                while number < len(self.lines) and column > 8 and (
                        self.lines[number].strip().startswith("//")
                        and self.lines[number].index("//") == column):
                    found.append(self.lines[number].strip().removeprefix("//").strip())
                    number += 1
        return " ".join(found)


def tidy(text, indent):
    """Returns a declaration without marks of the build and without the indentation of its class."""
    lines = [line[indent:] if line[:indent].isspace() else line for line in text.split("\n")]
    shift = 0
    for number, line in enumerate(lines):
        if number and len(line) - len(line.lstrip()) > shift + 4:
            line = line[shift:]
        lines[number] = MARKS.sub("", line)
        shift = max(shift, len(line) - len(lines[number]))
    return "\n".join(lines).strip()


def enumerator_text(code, name):
    found = re.search(rf"\b{name}\b(\s*=\s*[^,}}]+)?", code)
    return re.sub(r"\s+", " ", found[0]).strip()


def full_name(tag):
    return (tag.get("scope", "") + "::" + tag["name"]).removeprefix("::")


def is_hidden(tag):
    words = (tag.get("scope", "") + "::" + tag["name"]).split("::")
    return ("detail" in words or any(word.startswith("__anon") for word in words)
            or tag.get("scopeKind") == "function")


def wanted(header, tag):
    owner = header.owner_of(tag["line"])
    behind = (tag["kind"] in FUNCTIONS and tag.get("scopeKind") in TYPES
              and (owner is None or owner["kind"] == "namespace"))
    return (tag["kind"] not in ("namespace", "macro") and not is_hidden(tag) and not behind
            and tag.get("access", "public") == "public" and header.is_public(tag["line"]))


def declare(header, tag):
    """Returns the Declaration of one tag, without its comment."""
    kind, name = tag["kind"], re.sub(r"operator (?=[^\w])", "operator", tag["name"])
    owner = header.owner_of(tag["line"])
    scope = tag.get("scope", "urma")
    if owner and owner["kind"] in TYPES and kind not in (*TYPES, "enumerator"):
        scope = full_name(owner)
    if kind == "enumerator":
        text = enumerator_text(header.code[tag["line"] - 1], name)
        return Declaration(header.path, tag["line"], tag["line"], kind, name, scope, text)
    begin = header.first_line(tag["line"])
    text, last = header.text_from(begin, kind)
    indent = len(header.lines[begin - 1]) - len(header.lines[begin - 1].lstrip())
    end = tag.get("end", last) if kind in (*FUNCTIONS, *TYPES) else last
    return Declaration(header.path, begin, max(last, end), kind, name, scope, tidy(text, indent))


def shares(one, block):
    """Whether a comment also documents a declaration further down: a field only if it says so."""
    return one.kind not in ("member", "field") or block.startswith("These ")


def attach_comments(header, declarations):
    """Sets the comments of the declarations of one header, which are in the order of its lines."""
    last = {}
    for one in declarations:
        above, begin = header.comment_above(one.line)
        before = last.get(one.scope)
        if above:
            one.group = begin
            block = "\n".join(above)
        elif before and before[0].end in (one.line, one.line - 1) and shares(one, before[1]):
            one.group, block = before[0].group, before[1]
        else:
            one.group, block = one.line, ""
        last[one.scope] = (one, block)
        own = "" if one.kind in (*FUNCTIONS, *TYPES) else header.trailing_comment(one.line, one.end)
        one.comment, one.heading = (own, block) if own else (block, "")


def notes_of(header, declarations):
    """Yields the comments that a blank line follows."""
    hidden = [(one[0], one[1]) for one in header.scopes if is_hidden(one[2])]
    hidden += [(one.line, one.end) for one in declarations if one.kind in FUNCTIONS]
    number = 1
    while number <= len(header.lines):
        begin = number
        while number <= len(header.lines) and COMMENT.fullmatch(header.lines[number - 1]):
            number += 1
        blank = number > len(header.lines) or not header.lines[number - 1].strip()
        inside = any(first <= begin <= last for first, last in hidden)
        if number > begin and blank and not inside and header.is_public(begin):
            owner = header.owner_of(begin)
            scope = full_name(owner) if owner else ""
            text = "\n".join(paragraphs(header.lines[begin - 1:number - 1]))
            yield Declaration(header.path, begin, number - 1, "note", "", scope, "", text, begin)
        number = max(number, begin + 1)


def check_all_read(header, declarations):
    """Fails if a line of public code belongs to no declaration: then ctags does not know its
    syntax."""
    read = set()
    for begin, end, tag in header.scopes:
        first = header.first_line(begin)
        whole = is_hidden(tag) or not header.is_public(begin)
        braces = range(first, end + 1) if whole else (*range(first, begin + 1), end)
        read.update(braces)
    for tag in header.tags:
        if tag["kind"] not in TYPES and tag["kind"] != "namespace" and not wanted(header, tag):
            read.update(range(header.first_line(tag["line"]), tag.get("end", tag["line"]) + 1))
    for one in declarations:
        if one.kind not in TYPES:
            read.update(range(one.line, one.end + 1))
        else:
            read.update(range(one.line, one.line + one.text.count("\n") + 1))
    for number, code in enumerate(header.code, 1):
        code = code.strip()
        passed = (not code or code.startswith(("#", "}")) or re.fullmatch(
            r"(template <[^>]*> )?(friend )?(class|struct) \w+;|friend .* = default;", code)
            or ACCESS.fullmatch(" " + code))
        if number not in read and not passed and header.is_public(number):
            raise Unreadable(f"{header.path}:{number}: ctags finds no declaration here: {code}. "
                             "Fix: write it in a way that it knows, or teach site/declarations.py")


def read_header(root, path, tags):
    header = Header(root, path, sorted(tags, key=lambda tag: tag["line"]))
    found, seen = [], set()
    for tag in header.tags:
        if wanted(header, tag):
            one = declare(header, tag)
            if (one.line, one.full) not in seen or one.kind == "enumerator":
                seen.add((one.line, one.full))
                found.append(one)
    attach_comments(header, found)
    check_all_read(header, found)
    return sorted([*found, *notes_of(header, found)], key=lambda one: (one.line, one.end))


def read_declarations(root):
    """Returns the declarations and notes of all public headers, by the path of the header."""
    root = pathlib.Path(root)
    tool = find_ctags()
    if not tool:
        raise Unreadable("ctags is not Universal Ctags with JSON. Fix: "
                         "apt-get install universal-ctags")
    headers = public_headers(root)
    command = [tool, "--options=NONE", "--languages=C++", "--langmap=C++:+.h", "--kinds-C++=+px-d",
               *EXTENSIONS, "--fields=NnFkKsae", "--output-format=json", "--sort=no", "-f", "-",
               *headers]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    tags = {path: [] for path in headers}
    for line in done.stdout.splitlines():
        tag = json.loads(line)
        tags[tag["path"]].append(tag)
    return {path: read_header(root, path, tags[path]) for path in headers}
