"""`glow-profile`: run a model on a data set, and write the histograms of its values."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from glow_mlir.dialects.packages import DEFAULT_BACKEND
from glow_mlir.errors import OptionError
from glow_mlir.options.policy import Policy
from glow_mlir.tools.arguments.bounded_numbers import count
from glow_mlir.tools.arguments.option_arguments import add_options
from glow_mlir.tools.arguments.run_arguments import add_image_arguments, add_model_arguments, model_options
from glow_mlir.tools.command_line import EXIT_OK, check_files, new_parser, run_tool
from glow_mlir.tools.reports.progress import Progress, bar

if TYPE_CHECKING:
    from glow_mlir.quantization.profile import Profile

PROGRAM = "glow-profile"
DESCRIPTION = "Run a model on a data set, and write the histograms of its values, for glow-run --load-profile."
EXAMPLES = """
glow-profile model.onnx --dataset samples.npz
glow-profile resnet50.onnx --dataset images --mean 0.485,0.456,0.406 --stddev 0.229,0.224,0.225 -o resnet50.json
glow-profile model.onnx --dataset more.npz --merge model.profile.json -o model.profile.json
"""


def parse_arguments(arguments: Sequence[str]) -> Namespace:
    """Parse the options; raises `OptionError` for invalid ones."""
    parser = new_parser(PROGRAM, DESCRIPTION, EXAMPLES)
    parser.add_argument("model", help="an .onnx file, or a .mlir file of the stage imported")
    parser.add_argument(
        "--dataset",
        required=True,
        metavar="FILE.npz|DIR",
        help="arrays named after the inputs, whose first axis counts samples; or a folder of such files, of "
        ".npy files for a model with one input, or of images",
    )
    parser.add_argument(
        "-o",
        "--output-file",
        metavar="FILE",
        help="where to write the profile (default: the model's name with .profile.json)",
    )
    parser.add_argument(
        "--merge", action="append", default=[], metavar="FILE", help="add the counts of another profile of the model"
    )
    parser.add_argument("--bins", type=count, metavar="N", help="bins of each histogram (default: 2048)")
    parser.add_argument(
        "--equalize-channels",
        action="store_true",
        help="equalize the ranges of the channels between two products first, and where the profile is used",
    )
    add_model_arguments(parser)
    parser.add_argument("--backend", metavar="NAME", help=f"what runs the model (default: {DEFAULT_BACKEND})")
    add_options(parser, Policy, only=("threads",))
    add_image_arguments(parser.add_argument_group("images"))
    args = parser.parse_args(arguments)
    check_files([args.model, args.dataset], [output_path(args)])
    for position, name in enumerate(args.merge):
        if name in args.merge[:position]:
            raise OptionError("is merged twice", file=name, hint="each profile counts once")
    return args


def output_path(args: Namespace) -> str:
    """The path of the profile."""
    return args.output_file or str(Path(Path(args.model).name).with_suffix(".profile.json"))


def run(arguments: list[str]) -> int:
    """Run the tool on its arguments."""
    args = parse_arguments(arguments)
    progress = Progress()
    try:
        runs, profile = profiled(args, progress)
    finally:
        progress.clear()
    path = Path(output_path(args))
    profile.write(path)
    print(f"{path}: {len(profile.histograms)} values in {runs} run{'s' if runs != 1 else ''}")
    return EXIT_OK


def profiled(args: Namespace, progress: Progress) -> tuple[int, Profile]:
    """The number of runs, and the profile of these runs merged with the given profiles."""
    from glow_mlir.api.profiling import Profiler
    from glow_mlir.quantization.histogram import BINS
    from glow_mlir.quantization.profile import read_profile
    from glow_mlir.tools.inputs.datasets import read_dataset
    from glow_mlir.tools.inputs.run_inputs import normalization_of

    others = [read_profile(Path(name)) for name in args.merge]
    dataset = read_dataset(Path(args.dataset), normalization_of(args))
    progress.say("compiling")
    bins = args.bins or (others[0].bins if others else BINS)
    options = {**model_options(args), "threads": args.threads}
    profiler = Profiler(args.model, bins=bins, equalize=args.equalize_channels, backend=args.backend, **options)
    for other in others:
        profiler.profile.merge(other)
    runs = 0
    for inputs, share in dataset.runs(profiler.inputs):
        profiler.run(inputs)
        progress.say(f"profiling {bar(share)}")
        runs += 1
    return runs, profiler.profile


def main(argv: Sequence[str] | None = None) -> int:
    """Run `glow-profile`; the exit code: 0 success, 1 wrong input or options, 2 a bug in the compiler."""
    return run_tool(PROGRAM, run, argv)


if __name__ == "__main__":
    sys.exit(main())
