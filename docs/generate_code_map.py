"""
Draws docs/code-map.svg: the packages, and the way of a model through them.

    python docs/generate_code_map.py           # draw it
    python docs/generate_code_map.py --check   # exit with 1 where it is out of date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from generated_page import write_or_check

PICTURE = Path(__file__).with_name("code-map.svg")

WIDTH, HEIGHT, GAP, LABEL = 1080, 52, 14, 150
"""Of the picture, a box, the space between two, and the names of rows, in pixels."""

ROWS: Mapping[str, Sequence[tuple[str, str]]] = {
    "Programs": [
        ("tools", "command line, editor"),
        ("serving", "HTTP, gRPC"),
        ("examples", "models inside"),
        ("jax", "functions, models"),
        ("torch", "torch.compile"),
        ("onnx_backend", "ONNX's interface"),
    ],
    "Sessions": [
        ("api", "sessions"),
        ("generation", "text, by tokens"),
        ("host", "queues, replicas"),
        ("simulation", "queues by events"),
        ("bundle", "object file, header"),
        ("pictures", "pages, graphs"),
        ("kernels", "kernels in Python"),
    ],
    "Compilation": [
        ("driver", "pipelines, passes in order"),
        ("backends", "one folder a device"),
        ("training", "steps, losses, optimizers"),
    ],
    "The way of a model": [
        ("frontends", "→ glow_high"),
        ("transforms", "glow_high → glow_high"),
        ("conversion", "→ glow_low"),
        ("transforms", "glow_low → glow_low"),
        ("codegen", "→ llvm → code"),
        ("runtime", "load and run"),
    ],
    "What passes ask": [
        ("differentiation", "gradients"),
        ("rewriting", "formulas, bodies"),
        ("quantization", "profiles, scales"),
        ("partitioning", "devices, cuts"),
        ("analysis", "liveness, costs"),
        ("interpreter", "meaning, on numpy"),
    ],
    "What all know": [
        ("dialects", "operations, targets"),
        ("ir", "text, walks, patterns"),
        ("constants", "weights, packing"),
        ("options", "declared once"),
        ("xdsl_patches", "xDSL, faster"),
        ("support", "no compiler at all"),
        ("errors", "one line each"),
    ],
}
"""Row → packages and what they are about."""

FLOW = "The way of a model"
"""The row whose boxes are steps."""

STYLE = (
    "text{font:13px sans-serif;fill:#223} .name{font-weight:600} .about{font-size:11px;fill:#556} .row{fill:#778}"
    " rect{fill:#eef6f5;stroke:#7aa;rx:6} .step rect{fill:#d5ecea;stroke:#288} path{stroke:#288;fill:none}"
)


def drawn() -> str:
    """The picture."""
    height = len(ROWS) * (HEIGHT + 2 * GAP)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
    title = "<title>The packages of glow-mlir, and the way of a model through them</title>"
    rows = [line for number, (name, boxes) in enumerate(ROWS.items()) for line in _row(number, name, boxes)]
    return "\n".join([head, title, f"<style>{STYLE}</style>", *rows, "</svg>\n"])


def _row(number: int, name: str, boxes: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The name of a row and its boxes, with arrows between steps."""
    top, width = number * (HEIGHT + 2 * GAP) + GAP, (WIDTH - LABEL - GAP) // len(boxes) - GAP
    middle = top + HEIGHT // 2
    yield f'<text class="row" x="4" y="{middle + 4}">{escape(name)}</text>'
    for position, (package, about) in enumerate(boxes):
        left = LABEL + position * (width + GAP)
        yield f'<g class="{"step" if name == FLOW else "box"}">'
        yield f'<rect x="{left}" y="{top}" width="{width}" height="{HEIGHT}"/>'
        yield f'<text class="name" x="{left + 8}" y="{top + 22}">{escape(package)}</text>'
        yield f'<text class="about" x="{left + 8}" y="{top + 40}">{escape(about)}</text></g>'
        if name == FLOW and position:
            yield f'<path d="M{left - GAP} {middle}h{GAP - 2}m-4 -4l4 4l-4 4"/>'


if __name__ == "__main__":
    sys.exit(write_or_check(PICTURE, drawn(), sys.argv[1:]))
