"""
Fuzzers on the command line: `python tests/fuzz.py mutants --stage stacked --count 5000`.

Prints the failures by kind with their seeds, and ends with 1 if there are any. `--only SEED` runs one seed in this
process, where a debugger sees it.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # Children are forked from a process without threads.

from fuzzing import Failure, Fuzzer, fuzz

FUZZERS: Mapping[str, str] = {
    "mutants": "mutants",
    "bundles": "bundle_cases",
    "models": "model_cases",
    "networks": "network_cases",
    "numbers": "extreme_numbers",
    "onnx": "onnx_mutants",
    "pickles": "pickle_cases",
    "requests": "request_mutants",
    "stablehlo": "stablehlo_mutants",
    "texts": "text_request_mutants",
    "decoders": "decoder_mutants",
    "templates": "template_mutants",
    "values": "python_value_mutants",
    "weights": "weight_file_mutants",
}
"""Name → the module of `tests/support` that has its `STAGES`: for each stage a `Fuzzer`, for one without the key ""."""

MAX_SEEDS_SHOWN = 10
"""How many seeds of a kind of failure are listed."""


def stages_of(name: str) -> Mapping[str, Fuzzer]:
    """The fuzzers of that name by stage."""
    return import_module(FUZZERS[name]).STAGES


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="fuzz.py", description="Run random cases in child processes.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which fuzzers: {', '.join(FUZZERS)}; default all")
    parser.add_argument("--count", type=int, default=1000, help="how many seeds, for each stage")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--only", type=int, metavar="SEED", help="run this seed alone, in this process")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="child processes at once")
    parser.add_argument("--stage", action="append", default=[], help="the stages to fuzz; default all")
    found = parser.parse_args(argv)
    if unknown := sorted(set(found.names) - set(FUZZERS)):
        parser.error(f"there is no fuzzer {', '.join(unknown)}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the fuzzers that the command line names; the exit code."""
    options = arguments(argv)
    failed = False
    for name in options.names or FUZZERS:
        stages = stages_of(name)
        if unknown := sorted(set(options.stage) - set(stages)):
            print(f"fuzz.py: error: {name} has no stage {', '.join(unknown)}", file=sys.stderr)
            return 2
        for stage in options.stage or stages:
            if options.only is not None:
                print(stages[stage].show(options.only), flush=True)
                stages[stage].run(options.only)
                continue
            seeds = range(options.seed, options.seed + options.count)
            label = f"{name} {stage}".strip()
            failures = fuzz(stages[stage], seeds, options.workers, Bar(label, len(seeds)).show)
            print(summary(label, command(name, stage), len(seeds), failures), flush=True)
            failed |= bool(failures)
    return int(failed)


def command(name: str, stage: str) -> str:
    """How to run one seed again, up to its number."""
    return shlex.join(["python", "tests/fuzz.py", name, *(["--stage", stage] if stage else []), "--only"])


def summary(label: str, again: str, count: int, failures: Sequence[Failure]) -> str:
    """What the seeds of a fuzzer gave: failures by kind, the most frequent first."""
    kinds: dict[tuple[str, str], list[Failure]] = {}
    for failure in failures:
        # What one fault says differs in numbers.
        kinds.setdefault((failure.kind, failure.reason.split(": ")[0]), []).append(failure)
    lines = [f"{label}: {count} seeds, {len(failures)} failed"]
    for (kind, _), group in sorted(kinds.items(), key=lambda item: -len(item[1])):
        seeds = " ".join(str(failure.seed) for failure in group[:MAX_SEEDS_SHOWN])
        lines += [f"  {len(group)} × {kind}: {group[0].reason}", f"    {again} {group[0].seed}    seeds {seeds}"]
    return "\n".join(lines)


class Bar:
    """A progress bar on stderr; nothing where that is no terminal."""

    WIDTH = 40

    def __init__(self, label: str, total: int) -> None:
        self.label, self.total = label, total

    def show(self, done: int, failed: int) -> None:
        """Draw the bar."""
        if not sys.stderr.isatty():
            return
        filled = self.WIDTH * done // max(self.total, 1)
        end = "\n" if done == self.total else ""
        bar = f"\r{self.label} [{'#' * filled:<{self.WIDTH}}] {done}/{self.total}, {failed} failed"
        print(bar, end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
