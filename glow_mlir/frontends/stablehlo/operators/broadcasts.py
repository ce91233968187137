"""The operations of CHLO whose operands broadcast, as those of `glow_high` do."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.dialects.stablehlo.rules import BROADCASTS
from glow_mlir.frontends.stablehlo.node import ComplexValue, StablehloNode, Value, parts_of, stablehlo_operator

OF_CHLO = frozenset({"next_after", "polygamma", "zeta"})
"""The operations on operands of one shape that are part of CHLO."""


@stablehlo_operator(*(f"chlo.broadcast_{name}" for name in (*BROADCASTS.split(), "compare", "select")))
def broadcast(node: StablehloNode) -> Value | Sequence[Value]:
    """An operation on operands that are repeated to one shape, by their last axes or by the axes that are named."""
    name = node.kind.removeprefix("chlo.broadcast_")
    operands = [node.value(position) for position in range(node.count)]
    rank = max(map(_rank, operands))
    aligned = [_aligned(node, value, rank) for value in operands]
    return node.delegated(f"{'chlo' if name in OF_CHLO else 'stablehlo'}.{name}", aligned)


def _rank(value: Value) -> int:
    return rank_of(parts_of(value)[0])


def _aligned(node: StablehloNode, value: Value, rank: int) -> Value:
    """A value with its axes where the named dimensions of `rank` are, which are by default the last ones."""
    if isinstance(value, ComplexValue):
        return node.complex(*(_aligned(node, part, rank) for part in (value.real, value.imaginary)))
    assert isinstance(value, SSAValue)
    own = sizes_of(value)
    dimensions = node.integers("broadcast_dimensions", range(rank - len(own), rank))
    if len(own) in (0, rank) or len(dimensions) != len(own):
        return value
    sizes = dict(zip(dimensions, own, strict=True))
    return node.reshaped(value, [sizes.get(axis, 1) for axis in range(rank)])
