# SPDX-License-Identifier: Apache-2.0
"""Finds the advice in the sources: each text behind "Fix: ", and texts that functions put there."""

import re

FIX = "Fix: "
ANY = "{}"  # what the program fills in
# A raw literal, a literal, what is not code, or one character of code.
TOKEN = re.compile(r'R"\((?P<raw>.*?)\)"|"(?P<text>(?:\\.|[^"\\\n])*)"|'
                   r"(?P<no>//[^\n]*|/\*.*?\*/|\s+)|'(?:\\.|[^'\\\n])'|(?P<code>.)", re.DOTALL)
# Cures that are written apart from their "Fix: ", by file: the text before their argument list, and
# the number of the argument. None means that there is no list and the cure follows immediately.
APART = (
    (r"apps/common/captures\.cc",
     r'\breturn (?:fmt::format\()?(?="(?:raise|make|allow|name))', None),
    (r"apps/common/servers\.cc", r"std::string cure = ", None),
    (r"apps/common/values\.(?:h|cc)",
     r'return (?=fmt::format\(|"localhost|"one of |each\.valid\(\) \+)', 0),
    (r"apps/urma_info/checks.*\.cc", r"(?<![\w.])(?:fix|warn)\(", 1),
    (r"apps/urma_notify/incoming\.cc", r'return (?="(?:make|remove|see|try|allow|name))', None),
    (r"apps/urma_perf/shm_window\.cc", r"(?<!Failure )failure\(", 1),
    (r"drivers/dpdk/(?:eal|pmd)\.cc", r'return (?="[a-z])', None),
    (r"drivers/dpdk/ether_device\.cc", r'\? (?="another number)', None),
    (r"drivers/\w+/loader\.cc", r"\.(?:packages|to_build) =\s+", None),
    (r"drivers/dpdk/pmd\.cc", r"return refuse\(", 1),
    (r"drivers/pcap/capture_file\.cc", r"return because\(", 3),
    (r"drivers/udp/udp_socket\.cc", r'[?:] (?="\w)', None),
    (r"python/\w+\.cc", r"\brefuse_type\(", 2),
    (r"python/dlpack\.cc", r"\bcannot\(", 1),
    (r"urma/core/status\.cc", r"\{\s*(?=Status::)", 4),
    (r"api/device\.cc", r"return not_one_of\(", 1),
    (r"api/segment\.cc", r"return wrong\(", 2),
    (r".*\.cc", r"\.cure =\s+", None),
)
# `failed(STATUS, WHAT, ...).fix(PARTS, ...)` (base/failed.h): all its arguments together.
BUILT = [(False, letter) for letter in ".fix("]


def plain(escape):
    return " " if escape[1] == "n" else escape[1]


def tokens(source):
    """Returns pairs: (True, the text of a literal) or (False, a character of code)."""
    out = []
    for found in TOKEN.finditer(source):
        if found["no"] is not None:
            continue
        literal = found["raw"] if found["raw"] is not None else found["text"]
        if literal is None:
            out.append((False, found["code"] or "'"))
        else:
            out.append((True, re.sub(r"\\(.)", plain, literal)))
    return out


def text_from(all_tokens, begin):
    """Returns the text of the expression that begins with this token, and where it ends. The
    text consists of its literals, and ANY for all else, up to the end of the argument, of the
    branch or of the statement."""
    said, depth, scope = "", 0, False
    for at in range(begin, len(all_tokens)):
        literal, text = all_tokens[at]
        if literal:
            said += text if depth == 0 else ANY
            continue
        depth += (text in "({[") - (text in ")}]")
        scope = text == ":" and (scope or all_tokens[at + 1] == (False, ":"))
        if depth < 0 or (depth == 0 and text in ",;?:#" and not scope):
            break
        if text != "+":
            said += ANY
    said = re.sub(r"\{[^{} ]*\}", ANY, said)
    return re.sub(r"(\{\})+", ANY, said).strip(), at


def argument(all_tokens, number):
    at = 0
    for _ in range(number):
        _, at = text_from(all_tokens, at)
        while all_tokens[at] != (False, ","):
            at += 1
        at += 1
    # A formatted text is represented by its format string.
    spelt = "".join(text for literal, text in all_tokens[at:at + 12] if not literal)
    return text_from(all_tokens, at + 12 if spelt.startswith("fmt::format(") else at)[0]


def cures_apart(path, source):
    for where, before, number in APART:
        if not re.fullmatch(where, path):
            continue
        for found in re.finditer(before, source):
            yield argument(tokens(source[found.end():found.end() + 3000]), number or 0)


def all_arguments(all_tokens):
    """Returns the texts of an argument list: the literals of each argument, and ANY for code."""
    said, argument, depth = "", "", 0
    for literal, text in all_tokens:
        depth += not literal and ((text in "({[") - (text in ")}]"))
        if depth < 0 or (depth == 0 and (literal, text) == (False, ",")):
            said, argument = said + argument, ""
            if depth < 0:
                break
        elif not literal:
            argument = ANY
        elif argument != ANY:
            argument += text
    return re.sub(r"(\{\})+", ANY, said)


def cures_in(path, source):
    """Returns the cures that a file names, in order."""
    found = tokens(source)
    out = []
    for at, (literal, text) in enumerate(found):
        if literal and FIX in text:
            first = [(True, text[text.index(FIX) + len(FIX):]), *found[at + 1:]]
            out.append(text_from(first, 0)[0])
        if found[at:at + len(BUILT)] == BUILT:
            out += [cure for cure in [all_arguments(found[at + len(BUILT):])] if cure != ANY]
    return out + [cure for cure in cures_apart(path, source) if cure != ANY]
