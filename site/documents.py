# SPDX-License-Identifier: Apache-2.0
"""Turns Markdown documents of the tree into pages. Links between them are changed to links between
pages; the documents stay the only source of the text."""

import html
import os
import posixpath
import re

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

from pages import Broken, Page, relative, slug

FORMATTER = HtmlFormatter(nowrap=True)
OPEN = "<a href="


def url_of(path):
    """Returns where the page of a document or of another file of the tree lies."""
    folder, name = posixpath.split(path)
    if name == "README.md":
        return posixpath.join(folder, "index.html")
    if name.endswith(".md"):
        return path.removesuffix(".md") + ".html"
    return path + ".html"


def colored(code, language):
    lexer = get_lexer_by_name(language)
    return highlight(code, lexer, FORMATTER)


def shell_lines(code):
    """Returns an indented block: comments of commands are paler than the commands."""
    return re.sub(r"(?m)^(.*?\S.*?)?(^|\s{2,})(# .*)$", r'\1\2<i>\3</i>', html.escape(code))


class Documents:
    """Renders documents, and notes which other files they need.

    `names` finds the page of a name of the API; `where` maps files of the tree to pages that are
    made elsewhere, such as headers."""

    def __init__(self, root, names, where):
        self.root, self.names, self.where = root, names, where
        self.needed = []  # documents and sources that a document links to
        self.pictures = set()
        self.parser = MarkdownIt("commonmark").enable("table")
        for kind in ("heading_open", "fence", "code_block", "code_inline", "table_open",
                     "table_close", "link_open", "image", "paragraph_open", "paragraph_close"):
            self.parser.renderer.rules[kind] = getattr(self, kind)

    def page_of(self, path, title=None):
        """Returns the page of a document."""
        self.path, self.url = path, url_of(path)
        text = (self.root / path).read_text(encoding="utf-8")
        tokens = self.parser.parse(text)
        self.sections, self.anchors, self.title = [], set(), ""
        for token, inline in zip(tokens, tokens[1:]):
            if token.type == "inline":
                self.name_links(token.children)
            if token.type == "heading_open":
                plain = "".join(child.content for child in inline.children
                                if child.type in ("text", "code_inline"))
                token.attrSet("id", slug(plain, self.anchors))
                if token.tag == "h1" and not self.title:
                    self.title = plain
                elif token.tag == "h2":
                    self.sections.append((token.attrGet("id"), plain))
        body = self.parser.renderer.render(tokens, self.parser.options, {})
        return Page(self.url, title or self.title or path, body, self.sections, path)

    def name_links(self, children):
        """Replaces the name of a document as the text of a link to it by the document's title."""
        for link, text in zip(children, children[1:]):
            if link.type == "link_open" and text.type == "text" and text.content.endswith(".md"):
                target = link.attrGet("href").partition("#")[0]
                if posixpath.basename(target) == posixpath.basename(text.content):
                    text.content = self.title_of(posixpath.normpath(
                        posixpath.join(posixpath.dirname(self.path), target)))

    def title_of(self, path):
        """Returns the first heading of a document."""
        if not (self.root / path).is_file():
            raise Broken(f"{self.path} links to {path}, which does not exist")
        found = re.search(r"^# (.*)$", (self.root / path).read_text(encoding="utf-8"), re.MULTILINE)
        return found[1] if found else path

    def target_of(self, href):
        """Returns the address within the site to which a link of the document leads."""
        path, mark, anchor = href.partition("#")
        if not path:
            return self.url + mark + anchor
        place = posixpath.normpath(posixpath.join(posixpath.dirname(self.path), path))
        if place in self.where:
            return self.where[place] + ("" if "#" in self.where[place] else mark + anchor)
        full = self.root / place
        if full.is_dir():
            readme = posixpath.join(place, "README.md").removeprefix("./")
            if not (self.root / readme).is_file():
                raise Broken(f"{self.path} links to {place}, which has no README.md")
            place = readme
        elif not full.is_file():
            raise Broken(f"{self.path} links to {place}, which does not exist")
        if place not in self.needed:
            self.needed.append(place)
        return url_of(place) + mark + anchor

    # How the parts of a document are written. markdown-it calls these.

    def heading_open(self, tokens, at, options, env):
        token = tokens[at]
        anchor = token.attrGet("id")
        link = "" if token.tag == "h1" else (
            f'<a class="anchor" href="#{anchor}" aria-label="Link to this section">#</a>')
        return f'<{token.tag} id="{anchor}">{link}'

    def code_inline(self, tokens, at, options, env):
        text = tokens[at].content
        inside_link = any(token.type == "link_open" for token in tokens[:at]) and (
            sum(token.type == "link_open" for token in tokens[:at]) >
            sum(token.type == "link_close" for token in tokens[:at]))
        code = f"<code>{html.escape(text)}</code>"
        target = None if inside_link else self.names.find(text)
        return f'<a class="name" href="{relative(target, self.url)}">{code}</a>' if target else code

    def fence(self, tokens, at, options, env):
        language = (tokens[at].info.split() or [""])[0]
        code = tokens[at].content
        if not language:
            return f'<pre tabindex="0"><code>{shell_lines(code)}</code></pre>'
        try:
            inner = colored(code, language)
        except ClassNotFound:
            raise Broken(f"{self.path}: no lexer for a block of {language}") from None
        return f'<pre tabindex="0" class="{language}"><code>{inner}</code></pre>'

    def code_block(self, tokens, at, options, env):
        return f'<pre tabindex="0"><code>{shell_lines(tokens[at].content)}</code></pre>'

    def table_open(self, tokens, at, options, env):
        return '<div class="wide" tabindex="0"><table>'

    def table_close(self, tokens, at, options, env):
        return "</table></div>"

    def link_open(self, tokens, at, options, env):
        href = tokens[at].attrGet("href")
        if re.match(r"[a-z]+:", href):
            return f'{OPEN}"{html.escape(href)}" rel="external">'
        return f'{OPEN}"{html.escape(relative(self.target_of(href), self.url))}">'

    def image(self, tokens, at, options, env):
        place = posixpath.normpath(posixpath.join(posixpath.dirname(self.path),
                                                  tokens[at].attrGet("src")))
        if not (self.root / place).is_file():
            raise Broken(f"{self.path} shows {place}, which does not exist")
        self.pictures.add(place)
        described = html.escape(tokens[at].content)
        link = relative(place, self.url)
        return f'<a class="picture" href="{link}"><img src="{link}" alt="{described}"></a>'

    def paragraph_open(self, tokens, at, options, env):
        if tokens[at].hidden:
            return ""
        return '<p class="figure">' if self.is_figure(tokens[at + 1]) else "<p>"

    def paragraph_close(self, tokens, at, options, env):
        return "" if tokens[at].hidden else "</p>\n"

    @staticmethod
    def is_figure(inline):
        return [child.type for child in inline.children] == ["image"]


def listing_of(root, path, headers):
    """Returns the page of a source file to which a document links."""
    text = (root / path).read_text(encoding="utf-8", errors="replace")
    try:
        lexer = get_lexer_for_filename(os.path.basename(path), stripnl=False)
        inner = highlight(text, lexer, FORMATTER)
    except ClassNotFound:
        inner = html.escape(text)
    note = ""
    if path in headers:
        link = relative(headers[path], url_of(path))
        note = f'<p>Its names are explained in the <a href="{link}">reference</a>.</p>'
    body = (f'<h1 class="file">{html.escape(path)}</h1>{note}'
            f'<pre tabindex="0" class="listing"><code>{inner}</code></pre>')
    return Page(url_of(path), path, body, [], path, "listing")
