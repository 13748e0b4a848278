# SPDX-License-Identifier: Apache-2.0
"""A strict parser of the text format of Prometheus (version 0.0.4)."""

import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"')
SERIES = re.compile(rf"({NAME})(?:\{{(.*)\}})? (-?[0-9.]+(?:e[+-]?[0-9]+)?)")


def labels_in(text):
    """Returns the labels as a dictionary. Each name may be there once."""
    labels, at = {}, 0
    while at < len(text):
        pair = LABEL.match(text, at)
        assert pair, text[at:]
        assert pair[1] not in labels, text
        labels[pair[1]] = re.sub(r"\\(.)", lambda one: {"n": "\n"}.get(one[1], one[1]), pair[2])
        at = pair.end()
        if at < len(text):
            assert text[at] == "," and at + 1 < len(text), text
            at += 1
    return labels


def parse(text):
    """Returns each series with its value: {(name, frozenset of labels): value}. Raises an
    AssertionError if the text breaks a rule of the format, or a family has no help and type."""
    assert text.endswith("\n"), text[-100:]
    series, described, types, family = {}, set(), {}, None
    for line in text.split("\n")[:-1]:
        if found := re.fullmatch(rf"# HELP ({NAME}) (.+)", line):
            family = found[1]
            assert family not in described, line
            assert re.fullmatch(r"(?:[^\\]|\\\\|\\n)*", found[2]), line
            described.add(family)
        elif found := re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge)", line):
            assert found[1] == family and family not in types, line
            assert family.endswith("_total") == (found[2] == "counter"), line
            types[family] = found[2]
        else:
            found = SERIES.fullmatch(line)
            assert found, line
            # A family stands together, below its description.
            assert found[1] == family and family in types, line
            key = found[1], frozenset(labels_in(found[2] or "").items())
            assert key not in series, line
            series[key] = float(found[3])
    assert described == set(types), described ^ set(types)
    return series


def of(series, name, **labels):
    """Returns the only value of this name with these labels, or None."""
    found = [value for (one, pairs), value in series.items()
             if one == name and labels.items() <= dict(pairs).items()]
    assert len(found) <= 1, (name, labels, found)
    return found[0] if found else None
