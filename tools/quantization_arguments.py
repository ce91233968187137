"""The options that say how a model is quantized, under Glow's names."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace

from glow_mlir.quantization.options import BIASES, CALIBRATIONS, PRECISIONS, SCHEMAS, Quantization
from glow_mlir.tools.command_line import ArgumentGroup
from glow_mlir.tools.ladder_arguments import names

DEPENDENT = (
    "quantization_schema",
    "quantization_precision",
    "quantization_precision_bias",
    "quantization_calibration",
    "keep_original_precision_for_nodes",
    "disable_channelwise",
    "disable_bias_correction",
    "assert_all_nodes_quantized",
)
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
    words = {
        "--quantization-schema": ("how scale and zero point follow from a range", SCHEMAS),
        "--quantization-precision": ("integers that codes are stored in", tuple(PRECISIONS)),
        "--quantization-precision-bias": ("integers that a bias is rounded to", tuple(BIASES)),
        "--quantization-calibration": ("how a range follows from a histogram", CALIBRATIONS),
    }
    for option, (text, choices) in words.items():
        group.add_argument(option, choices=choices, help=f"{text} (default: {choices[0]})")
    group.add_argument(
        "--disable-channelwise",
        action="store_const",
        const=True,
        help="one scale for all weights of a node, instead of one for each channel of its result",
    )
    group.add_argument(
        "--disable-bias-correction",
        action="store_const",
        const=True,
        help="leave biases as they are, instead of taking out what the rounding of weights adds on average",
    )
    group.add_argument(
        "--keep-original-precision-for-nodes",
        type=names,
        metavar="NAMES",
        help="nodes or kinds of operators that stay in floats, with * and ?, between commas",
    )
    group.add_argument(
        "--assert-all-nodes-quantized",
        action="store_const",
        const=True,
        help="fail, with a list, where nodes that are not kept stay in floats",
    )
    group.add_argument(
        "--quantization-report",
        nargs="?",
        type=report_file,
        const=WITHOUT_FILE,
        metavar="FILE.json|FILE.html",
        help="print precision, codes, signal to noise beside f32, and time of each value, in --json too; "
        "write them with histograms",
    )


def chosen_quantization(args: Namespace) -> Quantization | None:
    """What the options ask for; `None` without a profile."""
    return None if args.load_profile is None else quantization_by(args, args.load_profile)


def quantization_by(args: Namespace, profile: str) -> Quantization:
    """What the options ask for, by the profile in a file."""
    return Quantization(
        profile,
        args.quantization_schema or SCHEMAS[0],
        args.quantization_precision or next(iter(PRECISIONS)),
        args.quantization_precision_bias or next(iter(BIASES)),
        args.quantization_calibration or CALIBRATIONS[0],
        not args.disable_channelwise,
        args.keep_original_precision_for_nodes or (),
        bool(args.assert_all_nodes_quantized),
        bias_correction=not args.disable_bias_correction,
    )
