"""`glow-bench`: measure a server of the Open Inference Protocol under load."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from glow_mlir.errors import GlowError, OptionError
from glow_mlir.support.activity import warn
from glow_mlir.support.dataclass import dataclass
from glow_mlir.tools.arguments.bounded_numbers import count, natural, ranged, seconds
from glow_mlir.tools.arguments.repeated_options import OncePerName
from glow_mlir.tools.command_line import EXIT_ERROR, EXIT_OK, check_written, new_parser, run_tool, takes_stdout

if TYPE_CHECKING:
    from glow_mlir.tools.load.inference_bodies import GivenInputs
    from glow_mlir.tools.load.load_measurement import LoadPlan, LoadResult
    from glow_mlir.tools.load.load_target import Target
    from glow_mlir.tools.reports.tables import Alignment

PROGRAM = "glow-bench"
DESCRIPTION = (
    "Measure a server of the Open Inference Protocol (KServe v2), ours or another, over HTTP or gRPC. In a closed loop "
    "each of the clients waits for its answer before it sends the next request. In an open loop (--rate) requests come "
    "when they are due, whatever the server does, and latency counts from that time: a request that has to wait for "
    "those before it, or for a free connection, is as slow as its user finds it. Every request is the same, and made "
    "once; what the load generator takes of a core is in the table."
)
EXAMPLES = """
glow-bench http://127.0.0.1:8000 digits --clients 1,8,64
glow-bench grpc://127.0.0.1:8001 digits --bind image.0=4 --pid 4711 --json digits.results.json
glow-bench http://127.0.0.1:8000 digits --rate 100,500,1000 --seconds 20
"""

STDOUT_OPTIONS = ("json",)
"""Options whose file may be `-`, which is stdout."""

MAX_CLIENTS, MAX_RATE = 10_000, 1e6

OPEN_CONNECTIONS = 64
"""Connections of an open loop by default."""

FULL_CORE = 0.85
"""The share of a core at which the measurement may be limited by the load generator."""

Number = TypeVar("Number", int, float)


def several(one: Callable[[str], Number]) -> Callable[[str], tuple[Number, ...]]:
    """Return a parser of distinct numbers separated by commas."""

    def parse(text: str) -> tuple[Number, ...]:
        found = tuple(map(one, text.split(",")))
        if len(set(found)) < len(found):
            raise ArgumentTypeError(f"a number is given twice in '{text}'")
        return found

    return parse


client_counts = several(ranged(int, 1, MAX_CLIENTS, f"numbers from 1 to {MAX_CLIENTS:,} between commas"))
rates = several(ranged(float, 1e-3, MAX_RATE, f"rates from 0.001 to {MAX_RATE:,.0f} between commas"))
size = ranged(int, 0, 1 << 40, "a size")
axis = ranged(int, 0, 63, "an axis from 0 to 63")
patience = ranged(float, 0.001, 86_400.0, "seconds from 0.001 to 86400, a day")


def shape_of_input(text: str) -> tuple[str, tuple[int, ...]]:
    """Parse `NAME=SIZE,SIZE…`; a scalar is `NAME=`."""
    name, sign, listed = text.rpartition("=")
    if not sign or not name:
        raise ArgumentTypeError(f"expected NAME=SIZE,SIZE…, got '{text}'")
    return name, tuple(size(item) for item in listed.split(",") if listed)


def size_of_axis(text: str) -> tuple[tuple[str, int], int]:
    """Parse `NAME.AXIS=SIZE`."""
    tensor, _, listed = text.rpartition("=")
    name, _, number = tensor.rpartition(".")
    if not name:
        raise ArgumentTypeError(f"expected NAME.AXIS=SIZE, got '{text}'")
    return (name, axis(number)), size(listed)


def file_of_input(text: str) -> tuple[str, Path]:
    """Parse `NAME=FILE`."""
    name, _, path = text.partition("=")
    if not name or not path:
        raise ArgumentTypeError(f"expected NAME=FILE.npy, got '{text}'")
    return name, Path(path)


def parse_arguments(arguments: Sequence[str]) -> Namespace:
    """Parse the options; raises `OptionError` for invalid ones."""
    parser = new_parser(PROGRAM, DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "address", metavar="ADDRESS", help="http://HOST:PORT or grpc://HOST:PORT, with TLS https, grpcs"
    )
    parser.add_argument("model", metavar="MODEL", help="the name of the model")
    parser.add_argument("--model-version", default="", metavar="NAME", help="a version of it (default: the server's)")
    load = parser.add_argument_group("load (a row of the table for each number between commas)")
    load.add_argument(
        "--clients",
        type=client_counts,
        metavar="N,…",
        help=f"connections with a request under way each (default: 1, with --rate at most {OPEN_CONNECTIONS})",
    )
    load.add_argument(
        "--think", type=seconds, default=0.0, metavar="SECONDS", help="pause of a client after each answer"
    )
    load.add_argument("--rate", type=rates, metavar="N,…", help="requests per second, sent without waiting for answers")
    load.add_argument("--fixed", action="store_true", help="at equal intervals (default: a Poisson process)")
    until = load.add_mutually_exclusive_group()
    until.add_argument("--seconds", type=seconds, default=5.0, metavar="N", help="how long (default: 5)")
    until.add_argument("--requests", type=count, metavar="N", help="how many requests, instead of --seconds")
    load.add_argument(
        "--warmup", type=seconds, default=1.0, metavar="SECONDS", help="unmeasured load before (default: 1)"
    )
    load.add_argument(
        "--timeout", type=patience, default=30.0, metavar="SECONDS", help="timeout of an answer (default: 30)"
    )
    load.add_argument("--seed", type=natural, default=0, metavar="N", help="seed of times and inputs (default: 0)")
    inputs = parser.add_argument_group("inputs (random, as the server describes them; free sizes are 1)")
    inputs.add_argument(
        "--bind",
        action=OncePerName,
        type=size_of_axis,
        default=[],
        metavar="NAME.AXIS=N",
        help="the size of a free axis",
    )
    inputs.add_argument(
        "--shape", action=OncePerName, type=shape_of_input, default=[], metavar="NAME=N,…", help="all sizes of an input"
    )
    inputs.add_argument(
        "--input", action=OncePerName, type=file_of_input, default=[], metavar="NAME=FILE.npy", help="an array"
    )
    inputs.add_argument(
        "--tensors", choices=("binary", "json"), default="binary", help="as bytes, or as numbers (default: binary)"
    )
    access = parser.add_argument_group("access")
    access.add_argument("--token-file", type=Path, metavar="FILE", help="the Bearer token of the server")
    access.add_argument("--tls-authorities", type=Path, metavar="FILE", help="certificates to trust, as PEM")
    report = parser.add_argument_group("report")
    report.add_argument(
        "--pid", type=count, action="append", default=[], metavar="N", help="a server process whose CPU time to report"
    )
    report.add_argument("--json", metavar="FILE", help="write all that was found (- is stdout, without the table)")
    args = parser.parse_args(arguments)
    _check(args)
    return args


def _check(args: Namespace) -> None:
    """Raise `OptionError` for options that contradict each other."""
    if args.rate is None and args.fixed:
        raise OptionError("argument --fixed: there is no --rate")
    if args.rate is not None and args.think:
        raise OptionError("argument --think: requests of --rate wait for nothing")
    if args.rate is not None and len(args.clients or ()) > 1:
        raise OptionError("argument --clients: with --rate there is one number")
    if args.requests is None and not args.seconds:
        raise OptionError("argument --seconds: nothing is measured in 0 seconds")
    check_written(args, [str(path) for _, path in args.input], STDOUT_OPTIONS, ())


def plans(args: Namespace) -> list[LoadPlan]:
    """The requested loads, one for each row."""
    from glow_mlir.tools.load.load_driver import Arrivals, Budget
    from glow_mlir.tools.load.load_measurement import LoadPlan

    budget = Budget(requests=args.requests) if args.requests else Budget(seconds=args.seconds)
    common = {"warmup": args.warmup, "patience": args.timeout}
    if args.rate is None:
        return [LoadPlan(clients, budget, think=args.think, **common) for clients in args.clients or (1,)]
    (clients,) = args.clients or (OPEN_CONNECTIONS,)
    arrivals = [Arrivals(rate, args.seed, args.fixed) for rate in args.rate]
    return [LoadPlan(clients, budget, arrivals=each, **common) for each in arrivals]


def given_inputs(args: Namespace) -> GivenInputs:
    """The inputs in the options; raises `InputError` for a file that cannot be read."""
    from glow_mlir.tools.inputs.run_inputs import read_npy
    from glow_mlir.tools.load.inference_bodies import GivenInputs

    sizes: dict[str, dict[int, int]] = {}
    for (name, number), found in args.bind:
        sizes.setdefault(name, {})[number] = found
    arrays = {name: read_npy(path) for name, path in args.input}
    for name in {**arrays, **dict(args.shape)}:
        others = [name in arrays, name in dict(args.shape), name in sizes]
        if others.count(True) > 1:
            raise OptionError(f"the shape of input '{name}' is given twice", hint="one of --input, --shape and --bind")
    return GivenInputs(arrays, dict(args.shape), sizes, args.seed)


def target_of(args: Namespace) -> Target:
    """The server and model to measure; raises `OptionError`."""
    from glow_mlir.tools.load.load_target import Access, Target, address_of

    token = ""
    if args.token_file is not None:
        try:
            token = args.token_file.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(f"cannot be read: {error}", file=str(args.token_file)) from error
    return Target(address_of(args.address), args.model, args.model_version, Access(token, args.tls_authorities))


@dataclass(frozen=True)
class Row:
    """The result of one load."""

    plan: LoadPlan
    result: LoadResult

    def cells(self) -> list[str]:
        """The cells of the table."""
        plan, found = self.plan, self.result
        latency = found.latency
        times = (latency.mean, latency.p50, latency.p90, latency.p99, latency.p999, found.largest)
        errors = ", ".join(f"{status}: {failed.number:,}" for status, failed in found.failures.items())
        return [
            f"{plan.clients:,}" if plan.arrivals is None else f"{plan.arrivals.rate:,g}",
            f"{found.throughput:,.1f}",
            *(f"{1e3 * time:,.3f}" for time in times),
            errors or "0",
            f"{1e6 * found.client_cpu:,.0f}",
            f"{found.client_share:.0%}",
            *([] if found.server_cpu is None else [f"{1e6 * found.server_cpu:,.0f}"]),
        ]

    def data(self) -> dict[str, object]:
        """The row as JSON data with more fields, times in seconds."""
        plan, found = self.plan, self.result
        arrivals = None if plan.arrivals is None else asdict(plan.arrivals)
        data = {name: getattr(found, name) for name in type(found).__annotations__}
        data |= {"latency": asdict(found.latency), "lateness": asdict(found.lateness)}
        data["failures"] = {status: failed._asdict() for status, failed in found.failures.items()}
        return {
            **{"clients": plan.clients, "think": plan.think, "arrivals": arrivals, "warmup": plan.warmup},
            **{"throughput": found.throughput, "failed": found.failed, **data},
        }


def columns(args: Namespace) -> dict[str, Alignment]:
    """The columns of the table."""
    names = ["clients" if args.rate is None else "rate", "requests/s"]
    names += [f"{name} ms" for name in ("mean", "p50", "p90", "p99", "p99.9", "largest")]
    names += ["errors", "client µs", "client core", *(["server µs"] if args.pid else [])]
    return dict.fromkeys(names, "right")


def run(arguments: list[str]) -> int:
    """Run the tool on its arguments."""
    import asyncio
    from functools import partial

    from glow_mlir.tools.load.load_measurement import new_loop
    from glow_mlir.tools.reports.process_times import with_children
    from glow_mlir.tools.reports.run_report import write_json
    from glow_mlir.tools.reports.tables import print_table

    args = parse_arguments(arguments)
    target, loads, given = target_of(args), plans(args), given_inputs(args)
    with_children(args.pid) if args.pid else None
    is_timed = args.rate is not None or args.think > 0
    loop = partial(new_loop, is_timed=is_timed, connections=max(plan.clients for plan in loads))
    with asyncio.Runner(loop_factory=loop) as runner:
        shown, rows = runner.run(measured_rows(args, target, loads, given))
    for row in rows:
        warn_of(row, args.address)
    title = f"{args.model} at {target.address}: {', '.join(shown)}"
    if not takes_stdout(args, STDOUT_OPTIONS):
        print_table(title, columns(args), [row.cells() for row in rows])
    if args.json is not None:
        about = {"address": str(target.address), "model": args.model, "version": args.model_version}
        how = {"tensors": args.tensors, "inputs": shown, "seed": args.seed}
        write_json({**about, **how, "rows": [row.data() for row in rows]}, args.json)
    return EXIT_OK if all(row.result.answered for row in rows) else EXIT_ERROR


async def measured_rows(
    args: Namespace, target: Target, loads: Sequence[LoadPlan], given: GivenInputs
) -> tuple[list[str], list[Row]]:
    """Describe the inputs, and measure each load."""
    from glow_mlir.serving.tensors import wire_datatype
    from glow_mlir.tools.load.load_measurement import measured

    tensors = given.tensors(await target.inputs(args.timeout))
    request = target.request(tensors, is_binary=args.tensors == "binary")
    shown = [f"{name} {wire_datatype(array)}{list(array.shape)}" for name, array in tensors.items()]
    return shown, [Row(plan, await measured(target, request, plan, args.pid)) for plan in loads]


def warn_of(row: Row, address: str) -> None:
    """Warn of failed requests, and of results that the load generator limits."""
    from glow_mlir.tools.load.load_target import HINTS

    for status, (number, reason) in row.result.failures.items():
        hint = HINTS.get(status, "")
        warn(GlowError(f"{number:,} requests failed, {status}: {reason}", file=address, hint=hint))
    if row.result.client_share > FULL_CORE:
        share = f"{row.result.client_share:.0%}"
        hint = "fewer --clients, a lower --rate, or several glow-bench at once"
        warn(GlowError(f"the load generator took {share} of a core: the figures may be its own", hint=hint))


def main(argv: Sequence[str] | None = None) -> int:
    """Run `glow-bench`; the exit code: 0 success, 1 wrong input or no answer at all, 2 a bug in the compiler."""
    return run_tool(PROGRAM, run, argv)


if __name__ == "__main__":
    sys.exit(main())
