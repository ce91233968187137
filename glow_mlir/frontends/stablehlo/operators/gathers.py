"""Slices of tensors that indices select."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.indexing import GatherElementsOp, GatherOp
from glow_mlir.dialects.shapes import element_of, rank_of, shape_of, sizes_of
from glow_mlir.dialects.stablehlo.attributes import RecordAttr
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.stablehlo.indexing import Indexing, batch_of, batching_of, clamped
from glow_mlir.frontends.stablehlo.node import StablehloNode, stablehlo_operator
from glow_mlir.frontends.stablehlo.operators.data_movement import expanded, part, transposed

Label = tuple[str, int]
"""What an axis of gathered slices is: a dimension of the indices (`batch`), or an axis of the operand (`axis`)."""


@stablehlo_operator("gather", moves=True)
def gather(node: StablehloNode) -> SSAValue:
    """Slices of a tensor at starts that are clamped, so that the slices are in it."""
    return gathered(node, node.integers("slice_sizes"))


@stablehlo_operator("dynamic_gather", moves=True)
def dynamic_gather(node: StablehloNode) -> SSAValue:
    """Slices of a tensor at starts that are clamped, of sizes that are an operand whose value the program says."""
    return gathered(node, node.required_integers(node.input(2), "the sizes of slices"))


def gathered(node: StablehloNode, sizes: Sequence[int]) -> SSAValue:
    """The result of a gather with these sizes of slices."""
    record = node.properties["dimension_numbers"]
    assert isinstance(record, RecordAttr)
    value, indices = node.inputs(0, 2)
    vector = record.integer("index_vector_dim")
    batching = batching_of(
        record.integers("operand_batching_dims"), record.integers("start_indices_batching_dims"), vector
    )
    indexing = Indexing(
        shape_of(value),
        tuple(sizes),
        record.integers("collapsed_slice_dims"),
        batching,
        record.integers("start_index_map"),
        batch_of(indices, vector),
    )
    return taken(node, value, indices, vector, indexing, record.integers("offset_dims"))


@stablehlo_operator("torch_index_select", moves=True)
def torch_index_select(node: StablehloNode) -> SSAValue:
    """The slices along a dimension that indices select; both operands share leading dimensions."""
    value, indices = node.inputs()
    axis, batch = node.integer("dim"), node.integer("batch_dims")
    rank, own = rank_of(value), rank_of(indices)
    kept = [at for at in range(batch, rank) if at != axis]
    sizes = tuple(1 if at < batch or at == axis else size for at, size in enumerate(shape_of(value)))
    offsets = [at if at < axis else at - 1 + own - batch for at in kept]
    indexing = Indexing(shape_of(value), sizes, (axis,), {at: at for at in range(batch)}, (axis,), shape_of(indices))
    return taken(node, value, indices, own, indexing, offsets)


def taken(
    node: StablehloNode, value: SSAValue, indices: SSAValue, vector: int, indexing: Indexing, offsets: Sequence[int]
) -> SSAValue:
    """The slices of a value; `offsets` are the dimensions of the result that are those of slices."""
    rank = len(indexing.batch) + len(indexing.kept)
    batch, kept = (iter(range(len(indexing.batch))), iter(indexing.kept))
    wanted: list[Label] = [("axis", next(kept)) if at in offsets else ("batch", next(batch)) for at in range(rank)]
    sizes = {("batch", number): size for number, size in enumerate(indexing.batch)}
    sizes |= {("axis", axis): indexing.sizes[axis] for axis in indexing.kept}
    if 0 in sizes.values():
        return node.splat(0, element_of(value), tuple(sizes[label] for label in wanted))
    starts = indexing.starts(node, indices, vector)
    # Along an axis of which a slice is whole, it starts at 0; along one without a start, it is the first part.
    starts = {axis: start for axis, start in starts.items() if axis in indexing.selected}
    first = [axis for axis in indexing.selected if axis not in starts and axis not in indexing.batching]
    if first:
        value = cut(node, value, {axis: (0, indexing.sizes[axis]) for axis in first})
        shape = shape_of(value)
        indexing = Indexing(shape, indexing.sizes, indexing.dropped, indexing.batching, indexing.mapped, indexing.batch)
    if indexing.count == 1:
        return node.reshaped(_one_slice(node, value, starts, indexing), [sizes[label] for label in wanted])
    starts = {axis: clamped(node, start, indexing.limit(axis)) for axis, start in starts.items()}
    found, labels = _elements(node, value, starts, indexing) or _merged(node, value, starts, indexing)
    return transposed(node, found, [labels.index(label) for label in wanted])


def _one_slice(node: StablehloNode, value: SSAValue, starts: Mapping[int, SSAValue], indexing: Indexing) -> SSAValue:
    """The only slice."""
    for axis, start in starts.items():
        value = part(node, value, node.reshaped(start, ()), axis, indexing.sizes[axis])
    return value


def _elements(
    node: StablehloNode, value: SSAValue, starts: Mapping[int, SSAValue], indexing: Indexing
) -> tuple[SSAValue, list[Label]] | None:
    """Elements at other positions along one axis, and what their axes are; `None` for any other form."""
    others = [axis for axis in range(len(indexing.shape)) if axis not in indexing.batching]
    if not indexing.batching or len(others) != 1 or others != list(starts) or others != list(indexing.dropped):
        return None
    (axis,) = others
    free = [number for number in range(len(indexing.batch)) if number not in indexing.batching.values()]
    order = [
        number for at in range(len(indexing.shape)) for number in ([indexing.batching[at]] if at != axis else free)
    ]
    shape = [
        size if at != axis else math.prod(indexing.batch[n] for n in free) for at, size in enumerate(indexing.shape)
    ]
    indices = node.reshaped(transposed(node, starts[axis], order), shape)
    found = node.emit(GatherElementsOp, value, indices, axis=axis)
    return node.reshaped(found, [indexing.batch[number] for number in order]), [("batch", number) for number in order]


def _merged(
    node: StablehloNode, value: SSAValue, starts: Mapping[int, SSAValue], indexing: Indexing
) -> tuple[SSAValue, list[Label]]:
    """Slices along the axes of which they have a part, merged to one axis; and what their axes are."""
    axes = indexing.selected
    batch: list[Label] = [("batch", number) for number in range(len(indexing.batch))]
    if not axes:  # Each slice is the whole operand.
        sizes = [indexing.sizes[axis] for axis in indexing.kept]
        whole = node.reshaped(value, (*[1] * len(batch), *sizes))
        return expanded(node, whole, (*indexing.batch, *sizes)), [*batch, *(("axis", axis) for axis in indexing.kept)]
    rest = [axis for axis in range(len(indexing.shape)) if axis not in axes]
    before = [axis for axis in rest if axis < axes[0]]
    behind = rest[len(before) :]
    value = transposed(node, value, (*before, *axes, *behind))
    sizes = [math.prod(indexing.shape[axis] for axis in axes)]
    merged = node.reshaped(
        value, (*(indexing.shape[axis] for axis in before), *sizes, *(indexing.shape[axis] for axis in behind))
    )
    found = node.emit(GatherOp, merged, indexing.positions(node, starts, axes), axis=len(before))
    labels: list[Label] = [("axis", axis) for axis in before]
    labels += [*batch, *(("axis", axis) for axis in (*indexing.windows(axes), *behind))]
    dropped = [axis for axis in rest if axis not in indexing.kept]
    kept = [label for label in labels if label[0] == "batch" or label[1] not in dropped]
    sizes = [size for label, size in zip(labels, sizes_of(found), strict=True) if label in kept]
    return node.reshaped(found, sizes), kept
