"""The ratios as a picture: bars with quartiles, in SVG."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from contest.engines import ENGINES
from contest.figures import Comparison
from contest.report import compare
from contest.turns import Measurement

LEFT, WIDTH, RIGHT, BAR, GAP = 150, 520, 150, 14, 14
COLOURS = {"accurate": "#2b6cb0", "every": "#a0aec0"}


def _bar(top: int, scale: float, kind: str, comparison: Comparison) -> list[str]:
    """A bar to the median, a line from quartile to quartile, and the figure with the peer's name."""
    ratio = comparison.ratio
    middle = top + BAR / 2
    label = f"{ratio.middle:.2f} {ENGINES[comparison.peer].title}"
    end = LEFT + scale * max(ratio.middle, ratio.high) + 6
    return [
        f'<rect x="{LEFT}" y="{top}" width="{scale * ratio.middle:.1f}" height="{BAR}" fill="{COLOURS[kind]}"/>',
        f'<line x1="{LEFT + scale * ratio.low:.1f}" x2="{LEFT + scale * ratio.high:.1f}" y1="{middle}" y2="{middle}" '
        f'stroke="#1a202c" stroke-width="1.5"/>',
        f'<text x="{end:.1f}" y="{top + BAR - 3}" font-size="11">{escape(label)}</text>',
    ]


def draw(measurements: Sequence[Measurement]) -> str:
    """The picture of measurements that all have one number of threads; empty of bars where we did not run."""
    compared = [(m, {"accurate": compare(m, True), "every": compare(m, False)}) for m in measurements]
    highest = max((c.ratio.high for _, both in compared for c in both.values() if c is not None), default=1.0)
    scale = WIDTH / max(highest, 1.0)
    body: list[str] = []
    top = 34
    for measurement, both in compared:
        name = escape(measurement.workload)
        body.append(f'<text x="{LEFT - 8}" y="{top + BAR + 4}" font-size="13" text-anchor="end">{name}</text>')
        for kind, comparison in both.items():
            if comparison is not None:
                body += _bar(top, scale, kind, comparison)
            top += BAR + 2
        top += GAP
    one = LEFT + scale
    body.append(f'<line x1="{one:.1f}" x2="{one:.1f}" y1="26" y2="{top}" stroke="#c53030" stroke-dasharray="4 3"/>')
    words = (
        "time of the best peer over ours (right of the line, we are faster): accurate peers (blue), every peer (grey)"
    )
    body.append(f'<text x="8" y="16" font-size="12">{words}</text>')
    size = f'width="{LEFT + WIDTH + RIGHT}" height="{top + 8}"'
    style = 'font-family="sans-serif" fill="#1a202c"'
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', '<rect width="100%" height="100%" fill="white"/>']
    return "\n".join([*head, f"<g {style}>", *body, "</g>", "</svg>", ""])
