# SPDX-License-Identifier: Apache-2.0
"""Pages made of tables in the sources: statuses, cures of errors, counters, and manual pages."""

import html
import re
import shutil
import subprocess

from pages import Broken, Page, relative
from reference import Writer

TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([{},])|([\w:&]+)')


def table_in(source, name):
    """Returns a table of a C++ source, `NAME[] = {...};`, as nested lists of words and texts."""
    text = re.sub(r"//[^\n]*", "", source)
    begin = re.search(rf"\b{name}\[\] = (?=\{{)", text)
    if not begin:
        raise Broken(f"there is no table {name}[]")
    stack, last = [[]], None
    for found in TOKEN.finditer(text, begin.end()):
        literal, mark, word = found.groups()
        if mark == "{":
            stack.append([])
        elif mark == "}":
            done = stack.pop()
            stack[-1].append(done)
            if len(stack) == 1:
                return done
        elif literal is not None:
            plain = literal.replace('\\"', '"').replace("\\\\", "\\")
            if last == "literal":
                stack[-1][-1] += plain
            else:
                stack[-1].append(plain)
        elif word:
            stack[-1].append(word)
        last = "literal" if literal is not None else mark
    raise Broken(f"the table {name}[] does not end")


def statuses(root):
    """Returns the explanations of all statuses, as `describe` returns them."""
    source = (root / "urma/core/status.cc").read_text(encoding="utf-8")
    return [{"name": row[1], "meaning": row[2], "causes": row[3], "cure": row[4]}
            for row in table_in(source, "catalogue")]


def metrics(root):
    """Returns the explanations of all counters, as `all_metrics` returns them."""
    source = (root / "urma/core/statistics.cc").read_text(encoding="utf-8")
    words = dict(re.findall(r'constexpr std::string_view (\w+) = "([^"]*)";', source))
    return [{"name": row[0], "unit": row[1], "window": {"now": "now"}.get(row[2], "since open"),
             "part": words[row[3]], "meaning": row[4]} for row in table_in(source, "metrics")]


def cures(root):
    """Returns the cures of error texts, in the groups of tests/advice/advice.txt:
    [(group, [(file, cure)])]."""
    groups = []
    for line in (root / "tests/advice/advice.txt").read_text(encoding="utf-8").splitlines():
        heading = re.fullmatch(r"# ---- (.*)", line)
        row = re.fullmatch(r"([\w/.+-]+\.\w+): (\S.*)", line)
        if heading:
            groups.append((heading[1], []))
        elif row and groups:
            groups[-1][1].append((row[1], row[2]))
    return [(name, rows) for name, rows in groups if rows]


def table(heads, rows):
    head = "".join(f"<th>{one}</th>" for one in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>")


def status_section(one, writer):
    """Returns what the page of errors says of one status."""
    name = one["name"]
    causes = "".join(f"<li>{writer.inline(cause, 'urma')}</li>" for cause in one["causes"])
    return (f'<section class="status"><h3 id="{name}"><a class="anchor" href="#{name}" '
            f'aria-label="Link to {name}">#</a><code>{name}</code></h3>'
            f"<p>{writer.inline(one['meaning'], 'urma')}</p>"
            + (f"<p>Likely causes:</p><ul>{causes}</ul>" if causes else "")
            + (f'<p class="cure"><strong>Fix:</strong> {writer.inline(one["cure"], "urma")}</p>'
               if name != "ok" else "") + "</section>")


def errors_page(root, names):
    url = "errors.html"
    parts = [status_section(one, Writer(names, url)) for one in statuses(root)]
    tables = []
    for name, rows in cures(root):
        lines = [(html.escape(cure).replace("{}", "<i>...</i>"), f"<code>{path}</code>")
                 for path, cure in rows]
        tables.append(f"<h3>{html.escape(name)}</h3>" + table(("Fix:", "said by"), lines))
    operating = relative("docs/operating.html#when-something-does-not-work", url)
    error = relative(names.places["urma::Error"], url)
    body = (
        "<h1>Errors and their cures</h1><p>Every error of the library and of its tools has the "
        "form <em>what failed: why. Fix: how</em>. A failed call returns an "
        f'<a href="{error}"><code>Error</code></a> with a status and such a sentence; a failed '
        "work has a completion with a status. <code>urma_info --error STATUS</code> prints what "
        f'this page says of a status. <a href="{operating}">Operating</a> has the errors that '
        f'newcomers meet first.</p><h2 id="statuses">Statuses</h2>{"".join(parts)}'
        '<h2 id="cures">Cures of all errors</h2><p>The table lists what follows <code>Fix:</code> '
        "in the errors, and the source that says it. <i>...</i> stands for what the error fills "
        "in. A test types each cure that can be typed.</p>" + "".join(tables))
    return Page(url, "Errors and their cures", body,
                [(one["name"], one["name"]) for one in statuses(root)]
                + [("cures", "Cures of all errors")],
                "urma/core/status.cc and tests/advice/advice.txt")


def counters_page(root):
    url = "counters.html"
    parts, sections, found = [], [], metrics(root)
    for part in dict.fromkeys(one["part"] for one in found):
        anchor = part.replace(" ", "-")
        sections.append((anchor, part.capitalize()))
        parts.append(f'<h2 id="{anchor}">{part.capitalize()}</h2>' + table(
            ("counter", "unit", "meaning"),
            [(f'<code id="{one["name"]}">{one["name"]}</code>',
              one["unit"] + (", now" if one["window"] == "now" else ""),
              html.escape(one["meaning"])) for one in found if one["part"] == part]))
    operating = relative("docs/operating.html#counters", url)
    tables = "".join(parts)
    body = ("<h1>Counters</h1><p>A process reads the counters of its own device by "
            "<code>device.stats()</code>; <code>urma_stat</code> shows those of other processes. "
            f'<a href="{operating}">Operating</a> says which to look at first. They '
            "count since the device was opened, except those marked "
            f"<em>now</em>. <code>urma_stat --metrics</code> prints this table.</p>{tables}")
    return Page(url, "Counters", body, sections, "urma/core/statistics.cc")


def tool_pages(root):
    """Returns the manual pages of the tools, and a page that lists them."""
    files = sorted((root / "docs/man").glob("*.[157]"))
    if not files:
        raise Broken("docs/man has no manual pages")
    if not shutil.which("mandoc"):
        raise Broken("mandoc is not installed. Fix: apt-get install mandoc")
    made, rows = [], []
    for path in files:
        name, section = path.stem, path.suffix[1:]
        done = subprocess.run(["mandoc", "-T", "html", "-O", "fragment", path], capture_output=True,
                              text=True, check=True)
        fragment = re.sub(r'<table class="(head|foot)">.*?</table>', "", done.stdout,
                          flags=re.DOTALL)
        # The page has a title of its own, so that the sections are one level lower.
        fragment = re.sub(r"<(/?)h1\b", r"<\1h2", fragment).replace('<div class="manual-text">',
                                                                     '<div class="manual">')
        title = f"{name}({section})"
        summary = re.search(r"^\S+ (?:\\-|-) (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        sections = [(anchor, text.capitalize()) for anchor, text in re.findall(
            r'<h2 class="Sh" id="([^"]+)"><a[^>]*>([^<]+)</a>', fragment)]
        url = f"man/{path.name}.html"
        made.append(Page(url, title, f"<h1>{title}</h1>{fragment}", sections,
                         path.relative_to(root).as_posix(), "man"))
        rows.append(f'<li><a href="{relative(url, "man/index.html")}"><code>{name}</code></a> '
                    f"{html.escape(summary[1] if summary else '')}</li>")
    body = ("<h1>Manual pages of the tools</h1><p>They are installed as well: "
            f'<code>man urma_perf</code>.</p><ul>{"".join(rows)}</ul>')
    return [Page("man/index.html", "Manual pages of the tools", body, [], "docs/man"), *made]
