"""Options of compilation, shared by all tools and sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from glow_mlir.options.declaration import Flag, Options, Range, Words, option
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.option_types import Kind, made_by, of
from glow_mlir.support.symbols import GivenDimension

if TYPE_CHECKING:
    from glow_mlir.options.quantization import Quantization

FULL_PRECISION = "f32"
"""The precision of models as they are."""

WEIGHTS: Mapping[str, int] = {"int8": 8, "int4": 4}
"""Precision of weights alone → bits of their quantized values, which have a scale for each block."""


@dataclass(frozen=True, eq=False, repr=False)
class ModelOptions(Options):
    """How a model is read."""

    GROUP = "model"

    dimensions: Mapping[str, GivenDimension] = option(
        dict,
        "the sizes of free dimensions by their names",
        kind=Kind("sizes by the names of dimensions", of(Mapping), "{'batch': 1}"),
        within="--bind",
    )
    strict: bool = option(
        False,
        "reject wrong declarations of an ONNX model, such as output shapes that contradict its nodes, instead of a "
        "warning",
        flag=Flag("--strict"),
    )


@dataclass(frozen=True, eq=False, repr=False)
class CompilationOptions(Options):
    """The options of a compilation on any machine; `fields` override the target of its functions."""

    GROUP = "compilation"

    backend: str = option(
        help="the backend that compiles and runs the model: by default the module's, else `cpu`", within="--backend"
    )
    target: str | None = option(
        None,
        "the target of functions without one: its name, with other values for some fields",
        within="--target",
    )
    fields: Mapping[str, str | int] = option(
        dict,
        "fields of the target to override",
        kind=Kind("values by the names of fields", of(Mapping), ""),
        is_keyword=False,
    )
    profile: bool = option(False, "keep the time of each instruction", within="--profile")
    disable: Sequence[str] = option((), "passes to leave out, at all their occurrences", within="--disable-passes")
    precision: str = option(
        FULL_PRECISION,
        "the type in which f32 values are computed and stored",
        domain=Words((FULL_PRECISION, "bf16", "f16")),
        flag=Flag("--precision", default_text=FULL_PRECISION),
    )
    weights: str = option(
        FULL_PRECISION,
        "the type in which f32 weights are stored; integers have a scale for each 32",
        domain=Words((FULL_PRECISION, *WEIGHTS)),
        flag=Flag("--weights", default_text=FULL_PRECISION),
    )
    keep_precision: tuple[str, ...] = option(
        (),
        "nodes or operators that keep their precision; * and ? are wildcards",
        flag=Flag("--keep-precision-for-nodes", "NAMES", also="between commas"),
    )
    activation_percent: int = option(
        100,
        "limit of activation memory: beyond it, values kept for gradients are recomputed",
        domain=Range(1, 100, "percentage"),
        flag=Flag("--activation-percent", "N"),
    )
    quantize: Quantization | None = option(
        None,
        "quantization: its profile and how values are quantized",
        kind=Kind(
            "a Quantization", made_by("glow_mlir.options.quantization", "Quantization"), "Quantization('profile.json')"
        ),
        within="--load-profile",
    )
    tune: bool = option(
        False,
        "choose kernels by measuring them; slow the first time, results are cached for all models",
        flag=Flag("--tune"),
    )
    reuse_inputs: bool = option(
        False,
        "inputs and outputs of a bundle lie in its activation memory",
        is_keyword=False,
        within="--reuse-inputs",
    )
