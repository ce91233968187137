"""The options for quantization, under Glow's names."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace

from glow_mlir.options.quantization import Quantization
from glow_mlir.tools.arguments.option_arguments import add_options, destinations_of, given_options
from glow_mlir.tools.command_line import ArgumentGroup

DEPENDENT = destinations_of(Quantization)
"""Options that need a profile."""


WITHOUT_FILE = True
"""Value of the option that only prints the report."""


def report_file(text: str) -> str:
    """Parse the name of a report file; the suffix selects its format."""
    if not text.endswith((".json", ".html")):
        raise ArgumentTypeError(f"expected FILE.json or FILE.html, got '{text}'")
    return text


def add_quantization_arguments(group: ArgumentGroup, of_several: bool = False) -> None:
    """Add `--load-profile` and the related options; with `of_several`, a profile may name its model."""
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
        help="print precision, quantized range, SNR against f32, and time of each value, also in --json; "
        "write them with histograms",
    )


def chosen_quantization(args: Namespace) -> Quantization | None:
    """The quantization that the options select; `None` without a profile."""
    return None if args.load_profile is None else quantization_by(args, args.load_profile)


def quantization_by(args: Namespace, profile: str) -> Quantization:
    """The quantization that the options select, using the profile in a file."""
    return Quantization(profile, **given_options(args, Quantization))
