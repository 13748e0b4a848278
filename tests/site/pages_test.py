#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the site have everything, and does each of its links lead somewhere?
pages_test.py ROOT URMA_INFO URMA_STAT

Builds the site into a folder of its own and reads every page: its elements are closed, its anchors
are unique, its links and pictures exist, and it needs nothing from elsewhere.
"""

import html.parser
import json
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(sys.argv[1])
URMA_INFO, URMA_STAT = sys.argv[2:4]
sys.path.insert(0, str(ROOT / "site"))

SKIPPED = 77
VOID = ("area", "base", "br", "col", "hr", "img", "input", "link", "meta", "wbr")
EXTERNAL = re.compile(r"[a-z]+:")


class PageReader(html.parser.HTMLParser):
    """Collects the anchors and the links of a page, and checks that its elements are closed."""

    def __init__(self, name):
        super().__init__()
        self.name, self.open, self.anchors, self.links, self.needs = name, [], set(), [], []
        self.words, self.kind = [], ""

    def problem(self, text):
        raise AssertionError(f"{self.name}:{self.getpos()[0]}: {text}")

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        for key in ("id", "name") if tag != "meta" else ("id",):
            if key in values and (key == "id" or tag == "a"):
                if values[key] in self.anchors:
                    self.problem(f"the anchor {values[key]} occurs twice")
                self.anchors.add(values[key])
        if tag == "body":
            self.kind = values["class"]
        if tag == "a":
            self.links.append(values["href"])
        if tag == "img" and "alt" not in values:
            self.problem("a picture without a description")
        for key in ("src", "href"):
            if key in values and tag != "a":
                self.needs.append(values[key])

    def handle_endtag(self, tag):
        if tag not in VOID and (not self.open or self.open.pop() != tag):
            self.problem(f"</{tag}> closes another element")

    def handle_data(self, data):
        self.words.append(data)


def build(out, *options):
    done = subprocess.run([ROOT / "site/build", "--no-install", "--out", out, *options],
                          capture_output=True, text=True, timeout=100)
    if done.returncode == SKIPPED:
        print(done.stderr.strip())
        sys.exit(SKIPPED)
    return done


def read_pages(out):
    pages = {}
    for path in sorted(out.rglob("*.html")):
        name = path.relative_to(out).as_posix()
        pages[name] = PageReader(name)
        pages[name].feed(path.read_text(encoding="utf-8"))
        assert not pages[name].open, f"{name}: {pages[name].open} are not closed"
    assert len(pages) > 100, sorted(pages)
    return pages


def check_links(out, pages):
    reached = {"index.html"}
    for name, page in pages.items():
        for link in page.links + page.needs:
            if EXTERNAL.match(link):
                assert link not in page.needs, f"{name} needs {link}"
                continue
            path, _, anchor = link.partition("#")
            target = posixpath.normpath(posixpath.join(
                posixpath.dirname(name), urllib.parse.unquote(path))) if path else name
            assert (out / target).is_file(), f"{name} links to {link}, which does not exist"
            if anchor:
                assert anchor in pages[target].anchors, f"{name} links to {link}: no such anchor"
            if link in page.links:
                reached.add(target)
    lonely = set(pages) - reached
    assert not lonely, f"no page links to {lonely}"


def check_search(out, pages):
    """Each address that the search offers exists, and each page is among them."""
    loaded = (out / "search-entries.js").read_text(encoding="utf-8")
    entries = json.loads(re.fullmatch(r"searchEntries\((.*)\);\n", loaded, re.DOTALL)[1])
    for title, address, _, _ in entries:
        page, _, anchor = address.partition("#")
        assert page in pages and (not anchor or anchor in pages[page].anchors), (title, address)
    offered = {entry[1].partition("#")[0] for entry in entries}
    lacking = [name for name in pages if name not in offered and pages[name].kind != "listing"]
    assert not lacking, f"the search lacks {lacking}"
    assert any("4792" in text for _, _, _, text in entries), "the search has no text"


def check_documents(pages):
    """Each document is in the navigation, which every page has."""
    navigation = pages["index.html"].links
    for path in sorted((ROOT / "docs").glob("*.md")):
        if path.name != "README.md":
            assert f"docs/{path.stem}.html" in navigation, f"the navigation lacks {path.name}"
    for picture in (ROOT / "docs").glob("*.svg"):
        assert any(link.endswith(picture.name) for page in pages.values() for link in page.needs), (
            f"no page shows {picture.name}")


def check_reference(pages):
    """Each public declaration has an anchor where links to its name lead."""
    import declarations
    import reference
    headers = declarations.read_declarations(ROOT)
    names = reference.collect_names(headers)
    found = [one for header in headers.values() for one in header if one.kind != "note"]
    assert len(found) > 600, len(found)
    for one in found:
        page, _, anchor = names.places[one.full].partition("#")
        assert page in pages, f"{one.full}: there is no page {page}"
        assert not anchor or anchor in pages[page].anchors, f"{page} lacks {one.full}"
    return headers


def check_tables(pages, headers):
    """Compares the tables that the site reads from sources with those that the tools print."""
    import catalogue
    listed = json.loads(subprocess.run([URMA_INFO, "--error", "--json"], capture_output=True,
                                       text=True, check=True, timeout=20).stdout)
    plain = [{key: one[key] for key in ("name", "meaning", "causes", "cure")}
             for one in (listed["statuses"] if isinstance(listed, dict) else listed)]
    assert plain == catalogue.statuses(ROOT), "urma/core/status.cc is read wrongly"
    enumerators = [one.name for one in headers["urma/core/status.h"]
                   if one.kind == "enumerator" and one.scope == "urma::Status"]
    assert enumerators == [one["name"] for one in plain], enumerators
    assert set(enumerators) <= pages["errors.html"].anchors
    printed = subprocess.run([URMA_STAT, "--metrics", "--json"], capture_output=True, text=True,
                             check=True, timeout=20).stdout
    metrics = json.loads(printed)
    metrics = metrics["metrics"] if isinstance(metrics, dict) else metrics
    for metric, row in zip(metrics, catalogue.metrics(ROOT), strict=True):
        assert all(metric[key] == row[key] for key in row), (metric, row)
    assert {one["name"] for one in metrics} <= pages["counters.html"].anchors
    said = " ".join(" ".join(pages["errors.html"].words).split())
    groups = catalogue.cures(ROOT)
    assert sum(len(rows) for _, rows in groups) > 200
    for _, rows in groups:
        for _, cure in rows:
            longest = max(cure.split("{}"), key=len).strip()
            assert " ".join(longest.split()) in said, f"the page of errors lacks: {cure}"


def check_manuals(out):
    manuals = sorted([*(out / "man3").iterdir(), *(out / "man7").iterdir()])
    names = {path.name for path in manuals}
    assert {"urma.3", "urma_Device.3", "urma_Jetty.3", "urma_write.3", "urma_Status.3"} <= names
    for path in manuals:
        text = path.read_text(encoding="utf-8")
        refers = re.fullmatch(r"\.so man3/(\S+)\n", text)
        if refers:
            assert refers[1] in names, f"{path.name} refers to {refers[1]}"
        elif shutil.which("groff"):
            done = subprocess.run(["groff", "-ww", "-man", "-Tutf8", "-z", path],
                                  capture_output=True, text=True, timeout=20)
            assert done.stderr == "", done.stderr
            # Section 3 shows declarations, of which mandoc warns that a blank line is a paragraph.
            if path.suffix == ".7":
                done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", path],
                                      capture_output=True, text=True, timeout=20)
                faults = [line for line in done.stdout.splitlines() if "missing date" not in line]
                assert not faults, "\n".join(faults)


def manual_text(path):
    """Returns what a reader of a manual page sees, without white space."""
    done = subprocess.run(["mandoc", "-T", "utf8", path], capture_output=True, text=True,
                          check=False, timeout=20)
    return solid(re.sub(".\b", "", done.stdout))


def solid(text):
    return "".join(text.replace("`", "").split())


def check_overviews(out):
    """Each status, tool, variable and document is in a manual page of section 7."""
    import catalogue
    said = manual_text(out / "man7/urma-errors.7")
    for one in catalogue.statuses(ROOT):
        cure = one["cure"] if one["name"] != "ok" else ""
        for text in (one["name"], one["meaning"], *one["causes"], cure):
            assert solid(text) in said, f"urma-errors(7) lacks: {text}"
    operating = (ROOT / "docs/operating.md").read_text(encoding="utf-8")
    first = operating.split("### The most likely first errors\n")[1].split("\n## ")[0]
    headings = re.findall(r"^\*\*(.*?)\*\*", first, re.MULTILINE)
    assert len(headings) > 10
    for heading in headings:
        assert solid(heading) in said, f"urma-errors(7) lacks: {heading}"
    said = manual_text(out / "man7/urma-devices.7")
    rows = re.findall(r"^\| `(\w+=)` \| .* \| (.*) \|$",
                      (ROOT / "docs/devices.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) > 80
    for option, meaning in rows:
        assert option in said and solid(meaning) in said, f"urma-devices(7) lacks {option}"
    said = manual_text(out / "man7/urma.7")
    variables = re.findall(r"^\| `(URMA_\w+)` \|", operating, re.MULTILINE)
    tools = [path.stem for path in (ROOT / "docs/man").glob("*.1")]
    documents = [path.name for path in (ROOT / "docs").glob("*.md") if path.name != "README.md"]
    assert len(variables) == 5 and len(tools) >= 8, (variables, tools)
    for name in (*variables, *(f"{tool}(1)" for tool in tools), *documents,
                 "/dev/shm/urma-devices-UID", "urma.conf"):
        assert name in said, f"urma(7) lacks {name}"
    for path in (out / "man7").iterdir():
        left = re.findall(r"\*\*|\]\(\w|`", path.read_text(encoding="utf-8"))
        assert not left, f"{path.name} has marks of Markdown: {left}"


def check_refusals(out):
    """Bad input ends with a message and leaves what was there."""
    foreign = out / "man3"
    done = build(foreign)
    assert done.returncode == 1 and "Fix: name another folder" in done.stderr, done
    assert (foreign / "urma.3").exists()
    for options, message in ((["--oout"], "unknown option"), (["--out"], "--out needs a folder")):
        done = build(out, *options)
        assert done.returncode == 2 and message in done.stderr and "Fix: " in done.stderr, done
    done = build("/dev/null/site")
    assert done.returncode == 1 and "Fix: " in done.stderr and "Traceback" not in done.stderr, done
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder, "tree")
        left_out = {str(ROOT): ("build", ".git"), str(ROOT / "tests/fuzz"): ("corpus",)}
        shutil.copytree(ROOT, copy, ignore=lambda place, _: left_out.get(str(place), ()))
        words = copy / "docs/words.md"
        with words.open("a", encoding="utf-8") as document:
            document.write("\n[gone](gone.md)\n")
        done = subprocess.run([copy / "site/build", "--no-install", "--out", out],
                              capture_output=True, text=True, timeout=100)
        assert done.returncode == 1, done
        assert "site: docs/words.md links to docs/gone.md, which does not exist" in done.stderr
        assert (out / "index.html").exists()


def main():
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "site")
        done = build(out)
        assert done.returncode == 0, done.stderr
        pages = read_pages(out)
        check_links(out, pages)
        check_search(out, pages)
        check_documents(pages)
        check_tables(pages, check_reference(pages))
        check_manuals(out)
        check_overviews(out)
        first = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
        assert build(out).returncode == 0
        assert first == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}, (
            "a second build differs")
        check_refusals(out)


main()
