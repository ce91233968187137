"""`--compare`: two compilations side by side, from the stages to the run time."""

from __future__ import annotations

import shlex
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.api.model_session import ModelSession
from glow_mlir.driver.compilation_log import CompilationLog
from glow_mlir.driver.pipelines import Stage
from glow_mlir.errors import InputError, OptionError
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.traversal import operations
from glow_mlir.pictures.page import Row
from glow_mlir.runtime.code_sizes import sizes_in_words
from glow_mlir.runtime.machine_code import MachineCode
from glow_mlir.support.dataclass import dataclass
from glow_mlir.tools.arguments.run_arguments import parse_arguments
from glow_mlir.tools.command_line import spelled
from glow_mlir.tools.reports.latency import Budget
from glow_mlir.tools.reports.tables import Alignment, print_table

COLUMNS: dict[str, Alignment] = {"": "left", "one": "right", "other": "right", "other / one": "right"}

IMPORT = "(import)"
"""The pass name for operations that existed from the start."""

ALONE = ("compare", "compilation_log", "log_nodes", "dump_phases", "dump_values", "values_of")
"""Options of the first compilation only: the second would overwrite the same files."""

BOTH = {
    "input inputs image layout image_mode mean stddev seed": "inputs",
    "check rtol atol quantization_report": "checks",
    "iterations duration warmup profile trace": "measurements",
    "outputs json stats dump_dot dot_stage dump_html": "reports",
}
"""Options of the whole run → their topic; the second side of a comparison cannot set them."""


@dataclass
class Seen:
    """An observer of a compilation that records data for a comparison: operations by stage, and the log of passes."""

    operations: dict[str, int] = field(default_factory=dict[str, int])
    log: CompilationLog = field(default_factory=CompilationLog)

    def __call__(self, stage: Stage, module: ModuleOp, seconds: float) -> None:
        """Count the operations of all functions, including those in branches and loops."""
        if found := functions(module):
            self.operations[stage.name] = sum(1 for function in found for _ in operations(function))

    def passes(self) -> Counter[str]:
        """The number of changes by each pass."""
        found: Counter[str] = Counter()
        for entry in (entry for entries in self.log.nodes.values() for entry in entries):
            found[entry.pass_name or IMPORT] += entry.count
        return found


@dataclass(frozen=True)
class Side:
    """One of the two compilations, and the outputs of a run."""

    session: ModelSession
    seen: Seen
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]

    def run(self) -> object:
        """Run it once."""
        return self.session.run(self.inputs)

    def memory(self) -> dict[str, int]:
        """Bytes by purpose; empty without machine code."""
        code = self.session.executable
        if not isinstance(code, MachineCode):
            return {}
        return sizes_in_words(code, self.session.machine_entry)

    def kernels(self) -> Counter[str]:
        """The instructions by kernel; empty without machine code."""
        if not isinstance(self.session.executable, MachineCode):
            return Counter()
        return Counter(step.kernel or step.kind for step in self.session.machine_entry.entry.steps)


def other_arguments(arguments: Sequence[str], compared: str) -> Namespace:
    """
    The options of the second compilation: those of the first, changed by `compared` (a model, options, or both).

    Raises `OptionError` for invalid options, and `InputError` for a model that cannot be read.
    """
    try:
        words = shlex.split(compared)
    except ValueError as error:
        raise OptionError(f"--compare '{compared}': {str(error).lower()}", hint="close the quotes") from error
    if not words:
        raise OptionError("--compare is empty", hint="a model, or options as in --compare='--precision bf16'")
    model = None if words[0].startswith("-") else words.pop(0)
    args = parse_arguments(arguments, words)
    if model is not None:
        _check_readable(model)
        args.model = model
    _refuse_options_of_runs(parse_arguments(arguments), args)
    for name in ALONE:
        setattr(args, name, None)
    return args


def _refuse_options_of_runs(one: Namespace, other: Namespace) -> None:
    """Raise `OptionError` for options that the second run would ignore."""
    for names, what in {**BOTH, " ".join(ALONE): "files of a compilation"}.items():
        for name in names.split():
            if getattr(other, name) != getattr(one, name):
                reason = f"--compare takes no --{spelled(name)}: both sides share {what}"
                raise OptionError(reason, hint="give it outside of --compare")


def _check_readable(model: str) -> None:
    """Raise `InputError` for an unreadable file, before the first compilation starts."""
    try:
        with open(model, "rb"):
            pass
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=model) from error


@dataclass(frozen=True)
class CompilationComparison:
    """Two compilations, the latencies of their alternating runs in milliseconds, and their differences."""

    one: Side
    other: Side
    times: tuple[np.ndarray, np.ndarray]
    key: str = "comparison"

    @cached_property
    def rows(self) -> list[Row]:
        """All rows, each section after its heading."""
        return list(self._rows())

    def _rows(self) -> Iterator[Row]:
        one, other = self.one, self.other
        yield from _counts("operations at the stage", one.seen.operations, other.seen.operations)
        yield from _counts("changes by the pass", one.seen.passes(), other.seen.passes())
        if one.memory() and other.memory():
            yield from _counts("instructions by kernel", one.kernels(), other.kernels())
            yield from _counts("bytes", one.memory(), other.memory())
        seconds = [sum(side.session.compile_seconds.values()) for side in (one, other)]
        yield ("time", None, None, None)
        yield _row("compilation, s", *seconds, digits=2)
        for name, of in (("median of a run, ms", np.median), ("shortest run, ms", np.min)):
            yield _row(name, *(float(of(times)) for times in self.times), digits=4)
        yield ("largest difference of the output", None, None, None)
        yield from self.differences()

    def differences(self) -> Iterator[Row]:
        """The differences of the outputs with the same name and shape."""
        for name, array in self.one.outputs.items():
            found = self.other.outputs.get(name)
            if found is None or found.shape != array.shape:
                yield (name, _shape(array), "none" if found is None else _shape(found), "")
                continue
            wide = np.complex128 if np.iscomplexobj(array) else np.float64
            with np.errstate(all="ignore"):
                apart = np.abs(found.astype(wide) - array.astype(wide))
            largest = float(np.max(apart[~np.isnan(apart)], initial=0.0))
            yield (name, _shape(array), _shape(found), f"{largest:.3g}")

    def show(self) -> None:
        """Print a table for each nonempty section."""
        rows = self.rows
        headings = [number for number, row in enumerate(rows) if row[1] is None]
        for begin, end in zip(headings, [*headings[1:], len(rows)], strict=True):
            cells = [[cell or "" for cell in row] for row in rows[begin + 1 : end]]
            if cells:
                print_table(rows[begin][0], COLUMNS, cells)

    def data(self) -> list[Row]:
        """The rows as JSON data."""
        return self.rows


def measured_in_turns(runs: Sequence[Callable[[], object]], budget: Budget) -> tuple[np.ndarray, ...]:
    """The latencies of each function in milliseconds; the runs alternate, so that disturbances affect all alike."""
    begin = time.perf_counter()
    times: list[list[float]] = [[] for _ in runs]
    is_warm = False
    while not is_warm or len(times[0]) < budget.iterations or sum(map(sum, times)) < budget.duration * 1e3:
        for run, found in zip(runs, times, strict=True):
            start = time.perf_counter_ns()
            run()
            if is_warm:
                found.append((time.perf_counter_ns() - start) / 1e6)
        is_warm = is_warm or time.perf_counter() - begin >= budget.warmup / 1e3
    return tuple(map(np.array, times))


def _counts(title: str, one: Mapping[str, int], other: Mapping[str, int]) -> Iterator[Row]:
    names = list(dict.fromkeys([*one, *other]))
    if names:
        yield (title, None, None, None)
    for name in names:
        yield _row(name, one.get(name, 0), other.get(name, 0))


def _row(name: str, one: float, other: float, digits: int = 0) -> Row:
    change = "" if one == other or not one else f"{other / one:.2f}"
    return (name, f"{one:,.{digits}f}", f"{other:,.{digits}f}", change)


def _shape(array: np.ndarray) -> str:
    return f"{array.dtype}{list(array.shape)}"
