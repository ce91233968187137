"""
Operators on transposed operands, rewritten as operators on the origins with other properties and a transposed result.

The form follows from access maps: axes that an operator treats alike are permuted, and so are properties that name axes
or have items for each axis. `sink-transposes` uses it. An operand's origin is the value before its transpose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, TypeVar, cast

from xdsl.dialects.builtin import DenseArrayBase, TensorType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.attribute_syntax import AttributeValue, to_attribute
from glow_mlir.dialects.glow_high.access import STAR, AccessMap, Axes, is_free, is_starred, plain
from glow_mlir.dialects.properties import integer, ints, items_of
from glow_mlir.dialects.shapes import Shape, element_of, normalize_axis, sizes_of, tensor
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes

if TYPE_CHECKING:
    from glow_mlir.dialects.glow_high.base import HighOp

Item = TypeVar("Item")


@dataclass(frozen=True)
class Untransposed:
    """An operator with transposed operands, expressed on their origins."""

    properties: Mapping[str, Attribute]
    """The complete properties of the operator on the origins."""
    permutation: Shape
    """The permutation that turns its results into those of the original operator."""
    before: Shape | None = None
    """The permutation by which the origins have to be transposed first, where there is one."""


def identity(rank: int) -> Shape:
    """The permutation of `rank` axes that moves none."""
    return tuple(range(rank))


def inverse(permutation: Shape) -> Shape:
    """The permutation that undoes another one."""
    return moved(identity(len(permutation)), permutation)


def composed(first: Shape, second: Shape) -> Shape:
    """The permutation of a transpose by `first` and then by `second`."""
    return tuple(first[axis] for axis in second)


def moved(items: Sequence[Item], permutation: Shape) -> tuple[Item, ...]:
    """Permute a list with one item per axis of a transposed operand to the order of its origin's axes."""
    return tuple(item for _, item in sorted(zip(permutation, items, strict=True), key=lambda pair: pair[0]))


def keeps_order(sizes: Sizes, permutation: Shape) -> bool:
    """Whether a transpose of a tensor of those sizes moves only axes of size one, so that it is a reshape."""
    longer = [axis for axis in permutation if sizes[axis] != 1]
    return longer == sorted(longer)


def ranking(axes: Sequence[int]) -> Shape:
    """The permutation that puts axes that lie in ascending order into the order of `axes`."""
    ascending = sorted(axes)
    return tuple(ascending.index(axis) for axis in axes)


def changed(op: HighOp, **values: AttributeValue) -> dict[str, Attribute]:
    """The properties of `op` with some of them changed."""
    return {**op.properties, **{name: to_attribute(value) for name, value in values.items()}}


def untransposed(op: HighOp, permutation: Shape, **changes: AttributeValue) -> Untransposed | None:
    """
    The form of an operator that follows from its access map, with `changes` of properties besides those of axes.

    `None` if the operator on the origins has a different map.
    """
    count = len(op.operands) if op.TRANSPOSES_ALL else min(1, len(op.operands))
    if op.regions or not count or not permutation:
        return None
    before = op.access_map()
    space = before.results[0] if op.TRANSPOSES_ALL else before.operands[0]
    stays = all(is_free(name) or permutation[axis] == axis for axis, name in enumerate(space))
    if not (stays or changes):
        return None
    if is_alike(op, before) and not changes:
        return Untransposed(dict(op.properties), permutation)
    properties = changed(op, **moved_properties(op, space, permutation), **changes)
    types = [_origin_type(value, permutation) for value in op.operands[:count]]
    after = _map_on(op, [*types, *(value.type for value in op.operands[count:])], properties)
    if after is None:
        return None
    names: dict[str, str] = {}
    orders = [permutation] * count + [identity(len(axes)) for axes in before.operands[count:]]
    own = [*(_lifted(axes, space) for axes in before.operands[:count]), *before.operands[count:]]
    if not all(matches(*each, names) for each in zip(own, after.operands, orders, strict=True)):
        return None
    found = {_order(*each, names) for each in zip(before.results, after.results, strict=True)}
    order = found.pop()
    return None if found or order is None else Untransposed(properties, order)


def is_alike(op: HighOp, found: AccessMap) -> bool:
    """Whether an operator treats all transposed axes alike, and other operands do not have them."""
    count = len(found.operands) if op.TRANSPOSES_ALL else 1
    named = op.AXIS_PROPERTIES or op.LIST_PROPERTIES
    own = (*found.operands[:count], *found.results)
    others = any(is_free(name) for axes in found.operands[count:] for name in axes)
    return not named and not others and all(is_free(name) and not is_starred(name) for axes in own for name in axes)


def _origin_type(value: SSAValue, permutation: Shape) -> TensorType[Attribute]:
    """The type of an operand's origin, with the leading axes that broadcasting adds."""
    sizes = sizes_of(value)
    return tensor(moved((1,) * (len(permutation) - len(sizes)) + sizes, permutation), element_of(value))


def _map_on(op: HighOp, types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> AccessMap | None:
    """The map of an operator on operands of other types, with other properties; `None` where these do not fit."""
    other = type(op).create(operands=Block(arg_types=types).args, properties=properties, result_types=op.result_types)
    try:
        return other.access_map()
    except VerifyException:
        return None
    finally:
        other.drop_all_references()


def _lifted(axes: Axes, space: Axes) -> Axes:
    """The axes of an operand, with the leading axes that broadcasting adds."""
    return (*space[: len(space) - len(axes)], *axes)


def matches(before: Axes, after: Axes, order: Shape, names: dict[str, str]) -> bool:
    """Whether each axis matches the axis at its position in `order`; `names` collects the matching names."""
    for axis, name in enumerate(before):
        other = after[order[axis]]
        if is_starred(name) != is_starred(other) or is_free(name) != is_free(other):
            return False
        is_known = is_free(name) or (name == other and (name != STAR or order[axis] == axis))
        if not is_known or names.setdefault(plain(name), plain(other)) != plain(other):
            return False
    return True


def _order(before: Axes, after: Axes, names: Mapping[str, str]) -> Shape | None:
    """Which axis of a result is each axis of another one; `None` where one is missing."""
    positions = {plain(name): axis for axis, name in enumerate(after)}
    known = (names.get(plain(name), plain(name)) for name in before)
    found = tuple(axis if not name else positions.get(name, -1) for axis, name in enumerate(known))
    return found if sorted(found) == list(range(len(after))) else None


class PerAxis(Enum):
    """The items of a property for each axis of the first operand within `...`."""

    EXTENT = "a size of the result, or a place along the axis"
    FACTOR = "a number"
    ENDS = "a number for the front of each axis, and then one for the back of each"


def moved_properties(op: HighOp, space: Axes, permutation: Shape) -> dict[str, AttributeValue]:
    """The properties of `op` that name axes, or have items for each axis, permuted to the origin of its operand."""
    found: dict[str, AttributeValue] = {}
    rank = len(permutation)
    for name in op.AXIS_PROPERTIES:
        value = op.properties[name]
        if value.name == DenseArrayBase.name:
            found[name] = sorted(permutation[normalize_axis(axis, rank)] for axis in ints(value))
        else:
            found[name] = permutation[normalize_axis(integer(value), rank)]
    origin_axes = [permutation[axis] for axis, name in enumerate(space) if is_free(name)]
    order = ranking(origin_axes)
    for name, kind in op.LIST_PROPERTIES.items():
        if (value := op.properties.get(name)) is None:
            continue
        items = items_of(value)
        middle = len(items) // 2
        parts = [items[:middle], items[middle:]] if kind is PerAxis.ENDS else [items]
        found[name] = cast("AttributeValue", [item for part in parts for item in _moved_behind(part, order)])
    return found


def _moved_behind(items: Sequence[Item], order: Shape) -> tuple[Item, ...]:
    """The last items permuted; leading items, for axes that broadcasting adds, are unchanged."""
    first = len(items) - len(order)
    return (*items[:first], *moved(items[first:], order))


def axis_runs(before: Shape, after: Shape) -> list[tuple[list[int], list[int]]]:
    """
    The shortest runs of axes of two shapes that hold the same elements under both: a reshape is a reshape of each run.

    Axes of size one are in no run of `before`, and in `after` in the run of the axis before them, if there is one.
    """
    sources = [axis for axis, size in enumerate(before) if size != 1]
    targets = [axis for axis, size in enumerate(after) if size != 1]
    runs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(sources):
        runs.append((i, j))
        left, right = before[sources[i]], after[targets[j]]
        i, j = i + 1, j + 1
        while left != right:
            if left < right:
                left, i = left * before[sources[i]], i + 1
            else:
                right, j = right * after[targets[j]], j + 1
    starts = [*(targets[j] for _, j in runs), len(after)]
    ends = [*(i for i, _ in runs), len(sources)][1:]
    return [
        (sources[i:end], list(range(starts[index], starts[index + 1])))
        for index, ((i, _), end) in enumerate(zip(runs, ends, strict=True))
    ]


def untransposed_reshape(op: HighOp, before: Shape, after: Shape, permutation: Shape) -> Untransposed | None:
    """
    The form of a reshape from `before` to `after`: runs of axes that it does not mix are in the order of the origin.

    The axes of a run have to be adjacent; if they are not in the origin, a transpose brings them together.
    """
    runs = [] if 0 in before else axis_runs(before, after)
    origins = [[permutation[axis] for axis in sources] for sources, _ in runs]
    order = sorted(range(len(runs)), key=lambda run: min(origins[run]))
    arranged = [axis for run in order for axis in origins[run]]
    if order == sorted(order):
        return None
    leading = range(runs[0][1][0])
    targets = (*leading, *(axis for run in order for axis in runs[run][1]))
    form = Untransposed(changed(op, shape=[after[axis] for axis in targets]), inverse(targets))
    if arranged == sorted(arranged):
        return form
    units = [axis for axis in range(len(permutation)) if axis not in arranged]
    return replace(form, before=(*units, *arranged))
