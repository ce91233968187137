"""The pages of the reference, made of the code when the site is built: operations, passes, tools, the Python API."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

from xdsl.ir import Operation
from xdsl.passes import ModulePass

import glow_mlir
from glow_mlir.ir.universe import PASSES, dialect, pass_class
from glow_mlir.tools.lsp.operation_documents import operation_document, summary
from glow_mlir.tools.reports.pass_list import first_paragraph, options_of, patterns_of

ROOT = Path(__file__).parent.parent

INTRODUCTIONS = {
    "glow_high": "Operators on tensors. [ir.md](../ir.md) says what holds for all of them.",
    "glow_low": "Instructions on addresses. Each `glow_high` operator that a backend executes has one of its name: it "
    "takes its result as the first operand, and may have a prologue, an epilogue and scratch memory. "
    "[ir.md](../ir.md#glow_low-instructions-on-addresses) says what holds for all of them.",
}

FOLDERS = {
    "differentiation": "From gradients to graphs",
    "transforms": "On graphs and on instructions",
    "conversion": "From graphs to instructions",
    "codegen": "From instructions to the LLVM dialect",
}
"""Room → the heading of its passes."""


def dialect_page(name: str) -> str:
    """All operations of a dialect, by the modules that define them."""
    families: dict[str, list[type[Operation]]] = defaultdict(list)
    for operation in dialect(name).operations:
        families[_family(operation)].append(operation)
    lines = [f"# {name}", INTRODUCTIONS[name]]
    for family, operations in sorted(families.items()):
        lines.append(f"## {family}")
        lines.append(
            _table(("operation", "what it is"), ((f"[`{_short(op)}`](#{op.name})", summary(op)) for op in operations))
        )
        for operation in operations:
            lines.append(f'### `{operation.name}` {{ #{operation.name} data-toc-label="{_short(operation)}" }}')
            lines.append(operation_document(operation))
    return "\n\n".join(lines) + "\n"


def _family(operation: type[Operation]) -> str:
    """The name of the module that defines an operation, in words."""
    return operation.__module__.rpartition(".")[2].replace("_", " ").capitalize()


def _short(operation: type[Operation]) -> str:
    return operation.name.partition(".")[2]


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = (f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines])


def passes_page() -> str:
    """All passes with their options and patterns."""
    rooms: dict[str, list[str]] = defaultdict(list)
    for name, place in sorted(PASSES.items()):
        rooms[place.split(".")[1]].append(name)
    text = "[pipelines.md](../pipelines.md) says which run by default, and in which order."
    lines = ["# Passes", f"`glow-opt model.mlir -p 'a,b{{option=1}}'` runs passes. {text}"]
    for room, heading in FOLDERS.items():
        lines.append(f"## {heading}")
        lines += [part for name in rooms[room] for part in _pass_parts(pass_class(name))]
    return "\n\n".join(lines) + "\n"


def _pass_parts(kind: type[ModulePass]) -> Iterator[str]:
    yield f"### `{kind.name}` {{ #{kind.name} }}"
    yield inspect.getdoc(kind) or ""
    if options := options_of(kind):
        cells = ((name, str(info.expected_type).strip("'"), info.default_value) for name, info in options)
        yield _table(("option", "type", "default"), (tuple(f"`{cell}`" for cell in row) for row in cells))
    if patterns := patterns_of(kind):
        rows = ((f"`{pattern.name}`", first_paragraph(type(pattern))) for pattern in patterns)
        yield _table(("pattern", "what it does"), rows)


def tools_page() -> str:
    """What each tool says of itself."""
    lines = ["# Tools"]
    for path in sorted((ROOT / "tools").glob("glow_*.py")):
        name = path.stem.replace("_", "-")
        lines += [f"## {name}", f"```text\n{help_of(path.stem)}```"]
    return "\n\n".join(lines) + "\n"


def help_of(module: str) -> str:
    """What a tool prints for `--help`, 100 columns wide."""
    printed = io.StringIO()
    columns, arguments = os.environ.get("COLUMNS"), sys.argv
    os.environ["COLUMNS"] = "100"
    sys.argv = [module.replace("_", "-")]
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            import_module(f"glow_mlir.tools.{module}").main(["--help"])
    finally:
        sys.argv = arguments
        os.environ.pop("COLUMNS") if columns is None else os.environ.update(COLUMNS=columns)
    return printed.getvalue()


def python_page() -> str:
    """The public names of the package, with their documentation."""
    names: dict[str, list[str]] = defaultdict(list)
    for name in glow_mlir.__all__:
        member = getattr(glow_mlir, name)
        place = member.__name__ if inspect.ismodule(member) else f"{member.__module__}.{member.__qualname__}"
        names[place].append(f"`{name}`")
    table = _table(("name", "is"), ((", ".join(known), f"[{place}][]") for place, known in names.items()))
    entries = (f"::: {place}" for place in names)
    return "\n\n".join(["# Python", "What `import glow_mlir` gives.", table, *entries]) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "reference/glow_high.md": lambda: dialect_page("glow_high"),
    "reference/glow_low.md": lambda: dialect_page("glow_low"),
    "reference/passes.md": passes_page,
    "reference/tools.md": tools_page,
    "reference/python.md": python_page,
}
"""Page → what makes its text."""
