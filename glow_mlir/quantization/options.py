"""How a model is quantized, as users say it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from glow_mlir.errors import OptionError
from glow_mlir.support.kinds import FLAG, NAMES, PATH, TEXT, Kind, check_kinds, is_words

SCHEMAS = ("asymmetric", "symmetric", "symmetric-with-uint8", "symmetric-with-power2-scale")
"""How scale and zero point follow from a range."""

PRECISIONS: dict[str, int] = {"int8": 8, "int16": 16}
"""Precision → bits of a code."""

WEIGHTS: dict[str, int] = {"int8": 8, "int4": 4}
"""Precision of weights alone → bits of their codes, of which blocks have a scale."""

BIASES: dict[str, int] = {"int32": 32, "int8": 8}
"""Precision of a bias → bits of its codes."""

CALIBRATIONS = ("min-max", "percentile", "kl", "mse")
"""How a range follows from a histogram."""

_WORD = replace(TEXT, is_optional=False)

KINDS: Mapping[str, Kind] = {
    "profile": replace(PATH, is_optional=False),
    "schema": _WORD,
    "precision": _WORD,
    "bias": _WORD,
    "calibration": _WORD,
    "per_channel": FLAG,
    "keep": NAMES,
    "assert_all": FLAG,
    "calibrations": Kind("words by names", is_words, "{'x': 'kl'}", is_optional=False),
    "bias_correction": FLAG,
}
"""Option → what it may be."""


@dataclass(frozen=True)
class Quantization:
    """
    What the pass `quantize` is to do (docs/quantization.md): the options of `InferenceSession(quantize=...)`.

    `profile` is the path of a file that `glow-profile` wrote for the model. `keep` names nodes, or kinds of operators,
    that stay in floats, with `*` and `?`; with `assert_all` it is an error if others do. `calibrations` has those of
    single values, by names as the profile has them, with `*` and `?`. With `bias_correction`, what the rounding of
    weights adds to results on average is taken out of biases. Raises `OptionError` for a word that there is not, or
    for another type.
    """

    profile: str | os.PathLike[str]
    schema: str = SCHEMAS[0]
    precision: str = "int8"
    bias: str = "int32"
    calibration: str = CALIBRATIONS[0]
    per_channel: bool = True
    keep: Sequence[str] = ()
    assert_all: bool = False
    calibrations: Mapping[str, str] = field(default_factory=dict[str, str])
    bias_correction: bool = True

    def __post_init__(self) -> None:
        check_kinds(KINDS, vars(self))
        words = {"schema": SCHEMAS, "precision": PRECISIONS, "bias": BIASES, "calibration": CALIBRATIONS}
        given = [(name, getattr(self, name), known) for name, known in words.items()]
        given += [("calibration", calibration, CALIBRATIONS) for calibration in self.calibrations.values()]
        for name, word, known in given:
            if word not in known:
                raise OptionError(f"{name}='{word}' is not known", hint=f"one of {', '.join(known)}")
        if isinstance(self.keep, str):
            raise OptionError(f"keep='{self.keep}' is no list of nodes", hint=f"keep=['{self.keep}']")

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return PRECISIONS[self.precision]

    def pass_options(self) -> dict[str, str | bool | tuple[str, ...]]:
        """The options of the pass, as a pipeline has them."""
        words: dict[str, str | bool | tuple[str, ...]] = {
            "profile": os.fspath(self.profile),
            "schema": self.schema,
            "precision": self.precision,
            "bias": self.bias,
            "calibration": self.calibration,
            "per_channel": self.per_channel,
            "assert_all": self.assert_all,
            "bias_correction": self.bias_correction,
        }
        own = tuple(f"{name}={calibration}" for name, calibration in self.calibrations.items())
        lists = {"keep": tuple(self.keep), "calibrations": own}
        return words | {name: found for name, found in lists.items() if found}
