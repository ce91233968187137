"""
Packages of operators: where the parts of operators are found, for built-in ones and for other distributions alike.

A distribution offers operators by an entry point of the group `glow_mlir.operators` that names an `OperatorPackage`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType


@dataclass(frozen=True)
class OperatorPackage:
    """Names of the modules that define the parts of some operators; each is imported only when its part is needed."""

    operators: tuple[str, ...] = ()
    """Modules with the operator classes, subclasses of `HighOp`."""
    semantics: tuple[str, ...] = ()
    """Modules with functions registered by `@semantics`."""
    importers: tuple[str, ...] = ()
    """Modules with functions registered by `@onnx_operator`."""
    lowerings: tuple[str, ...] = ()
    """Modules with functions registered by `@lowering`."""
    kernels: tuple[str, ...] = ()
    """Modules with functions registered by `@kernel`."""
    backends: tuple[str, ...] = ()
    """Modules with classes registered by `@backend`."""


def _modules(prefix: str, names: str) -> tuple[str, ...]:
    return tuple(f"{prefix}.{name}" for name in names.split())


BUILTIN = OperatorPackage(
    operators=_modules(
        "glow_mlir.dialects.glow_high",
        "storage elementwise_math activations elementwise_binary convolution linear pooling "
        "normalization data_movement indexing resize reductions recurrence recurrent",
    ),
    semantics=_modules(
        "glow_mlir.interpreter",
        "storage convolution linear pooling normalization data_movement indexing resize reductions recurrent",
    ),
    importers=_modules(
        "glow_mlir.frontends.onnx",
        "elementwise convolution linear pooling normalization data_movement constants control_flow indexing resize "
        "reductions recurrent",
    ),
    lowerings=_modules(
        "glow_mlir.transforms.lowerings",
        "linear normalization resize convolution reductions recurrent padding",
    ),
    kernels=_modules(
        "glow_mlir.codegen.kernels",
        "elementwise conv matmul reductions normalization pooling data_movement indexing top_k resize recurrent",
    ),
    backends=_modules("glow_mlir.backends", "cpu.backend interpreter.backend"),
)


@cache
def packages() -> tuple[OperatorPackage, ...]:
    """The built-in package, then those of installed distributions in the order of their names."""
    found = sorted(entry_points(group="glow_mlir.operators"), key=lambda point: point.name)
    return (BUILTIN, *(point.load() for point in found))


def load_part(part: str) -> Iterator[ModuleType]:
    """Import the modules of one part (a field of `OperatorPackage`) of every package."""
    for package in packages():
        for name in getattr(package, part):
            yield import_module(name)
