"""
Where speed falls off: a sweep over all operators that onnxruntime runs, and the kinds of models that were slow once.

    python benchmarks/cliffs.py --folder sweep
    python benchmarks/cliffs.py --folder sweep --only Conv TopK --rounds 15
    python benchmarks/cliffs.py --folder sweep --threads 2
    python benchmarks/cliffs.py --folder sweep --report

The points are drawn by a seed from operators, odd shapes and element types, and written to `points.json` in the folder
before the first of them is timed; none is removed. Each is timed on the same core by glow_mlir, onnxruntime and, where
PyTorch is installed and has an equivalent, by that, in turns within one process and through kept bindings; the ratio is
our least time over the least of the better peer's. A run appends to a file of results, and goes on where it was
stopped. Points above 1.05 are timed again in more rounds. What we refuse counts, and is listed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from contest.environments import FOLDER
from contest.machine import add_core, cores_from
from glow_mlir.ir.text import write_text
from glow_mlir.tools.arguments.bounded_numbers import count
from sweep.drawn import drawn_points, undrawn
from sweep.kinds import kinds
from sweep.points import Point
from sweep.report import report
from sweep.timing import Result, Settings, measure

SEED = 0
"""The seed of the points, where none is given."""

TIMEOUT = 180
"""Seconds for one point: to compile it, and to time it."""


def points_in(path: Path, seed: int) -> list[Point]:
    """The points of a file; they are drawn and written where there is none."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        points = [*kinds(), *drawn_points(seed)]
        write_text(json.dumps([point.as_data() for point in points], indent=0) + "\n", path)
    return [Point.from_data(data) for data in json.loads(path.read_text())]


def results_in(path: Path) -> dict[str, Result]:
    """The results of a file by the names of points; the last one of a point counts."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {data["name"]: Result(**data) for data in map(json.loads, lines)}


def measured(points: Sequence[Point], settings: Settings) -> Iterator[Result]:
    """The results of the points in turn; one that ends its process, or takes too long, counts as refused."""
    pool = _pool()
    for point in points:
        future: Future[Result] = pool.submit(measure, point, settings)
        try:
            yield future.result(TIMEOUT)
        except (BrokenProcessPool, TimeoutError) as error:
            reason = "takes too long" if isinstance(error, TimeoutError) else "ends the process"
            for process in list(getattr(pool, "_processes", {}).values()):
                process.kill()
            pool.shutdown(cancel_futures=True)
            pool = _pool()
            yield Result(point.name, refused=reason)
    pool.shutdown()


def _pool() -> ProcessPoolExecutor:
    """One process that measures, which a crash ends in our stead."""
    return ProcessPoolExecutor(1, get_context("spawn"))


def arguments_from(command: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER / "sweep", help="where points and results are")
    parser.add_argument("--seed", type=int, default=SEED, help=f"the seed of the points ({SEED})")
    parser.add_argument("--only", nargs="+", default=[], metavar="OPERATOR", help="operators, or kinds, to measure")
    parser.add_argument("--again", type=float, metavar="RATIO", help="measure the points above this ratio again")
    parser.add_argument("--rounds", type=count, default=9, help="rounds of a point (9)")
    parser.add_argument("--threads", type=count, default=1, help="threads of a call (1)")
    add_core(parser, "the first core to run on")
    parser.add_argument("--report", action="store_true", help="print the report of what there is, and measure nothing")
    options = parser.parse_args(command)
    try:
        options.cores = cores_from(options.core, options.threads)
    except ValueError as error:
        parser.error(str(error))
    return options


def chosen(points: Sequence[Point], results: dict[str, Result], options: argparse.Namespace) -> list[Point]:
    """The points to measure: without a result, or with one above `--again`; of the operators and kinds of `--only`."""

    def is_due(point: Point) -> bool:
        result = results.get(point.name)
        if result is None or options.again is None:
            return result is None or bool(options.only and options.again is None)
        return (result.ratio() or 0) > options.again

    wanted = set(options.only)
    return [point for point in points if is_due(point) and (not wanted or {point.operator, point.kind} & wanted)]


def main() -> None:
    """Draw the points, measure those that are due, and print the report."""
    options = arguments_from()
    points = points_in(options.folder / "points.json", options.seed)
    path = options.folder / f"results-{options.threads}.jsonl"
    results = results_in(path)
    due = [] if options.report else chosen(points, results, options)
    with path.open("a") as lines:
        for number, result in enumerate(measured(due, Settings(options.rounds, options.cores)), 1):
            results[result.name] = result
            lines.write(json.dumps(result.as_data()) + "\n")
            lines.flush()
            ratio = result.ratio()
            verdict = f"{ratio:.2f}" if ratio is not None else result.refused or result.skipped
            print(f"{number} of {len(due)} {result.name}: {verdict}", file=sys.stderr, flush=True)
    print(report(points, results, undrawn()), end="")


if __name__ == "__main__":
    main()
