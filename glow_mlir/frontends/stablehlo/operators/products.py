"""Matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32, i8
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import byte_width, is_bool, is_float
from glow_mlir.dialects.glow_high.convolution import ConvOp, ConvTransposeOp
from glow_mlir.dialects.glow_high.einsum import EinsumOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.product_types import ProductSignature
from glow_mlir.dialects.shapes import declared_shape, element_of, rank_of, shape_of, sizes_of
from glow_mlir.dialects.stablehlo.attributes import ConvAttr, RecordAttr
from glow_mlir.frontends.builder.padding import pad_value
from glow_mlir.frontends.stablehlo.node import StablehloNode, stablehlo_operator
from glow_mlir.frontends.stablehlo.operators.data_movement import reversed_along, spread, transposed
from glow_mlir.support.symbols import Size, product_of


@stablehlo_operator("dot")
def dot(node: StablehloNode) -> SSAValue:
    """A product of vectors and matrices."""
    left, right = node.inputs()
    return contracted(node, left, right, [], [], [rank_of(left) - 1], [0])


@stablehlo_operator("dot_general")
def dot_general(node: StablehloNode) -> SSAValue:
    """Sums of products along axes of two operands, for each index of axes that they share."""
    record = node.properties["dot_dimension_numbers"]
    assert isinstance(record, RecordAttr)
    names = ("lhs_batching", "rhs_batching", "lhs_contracting", "rhs_contracting")
    axes = [record.integers(f"{name}_dimensions") for name in names]
    return contracted(node, node.input(0), node.input(1), axes[0], axes[1], axes[2], axes[3])


@stablehlo_operator("einsum", "unary_einsum")
def einsum(node: StablehloNode) -> SSAValue:
    """Sums of products of elements, by labelled axes."""
    return node.emit(EinsumOp, node.inputs(), equation=node.text("einsum_config"))


def contracted(
    node: StablehloNode,
    left: SSAValue,
    right: SSAValue,
    left_batch: Sequence[int],
    right_batch: Sequence[int],
    left_summed: Sequence[int],
    right_summed: Sequence[int],
) -> SSAValue:
    """The product of two operands, whose result has batch axes, then the other axes of the left and the right one."""
    left_free = [axis for axis in range(rank_of(left)) if axis not in (*left_batch, *left_summed)]
    right_free = [axis for axis in range(rank_of(right)) if axis not in (*right_batch, *right_summed)]
    batch, rows, depth = (_sizes(left, axes) for axes in (left_batch, left_free, left_summed))
    columns = _sizes(right, right_free)
    left = transposed(node, left, (*left_batch, *left_free, *left_summed))
    right = transposed(node, right, (*right_batch, *right_summed, *right_free))
    if batch or len(depth) != 1 or len(columns) != 1 or not rows:
        left = node.reshaped(left, (*batch, product_of(rows), product_of(depth)))
        right = node.reshaped(right, (*batch, product_of(depth), product_of(columns)))
    return node.reshaped(_product(node, left, right), (*batch, *rows, *columns))


def _product(node: StablehloNode, left: SSAValue, right: SSAValue) -> SSAValue:
    """The matrix product in the element type of the result."""
    wanted = node.element()
    if is_bool(wanted):  # A sum of products of truth values is true where one product is.
        counts = node.emit(MatMulOp, *(node.cast(value, f32) for value in (left, right)))
        return node.cast(counts, wanted)
    left, right = (_factor(node, value, wanted) for value in (left, right))
    signature = ProductSignature.of_elements(element_of(left), element_of(right))
    to = wanted if wanted == signature.accumulator != signature.output else None
    return node.cast(node.emit(MatMulOp, left, right, to=to), wanted)


def _factor(node: StablehloNode, value: SSAValue, wanted: Attribute) -> SSAValue:
    """
    An operand in the element type in which a product with the wanted result is computed.

    Sums of products of truth values are those of integers, of which all but 0 are true.
    """
    element = element_of(value)
    if is_bool(element):
        return node.cast(value, i8 if is_bool(wanted) else wanted)
    if is_float(element):
        is_half = is_float(wanted) and byte_width(element) == 2 and (wanted == f32 or wanted == element)
        return value if is_half else node.cast(value, wanted)
    return value if byte_width(element) == 1 and byte_width(wanted) == 4 else node.cast(value, wanted)


def _sizes(value: SSAValue, axes: Sequence[int]) -> list[Size]:
    return [sizes_of(value)[axis] for axis in axes]


# ---- Convolutions


@stablehlo_operator("convolution")
def convolution(node: StablehloNode) -> SSAValue:
    """A convolution; holes between the elements of the images make it a transposed one."""
    images, kernels = node.inputs()
    if 0 in (*sizes_of(images), *sizes_of(kernels), *declared_shape(node.declared())):
        return node.splat(0, node.element(), node.static_shape())
    numbers = node.properties["dimension_numbers"]
    assert isinstance(numbers, ConvAttr)
    images = transposed(node, images, _channels_last(numbers, 0))
    kernels = transposed(node, kernels, _channels_last(numbers, 1))
    rank = rank_of(images) - 2
    reversal = node.integers("window_reversal", [0] * rank)
    kernels = reversed_along(node, kernels, [axis + 1 for axis in range(rank) if reversal[axis]])
    batches = node.integer("batch_group_count", 1)
    if batches != 1:
        images = _grouped_batches(node, images, batches)
    groups = node.integer("feature_group_count", 1) * batches
    wanted = node.element()
    images, kernels = (_factor(node, value, wanted) for value in (images, kernels))
    found = _convolved(node, images, kernels, groups) if rank else _pointwise(node, images, kernels, groups)
    back = _channels_last(numbers, 2)
    return transposed(node, node.cast(found, wanted), [back.index(axis) for axis in range(rank + 2)])


def _channels_last(numbers: ConvAttr, which: int) -> list[int]:
    """The dimensions in the order batch, space, features; for kernels, output features, space, input features."""
    outer, inner, *spatial = numbers.permutation(which)
    return [outer, *spatial, inner]


def _grouped_batches(node: StablehloNode, images: SSAValue, count: int) -> SSAValue:
    """Images [G·N, …, C] as [N, …, G·C]: each group of the batch is a group of features."""
    batch, *spatial, channels = shape_of(images)
    rank = len(spatial)
    split = node.reshaped(images, (count, batch // count, *spatial, channels))
    turned = transposed(node, split, (1, *range(2, 2 + rank), 0, 2 + rank))
    return node.reshaped(turned, (batch // count, *spatial, count * channels))


def _pointwise(node: StablehloNode, images: SSAValue, kernels: SSAValue, groups: int) -> SSAValue:
    """A convolution without space, which is a product of matrices; it gets one dimension."""
    (batch, channels), (outputs, depth) = shape_of(images), shape_of(kernels)
    images, kernels = node.reshaped(images, (batch, 1, channels)), node.reshaped(kernels, (outputs, 1, depth))
    return node.reshaped(
        node.emit(ConvOp, images, kernels, group=groups, to=_accumulator(node, images)), (batch, outputs)
    )


def _accumulator(node: StablehloNode, images: SSAValue) -> Attribute | None:
    """The element type that a convolution names, if its result is wider than its operands."""
    signature = ProductSignature.of_elements(element_of(images), element_of(images))
    return node.element() if node.element() == signature.accumulator != signature.output else None


def _convolved(node: StablehloNode, images: SSAValue, kernels: SSAValue, groups: int) -> SSAValue:
    rank = rank_of(images) - 2
    padding = node.padding(rank)
    holes = node.integers("lhs_dilation", [1] * rank)
    strides, dilations = (node.integers(name, [1] * rank) for name in ("window_strides", "rhs_dilation"))
    if max(holes) > 1:
        if max(strides) == 1 and groups == 1 and is_float(element_of(images)) and _accumulator(node, images) is None:
            found = _transposed_convolution(node, images, kernels, padding)
            if found is not None:
                return found
        fill = node.number(0, images)
        for axis, count in enumerate(holes):
            images = spread(node, images, fill, axis + 1, count - 1)
    if min(width for pair in padding for width in pair) < 0:
        cut = [(min(low, 0), min(high, 0)) for low, high in padding]
        padding = [(max(low, 0), max(high, 0)) for low, high in padding]
        if any(size + sum(pair) < 0 for size, pair in zip(shape_of(images)[1:-1], cut, strict=True)):
            # A part of the padding on the other side is cut off as well.
            images = pad_value(node, images, [(0, 0), *padding, (0, 0)], "constant", node.number(0, images))
            padding = [(0, 0)] * rank
        images = pad_value(node, images, [(0, 0), *cut, (0, 0)], "constant", None)
    pads = [low for low, _ in padding] + [high for _, high in padding]
    return node.emit(
        ConvOp,
        images,
        kernels,
        strides=strides,
        dilations=dilations,
        pads=pads,
        group=groups,
        to=_accumulator(node, images),
    )


def _transposed_convolution(
    node: StablehloNode, images: SSAValue, kernels: SSAValue, padding: Sequence[tuple[int, int]]
) -> SSAValue | None:
    """
    The transposed convolution with the same result, whose pads are what a window has more than the padding.

    Its filter is reversed and has the input features first. `None` where a padding is wider than a window.
    """
    rank = rank_of(images) - 2
    dilations = node.integers("rhs_dilation", [1] * rank)
    extents = [(size - 1) * step for size, step in zip(shape_of(kernels)[1:-1], dilations, strict=True)]
    cuts = [(extent - low, extent - high) for extent, (low, high) in zip(extents, padding, strict=True)]
    if min(before for before, _ in cuts) < 0:
        return None
    kernels = reversed_along(node, kernels, range(1, rank + 1))
    kernels = transposed(node, kernels, (rank + 1, *range(1, rank + 1), 0))
    return node.emit(
        ConvTransposeOp,
        images,
        kernels,
        strides=node.integers("lhs_dilation"),
        dilations=dilations,
        pads=[before for before, _ in cuts] + [max(after, 0) for _, after in cuts],
        output_padding=[max(-after, 0) for _, after in cuts],
    )
