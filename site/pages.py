# SPDX-License-Identifier: Apache-2.0
"""The pages of the site: their navigation, their frame, and links from one to another."""

import dataclasses
import html
import os
import pathlib
import re
import string

HERE = pathlib.Path(__file__).resolve().parent
FRAME = string.Template((HERE / "frame.html").read_text(encoding="utf-8"))


class Broken(Exception):
    """Something in the tree keeps the site from being built."""


@dataclasses.dataclass
class Page:
    url: str  # from the top of the site
    title: str
    body: str = ""
    sections: list = dataclasses.field(default_factory=list)  # (anchor, text) for the navigation
    source: str = ""  # the file of the tree that it shows
    kind: str = "document"


@dataclasses.dataclass
class Entry:
    """A line of contents.txt."""
    path: str
    title: str


def read_contents():
    """Returns the groups of the navigation: [(name, [Entry])]."""
    groups = []
    for line in (HERE / "contents.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            path, title = line.strip().split("  ")
            groups[-1][1].append(Entry(path, title))
        elif line and not line.startswith("#"):
            groups.append((line, []))
    return groups


def slug(text, taken):
    """Returns the anchor that GitHub gives to a heading, and adds it to `taken`."""
    plain = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
    name, number = plain, 0
    while name in taken:
        number += 1
        name = f"{plain}-{number}"
    taken.add(name)
    return name


def relative(target, page_url):
    """Returns a link to `target`, which may have an anchor, from a page."""
    path, hash_mark, anchor = target.partition("#")
    if path == page_url:
        return "#" + anchor if hash_mark else os.path.basename(path)
    return os.path.relpath(path, os.path.dirname(page_url) or ".") + hash_mark + anchor


def navigation_of(page, groups):
    """Returns the list of pages, open at the group and the sections of this page.

    `groups` is [(name, [(url, title, [(url, title) of the classes of a header])])]."""
    parts = []
    for name, entries in groups:
        rows, is_open = [], False
        for url, title in entries:
            here = url == page.url
            is_open |= here
            mark = ' aria-current="page"' if here else ""
            rows.append(f'<li><a href="{relative(url, page.url)}"{mark}>{html.escape(title)}</a>')
            if here and page.sections:
                rows.append("<ul>" + "".join(
                    f'<li><a href="#{anchor}">{html.escape(text)}</a></li>'
                    for anchor, text in page.sections) + "</ul>")
            rows.append("</li>")
        # The reference has many pages: it is folded away elsewhere.
        shown = " open" if is_open or len(entries) < 20 else ""
        parts.append(f"<details{shown}><summary>{html.escape(name)}</summary>"
                     f"<ul>{''.join(rows)}</ul></details>")
    return "".join(parts)


def turn_pages(page, groups):
    """Returns links to the pages before and behind this one."""
    flat = [entry for _, entries in groups for entry in entries]
    at = next((number for number, (url, _) in enumerate(flat) if url == page.url), None)
    if at is None:
        return ""
    links = []
    for word, other in (("previous", at - 1), ("next", at + 1)):
        if 0 <= other < len(flat):
            url, title = flat[other]
            links.append(f'<a class="{word}" rel="{word[:4]}" href="{relative(url, page.url)}">'
                         f"{html.escape(title)}</a>")
    return f'<nav class="turn" aria-label="Neighbours">{"".join(links)}</nav>'


def frame(page, groups, version):
    """Returns the whole HTML of a page."""
    title = page.title if page.url == "index.html" else f"{page.title} - liburma"
    return FRAME.substitute(
        title=html.escape(title), kind=page.kind, body=page.body, version=html.escape(version),
        root=relative("index.html", page.url).removesuffix("index.html"),
        home=relative("index.html", page.url), navigation=navigation_of(page, groups),
        turn=turn_pages(page, groups),
        source=f"<span>made from {html.escape(page.source)}</span>" if page.source else "")
