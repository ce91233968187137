"""`glow-compile`: compile models to a bundle that C programs call without a runtime."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from glow_mlir.errors import OptionError
from glow_mlir.support.activity import watching
from glow_mlir.tools.arguments.quantization_arguments import add_quantization_arguments, quantization_by, report_file
from glow_mlir.tools.arguments.run_arguments import (
    add_code_arguments,
    add_model_arguments,
    check_code_arguments,
    code_options,
    model_options,
    sizes_of_files,
)
from glow_mlir.tools.command_line import EXIT_OK, ArgumentGroup, new_parser, run_tool
from glow_mlir.tools.reports.progress import Progress

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from glow_mlir.api.compile_options import CompileOptions
    from glow_mlir.bundle.compile import Bundle
    from glow_mlir.driver.compiler import Observer
    from glow_mlir.driver.pipelines import Stage
    from glow_mlir.options.quantization import Quantization

PROGRAM = "glow-compile"
DESCRIPTION = (
    "Compile models to an object, a header and a file of weights for C programs: no heap, no libc, no runtime."
)
EXAMPLES = """
glow-compile model.onnx --target cortex-m4 -o firmware
glow-compile model.onnx --target cortex-m4 --package zephyr -o model
glow-compile one=model.onnx eight=model8.onnx --name vision --target neon -o bundle
glow-compile model.onnx --load-profile model.profile.json --constants object -o bundle
glow-compile a=a.onnx b=b.onnx --load-profile a=a.profile.json --load-profile b=b.profile.json
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; the exit code."""
    return run_tool(PROGRAM, lambda arguments: execute(parse_arguments(arguments)), argv)


def parse_arguments(arguments: Sequence[str]) -> Namespace:
    """Parse the options; raises `OptionError` for invalid ones."""
    parser = new_parser(PROGRAM, DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "models",
        nargs="+",
        metavar="[ENTRY=]MODEL",
        help="an .onnx file, or a .mlir file; several share one object and their constants, and say what C calls each",
    )
    _add_bundle_arguments(parser.add_argument_group("bundle"))
    compilation = parser.add_argument_group("compilation")
    add_code_arguments(compilation)
    add_model_arguments(compilation)
    add_quantization_arguments(parser.add_argument_group("quantization"), of_several=True)
    args = parser.parse_args(arguments)
    check_code_arguments(args)
    if args.reuse_inputs and args.api == "dynamic":
        reason = "a bundle that describes itself has inputs and outputs in the mutables"
        raise OptionError(reason, hint="--api static with --reuse-inputs")
    return args


def _add_bundle_arguments(group: ArgumentGroup) -> None:
    """Add the options that select the files to write, and their names in C."""
    group.add_argument("-o", "--output", metavar="DIR", help="the folder to write (default: the name of the bundle)")
    group.add_argument("--name", help="what all names in C begin with (default: the name of the first model)")
    group.add_argument(
        "--entry", metavar="NAME", help="what C calls the entry of the only model behind that (default: run)"
    )
    group.add_argument(
        "--constants",
        choices=("file", "object"),
        help="where constants are: in files of their own, or in the object, in its section that is only read (default: "
        "file, and object in packages for microcontrollers)",
    )
    group.add_argument(
        "--emit",
        choices=("object", "archive", "shared", "wasm"),
        default="object",
        help="what to write beside the object: an archive, or a library by whatever linker there is",
    )
    group.add_argument(
        "--package",
        choices=("cmake", "zephyr", "arduino"),
        default="cmake",
        help="what to write for the build of the program: a package for CMake (default), a module of Zephyr, or a "
        "library of Arduino",
    )
    group.add_argument(
        "--api",
        choices=("static", "dynamic"),
        default="static",
        help="dynamic: the object describes itself as well, for programs that run any bundle",
    )
    group.add_argument(
        "--instrument",
        action="store_true",
        help="call what the arguments say before and after each instruction; a second header writes what these compute",
    )
    group.add_argument(
        "--reuse-inputs",
        action="store_true",
        help="keep inputs and outputs in the activations, where others take their memory once they are not needed: "
        "a call overwrites its inputs",
    )
    group.add_argument(
        "--report",
        type=report_file,
        metavar="FILE.json|FILE.html",
        help="write what is printed with the lives of all buffers, or a page with a picture of them",
    )


def entry_and_file(text: str) -> tuple[str, str]:
    """Split `ENTRY=FILE`, or a file alone, whose path may contain `=`; then the entry is empty."""
    entry, _, path = ("", "", text) if "=" not in text or Path(text).exists() else text.partition("=")
    return entry, path


def named_models(args: Namespace) -> dict[str, str]:
    """
    Entry → path; the entry of a single model may be empty. Raises `OptionError` where entries are missing or repeated.
    """
    found: dict[str, str] = {}
    for text in args.models:
        entry, path = entry_and_file(text)
        if not path:
            raise OptionError(f"'{text}' names no file", hint="ENTRY=model.onnx")
        if not entry and len(args.models) > 1:
            raise OptionError(f"'{text}' has no entry, which one of several models needs", hint=f"ENTRY={text}")
        if entry in found:
            raise OptionError(f"two models are the entry '{entry}'", hint="give one another name")
        found[entry] = path
    if args.entry is not None:
        if len(found) > 1 or "" not in found:
            raise OptionError("--entry names the only model", hint="ENTRY=model.onnx says it for each")
        found = {args.entry: found[""]}
    return found


def chosen_profiles(args: Namespace, models: Mapping[str, str]) -> dict[str, Quantization]:
    """Entry → the quantization of its model; raises `OptionError` where a profile has no clear owner."""
    found: dict[str, Quantization] = {}
    for text in args.load_profile or ():
        entry, path = entry_and_file(text)
        if not entry and len(models) == 1:
            (entry,) = models
        if entry not in models:
            reason = f"there is no entry '{entry}'" if entry else f"'{text}' does not say whose profile it is"
            named = f"ENTRY=FILE, with one of {', '.join(models)}"
            raise OptionError(reason, hint=named if any(models) else "--load-profile FILE, or ENTRY=MODEL")
        if entry in found:
            raise OptionError(f"two profiles are for the entry '{entry}'", hint="glow-profile takes all data at once")
        found[entry] = quantization_by(args, path)
    return found


def execute(args: Namespace) -> int:
    """Execute the options; return the exit code."""
    models = named_models(args)
    for option in ("name", "entry"):
        if getattr(args, option) == "":
            raise OptionError(f"--{option} is empty", hint="leave it out, or say what C calls it")
    name = args.name or Path(next(iter(models.values()))).stem
    bundle = compiled(args, models, name)
    write_files(args, bundle, Path(args.output or bundle.name), models.values())
    print(bundle.report.text(), end="")
    return EXIT_OK


def write_files(args: Namespace, bundle: Bundle, folder: Path, models: Iterable[str]) -> None:
    """Write the bundle and the report that the options request: both, or nothing."""
    from glow_mlir.api.model_identity import files_of
    from glow_mlir.bundle.files import write_bundle
    from glow_mlir.support.files import replaced

    profiles = (entry_and_file(text)[1] for text in args.load_profile or ())
    read = [Path(file) for file in (*profiles, args.load_configuration) if file is not None]
    read += [file for model in models for file in files_of(Path(model))]
    if args.report is None:
        write_bundle(bundle, folder, args.emit, read, package=args.package)
        return
    report = Path(args.report)
    text = bundle.report.json() if report.suffix == ".json" else bundle.report.html()
    if report.resolve().parent == folder.resolve():
        write_bundle(bundle, folder, args.emit, read, {report.name: text}, args.package)
        return
    with replaced(report) as file:
        file.write(text.encode())
        write_bundle(bundle, folder, args.emit, read, package=args.package)


def compiled(args: Namespace, models: dict[str, str], name: str) -> Bundle:
    """Compile the bundle that the options request."""
    from glow_mlir.api.bundles import bundle_of
    from glow_mlir.bundle.interface import ObjectForm

    form = ObjectForm(has_constants(args), args.api == "dynamic", args.instrument)
    progress = Progress()

    def tell(stage: Stage, module: ModuleOp, seconds: float) -> None:
        progress.say(f"compiling: {stage.name}")

    progress.say("compiling")
    try:
        with watching(progress.say), sizes_of_files():
            return bundle_of(models, name, options_of(args, models, tell), form, chosen_profiles(args, models))
    finally:
        progress.clear()


def has_constants(args: Namespace) -> bool:
    """
    Whether the object holds the constants; raises `OptionError` where the package does not allow files of constants.
    """
    from glow_mlir.bundle.packages import PACKAGES

    needed = PACKAGES[args.package].has_constants
    if needed and args.constants == "file":
        raise OptionError(f"--package {args.package} has the constants in the object", hint="--constants object")
    return needed or args.constants == "object"


def options_of(args: Namespace, models: dict[str, str], observer: Observer) -> CompileOptions:
    """The compile options in the arguments."""
    from glow_mlir.api.compile_options import CompileOptions
    from glow_mlir.api.model_identity import model_backend
    from glow_mlir.api.models import accepted_model

    backend = model_backend(accepted_model(next(iter(models.values()))))
    given = {**model_options(args), **code_options(args), "reuse_inputs": args.reuse_inputs}
    options = CompileOptions.from_keywords({**given, "backend": backend, "observers": (observer,)})
    return options.configured(None if args.load_configuration is None else Path(args.load_configuration))


if __name__ == "__main__":
    sys.exit(main())
