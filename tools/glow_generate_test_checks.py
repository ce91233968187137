"""`glow-generate-test-checks`: write the CHECK lines of a FileCheck test from the output of its RUN lines."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from glow_mlir.errors import OptionError
from glow_mlir.tools.arguments.option_arguments import names
from glow_mlir.tools.command_line import EXIT_OK, new_parser, run_tool
from glow_mlir.tools.mlir_text.test_checks import RunLine, generate, runs_of

PROGRAM = "glow-generate-test-checks"
DESCRIPTION = (
    "Run the RUN lines of a FileCheck test, and write CHECK lines for all that they print: a label for each function, "
    "and a variable for each value. What is to be tested has to be chosen from them by hand."
)
EXAMPLES = """
glow-generate-test-checks tests/filecheck/transforms/my-pass.mlir
glow-generate-test-checks my-pass.mlir --in-place
glow-generate-test-checks my-pass.mlir --check-prefix STRICT,CHECK
"""


def run(arguments: list[str]) -> int:
    """Run the tool on its arguments."""
    from glow_mlir.ir.text import read_text

    parser = new_parser(PROGRAM, DESCRIPTION, EXAMPLES)
    parser.add_argument("test", help="a file with RUN lines that end in filecheck, a program of the package filecheck")
    parser.add_argument("-i", "--in-place", action="store_true", help="change the file, instead of printing it")
    parser.add_argument(
        "--check-prefix",
        "--check-prefixes",
        dest="prefixes",
        type=names,
        default=(),
        metavar="NAMES",
        help="write checks with these prefixes only (default: the first of each RUN line that is not expected to fail)",
    )
    args = parser.parse_args(arguments)
    path = Path(args.test)
    text = read_text(path)
    check_runs(path, text, args.prefixes)
    with TemporaryDirectory(prefix=f"{path.stem}-") as folder:
        changed = generate(text, args.prefixes, lambda found: output_of(found, path, Path(folder)))
    if args.in_place:
        write(path, changed)
    else:
        print(changed, end="")
    return EXIT_OK


def check_runs(path: Path, text: str, prefixes: Sequence[str]) -> None:
    """Raise `OptionError` for a file without FileCheck RUN lines, or without one for some of the prefixes."""
    runs = runs_of(text)
    if not runs:
        raise OptionError(
            "has no RUN line that ends in `| filecheck`", file=str(path), hint="docs/testing.md shows one"
        )
    known = {prefix for found in runs for prefix in found.prefixes}
    for prefix in prefixes:
        if prefix not in known:
            raise OptionError(f"no RUN line checks {prefix}", file=str(path), hint=f"it has {', '.join(sorted(known))}")


def output_of(found: RunLine, path: Path, folder: Path) -> str:
    """The output of the command of a RUN line, run by bash; raises `OptionError` where it fails."""
    values = {"%s": path.resolve(), "%S": path.resolve().parent, "%t": folder / f"{path.name}.tmp"}
    command = found.command
    for name, value in values.items():
        command = command.replace(name, shlex.quote(str(value)))
    # `not` is LLVM's tool; other tools come from the environment of this process.
    script = f'set -o pipefail\nnot() {{ ! "$@"; }}\n{command}'
    search = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, cwd=folder, env={**os.environ, "PATH": search}, check=False
    )
    if done.returncode:
        messages = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = f"the RUN line ends with exit code {done.returncode}{f': {messages[-1]}' if messages else ''}"
        raise OptionError(reason, file=f"{path}:{found.line}:1")
    return done.stdout.decode("utf-8", "replace")


def write(path: Path, text: str) -> None:
    """Replace a file atomically."""
    from glow_mlir.ir.text import write_text

    write_text(text, path)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `glow-generate-test-checks`; the exit code: 0 success, 1 wrong input or options, 2 a bug in the compiler."""
    return run_tool(PROGRAM, run, argv)


if __name__ == "__main__":
    sys.exit(main())
