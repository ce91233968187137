"""Offsets of changes of scale that are the biases of the products in front of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.ir import Operation, SSAValue

from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.quantization import IntegerRescaleOp
from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.dialects.shapes import shape_of

Known = Callable[[SSAValue], np.ndarray | None]

Biases = tuple[dict[Operation, np.ndarray], set[Operation]]
"""Product → its bias; and the changes of scale whose offset that is."""


def biases_of(function: FunctionOp, known: Known) -> Biases:
    """
    The products of codes whose sums are read by one `integer_rescale` alone, and its offset.

    NPUs add a bias to the sums of a product for nothing. The sum of both has 32 bits there.
    """
    biases: dict[Operation, np.ndarray] = {}
    taken: set[Operation] = set()
    for op in function.block.ops:
        if not isinstance(op, IntegerRescaleOp) or op.offset is None:
            continue
        product, offset = _product(op.input), known(op.offset)
        if product is None or offset is None:
            continue
        channels = shape_of(op.input)[-1]
        if offset.size not in (1, channels) or (offset.ndim and offset.shape[-1] not in (1, channels)):
            continue
        biases[product] = np.broadcast_to(offset.reshape(-1), (channels,))
        taken.add(op)
    return biases, taken


def _product(value: SSAValue) -> ConvOp | MatMulOp | None:
    """The product whose sums a value has, with channels last; `None` where others read them or a bias is there."""
    while value.has_one_use() and isinstance(value.owner, ReshapeOp):
        source = value.owner.input
        if shape_of(source)[-1:] != shape_of(value)[-1:]:
            return None
        value = source
    owner = value.owner
    if not isinstance(owner, ConvOp | MatMulOp) or not value.has_one_use():
        return None
    return owner if owner.bias is None else None
