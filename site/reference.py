# SPDX-License-Identifier: Apache-2.0
"""The reference of the API: pages made of the declarations of the public headers."""

import html
import re

from declarations import TYPES
from pages import Page, relative

WORD = re.compile(r"[A-Za-z_]\w*")
KEYWORDS = frozenset(
    "auto bool char class concept const constexpr default double enum explicit float friend int "
    "long mutable namespace nodiscard noexcept operator private public requires return short "
    "signed sizeof static struct template this typename union unsigned using void".split())
# Code, a qualified name, or a file of the tree.
MARKED = re.compile(
    r"(`[^`]+`|(?<![\w:])(?:\w+::)+~?\w+(?:\(\))?|\b(?:docs|urma)/[\w/]+\.\w+)")
# A line of a comment that begins with one of these words begins a paragraph.
STARTS = re.compile(r"(Errors|Threads|Statuses, beside ok|Lifetimes|Arguments|Thread safety|Results"
                    r"|Backpressure|Completion tokens): ?")
ITEM = re.compile(r" *- ")
ROW = re.compile(r"  (\w[\w, ]*?)\s{2,}(\S.*)$")


def anchor_of(name):
    return re.sub(r"[^\w.]", lambda found: f"-{ord(found[0]):x}", name.replace("::", "."))


def short_name(full):
    """Returns a name without the namespaces of the library."""
    return full.removeprefix("urma::").removeprefix("asio::")


class Names:
    """Where the reference explains each name."""

    def __init__(self):
        self.places = {}  # "urma::Device::allocate" -> "reference/Device.html#allocate"
        self.statuses = {}  # "not_found" -> "errors.html#not_found"
        self.files = {}  # "docs/security.md" -> "docs/security.html"

    def add(self, full, target):
        self.places.setdefault(full, target)

    def find(self, text, scope="urma"):
        """Returns the place of a name as a text writes it within `scope`, or None."""
        text = re.sub(r"\(.*\)$", "", text.strip())
        if not re.fullmatch(r"(::)?\w+(::~?\w+)*", text):
            return None
        parts = scope.split("::")
        for length in range(len(parts), 0, -1):
            place = self.places.get("::".join(parts[:length]) + "::" + text)
            # A word alone is a name of the API only if it is spelled like one of its types, or is
            # used inside of the class.
            if place and (length > 1 or "::" in text or text[0].isupper()
                          or scope != "urma" or "_" in text):
                return place
        return self.places.get(text)


class Writer:
    """Writes comments and declarations of one page."""

    def __init__(self, names, url):
        self.names, self.url = names, url

    def link(self, target, inner):
        return f'<a href="{relative(target, self.url)}">{inner}</a>'

    def code(self, text, scope, own=""):
        """Returns a declaration with links at the types that it names."""
        def word(found):
            name = found[0]
            if name in KEYWORDS:
                return f"<b>{name}</b>"
            if name == own:
                return f"<em>{name}</em>"
            place = name[0].isupper() and self.names.find(name, scope)
            return self.link(place, name) if place else name
        parts = re.split(r"([A-Za-z_]\w*)", text)
        return "".join(word(WORD.fullmatch(part)) if WORD.fullmatch(part) else html.escape(part)
                       for part in parts)

    def inline(self, text, scope):
        """Returns a piece of a comment as HTML: names and codes are marked and linked."""
        out = []
        for part in MARKED.split(text):
            if part in self.names.files:
                out.append(self.link(self.names.files[part], html.escape(part)))
            elif part.startswith("`") and len(part) > 2 or "::" in part and " " not in part:
                name = part.strip("`")
                place = self.names.statuses.get(name) or self.names.find(name, scope)
                code = f"<code>{html.escape(name)}</code>"
                out.append(self.link(place, code) if place else code)
            else:
                out.append(html.escape(part))
        return "".join(out)

    def errors(self, text, scope):
        """Returns a list of statuses with a link at each."""
        def status(found):
            place = self.names.statuses.get(found[0])
            return self.link(place, f"<code>{found[0]}</code>") if place else found[0]
        return re.sub(r"(?<![\w>=\"#/.])[a-z]+(?:_[a-z]+)*(?![\w\"])(?!</code>)", status,
                      self.inline(text, scope))

    def comment(self, text, scope):
        """Returns the text of a comment as HTML."""
        return "".join(self.block(kind, lines, scope) for kind, lines in blocks_of(text))

    def block(self, kind, lines, scope):
        if kind == "code":
            shortest = min(len(one) - len(one.lstrip()) for one in lines if one.strip())
            code = "\n".join(one[shortest:] for one in lines).rstrip()
            return f'<pre tabindex="0"><code>{html.escape(code)}</code></pre>'
        if kind == "items":
            items = (f"<li>{self.inline(one, scope)}</li>" for one in lines)
            return f"<ul>{''.join(items)}</ul>"
        if kind == "rows":
            rows = (f"<dt>{self.errors(name, scope)}</dt><dd>{self.inline(text, scope)}</dd>"
                    for name, text in lines)
            return f'<dl class="rows">{"".join(rows)}</dl>'
        text = joined(lines)
        found = STARTS.match(text)
        if not found:
            return f"<p>{self.inline(text, scope)}</p>"
        rest = text[found.end():]
        writes = self.errors if found[1] == "Errors" else self.inline
        mark = ' class="errors"' if found[1] == "Errors" else ""
        return f"<p{mark}><strong>{found[1]}:</strong> {writes(rest, scope)}</p>"


def joined(lines):
    """Returns the lines as one; a name may go on in the next line."""
    return re.sub(r"(?<=\w::) (?=\w)", "", " ".join(lines))


def blocks_of(text):
    """Yields the blocks of a comment: ("text" | "code" | "items" | "rows", lines)."""
    blocks = []
    for line in text.split("\n"):
        last = blocks[-1] if blocks else ("", [])
        row = ROW.fullmatch(line)
        deep = len(line) - len(line.lstrip())
        if not line.strip():
            if last[0] == "code":
                last[1].append("")
            else:
                blocks.append(("", []))
        elif ITEM.match(line) and last[0] != "code":
            if last[0] != "items":
                blocks.append(("items", []))
            blocks[-1][1].append(ITEM.sub("", line, count=1))
        elif deep >= 2 and last[0] == "items":
            last[1][-1] = joined([last[1][-1], line.strip()])
        elif row and last[0] != "code":
            if last[0] != "rows":
                blocks.append(("rows", []))
            blocks[-1][1].append((row[1], row[2]))
        elif deep >= 8 and last[0] == "rows":
            last[1][-1] = (last[1][-1][0], last[1][-1][1] + " " + line.strip())
        elif deep >= 2:
            if last[0] != "code":
                blocks.append(("code", []))
            blocks[-1][1].append(line)
        elif last[0] == "text" and not STARTS.match(line):
            last[1].append(line)
        else:
            blocks.append(("text", [line]))
    return [block for block in blocks if block[1]]


def in_scope(declarations, scope, owner=None):
    """Yields the members of a scope, which may be several specialisations: those of `owner`."""
    for one in declarations:
        if one.scope == scope and (owner is None or owner.line <= one.line <= owner.end):
            yield one


def entries_of(declarations, scope, owner=None):
    """Returns the members of a scope: lists of neighbours that share a comment."""
    entries = []
    for one in in_scope(declarations, scope, owner):
        if one.special:
            continue
        last = entries[-1][0] if entries else None
        if last and last.kind != "note" and one.kind != "note" and last.group == one.group and (
                last.comment == one.comment and last.kind not in TYPES and one.kind not in TYPES):
            entries[-1].append(one)
        else:
            entries.append([one])
    return entries


class ReferencePage:
    """The page of a header, or of a class of it that has a page of its own."""

    def __init__(self, writer, declarations, owner=""):
        self.writer, self.declarations, self.owner = writer, declarations, owner
        self.anchors, self.sections = set(), []

    def anchor(self, one):
        """Returns the anchor of a declaration, without that of its page."""
        return anchor_of(self.short(one))

    def short(self, one):
        """Returns the name of a declaration as its page writes it."""
        if self.owner:
            return one.full.removeprefix(self.owner + "::")
        return short_name(one.full)

    def heading(self, level, one, title):
        anchor = self.anchor(one)
        if anchor in self.anchors:
            return f"<h{level}>{html.escape(title)}</h{level}>"
        self.anchors.add(anchor)
        if level == 2 and (not self.sections or self.sections[-1][1] != title):
            self.sections.append((anchor, title))
        return (f'<h{level} id="{anchor}"><a class="anchor" href="#{anchor}" '
                f'aria-label="Link to {html.escape(title)}">#</a>{html.escape(title)}</h{level}>')

    def members(self, scope, level, owner=None):
        """Returns the members of a scope as HTML."""
        parts, fields, heading = [], [], None
        for entry in [*entries_of(self.declarations, scope, owner), None]:
            first = entry[0] if entry else None
            simple = first and (first.kind in ("enumerator", "member", "field", "constant")
                                or first.kind == "variable")
            if not simple and fields:
                parts.append(f'<dl class="fields">{"".join(fields)}</dl>')
                fields = []
            if first is None:
                break
            if first.heading != heading and first.heading and first.kind != "note":
                if fields:
                    parts.append(f'<dl class="fields">{"".join(fields)}</dl>')
                    fields = []
                parts.append(self.writer.comment(first.heading, scope))
            heading = first.heading
            if simple:
                fields.append(self.field(entry, scope, owner))
            elif first.kind == "note":
                parts.append(f'<div class="note">{self.writer.comment(first.comment, scope)}</div>')
            elif first.kind in TYPES:
                parts.append(self.type(first, level))
            else:
                parts.append(self.functions(entry, scope, level))
        return "".join(parts)

    def field(self, entry, scope, owner):
        names = []
        for one in entry:
            anchor = self.anchor(one)
            mark = "" if anchor in self.anchors else f' id="{anchor}"'
            self.anchors.add(anchor)
            code = self.writer.code(one.text, scope, one.name)
            names.append(f"<code{mark}>{code}</code>")
        # The values of a short enumeration are explained by its own comment.
        own = entry[0].comment if owner is None or owner.comment != entry[0].comment else ""
        return f'<dt>{"<br>".join(names)}</dt><dd>{self.writer.comment(own, scope)}</dd>'

    def functions(self, entry, scope, level):
        """Returns an entry: the declarations and their comment, under each name once."""
        titles, parts = [], []
        for one in entry:
            if one.name not in titles:
                titles.append(one.name)
                parts.append(self.heading(level, one, one.name))
        code = "\n".join(self.writer.code(one.text, scope, one.name) + ";" for one in entry)
        head = f'<div class="names">{"".join(parts)}</div>' if len(parts) > 1 else "".join(parts)
        return (f'<section>{head}<pre tabindex="0" class="cpp"><code>{code}</code></pre>'
                f"{self.writer.comment(entry[0].comment, scope)}</section>")

    def type(self, one, level):
        """Returns a class, structure or enumeration with its members."""
        title = self.short(one)
        return (f'<section class="type">{self.heading(level, one, title)}'
                f'<pre tabindex="0" class="cpp"><code>'
                f"{self.writer.code(one.text, one.scope, one.name)};</code></pre>"
                f"{self.writer.comment(one.comment, one.full)}{self.specials(one)}"
                f"{self.members(one.full, level + 1, one)}</section>")

    def specials(self, owner):
        """Returns the functions that the comment of the class covers."""
        found = [one for one in in_scope(self.declarations, owner.full, owner) if one.special]
        if not found:
            return ""
        lines = []
        for one in found:
            anchor = self.anchor(one)
            mark = "" if anchor in self.anchors else f' id="{anchor}"'
            self.anchors.add(anchor)
            lines.append(f"<span{mark}>{self.writer.code(one.text, one.full, one.name)};</span>")
        return f'<pre tabindex="0" class="cpp special"><code>{chr(10).join(lines)}</code></pre>'


def class_pages(path, declarations):
    """Returns the classes of a header that get a page of their own."""
    return [one for one in declarations if path.endswith(".hpp") and one.kind == "class"]


def url_of_class(one):
    return f"reference/{one.full.removeprefix('urma::').replace('::', '.')}.html"


def url_of_header(path):
    return f"reference/{path.removeprefix('urma/')}.html"


def collect_names(headers):
    """Returns the Names of all headers."""
    names = Names()
    for path, declarations in headers.items():
        own = {one.full: url_of_class(one) for one in class_pages(path, declarations)}
        for one in declarations:
            if one.kind == "note":
                continue
            if one.full in own:
                names.add(one.full, own[one.full])
            elif one.scope in own:
                names.add(one.full, f"{own[one.scope]}#{anchor_of(one.name)}")
            else:
                names.add(one.full, f"{url_of_header(path)}#{anchor_of(short_name(one.full))}")
    return names


def pages_of_header(path, title, declarations, names):
    """Returns the pages of one header: its own, and those of its classes."""
    classes = class_pages(path, declarations)
    space = "urma::asio" if path.startswith("urma/asio") else "urma"
    made = []
    url = url_of_header(path)
    page = ReferencePage(Writer(names, url), [
        one for one in declarations if one not in classes
        and not any(one.scope == owner.full or one.scope.startswith(owner.full + "::")
                    for owner in classes)])
    notes = "".join(page.writer.comment(one.comment, space) for one in page.declarations
                    if one.kind == "note" and one.scope == "")
    links = "".join(
        f'<li><a href="{relative(url_of_class(one), url)}"><code>{one.name}</code></a></li>'
        for one in classes)
    scopes = list(dict.fromkeys(one.scope for one in page.declarations
                                if one.scope and one.kind != "note"
                                and one.scope not in {other.full for other in page.declarations}))
    body = (f'<h1>{html.escape(title)}</h1><p class="include"><code>#include '
            f"&lt;{including(path)}&gt;</code></p>"
            + (f'<ul class="classes">{links}</ul>' if links else "") + notes
            + "".join(page.members(scope, 2) for scope in scopes))
    made.append(Page(url, title, body, page.sections, path, "reference"))
    for one in classes:
        url = url_of_class(one)
        page = ReferencePage(Writer(names, url), declarations, one.full)
        body = (f'<h1><small>{html.escape(one.scope)}::</small>{html.escape(one.name)}</h1>'
                f'<p class="include"><code>#include &lt;{including(path)}&gt;</code></p>'
                f"{page.writer.comment(one.comment, one.full)}{page.specials(one)}"
                f"{page.members(one.full, 2, one)}")
        title = one.full.removeprefix("urma::")
        made.append(Page(url, title, body, page.sections, path, "reference"))
    return made


def including(path):
    """Returns the header that applications include to get this one."""
    if path.endswith(".hpp"):
        return path
    if path.startswith("urma/asio/"):
        return "urma/asio.hpp"
    return "urma/observe.hpp" if path == "urma/core/observed.h" else "urma/urma.hpp"


def index_page(headers, names):
    """Returns the page of all names, from A to Z."""
    url = "reference/index.html"
    found = {}
    for declarations in headers.values():
        for one in declarations:
            if one.kind not in ("note", "enumerator") and not one.special:
                found.setdefault(one.full.removeprefix("urma::"), names.places[one.full])
    rows, letter, sections = [], "", []
    for name in sorted(found, key=lambda name: (name.lower(), name)):
        if name[0].upper() != letter:
            letter = name[0].upper()
            sections.append((f"letter-{letter}", letter))
            rows.append(f'</ul><h2 id="letter-{letter}">{letter}</h2><ul class="index">')
        rows.append(f'<li><a href="{relative(found[name], url)}">{html.escape(name)}</a></li>')
    body = ("<h1>All names</h1><p>Each name of the public headers, in namespace <code>urma</code>. "
            f"</p><ul>{''.join(rows)}</ul>").replace("<ul></ul>", "")
    return Page(url, "All names", body, [], "", "reference")
