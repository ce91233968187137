"""`glow-import`: import an ONNX model as a textual module and a weight file."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from glow_mlir.errors import ModelError, OptionError
from glow_mlir.support.file_kinds import ONNX, kind_of_file
from glow_mlir.tools.arguments.ladder_arguments import add_ladder_arguments, chosen_pipeline
from glow_mlir.tools.arguments.run_arguments import (
    add_model_arguments,
    add_value_argument,
    model_options,
    sizes_of_files,
)
from glow_mlir.tools.command_line import EXIT_OK, TERMINAL_LIMIT, check_files, is_terminal, new_parser, run_tool
from glow_mlir.tools.reports.progress import Progress

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

PROGRAM = "glow-import"
STDOUT = "-"
DESCRIPTION = "Import an ONNX model as a module of glow_high: MODEL.mlir, and its weights beside it in MODEL.weights."
EXAMPLES = """
glow-import model.onnx
glow-import model.onnx -o out/model.mlir --bind N=1 --bind sequence=128
glow-import model.onnx --value shape=2,3
glow-import model.onnx --stage optimized -o - --print-debuginfo
glow-import model.onnx --to-onnx optimized.onnx
cat model.onnx | glow-import - -o model.mlir
"""


def parse_arguments(arguments: Sequence[str]) -> Namespace:
    """Parse the options; raises `OptionError` for invalid ones."""
    parser = new_parser(PROGRAM, DESCRIPTION, EXAMPLES)
    parser.add_argument("model", help="an .onnx file, or - for stdin")
    parser.add_argument(
        "-o",
        "--output-file",
        metavar="FILE",
        help="where to write the module, with locations; its weights lie beside it; - prints the module alone on "
        "stdout (default: the model's name with .mlir)",
    )
    add_model_arguments(parser)
    add_value_argument(parser, "the value of an input that determines shapes; it becomes a constant")
    parser.add_argument("--name", default="main", help="the name of the function (default: main)")
    parser.add_argument(
        "--to-onnx",
        metavar="FILE",
        help="write the module as an ONNX model, by default optimized, and with -o only as a module as well",
    )
    add_ladder_arguments(parser)
    parser.add_argument(
        "--print-op-generic", "--mlir-print-op-generic", action="store_true", help="print the generic form of ops"
    )
    parser.add_argument(
        "--print-debuginfo", "--mlir-print-debuginfo", action="store_true", help="print locations on stdout too"
    )
    args = parser.parse_args(arguments)
    if args.name == "":
        raise OptionError("--name is empty", hint="leave it out, or say what the function is called")
    args.stage = args.stage or ("imported" if args.to_onnx is None else "optimized")
    return args


def output_path(args: Namespace) -> Path | None:
    """The path of the module; `None` is stdout."""
    if args.output_file == STDOUT:
        return None
    if args.to_onnx == STDOUT:
        raise OptionError("--to-onnx needs a file")
    if args.output_file is not None:
        return Path(args.output_file)
    if args.model == STDOUT:
        raise OptionError("a model from stdin has no name to write to", hint="say where with -o")
    return Path(Path(args.model).name or "model").with_suffix(
        ".mlir"
    )  # A folder such as `/` has no name; reading it fails later.


def imported(args: Namespace, progress: Progress) -> ModuleOp:
    """Import the model, and run the pipeline up to the requested stage."""
    import numpy as np

    from glow_mlir.api.models import own_model
    from glow_mlir.driver.compiler import Compilation
    from glow_mlir.driver.pass_runner import PassRunner
    from glow_mlir.frontends.onnx.importer import import_model

    pipeline = chosen_pipeline(args)
    progress.say(f"importing {args.model}")
    source = sys.stdin.buffer.read() if args.model == STDOUT else args.model
    values = {name: np.array(numbers) for name, numbers in args.value}
    options = model_options(args)
    model = own_model(source if isinstance(source, bytes) else Path(args.model))
    if model is not None:
        module = model.module(options["dimensions"], values=values, name=args.name)
    else:
        with sizes_of_files():
            module = import_model(source, name=args.name, values=values, **options)
    progress.say(f"{args.model}: going to stage {args.stage}")
    Compilation(module, pipeline=pipeline, runner=PassRunner(verify_each=True)).run(args.stage)
    return module


def check_kind(model: str) -> None:
    """Raise `ModelError` for a file that is not an ONNX model, before the output is named after it."""
    from glow_mlir.api.models import own_model

    kind = kind_of_file(Path(model))
    if own_model(Path(model)) is not None:
        return
    if model.endswith(".mlir"):
        raise ModelError("is a module already", file=model, hint="glow-opt runs passes over it, glow-run runs it")
    if kind is not None and kind is not ONNX:
        raise ModelError(f"is not an ONNX model, but {kind.name}", file=model, hint=kind.hint)


def run(arguments: list[str]) -> int:
    """Run the tool on its arguments."""
    args = parse_arguments(arguments)
    check_kind(args.model)
    path = output_path(args)
    written = [args.to_onnx] if args.to_onnx is not None else []
    if path is not None and path.name and not is_onnx_alone(args):
        weights = path.with_suffix(".weights")  # Same as `textual.weights_path`, without loading xDSL.
        written += [str(path), str(weights)]
    check_files([args.model], written)
    progress = Progress()
    try:
        module = imported(args, progress)
        if args.to_onnx is not None:
            export(module, Path(args.to_onnx))
        if not is_onnx_alone(args):
            write(module, path, args)
    finally:
        progress.clear()
    return EXIT_OK


def is_onnx_alone(args: Namespace) -> bool:
    """Whether an ONNX model is the only output."""
    return args.to_onnx is not None and args.output_file is None


def export(module: ModuleOp, path: Path) -> None:
    """Write the module as an ONNX model."""
    from glow_mlir.frontends.onnx.export.exporter import exported_model, save_model

    save_model(exported_model(module), path)


def write(module: ModuleOp, path: Path | None, args: Namespace) -> None:
    """Write the module, and its weights if it goes to a file."""
    from glow_mlir.ir.text import digests, module_text, write_text

    text = module_text(
        module,
        locations=args.print_debuginfo or path is not None,
        generic=args.print_op_generic,
        limit=TERMINAL_LIMIT if path is None and is_terminal(sys.stdout) else None,
    )
    if path is None:
        print(text, end="")
    else:
        write_text(text, path, digests(module))


def main(argv: Sequence[str] | None = None) -> int:
    """Run `glow-import`; the exit code: 0 success, 1 wrong input or options, 2 a bug in the compiler."""
    return run_tool(PROGRAM, run, argv)


if __name__ == "__main__":
    sys.exit(main())
