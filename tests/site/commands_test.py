#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Can the commands in the documents be typed? commands_test.py ROOT TOOL...

Reads blocks and `code` of the documents. A command of the tree must exist, and a tool of this
project must have each option that follows its name.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])
TOOLS = {pathlib.Path(path).name: path for path in sys.argv[2:]}
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs/*.md", "apps/**/README.md", "bench/README.md",
             "examples/README.md", "site/README.md", "tools/**/README.md")
INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
# A command ends where another one may begin.
COMMAND = re.compile(r"(?<![\w/.-])(?:build/\w+/apps/\w+/)?(urma_\w+)\b(?!\()([^|&;#\n]*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
# A script of the tree, as a document types it from the top of the tree.
SCRIPT = re.compile(r"(?<![\w/.$~])(?:\./)?"
                    r"(check|quickstart|bench/\w+|site/\w+|tests/[\w/]+\.py)(?![\w/.])")


def help_of(tool):
    """Returns the options of a tool; those of its subcommands are in the help of all."""
    for option in ("--help-all", "--help"):
        done = subprocess.run([TOOLS[tool], option], capture_output=True, text=True, timeout=20)
        if done.returncode == 0:
            # --completion is for packages, so no help has it.
            return set(OPTION.findall(done.stdout)) | {"--help", "--completion"}
    raise AssertionError(f"{tool} --help: {done.stderr}")


def codes_of(text):
    """Yields the pieces of code of a document, and whether each is a block."""
    prose, blocks, language = [], [[]], None
    for line in text.split("\n"):
        if line.startswith("```"):
            language = None if language is not None else line[3:]
        elif language in ("", "sh") or language is None and line.startswith("    "):
            blocks[-1].append(line)
            continue
        elif language is None:
            prose.append(line)
        blocks.append([])
    for lines in filter(None, blocks):
        yield "\n".join(lines).replace("\\\n", " "), True
    for paragraph in "\n".join(prose).split("\n\n"):
        for code in INLINE.findall(paragraph):
            yield " ".join(code.split()), False


def problems_of(path, text, options):
    """Yields what cannot be typed, and counts the commands in `seen`."""
    for code, is_block in codes_of(text):
        for tool, rest in COMMAND.findall(code):
            if tool not in options:
                # Names of files, counters and functions begin in the same way.
                if is_block and OPTION.search(rest):
                    yield f"{path}: there is no tool {tool}"
                continue
            seen.append(tool)
            for option in OPTION.findall(rest):
                if option not in options[tool]:
                    yield f"{path}: {tool} has no option {option}"
        for script in SCRIPT.findall(code) if is_block else ():
            seen.append(script)
            if not (ROOT / script).is_file():
                yield f"{path}: there is no {script}"


seen = []


def main():
    options = {tool: help_of(tool) for tool in TOOLS}
    assert len(options) >= 8, options
    assert list(problems_of("x", "    urma_perf --nonsense\n", options)), "an option is not checked"
    assert list(problems_of("x", "`urma_info --nonsense`", options)), "inline code is not checked"
    assert list(problems_of("x", "    urma_nothing --help\n", options)), "a tool is not checked"
    assert list(problems_of("x", "    bench/nothing\n", options)), "a script is not checked"
    seen.clear()
    paths = [path for pattern in DOCUMENTS for path in sorted(ROOT.glob(pattern))]
    problems = [problem for path in paths for problem in problems_of(
        path.relative_to(ROOT), path.read_text(encoding="utf-8"), options)]
    assert not problems, "\n".join(problems)
    assert len(seen) > 150, len(seen)
    print(f"{len(seen)} commands in {len(paths)} documents")


main()
