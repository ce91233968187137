"""Rates and times against numbers of devices: a self-contained picture of charts, one below the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from glow_mlir.support.dataclass import dataclass

WIDTH, HEIGHT, EDGE = 640, 260, 64
"""Size of a chart in pixels, and the border for its labels."""

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #444; } .paper { fill: #fff; } .grid { stroke: #e4e4e4; }
.line { fill: none; stroke: #4a7aab; stroke-width: 1.5; } .point { fill: #4a7aab; }
@media (prefers-color-scheme: dark) {
  text { fill: #b6bfcc; } .paper { fill: #14171d; } .grid { stroke: #2a303a; }
  .line { stroke: #77aadd; } .point { fill: #77aadd; }
}
"""


@dataclass(frozen=True)
class Line:
    """A title, and a positive number for each number of devices."""

    title: str
    numbers: Sequence[float]


def scaling_picture(title: str, devices: Sequence[int], lines: Sequence[Line]) -> str:
    """An SVG file with a chart for each line on logarithmic axes; numbers that are not positive are left out."""
    parts = [f'<style>{STYLE}</style><rect class="paper" width="100%" height="100%"/>']
    parts.append(f'<text x="{EDGE}" y="20">{escape(title)}</text>')
    for number, line in enumerate(lines):
        points = [point for point in zip(devices, line.numbers, strict=True) if 0 < point[1] < math.inf]
        if points:
            parts.append(f'<g transform="translate(0 {number * HEIGHT})">{_chart(line.title, points)}</g>')
    height = HEIGHT * len(lines)
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(parts)}</svg>\n'


def _chart(title: str, points: Sequence[tuple[int, float]]) -> str:
    """One chart."""
    across, up = _ticks([x for x, _ in points]), _ticks([y for _, y in points])
    top, bottom = EDGE * 0.75, HEIGHT - EDGE * 0.75

    def pixel(x: float, y: float) -> tuple[float, float]:
        return (
            EDGE + _share(across, x) * (WIDTH - 2 * EDGE),
            bottom - _share(up, y) * (bottom - top),
        )

    parts: list[str] = []
    for tick in across:
        x, _ = pixel(tick, up[0])
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>')
    for tick in up:
        _, y = pixel(across[0], tick)
        parts.append(f'<line class="grid" x1="{EDGE}" y1="{y:.1f}" x2="{WIDTH - EDGE}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{EDGE - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    corners = [pixel(*point) for point in points]
    parts.append(f'<polyline class="line" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in corners)}"/>')
    for (x, y), (count, number) in zip(corners, points, strict=True):
        text = f"<title>{number:.6g} with {count}</title>"
        parts.append(f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="3">{text}</circle>')
    parts.append(f'<text x="{EDGE}" y="{top - 10}">{escape(title)}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{bottom + 32}" text-anchor="middle">devices</text>')
    return "".join(parts)


def _ticks(numbers: Sequence[float]) -> list[float]:
    """
    Round tick values from below the smallest to above the largest number: powers of ten, plus 2 and 5 if these are few.
    """
    low, high = math.floor(math.log10(min(numbers))), math.ceil(math.log10(max(numbers)))
    factors = (1, 2, 5) if high - low <= 3 else (1,)
    found = [float(f"{factor}e{power}") for power in range(low, high + 1) for factor in factors]
    first = max(number for number in found if number <= min(numbers))
    last = min(number for number in (*found, 10.0 ** (high + 1)) if number >= max(numbers) and number > first)
    return [number for number in dict.fromkeys([*found, last]) if first <= number <= last]


def _share(ticks: Sequence[float], number: float) -> float:
    """The position of a number between the first and the last tick, from 0 to 1."""
    return math.log(number / ticks[0]) / math.log(ticks[-1] / ticks[0])
