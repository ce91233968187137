"""Options of quantization."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from glow_mlir.errors import OptionError
from glow_mlir.options.declaration import Flag, Options, Words, declared, option
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.option_types import check_kinds

SCHEMAS = ("asymmetric", "symmetric", "symmetric-with-uint8", "symmetric-with-power2-scale")
"""The ways in which scale and zero point follow from a range."""

PRECISIONS: Mapping[str, int] = {"int8": 8, "int16": 16}
"""Precision → bits of a quantized value."""

WEIGHTS: Mapping[str, int | None] = {"same": None, "int4": 4}
"""Precision of weights → bits of their quantized values; `None` for as many as those that they are multiplied by."""

BIASES: Mapping[str, int] = {"int32": 32, "int8": 8}
"""Precision of a bias → bits of its quantized values."""

CALIBRATIONS = ("min-max", "percentile", "kl", "mse")
"""The ways in which a range follows from a histogram."""


@dataclass(frozen=True)
class Quantization(Options):
    """
    The options of the pass `quantize` (docs/quantization.md), and of `InferenceSession(quantize=...)`.

    `profile` is the path of a file that `glow-profile` wrote for the model. `keep` names nodes, or kinds of operators,
    that stay in floats, with `*` and `?`; with `assert_all` it is an error if others do. `calibrations` has the
    calibrations of single values, by their names in the profile, with `*` and `?`. With `bias_correction`, biases
    compensate the mean error of rounded weights. Raises `OptionError` for an unknown word, a wrong type, or a missing
    profile.
    """

    GROUP = "quantization"

    profile: str | os.PathLike[str] = option(
        "", "the file that `glow-profile` wrote for the model", within="--load-profile"
    )
    schema: str = option(
        SCHEMAS[0],
        "how scale and zero point follow from a range",
        domain=Words(SCHEMAS),
        flag=Flag("--quantization-schema", default_text=SCHEMAS[0]),
    )
    precision: str = option(
        "int8",
        "integer type of quantized values",
        domain=Words(tuple(PRECISIONS)),
        flag=Flag("--quantization-precision", default_text="int8"),
    )
    weights: str = option(
        "same",
        "integers that weights are rounded to: those of `precision`, or from -7 to 7",
        domain=Words(tuple(WEIGHTS)),
        flag=Flag("--quantization-precision-weights", default_text="same"),
    )
    bias: str = option(
        "int32",
        "integers that a bias is rounded to",
        domain=Words(tuple(BIASES)),
        flag=Flag("--quantization-precision-bias", default_text="int32"),
    )
    calibration: str = option(
        CALIBRATIONS[0],
        "how a range follows from a histogram",
        domain=Words(CALIBRATIONS),
        flag=Flag("--quantization-calibration", default_text=CALIBRATIONS[0]),
    )
    per_channel: bool = option(
        True,
        "one scale for each output channel of the weights",
        flag=Flag(
            "--disable-channelwise",
            opposite="one scale for all weights of a node, instead of one for each output channel",
        ),
    )
    keep: Sequence[str] = option(
        (),
        "nodes or operators that stay in floats; * and ? are wildcards",
        flag=Flag("--keep-original-precision-for-nodes", "NAMES", also="between commas"),
    )
    assert_all: bool = option(
        False,
        "fail and list the nodes that stay in floats although they are not kept",
        flag=Flag("--assert-all-nodes-quantized"),
    )
    calibrations: Mapping[str, str] = option(
        dict, "the calibrations of single values, by their names in the profile, with * and ?"
    )
    bias_correction: bool = option(
        True,
        "biases compensate the mean error of rounded weights",
        flag=Flag(
            "--disable-bias-correction",
            opposite="leave biases as they are, instead of compensating the mean error of rounded weights",
        ),
    )

    def __post_init__(self) -> None:
        options = declared(Quantization)
        check_kinds({name: replace(item.kind, is_optional=False) for name, item in options.items()}, vars(self))
        super().__post_init__()
        if not os.fspath(self.profile):
            raise OptionError("Quantization() needs a profile", hint="Quantization('model.profile.json')")
        for calibration in self.calibrations.values():
            Words(CALIBRATIONS).check("calibration", calibration)
        if isinstance(self.keep, str):
            raise OptionError(f"keep='{self.keep}' is no list of nodes", hint=f"keep=['{self.keep}']")

    @property
    def bits(self) -> int:
        """Bits of a quantized value."""
        return PRECISIONS[self.precision]

    @property
    def weight_bits(self) -> int:
        """Bits of the quantized values of weights."""
        return WEIGHTS[self.weights] or self.bits
