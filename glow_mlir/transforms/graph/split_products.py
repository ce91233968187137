"""`split-products`: split products by columns or channels over several devices."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.backends.interface import costs_of
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.device import DEVICE, DeviceSpec
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, SliceOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import has_static_shape, rank_of, shape_of
from glow_mlir.dialects.windows import channel_axis
from glow_mlir.ir import statistics
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.rewriting import replace
from glow_mlir.partitioning.sharing import share
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class SplitProductsPass(ModulePass):
    """
    Split products with constant weights over the devices of the module, by columns or output channels: each device has
    its slice of the weights, and the results are concatenated (tensor parallelism; M. Shoeybi et al., arXiv 1909.08053,
    for columns).

    Products of fewer than `least` multiply-adds stay whole, and so do products of weights that are not constant, and
    those assigned to a device, also by the file `assignments`. Devices that do not support a product get no slice.
    """

    name = "split-products"

    least: int = 1 << 20
    assignments: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        share(op, self.assignments, self._is_large, _split)

    def _is_large(self, op: Operation) -> bool:
        is_product = isinstance(op, ConvOp | FullyConnectedOp | MatMulOp)
        return is_product and op.arithmetic().operations >= self.least


def _split(op: Operation, devices: Sequence[DeviceSpec], storage: Storage) -> None:
    """Split a product of constant weights with enough columns for vectors."""
    assert isinstance(op, ConvOp | FullyConnectedOp | MatMulOp)
    if not has_static_shape(op.results[0]):
        return
    operands = _along_columns(op)
    if operands is None or not all(storage.is_constant(value) for value, _ in operands):
        return
    weights, axis = operands[0]
    columns = shape_of(weights)[axis]
    lanes = max(costs_of(device.target).channel_lanes for device in devices)
    edges = column_edges(columns, len(devices), lanes)
    if len(edges) < 3:
        return
    emit = Emitter(op, storage)
    parts: list[SSAValue] = []
    for device, begin, end in zip(devices, edges, edges[1:], strict=False):
        changed = {value: _slice(emit, value, along, begin, end) for value, along in operands}
        properties: dict[str, AttributeValue | None] = {
            name: value for name, value in op.properties.items() if name != "operandSegmentSizes"
        }
        values = [changed.get(value, value) for value in op.operands]
        part = emit(type(op), *values, **properties)
        assert isinstance(part.owner, HighOp)
        part.owner.attributes[DEVICE] = StringAttr(device.name)
        parts.append(part)
    last = channel_axis(rank_of(op.results[0]), op.layout) if isinstance(op, ConvOp) else -1
    replace(op, [emit(ConcatOp, parts, axis=last % rank_of(op.results[0]))])
    statistics.count("products split")


def _along_columns(op: ConvOp | FullyConnectedOp | MatMulOp) -> list[tuple[SSAValue, int]] | None:
    """
    The operands with one slice per column range, weights first, and their axes; `None` if the product cannot be split.
    """
    if isinstance(op, FullyConnectedOp):
        return [(op.weights, 1), (op.bias, 0)]
    if isinstance(op, ConvOp):
        return [(op.filter, 0), *_bias(op)] if integer(op.group) == 1 else None
    axis = rank_of(op.right) - (2 if flag(op.transpose_right) else 1)
    return [(op.right, axis), *_bias(op)]


def _bias(op: ConvOp | MatMulOp) -> list[tuple[SSAValue, int]]:
    return [] if op.bias is None else [(op.bias, 0)]


def column_edges(columns: int, count: int, lanes: int) -> list[int]:
    """The column boundaries of about equal parts that are full vectors."""
    vectors = -(-columns // lanes)
    edges = [min(columns, vectors * number // count * lanes) for number in range(count + 1)]
    return [edge for number, edge in enumerate(edges) if not number or edge > edges[number - 1]]


def _slice(emit: Emitter, value: SSAValue, axis: int, begin: int, end: int) -> SSAValue:
    """A slice of a constant along an axis."""
    starts, ends = [0] * rank_of(value), list(shape_of(value))
    starts[axis], ends[axis] = begin, end
    return emit(SliceOp, value, starts=tuple(starts), ends=tuple(ends))
