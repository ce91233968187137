"""Run a command-line tool inside this process, as if it were a process of its own."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

Tool = Callable[[list[str]], int | None]
"""A tool's entry: takes the arguments without the program's name, returns the exit code."""


@dataclass(frozen=True)
class Finished:
    """What a tool left: its exit code and its output. `stderr` is empty where it was merged into `stdout`."""

    code: int
    stdout: bytes
    stderr: bytes


def find_tool(program: str) -> Tool | None:
    """
    Return the entry of a program that can run in process, or None.

    Every `glow-x` is `glow_mlir.tools.glow_x:main`, so that a new tool needs no line here.
    """
    if program == "filecheck":
        return _filecheck
    if program == "xdsl-opt":
        return _xdsl_opt
    module = f"glow_mlir.tools.{program.replace('-', '_')}"
    if program.startswith("glow-") and find_spec(module):
        return importlib.import_module(module).main
    return None


def _filecheck(argv: list[str]) -> int | None:
    """Run filecheck, whose entry wants the program's name as well."""
    from filecheck.main import main

    return main(["filecheck", *argv])


def _xdsl_opt(argv: list[str]) -> int | None:
    """Run xDSL's own driver, which finds our dialects and passes through the entry point."""
    from xdsl.xdsl_opt_main import xDSLOptMain

    return xDSLOptMain(args=argv).run()


def run_tool(
    tool: Tool,
    argv: Sequence[str],
    *,
    program: str = "tool",
    stdin: bytes = b"",
    merge_stderr: bool = False,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Finished:
    """
    Call a tool with its standard streams replaced, and put everything back that it may have changed.

    An exception that escapes becomes a traceback on stderr and exit code 1, as Python itself would do.
    """
    out = io.BytesIO()
    err = out if merge_stderr else io.BytesIO()
    with (
        _restored_process_state(),
        _restored_xdsl_state(),
        _empty_weight_store(),
        contextlib.chdir(directory or Path.cwd()),
        _Streams(stdin, out, err),
    ):
        sys.argv = [program, *argv]
        os.environ.update(environment or {})
        code = _exit_code(tool, argv)
    return Finished(code, out.getvalue(), b"" if merge_stderr else err.getvalue())


def _exit_code(tool: Tool, argv: Sequence[str]) -> int:
    """Call the tool and turn the ways in which a program can end into an exit code."""
    try:
        return tool(list(argv)) or 0
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        print(stop.code, file=sys.stderr)
    except Exception:
        traceback.print_exc()
    return 1


class _Streams:
    """Standard streams on byte buffers, text and `.buffer` alike, flushed on the way out."""

    def __init__(self, stdin: bytes, out: io.BytesIO, err: io.BytesIO) -> None:
        self.ours = (_text(io.BytesIO(stdin)), _text(out), _text(err))
        self.theirs = (sys.stdin, sys.stdout, sys.stderr)

    def __enter__(self) -> None:
        sys.stdin, sys.stdout, sys.stderr = self.ours

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.stdin, sys.stdout, sys.stderr = self.theirs
        for stream in self.ours:
            # Detached, so that collecting the wrapper does not close the buffer that holds the output.
            if not stream.closed:
                stream.detach()


def _text(buffer: io.BytesIO) -> io.TextIOWrapper:
    """Wrap bytes as an unbuffered UTF-8 stream, so that merged stdout and stderr keep their order."""
    return io.TextIOWrapper(buffer, encoding="utf-8", write_through=True)


@contextlib.contextmanager
def _restored_process_state() -> Generator[None]:
    """Restore the parts of the interpreter that a program thinks it owns."""
    argv, environment, path = sys.argv, dict(os.environ), list(sys.path)
    recursion = sys.getrecursionlimit()
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path
        sys.setrecursionlimit(recursion)
        if dict(os.environ) != environment:
            os.environ.clear()
            os.environ.update(environment)


@contextlib.contextmanager
def _empty_weight_store() -> Generator[None]:
    """
    Start with an empty weight store and forget what the tool put into it.

    A new process has to read the weight file; weights left over from the last tool would hide a failure to.
    """
    from glow_mlir.constants import weights

    store: dict[str, Any] = vars(weights)["_STORE"]
    saved = {key: value for key in [*store] if (value := store.get(key)) is not None}  # Some are collected meanwhile.
    store.clear()
    try:
        yield
    finally:
        store.clear()
        store.update(saved)


@contextlib.contextmanager
def _restored_xdsl_state() -> Generator[None]:
    """
    Restore xDSL's process-wide state.

    `--disable-verify` replaces `Attribute.__post_init__` for good, `--syntax-highlight` colours every later
    diagnostic, and dense resources that were parsed stay in the dialect: the next parse renames its own.
    """
    from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
    from xdsl.dialects.builtin import Builtin
    from xdsl.ir import Attribute
    from xdsl.utils.diagnostic import Diagnostic

    resources = Builtin.get_interface(OpAsmDialectInterface)
    saved_resources = dict(vars(resources))
    post_init, colored = Attribute.__post_init__, Diagnostic.colored
    vars(resources).update(vars(OpAsmDialectInterface()))
    try:
        yield
    finally:
        Attribute.__post_init__, Diagnostic.colored = post_init, colored
        vars(resources).update(saved_resources)
