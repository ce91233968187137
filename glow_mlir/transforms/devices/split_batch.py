"""`split-batch`: distribute the samples of a batch over several devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.device import DEVICE, DeviceSpec, devices_of
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.independence import Runs
from glow_mlir.dialects.glow_high.storage import FuncOp
from glow_mlir.dialects.shapes import Shape, rank_of, shape_of
from glow_mlir.ir import statistics
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.entries import entries_of, symbols_in
from glow_mlir.ir.locations import location_names
from glow_mlir.ir.traversal import own_operations
from glow_mlir.partitioning.batch_axes import BatchAxes, Operands, batch_axes
from glow_mlir.partitioning.operators import pinned
from glow_mlir.partitioning.placement_file import read_placement
from glow_mlir.partitioning.support import Support
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class SplitBatchPass(ModulePass):
    """
    Split the batch of each function over the devices of the module: each runs the whole model on some samples, and the
    results are concatenated (data parallelism).

    The batch is the first axis of the inputs; its size is the most frequent one among inputs and outputs. Shares differ
    by one sample at most. Operators that do not depend on the batch stay as they are, and so do operators assigned to a
    device, also by the file `assignments`. Devices that do not support an operator get no samples. A function with
    sizes that are known only at run time stays whole. Raises `UnsupportedError` as `batch_axes` does.
    """

    name = "split-batch"

    assignments: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        devices, storage = devices_of(op), Storage(op)
        if len(devices) < 2:
            return
        support, wanted_devices = Support(storage), read_placement(self.assignments, devices)
        for function in entries_of(op):
            if not isinstance(function, FuncOp) or symbols_in(function):
                continue
            found = batch_axes(function, storage)
            if found is None:
                continue
            shared = {
                item: operands
                for item, operands in found.operands.items()
                if pinned(item) is None and wanted_devices.keys().isdisjoint(location_names(item.location))
            }
            able = [device for device in devices if not any(support.refusal(item, device) for item in shared)]
            if len(able) > 1:
                _Shares(found, able[: found.samples], storage, shared).run(function)


@dataclass
class _Shares:
    """The rewriting of a function whose batch is split."""

    axes: BatchAxes
    devices: Sequence[DeviceSpec]
    storage: Storage
    shared: dict[HighOp, Operands]
    """The operators that are copied per device, with the sample layout of their operands."""
    parts: dict[tuple[SSAValue, Runs], list[SSAValue | None]] = field(
        default_factory=dict[tuple[SSAValue, Runs], "list[SSAValue | None]"]
    )
    """Value and its sample layout → the slice of each device, if it exists."""
    wholes: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Split value → the concatenated value."""

    def run(self, function: FuncOp) -> None:
        """Copy the split operators to each device, and erase the originals."""
        for op in list(own_operations(function)):
            if isinstance(op, HighOp) and op in self.shared:
                for number in range(len(self.devices)):
                    self._copy(op, number)
            else:
                op.operands = [self._whole(value, op) for value in op.operands]
        for op in reversed(self.shared):
            Rewriter.erase_op(op)
        statistics.count("operators split", len(self.shared))

    def _edges(self, number: int) -> tuple[int, int]:
        """The range of samples of a device: first, and one past the last."""
        least, more = divmod(self.axes.samples, len(self.devices))
        begin, end = (position * least + min(position, more) for position in (number, number + 1))
        return begin, end

    def _copy(self, op: HighOp, number: int) -> None:
        """Copy an operator for the samples of a device."""
        begin, end = self._edges(number)
        operands = [
            value if runs is None else self._part(value, runs, number, op)
            for value, runs in zip(op.operands, self.shared[op], strict=True)
        ]
        axis = self.axes.values[op.results[0]].axis
        properties = op.of_share(axis, end - begin, self.axes.samples)
        regions = [region.clone() for region in op.regions]
        copy = type(op).inferred(operands, properties, regions=regions)
        copy.attributes |= op.attributes
        self._insert(copy, number, op)
        for result, part in zip(op.results, copy.results, strict=True):
            self._parts(result, self.axes.values[result])[number] = part

    def _insert(self, op: Operation, number: int, reader: Operation) -> SSAValue:
        """Insert an operator for a device in front of its reader."""
        op.attributes[DEVICE] = StringAttr(self.devices[number].name)
        op.location = reader.location
        return Emitter(reader, self.storage).insert(op).results[0]

    def _parts(self, value: SSAValue, runs: Runs) -> list[SSAValue | None]:
        return self.parts.setdefault((value, runs), [None] * len(self.devices))

    def _part(self, value: SSAValue, runs: Runs, number: int, reader: Operation) -> SSAValue:
        """The samples of a device in `value`: computed by the device, or sliced from the whole."""
        parts = self._parts(value, runs)
        if (part := parts[number]) is None:
            whole, (begin, end) = self._whole(value, reader), self._edges(number)
            if runs.outer > 1:
                whole = self._insert(ReshapeOp.make(whole, shape=_apart(whole, runs)), number, reader)
            axis = runs.axis + (runs.outer > 1)
            starts, ends = [0] * rank_of(whole), list(shape_of(whole))
            starts[axis], ends[axis] = begin * runs.inner, end * runs.inner
            part = self._insert(SliceOp.make(whole, starts=tuple(starts), ends=tuple(ends)), number, reader)
            if runs.outer > 1:
                part = self._insert(ReshapeOp.make(part, shape=_together(part, runs)), number, reader)
            parts[number] = part
        return part

    def _whole(self, value: SSAValue, reader: Operation) -> SSAValue:
        """`value` for all samples, in front of a reader: concatenated if it is split."""
        if value.owner not in self.shared:
            return value
        if value not in self.wholes:
            runs, emit = self.axes.values[value], Emitter(reader, self.storage)
            parts = [part for part in self._parts(value, runs) if part is not None]
            if runs.outer > 1:
                parts = [emit(ReshapeOp, part, shape=_apart(part, runs)) for part in parts]
            whole = emit(ConcatOp, parts, axis=runs.axis + (runs.outer > 1))
            self.wholes[value] = emit(ReshapeOp, whole, shape=_together(whole, runs)) if runs.outer > 1 else whole
        return self.wholes[value]


def _apart(value: SSAValue, runs: Runs) -> Shape:
    """The shape with a separate axis for the repetitions of the batch."""
    shape = shape_of(value)
    return (*shape[: runs.axis], runs.outer, shape[runs.axis] // runs.outer, *shape[runs.axis + 1 :])


def _together(value: SSAValue, runs: Runs) -> Shape:
    """The shape with this axis merged again."""
    shape = shape_of(value)
    return (*shape[: runs.axis], runs.outer * shape[runs.axis + 1], *shape[runs.axis + 2 :])
