"""Is docs/layers.svg the picture of edges.txt? With --draw, writes it."""

import itertools
import os
import re

from layers import ANYTHING, TABLE, read_table
from tree import expect, main

PICTURE = "docs/layers.svg"
# These stand on top and include little, so words replace arrows that would pass all floors.
USERS = ("apps", "examples")
WIDTH, BOX, HEIGHT, FLOOR, MARGIN = 1120, 220, 70, 118, 24


def room_of(pattern):
    """Returns the room of a file: its top folder; each driver's folder is a room above the seam."""
    return "drivers/<name>" if "<name>" in pattern and "drivers/" in pattern else \
        pattern.split("/")[0]


def rooms_of(rows):
    """Returns for each room the rooms that its files include."""
    home = {}
    for row in rows:
        home[row.layer] = room_of(row.first)
    edges = {}
    for row in rows:
        if row.allowed == [ANYTHING]:
            continue
        room = edges.setdefault(home[row.layer], set())
        for word in row.allowed:
            if not word.endswith("/"):
                room.add(home.get(word) or room_of(word))
        room.discard(home[row.layer])
    return edges


def reach(edges, room):
    found, left = set(), list(edges[room])
    while left:
        other = left.pop()
        if other not in found:
            found.add(other)
            left += edges[other]
    return found


def arrows_of(edges):
    """Returns the edges that no longer chain of edges implies."""
    for room in (room for room in edges if room not in USERS):
        for other in sorted(edges[room]):
            if not any(other in reach(edges, between) for between in edges[room]):
                yield room, other


def floors_of(edges):
    floors = {}

    def floor(room):
        if room not in floors:
            floors[room] = 1 + max((floor(other) for other in edges[room]), default=-1)
        return floors[room]

    for room in edges:
        floor(room)
    roof = max(floors.values(), default=0)
    floors.update((room, roof) for room in floors if room in USERS)
    return floors


def caption(tree, room):
    if room.endswith("/<name>"):
        folder = room.removesuffix("<name>")
        return ", ".join(path.removeprefix(folder) for path in tree.directories
                         if path.startswith(folder))
    readme = room + "/README.md"
    found = re.match(r"# \S+ - (.*)", tree.text(readme)) if readme in tree.files else None
    return found.group(1) if found else ""


def wrapped(text, width=36):
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = (lines[-1] + " " + word).strip()
    return lines[:3]


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def place_rooms(floors, arrows):
    """Orders the rooms on each floor so that arrows are short and few pass behind a room."""
    levels = [[room for room in floors if floors[room] == level]
              for level in sorted(set(floors.values()))]
    ground = MARGIN + FLOOR * (len(levels) - 1)

    def places(orders):
        out = {}
        for level, row in enumerate(orders):
            gap = (WIDTH - BOX * len(row)) / (len(row) + 1)
            for number, room in enumerate(row):
                out[room] = (gap + number * (BOX + gap), ground - FLOOR * level)
        return out

    def passes(tried, arrow, between):
        (x, y), (to_x, to_y), (at, level) = (tried[room] for room in (*arrow, between))
        return y < level < to_y and \
            abs(x + (to_x - x) * (level - y) / (to_y - y) - at) < BOX / 2

    def cost(tried):
        return sum((tried[room][0] - tried[other][0]) ** 2 +
                   WIDTH ** 2 * sum(passes(tried, (room, other), between) for between in tried)
                   for room, other in arrows)

    orders = itertools.product(*(itertools.permutations(level) for level in levels))
    return min(map(places, orders), key=cost)


def drawing(tree):
    edges = rooms_of(read_table(tree.text(TABLE)))
    floors = floors_of(edges)
    arrows = list(arrows_of(edges))
    places = place_rooms(floors, arrows)
    height = MARGIN * 2 + HEIGHT + FLOOR * max(floors.values(), default=0)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif">'
           % (WIDTH, height),
           '<rect width="100%" height="100%" fill="white"/>',
           '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
           'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#667"/></marker></defs>']
    for room, other in arrows:
        (x, y), (to_x, to_y) = places[room], places[other]
        x, y, to_x = x + BOX / 2, y + HEIGHT, to_x + BOX / 2
        out.append('<path d="M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f" fill="none" '
                   'stroke="#667" marker-end="url(#tip)"/>'
                   % (x, y, x, y + FLOOR / 2, to_x, to_y - FLOOR / 2, to_x, to_y))
    for room, (x, y) in places.items():
        out.append('<rect x="%.0f" y="%.0f" width="%d" height="%d" rx="5" fill="#eef3fa" '
                   'stroke="#345"/>' % (x, y, BOX, HEIGHT))
        out.append('<text x="%.0f" y="%.0f" font-size="15" font-weight="bold" '
                   'text-anchor="middle">%s/</text>' % (x + BOX / 2, y + 19, escaped(room)))
        text = wrapped(caption(tree, room))
        if room in USERS:
            text.append("includes only " + ", ".join(sorted(o + "/" for o in edges[room])))
        for number, line in enumerate(text):
            out.append('<text x="%.0f" y="%.0f" font-size="11" text-anchor="middle">%s</text>'
                       % (x + BOX / 2, y + 34 + 14 * number, escaped(line)))
    return "\n".join(out + ["</svg>", ""])


def check(tree, options):
    wanted = drawing(tree)
    if getattr(options, "draw", False):
        (tree.root / PICTURE).write_text(wanted, encoding="utf-8")
    elif PICTURE not in tree.files or tree.text(PICTURE) != wanted:
        return ["%s:1: is not the picture of %s any more. Fix: python3 %s --draw"
                % (PICTURE, TABLE, os.path.relpath(__file__, tree.root))]
    return []


def self_test(_):
    table = ("base : base/* :\n"
             "core : core/* : base\n"
             "face : net/face.h : core base\n"
             "net  : net/* net/deep/* : face\n"
             "driver : drivers/<name>/* : core\n"
             "tests : tests/* : anything\n")
    edges = rooms_of(read_table(table))
    assert edges == {"base": set(), "core": {"base"}, "net": {"core", "base"},
                     "drivers/<name>": {"core"}}, edges
    assert set(arrows_of(edges)) == {("core", "base"), ("net", "core"),
                                     ("drivers/<name>", "core")}
    assert floors_of(edges) == {"base": 0, "core": 1, "net": 2, "drivers/<name>": 2}
    tree = {TABLE: table, "base/README.md": "# base - what?\n"}
    expect(lambda tree: check(tree, None), tree, "is not the picture")
    expect(lambda tree: [] if ">what?<" in drawing(tree) else ["no caption"], tree)


if __name__ == "__main__":
    main(__doc__, check, self_test,
         (("--draw", {"action": "store_true", "help": "write the picture"}),))
