# SPDX-License-Identifier: Apache-2.0
"""Draws two panels of lines, as SVG. Does not know what was measured."""

import dataclasses
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 1060, 530
PANEL_WIDTH, PANEL_HEIGHT, TOP, LEFT, GAP = 420, 330, 60, 70, 110
# Distinct for colour-blind eyes, too (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#000000")
INK, GRID, PAPER = "#222222", "#dddddd", "#ffffff"


@dataclasses.dataclass
class Style:
    colour: str
    dashed: bool = False


@dataclasses.dataclass
class Panel:
    title: str
    y_label: str
    lines: dict  # name: [(size, value)]
    x_label: str = "bytes of a message"
    x_text: object = None  # of a size: as bytes
    linear: bool = False  # axes begin at zero, and lines have no dots; else axes are logarithmic


def size_text(size):
    for shift, unit in ((20, "M"), (10, "K")):
        if size >= 1 << shift:
            return "%d%s" % (size >> shift, unit)
    return str(size)


def text(x, y, content, anchor="middle", size=13, more=""):
    return '<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d"%s>%s</text>' % (
        x, y, anchor, size, more, escape(content))


def line(x1, y1, x2, y2, colour=GRID, width=1.0, dashed=False):
    return '<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%g"%s/>' % (
        x1, y1, x2, y2, colour, width, ' stroke-dasharray="6 4"' if dashed else "")


class Axes:
    """Positions points in a panel, whose vertical axis begins and ends at a 1, 2 or 5."""

    def __init__(self, panel, left):
        points = [point for line_ in panel.lines.values() for point in line_]
        sizes = [size for size, _ in points] or [8, 16]
        values = [value for _, value in points if value > 0] or [1]
        self.left = left
        self.sizes = sorted(set(sizes))
        ticks = [digit * 10.0 ** decade for decade in range(-9, 10) for digit in (1, 2, 5)]
        self.low = max(tick for tick in ticks if tick <= min(values))
        self.high = min(tick for tick in ticks if tick >= max(values) and tick > self.low)

    def columns(self, panel):
        """Yields the positions of grid lines, and their labels."""
        for size in self.sizes:
            yield self.x(size), (panel.x_text or size_text)(size)

    def x(self, size):
        low, high = math.log2(self.sizes[0]), math.log2(self.sizes[-1])
        return self.left + PANEL_WIDTH * (math.log2(size) - low) / max(high - low, 1)

    def y(self, value):
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return TOP + PANEL_HEIGHT * (1 - part)

    def grid(self):
        """Yields the heights of grid lines, and whether a line is labelled."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        each = [(digit * 10.0 ** decade, digit == 1)
                for decade in decades for digit in range(1, 10)]
        return [one for one in each if self.low * 0.999 <= one[0] <= self.high * 1.001]

    def draw(self, panel):
        bottom, right = TOP + PANEL_HEIGHT, self.left + PANEL_WIDTH
        yield text((self.left + right) / 2, TOP - 18, panel.title, size=16)
        for value, numbered in self.grid():
            at = self.y(value)
            yield line(self.left, at, right, at, GRID, 1 if numbered else 0.4)
            if numbered or value in (self.low, self.high):
                yield text(self.left - 8, at + 4, "%g" % value, "end")
        for at, label in self.columns(panel):
            yield line(at, TOP, at, bottom)
            yield text(at, bottom + 18, label)
        yield line(self.left, bottom, right, bottom, INK)
        yield line(self.left, TOP, self.left, bottom, INK)
        yield text((self.left + right) / 2, bottom + 40, panel.x_label)
        x, y = self.left - 50, TOP + PANEL_HEIGHT / 2
        yield text(x, y, panel.y_label, more=' transform="rotate(-90 %.1f %.1f)"' % (x, y))


class LinearAxes(Axes):
    """Positions points in a panel whose axes begin at zero, with four to ten steps of 1, 2 or 5."""

    def __init__(self, panel, left):
        points = [point for line_ in panel.lines.values() for point in line_]
        self.left = left
        self.x_step, self.right = self.steps([x for x, _ in points])
        self.y_step, self.high = self.steps([y for _, y in points])
        self.low = 0

    @staticmethod
    def steps(values):
        """Returns the step of an axis, and its end."""
        most = max(values, default=0) or 1
        step = min(digit * 10.0 ** decade for decade in range(-9, 10) for digit in (1, 2, 5)
                   if most <= 10 * digit * 10.0 ** decade)
        return step, step * math.ceil(most / step)

    def columns(self, _):
        for i in range(round(self.right / self.x_step) + 1):
            yield self.x(i * self.x_step), "%g" % (i * self.x_step)

    def x(self, size):
        return self.left + PANEL_WIDTH * size / self.right

    def y(self, value):
        return TOP + PANEL_HEIGHT * (1 - value / self.high)

    def grid(self):
        return [(i * self.y_step, True) for i in range(round(self.high / self.y_step) + 1)]


def curve(axes, points, style):
    linear = isinstance(axes, LinearAxes)
    at = [(axes.x(size), axes.y(value)) for size, value in sorted(points) if linear or value > 0]
    yield '<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>' % (
        " ".join("%.1f,%.1f" % point for point in at), style.colour,
        ' stroke-dasharray="6 4"' if style.dashed else "")
    if not style.dashed and not linear:
        for x, y in at:
            yield '<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (x, y, style.colour)


def legend(styles):
    columns = 4
    for i, (name, style) in enumerate(styles.items()):
        x = LEFT + (i % columns) * (WIDTH - LEFT) / columns
        y = TOP + PANEL_HEIGHT + 72 + (i // columns) * 24
        yield line(x, y, x + 34, y, style.colour, 2, style.dashed)
        yield text(x + 42, y + 4, name, "start")


def svg(panels, styles, note):
    """Draws all panels. `styles` has the style of each line by its name, in the legend's order."""
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" '
             'font-family="sans-serif" fill="%s">' % (WIDTH, HEIGHT, WIDTH, HEIGHT, INK),
             '<rect width="100%%" height="100%%" fill="%s"/>' % PAPER]
    for i, panel in enumerate(panels):
        axes = (LinearAxes if panel.linear else Axes)(panel, LEFT + i * (PANEL_WIDTH + GAP))
        parts += axes.draw(panel)
        for name, points in panel.lines.items():
            parts += curve(axes, points, styles[name])
    parts += legend(styles)
    parts.append(text(LEFT, HEIGHT - 10, note, "start", 11))
    return "\n".join(parts + ["</svg>"]) + "\n"
