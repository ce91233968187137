"""
The machine code of this checkout beside that of an older revision: bytes first, time only where they differ.

    python benchmarks/object_bytes.py HEAD~20
    python benchmarks/object_bytes.py HEAD~20 --targets avx2 neon --only Conv --bytes-only

Both versions compile the forms of `contest/forms.py` for each target. Code whose object files are equal byte for byte
is as fast as before. What differs on the first target that this machine runs, but for forms with a bound on sizes, is
timed in turns on one core, beside a second process of the older version, whose times show what the machine's noise is:
a form counts as slower, or faster, where all of the middle half of its ratios lies outside of the middle half of
theirs. Ends with 1 if a form is slower, or compiles no more.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from contest.client import BENCHMARKS, ROOT, Worker, WorkerFailure
from contest.engines import OURS
from contest.figures import Spread, calls_within, ratios, spread
from contest.forms import Form, forms
from contest.job import Job
from contest.machine import add_core, machine
from contest.objects import file_name
from glow_mlir.backends.cpu.targets import PRESETS, lacks
from glow_mlir.tools.arguments.bounded_numbers import count

TARGETS = ("avx512", "avx2", "neon", "cortex-m55")
"""What is compiled for where nothing else is said: vectors of each length, products of codes by each instruction."""


@dataclass(frozen=True)
class Pair:
    """A form for a target, and its object files, those of the older revision first; None where one does not compile."""

    form: Form
    target: str
    before: bytes | None
    after: bytes | None

    @property
    def differs(self) -> bool:
        """Whether both compile, to different bytes."""
        return None not in (self.before, self.after) and self.before != self.after

    def verdict(self) -> str:
        """How the two compare, in words."""
        if self.before is None or self.after is None:
            return "no code" if self.before is None and self.after is None else self._alone()
        if self.before == self.after:
            return "equal"
        return f"{len(self.before):,} → {len(self.after):,} bytes"

    def _alone(self) -> str:
        return "compiles now" if self.before is None else "COMPILES NO MORE"


@dataclass(frozen=True)
class Timed:
    """Ratios of times to those of the older version: of this version, and of the older one a second time."""

    ratio: Spread
    noise: Spread

    def verdict(self) -> str:
        """Faster, slower, or neither, in words."""
        if self.ratio.low > self.noise.high:
            return "SLOWER"
        return "faster" if self.ratio.high < self.noise.low else "within the noise"

    def __str__(self) -> str:
        noise = f"{self.noise.low:.3f} to {self.noise.high:.3f}"
        return f"{self.ratio.middle:.3f} of the time before (the same code: {noise}): {self.verdict()}"


class Compiling:
    """A version of the compiler at work on all forms."""

    def __init__(self, root: Path, folder: Path, names: Iterable[str], targets: Sequence[str]) -> None:
        self.root, self.folder = root, folder
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "contest.objects", str(folder), *targets],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(BENCHMARKS)])},
        )
        assert self._process.stdin is not None
        self._process.stdin.write("\n".join(names).encode())
        self._process.stdin.close()

    def wait(self) -> None:
        """Until everything is compiled; raises `SystemExit` where that failed as a whole."""
        if code := self._process.wait():
            raise SystemExit(f"object_bytes.py: error: compiling with {self.root} ended with {code}")

    def code(self, form: Form, target: str) -> bytes | None:
        """The object file of a form for a target; None where there is none."""
        path = self.folder / target / f"{file_name(form.name)}.o"
        return path.read_bytes() if path.exists() else None

    def worker(self, form: Form, core: int, log: Path) -> Worker:
        """A process that has loaded a form, compiled for this machine."""
        model, inputs = (str(self.folder / f"{file_name(form.name)}{suffix}") for suffix in (".onnx", ".npz"))
        outputs = [f"y{index}" for index in range(form.outputs)]
        job = Job(OURS, model, inputs, outputs, folder=str(self.folder), threads=1, cores=[core])
        return Worker(job, Path(sys.executable), log, timeout=300, root=self.root)


def timed(form: Form, before: Compiling, after: Compiling, rounds: int, core: int) -> Timed:
    """Time a form in turns; raises `WorkerFailure`."""
    workers: list[Worker] = []
    try:
        for number, version in enumerate((before, after, before)):
            workers.append(version.worker(form, core, version.folder / f"{number}.log"))
        calls = calls_within(0.05, min(workers[0].seconds(3)), most=10_000)
        seconds: list[list[float]] = [[], [], []]
        for turn in range(rounds):
            for number in (0, 1, 2) if turn % 2 else (2, 1, 0):
                seconds[number].append(min(workers[number].seconds(calls)))
    finally:
        for worker in workers:
            worker.stop()
    old, new, again = seconds
    return Timed(spread(ratios(old, new)), spread(ratios(old, again)))


def checked_out(revision: str, folder: Path) -> Path:
    """A folder with the files of a revision; raises `SystemExit` where there is none of that name."""
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", revision], capture_output=True, check=False)
    if packed.returncode:
        raise SystemExit(f"object_bytes.py: error: {packed.stderr.decode().strip().splitlines()[0]}")
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
    return folder


def arguments_from(command: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", help="the older version, as git names it")
    parser.add_argument("--targets", nargs="+", choices=PRESETS, default=list(TARGETS), metavar="TARGET")
    parser.add_argument("--only", default="", help="the forms to compare, those whose name has this")
    parser.add_argument("--rounds", type=count, default=15, help="rounds of timing (15)")
    parser.add_argument("--bytes-only", action="store_true", help="time nothing")
    add_core(parser)
    return parser.parse_args(command)


def compared(before: Compiling, after: Compiling, chosen: Sequence[Form], targets: Sequence[str]) -> list[Pair]:
    """All forms for all targets, by both versions."""
    before.wait()
    after.wait()
    return [
        Pair(form, target, before.code(form, target), after.code(form, target)) for form in chosen for target in targets
    ]


def report(pairs: Sequence[Pair]) -> list[str]:
    """How many pairs are equal, and a line for each that is not."""
    lines = [f"{pair.form.name} for {pair.target}: {pair.verdict()}" for pair in pairs if pair.before != pair.after]
    absent = sum(pair.before is None and pair.after is None for pair in pairs)
    first = f"{len(pairs)} object files: {len(pairs) - len(lines) - absent} equal, {len(lines)} differ"
    return [f"{first}, {absent} for operators that a target does not support" if absent else first, *lines]


def main() -> int:
    """Compare, print what differs, and time it; the exit code."""
    options = arguments_from()
    chosen = [form for form in forms() if options.only in form.name]
    here = next((name for name in options.targets if not lacks(PRESETS[name])), None)
    with tempfile.TemporaryDirectory() as name:
        folder, names = Path(name), [form.name for form in chosen]
        older = checked_out(options.revision, folder / "source")
        before = Compiling(older, folder / "before", names, options.targets)
        after = Compiling(ROOT, folder / "after", names, options.targets)
        pairs = compared(before, after, chosen, options.targets)
        print("\n".join(report(pairs)), flush=True)
        failed = any(pair.after is None and pair.before is not None for pair in pairs)
        different = [pair.form for pair in pairs if pair.target == here and pair.differs and not pair.form.bound]
        if different and not options.bytes_only:
            print(f"\nOn {machine()}, core {options.core}:", flush=True)
            failed |= any([was_slower(form, before, after, options) for form in different])
    return int(failed)


def was_slower(form: Form, before: Compiling, after: Compiling, options: argparse.Namespace) -> bool:
    """Time a form and print what came out; whether it is slower now."""
    try:
        found = timed(form, before, after, options.rounds, options.core)
    except WorkerFailure as failure:
        print(f"{form.name}: {failure}", flush=True)
        return True
    print(f"{form.name}: {found}", flush=True)
    return found.verdict() == "SLOWER"


if __name__ == "__main__":
    sys.exit(main())
