"""
Which test finds a fault: `python tests/detection.py --count 10 --seed 1 --into /tmp/found.jsonl`.

Draws faults that a script can make of operators, passes, kernels, sizes, threads and quantization, and runs the tests
of a short run on copies of the checkout. One run tells which tests execute the function of each fault. Some of these
run with one fault at a time. All tests run once more with the faults that are left, and what fails runs with each.
A line of JSON for each says where the fault is, and the test that finds it, or `null`. A fault is told by file,
function and number within it, so that `--faults FILE` makes the same ones in another checkout.
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

GROUPS: Mapping[str, Sequence[str]] = {
    "operators": ("dialects/glow_high", "glow_mlir/interpreter"),
    "passes": ("glow_mlir/transforms", "glow_mlir/rewriting", "glow_mlir/conversion"),
    "kernels": ("glow_mlir/codegen/kernels",),
    "sizes": ("dialects/shapes.py", "dialects/windows.py", "glow_mlir/support/symbols.py", "dialects/sizes.py"),
    "threads": ("glow_mlir/runtime", "glow_mlir/codegen/builder"),
    "quantization": ("glow_mlir/quantization", "glow_mlir/transforms/quantization", "glow_mlir/constants"),
}
"""Group → where its faults are made."""

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


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def faults(root: Path, group: str) -> list[Fault]:
    """All faults of a group that can be made in a checkout."""
    tops = [root / room for room in GROUPS[group]]
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
        (self.root / "targets").write_text("\n".join(targets), encoding="utf-8")
        command = [self._python, "-m", "pytest", *flags, *options, "@targets"]
        try:
            done = subprocess.run(
                command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return ["the limit of time"]
        failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
        return failed or ([] if done.returncode in (0, 5) else [(done.stdout + done.stderr)[-300:]])


HOOK = """
import os
from pathlib import Path

_SEEN = set()

def hit(number):
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    if (number, test) not in _SEEN:
        _SEEN.add((number, test))
        with open(Path(__file__).parents[2] / "hits" / f"{number}.{os.getpid()}", "a", encoding="utf-8") as file:
            file.write(test + "\\n")
"""
"""The module by which functions tell which test executes them."""

AT_FIRST = 300
"""The number of tests that are tried for one fault, out of those that execute its function."""


def add_hooks(root: Path, drawn: Sequence[Fault]) -> None:
    """Let the function of each fault tell that it is executed."""
    (root / "glow_mlir" / "support" / "detection_hook.py").write_text(HOOK, encoding="utf-8")
    (root / "hits").mkdir()
    hooks: dict[str, list[tuple[int, str]]] = {}
    for number, fault in enumerate(drawn):
        own = (statement for name, statement in _statements(_parsed(root / fault.file), "") if name == fault.function)
        first = next(statement for statement in own if not _is_docstring(statement))
        call = f"{' ' * first.col_offset}__import__('glow_mlir.support.detection_hook')"
        call += f".support.detection_hook.hit({number})\n"
        hooks.setdefault(fault.file, []).append((first.lineno, call))
    for file, calls in hooks.items():
        lines = (root / file).read_text(encoding="utf-8").splitlines(keepends=True)
        for line, call in sorted(calls, reverse=True):
            lines.insert(line - 1, call)
        (root / file).write_text("".join(lines), encoding="utf-8")


def executing(options: argparse.Namespace, drawn: Sequence[Fault]) -> list[list[str]]:
    """The tests of a short run that execute the function of each fault."""
    with Checkout(options.root, options.python, options.workers) as checkout:
        add_hooks(checkout.root, drawn)
        failed = checkout.failures(["tests"])
        print(f"with hooks, {len(failed)} tests fail: {failed[:5]}", flush=True)
        found = [
            {line for path in checkout.root.glob(f"hits/{number}.*") for line in path.read_text("utf-8").splitlines()}
            for number in range(len(drawn))
        ]
    return [sorted(tests - {""} - {*failed}) for tests in found]


def near(options: argparse.Namespace, fault: Fault, tests: Sequence[str]) -> str | None:
    """The first test that fails, of some that execute the function of a fault; `None` where all pass."""
    with Checkout(options.root, options.python, options.workers) as checkout:
        if not make(checkout.root, fault):
            return "no such function"
        some = tests if len(tests) <= AT_FIRST else random.Random(0).sample(tests, AT_FIRST)
        return next(iter(checkout.failures(some, "-x")), None) if some else None


def together(options: argparse.Namespace, left: Sequence[Fault]) -> list[str | None]:
    """
    The tests that find faults which some that execute their functions do not.

    All tests run once, with all of these faults made. Those that fail run again with each fault alone.
    """
    with Checkout(options.root, options.python, options.workers) as checkout:
        for fault in sorted(left, key=lambda fault: fault.number, reverse=True):
            make(checkout.root, fault)
        failed = checkout.failures(["tests"])
    print(f"{len(failed)} tests fail with {len(left)} faults at once: {failed[:5]}", flush=True)
    if not failed:
        return [None] * len(left)
    return [near(options, fault, failed) for fault in left]


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
    for fault, tests in zip(drawn, executing(options, drawn), strict=True):
        if (test := near(options, fault, tests)) is None:
            left.append(fault)
            print(f"{fault.file}:{fault.line} {fault.function}: not found by some of {len(tests)} tests", flush=True)
        else:
            report(options.into, fault, test)
    for fault, test in zip(left, together(options, left) if left else (), strict=True):
        report(options.into, fault, test)
    return 0


if __name__ == "__main__":
    sys.exit(main())
