"""
Index notation: the dimension of each axis of the operands and of the result, like einsum.

An axis of an operand may be indexed by elements of another one: `table[rows[i], k], rows[i] -> y[i, k]`. Or it may be a
sum of dimensions, `2*i + j - 1`, that is a window; folds skip elements of windows that are outside the operand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache

from glow_mlir.errors import OptionError
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.identity import MAX_KEPT
from glow_mlir.support.symbols import Size

ELLIPSIS = "..."
"""Any number of leading axes."""

_TENSOR = re.compile(r"\s*([A-Za-z_]\w*)\s*\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\s*")
_COMMA = re.compile(r",(?![^\[]*\])")
_AXIS = re.compile(r"[A-Za-z_]\w*|\.\.\.|1")
_INDEX_AXIS = re.compile(r"[A-Za-z_]\w*|\.\.\.|\d+")
_TERM = re.compile(r"([+-]?)(?:(?:([0-9]+)\*)?([A-Za-z_][\w.]*)|([0-9]+))")
_EXTENT = re.compile(r"\s*([A-Za-z_]\w*)\s*<\s*([0-9]+)\s*")


@dataclass(frozen=True)
class Sum:
    """An index that is a sum: dimensions with their factors, and a constant."""

    terms: Mapping[str, int]
    offset: int

    def __str__(self) -> str:
        terms = (name if times == 1 else f"{times}*{name}" for name, times in self.terms.items())
        sign = "-" if self.offset < 0 else "+"
        return " + ".join(terms) + (f" {sign} {abs(self.offset)}" if self.offset else "")


@lru_cache(MAX_KEPT)
def sum_of(axis: str) -> Sum | None:
    """Parse an axis that is a sum; `None` for a dimension, `...` or `1`. Raises `ValueError` for anything else."""
    if axis.isdigit() or index_of(axis) is not None or re.fullmatch(r"\.\.\.\w*|[A-Za-z_]\w*", axis):
        return None
    terms, offset, position, text = dict[str, int](), 0, 0, "".join(axis.split())
    while position < len(text):
        match = _TERM.match(text, position)
        if match is None or (position > 0 and not match[1]):
            raise ValueError(f"'{axis}' is no axis")
        sign, position = -1 if match[1] == "-" else 1, match.end()
        if match[4]:
            offset += sign * int(match[4])
        elif match[3] in terms or sign * int(match[2] or 1) <= 0:
            raise ValueError(f"'{axis}' has a dimension twice, or not times a number above 0")
        else:
            terms[match[3]] = int(match[2] or 1)
    if not terms:
        raise ValueError(f"'{axis}' is no axis")
    return Sum(terms, offset)


def names_in(axis: str) -> tuple[str, ...]:
    """The dimensions of an axis, or the axis itself if it is `...` or a number."""
    if (index := index_of(axis)) is not None:
        return tuple(index.dimensions)
    found = sum_of(axis)
    return (axis,) if found is None else tuple(found.terms)


@dataclass(frozen=True)
class Access:
    """
    A tensor of a signature: its name, and the dimension of each axis, `1` for an axis of size one.

    An axis that is read by index is the text of the element that is the index, such as `rows[i]` (see `index_of`). A
    number among the axes of such an element is an index itself.
    """

    name: str
    axes: tuple[str, ...]
    borders: tuple[tuple[int, int], ...] = ()
    """The zeros before and after an operand along each axis, which folds count as elements; empty if there are none."""

    @property
    def names(self) -> list[str]:
        """The dimensions that it has, in order, those of sums among them."""
        return [name for axis in self.axes for name in names_in(axis)]

    @property
    def is_windowed(self) -> bool:
        """Whether an axis is a sum."""
        return any(map(sum_of, self.axes))

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(self.axes)}]"

    @property
    def indices(self) -> list[Access]:
        """The elements that are indices of axes."""
        return [found for axis in self.axes if (found := index_of(axis)) is not None]

    @property
    def dimensions(self) -> frozenset[str]:
        """The dimensions that determine which element is read."""
        return frozenset(filter(is_dimension, self.names))


@lru_cache(MAX_KEPT)
def index_of(axis: str) -> Access | None:
    """The element that is the index of an axis; `None` for an axis that is a dimension, or of size one."""
    match = _TENSOR.fullmatch(axis)
    return None if match is None else Access(match[1], _axes(match[2]))


def is_dimension(axis: str) -> bool:
    """Whether an axis is a dimension of the index space, and neither of size one nor read by index."""
    return axis != ELLIPSIS and not axis.isdigit() and index_of(axis) is None


def _axes(text: str) -> tuple[str, ...]:
    """The axes that a list names, without spaces around them."""
    return tuple(axis.strip() for axis in _COMMA.split(text)) if text.strip() else ()


@dataclass(frozen=True)
class Signature:
    """
    The operands and the result of a kernel, such as `x[..., i, k], y[k] -> z[..., i]`.

    Sizes of dimensions that are an axis of no operand follow a `;`: `x[2*i + j - 1] -> y[i]; j < 3`. By default,
    windows exceed both ends of an operand by the same amount.
    """

    operands: tuple[Access, ...]
    result: Access
    extents: Mapping[str, Size] = field(default_factory=dict[str, Size])

    @staticmethod
    def parse(text: str) -> Signature:
        """Parse a signature; raises `OptionError` if it is invalid."""
        tensors, _, tail = text.partition(";")
        left, arrow, right = tensors.partition("->")
        if not arrow:
            raise _error(text, "it has no '->'", "write x[i, j] -> y[i]")
        operands, results = _accesses(left, text), _accesses(right, text)
        if len(results) != 1:
            raise _error(text, f"it has {len(results)} results", "a kernel gives one tensor")
        signature = Signature(tuple(operands), results[0], _extents(tail, text))
        signature._check(text)
        return signature

    def _check(self, text: str) -> None:
        names = [access.name for access in self.operands]
        if len(set(names)) != len(names):
            raise _error(text, "two operands have one name", "name each operand")
        for access in (*self.operands, self.result):
            own = (axis for axis in access.axes if index_of(axis) is None)
            named = [name for axis in own for name in names_in(axis) if name != "1"]
            if len(set(named)) != len(named):
                raise _error(text, f"{access} has a dimension twice", "name each axis of a tensor")
            if ELLIPSIS in access.axes[1:]:
                raise _error(text, f"'...' of {access} is not in front", "leading axes come first")
        self._check_indices(text)
        known = {name for access in self.operands for name in access.names}
        plain = {axis for access in self.operands for axis in access.axes}
        for name in self.extents:
            if name not in known or name in plain:
                raise _error(text, f"the size of '{name}' is given, but it is in no sum alone", "write x[i + j]; j < 3")
        if self.result.is_windowed:
            raise _error(text, f"{self.result} has a sum", "sums are axes of operands")
        for axis in self.result.axes:
            if axis not in known or axis == "1":
                raise _error(text, f"no operand has the axis '{axis}' of the result", "")

    def _check_indices(self, text: str) -> None:
        """Check that each index of an axis is an element of an operand."""
        ranks = {access.name: len(access.axes) for access in self.operands}
        for access in self.operands:
            for index in access.indices:
                if index.name not in ranks or index.name == access.name:
                    raise _error(text, f"{index} in {access} is no other operand", "list the operand of indices, too")
                if ELLIPSIS not in index.axes and len(index.axes) != ranks[index.name]:
                    raise _error(text, f"'{index.name}' has {ranks[index.name]} axes, not as {index}", "")

    def dimensions(self) -> list[str]:
        """The dimensions that it names, in order: those of the result, then others."""
        names = (name for access in (self.result, *self.operands) for name in access.names)
        return [name for name in dict.fromkeys(names) if is_dimension(name)]

    def expanded(self, ranks: Sequence[int]) -> Signature:
        """
        The signature for operands of these ranks, with a dimension in place of each axis that `...` stands for.

        Operands may have fewer leading axes than others: they broadcast. Raises `ValueError` for a rank that does not
        fit.
        """
        if len(ranks) != len(self.operands):
            raise ValueError(f"{len(self.operands)} operands, got {len(ranks)}")
        counts = [_leading(access, rank) for access, rank in zip(self.operands, ranks, strict=True)]
        most = max(counts, default=0)
        leading = [f"{ELLIPSIS}{number}" for number in range(most)]
        own = {access.name: leading[most - count :] for access, count in zip(self.operands, counts, strict=True)}
        operands = [_expanded(access, own) for access in self.operands]
        return Signature(tuple(operands), Access(self.result.name, _spelled(self.result.axes, leading)), self.extents)


def _leading(access: Access, rank: int) -> int:
    """How many axes `...` stands for in an operand of that rank."""
    named = len([axis for axis in access.axes if axis != ELLIPSIS])
    if rank < named or (rank > named and ELLIPSIS not in access.axes):
        raise ValueError(f"{access} has {named} axes{' or more' if ELLIPSIS in access.axes else ''}, got {rank}")
    return rank - named


def _expanded(access: Access, leading: Mapping[str, Sequence[str]]) -> Access:
    """An operand, or an element of one, with the dimensions that `...` stands for in the operand of its name."""
    found = [axis if (index := index_of(axis)) is None else str(_expanded(index, leading)) for axis in access.axes]
    return Access(access.name, _spelled(found, leading[access.name]))


def _spelled(axes: Sequence[str], leading: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for axis in axes for name in (leading if axis == ELLIPSIS else [axis]))


def _accesses(text: str, whole: str) -> list[Access]:
    """The tensors that a side of a signature lists."""
    found: list[Access] = []
    position = 0
    while position < len(text.rstrip()):
        match = _TENSOR.match(text, position)
        if match is None:
            raise _error(whole, f"'{text[position:].strip()}' is no tensor", "write x[i, j]")
        found.append(Access(match[1], tuple(_checked(axis, whole) for axis in _axes(match[2]))))
        position = match.end()
        if position < len(text.rstrip()):
            if text[position] != ",":
                raise _error(
                    whole, f"'{text[position:].strip()}' does not follow a tensor", "put commas between tensors"
                )
            position += 1
    return found


def _checked(axis: str, whole: str) -> str:
    """An axis in the form of `Access`."""
    try:
        found = index_of(axis) or sum_of(axis)
        if isinstance(found, Access):
            is_known = all(map(_INDEX_AXIS.fullmatch, found.axes))
        else:
            is_known = found is not None or _AXIS.fullmatch(axis) is not None
        if is_known:
            return str(found or axis)
        reason = f"'{axis}' is no axis"
    except ValueError as error:
        reason = str(error)
    raise _error(whole, reason, "an axis is a name, '...', 1, a sum as 2*i + j - 1 or an element as rows[i]")


def _extents(tail: str, whole: str) -> dict[str, Size]:
    """The sizes after the tensors of a signature."""
    found: dict[str, Size] = {}
    for part in tail.split(",") if tail.strip() else ():
        match = _EXTENT.fullmatch(part)
        if match is None:
            raise _error(whole, f"'{part.strip()}' is no size", "write j < 3")
        found[match[1]] = int(match[2])
    return found


def _error(text: str, reason: str, hint: str) -> OptionError:
    return OptionError(f"the signature '{text}': {reason}", hint=hint)
