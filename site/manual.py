# SPDX-License-Identifier: Apache-2.0
"""Manual pages of section 3: one for each page of the reference, and a line that refers to it for
each type and each function."""

import re

from declarations import FUNCTIONS, TYPES
from reference import blocks_of, class_pages, entries_of, including


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def inline(text):
    return re.sub(r"`([^`]+)`", r"\\fB\1\\fP", escaped(text))


def comment(text):
    """Returns the lines of a comment."""
    out = []
    for number, (kind, lines) in enumerate(blocks_of(text)):
        if number:
            out.append(".PP")
        if kind == "code":
            out += [".nf", *(escaped(one) for one in lines), ".fi"]
        elif kind == "items":
            for one in lines:
                out += [".IP \\(bu 2", inline(one)]
        elif kind == "rows":
            for name, meaning in lines:
                out += [f".IP \"{escaped(name)}\" 4", inline(meaning)]
        else:
            out += [inline(one) for one in lines]
    return out


def code(text):
    return [".nf", *(f"\\fB{escaped(one)}\\fP" for one in text.split("\n")), ".fi"]


def members(declarations, scope, owner=None):
    """Returns the members of a class, a structure, an enumeration or a namespace."""
    out = []
    for entry in entries_of(declarations, scope, owner):
        first = entry[0]
        if first.kind == "note":
            out += [".PP", *comment(first.comment)]
            continue
        out += [".PP", *code("\n".join(
            one.text + (";" if one.kind in (*FUNCTIONS, *TYPES) else "") for one in entry)),
                ".RS 4", *comment(first.comment)]
        if first.kind in TYPES:
            out += members(declarations, first.full, first)
        out.append(".RE")
    return out


def page(name, summary, header, described, body, version):
    lines = [f'.TH "{escaped(name)}" 3 "" "liburma {version}" "liburma"', ".SH NAME",
             f"{escaped(name)} \\- {escaped(summary)}", ".SH SYNOPSIS",
             *code(f"#include <{including(header)}>"), ".PP",
             "Link with \\fI\\-lurma\\fP: pkg\\-config \\-\\-cflags \\-\\-libs urma.",
             ".SH DESCRIPTION", *described, *body, ".SH SEE ALSO",
             "urma_info(1), urma_perf(1), urma(7), urma\\-errors(7)"]
    # An empty line, or a paragraph without text, is a fault of a manual page.
    text = "\n".join(one for one in lines if one)
    text = re.sub(r"(\.PP\n)+(?=\.(PP|IP|SH|RS|RE))", "", text)
    return re.sub(r"(\.(?:SH DESCRIPTION|RS 4)\n)\.PP\n", r"\1", text) + "\n"


def first_sentence(text, name):
    """Returns the first sentence of a comment, without the name that it explains."""
    sentence = re.split(r"\.(?:\s|$)", " ".join(text.split("\n")), maxsplit=1)[0]
    return re.sub(rf"^(An? )?[\w ]*{name}: |^An? [\w ]+(\(UB: \w+\))?: ", "", sentence,
                  flags=re.IGNORECASE)


def file_of(name):
    """Returns the file of a page: urma::Device is explained by urma_Device.3."""
    return name.replace("::", "_") + ".3"


def manual_pages(headers, titles, version):
    """Returns the text of each page, by the name of its file."""
    pages = {}
    for path, declarations in headers.items():
        if path not in titles:
            continue
        classes = class_pages(path, declarations)
        for one in classes:
            pages[file_of(one.full)] = page(
                one.full, first_sentence(one.comment, one.name), path, comment(one.comment),
                members(declarations, one.full, one), version)
        others = [one for one in declarations if one not in classes and not any(
            one.scope == owner.full or one.scope.startswith(owner.full + "::")
            for owner in classes)]
        stem = path.removeprefix("urma/").removeprefix("core/").split(".")[0].replace("/", "_")
        name = "urma_" + stem if stem != "urma" else "urma"
        notes = [line for one in others if one.kind == "note" and one.scope == ""
                 for line in comment(one.comment)]
        inner = {one.full for one in others}
        scopes = list(dict.fromkeys(one.scope for one in others if one.kind != "note"
                                    and one.scope not in inner))
        body = [line for scope in scopes for line in members(others, scope)]
        pages[name + ".3"] = page(name, titles[path], path, notes, body, version)
        for one in others:
            if one.kind in (*TYPES, *FUNCTIONS) and one.scope in ("urma", "urma::asio") and (
                    re.fullmatch(r"\w+", one.name)):
                pages.setdefault(file_of(one.full), f".so man3/{name}.3\n")
    return pages
