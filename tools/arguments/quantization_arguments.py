"""The options that say how a model is quantized, under Glow's names."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace

from glow_mlir.options.quantization import Quantization
from glow_mlir.tools.arguments.option_arguments import add_options, destinations_of, given_options
from glow_mlir.tools.command_line import ArgumentGroup

DEPENDENT = destinations_of(Quantization)
"""Options that mean nothing without a profile."""


WITHOUT_FILE = True
"""A report that is printed alone."""


def report_file(text: str) -> str:
    """The name of a file whose kind says what a report is written as."""
    if not text.endswith((".json", ".html")):
        raise ArgumentTypeError(f"expected FILE.json or FILE.html, got '{text}'")
    return text


def add_quantization_arguments(group: ArgumentGroup, of_several: bool = False) -> None:
    """Add `--load-profile`, that of one of several models if there may be such, and what goes with it or without."""
    group.add_argument(
        "--load-profile",
        metavar="[ENTRY=]FILE" if of_several else "FILE",
        action="append" if of_several else "store",
        help="quantize the model by a profile that glow-profile wrote",
    )
    group.add_argument(
        "--load-configuration", metavar="FILE", help="compute each node in the precision that glow-tune found"
    )
    add_options(group, Quantization)
    group.add_argument(
        "--quantization-report",
        nargs="?",
        type=report_file,
        const=WITHOUT_FILE,
        metavar="FILE.json|FILE.html",
        help="print precision, quantized range, signal to noise beside f32, and time of each value, in --json too; "
        "write them with histograms",
    )


def chosen_quantization(args: Namespace) -> Quantization | None:
    """What the options ask for; `None` without a profile."""
    return None if args.load_profile is None else quantization_by(args, args.load_profile)


def quantization_by(args: Namespace, profile: str) -> Quantization:
    """What the options ask for, by the profile in a file."""
    return Quantization(profile, **given_options(args, Quantization))
