"""
How operators act on transposed operands: on the origins, under other properties, with a transposed result.

`HighOp.untransposed` says it for each operator, and `sink-transposes` asks it. What operators have in common is here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from xdsl.ir import Attribute

from glow_mlir.dialects.attribute_syntax import AttributeValue, to_attribute
from glow_mlir.dialects.properties import integer, sizes
from glow_mlir.dialects.shapes import Shape, normalize_axis, rank_of
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes

if TYPE_CHECKING:
    from glow_mlir.dialects.glow_high.base import HighOp

Item = TypeVar("Item")


@dataclass(frozen=True)
class Untransposed:
    """An operator with transposed operands, told as one on their origins."""

    properties: Mapping[str, Attribute]
    """The complete properties of the operator on the origins."""
    permutation: Shape
    """The permutation by which its results have to be transposed to be those of the operator."""
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
    """A list with one item an axis of a transposed operand, in the order of its origin's axes."""
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


def along_axis(op: HighOp, permutation: Shape, *names: str) -> Untransposed:
    """The form of an operator whose properties `names` are axes, and whose result has all axes of its operand."""
    rank = len(permutation)
    axes = {name: permutation[normalize_axis(integer(op.properties[name]), rank)] for name in names or ("axis",)}
    return Untransposed(changed(op, **axes), permutation)


def along_lists(op: HighOp, permutation: Shape, *names: str) -> Untransposed:
    """The form of an operator whose properties `names`, where present, are lists with one item an axis."""
    lists = {name: moved(sizes(op.properties[name]), permutation) for name in names if name in op.properties}
    return Untransposed(changed(op, **lists), permutation)


def split_pairs(items: Sequence[Item], permutation: Shape) -> tuple[Item, ...]:
    """`moved` for a list of the leading items of all axes and then the trailing ones."""
    rank = len(permutation)
    return (*moved(items[:rank], permutation), *moved(items[rank:], permutation))


def over_trailing_axes(op: HighOp, axis: int, permutation: Shape) -> Untransposed | None:
    """The form of a normalization over the axes from `axis` on, which have to stay, with operands of no more axes."""
    rank = len(permutation)
    stays = permutation[axis:] == identity(rank)[axis:]
    within = all(rank_of(value) <= rank - axis for value in op.operands[1:])
    return Untransposed(dict(op.properties), permutation) if stays and within else None


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
    The form of a reshape from `before` to `after`: runs of axes that it does not mix come in the order of the origin.

    The axes of one run have to lie side by side; where they do not in the origin, a transpose brings them together.
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
