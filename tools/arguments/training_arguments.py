"""The options of `glow-train`, and the losses, optimizers and schedules that they name."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from glow_mlir.dialects.packages import DEFAULT_BACKEND
from glow_mlir.errors import OptionError
from glow_mlir.options.compilation import CompilationOptions
from glow_mlir.options.declaration import declared
from glow_mlir.options.policy import Policy
from glow_mlir.options.quantization import Quantization
from glow_mlir.tools.arguments.bounded_numbers import amount, count, natural
from glow_mlir.tools.arguments.option_arguments import add_options, names
from glow_mlir.tools.arguments.quantization_arguments import DEPENDENT, chosen_quantization
from glow_mlir.tools.arguments.run_arguments import add_image_arguments, add_model_arguments
from glow_mlir.tools.command_line import ArgumentGroup, check_written, new_parser, spelled
from glow_mlir.training.losses import LOSSES
from glow_mlir.training.optimizers import OPTIMIZERS, Optimizer
from glow_mlir.training.schedules import Constant, Cosine, Linear, Schedule, WarmUp

PROGRAM = "glow-train"
DESCRIPTION = """\
Train the parameters of an ONNX model that infers, and write the trained model.

Each epoch has the samples in an order that --seed and its number decide. What does not fill a last batch is not in
that epoch, and may be in the next. Evaluation, behind each epoch, counts every sample.

Ctrl-C and SIGTERM end training behind the step, with a whole checkpoint and exit code 130. --resume goes on from there,
and gives the same bits as training without the break."""

EXAMPLES = """
glow-train model.onnx --dataset train.npz --labels labels.npy --epochs 10 -o trained.onnx
glow-train model.onnx --dataset images --evaluation held_out --optimizer sgd --momentum 0.9 --schedule cosine
glow-train model.onnx --dataset train.npz --batch-size 256 --processes 4 --threads 2
glow-train model.onnx --dataset train.npz --load-profile model.profile.json --quantization-precision-weights int4
glow-train model.onnx --dataset train.npz --checkpoint run.safetensors --resume --metrics run.jsonl --html run.html
"""

SCHEDULES: dict[str, Callable[[int], Schedule]] = {
    "constant": lambda steps: Constant(),
    "cosine": Cosine,
    "linear": Linear,
}
"""The name that the tool has for a schedule → the schedule for so many steps."""

SETTINGS = {
    "learning_rate": "the base learning rate",
    "weight_decay": "what part of itself a parameter loses in a step, at a rate of 1",
    "momentum": "what part of the last direction a step keeps",
    "clip_norm": "the largest norm of all gradients together, to which longer ones are scaled",
}
"""Option that is a field of optimizers → what it is."""

DEFAULT_BATCH = 32
"""Samples of a batch where neither the model nor an option says how many."""

STDOUT_OPTIONS = ("metrics",)
"""Files that may be `-`, which is stdout."""

FILE_OPTIONS = ("output_file", "output_profile", "checkpoint", "html")
"""Files that cannot be stdout."""

READ_OPTIONS = ("model", "dataset", "labels", "evaluation", "evaluation_labels", "load_profile")
"""Files that are read."""


ROUNDED = tuple(name for name in declared(Quantization) if name != "bias_correction")
"""How a model is quantized that was trained for it: training takes the errors of biases out itself."""

NEEDED = {
    "checkpoint_every": "checkpoint",
    "resume": "checkpoint",
    "output_profile": "load_profile",
    **dict.fromkeys(DEPENDENT, "load_profile"),
}
"""Option → the one without which it means nothing."""


def parse_arguments(arguments: Sequence[str]) -> Namespace:
    """The options; raises `OptionError` for what makes no sense."""
    parser = new_parser(PROGRAM, DESCRIPTION, EXAMPLES)
    parser.add_argument("model", help="an .onnx file")
    _add_samples(parser.add_argument_group("samples"))
    _add_training(parser.add_argument_group("training"))
    _add_quantization(parser.add_argument_group("quantization"))
    _add_files(parser.add_argument_group("files (- is stdout, which then has nothing else)"))
    group = parser.add_argument_group("compilation")
    add_model_arguments(group)
    group.add_argument("--backend", metavar="NAME", help=f"what runs the model (default: {DEFAULT_BACKEND})")
    add_options(group, Policy, only=("threads",))
    add_options(group, CompilationOptions, only=("activation_percent",))
    add_image_arguments(parser.add_argument_group("images"))
    args = parser.parse_args(arguments)
    _check(args)
    return args


def _add_samples(group: ArgumentGroup) -> None:
    what = "arrays by the names of the inputs, and targets, whose first axis is one of samples"
    group.add_argument(
        "--dataset",
        required=True,
        metavar="FILE.npz|DIR",
        help=f"{what}; or a folder with a folder of images for each class, in the order of their names",
    )
    group.add_argument("--labels", metavar="FILE.npy", help="the targets of the data set, such as classes")
    group.add_argument("--evaluation", metavar="FILE.npz|DIR", help="samples to evaluate on behind each epoch")
    group.add_argument("--evaluation-labels", metavar="FILE.npy", help="their targets")


def _add_training(group: ArgumentGroup) -> None:
    group.add_argument(
        "--loss", choices=LOSSES, default="cross_entropy", help="that of the first output (default: %(default)s)"
    )
    group.add_argument("--optimizer", choices=OPTIMIZERS, default="adamw", help="(default: %(default)s)")
    for name, what in SETTINGS.items():
        group.add_argument(f"--{spelled(name)}", type=amount, metavar="X", help=f"{what} (default: the optimizer's)")
    group.add_argument(
        "--schedule",
        choices=SCHEDULES,
        default="constant",
        help="how the rate goes down to 0 until the last step (default: %(default)s)",
    )
    group.add_argument(
        "--warm-up", type=natural, default=0, metavar="N", help="steps in which the rate goes up first (default: 0)"
    )
    group.add_argument("--epochs", type=count, default=1, metavar="N", help="(default: %(default)s)")
    group.add_argument(
        "--batch-size",
        type=count,
        metavar="N",
        help=f"samples of a step, and size of the free first axes (default: the model's, or else {DEFAULT_BATCH})",
    )
    group.add_argument(
        "--accumulate",
        type=count,
        default=1,
        metavar="N",
        help="compute a batch in so many parts one after the other, in as much less memory (default: %(default)s)",
    )
    group.add_argument(
        "--processes",
        type=count,
        default=1,
        metavar="N",
        help="compute parts of a batch in so many processes at once, each with its --threads (default: %(default)s)",
    )
    group.add_argument("--seed", type=natural, default=0, metavar="N", help="of the orders (default: %(default)s)")
    group.add_argument(
        "--trainable",
        type=names,
        metavar="NAMES",
        help="initializers that are parameters, between commas, also as 'layer4.*' (default: all floats with axes, but "
        "running statistics)",
    )


def _add_quantization(group: ArgumentGroup) -> None:
    group.add_argument(
        "--load-profile",
        metavar="FILE",
        help="train with numbers rounded as those of the model that is quantized by a profile that glow-profile wrote",
    )
    group.add_argument(
        "--output-profile",
        metavar="FILE",
        help="where to write the profile as that of the trained model (default: its name with .profile.json)",
    )
    add_options(group, Quantization, only=ROUNDED)


def _add_files(group: ArgumentGroup) -> None:
    group.add_argument(
        "-o",
        "--output-file",
        metavar="FILE",
        help="where to write the trained model (default: the model's name with .trained.onnx)",
    )
    group.add_argument(
        "--checkpoint", metavar="FILE.safetensors", help="keep what training goes on from, behind each epoch"
    )
    group.add_argument("--checkpoint-every", type=count, metavar="N", help="and behind every so many steps")
    group.add_argument("--resume", action="store_true", help="go on from the checkpoint, if there is one")
    group.add_argument("--metrics", metavar="FILE.jsonl", help="write a JSON object in a line for each step and epoch")
    group.add_argument("--html", metavar="FILE", help="write a page with the curves behind each epoch")


def _check(args: Namespace) -> None:
    """Raise `OptionError` for options that do not go together."""
    for name, needed in NEEDED.items():
        if getattr(args, name, None) and getattr(args, needed) is None:
            raise OptionError(f"--{spelled(name)} needs --{spelled(needed)}")
    if args.evaluation_labels is not None and args.evaluation is None:
        raise OptionError("--evaluation-labels needs --evaluation")
    args.output_file = args.output_file or str(Path(Path(args.model).name).with_suffix(".trained.onnx"))
    if args.load_profile is not None and args.output_profile is None:
        args.output_profile = str(Path(args.output_file).with_suffix(".profile.json"))
    read = [found for name in READ_OPTIONS if (found := getattr(args, name)) is not None]
    check_written(args, read, STDOUT_OPTIONS, FILE_OPTIONS)
    for name in (*STDOUT_OPTIONS, *FILE_OPTIONS):
        path = getattr(args, name)
        if path not in (None, "-") and not Path(path).parent.is_dir():
            raise OptionError("cannot be written: there is no such folder", file=path, hint="make it first")
    if args.checkpoint is not None and not args.resume and Path(args.checkpoint).exists():
        hint = "--resume goes on from it; remove it to begin anew"
        raise OptionError("is there already", file=args.checkpoint, hint=hint)
    ranges = [name for name, size in args.bind if not isinstance(size, int)]
    if ranges:
        raise OptionError(f"--bind gives '{ranges[0]}' more than one size", hint="training is for one size")


def quantization_of(args: Namespace) -> Quantization | None:
    """How the model is to be quantized; `None` without a profile."""
    found = chosen_quantization(args)
    return None if found is None else replace(found, bias_correction=False)


def optimizer_of(args: Namespace, steps: int) -> Optimizer:
    """The optimizer in the options, for so many steps; raises `OptionError` for a setting that it does not have."""
    kind = OPTIMIZERS[args.optimizer]
    given: dict[str, Any] = {name: getattr(args, name) for name in SETTINGS if getattr(args, name) is not None}
    if unknown := given.keys() - {field.name for field in fields(kind)}:
        raise OptionError(f"the optimizer {args.optimizer} has no --{spelled(min(unknown))}")
    return kind(**given, schedule=schedule_of(args, steps))


def schedule_of(args: Namespace, steps: int) -> Schedule:
    """The schedule in the options, for so many steps; raises `OptionError` where the warm-up has them all."""
    if args.warm_up >= steps:
        raise OptionError(f"--warm-up has {args.warm_up} of the {steps} steps", hint="take fewer")
    schedule = SCHEDULES[args.schedule](steps)
    return WarmUp(args.warm_up) * schedule if args.warm_up else schedule
