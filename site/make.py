#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the site: make.py ROOT OUT. Pages of documents, of the API, of tables in the sources; and
manual pages of sections 3 and 7 in OUT/man3 and OUT/man7."""

import collections
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys

from pygments.formatters import HtmlFormatter

import catalogue
import manual
import overviews
import reference
from declarations import Unreadable, read_declarations
from documents import Documents, listing_of, url_of
from pages import HERE, Broken, frame, read_contents

GENERATED = {"errors": "errors.html", "counters": "counters.html", "tools": "man/index.html",
             "reference": "reference/index.html"}


def version_of(root):
    found = re.search(r"project\(\s*urma\s+VERSION\s+([\d.]+)",
                      (root / "CMakeLists.txt").read_text(encoding="utf-8"))
    if not found:
        raise Broken("CMakeLists.txt has no version of the project urma")
    return found[1]


def listed_pages(contents, headers):
    """Returns the addresses of what contents.txt lists, and fails if it lacks part of the API."""
    classes = {one.full.removeprefix("urma::"): reference.url_of_class(one)
               for path, found in headers.items() for one in reference.class_pages(path, found)}
    addresses = {}
    for _, entries in contents:
        for entry in entries:
            path = entry.path
            made = reference.url_of_header(path) if path in headers else url_of(path)
            addresses[path] = GENERATED.get(path) or classes.get(path) or made
    wanted = set(classes) | {path for path, found in headers.items()
                             if any(one.kind != "note" for one in found)}
    if missing := sorted(wanted - set(addresses)):
        raise Broken(f"site/contents.txt lacks {', '.join(missing)}. Fix: add a line for each")
    return addresses


def front(page):
    """Divides the first page: what liburma is and the two commands come before everything else."""
    head, mark, rest = page.body.partition("<h2")
    block = re.search(r"<pre[^>]*><code>(.*?)</code></pre>", head, re.DOTALL)
    commands = re.findall(r"^(?:\./|build/).*$", block[1] if block else "", re.MULTILINE)
    if len(commands) != 2:
        raise Broken("the first block of README.md does not have two commands that begin with ./ "
                     "or build/")
    typed = f'<pre class="try" tabindex="0"><code>{chr(10).join(commands)}</code></pre>'
    head = head.replace("</p>", "</p>" + typed, 1)
    page.body = f'<div class="hero">{head}</div>{mark}{rest}'
    page.kind = "front"


def document_pages(root, documents, contents):
    """Returns the pages of the documents in the navigation, and of what they need."""
    titles = {entry.path: entry.title for _, entries in contents for entry in entries
              if entry.path.endswith(".md")}
    queue, seen, made = collections.deque(titles), set(titles), []
    while queue:
        path = queue.popleft()
        if path.endswith(".md"):
            page = documents.page_of(path, titles.get(path))
            if path == "README.md":
                front(page)
                page.title = "liburma"
            made.append(page)
        else:
            made.append(listing_of(root, path, {}))
        for other in documents.needed:
            if other not in seen:
                seen.add(other)
                queue.append(other)
    return made


def plain(body):
    """Returns the words of a part of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split()).lower()


def search_entries(pages, names):
    """Returns what the search finds: [title, address, where, text]. The text of names of the API is
    left out: their titles are what people look for."""
    found = []
    for page in pages:
        if page.kind in ("listing", "reference"):
            if page.kind == "reference":
                found.append([page.title, page.url, "", ""])
            continue
        first, *rest = re.split(r'<h2 [^>]*?id="([^"]+)"', page.body)
        found.append([page.title, page.url, "", plain(first)])
        titles = dict(page.sections)
        found += [[titles.get(anchor, anchor.capitalize()), f"{page.url}#{anchor}", page.title,
                   plain("<h2 " + body)] for anchor, body in zip(rest[::2], rest[1::2])]
    found += [[full.removeprefix("urma::"), place, "API", ""]
              for full, place in names.places.items()]
    found += [[name, place, "Status", ""] for name, place in names.statuses.items()]
    return found


def style():
    """Returns the style sheet, with the colours of code for light and for dark screens."""
    light = HtmlFormatter(style="xcode").get_style_defs("pre")
    dark = HtmlFormatter(style="github-dark").get_style_defs("pre")
    rule = re.compile(r"^pre (\.\w+) \{ ([^}]*) \}", re.MULTILINE)

    def rules(text):
        text = re.sub(r"background-color: [^;}]+;?|border: [^;}]+;?", "", text)
        return "\n".join(f"pre {name}{{{body}}}" for name, body in rule.findall(text))
    return ((HERE / "style.css").read_text(encoding="utf-8") + "@media screen{\n" + rules(light)
            + "\n}\n@media screen and (prefers-color-scheme:dark){\n" + rules(dark) + "\n}\n")


def write(out, place, text):
    path = out / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def build(root, out):
    version, contents = version_of(root), read_contents()
    headers = read_declarations(root)
    names = reference.collect_names(headers)
    names.statuses.update({one["name"]: f'errors.html#{one["name"]}'
                           for one in catalogue.statuses(root)})
    addresses = listed_pages(contents, headers)
    names.files.update(addresses)
    where = {path: url for path, url in addresses.items() if path in headers}
    where |= {"docs/man": "man/index.html"}
    documents = Documents(root, names, where)
    titles = {entry.path: entry.title for _, entries in contents for entry in entries}
    pages = document_pages(root, documents, contents)
    for path, found in headers.items():
        if path in titles:
            pages += reference.pages_of_header(path, titles[path], found, names)
    pages += [reference.index_page(headers, names), catalogue.errors_page(root, names),
              catalogue.counters_page(root), *catalogue.tool_pages(root)]
    groups = [(name, [(addresses[entry.path], entry.title) for entry in entries])
              for name, entries in contents]
    shutil.rmtree(out, ignore_errors=True)
    for page in pages:
        write(out, page.url, frame(page, groups, version))
    write(out, "style.css", style())
    shutil.copy(HERE / "icon.svg", out / "icon.svg")
    shutil.copy(HERE / "search.js", out / "search.js")
    write(out, "search-entries.js", "searchEntries(" + json.dumps(
        search_entries(pages, names), separators=(",", ":")) + ");\n")
    for picture in documents.pictures:
        (out / picture).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / picture, out / picture)
    manuals = manual.manual_pages(headers, titles, version)
    manuals |= overviews.overview_pages(root, version, documents.parser, titles["errors"])
    for name, text in manuals.items():
        write(out, f"man{name[-1]}/{name}", text)
    return len(pages), len(manuals)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: make.py ROOT OUT")
    root, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    if out.exists() and any(out.iterdir()) and not (out / "search-entries.js").exists():
        sys.exit(f"site: {out} has files that the site did not make. Fix: name another folder")
    try:
        pages, manuals = build(root, out)
    except (Broken, Unreadable) as why:
        sys.exit(f"site: {why}")
    except OSError as why:
        sys.exit(f"site: {why.filename}: {why.strerror}. Fix: name a folder that can be written, "
                 "with room for 20 MB")
    print(f"site: {pages} pages: {out}/index.html; {manuals} manual pages: {out}/man3, {out}/man7")


if __name__ == "__main__":
    main()
