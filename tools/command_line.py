"""Parts shared by all command-line tools: options, exit codes, and one line for each error."""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from io import UnsupportedOperation
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

from glow_mlir.errors import CompilerBugError, ExtensionError, GlowError, OptionError, printable
from glow_mlir.support.activity import warning_to
from glow_mlir.support.blame import foreign_location
from glow_mlir.support.file_kinds import ONNX, kind_of_file
from glow_mlir.tools.arguments.flag_hints import with_flags
from glow_mlir.tools.arguments.repeated_options import give_once
from glow_mlir.tools.arguments.shell_completion import SHELLS, CompletionAction
from glow_mlir.tools.mlir_text.source_lines import STDIN, excerpt
from glow_mlir.tools.reports.plain_text import take_all_characters

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

EXIT_OK = 0
EXIT_ERROR = 1
"""Exit code: wrong input or options."""
EXIT_BUG = 2
"""Exit code: a bug in the compiler."""
EXIT_INTERRUPTED = 130

STDOUT = "<stdout>"
"""The name of standard output in errors."""

_DISK_FULL = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
"""
Errors that mean that stdout cannot be written.

Errors about files carry the file name, or are already `OptionError`.
"""

TERMINAL_LIMIT = 16
"""Dense attributes with more elements are elided on a terminal."""

ArgumentGroup = argparse._ArgumentGroup  # pyright: ignore[reportPrivateUsage]
"""The return type of `add_argument_group`; argparse has no public name for it."""

CLEAR_LINE = "\r\033[K"
"""What a terminal takes for an empty line in the place of the last."""

_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
"""The message of argparse for a value that is not among the choices of an option."""

_TRACEBACK = "--debug prints the traceback"

_COLOURS = {"error": "\033[1;31m", "warning": "\033[1;35m", "note": "\033[1;36m"}
_PLAIN = "\033[0m"


class ToolParser(argparse.ArgumentParser):
    """
    An argument parser whose errors are `OptionError`: one line, exit code 1, no usage screen.

    Giving an option twice is an error, unless its action allows it.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        give_once(self)

    def error(self, message: str) -> NoReturn:
        raise option_error(self.prog, message, options_of(self))

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help text; raises `OSError` where writing fails, which argparse would ignore."""
        (file or sys.stdout).write(self.format_help())


def options_of(parser: argparse.ArgumentParser) -> list[str]:
    """The options that a parser knows, as users spell them."""
    return list(parser._option_string_actions)


def option_error(program: str, message: str, known: Sequence[str]) -> OptionError:
    """
    The error for arguments that argparse refuses; for an unknown option it suggests the nearest of the `known` ones.
    """
    unknown = message.partition("unrecognized arguments: ")[2].split("=")[0].split(" ")[0]
    if choice := _CHOICE.search(message):
        unknown, known = choice[1], re.findall(r"'([^']*)'", choice[2]) or choice[2].split(", ")
    near = get_close_matches(unknown, known, n=1) if unknown else []
    return OptionError(message, hint=" ".join([*(f"{name}?" for name in near), f"{program} --help lists the options"]))


def new_parser(program: str, description: str, examples: str) -> ToolParser:
    """Return an argument parser with the options of every tool; `examples` ends the help text."""
    parser = ToolParser(
        prog=program,
        description=description,
        epilog=examples_epilog(examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_common_arguments(parser)
    return parser


def examples_epilog(examples: str) -> str:
    """The end of a help text."""
    indented = "\n".join(f"  {line}" for line in examples.strip().splitlines())
    return f"examples:\n{indented}\n\nexit codes: 0 success, 1 wrong input or options, 2 a bug in the compiler"


def add_common_arguments(parser: argparse.ArgumentParser | ArgumentGroup) -> None:
    """Add `--version`, `--debug` and `--print-completion`."""
    parser.add_argument("-v", "--version", action=VersionAction, help="print the versions of what runs here, and stop")
    parser.add_argument("--debug", action="store_true", help="print Python's traceback behind an error")
    parser.add_argument(
        "--print-completion",
        action=CompletionAction,
        choices=SHELLS,
        help="print a script by which a shell completes this tool's arguments, and stop",
    )


class VersionAction(argparse.Action):
    """Print name and versions, and exit."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        print(f"{parser.prog} {installed_version('glow-mlir')} ({', '.join(dependency_versions())})")
        parser.exit()


def dependency_versions() -> list[str]:
    """The packages that affect the result of a compilation, with their versions."""
    return [f"{name} {installed_version(name)}" for name in ("xdsl", "llvmlite", "onnx", "numpy")]


def installed_version(package: str) -> str:
    """The version of an installed package; fixed text for a checkout that is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


def run_tool(program: str, action: Callable[[list[str]], int], argv: Sequence[str] | None) -> int:
    """Run a tool's action on its arguments (default: the program's), and turn every failure into an exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    _replace_closed_streams()
    take_all_characters()
    try:
        try:
            with warning_to(lambda warning: _print_warning(program, warning)):
                return action(arguments)
        finally:
            # Flush stdout here, where errors can be reported; also after `--help`, which exits.
            sys.stdout.flush()
            _settle_stderr()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe, for example `| head`.
        abandon(sys.stdout)
        return EXIT_ERROR
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None and error.errno in _DISK_FULL:
            abandon(sys.stdout)
            error = OptionError(f"cannot be written: {error.strerror}", file=STDOUT)
        if isinstance(error, UnsupportedOperation) and (closed := _closed_stream()):
            error = OptionError("is closed", file=closed, hint="name a file instead")
        return report(program, error, debug=debug)


def _replace_closed_streams() -> None:
    """
    Replace closed standard streams, which are `None` in Python.

    Reading stdin or writing stdout then fails with `UnsupportedOperation`, and no opened file gets their file
    descriptors.
    """
    sys.stdin = sys.stdin or open(os.devnull, "w", encoding="utf-8")
    sys.stdout = sys.stdout or open(os.devnull, encoding="utf-8")
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")


def _closed_stream() -> str:
    """The name of the standard stream that was closed; empty if none was."""
    if not sys.stdout.writable():
        return STDOUT
    return "" if sys.stdin.readable() else STDIN


def abandon(stream: IO[str]) -> None:
    """Drop all further output to a standard stream: Python would report the error again when it flushes at exit."""
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), stream.fileno())


def _settle_stderr() -> None:
    """
    Drop pending stderr output that cannot be written, for example to a full disk: it does not change the exit code.
    """
    try:
        sys.stderr.flush()
    except OSError:
        abandon(sys.stderr)


def report(program: str, error: Exception, *, debug: bool = False) -> int:
    """Print an error on stderr, after its traceback if `debug`; return its exit code."""
    if debug:
        traceback.print_exception(error)
    if isinstance(error, MemoryError):
        hint = "check the sizes of inputs, and constants that say how large a value is"
        error = GlowError(f"the model does not fit into memory: {' '.join(str(error).split())}", hint=hint)
    if not isinstance(error, GlowError):
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        if location := foreign_location(error):
            error = ExtensionError(what, file=location)
        else:
            error = CompilerBugError(f"internal error, a bug in the compiler: {what}", hint=_TRACEBACK)
    if isinstance(error, ExtensionError):
        error.hint = error.hint or _TRACEBACK
    for severity, item in diagnostics(error):
        print(diagnostic_text(program, item, sys.stderr, severity), file=sys.stderr)
    return EXIT_BUG if isinstance(error, CompilerBugError) else EXIT_ERROR


def _print_warning(program: str, warning: GlowError) -> None:
    """Print a warning on stderr, and clear the progress line on a terminal."""
    line = diagnostic_text(program, warning, sys.stderr, "warning")
    with suppress(OSError):  # For example, the disk is full: continue.
        print(f"{CLEAR_LINE if is_terminal(sys.stderr) else ''}{line}", file=sys.stderr)


def diagnostics(error: GlowError) -> Iterator[tuple[str, GlowError]]:
    """An error with its notes, and the errors found together with it, each with its severity."""
    for item in (error, *error.others):
        yield "error", item
        for note in item.notes:
            yield "note", note


def diagnostic_text(program: str, error: GlowError, stream: IO[str], severity: str = "error") -> str:
    """Format an error as a line; on a terminal add the source line, and a caret below the column."""
    line = error_line(program, error, stream, severity)
    return "\n".join([line, *excerpt(error.file, has_colour(stream))]) if is_terminal(stream) else line


IR_TOOLS = frozenset({"glow-opt", "glow-lsp", "glow-generate-test-checks"})
"""Tools that have pass options, and no flags for session keywords."""


def error_line(program: str, error: GlowError, stream: IO[str], severity: str = "error") -> str:
    """
    Format an error as `file:line:column: error: reason (hint: …)`; the program stands in for a missing file.

    The `severity` is `error`, `warning` or `note`.
    """
    label = f"{_COLOURS[severity]}{severity}:{_PLAIN}" if has_colour(stream) else f"{severity}:"
    hint = error.hint if program in IR_TOOLS else with_flags(error.hint)
    return f"{printable(error.file or program)}: {label} {printable(message(error, hint))}"


def message(error: GlowError, hint: str | None = None) -> str:
    """The text of an error without its location: the node, the reason, and its own hint or the given one."""
    node = f"node '{error.node}': " if error.node else ""
    text = error.hint if hint is None else hint
    return f"{node}{error.reason}" + (f" (hint: {text})" if text else "")


def check_files(inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """
    Raise `OptionError` where an output file is also an input or another output; `-` is not a file.

    The weight files of a model count as inputs.
    """
    taken = {_identity(path): "it is read as well" for path in inputs if path != "-"}
    if any(os.path.isfile(path) for path in outputs):  # Avoid opening models otherwise.
        taken |= {_identity(path): "it is read as well" for path in _weights_of(inputs)}
    for path in outputs:
        if path == "-" or (os.path.exists(path) and not os.path.isfile(path)):  # For example /dev/null.
            continue
        if (reason := taken.get(_identity(path))) is not None:
            raise OptionError(f"cannot be written: {reason}", file=path, hint="name another file")
        taken[_identity(path)] = "it is written twice"


def _weights_of(inputs: Sequence[str]) -> list[str]:
    """The weight files of ONNX models; empty for damaged models, which are reported elsewhere."""
    from glow_mlir.api.model_identity import files_of

    found: list[str] = []
    for path in inputs:
        if path != "-" and kind_of_file(Path(path)) is ONNX:
            with suppress(GlowError):
                found += [str(file) for file in files_of(Path(path))[1:]]
    return found


def check_written(
    args: argparse.Namespace, inputs: Sequence[str], to_stdout: Sequence[str], files: Sequence[str]
) -> None:
    """
    Check the output files of options, and call `check_files`.

    Raise `OptionError` if more than one of the `to_stdout` options is `-` (stdout), or if any of the `files` options
    is.
    """
    if [getattr(args, name) for name in to_stdout].count("-") > 1:
        raise OptionError(f"only one of {_listed(to_stdout)} can go to stdout")
    if takes_stdout(args, files):
        raise OptionError(f"{_listed(files)} need a file")
    written = [getattr(args, name) for name in (*to_stdout, *files)]
    check_files(inputs, [path for path in written if isinstance(path, str)])


def takes_stdout(args: argparse.Namespace, options: Sequence[str]) -> bool:
    """Whether one of the options writes to stdout."""
    return "-" in [getattr(args, name) for name in options]


def spelled(name: str) -> str:
    """An option as users spell it."""
    return name.replace("_", "-")


def _listed(options: Sequence[str]) -> str:
    return ", ".join(f"--{spelled(name)}" for name in options)


def _identity(path: str) -> object:
    """A key that is equal for two names of the same file."""
    try:
        found = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return found.st_dev, found.st_ino


def has_colour(stream: IO[str]) -> bool:
    """Whether to colour output to `stream`: only on a terminal, and only if NO_COLOR is not set."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def is_terminal(stream: IO[str]) -> bool:
    """Whether `stream` is a terminal."""
    return stream.isatty()
