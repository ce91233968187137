"""The importers of PyTorch's operators by name: functions with the same arguments as the operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from glow_mlir.dialects.glow_high.base import HighOp

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from glow_mlir.frontends.torch.node import TorchNode

    Built = SSAValue | Sequence[SSAValue | None]

Importer = Callable[..., Any]
"""Takes the node and the arguments of the operator, with tensors as values; returns the results as values."""

Function = TypeVar("Function", bound=Importer)

FAMILIES = (
    "activations",
    "arithmetic",
    "attention",
    "batch_normalization",
    "convolution",
    "creation",
    "cumulative",
    "data_movement",
    "distances",
    "elementwise",
    "embeddings",
    "gradients",
    "grouped_products",
    "histograms",
    "indexing",
    "linear",
    "logic",
    "losses",
    "normalization",
    "number_theory",
    "padding",
    "polynomials",
    "pooling",
    "quantization",
    "random_numbers",
    "recurrent",
    "reductions",
    "regions",
    "resize",
    "sampling",
    "scattering",
    "searching",
    "segment_reductions",
    "selection",
    "sorting",
    "special_functions",
    "statistics",
    "strides",
    "triangular",
)
"""The modules that define importers."""

IMPORTERS: dict[str, Importer] = {}
"""Name of an operator, such as `aten.add.Tensor` → its importer."""


def torch_operator(*names: str) -> Callable[[Function], Function]:
    """Register a function as the importer of operators; names without a library belong to `aten`."""

    def register(function: Function) -> Function:
        for name in names:
            full = name if name.count(".") > 1 else f"aten.{name}"
            assert full not in IMPORTERS, f"{full} has two importers"
            IMPORTERS[full] = function
        return function

    return register


def importer_of(target: str) -> Importer | None:
    """The importer of an operator, `None` if there is none."""
    _load_families()
    return IMPORTERS.get(target)


@cache
def _load_families() -> None:
    """Import the modules that define importers."""
    for family in FAMILIES:
        import_module(f"glow_mlir.frontends.torch.{family}")


def plain(operator: type[HighOp], **properties: Any) -> Importer:
    """The importer of a unary operator that equals one of ours, computed in the element type of the result."""

    def run(node: TorchNode, value: SSAValue) -> SSAValue:
        return node.emit(operator, node.cast(value, node.element), **properties)

    return run
