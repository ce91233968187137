"""Find whose code failed: ours with its libraries, or that of another package we called."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, TracebackType

LIBRARIES = ("numpy", "xdsl", "llvmlite", "onnx", "google")
"""Packages called by our own code: their errors are the fault of their caller."""


def foreign_location(error: BaseException) -> str:
    """
    The `file:line:column` in another package's code where an error was raised; empty if only our code was called.

    It is the innermost location in the first foreign package that we called.
    """
    found = [(module, location) for file, module, location in _locations(error.__traceback__) if is_foreign(file)]
    package = found[0][0].partition(".")[0] if found else ""
    return next((location for module, location in reversed(found) if module.partition(".")[0] == package), "")


def library_of(kind: type) -> str:
    """The library that defines a class; empty for a class of ours or of another package."""
    library = kind.__module__.partition(".")[0]
    return library if library in LIBRARIES else ""


def failing_library(kind: type, error: BaseException) -> str:
    """The library that raised an error, if it also defines `kind`, whose code was called; otherwise empty."""
    modules = [module.partition(".")[0] for _, module, _ in _locations(error.__traceback__)]
    library = library_of(kind)
    return library if modules[-1:] == [library] else ""


def source_location_of_class(kind: type) -> str:
    """The `file:line:column` of a class definition in another package; empty for our classes."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if file is None or not is_foreign(file):
        return ""
    lines = [code.co_firstlineno for code in map(_code_of, vars(kind).values()) if code and code.co_filename == file]
    return f"{file}:{min(lines)}:1" if lines else file


def is_foreign(file: str) -> bool:
    """Whether a source file belongs neither to this package nor to its libraries."""
    return not file.startswith(("<frozen", "<string>", "<__array")) and not _is_known(file)


@cache
def _is_known(file: str) -> bool:
    path = Path(file)
    if any(path.is_relative_to(folder) for folder in _folders()):
        return True
    return any(path.is_relative_to(folder) for folder in _standard()) and "site-packages" not in path.parts


@cache
def _folders() -> tuple[Path, ...]:
    """The folders of this package and its libraries."""
    own = Path(__file__).parents[1]
    specs = [find_spec(name) for name in LIBRARIES]
    known = [Path(location) for spec in specs if spec for location in spec.submodule_search_locations or ()]
    return (own, (own / "tools").resolve(), (own / "dialects").resolve(), *known)


@cache
def _standard() -> tuple[Path, ...]:
    """The folders of Python's standard library."""
    return tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))


def _locations(trace: TracebackType | None) -> Iterator[tuple[str, str, str]]:
    """File, module and `file:line:column` of each frame, the outermost first."""
    while trace is not None:
        code = trace.tb_frame.f_code
        position = list(code.co_positions())[trace.tb_lasti // 2]
        location = f"{code.co_filename}:{trace.tb_lineno}:{(position[2] or 0) + 1}"
        yield code.co_filename, trace.tb_frame.f_globals.get("__name__", ""), location
        trace = trace.tb_next


def _code_of(value: object) -> CodeType | None:
    return getattr(value, "__code__", None)
