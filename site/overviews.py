# SPDX-License-Identifier: Apache-2.0
"""Manual pages of section 7, made of parts of the documents, of the tools' manual pages and of the
table of statuses."""

import re

import catalogue
from manual import escaped, inline
from pages import Broken

TOOL = re.compile(r"^\.SH NAME\n(\S+) \\- (.*)$", re.MULTILINE)
FILES = re.compile(r"^\.SH FILES\n(.*?)(?=^\.SH )", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^\.TP\n\.I (.*)\n(.*)$", re.MULTILINE)


class Part:
    """Some tokens of a document, as markdown-it returns them."""

    def __init__(self, tokens):
        self.tokens = tokens

    @classmethod
    def of_document(cls, root, path, parser):
        part = cls(parser.parse((root / path).read_text(encoding="utf-8")))
        part.path = path
        return part

    def _chosen(self, begin, end):
        part = Part(self.tokens[begin:end])
        part.path = self.path
        return part

    def under(self, title):
        """Returns what follows a heading, up to the next heading."""
        starts = [at for at, token in enumerate(self.tokens) if token.type == "heading_open"]
        for at, end in zip(starts, starts[1:] + [len(self.tokens)]):
            if self.tokens[at + 1].content == title:
                return self._chosen(at + 3, end)
        raise Broken(f"{self.path} has no section \"{title}\"")

    def titles(self):
        """Returns all headings."""
        return [self.tokens[at + 1].content for at, token in enumerate(self.tokens)
                if token.type == "heading_open"]

    def first(self, kind):
        """Returns the first paragraph, or the first list, with all that is in it."""
        for at, token in enumerate(self.tokens):
            if token.type == f"{kind}_open":
                return self._chosen(at, self._end_of(at))
        raise Broken(f"{self.path} has no {kind}")

    def item(self, name):
        """Returns the item of a list that begins with a name in bold."""
        for at, token in enumerate(self.tokens):
            if token.type == "list_item_open" and (
                    self.tokens[at + 2].content.startswith(f"**{name}**")):
                return self._chosen(at, self._end_of(at))
        raise Broken(f"{self.path} has no item **{name}**")

    def _end_of(self, at):
        level = self.tokens[at].level
        return next(end for end in range(at + 1, len(self.tokens))
                    if self.tokens[end].level == level) + 1

    def lines(self):
        """Returns the part as lines of a manual page."""
        out, cells, heads = [], None, []
        for token, following in zip(self.tokens, [*self.tokens[1:], None]):
            if token.type == "list_item_open":
                out.append(".IP \\(bu 2")
            elif token.type == "paragraph_open" and not (out and out[-1].startswith(".IP")):
                out.append(".PP")
            elif token.type == "bullet_list_close":
                out.append(".PP")
            elif token.type in ("code_block", "fence"):
                out += [".sp", ".RS 4", ".nf", *(escaped(one) for one in
                                                 token.content.rstrip("\n").split("\n")),
                        ".fi", ".RE", ".PP"]
            elif token.type == "tr_open":
                cells = []
            elif token.type in ("th_open", "td_open"):
                cells.append(spans(following.children))
            elif token.type == "tr_close" and not heads:
                heads = cells
            elif token.type == "tr_close":
                out += [".TP", cells[0]]
                for head, cell in zip(heads[1:-1], cells[1:-1]):
                    out += [f"{head}: {cell}", ".br"] if cell else []
                out.append(cells[-1])
            elif token.type == "table_close":
                heads, cells = [], None
                out.append(".PP")
            elif token.type == "inline" and cells is None:
                out += spans(token.children).split("\n")
        return out


def spans(children):
    """Returns the text of a paragraph, with its fonts."""
    fonts = {"strong_open": "\\fB", "em_open": "\\fI", "strong_close": "\\fP", "em_close": "\\fP",
             "softbreak": "\n"}
    text = ""
    for child in children:
        if child.type == "code_inline":
            text += f"\\fB{escaped(child.content)}\\fP"
        elif child.type == "text":
            text += child.content.replace("\\", "\\e").replace("-", "\\-")
        else:
            text += fonts.get(child.type, "")
    # A line that begins with a full stop or an apostrophe would be a request.
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def page(name, summary, version, sections, see_also):
    lines = [f'.TH "{escaped(name)}" 7 "" "liburma {version}" "liburma"', ".SH NAME",
             f"{escaped(name)} \\- {escaped(summary)}"]
    for title, body in sections:
        lines += [f".SH {title}", *body]
    lines += [".SH SEE ALSO", escaped(", ".join(see_also))]
    text = "\n".join(one for one in lines if one)
    # A paragraph without text, or one at the beginning of a section, is a fault of a manual page.
    text = re.sub(r"(\.PP\n)+(?=\.(PP|IP|TP|SH|RS|RE|sp)\b)", "", text)
    return re.sub(r"(\.SH [A-Z ]+\n)\.(PP|sp)\n", r"\1", text) + "\n"


def summary_of(root):
    found = re.search(r'DESCRIPTION "([^"]+)"', (root / "CMakeLists.txt").read_text("utf-8"))
    if not found:
        raise Broken("CMakeLists.txt has no description of the project urma")
    return found[1][0].lower() + found[1][1:]


def tools_and_files(root):
    """Returns what the manual pages of the tools say of each tool, and of each file, once."""
    tools, files = [], {}
    for path in sorted((root / "docs/man").glob("*.1")):
        text = path.read_text(encoding="utf-8")
        name, summary = TOOL.search(text).groups()
        tools.append((name, summary))
        for file, meaning in FILE.findall(FILES.search(text)[1]):
            files.setdefault(file, meaning)
    return tools, files


def overview(root, version, parser):
    """Returns urma(7)."""
    readme = Part.of_document(root, "README.md", parser)
    operating = Part.of_document(root, "docs/operating.md", parser)
    reading = Part.of_document(root, "docs/README.md", parser)
    tools, files = tools_and_files(root)
    words = [line for name in ("Works", "Completions", "Memory", "Threads")
             for line in readme.item(name).lines()]
    sections = [
        ("DESCRIPTION", readme.first("paragraph").lines()),
        ("CONCEPTS", words),
        ("DEVICES", readme.item("Devices").lines()),
        ("TOOLS", [line for name, summary in tools
                   for line in (".TP", f"\\fB{name}\\fP(1)", summary)]),
        ("ENVIRONMENT", operating.under("Environment and file").lines()),
        ("FILES", [line for name, meaning in files.items()
                   for line in (".TP", f"\\fI{name}\\fP", meaning)]),
        ("DOCUMENTS", reading.first("bullet_list").lines()),
    ]
    return page("urma", summary_of(root), version, sections,
                [*(f"{name}(1)" for name, _ in tools), "urma(3)", "urma-devices(7)",
                 "urma-errors(7)"])


def errors(root, version, parser, title):
    """Returns urma-errors(7)."""
    operating = Part.of_document(root, "docs/operating.md", parser)
    statuses = []
    for one in catalogue.statuses(root):
        statuses += [".TP", f"\\fB{escaped(one['name'])}\\fP", inline(one["meaning"])]
        if one["name"] != "ok":
            statuses += [".RS", "Likely causes:" if one["causes"] else ""]
            statuses += [line for cause in one["causes"] for line in (".IP \\(bu 2", inline(cause))]
            statuses += [".PP", "\\fBFix:\\fP " + inline(one["cure"]), ".RE"]
    sections = [
        ("DESCRIPTION", operating.under("When something does not work").lines()),
        ("STATUSES", statuses),
        ("THE MOST LIKELY ERRORS", operating.under("The most likely first errors").lines()),
    ]
    return page("urma-errors", title[0].lower() + title[1:], version, sections,
                ["urma_info(1)", "urma(7)", "urma(3)", "urma_Status(3)", "urma_Error(3)"])


def devices(root, version, parser):
    """Returns urma-devices(7)."""
    document = Part.of_document(root, "docs/devices.md", parser)
    title, *drivers = document.titles()
    sections = [("DESCRIPTION", document.under(title).lines()),
                *((name.upper(), document.under(name).lines()) for name in drivers)]
    return page("urma-devices", title[0].lower() + title[1:], version, sections,
                ["urma_info(1)", "urma(7)", "urma-errors(7)"])


def overview_pages(root, version, parser, errors_title):
    """Returns the text of each page, by the name of its file."""
    return {"urma.7": overview(root, version, parser),
            "urma-devices.7": devices(root, version, parser),
            "urma-errors.7": errors(root, version, parser, errors_title)}
