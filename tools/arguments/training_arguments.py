"""The options of `glow-train`, and the losses, optimizers and schedules that they select."""

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

Each epoch shuffles the samples by --seed and the epoch's number. Samples that do not fill a last batch are left out of
that epoch, and may be in the next. Evaluation, after each epoch, counts every sample.

Ctrl-C and SIGTERM end training after the current step, with a complete checkpoint and exit code 130. --resume
continues, with bitwise the same result as training without the break."""

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
"""Name of a schedule in the tool → the function that makes the schedule for a number of steps."""

SETTINGS = {
    "learning_rate": "the base learning rate",
    "weight_decay": "the fraction by which each step shrinks a parameter, at a rate of 1",
    "momentum": "the fraction of the previous direction that a step keeps",
    "clip_norm": "the largest norm of all gradients together; larger gradients are scaled down to it",
}
"""Option for a field of optimizers → its help text."""

DEFAULT_BATCH = 32
"""The batch size where neither the model nor an option gives one."""

STDOUT_OPTIONS = ("metrics",)
"""Files that may be `-`, which is stdout."""

FILE_OPTIONS = ("output_file", "output_profile", "checkpoint", "html")
"""Files that cannot be stdout."""

READ_OPTIONS = ("model", "dataset", "labels", "evaluation", "evaluation_labels", "load_profile")
"""Files that are inputs."""


ROUNDED = tuple(name for name in declared(Quantization) if name != "bias_correction")
"""How to quantize a model that is trained for it: training compensates the errors of biases itself."""

NEEDED = {
    "checkpoint_every": "checkpoint",
    "resume": "checkpoint",
    "output_profile": "load_profile",
    **dict.fromkeys(DEPENDENT, "load_profile"),
}
"""Option → the option that it requires."""


def parse_arguments(arguments: Sequence[str]) -> Namespace:
    """Parse the options; raises `OptionError` for invalid ones."""
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
    what = "arrays named after the inputs, and targets, whose first axis counts samples"
    group.add_argument(
        "--dataset",
        required=True,
        metavar="FILE.npz|DIR",
        help=f"{what}; or a folder with a folder of images for each class, in the order of their names",
    )
    group.add_argument("--labels", metavar="FILE.npy", help="the targets of the data set, such as classes")
    group.add_argument("--evaluation", metavar="FILE.npz|DIR", help="samples to evaluate on after each epoch")
    group.add_argument("--evaluation-labels", metavar="FILE.npy", help="their targets")


def _add_training(group: ArgumentGroup) -> None:
    group.add_argument(
        "--loss", choices=LOSSES, default="cross_entropy", help="the loss of the first output (default: %(default)s)"
    )
    group.add_argument("--optimizer", choices=OPTIMIZERS, default="adamw", help="(default: %(default)s)")
    for name, what in SETTINGS.items():
        group.add_argument(f"--{spelled(name)}", type=amount, metavar="X", help=f"{what} (default: the optimizer's)")
    group.add_argument(
        "--schedule",
        choices=SCHEDULES,
        default="constant",
        help="how the rate decays to 0 by the last step (default: %(default)s)",
    )
    group.add_argument(
        "--warm-up", type=natural, default=0, metavar="N", help="steps in which the rate first rises (default: 0)"
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
        help="split each batch into N parts, computed one after the other with less memory (default: %(default)s)",
    )
    group.add_argument(
        "--processes",
        type=count,
        default=1,
        metavar="N",
        help="split each batch over N processes that run at once, each with its --threads (default: %(default)s)",
    )
    group.add_argument(
        "--seed", type=natural, default=0, metavar="N", help="seed of the sample orders (default: %(default)s)"
    )
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
        help="train with the rounding of the model quantized by this profile from glow-profile",
    )
    group.add_argument(
        "--output-profile",
        metavar="FILE",
        help="where to write the profile of the trained model (default: its name with .profile.json)",
    )
    add_options(group, Quantization, only=ROUNDED)


def _add_files(group: ArgumentGroup) -> None:
    group.add_argument(
        "-o",
        "--output-file",
        metavar="FILE",
        help="where to write the trained model (default: the model's name with .trained.onnx)",
    )
    group.add_argument("--checkpoint", metavar="FILE.safetensors", help="write the state of training after each epoch")
    group.add_argument("--checkpoint-every", type=count, metavar="N", help="also write a checkpoint every N steps")
    group.add_argument("--resume", action="store_true", help="continue from the checkpoint, if it exists")
    group.add_argument("--metrics", metavar="FILE.jsonl", help="write one JSON object per line for each step and epoch")
    group.add_argument("--html", metavar="FILE", help="write a page with the curves after each epoch")


def _check(args: Namespace) -> None:
    """Raise `OptionError` for options that exclude each other."""
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
        hint = "--resume continues from it; remove it to start over"
        raise OptionError("is there already", file=args.checkpoint, hint=hint)
    ranges = [name for name, size in args.bind if not isinstance(size, int)]
    if ranges:
        raise OptionError(f"--bind gives '{ranges[0]}' more than one size", hint="training is for one size")


def quantization_of(args: Namespace) -> Quantization | None:
    """The quantization of the model; `None` without a profile."""
    found = chosen_quantization(args)
    return None if found is None else replace(found, bias_correction=False)


def optimizer_of(args: Namespace, steps: int) -> Optimizer:
    """The optimizer for `steps` steps; raises `OptionError` for a setting that it does not have."""
    kind = OPTIMIZERS[args.optimizer]
    given: dict[str, Any] = {name: getattr(args, name) for name in SETTINGS if getattr(args, name) is not None}
    if unknown := given.keys() - {field.name for field in fields(kind)}:
        raise OptionError(f"the optimizer {args.optimizer} has no --{spelled(min(unknown))}")
    return kind(**given, schedule=schedule_of(args, steps))


def schedule_of(args: Namespace, steps: int) -> Schedule:
    """The schedule for `steps` steps; raises `OptionError` where the warm-up takes all of them."""
    if args.warm_up >= steps:
        raise OptionError(f"--warm-up has {args.warm_up} of the {steps} steps", hint="take fewer")
    schedule = SCHEDULES[args.schedule](steps)
    return WarmUp(args.warm_up) * schedule if args.warm_up else schedule
