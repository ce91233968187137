"""Pass observers that report on stderr or into a folder: IR dumps, times, statistics."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.driver.pass_counts import PassCount, PassCounts
from glow_mlir.driver.pipelines import PassObserver
from glow_mlir.ir.text import make_folder, module_text, write_text
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.import_clock import ImportClock

_RULE = "===" + "-" * 73 + "==="


def is_chosen(item: ModulePass, names: Collection[str] | None) -> bool:
    """Whether a list of pass names includes this pass; `None` includes every pass."""
    return names is None or item.name in names


@dataclass
class IrPrinter(PassObserver):
    """Dumps the module around passes: on stderr, or into numbered files of a folder."""

    before_passes: Collection[str] | None = ()
    """Names of passes to dump before; `None` means all."""
    after_passes: Collection[str] | None = ()
    """Names of passes to dump after; `None` means all."""
    after_change: bool = False
    after_failure: bool = False
    folder: Path | None = None
    locations: bool = False
    limit: int | None = None
    _count: int = 0
    _previous: str = ""

    def before(self, item: ModulePass, module: ModuleOp) -> None:
        if self.after_change:
            self._previous = self._text(module)
        if is_chosen(item, self.before_passes):
            self._dump("Before", "_before", item, module)

    def after(self, item: ModulePass, module: ModuleOp) -> None:
        wanted = is_chosen(item, self.after_passes)
        if self.after_change:
            wanted = (wanted or not self.after_passes) and self._text(module) != self._previous
        if wanted:
            self._dump("After", "", item, module)
        self._count += 1

    def failed(self, item: ModulePass, module: ModuleOp) -> None:
        if self.after_failure or is_chosen(item, self.after_passes):
            self._dump(
                "After Failure of", "_failed", item, module, generic=True
            )  # It may be too broken for custom syntax.

    def _text(self, module: ModuleOp, *, generic: bool = False) -> str:
        locations = self.locations or self.folder is not None
        return module_text(module, locations=locations, generic=generic, limit=self.limit)

    def _dump(self, when: str, suffix: str, item: ModulePass, module: ModuleOp, *, generic: bool = False) -> None:
        text = self._text(module, generic=generic)
        if self.folder is None:
            print(f"// -----// IR Dump {when} {type(item).__name__} ({item.name}) //----- //", file=sys.stderr)
            print(text, file=sys.stderr)
            return
        make_folder(self.folder)
        write_text(text, self.folder / f"{self._count:03}_{item.name}{suffix}.mlir")


@dataclass
class Timer(PassObserver):
    """
    Measure the wall time of each pass and other work of the tool; print a table on stderr.

    Python imports have a row of their own, because whatever needs a module first would be charged for its import.
    """

    display: str = "tree"
    """As in MLIR: `tree` lists each run of a pass in order; `list` sums the runs of each pass, the longest first."""
    seconds: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    _begin: float = field(default_factory=time.perf_counter)
    imports: ImportClock = field(default_factory=ImportClock)
    """The context manager to enter around measured work."""
    _started: tuple[float, float] = (0.0, 0.0)

    def start(self) -> None:
        """Start to measure work outside passes."""
        self._started = self.imports.mark()

    def stop(self, name: str) -> None:
        """End the measurement, and record it under `name`."""
        self.seconds.append((name, self.imports.since(self._started)[0]))

    def before(self, item: ModulePass, module: ModuleOp) -> None:
        self.start()

    def after(self, item: ModulePass, module: ModuleOp) -> None:
        self.stop(item.name)

    def failed(self, item: ModulePass, module: ModuleOp) -> None:
        self.stop(f"{item.name} (failed)")

    def finish(self) -> None:
        total = time.perf_counter() - self._begin
        imports = self.imports.seconds
        rest = total - imports - sum(seconds for _, seconds in self.seconds)
        lines = [_RULE, "... Execution time report ...".center(79).rstrip(), _RULE]
        lines += [f"  Total Execution Time: {total:.4f} seconds", "", "  ----Wall Time----  ----Name----"]
        for name, seconds in [*self._rows(), ("Imports of Python", imports), ("Rest", rest), ("Total", total)]:
            lines.append(f"  {seconds:8.4f} ({100 * seconds / total:5.1f}%)  {name}")
        print("\n".join(lines), file=sys.stderr)

    def _rows(self) -> list[tuple[str, float]]:
        """The measured rows in display order."""
        if self.display == "tree":
            return self.seconds
        sums: dict[str, float] = {}
        for name, seconds in self.seconds:
            sums[name] = sums.get(name, 0.0) + seconds
        return sorted(sums.items(), key=lambda row: -row[1])


@dataclass
class PassTimes(PassObserver):
    """xDSL's `--time-passes`: print a line for each pass on stderr."""

    _started: float = 0.0

    def before(self, item: ModulePass, module: ModuleOp) -> None:
        self._started = time.perf_counter()

    def after(self, item: ModulePass, module: ModuleOp) -> None:
        print(f"Pass {item.name} took {time.perf_counter() - self._started} seconds", file=sys.stderr)


def run_lines(run: PassCount) -> Iterator[str]:
    """The lines for one run of a pass."""
    old, new = run.before, run.after
    changes = [f"{name} {old[name]} -> {new[name]}" for name in sorted(old | new) if old[name] != new[name]]
    detail = f" ({', '.join(changes)})" if changes else ""
    yield f"  {run.name}: {old.total()} -> {new.total()} ops{detail}"
    yield from counted_lines(run.counted, "    ")


def counted_lines(counted: Mapping[str, int], indent: str) -> Iterator[str]:
    """Statistics in MLIR's format, one per line, without zeros."""
    shown = {what: number for what, number in sorted(counted.items()) if number}
    width = max((len(str(number)) for number in shown.values()), default=0)
    for what, number in shown.items():
        yield f"{indent}(S) {number:{width}} {what}"


@dataclass
class Statistics(PassCounts):
    """
    Print the statistics of passes (`glow_mlir.ir.statistics`), and the change in the number of ops.

    `display` is as in MLIR: `pipeline` lists each run of a pass in order; `list` sums the runs of each pass, by name.
    """

    display: str = "pipeline"

    def finish(self) -> None:
        lines = [line for run in self.runs for line in run_lines(run)] if self.display == "pipeline" else self._summed()
        print("\n".join([_RULE, "... Pass statistics report ...".center(79).rstrip(), _RULE, *lines]), file=sys.stderr)

    def _summed(self) -> list[str]:
        """The lines of the list: each pass by name, with the sums over its runs."""
        lines: list[str] = []
        for name in sorted({run.name for run in self.runs}):
            mine = [run for run in self.runs if run.name == name]
            counted = sum((run.counted for run in mine), Counter[str]())
            change = sum(run.after.total() - run.before.total() for run in mine)
            lines.append(f"  {name}: {len(mine)} run{'s' * (len(mine) > 1)}, {change:+d} ops")
            lines += counted_lines(counted, "    ")
        return lines
