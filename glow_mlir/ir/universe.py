"""The entry point `xdsl.universe` for xDSL's tools: our dialects and passes, imported by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.transforms import get_all_passes
from xdsl.universe import Universe

DIALECTS: dict[str, str] = {
    "chlo": "glow_mlir.dialects.stablehlo.dialect:CHLO",
    "glow": "glow_mlir.dialects.glow:GLOW",
    "glow_high": "glow_mlir.dialects.glow_high.dialect:GLOW_HIGH",
    "glow_low": "glow_mlir.dialects.glow_low.dialect:GLOW_LOW",
    "quant": "glow_mlir.dialects.quant:QUANT",
    "sdy": "glow_mlir.dialects.stablehlo.sharding:SDY",
    "stablehlo": "glow_mlir.dialects.stablehlo.dialect:STABLEHLO",
}
"""Dialect → module that defines it."""

_PACKAGES: dict[str, str] = {
    "transforms.graph": (
        "apply-patterns bin-trees canonicalize collapse-layers count-trips cse deduplicate expand-powers "
        "flatten-convolutions fold-constants fold-dilated-convolutions fold-into-trees fold-into-weights "
        "fold-transposes-into-matmul fold-transposes-into-pools gather-to-slice hoist-from-loops lower "
        "merge-arithmetic merge-matmuls merge-pads merge-reductions raise-clips raise-gathers "
        "recognize-activations recognize-attention recognize-grouped-products recognize-normalization "
        "recognize-softmax remove-identity-clips "
        "shrink-splats simplify-control-flow simplify-convolutions sink-clips sink-conversions "
        "sink-from-loops sink-reshapes sink-transposes split-products split-windows "
        "unroll-loops"
    ),
    "transforms.quantization": (
        "convert-precision equalize-channels fold-quantization lower-quantization quantize quantize-weights"
    ),
    "transforms.memory": (
        "allocate decompose-data-movement eliminate-copies eliminate-dead-stores rematerialize "
        "remove-unused-storage schedule share-buffers shorten-lifetimes tile-lines"
    ),
    "transforms.instructions": (
        "expand-layers fuse-epilogues fuse-prologues instrument-debug instrument-profile parameterize-scalars select "
        "stack"
    ),
    "transforms.devices": (
        "assign-devices assign-target insert-events insert-transfers partition place-operators shard-tables split-batch"
    ),
    "transforms.verification": (
        "verify-allocated verify-host-program verify-low verify-lowered verify-partitioned verify-selected"
    ),
    "differentiation": "differentiate",
    "conversion": "glow-high-to-glow-low",
    "codegen": "check-races glow-low-to-scf raise-alignments scf-to-llvm verify-structured",
}
"""Package → its passes; `fuse-epilogues` is the class `FuseEpiloguesPass` of the file `fuse_epilogues.py` there."""

PASSES: dict[str, str] = {
    name: f"glow_mlir.{package}.{name.replace('-', '_')}:{name.title().replace('-', '')}Pass"
    for package, names in _PACKAGES.items()
    for name in names.split()
}
"""Pass → module that defines it."""


def _load(entry_point: str) -> Any:
    module, name = entry_point.split(":")
    return getattr(import_module(module), name)


def _lazy(entry_point: str) -> Callable[[], Any]:
    return lambda: _load(entry_point)


def pass_class(name: str) -> type[ModulePass]:
    """The class of one of our passes."""
    return _load(PASSES[name])


def dialect(name: str) -> Dialect:
    """One of our dialects."""
    return _load(DIALECTS[name])


OWN_PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    name: _lazy(entry_point) for name, entry_point in PASSES.items()
}
"""Pass → its class. In our tools, our pass replaces one of xDSL's with the same name."""

GLOW_UNIVERSE = Universe(
    all_dialects={name: _lazy(entry_point) for name, entry_point in DIALECTS.items()},
    all_passes={name: load for name, load in OWN_PASSES.items() if name not in get_all_passes()},
)
"""Our dialects and passes for `xdsl-opt`, which rejects names that it already has."""
