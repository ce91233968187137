"""Sample analysis: which elements of a function's tensors may belong to different samples of the batch."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.control_flow import ControlFlowOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.samples import Samples, apart_axis, one_axis
from glow_mlir.dialects.glow_high.storage import GetOp, PlaceholderOp, SaveOp
from glow_mlir.dialects.shapes import Shape, shape_of
from glow_mlir.ir.traversal import Scope, inner_blocks, operations


def samples_of(scope: Scope, storage: Storage) -> Mapping[SSAValue, Samples]:
    """
    The layout of samples in each tensor of a function or block.

    Models do not declare their batch. Samples are assumed along the first axis of inputs, outputs and state, and along
    the batch axis that an operator declares; in inputs and state, also along every axis as long as one of those. If all
    of these have size one, there is one sample. Nothing is known of the results of branches and loops.
    """
    batches = batch_sizes(scope, storage)
    found: dict[SSAValue, Samples] = {}
    for op in operations(scope):
        if isinstance(op, GetOp):
            varies = isinstance(storage.by_name[op.storage_name], PlaceholderOp)
            shape = shape_of(op.result)
            found[op.result] = _bound(shape, batches) if varies else Samples.one(shape)
        elif isinstance(op, HighOp):
            samples = op.result_samples([found[operand] for operand in op.operands])
            found.update(zip(op.results, samples, strict=True))
        elif isinstance(op, ControlFlowOp):
            # Any sample may decide the control flow, and carried values may come from any.
            values = [*op.results, *(argument for block in inner_blocks(op) for argument in block.args)]
            mixed = Samples.apart if batches else Samples.one
            found.update((value, mixed(shape_of(value))) for value in values)
    return found


def batch_sizes(scope: Scope, storage: Storage) -> frozenset[int]:
    """The possible batch sizes above one."""
    bound: list[Shape] = []
    for op in operations(scope):
        if isinstance(op, GetOp | SaveOp):
            position = storage.by_name[op.storage_name]
            bound += [shape_of(position.tensor_type)] if isinstance(position, PlaceholderOp) else []
    leading = [shape[0] for shape in bound if shape]
    stated = [op.stated_batch() for op in operations(scope) if isinstance(op, HighOp)]
    return frozenset(size for size in (*leading, *stated) if size > 1)


def _bound(shape: Shape, batches: frozenset[int]) -> Samples:
    """The layout of an input or state of that shape."""
    return Samples(tuple(apart_axis(size) if size in batches else one_axis(size) for size in shape))
