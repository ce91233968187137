"""
`glow-tune`: search which nodes to quantize or to compute in narrower floats, for speed within a given loss.
"""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from glow_mlir.dialects.packages import DEFAULT_BACKEND
from glow_mlir.options.policy import Policy
from glow_mlir.options.quantization import Quantization
from glow_mlir.tools.arguments.bounded_numbers import amount, count
from glow_mlir.tools.arguments.option_arguments import add_options, given_options, names
from glow_mlir.tools.arguments.run_arguments import add_image_arguments, add_model_arguments, model_options
from glow_mlir.tools.command_line import EXIT_OK, check_written, new_parser, run_tool, takes_stdout
from glow_mlir.tools.reports.progress import Progress, bar

if TYPE_CHECKING:
    import numpy as np

    from glow_mlir.api.precision_trials import Trials
    from glow_mlir.quantization.search import PrecisionSearch

PROGRAM = "glow-tune"
DESCRIPTION = (
    "Search which nodes are quantized to 8 bits or computed in narrower floats, and with which ranges, so that the "
    "model is fast and loses little on a data set; show what there is to choose from, and write the best choice as "
    "glow-run --load-configuration takes it. What was tried is remembered: a search that was interrupted goes on."
)
EXAMPLES = """
glow-tune model.onnx --load-profile model.profile.json --dataset held_out.npz --labels labels.npy --max-loss 0.5
glow-tune model.onnx --load-profile model.profile.json --dataset images --max-loss 1 --html model.tuning.html
glow-run model.onnx --load-configuration model.precision.json --iterations 100
"""

NARROW = ("int8", "bf16", "f16")
"""Precisions of nodes besides f32, the narrowest first; at most one of the floats is used."""

DEFAULT_TRIALS = 200

STDOUT_OPTIONS = ("json",)
"""Files that may be `-`, which is stdout."""

FILE_OPTIONS = ("output_file", "html")
"""Files that cannot be stdout."""


def precisions(text: str) -> tuple[str, ...]:
    """Parse some of `NARROW`, separated by commas, with at most one float type."""
    found = names(text)
    if not found or not set(found) <= set(NARROW) or {"bf16", "f16"} <= set(found):
        raise ArgumentTypeError(f"expected int8, bf16 or f16, or int8 and one of these, got '{text}'")
    return tuple(precision for precision in NARROW if precision in found)


def parse_arguments(arguments: Sequence[str]) -> Namespace:
    """Parse the options; raises `OptionError` for invalid ones."""
    parser = new_parser(PROGRAM, DESCRIPTION, EXAMPLES)
    parser.add_argument("model", help="an .onnx file, or a .mlir file of the stage imported")
    parser.add_argument("--load-profile", required=True, metavar="FILE", help="what glow-profile wrote for the model")
    parser.add_argument(
        "--dataset",
        required=True,
        metavar="FILE.npz|DIR",
        help="the data set that the loss is measured on, in glow-profile's format; best not the one profiled",
    )
    parser.add_argument(
        "--labels",
        metavar="FILE.npy",
        help="the class of each sample, which the first output tells: the loss is that of accuracy, "
        "instead of the noise in outputs as a share of their amplitude, or of the elements that differ in integers",
    )
    parser.add_argument(
        "--max-loss", type=amount, default=0.5, metavar="PERCENT", help="largest loss (default: %(default)s)"
    )
    parser.add_argument(
        "--precisions",
        type=precisions,
        default=("int8", "bf16"),
        metavar="NAMES",
        help="int8, bf16, f16 (default: int8,bf16)",
    )
    add_options(parser, Quantization, only=("schema",))
    parser.add_argument(
        "--trials",
        type=count,
        default=DEFAULT_TRIALS,
        metavar="N",
        help="largest number of trials (default: %(default)s)",
    )
    add_model_arguments(parser)
    parser.add_argument("--backend", metavar="NAME", help=f"what runs the model (default: {DEFAULT_BACKEND})")
    add_options(parser, Policy, only=("threads",))
    files = parser.add_argument_group("files (- is stdout, which then has nothing else)")
    files.add_argument(
        "-o",
        "--output-file",
        metavar="FILE",
        help="where to write the configuration (default: the model's name with .precision.json)",
    )
    files.add_argument("--json", metavar="FILE", help="write the Pareto front and all trials")
    files.add_argument("--html", metavar="FILE", help="write a page with a picture of them")
    add_image_arguments(parser.add_argument_group("images"))
    args = parser.parse_args(arguments)
    read = [args.model, args.dataset, args.load_profile, *filter(None, [args.labels])]
    args.output_file = args.output_file or str(Path(Path(args.model).name).with_suffix(".precision.json"))
    check_written(args, read, STDOUT_OPTIONS, FILE_OPTIONS)
    return args


def run(arguments: list[str]) -> int:
    """Run the tool on its arguments."""
    from glow_mlir.ir.text import write_text
    from glow_mlir.tools.reports.run_report import write_json
    from glow_mlir.tools.reports.tuning_report import TuningReport

    args = parse_arguments(arguments)
    progress = Progress()
    try:
        trials = trials_of(args, progress)
        search = search_of(args, trials, progress)
        best = search.run()
    finally:
        progress.clear()
    path = Path(args.output_file)
    report = TuningReport(search, best, Path(args.model).name, trials.measure_name)
    trials.configuration(best.choice).write(path)
    if not takes_stdout(args, STDOUT_OPTIONS):
        report.show()
        print(f"{path}: {report.summary()}")
    if args.json is not None:
        write_json(report.data(), args.json)
    if args.html is not None:
        write_text(report.html(), Path(args.html))
    return EXIT_OK


def trials_of(args: Namespace, progress: Progress) -> Trials:
    """The trials on the data set in the options."""
    from glow_mlir.api.precision_trials import Trials
    from glow_mlir.tools.inputs.datasets import read_dataset
    from glow_mlir.tools.inputs.run_inputs import normalization_of

    dataset = read_dataset(Path(args.dataset), normalization_of(args))
    labels = None if args.labels is None else read_labels(Path(args.labels))
    options = {"backend": args.backend, **model_options(args), "threads": args.threads}
    quantize = Quantization(args.load_profile, **given_options(args, Quantization))
    progress.say("compiling")
    return Trials(args.model, lambda inputs: (run.inputs for run in dataset.runs(inputs)), quantize, labels, options)


def read_labels(path: Path) -> np.ndarray:
    """The class labels in a `.npy` file; raises `InputError` if it has none."""
    from glow_mlir.errors import InputError
    from glow_mlir.tools.inputs.run_inputs import read_npy

    found = read_npy(path)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        reason = f"has labels of shape {list(found.shape)} and type {found.dtype.name}"
        raise InputError(reason, file=str(path), hint="labels are integers, one for each sample")
    return found


def search_of(args: Namespace, trials: Trials, progress: Progress) -> PrecisionSearch:
    """
    The search that the options request, which reports each trial; raises `ModelError` where there is nothing to choose.
    """
    from glow_mlir.errors import ModelError
    from glow_mlir.quantization.search import FULL, Choice, Loss, PrecisionSearch

    def evaluate(choice: Choice) -> Loss:
        number = len(search.losses) + 1
        progress.say(f"tuning {bar(number / limit)} trial {number}")
        return trials.evaluate(choice)

    if not trials.units:
        raise ModelError("there is nothing to choose: no product can become narrower", file=args.model)
    search = PrecisionSearch(
        trials.units, (*args.precisions, FULL), evaluate, trials.measure, args.max_loss / 100, args.trials
    )
    limit = min(args.trials, search.most_trials())
    return search


def main(argv: Sequence[str] | None = None) -> int:
    """Run `glow-tune`; the exit code: 0 success, 1 wrong input or options, 2 a bug in the compiler."""
    return run_tool(PROGRAM, run, argv)


if __name__ == "__main__":
    sys.exit(main())
