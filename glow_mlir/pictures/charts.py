"""Self-contained charts and tables in HTML and SVG, without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise

import numpy as np

from glow_mlir.support.dataclass import dataclass

STYLE = """
:root { color-scheme: light dark; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em auto; padding: 0 1em; max-width: 72em; color: #222; }
table { border-collapse: collapse; }
td, th { padding: 2px 10px; text-align: right; white-space: nowrap; border-bottom: 1px solid #ddd; }
td:first-child, th:first-child { text-align: left; }
tr.marked { background: #fdf0d5; }
text { font: 11px system-ui, sans-serif; fill: #444; }
.axis { stroke: #888; } .grid { stroke: #eee; } .bar { fill: #8aa9c8; } .cut { stroke: #c0392b; }
.point { fill: #4a7aab; } .point.marked { fill: #c0392b; } .line { fill: none; stroke: #4a7aab; }
.curve { fill: none; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
  body { background: #14171d; color: #e6e9ef; } td, th { border-color: #343b47; } tr.marked { background: #4a3a1d; }
  text { fill: #b6bfcc; } .grid { stroke: #2a303a; } .point { fill: #77aadd; } .line { stroke: #77aadd; }
}
"""

CURVE_COLOURS = ("#4a90d9", "#d9822b", "#3aa876", "#a86bc7")
"""Colours of curves, in order: for a light page and a dark one."""

MAX_CORNERS = 1000
"""The maximum number of points of a curve; longer curves show means of neighbours."""

MAX_MARKS = 100
"""The maximum number of points that are marked individually."""

NAME_WIDTH, LINE_HEIGHT = 100, 15
"""The width of a curve's name in pixels."""

WIDTH, HEIGHT, EDGE = 640, 320, 48
"""The size of a chart in pixels, and the border for its labels."""

LANE_HEIGHT, LANE_NAME = 32, 120
"""The height of a lane in pixels, and the width of its name."""

TICKS = 5
"""The approximate number of labels of an axis."""

BAR_WIDTH, BAR_HEIGHT, BARS = 192, 28, 64
"""The size of a histogram in pixels, and its maximum number of bars."""


def document(title: str, parts: Sequence[str]) -> str:
    """A page with a title and parts, which are HTML."""
    body = "\n".join(parts)
    name = escape(title)
    head = f'<meta charset="utf-8"/><title>{name}</title><style>{STYLE}</style>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n<h1>{name}</h1>\n{body}\n</body></html>\n'


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


@dataclass(frozen=True)
class Html:
    """A cell that is already HTML, such as a chart."""

    text: str


def table(columns: Sequence[str], rows: Sequence[Sequence[str | Html]], marked: Sequence[int] = ()) -> str:
    """A table; rows with a number in `marked` are highlighted."""
    lines = [f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in columns)}</tr>"]
    for number, row in enumerate(rows):
        cells = "".join(f"<td>{cell.text if isinstance(cell, Html) else escape(cell)}</td>" for cell in row)
        lines.append(f'<tr class="marked">{cells}</tr>' if number in marked else f"<tr>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"


@dataclass(frozen=True)
class Dot:
    """A point of a chart, with its tooltip."""

    x: float
    y: float
    text: str
    is_marked: bool = False


def scatter(dots: Sequence[Dot], x_title: str, y_title: str, line: Sequence[Dot] = ()) -> str:
    """Points in a plane; `line` connects some of them, from left to right, by steps."""
    across, up = _Axis.of([dot.x for dot in dots]), _Axis.of([dot.y for dot in dots])
    parts = _grid(across, up, x_title, y_title)
    if line:
        corners = [_pixel(across, up, *corner) for corner in _steps(line)]
        parts.append(f'<polyline class="line" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in corners)}"/>')
    for dot in dots:
        x, y = _pixel(across, up, dot.x, dot.y)
        kind, radius = ("point marked", 6) if dot.is_marked else ("point", 3.5)
        title = f"<title>{escape(dot.text)}</title>"
        parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}">{title}</circle>')
    return _svg(WIDTH, HEIGHT, parts)


def _pixel(across: _Axis, up: _Axis, x: float, y: float) -> tuple[float, float]:
    """The pixel position of a point."""
    return EDGE + across.share(x) * (WIDTH - 2 * EDGE), HEIGHT - EDGE - up.share(y) * (HEIGHT - 2 * EDGE)


def _grid(across: _Axis, up: _Axis, x_title: str, y_title: str) -> list[str]:
    """The grid lines of a chart, and its axis labels."""
    parts: list[str] = []
    for tick in across.ticks():
        x, _ = _pixel(across, up, tick, up.low)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{EDGE}" x2="{x:.1f}" y2="{HEIGHT - EDGE}"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - EDGE + 16}" text-anchor="middle">{tick:.4g}</text>')
    for tick in up.ticks():
        _, y = _pixel(across, up, across.low, tick)
        parts.append(f'<line class="grid" x1="{EDGE}" y1="{y:.1f}" x2="{WIDTH - EDGE}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{EDGE - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:.4g}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_title)}</text>')
    parts.append(f'<text x="{EDGE}" y="{EDGE - 16}">{escape(y_title)}</text>')
    return parts


@dataclass(frozen=True)
class Curve:
    """A named line through points, from left to right."""

    name: str
    points: Sequence[tuple[float, float]]


def curves(lines: Sequence[Curve], x_title: str, y_title: str) -> str:
    """Curves in a plane, each with a colour and name; empty if no curve has points."""
    drawn = [Curve(line.name, _thinned(line.points)) for line in lines if line.points]
    if not drawn:
        return ""
    points = [point for line in drawn for point in line.points]
    across, up = _Axis.of([x for x, _ in points]), _Axis.of([y for _, y in points])
    parts = _grid(across, up, x_title, y_title)
    for number, line in enumerate(drawn):
        colour = CURVE_COLOURS[number % len(CURVE_COLOURS)]
        positions = [_pixel(across, up, *point) for point in line.points]
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in positions)
        parts.append(f'<polyline class="curve" stroke="{colour}" points="{corners}"/>')
        if len(positions) <= MAX_MARKS:
            parts += [
                _mark(position, point, line.name, colour)
                for position, point in zip(positions, line.points, strict=True)
            ]
        left, top = WIDTH - EDGE - NAME_WIDTH, EDGE - LINE_HEIGHT * (len(drawn) - number)
        parts.append(f'<rect x="{left}" y="{top}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{left + 16}" y="{top + 9}">{escape(line.name)}</text>')
    return _svg(WIDTH, HEIGHT, parts)


def _mark(position: tuple[float, float], point: tuple[float, float], name: str, colour: str) -> str:
    """A marked point of a curve, with a tooltip."""
    title = f"<title>{escape(name)} {point[1]:.6g} at {point[0]:.6g}</title>"
    return f'<circle cx="{position[0]:.1f}" cy="{position[1]:.1f}" r="3" fill="{colour}">{title}</circle>'


def _thinned(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """Points, reduced to means of neighbours if there are many."""
    if len(points) <= MAX_CORNERS:
        return points
    parts = np.array_split(np.array(points, np.float64), MAX_CORNERS)
    return [(float(part[:, 0].mean()), float(part[:, 1].mean())) for part in parts]


def _steps(line: Sequence[Dot]) -> list[tuple[float, float]]:
    """The corners of a step line, horizontal before vertical."""
    corners = [(line[0].x, line[0].y)]
    for before, behind in pairwise(line):
        corners += [(before.x, behind.y), (behind.x, behind.y)]
    return corners


def histogram(centers: np.ndarray, counts: np.ndarray, cuts: Sequence[float] = ()) -> str:
    """
    The frequencies of numbers as bars of logarithmic height, with lines at the ends of a range.

    `centers` and `counts` describe bins of equal width.
    """
    low, high = (min(float(centers[0]), *cuts), max(float(centers[-1]), *cuts)) if cuts else (centers[0], centers[-1])
    width = max(float(high - low), 1e-30)
    positions = np.minimum(((centers - low) / width * BARS).astype(np.int64), BARS - 1)
    heights = np.log1p(np.bincount(positions, counts, BARS))
    scale, step = BAR_HEIGHT / max(float(heights.max()), 1.0), BAR_WIDTH / BARS
    bars = [
        f'<rect class="bar" x="{position * step:.1f}" y="{BAR_HEIGHT - height * scale:.1f}" '
        f'width="{step:.1f}" height="{height * scale:.1f}"/>'
        for position, height in enumerate(heights)
        if height
    ]
    lines = [(cut - low) / width * BAR_WIDTH for cut in cuts]
    marks = [f'<line class="cut" x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{BAR_HEIGHT}"/>' for x in lines]
    return _svg(BAR_WIDTH, BAR_HEIGHT, [*bars, *marks])


@dataclass(frozen=True)
class Bar:
    """A bar in a lane, with its begin, end and tooltip."""

    lane: str
    begin: float
    end: float
    text: str
    is_marked: bool = False


def lanes(bars: Sequence[Bar], x_title: str) -> str:
    """Bars in a lane per name, in order of first occurrence, along one axis from 0."""
    names = list(dict.fromkeys(bar.lane for bar in bars))
    across = _Axis.of([0.0, *(bar.end for bar in bars)])
    height = LANE_HEIGHT * len(names) + EDGE
    left, width = LANE_NAME, WIDTH + LANE_NAME
    scale = (width - left - EDGE) / max(across.high, 1e-9)
    parts = [
        f'<text x="{left + tick * scale:.1f}" y="{height - 24}" text-anchor="middle">{tick:.4g}</text>'
        for tick in across.ticks()
    ]
    parts.append(f'<text x="{width / 2}" y="{height - 6}" text-anchor="middle">{escape(x_title)}</text>')
    for number, name in enumerate(names):
        top = number * LANE_HEIGHT
        parts.append(f'<text x="{left - 8}" y="{top + 18}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<line class="grid" x1="{left}" y1="{top + 28}" x2="{width - EDGE}" y2="{top + 28}"/>')
    for bar in bars:
        x, top = left + bar.begin * scale, names.index(bar.lane) * LANE_HEIGHT + 4
        size = f'width="{max((bar.end - bar.begin) * scale, 1):.1f}" height="22"'
        kind = "point marked" if bar.is_marked else "point"
        title = f"<title>{escape(bar.text)}</title>"
        parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{top}" {size}>{title}</rect>')
    return _svg(width, height, parts)


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(parts)}</svg>'


@dataclass(frozen=True)
class _Axis:
    """The range of an axis, and the distance of its labels."""

    low: float
    high: float
    step: float

    @staticmethod
    def of(numbers: Sequence[float]) -> _Axis:
        """An axis for numbers, with labels at round numbers."""
        low, high = min(numbers), max(numbers)
        rough = max((high - low) / TICKS, abs(high) * 1e-6, 1e-12)
        power = 10.0 ** np.floor(np.log10(rough))
        step = float(next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough))
        return _Axis(
            float(np.floor(low / step) * step), float(np.ceil(high / step) * step) + step * (low == high), step
        )

    def share(self, number: float) -> float:
        """The position of a number, from 0 to 1."""
        return (number - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """The labelled numbers."""
        return [self.low + self.step * number for number in range(round((self.high - self.low) / self.step) + 1)]
