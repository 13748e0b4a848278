# SPDX-License-Identifier: Apache-2.0
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
# Between two arrows that take the same gap.
LANE = 14


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


def gaps_of(row):
    """Returns the middles of the gaps beside and between the rooms of a floor."""
    edges = [0] + sorted(edge for x in row for edge in (x, x + BOX)) + [WIDTH]
    return [(left + right) / 2 for left, right in zip(edges[::2], edges[1::2])]


def route(places, arrow):
    """Returns the (x, y) of the gap that an arrow takes on each floor between its two rooms."""
    (x, y), (to_x, to_y) = (places[room] for room in arrow)
    floors = {}
    for at, level in places.values():
        if y < level < to_y:
            floors.setdefault(level, []).append(at)
    # For each place that the arrow can have reached: how much it has turned, and its way there.
    reached = {x + BOX / 2: (0, [])}
    for level, row in sorted(floors.items()):
        reached = {gap: min((cost + (gap - at) ** 2, way + [(gap, level)])
                            for at, (cost, way) in reached.items()) for gap in gaps_of(row)}
    return min((cost + (to_x + BOX / 2 - at) ** 2, way) for at, (cost, way) in reached.items())


def place_rooms(floors, arrows):
    """Orders the rooms on each floor so that arrows are short and turn little."""
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

    orders = itertools.product(*(itertools.permutations(level) for level in levels))
    return min(map(places, orders),
               key=lambda tried: sum(route(tried, arrow)[0] for arrow in arrows))


def ways_of(places, arrows):
    """Returns the route of each arrow; arrows that share a gap run beside one another in it."""
    ways = {arrow: route(places, arrow)[1] for arrow in arrows}
    sharing = {}
    for arrow, way in ways.items():
        for number, gap in enumerate(way):
            sharing.setdefault(gap, []).append((arrow, number))

    def heading(user):
        (room, other), number = user
        way = [places[room]] + ways[room, other] + [places[other]]
        return way[number][0] + way[number + 2][0]

    moved = {}
    for (x, y), users in sharing.items():
        for place, user in enumerate(sorted(users, key=heading)):
            moved[user] = (x + LANE * (place - (len(users) - 1) / 2), y)
    return {arrow: [moved[arrow, number] for number in range(len(way))]
            for arrow, way in ways.items()}


def curve(places, arrow, way):
    """Returns an SVG path that turns only between floors, and crosses each floor straight down."""
    (x, y), (to_x, to_y) = (places[room] for room in arrow)
    y += HEIGHT
    out = "M%.0f %.0f" % (x + BOX / 2, y)
    at = x + BOX / 2
    for gap, level in way + [(to_x + BOX / 2, to_y)]:
        middle = (y + level) / 2
        out += "C%.0f %.0f %.0f %.0f %.0f %.0f" % (at, middle, gap, middle, gap, level)
        if level != to_y:
            out += "V%.0f" % (level + HEIGHT)
        at, y = gap, level + HEIGHT
    return out


def points_of(path):
    """Yields points along a path of curve()."""
    x = y = 0
    for letter, numbers in re.findall(r"([MCV])([^MCV]*)", path):
        to = [float(number) for number in numbers.split()]
        if letter == "C":
            for t in (step / 64 for step in range(65)):
                yield tuple(start * (1 - t) ** 3 + 3 * to[axis] * t * (1 - t) ** 2 +
                            3 * to[axis + 2] * t * t * (1 - t) + to[axis + 4] * t ** 3
                            for axis, start in enumerate((x, y)))
        elif letter == "V":
            for step in range(65):
                yield x, y + (to[0] - y) * step / 64
            to = [x, to[0]]
        x, y = to[-2:]


def hidden(svg):
    """Yields (path, left edge and top of a box) of each arrow that runs behind a box."""
    boxes = [tuple(map(float, found)) for found in
             re.findall(r'<rect x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)"', svg)]
    for path in re.findall(r'<path d="(\S[^"]*)" fill="none"', svg):
        points = list(points_of(path))
        for x, y, width, height in boxes:
            if any(x < at < x + width and y < level < y + height for at, level in points):
                yield path, x, y


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
    for arrow, way in ways_of(places, arrows).items():
        out.append('<path d="%s" fill="none" stroke="#667" marker-end="url(#tip)"/>'
                   % curve(places, arrow, way))
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
    return ["%s:1: the arrow %s runs behind the box at %d, %d. Fix: route() of %s"
            % (PICTURE, path, x, y, os.path.relpath(__file__, tree.root))
            for path, x, y in hidden(wanted)]


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
    # The arrow from top to b must pass the floor of middle, and those to base all floors.
    table = ("base : base/* :\n"
             "a : a/* : base\n"
             "b : b/* : base\n"
             "c : c/* : base\n"
             "middle : middle/* : a\n"
             "top : top/* : middle b c\n")
    expect(lambda tree: list(hidden(drawing(tree))), {TABLE: table})
    box = '<rect x="0" y="100" width="200" height="70"/>'
    behind = '<path d="M100 0C100 50 %d 50 %d 100V170C%d 190 100 190 100 200" fill="none"/>'
    assert not list(hidden(box + behind % (230, 230, 230)))
    assert [found[1:] for found in hidden(box + behind % (180, 180, 180))] == [(0, 100)]


if __name__ == "__main__":
    main(__doc__, check, self_test,
         (("--draw", {"action": "store_true", "help": "write the picture"}),))
