"""
Which test finds a fault: `python tests/detection.py --count 10 --seed 1 --into /tmp/found.jsonl`.

Draws faults that a script can make of operators, passes, kernels, sizes, threads and quantization, and runs the tests
of a short run on a copy of the checkout. The nearest tests run with one fault at a time. All tests run once with the
faults that are left, and what fails then runs with each of them. A line of JSON for each says where the fault is, and
the test that finds it, or `null`. A fault is told by file, function and number within it, so that `--faults FILE` makes
the same ones in another checkout.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parents[1]

GROUPS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "operators": (
        ("dialects/glow_high", "glow_mlir/interpreter"),
        ("tests/test_operators.py", "tests/dialects", "tests/interpreter", "tests/frontends"),
    ),
    "passes": (
        ("glow_mlir/transforms", "glow_mlir/rewriting", "glow_mlir/conversion"),
        ("tests/transforms", "tests/filecheck", "tests/quantization", "tests/test_operators.py"),
    ),
    "kernels": (
        ("glow_mlir/codegen/kernels",),
        ("tests/test_operators.py", "tests/test_operator_variants.py", "tests/codegen", "tests/onnx_backend"),
    ),
    "sizes": (
        ("dialects/shapes.py", "dialects/windows.py", "glow_mlir/support/symbols.py", "dialects/sizes.py"),
        ("tests/dialects", "tests/test_run_time_sizes.py", "tests/test_any_size.py", "tests/test_operators.py"),
    ),
    "threads": (
        ("glow_mlir/runtime", "glow_mlir/codegen/builder"),
        (
            "tests/runtime",
            "tests/codegen/test_partitions.py",
            "tests/test_operators.py",
            "tests/test_specializations.py",
        ),
    ),
    "quantization": (
        ("glow_mlir/quantization", "glow_mlir/transforms/quantization", "glow_mlir/constants"),
        ("tests/quantization", "tests/models/test_quantized_models.py", "tests/filecheck", "tests/test_weights.py"),
    ),
}
"""Group → where its faults are made, and the tests that are nearest."""

OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
    ast.Mod: "//",
    ast.And: "or",
    ast.Or: "and",
}
"""Operator → what takes its place."""

SECONDS = 3600
"""How long the tests of one fault may take; one that makes them hang is found by that."""


@dataclass(frozen=True)
class Fault:
    """Number `number` of the changes that can be made in a function of a file."""

    group: str
    file: str
    function: str
    number: int
    line: int
    change: str


@dataclass(frozen=True)
class Edit:
    """Characters of a file from `begin` to `end`, which become `text`."""

    begin: int
    end: int
    text: str


class Source:
    """The text of a file, and the changes that can be made in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = text.encode()
        self._starts = [0]
        for line in self.data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def edits(self) -> Iterator[tuple[str, int, Edit]]:
        """The changes that can be made in functions: the function, the line and the edit."""
        for name, node in _statements(ast.parse(self.text), ""):
            for part in ast.walk(node):
                if (edit := self._edit(part)) is not None:
                    yield name, getattr(part, "lineno", 0), edit

    def _edit(self, node: ast.AST) -> Edit | None:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._between(node.left, node.comparators[0], node.ops[0])
        if isinstance(node, ast.BinOp) and not isinstance(node.left, ast.Constant):
            return self._between(node.left, node.right, node.op)
        if isinstance(node, ast.BoolOp) and len(node.values) == 2:
            return self._between(node.values[0], node.values[1], node.op)
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return Edit(*self._span(node), str(node.value + 1))
        if isinstance(node, ast.If | ast.IfExp):
            begin, end = self._span(node.test)
            return Edit(begin, end, f"(not ({self.data[begin:end].decode()}))")
        return None

    def _between(self, left: ast.expr, right: ast.expr, operator: ast.AST) -> Edit | None:
        """The edit of the operator between two operands."""
        begin, end = self._span(left)[1], self._span(right)[0]
        found = re.search(rb"[^\s()#\\]+(?:\s+(?:in|not))?", self.data[begin:end])
        text = OPERATORS.get(type(operator))
        return None if text is None or found is None else Edit(begin + found.start(), begin + found.end(), text)

    def _span(self, node: ast.expr) -> tuple[int, int]:
        end = self._starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        return self._starts[node.lineno - 1] + node.col_offset, end


def _statements(node: ast.AST, name: str) -> Iterator[tuple[str, ast.stmt]]:
    """The statements of the functions and methods in a file, with their names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield from ((f"{name}.{child.name}".strip("."), statement) for statement in child.body)
        elif isinstance(child, ast.ClassDef):
            yield from _statements(child, f"{name}.{child.name}".strip("."))


def faults(root: Path, group: str) -> list[Fault]:
    """All faults of a group that can be made in a checkout."""
    tops = [root / room for room in GROUPS[group][0]]
    paths = [path for top in tops for path in ([top] if top.suffix else sorted(top.rglob("*.py"))) if path.exists()]
    found: list[Fault] = []
    for path in paths:
        numbers = Counter[str]()
        source = Source(path.read_text(encoding="utf-8"))
        for function, line, edit in source.edits():
            change = f"{source.data[edit.begin : edit.end].decode()} -> {edit.text}"
            name = path.relative_to(root).as_posix()
            found.append(Fault(group, name, function, numbers[function], line, change))
            numbers[function] += 1
    return found


def make(root: Path, fault: Fault) -> bool:
    """Make a fault in a checkout; whether its function is there."""
    path = root / fault.file
    if not path.exists():
        return False
    source = Source(path.read_text(encoding="utf-8"))
    own = [edit for function, _, edit in source.edits() if function == fault.function]
    if fault.number >= len(own):
        return False
    edit = own[fault.number]
    path.write_bytes(source.data[: edit.begin] + edit.text.encode() + source.data[edit.end :])
    return True


class Checkout:
    """A copy of a checkout in which faults are made, and the tests of a short run on it."""

    def __init__(self, root: Path, python: str, workers: int) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.root = Path(self._folder.name) / "checkout"
        ignored = shutil.ignore_patterns(".venv*", ".git", "build", "__pycache__")
        shutil.copytree(root, self.root, symlinks=True, ignore=ignored)
        self._python = python
        self._workers = workers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def failures(self, targets: Sequence[str], *options: str) -> list[str]:
        """The tests that fail."""
        environment = {**os.environ, "PYTHONPATH": str(self.root)}  # Children are of this checkout, too.
        flags = ["-q", "--short", "--tb=no", "-p", "no:cacheprovider", "-n", str(self._workers)]
        command = [self._python, "-m", "pytest", *flags, *options, *targets]
        try:
            done = subprocess.run(
                command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return ["the limit of time"]
        failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
        return failed or ([] if done.returncode in (0, 5) else [(done.stdout + done.stderr)[-300:]])

    def nearest(self, fault: Fault) -> list[str]:
        """The tests that are nearest to a fault."""
        stem = Path(fault.file).stem
        named = [
            path.relative_to(self.root).as_posix() for path in sorted(self.root.glob(f"tests/**/test_*{stem}*.py"))
        ]
        return [name for name in (*named, *GROUPS[fault.group][1]) if (self.root / name).exists()]


def near(options: argparse.Namespace, fault: Fault) -> str | None:
    """The first of the nearest tests that fails; `None` where all pass."""
    with Checkout(options.root, options.python, options.workers) as checkout:
        if not make(checkout.root, fault):
            return "no such function"
        return next(iter(checkout.failures(checkout.nearest(fault), "-x")), None)


def together(options: argparse.Namespace, left: Sequence[Fault]) -> list[str | None]:
    """
    The tests that find faults which the nearest do not.

    All tests run once, with all of these faults made. Those that fail run again with each fault alone.
    """
    with Checkout(options.root, options.python, options.workers) as checkout:
        for fault in sorted(left, key=lambda fault: fault.number, reverse=True):
            make(checkout.root, fault)
        failed = checkout.failures(["tests"])
    print(f"{len(failed)} tests fail with {len(left)} faults at once: {failed[:5]}", flush=True)
    if not failed:
        return [None] * len(left)
    found: list[str | None] = []
    for fault in left:
        with Checkout(options.root, options.python, options.workers) as checkout:
            make(checkout.root, fault)
            found.append(next(iter(checkout.failures(failed, "-x")), None))
    return found


def report(into: Path, fault: Fault, test: str | None) -> None:
    """Append what finds a fault to a file of JSON lines, and print it."""
    with into.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**asdict(fault), "found by": test}) + "\n")
    print(f"{fault.file}:{fault.line} {fault.function} [{fault.change}]: {test}", flush=True)


def main() -> int:
    """Draw faults, or read them, and write what finds them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60, help="how many faults, the same number of each group")
    parser.add_argument("--seed", type=int, default=0, help="which ones are drawn")
    parser.add_argument("--faults", type=Path, help="take the faults of this file of JSON lines instead")
    parser.add_argument("--into", type=Path, required=True, help="append what is found to this file of JSON lines")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout that they are made in a copy of")
    parser.add_argument("--python", default=sys.executable, help="the Python that has what the tests need")
    parser.add_argument("--workers", type=int, default=2, help="of pytest")
    options = parser.parse_args()
    if options.faults:
        lines = options.faults.read_text(encoding="utf-8").splitlines()
        drawn = [Fault(**{name: json.loads(line)[name] for name in Fault.__dataclass_fields__}) for line in lines]
    else:
        each = options.count // len(GROUPS)
        drawn = [
            fault
            for group in GROUPS
            for fault in random.Random(f"{options.seed} {group}").sample(faults(options.root, group), each)
        ]
    left: list[Fault] = []
    for fault in drawn:
        if (test := near(options, fault)) is None:
            left.append(fault)
        else:
            report(options.into, fault, test)
    for fault, test in zip(left, together(options, left) if left else (), strict=True):
        report(options.into, fault, test)
    return 0


if __name__ == "__main__":
    sys.exit(main())
