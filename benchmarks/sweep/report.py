"""The report of a sweep: how many points lie where, a table of operators, and the list of those that are slow."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from sweep.points import Point
from sweep.timing import ONNXRUNTIME, OURS, TORCH, Result

BOUNDS = (1.2, 1.05)
"""Ratios beyond which points are counted."""

CALL_MICROS = 20
"""A point whose best peer takes less shows the cost of a call, and is counted with those."""


def kind_of(point: Point, result: Result) -> str:
    """The kind of a point: `call` for those of the sweep that take less than `CALL_MICROS`."""
    peers = [micros for name, micros in result.micros.items() if name != OURS]
    return "call" if point.kind == "sweep" and peers and min(peers) < CALL_MICROS else point.kind


def report(points: Sequence[Point], results: Mapping[str, Result], undrawn: Mapping[str, str]) -> str:
    """The report in Markdown; points without a result are counted as such."""
    done = [(point, results[point.name]) for point in points if point.name in results]
    refused = [(point, result) for point, result in done if result.refused]
    timed = [(point, result, ratio) for point, result in done if (ratio := result.ratio()) is not None]
    lines = [f"{len(points)} points, {len(done)} measured, {len(timed)} with times, {len(refused)} refused."]
    has_torch = any(TORCH in result.micros for _, result in done)
    lines.append(
        "" if has_torch else "\nPyTorch is not installed, or has no equivalent: onnxruntime is the only peer.\n"
    )
    lines += [
        "| kind | points | refused | median | worst | above 1.2 | above 1.05 |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    kinds = dict.fromkeys(kind_of(point, result) for point, result in done)
    rows = {"all": None} | dict.fromkeys(kinds)
    for kind in rows:
        ratios = [ratio for point, result, ratio in timed if kind in ("all", kind_of(point, result))]
        missing = sum(kind in ("all", kind_of(point, result)) for point, result in refused)
        lines.append(f"| {kind} | {len(ratios) + missing} | {missing} | {_figures(ratios)} |")
    lines += ["", "| operator | points | refused | median | worst |", "| --- | --- | --- | --- | --- |"]
    for operator in sorted({_operator(point) for point, _ in done}):
        ratios = [ratio for point, _, ratio in timed if _operator(point) == operator]
        missing = sum(_operator(point) == operator for point, _ in refused)
        figures = f"{statistics.median(ratios):.2f} | {max(ratios):.2f}" if ratios else "– | –"
        lines.append(f"| {operator} | {len(ratios) + missing} | {missing} | {figures} |")
    lines += ["", "## Points above 1.05", "", *slow(timed, BOUNDS[1])]
    lines += ["", "## Refused", "", *(f"- {point.name}: {result.refused.splitlines()[0]}" for point, result in refused)]
    lines += ["", "## Other results than onnxruntime's", ""]
    lines += [f"- {describe(point)}: {'; '.join(result.differences)}" for point, result in done if result.differences]
    lines += ["", "## Operators without points", "", *(f"- {name}: {reason}" for name, reason in undrawn.items())]
    return "\n".join(lines) + "\n"


def slow(timed: Sequence[tuple[Point, Result, float]], bound: float) -> list[str]:
    """The points above a ratio, the worst first."""
    found = sorted((item for item in timed if item[2] > bound), key=lambda item: -item[2])
    return [
        f"- {ratio:.2f} {describe(point)} [{kind_of(point, result)}]: ours {result.micros[OURS]:.1f} µs, "
        + ", ".join(f"{name} {micros:.1f}" for name, micros in result.micros.items() if name in (ONNXRUNTIME, TORCH))
        for point, result, ratio in found
    ]


def describe(point: Point) -> str:
    """A point in one line: its name, operands, and attributes."""
    operands = ", ".join(
        f"{operand.dtype}{list(operand.shape)}{' constant' if operand.constant else ''}"
        for operand in point.operands.values()
    )
    nodes = point.graph.partition("{")[2].strip().rstrip("}").split("\n")
    attributes = "; ".join(line.strip() for line in nodes if line.strip())[:160]
    return f"{point.name}: {operands} | {attributes}"


def _operator(point: Point) -> str:
    return point.name.rpartition(" ")[0] if point.kind == "sweep" else f"({point.kind})"


def _figures(ratios: Sequence[float]) -> str:
    if not ratios:
        return "– | – | – | –"
    shares = (sum(ratio > bound for ratio in ratios) / len(ratios) for bound in BOUNDS)
    return f"{statistics.median(ratios):.2f} | {max(ratios):.2f} | " + " | ".join(f"{share:.1%}" for share in shares)
