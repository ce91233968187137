"""Ratios as a picture that one reads at a glance: sorted bars with quartiles, a line where both are equal, in SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from contest.figures import Spread

LEFT, WIDTH, RIGHT, TOP = 190, 520, 190, 64
BAR, STEP = 16, 26
EQUAL = 1.0

NOTE = "time of the best accurate engine over ours: right of the line, glow-mlir is faster"
SECTION = re.compile(r"^## ([\w ]*threads?)\n(?:\n!.*\n)?\n\| model .*\n\|[ -|]*\n((?:\|.*\n)+)", re.MULTILINE)
"""The heading of a number of threads, and the rows of the table of ratios behind it."""
RATIO = re.compile(r"\*\*([\d.]+)\*\* \(([\d.]+) to ([\d.]+)\)")
"""Median and quartiles, as the table has them."""

STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1a202c }
.title { font-size: 15px; font-weight: 600 }
.note { font-size: 12px; fill: #4a5568 }
.name { text-anchor: end }
.faster { fill: #0f766e }
.slower { fill: #b45309 }
.quartiles { stroke: #1a202c; stroke-width: 1.5 }
.equal { stroke: #718096; stroke-dasharray: 4 3 }
.ground { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  text { fill: #e2e8f0 }
  .note { fill: #a0aec0 }
  .faster { fill: #2dd4bf }
  .slower { fill: #fbbf24 }
  .quartiles { stroke: #e2e8f0 }
  .ground { fill: #171923 }
}
"""
"""Colours that are told apart by the colour-blind, too; the picture follows the reader's scheme."""


@dataclass(frozen=True)
class Bar:
    """A ratio of times, above 1 where we are faster, with its quartiles, and what stands beside it."""

    name: str
    ratio: Spread
    label: str


def picture_file(name: str, heading: str) -> str:
    """The file beside a page of that name with the picture of a section."""
    return f"{name}-{heading.lower().replace(' ', '-')}.svg"


def pictures_of(page: str, name: str) -> dict[str, str]:
    """
    The pictures that a page of benchmarks refers to, by their files: one for each number of threads.

    They are drawn from the tables of the page, so that both say the same. `name` is the page's, without its suffix.
    """
    found: dict[str, str] = {}
    for heading, table in SECTION.findall(page):
        rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]
        ratios = ((row, RATIO.search(row[3])) for row in rows)
        bars = [Bar(row[0], _spread(*ratio.groups()), row[4]) for row, ratio in ratios if ratio]
        found[picture_file(name, heading)] = draw(heading, NOTE, bars)
    return found


def _spread(middle: str, low: str, high: str) -> Spread:
    return Spread(float(low), float(middle), float(high))


def draw(title: str, note: str, bars: Sequence[Bar]) -> str:
    """The picture, with the largest ratio on top."""
    ordered = sorted(bars, key=lambda bar: -bar.ratio.middle)
    scale = WIDTH / max([EQUAL, *(max(bar.ratio.middle, bar.ratio.high) for bar in ordered)])
    height = TOP + STEP * len(ordered) + 14
    width = LEFT + WIDTH + RIGHT
    equal = LEFT + scale * EQUAL
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{width}" height="{height}"/>',
        f'<text class="title" x="12" y="22">{escape(title)}</text>',
        f'<text class="note" x="12" y="42">{escape(note)}</text>',
        *(line for place, bar in enumerate(ordered) for line in _bar(TOP + STEP * place, scale, bar)),
        f'<line class="equal" x1="{equal:.1f}" x2="{equal:.1f}" y1="{TOP - 8}" y2="{height - 10}"/>',
        "</svg>",
        "",
    ]
    return "\n".join(lines)


def _bar(top: int, scale: float, bar: Bar) -> Iterator[str]:
    """The name, a bar to the median, a line from quartile to quartile, and the figure with what it is over."""
    ratio = bar.ratio
    middle, base = top + BAR / 2, top + BAR - 3
    kind = "faster" if ratio.middle >= EQUAL else "slower"
    end = LEFT + scale * max(ratio.middle, ratio.high) + 8
    yield f'<text class="name" x="{LEFT - 10}" y="{base}">{escape(bar.name)}</text>'
    yield f'<rect class="{kind}" x="{LEFT}" y="{top}" width="{scale * ratio.middle:.1f}" height="{BAR}" rx="2"/>'
    low, high = LEFT + scale * ratio.low, LEFT + scale * ratio.high
    yield f'<line class="quartiles" x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}"/>'
    yield f'<text x="{end:.1f}" y="{base}">{ratio.middle:.2f} × {escape(bar.label)}</text>'
