"""`glow-simulate`: predict throughput and latency of a served model on hypothetical devices."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from glow_mlir.errors import GlowError, OptionError
from glow_mlir.support.dataclass import dataclass
from glow_mlir.tools.arguments.bounded_numbers import count, natural, ranged
from glow_mlir.tools.command_line import EXIT_OK, check_written, new_parser, run_tool, takes_stdout

if TYPE_CHECKING:
    from glow_mlir.simulation.description import Description
    from glow_mlir.simulation.result import Result
    from glow_mlir.tools.reports.tables import Alignment

PROGRAM = "glow-simulate"
DESCRIPTION = (
    "Predict throughput and latency of a served model by a simulation of its queue, batches and devices, for as many "
    "devices as you say. The file has the stages of one replica with their seconds, and the requests."
)
EXAMPLES = """
glow-simulate served.json --devices 1,2,4,8,16
glow-simulate served.json --devices 1,10,100,1000 --plot served.svg --json served.results.json
glow-simulate served.json --requests 200 --trace served.trace.json
"""

MAX_DEVICES = 100_000

STDOUT_OPTIONS = ("json",)
"""Files that may be `-`, which is stdout."""

FILE_OPTIONS = ("plot", "trace")
"""Files that cannot be stdout."""

NUMBERS = (
    *(
        "devices",
        "replicas",
        "requests/s",
        "mean ms",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "p99.9 ms",
        "queue ms",
        "rows/call",
    ),
    *("busy", "refused", "expired"),
)
"""The columns of the table."""


def device_counts(text: str) -> tuple[int, ...]:
    """Parse distinct numbers of devices separated by commas."""
    one = ranged(int, 1, MAX_DEVICES, f"numbers of devices from 1 to {MAX_DEVICES:,} between commas")
    found = tuple(map(one, text.split(",")))
    if len(set(found)) < len(found):
        raise ArgumentTypeError(f"a number of devices is given twice in '{text}'")
    return found


def parse_arguments(arguments: Sequence[str]) -> Namespace:
    """Parse the options; raises `OptionError` for invalid ones."""
    parser = new_parser(PROGRAM, DESCRIPTION, EXAMPLES)
    parser.add_argument("file", help="a description as JSON, as docs/simulation.md explains it")
    parser.add_argument(
        "--devices",
        type=device_counts,
        metavar="N,…",
        help="devices, for as many replicas as these are enough for, a row each (default: those of one replica)",
    )
    parser.add_argument("--requests", type=count, metavar="N", help="instead of the file's number")
    parser.add_argument("--seed", type=natural, metavar="N", help="seed of random numbers, instead of the file's")
    files = parser.add_argument_group("files (- is stdout, which then has nothing else)")
    files.add_argument("--json", metavar="FILE", help="write all results")
    files.add_argument("--plot", metavar="FILE", help="draw throughput and the 99th percentile of latency as SVG")
    files.add_argument("--trace", metavar="FILE", help="write the timeline of the devices, for Perfetto; for one row")
    args = parser.parse_args(arguments)
    check_written(args, [args.file], STDOUT_OPTIONS, FILE_OPTIONS)
    if args.trace is not None and len(args.devices or ()) > 1:
        raise OptionError("argument --trace: there are several numbers of devices", hint="--devices with one of them")
    return args


@dataclass(frozen=True)
class Row:
    """The result for one number of devices; `None` where they are too few for another replica."""

    devices: int
    replicas: int
    result: Result

    def cells(self) -> list[str]:
        """The cells of the table."""
        found = self.result
        latency = found.latency
        times = (latency.mean, latency.p50, latency.p90, latency.p99, latency.p999, found.queued.mean)
        return [
            *(f"{self.devices:,}", f"{self.replicas:,}", f"{found.throughput:,.1f}"),
            *(f"{1e3 * seconds:,.3f}" for seconds in times),
            *(f"{found.batch:.2f}", f"{mean(found):.1%}", f"{found.refused:,}", f"{found.expired:,}"),
        ]

    def data(self) -> dict[str, object]:
        """The row as JSON data with more fields, times in seconds."""
        from glow_mlir.simulation.result import Result

        found = {name: getattr(self.result, name) for name in Result.__annotations__ if name != "spans"}
        for name in ("latency", "queued"):
            found[name] = asdict(found[name])
        found["by_kind"] = {name: asdict(times) for name, times in self.result.by_kind.items()}
        return {"devices": self.devices, "replicas": self.replicas, **found}


def mean(result: Result) -> float:
    """The mean utilisation over all devices."""
    return sum(result.utilisation.values()) / len(result.utilisation)


def run(arguments: list[str]) -> int:
    """Run the tool on its arguments."""
    from glow_mlir.simulation.description import read_description
    from glow_mlir.tools.reports.run_report import write_json
    from glow_mlir.tools.reports.tables import print_table

    args = parse_arguments(arguments)
    description = read_description(Path(args.file))
    if args.requests is not None:
        description = replace(description, load=replace(description.load, requests=args.requests))
    counts = args.devices or (description.devices,)
    rows = [row_of(args, description, devices) for devices in counts]
    if not takes_stdout(args, STDOUT_OPTIONS):
        columns: dict[str, Alignment] = dict.fromkeys(NUMBERS, "right")
        print_table(Path(args.file).name, columns, [row.cells() for row in rows])
    if args.json is not None:
        write_json([row.data() for row in rows], args.json)
    write_pictures(args, rows)
    return EXIT_OK


def row_of(args: Namespace, description: Description, devices: int) -> Row:
    """Simulate one number of devices; raises `OptionError` where they are too few."""
    from glow_mlir.simulation.engine import simulate

    try:
        system, load = description.on(devices)
        seed = description.seed if args.seed is None else args.seed
        result = simulate(system, load, seed=seed, traced=args.trace is not None)
    except GlowError as error:
        error.file = error.file or args.file
        raise
    return Row(devices, devices // description.devices, result)


def write_pictures(args: Namespace, rows: Sequence[Row]) -> None:
    """Write the picture and the trace, if requested."""
    from glow_mlir.ir.text import write_text
    from glow_mlir.runtime.queue_trace import QueueTrace
    from glow_mlir.runtime.trace import chrome_trace
    from glow_mlir.tools.reports.scaling_picture import Line, scaling_picture

    if args.plot is not None:
        lines = [
            Line("requests a second", [row.result.throughput for row in rows]),
            Line("99th percentile of latency, ms", [1e3 * row.result.latency.p99 for row in rows]),
        ]
        picture = scaling_picture(Path(args.file).name, [row.devices for row in rows], lines)
        write_text(picture, Path(args.plot))
    if args.trace is not None:
        trace = QueueTrace(list(rows[0].result.spans))
        write_text(chrome_trace(trace.events(), f"{PROGRAM} {args.file}", trace.queues), Path(args.trace))


def main(argv: Sequence[str] | None = None) -> int:
    """Run `glow-simulate`; the exit code: 0 success, 1 wrong input or options, 2 a bug in the compiler."""
    return run_tool(PROGRAM, run, argv)


if __name__ == "__main__":
    sys.exit(main())
