"""The options of `glow-run`, and the checks of their combinations."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from shlex import quote
from typing import Any

from glow_mlir.dialects.packages import DEFAULT_BACKEND, REFERENCE_BACKEND
from glow_mlir.errors import OptionError
from glow_mlir.options.compilation import FULL_PRECISION, CompilationOptions, ModelOptions
from glow_mlir.options.placement import PlacementOptions
from glow_mlir.options.policy import Limits, Policy
from glow_mlir.runtime.signature import MissingSizeError
from glow_mlir.support.symbols import GivenDimension
from glow_mlir.tools.arguments.bounded_numbers import amount, count, finite, milliseconds, natural, seconds
from glow_mlir.tools.arguments.ladder_arguments import add_disable_argument
from glow_mlir.tools.arguments.option_arguments import add_options, given_options
from glow_mlir.tools.arguments.quantization_arguments import DEPENDENT, add_quantization_arguments
from glow_mlir.tools.arguments.repeated_options import OncePerName, forget_given
from glow_mlir.tools.arguments.target_arguments import add_target_argument
from glow_mlir.tools.command_line import ArgumentGroup, check_written, new_parser, spelled, takes_stdout
from glow_mlir.tools.inputs.image_sizes import image_size
from glow_mlir.tools.reports.log_output import add_log_arguments

PROGRAM = "glow-run"
HOST = "host"

DESCRIPTION = "Compile a model and run it: on files or random numbers, compared layer by layer, measured and profiled."

EXAMPLES = """
glow-run model.onnx --bind N=1
glow-run model.onnx --input x=x.npy --outputs results.npz
glow-run resnet50.onnx --image cat.png --mean 0.485,0.456,0.406 --stddev 0.229,0.224,0.225
glow-run model.onnx --check onnxruntime
glow-run model.onnx --compare='--precision bf16' --dump-html both.html
glow-run model.onnx --iterations 100 --profile --trace trace.json
glow-run allocated.mlir --backend interpreter
"""

REQUIRED: dict[str, tuple[str, ...]] = {
    "rtol": ("check",),
    "atol": ("check",),
    "image_size": ("image",),
    "layout": ("image",),
    "image_mode": ("image",),
    "mean": ("image",),
    "stddev": ("image",),
    "values_of": ("dump_values",),
    "dot_stage": ("dump_dot",),
    "keep_precision_for_nodes": ("precision", "weights"),
    "quantization_report": ("load_profile", "load_configuration", "precision", "weights"),
    **dict.fromkeys(DEPENDENT, ("load_profile",)),
}
"""Option → the options of which at least one is required with it."""

CONFIGURED = ("load_profile", "precision", "weights")
"""Options that a configuration already decides."""

ROUNDING = ("load_profile", "load_configuration", "precision", "weights")
"""Options that make a model compute with other numbers than its own."""

OF_CODE = (CompilationOptions, PlacementOptions, Policy, Limits)
"""The options that affect the code generated for a model."""

COMPILED = ("profile", "trace", "stats", "tune")
"""Options that need machine code."""

MEASURED = ("iterations", "duration", "warmup", "profile", "trace")
"""Options that make a run a measurement."""

STDOUT_OPTIONS = ("json", "stats", "compilation_log")
"""Files that may be `-`, which is stdout."""

FILE_OPTIONS = ("trace", "outputs", "dump_dot", "dump_html", "quantization_report")
"""Files that cannot be stdout."""


def numbers(text: str) -> tuple[float, ...]:
    """Parse finite numbers separated by commas."""
    try:
        return tuple(finite(item) for item in text.split(","))
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"expected finite numbers between commas, got '{text}'") from error


def deviations(text: str) -> tuple[float, ...]:
    """Parse nonzero numbers separated by commas."""
    found = numbers(text)
    if 0.0 in found:
        raise argparse.ArgumentTypeError(f"a standard deviation cannot be 0, got '{text}'")
    return found


def binding(text: str) -> tuple[str, GivenDimension]:
    """
    Parse `NAME=SIZE`, `NAME=LEAST..MOST`, `NAME=LEAST..` for an unbounded size, or `NAME=EXPRESSION` of other names.
    """
    name, _, size = text.rpartition("=")
    least, is_range, most = size.partition("..")
    if name and not is_range and any(map(str.isalpha, size)):
        return name, size
    if not name or not least.isdecimal() or (most and not most.isdecimal()):
        forms = "NAME=SIZE, NAME=LEAST..MOST, NAME=LEAST.. or NAME=EXPRESSION"
        raise argparse.ArgumentTypeError(f"expected {forms}, got '{text}'")
    return name, (int(least), int(most) if most else None) if is_range else int(least)


def input_value(text: str) -> tuple[str, tuple[float, ...]]:
    """Parse `INPUT=NUMBER,…`; whole numbers stay integers."""
    name, _, listed = text.rpartition("=")
    try:
        found = tuple(_number(item) for item in listed.split(",") if listed)
    except ValueError:
        name, found = "", ()
    if not name:
        raise argparse.ArgumentTypeError(f"expected INPUT=NUMBER,NUMBER…, got '{text}'")
    return name, found


def _number(text: str) -> float:
    """Parse a whole number, a float, `true` or `false`."""
    words = {"true": 1, "false": 0}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return int(text)
    except ValueError:
        return float(text)


def add_value_argument(group: ArgumentGroup | argparse.ArgumentParser, what: str) -> None:
    """Add `--value`; `what` is its help text."""
    group.add_argument(
        "--value", action=OncePerName, default=[], type=input_value, metavar="INPUT=NUMBER,...", help=what
    )


def parse_arguments(arguments: Sequence[str], changes: Sequence[str] = ()) -> Namespace:
    """Parse the options, with `changes` applied to them; raises `OptionError` for invalid ones."""
    parser = new_parser(PROGRAM, DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "model", help="an .onnx file, a .mlir file of any stage down to allocated, or - for such text on stdin"
    )
    _add_inputs(
        parser.add_argument_group("inputs (NAME= may be left out where there is one; all random if none is given)")
    )
    _add_compilation(parser.add_argument_group("compilation"))
    add_quantization_arguments(parser.add_argument_group("quantization"))
    _add_check(parser.add_argument_group("check"))
    _add_measurement(parser.add_argument_group("measurement"))
    _add_files(parser.add_argument_group("files (- is stdout, which then has nothing else)"))
    args = parser.parse_args(arguments)
    if changes:
        forget_given(args)
        args = parser.parse_args([*changes, "--", args.model], args)
    args.arguments = tuple(arguments)
    _check(args)
    return args


def _add_inputs(group: ArgumentGroup) -> None:
    group.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="an array")
    group.add_argument("--inputs", metavar="FILE.npz", help="arrays by name")
    group.add_argument(
        "--image",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="an image: PNG, JPEG and so on with Pillow, PGM, PPM or .npy without; several of one name are a batch",
    )
    add_image_arguments(group)
    group.add_argument("--seed", type=natural, metavar="N", help="draw all inputs that no file gives (default: 0)")
    add_model_arguments(group)
    add_value_argument(group, "the numbers of a small input, such as one that fixes a shape")


def add_model_arguments(group: ArgumentGroup | argparse.ArgumentParser) -> None:
    """Add `--bind` and `--strict`, which control how an ONNX model is read."""
    group.add_argument(
        "--bind",
        action=OncePerName,
        default=[],
        type=binding,
        metavar="NAME=SIZE",
        help="the size of a free dimension of an ONNX model, by its name, or as INPUT.AXIS where it has none; "
        "NAME=LEAST..MOST compiles for all sizes in between, and NAME=EXPRESSION says how it follows from others, as "
        "in total=past+1",
    )
    add_options(group, ModelOptions)


def model_options(args: Namespace) -> dict[str, Any]:
    """The session keywords for the options of `add_model_arguments`."""
    return {"dimensions": dict(args.bind), **given_options(args, ModelOptions)}


@contextmanager
def sizes_of_files() -> Generator[None]:
    """Adjust the hint of errors about a dimension of unknown size, which defaults to 1 only for runs."""
    try:
        yield
    except MissingSizeError as error:
        given = f"--bind {quote(error.example)}, or a range as 1..8"
        error.hint = f"{given}; there is no default of 1, because the file keeps the size"
        raise


def add_image_arguments(group: ArgumentGroup) -> None:
    """Add the options that control how images become inputs."""
    group.add_argument("--layout", choices=("NCHW", "NHWC"), help="the axes of an image input (default: NCHW)")
    group.add_argument(
        "--image-size",
        type=image_size,
        metavar="HOW",
        help="how to resize images: stretch; crop (scale to cover the input, then take the middle); or 256, "
        "the middle of one whose shorter side has 256 pixels (default: they have it)",
    )
    group.add_argument(
        "--image-mode",
        choices=("0to1", "neg1to1", "0to255", "neg128to127"),
        help="the range of pixels (default: 0to1 for floats, 0to255 for integers)",
    )
    group.add_argument("--mean", type=numbers, metavar="M,...", help="subtracted from each channel, in that range")
    group.add_argument("--stddev", type=deviations, metavar="S,...", help="what each channel is then divided by")


def _add_compilation(group: ArgumentGroup) -> None:
    group.add_argument(
        "--backend",
        metavar="NAME",
        help=f"what compiles the model and runs it (default: that of the module, else {DEFAULT_BACKEND}); "
        f"{REFERENCE_BACKEND} runs a .mlir file "
        "as it stands",
    )
    group.add_argument(
        "--entry", metavar="NAME", help="the function of a module to run (default: the only one, else main)"
    )
    add_code_arguments(group)
    group.add_argument(
        "--no-cache", dest="cache", action="store_false", help="compile again, and do not store the result"
    )
    group.add_argument(
        "--dump-phases", metavar="DIR", help="write the module at each stage, LLVM IR and assembly into DIR"
    )


def add_code_arguments(group: ArgumentGroup) -> None:
    """Add the options that affect the code generated for a model."""
    add_target_argument(group)
    add_options(group, *OF_CODE)
    add_disable_argument(group)


def code_options(args: Namespace) -> dict[str, Any]:
    """The session keywords for the options of `add_code_arguments`."""
    return {"target": args.target, "disable": args.disable, **given_options(args, *OF_CODE)}


def _add_check(group: ArgumentGroup) -> None:
    group.add_argument(
        "--check",
        choices=(REFERENCE_BACKEND, "onnxruntime", "litert"),
        help="compare every layer with a reference; exit code 1 if one is wrong; litert has the reference kernels of "
        "TensorFlow Lite",
    )
    group.add_argument(
        "--compare",
        metavar="OTHER",
        help="compile a second time, another model or with other options, and print both side by side: "
        "--compare other.onnx, --compare='--precision bf16'",
    )
    default = "(default: by element type, for f32 1e-3, and 1e-3 of the layer's largest value)"
    group.add_argument("--rtol", type=amount, metavar="X", help=f"relative tolerance {default}")
    group.add_argument("--atol", type=amount, metavar="X", help="absolute tolerance")


def _add_measurement(group: ArgumentGroup) -> None:
    group.add_argument("--iterations", type=count, metavar="N", help="run at least N times (default: 10, if measured)")
    group.add_argument("--duration", type=seconds, metavar="SECONDS", help="run at least that long (default: 0)")
    group.add_argument(
        "--warmup", type=milliseconds, metavar="MS", help="unmeasured runs before, in milliseconds (default: 200)"
    )
    group.add_argument("--profile", action="store_true", help="print the time of each instruction")
    group.add_argument("--trace", metavar="FILE", help="write a trace for chrome://tracing and Perfetto")


def _add_files(group: ArgumentGroup) -> None:
    group.add_argument("--outputs", metavar="FILE.npz", help="write the outputs of the first run")
    group.add_argument(
        "--dump-values", metavar="DIR", help="write what each instruction of the first run wrote as .npy files into DIR"
    )
    group.add_argument(
        "--values-of", metavar="PATTERN", help="only instructions whose node or kind matches, with * and ?"
    )
    group.add_argument("--json", metavar="FILE", help="write what is printed as JSON")
    add_log_arguments(group, "stdout")
    group.add_argument("--dump-dot", metavar="FILE", help="write the graph of a stage for graphviz")
    group.add_argument("--dot-stage", metavar="STAGE", help="the stage of --dump-dot (default: optimized)")
    group.add_argument(
        "--dump-html",
        metavar="FILE",
        help="write a page with the arena over time, the graph before and after, and the compilation log",
    )
    group.add_argument(
        "--stats", metavar="FILE", help="write sizes, counts and compile times as JSON; disables the cache"
    )


def _check(args: Namespace) -> None:
    """Raise `OptionError` for options that exclude each other."""
    check_code_arguments(args)
    for name in ROUNDING:
        if args.check is not None and _is_given(args, name):
            reason = f"--check compares with the model as it is, and --{spelled(name)} rounds its numbers"
            raise OptionError(reason, hint="--quantization-report says how far each value is from f32")
    if args.dump_values is not None and is_measured(args):
        raise OptionError("--dump-values changes what would be measured")
    if args.dump_values is not None and args.devices:
        raise OptionError("--dump-values keeps values of one machine, and --devices says several")
    files = (args.inputs, args.load_profile, args.load_configuration, args.placement, args.placement_profile)
    inputs = [args.model, *filter(None, files)]
    inputs += [item.rpartition("=")[2] for item in (*args.input, *args.image)]
    check_written(args, inputs, STDOUT_OPTIONS, FILE_OPTIONS)


def check_code_arguments(args: Namespace) -> None:
    """Raise `OptionError` for options that lack a required option, or contradict each other."""
    for name, needed in REQUIRED.items():
        if getattr(args, name, None) is not None and not any(_is_given(args, other) for other in needed):
            raise OptionError(f"--{spelled(name)} needs --{' or --'.join(map(spelled, needed))}")
    for name in CONFIGURED:
        if args.load_configuration is not None and getattr(args, name) is not None:
            raise OptionError(f"--load-configuration says itself what --{spelled(name)} says")


def _is_given(args: Namespace, name: str) -> bool:
    """Whether an option has a value other than the default."""
    found = getattr(args, name)
    return bool(found) and not (name in ("precision", "weights") and found == FULL_PRECISION)


def is_measured(args: Namespace) -> bool:
    """Whether the options request a measurement."""
    return any(getattr(args, name) not in (None, False) for name in MEASURED)


def is_silent(args: Namespace) -> bool:
    """Whether one of the files is written to stdout."""
    return takes_stdout(args, STDOUT_OPTIONS)
