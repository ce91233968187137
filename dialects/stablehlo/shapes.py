"""
The shapes of the results of operations of `stablehlo`, from operands and properties.

Functions return `None` where a shape is unknown, and raise `VerifyException` where an operation has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    ComplexType,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.shapes import UNKNOWN_SIZE, declared_shape
from glow_mlir.dialects.stablehlo.attributes import ConvAttr, RecordAttr, WordAttr

Shape = tuple[int, ...]
"""The sizes of a tensor; below 0 where they are not known."""


def shape_of(value: SSAValue) -> Shape | None:
    """The shape of a tensor; `None` for other types and for tensors of unknown rank."""
    return declared_shape(cast("TensorType[Any]", value.type)) if isinstance(value.type, TensorType) else None


def agree(left: Shape, right: Shape) -> bool:
    """Whether shapes are equal as far as they are known."""
    is_same = all(a == b or a < 0 or b < 0 for a, b in zip(left, right, strict=False))
    return is_same and len(left) == len(right)


def _listed(op: Operation, name: str, missing: Sequence[int] = ()) -> tuple[int, ...]:
    """The numbers of a property, or others where it is absent."""
    found = op.properties.get(name)
    return tuple(cast("DenseArrayBase[Any]", found).get_values() if isinstance(found, DenseArrayBase) else missing)


def _number(op: Operation, name: str) -> int:
    return cast("IntegerAttr[Any]", op.properties[name]).value.data


def check_dimensions(name: str, found: Sequence[int], shape: Shape | None) -> None:
    """Raise `VerifyException` unless numbers are different dimensions of a shape, if that is known."""
    if len(set(found)) != len(found):
        raise VerifyException(f"'{name}' has a dimension twice: {list(found)}")
    for number in found:
        if number < 0 or (shape is not None and number >= len(shape)):
            count = "" if shape is None else f", of which there are {len(shape)}"
            raise VerifyException(f"'{name}' has {number}, which is no dimension{count}")


def broadcast(op: Operation) -> Shape | None:
    """The new sizes, then those of the operand."""
    shape = shape_of(op.operands[0])
    return None if shape is None else (*_listed(op, "broadcast_sizes"), *shape)


def check_broadcast(op: Operation) -> None:
    """Each size of the operand is 1, or that of the dimension of the result that it becomes."""
    shape, result = shape_of(op.operands[0]), shape_of(op.results[0])
    for size, to in zip(shape or (), _listed(op, "broadcast_dimensions"), strict=False):
        if result is not None and size not in (1, result[to]) and min(size, result[to]) >= 0:
            raise VerifyException(f"a size {size} does not become {result[to]}, the size of dimension {to}")


def transpose(op: Operation) -> Shape | None:
    """The sizes in another order."""
    shape = shape_of(op.operands[0])
    return None if shape is None else tuple(shape[at] for at in _listed(op, "permutation"))


def concatenate(op: Operation) -> Shape | None:
    """The sum of sizes in one dimension; all others are equal."""
    at = _number(op, "dimension")
    found = [shape for value in op.operands if (shape := shape_of(value)) is not None]
    if not found or len(found) != len(op.operands):
        return None
    rest = [(*shape[:at], *shape[at + 1 :]) for shape in found]
    if any(len(shape) != len(found[0]) for shape in found) or any(not agree(rest[0], other) for other in rest):
        raise VerifyException(f"operands differ in other dimensions than {at}: {', '.join(map(str, found))}")
    sizes = [shape[at] for shape in found]
    return (*found[0][:at], UNKNOWN_SIZE if min(sizes) < 0 else sum(sizes), *found[0][at + 1 :])


def slice_(op: Operation) -> Shape | None:
    """The number of steps from start to limit."""
    shape = shape_of(op.operands[0])
    if shape is None:
        return None
    parts = [_listed(op, name) for name in ("start_indices", "limit_indices", "strides")]
    for size, start, limit in zip(shape, parts[0], parts[1], strict=True):
        if not 0 <= start <= limit or (0 <= size < limit):
            raise VerifyException(f"{start}:{limit} is no part of a dimension of {size}")
    return tuple(-(-(limit - start) // stride) for start, limit, stride in zip(*parts, strict=True))


def dynamic_slice(op: Operation) -> Shape | None:
    """The sizes of the slice, which are not larger than those of the operand."""
    shape, sizes = shape_of(op.operands[0]), _listed(op, "slice_sizes")
    for whole, size in zip(shape or (), sizes, strict=False):
        if size < 0 or 0 <= whole < size:
            raise VerifyException(f"a slice of {size} is no part of a dimension of {whole}")
    return sizes


def check_update(op: Operation) -> None:
    """The update fits into the operand, and the result has the operand's shape."""
    shape, update, result = shape_of(op.operands[0]), shape_of(op.operands[1]), shape_of(op.results[0])
    if shape is None or update is None or result is None:
        return
    if not agree(shape, result):
        raise VerifyException(f"the result has type {op.results[0].type}, the operand {op.operands[0].type}")
    if len(update) != len(shape) or any(0 <= whole < size for whole, size in zip(shape, update, strict=True)):
        raise VerifyException(f"an update of type {op.operands[1].type} does not fit into {op.operands[0].type}")


def pad(op: Operation) -> Shape | None:
    """The sizes with margins and gaps."""
    shape = shape_of(op.operands[0])
    if shape is None:
        return None
    margins = (_listed(op, name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding"))
    sizes: list[int] = []
    for size, low, high, gap in zip(shape, *margins, strict=True):
        sizes.append(UNKNOWN_SIZE if size < 0 else size + low + high + max(size - 1, 0) * gap)
        if size >= 0 > sizes[-1]:
            raise VerifyException(f"a padding of {low} and {high} leaves nothing of a dimension of {size}")
    return tuple(sizes)


def _record(op: Operation, name: str) -> RecordAttr:
    return cast("RecordAttr", op.properties[name])


def dot_general(op: Operation) -> Shape | None:
    """The batch, then what is left of both operands."""
    left, right = shape_of(op.operands[0]), shape_of(op.operands[1])
    if left is None or right is None:
        return None
    numbers = _record(op, "dot_dimension_numbers")
    sides = [("lhs", left), ("rhs", right)]
    batch, inner = (
        [numbers.integers(f"{side}_{kind}_dimensions") for side, _ in sides] for kind in ("batching", "contracting")
    )
    for at, (side, shape) in enumerate(sides):
        check_dimensions(
            f"{side}_batching_dimensions and {side}_contracting_dimensions", (*batch[at], *inner[at]), shape
        )
    for kind, lists in (("batching", batch), ("contracting", inner)):
        if len(lists[0]) != len(lists[1]):
            raise VerifyException(f"there are {len(lists[0])} and {len(lists[1])} {kind} dimensions")
        sizes, others = tuple(left[at] for at in lists[0]), tuple(right[at] for at in lists[1])
        if not agree(sizes, others):
            raise VerifyException(f"{kind} dimensions have sizes {list(sizes)} and {list(others)}")
    rest = [
        size for at, (_, shape) in enumerate(sides) for i, size in enumerate(shape) if i not in (*batch[at], *inner[at])
    ]
    return (*(left[at] for at in batch[0]), *rest)


def dot(op: Operation) -> Shape | None:
    """What is left of vectors and matrices without the last dimension of the first and the first one of the second."""
    left, right = shape_of(op.operands[0]), shape_of(op.operands[1])
    if left is None or right is None:
        return None
    if not (1 <= len(left) <= 2 and 1 <= len(right) <= 2) or not agree(left[-1:], right[:1]):
        raise VerifyException(f"{op.operands[0].type} and {op.operands[1].type} are no vectors or matrices that fit")
    return (*left[:-1], *right[1:])


def triangular_solve(op: Operation) -> Shape | None:
    """The shape of the right side, which has a row or a column for each row of the matrix."""
    matrix, right = shape_of(op.operands[0]), shape_of(op.operands[1])
    if matrix is None or right is None:
        return None
    axis = -2 if _number(op, "left_side") else -1
    is_right = len(matrix) == len(right) and agree(matrix[:-2], right[:-2]) and agree(matrix[-1:], (right[axis],))
    if not is_right:
        raise VerifyException(f"{op.operands[1].type} is no right side of {op.operands[0].type}")
    return right


def check_features(op: Operation) -> None:
    """Results and operands have the shape of the first operand, or are vectors with an item for each feature."""
    shape = shape_of(op.operands[0])
    if shape is None:
        return
    features = shape[_number(op, "feature_index")]
    for value in (*op.operands, *op.results):
        found = shape_of(value)
        if found is not None and not agree(found, shape if len(found) == len(shape) > 1 else (features,)):
            raise VerifyException(f"{value.type} has neither the shape of {op.operands[0].type} nor {features} items")


def fft(op: Operation) -> Shape | None:
    """The lengths of the last dimensions; half of the last one, and one more, for frequencies of real numbers."""
    shape, lengths = shape_of(op.operands[0]), _listed(op, "fft_length")
    word = cast("WordAttr", op.properties["fft_type"]).data
    if shape is None:
        return None
    if not 1 <= len(lengths) <= min(3, len(shape)):
        raise VerifyException(f"{len(lengths)} lengths are not one to three of {op.operands[0].type}")
    half = (*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0)
    given, found = {"RFFT": (lengths, half), "IRFFT": (half, lengths)}.get(word, (lengths, lengths))
    if not agree(shape[len(shape) - len(lengths) :], given):
        raise VerifyException(f"the last dimensions of {op.operands[0].type} are not {list(given)}")
    return (*shape[: len(shape) - len(lengths)], *found)


def bitcast_convert(op: Operation) -> Shape | None:
    """The sizes, and one more for the parts of wider elements, or one less where they are put together."""
    shape, result = shape_of(op.operands[0]), shape_of(op.results[0])
    widths = [_bits(value) for value in (op.operands[0], op.results[0])]
    if shape is None or result is None or None in widths:
        return None
    one, other = (width or 1 for width in widths)
    if one == other:
        return shape
    count, rest = divmod(max(one, other), min(one, other))
    longer = shape if one < other else result
    if rest or not longer or not agree(longer[-1:], (count,)):
        raise VerifyException(f"the bits of {op.operands[0].type} are not those of {op.results[0].type}")
    return shape[:-1] if one < other else (*shape, count)


def _bits(value: SSAValue) -> int | None:
    """The bits of an element; `None` for quantized ones."""
    element = cast("TensorType[Any]", value.type).element_type
    if isinstance(element, ComplexType):
        return 2 * cast("Any", element.element_type).bitwidth
    return element.bitwidth if isinstance(element, IntegerType | AnyFloat) else None


def broadcast_pair(op: Operation) -> Shape | None:
    """The sizes of two operands, repeated along the last dimensions or those that are named; a size of 1 is any."""
    one, other = shape_of(op.operands[0]), shape_of(op.operands[1])
    if one is None or other is None or "broadcast_dimensions" in op.properties:
        return None
    rank = max(len(one), len(other))
    pairs = zip(*((*(1,) * (rank - len(shape)), *shape) for shape in (one, other)), strict=True)
    found: list[int] = []
    for size, by in pairs:
        if min(size, by) < 0:
            found.append(UNKNOWN_SIZE if max(size, by) <= 1 else max(size, by))
            continue
        if size != by and 1 not in (size, by):
            raise VerifyException(f"{op.operands[0].type} and {op.operands[1].type} do not broadcast")
        found.append(by if size == 1 else size)
    return tuple(found)


def _windows(op: Operation, sizes: Sequence[int], window: Sequence[int], names: Sequence[str]) -> Shape:
    """The number of windows in each dimension; names are those of strides, dilations of inputs, and of windows."""
    count = len(sizes)
    strides, spread, spread_windows = (_listed(op, name, (1,) * count) for name in names)
    given = op.properties.get("padding")
    pads = list(cast("DenseIntOrFPElementsAttr[Any]", given).get_values()) if given is not None else [0, 0] * count
    if not len(strides) == len(spread) == len(spread_windows) == len(window) == len(pads) // 2 == count:
        raise VerifyException(f"strides, dilations and paddings are not {count} each, as the dimensions of the window")
    if min((*strides, *spread, *spread_windows), default=1) < 1:
        raise VerifyException("strides and dilations are at least 1")
    found: list[int] = []
    for at, size in enumerate(sizes):
        whole = (size - 1) * spread[at] + 1 if size else 0
        whole += pads[2 * at] + pads[2 * at + 1]
        extent = (window[at] - 1) * spread_windows[at] + 1 if window[at] else 0
        is_known = size >= 0 and window[at] >= 0
        found.append((0 if whole < extent else (whole - extent) // strides[at] + 1) if is_known else UNKNOWN_SIZE)
    return tuple(found)


def reduce_window(op: Operation) -> Shape | None:
    """The number of windows in each dimension."""
    shape = shape_of(op.operands[0])
    names = ("window_strides", "base_dilations", "window_dilations")
    return None if shape is None else _windows(op, shape, _listed(op, "window_dimensions"), names)


def convolution(op: Operation) -> Shape | None:
    """The batch, the features, and the number of windows."""
    image, kernel = shape_of(op.operands[0]), shape_of(op.operands[1])
    roles = cast("ConvAttr", op.properties["dimension_numbers"])
    if image is None or kernel is None:
        return None
    if not len(image) == len(kernel) == len(roles.data[0]) == len(roles.data[1]) == len(roles.data[2]):
        raise VerifyException(
            f"dimension numbers of {len(roles.data[0])} for {len(image)} and {len(kernel)} dimensions"
        )
    groups, batches = _number(op, "feature_group_count"), _number(op, "batch_group_count")
    batch, features = image[roles.dimension(0, "b")], image[roles.dimension(0, "f")]
    inputs, outputs = kernel[roles.dimension(1, "i")], kernel[roles.dimension(1, "o")]
    is_divided = min(groups, batches) == 1 and not any(
        size >= 0 and size % count for size, count in ((outputs, groups), (outputs, batches), (batch, batches))
    )
    if not is_divided:
        raise VerifyException(f"{groups} groups of features and {batches} of the batch do not divide the operands")
    if min(features, inputs) >= 0 and features != inputs * groups:
        raise VerifyException(f"images have {features} features, kernels {inputs} in each of {groups} groups")
    spatial = range(len(image) - 2)
    sizes = [image[roles.dimension(0, at)] for at in spatial]
    window = [kernel[roles.dimension(1, at)] for at in spatial]
    counts = _windows(op, sizes, window, ("window_strides", "lhs_dilation", "rhs_dilation"))
    of_role = {"b": batch // batches if batch >= 0 else UNKNOWN_SIZE, "f": outputs, **dict(enumerate(counts))}
    return tuple(of_role[role] for role in roles.data[2])


def gather(op: Operation) -> Shape | None:
    """The dimensions of the indices, with those of the slices at the positions of the offsets."""
    shape, indices = shape_of(op.operands[0]), shape_of(op.operands[1])
    if shape is None or indices is None:
        return None
    numbers, sizes = _record(op, "dimension_numbers"), _listed(op, "slice_sizes")
    vector = numbers.integer("index_vector_dim")
    collapsed = (*numbers.integers("collapsed_slice_dims"), *numbers.integers("operand_batching_dims"))
    check_dimensions("collapsed_slice_dims and operand_batching_dims", collapsed, shape)
    starts = (*numbers.integers("start_index_map"), *numbers.integers("operand_batching_dims"))
    check_dimensions("start_index_map and operand_batching_dims", starts, shape)
    _check_vector(vector, len(numbers.integers("start_index_map")), indices)
    for whole, size in zip(shape, sizes, strict=True):
        if size < 0 or 0 <= whole < size:
            raise VerifyException(f"a slice of {size} is no part of a dimension of {whole}")
    batch = [size for at, size in enumerate(indices) if at != vector]
    rest = [size for at, size in enumerate(sizes) if at not in collapsed]
    offsets = numbers.integers("offset_dims")
    if len(offsets) != len(rest):
        raise VerifyException(f"'offset_dims' has {len(offsets)} items for {len(rest)} dimensions of slices")
    rank = len(batch) + len(rest)
    check_dimensions("offset_dims", offsets, (0,) * rank)
    return tuple(rest[offsets.index(at)] if at in offsets else batch.pop(0) for at in range(rank))


def _check_vector(dimension: int, count: int, indices: Shape) -> None:
    """Raise `VerifyException` unless a dimension of the indices has `count` items; behind the last it has one."""
    if not 0 <= dimension <= len(indices):
        raise VerifyException(f"'index_vector_dim' has {dimension}, which is no dimension of the indices")
    size = indices[dimension] if dimension < len(indices) else 1
    if size >= 0 and size != count:
        raise VerifyException(f"an index has {size} items, of which {count} are mapped to dimensions")


def check_scatter(op: Operation) -> None:
    """The dimension numbers are within the ranks of operand, indices and updates."""
    count = (len(op.operands) - 1) // 2
    shape, indices, updates = (shape_of(op.operands[at]) for at in (0, count, count + 1))
    if shape is None or indices is None or updates is None:
        return
    numbers = _record(op, "scatter_dimension_numbers")
    inserted = (*numbers.integers("inserted_window_dims"), *numbers.integers("input_batching_dims"))
    check_dimensions("inserted_window_dims and input_batching_dims", inserted, shape)
    mapped = numbers.integers("scatter_dims_to_operand_dims")
    check_dimensions("scatter_dims_to_operand_dims", mapped, shape)
    _check_vector(numbers.integer("index_vector_dim"), len(mapped), indices)
    windows = numbers.integers("update_window_dims")
    check_dimensions("update_window_dims", windows, updates)
    if len(windows) + len(inserted) != len(shape):
        raise VerifyException(f"windows have {len(windows) + len(inserted)} dimensions, the operand {len(shape)}")


def reduce(op: Operation) -> Shape | None:
    """The dimensions that are not reduced."""
    shape, reduced = shape_of(op.operands[0]), _listed(op, "dimensions")
    return None if shape is None else tuple(size for at, size in enumerate(shape) if at not in reduced)


def check_square(op: Operation) -> None:
    """The last two dimensions of the first operand are equal."""
    shape = shape_of(op.operands[0])
    if shape is not None and (len(shape) < 2 or not agree(shape[-2:-1], shape[-1:])):
        raise VerifyException(f"takes square matrices, not {op.operands[0].type}")


def check_top_k(op: Operation) -> None:
    """The last dimension of the results has `k` elements, which is not more than the operand has."""
    shape, count = shape_of(op.operands[0]), _number(op, "k")
    if shape is None:
        return
    if not shape or 0 <= shape[-1] < count:
        raise VerifyException(f"there are no {count} largest elements in {op.operands[0].type}")
    for result in op.results:
        found = shape_of(result)
        if found is not None and not agree(found, (*shape[:-1], count)):
            raise VerifyException(f"the result has type {result.type}, not that of {count} elements of {shape}")
