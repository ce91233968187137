"""
Access maps: the dimension of each axis of an operator's operands and results.

An operator declares it once, in index notation. Passes derive the rest from it: the axes along which indices are
independent, the form on transposed operands, on rows, or on some samples, and the location of samples in results.

    left[..., i, *k], right[..., *k, j], bias[j] -> result[...; i, j]

A **name** is a dimension with independent indices: each index of the results depends on the same index of the operands
alone. A **star** marks a dimension that is read or written as a whole: folded, sorted, scanned, moved, or seen through
a window. `...` stands for all remaining axes, which the operator treats alike; tensors with fewer of them have the last
ones. `*...` are such axes with a star, and a star alone is any number of axes that are read or written as a whole.
Absent operands and operands with too few axes broadcast; operands that the notation leaves out are read as a whole. A
tile has all axes after the `;` of the first result, and by default as few axes as possible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from glow_mlir.dialects.glow_high.independence import IndependentAxis, ParallelAxes
from glow_mlir.dialects.shapes import MAX_AXES, require, require_equal
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.identity import MAX_KEPT
from glow_mlir.support.symbols import Size, Sizes

Axes = tuple[str, ...]
"""The dimension of each axis of a tensor."""

Ranks = tuple[tuple[str, int], ...]
"""Names of tensors, and how many axes they have."""

ELLIPSIS, STAR, TILE = "...", "*", ";"

UNKNOWN = -1
"""The rank of a result that has as many axes as its notation says."""

_TENSOR = re.compile(r"\s*(\w+)\s*\[([^\[\]]*)\]\s*(,|$)")
_TOKEN = re.compile(r"\s*(\*?\.\.\.|\*?[A-Za-z]\w*|\*|;)\s*,?")


@dataclass(frozen=True)
class AccessMap:
    """
    The dimensions of the axes of all present operands and of all results.

    A tile of the first result has one index of each of its first `tiled` axes that are independent. It has the same
    properties as the whole operator, so that there are no tiles if properties determine the sizes of results.
    """

    operands: tuple[Axes, ...]
    results: tuple[Axes, ...]
    tiled: int = MAX_AXES

    def independent(self) -> Sequence[IndependentAxis]:
        """The axes whose indices are computed independently, in the order of the first result."""
        return _independent(self.operands, self.results)

    def parallel(self, names: Sequence[str]) -> ParallelAxes:
        """The leading axes of all results along which it is tiled; operands, which have these names, by name."""
        leading: list[IndependentAxis] = []
        for place, axis in enumerate(self.independent()[: self.tiled]):
            agree = len(set(zip(names, axis.operands, strict=True))) == len(set(names))
            if not agree or any(result != place for result in axis.results):
                break
            leading.append(axis)
        columns = {name: [axis.operands[at] for axis in leading] for at, name in enumerate(names)}
        moved = {name: axes for name, axes in columns.items() if any(axis is not None for axis in axes)}
        return ParallelAxes(len(leading), moved)


@lru_cache(MAX_KEPT)
def _independent(operands: tuple[Axes, ...], results: tuple[Axes, ...]) -> tuple[IndependentAxis, ...]:
    """The independent axes of a map, cached for equal layers."""
    tensors = (*operands, *results)
    found: list[IndependentAxis] = []
    for name in results[0] if results else ():
        is_mixed = is_starred(name) or any(STAR + name in axes or axes.count(name) > 1 for axes in tensors)
        if not is_mixed and all(name in axes for axes in results):
            indices = tuple(axes.index(name) if name in axes else None for axes in operands)
            found.append(IndependentAxis(indices, tuple(axes.index(name) for axes in results)))
    return tuple(found)


def is_starred(name: str) -> bool:
    """Whether a dimension is read or written as a whole."""
    return name.startswith(STAR)


def plain(name: str) -> str:
    """The name of a dimension without its star; empty for one that has none."""
    return name.removeprefix(STAR)


def is_free(name: str) -> bool:
    """Whether a dimension is one of `...`, which operators treat alike."""
    return plain(name).startswith(ELLIPSIS)


def free_axes(rank: int) -> Axes:
    """The dimensions of a tensor of that rank whose axes are `...`."""
    return tuple(f"{ELLIPSIS}{axis}" for axis in range(rank))


def starred(axes: Axes, chosen: Iterable[int]) -> Axes:
    """These dimensions, with stars at some of the axes, counted from the front."""
    marked = frozenset(chosen)
    return tuple(STAR + plain(name) if axis in marked else name for axis, name in enumerate(axes))


def result_sizes(found: AccessMap, shapes: Sequence[Sizes]) -> list[Sizes]:
    """
    The sizes of the results, from the operands of those shapes that have the same dimensions.

    Raises `VerifyException` if a dimension has two sizes, or if no operand has it; dimensions of `...` broadcast.
    """
    known: dict[str, Size] = {}
    for axes, shape in zip(found.operands, shapes, strict=True):
        for name, size in zip(axes, shape, strict=True):
            own = known.setdefault(plain(name), size)
            if is_free(name) and own == 1:
                known[plain(name)] = size
            elif name != STAR and not (is_free(name) and (is_starred(name) or size == 1)):
                require_equal(size, own, f"dimension '{name}' is {own} and {size} long")
    for axes in found.results:
        missing = [name for name in axes if not plain(name) or plain(name) not in known]
        require(not missing, f"no operand says how long {', '.join(missing)} is")
    return [tuple(known[plain(name)] for name in axes) for axes in found.results]


@lru_cache(MAX_KEPT)
def access_map(notation: str, operands: Ranks, results: Ranks) -> AccessMap:
    """
    The map that a notation gives for operands and results of these names and ranks.

    Raises `ValueError` where a rank does not fit, or the notation leaves out a result.
    """
    inputs, outputs = _parsed(notation)
    if any(rank == UNKNOWN for _, rank in results):
        results = _ranked(notation, operands)
    ranked = [*operands, *results]
    texts = [inputs.get(name, (STAR,)) for name, _ in operands] + [outputs[name] for name, _ in results]
    widths = [_width(axes, rank) for axes, (_, rank) in zip(texts, ranked, strict=True)]
    most = max((width for axes, width in zip(texts, widths, strict=True) if _has_free(axes)), default=0)
    spelled = [_spelled(axes, width, most, rank) for axes, width, (_, rank) in zip(texts, widths, ranked, strict=True)]
    tiled = MAX_AXES
    if results and TILE in texts[len(operands)]:
        front = texts[len(operands)][: texts[len(operands)].index(TILE)]
        tiled = len(_spelled(front, widths[len(operands)], most, None))
    return AccessMap(tuple(spelled[: len(operands)]), tuple(spelled[len(operands) :]), tiled)


def _ranked(notation: str, operands: Ranks) -> Ranks:
    """The names and ranks of the results of a notation, for those operands."""
    inputs, outputs = _parsed(notation)
    if any(STAR in axes for axes in outputs.values()):
        raise ValueError(f"the notation '{notation}' does not say how many axes a result has")
    free = [_width(inputs[name], rank) for name, rank in operands if _has_free(inputs.get(name, ()))]
    most = max(free, default=0)
    return tuple((name, _named(axes) + most * _has_free(axes)) for name, axes in outputs.items())


@lru_cache(MAX_KEPT)
def _parsed(notation: str) -> tuple[dict[str, Axes], dict[str, Axes]]:
    """The axes of operands and of results in a notation, by name."""
    left, arrow, right = notation.partition("->")
    if not arrow:
        raise ValueError(f"the notation '{notation}' has no '->'")
    return _tensors(left, notation), _tensors(right, notation)


def _tensors(text: str, notation: str) -> dict[str, Axes]:
    found: dict[str, Axes] = {}
    position = 0
    while text[position:].strip():
        match = _TENSOR.match(text, position)
        if match is None or match[1] in found:
            raise ValueError(f"the notation '{notation}': '{text[position:].strip()}' is no tensor that is new")
        tokens = _TOKEN.findall(match[2])
        if _TOKEN.sub("", match[2]).strip() or sum(map(_is_elastic, tokens)) > 1:
            raise ValueError(f"the notation '{notation}': '{match[2]}' are no axes")
        found[match[1]] = tuple(tokens)
        position = match.end()
    return found


def _is_elastic(token: str) -> bool:
    """Whether a token stands for any number of axes."""
    return token == STAR or token.endswith(ELLIPSIS)


def _has_free(axes: Axes) -> bool:
    return any(token.endswith(ELLIPSIS) for token in axes)


def _named(axes: Axes) -> int:
    """How many axes a tensor has at least."""
    return sum(not _is_elastic(token) and token != TILE for token in axes)


def _width(axes: Axes, rank: int) -> int:
    """The number of axes that the elastic token stands for; raises `ValueError` where the rank does not fit."""
    named = _named(axes)
    if rank > named and not any(map(_is_elastic, axes)):
        raise ValueError(f"[{', '.join(axes)}] has {named} axes, got {rank}")
    return max(0, rank - named)


def _spelled(axes: Axes, width: int, most: int, rank: int | None) -> Axes:
    """The dimensions of a tensor of that rank; one with fewer axes than the notation names has the last ones."""
    found: list[str] = []
    for token in axes:
        if token == STAR:
            found += [STAR] * width
        elif token.endswith(ELLIPSIS):
            found += [f"{token}{number}" for number in range(most - width, most)]
        elif token != TILE:
            found.append(token)
    return tuple(found if rank is None else found[len(found) - rank :])
