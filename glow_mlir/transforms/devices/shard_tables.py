"""`shard-tables`: distribute the rows of a table over several devices."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.device import DEVICE, DeviceSpec
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, LessOp, MaxOp, MinOp, WhereOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import bytes_of, has_static_shape, rank_of, shape_of
from glow_mlir.ir import statistics
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.rewriting import replace
from glow_mlir.partitioning.sharing import share
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class ShardTablesPass(ModulePass):
    """
    Shard gathered tables of at least `least` bytes over the devices of the module: each device looks up its shard, and
    the right row is selected. Results are bit-identical.

    An out-of-range index is passed to the first or the last device and fails there. Gathers assigned to a device, also
    by the file `assignments`, stay whole. Devices that do not support the operators get no shard.
    """

    name = "shard-tables"

    least: int = 1 << 20
    assignments: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        share(op, self.assignments, self._is_large, _shard)

    def _is_large(self, op: Operation) -> bool:
        return isinstance(op, GatherOp) and bytes_of(op.input) >= self.least


def _shard(op: Operation, devices: Sequence[DeviceSpec], storage: Storage) -> None:
    """Shard the table of one gather, if it is a constant gathered by rows."""
    assert isinstance(op, GatherOp)
    is_table = storage.is_constant(op.input) and integer(op.axis) in (0, -rank_of(op.input))
    rows = shape_of(op.input)[0]
    if not is_table or rows < len(devices) or not has_static_shape(op.indices):
        return
    emit = Emitter(op, storage)
    edges = [rows * number // len(devices) for number in range(len(devices) + 1)]
    zero = emit.splat(0, op.indices)
    # Make negative indices count from the start; those still below 0 map behind the last row of the first shard.
    from_end = emit(AddOp, op.indices, _number(emit, rows, op))
    counted = emit(WhereOp, emit(LessOp, op.indices, zero), from_end, op.indices)
    found: list[SSAValue] = []
    for number, device in enumerate(devices):
        begin, end = edges[number], edges[number + 1]
        index = counted
        if number:
            index = emit(MaxOp, emit(AddOp, index, _number(emit, -begin, op)), zero)
        if number < len(devices) - 1:
            index = emit(MinOp, index, _number(emit, end - begin - 1, op))
        if not number:
            index = emit(WhereOp, emit(LessOp, counted, zero), _number(emit, end, op), index)
        starts, ends = (begin, *[0] * (rank_of(op.input) - 1)), (end, *shape_of(op.input)[1:])
        part = emit(SliceOp, op.input, starts=starts, ends=ends)
        rows_of_part = emit(GatherOp, part, index, axis=0)
        assert isinstance(rows_of_part.owner, Operation)
        rows_of_part.owner.attributes[DEVICE] = StringAttr(device.name)
        found.append(rows_of_part)
    result = found[-1]
    for number in range(len(devices) - 2, -1, -1):
        is_here = emit(LessOp, counted, _number(emit, edges[number + 1], op))
        result = emit(WhereOp, _by_rows(emit, is_here, op), found[number], result)
    replace(op, [result])
    statistics.count("tables split")


def _number(emit: Emitter, value: int, op: GatherOp) -> SSAValue:
    return emit.splat(value, op.indices)


def _by_rows(emit: Emitter, is_here: SSAValue, op: GatherOp) -> SSAValue:
    """Reshape a condition per index to broadcast over the elements of the gathered rows."""
    shape = (*shape_of(op.indices), *[1] * (rank_of(op.input) - 1))
    return emit(ReshapeOp, is_here, shape=shape)
