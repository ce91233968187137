"""
Index notation: which dimension each axis of the operands and of the result is, in the manner of einsum.

An axis of an operand may be read at elements of another one: `table[rows[i], k], rows[i] -> y[i, k]`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from glow_mlir.errors import OptionError
from glow_mlir.support.dataclass import dataclass

ELLIPSIS = "..."
"""Any number of leading axes."""

_TENSOR = re.compile(r"\s*([A-Za-z_]\w*)\s*\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\s*")
_COMMA = re.compile(r",(?![^\[]*\])")
_AXIS = re.compile(r"[A-Za-z_]\w*|\.\.\.|1")
_INDEX_AXIS = re.compile(r"[A-Za-z_]\w*|\.\.\.|\d+")


@dataclass(frozen=True)
class Access:
    """
    A tensor of a signature: its name, and what each of its axes is, `1` for one of size one.

    An axis that is read by index is the text of the element that says where, as `rows[i]` (`index_of`). Among the axes
    of such an element, a number is an index itself.
    """

    name: str
    axes: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(self.axes)}]"

    @property
    def indices(self) -> list[Access]:
        """The elements that say where axes are read."""
        return [found for axis in self.axes if (found := index_of(axis)) is not None]

    @property
    def dimensions(self) -> frozenset[str]:
        """The dimensions on which it depends which element is read."""
        own = frozenset(filter(is_dimension, self.axes))
        return own.union(*(found.dimensions for found in self.indices))


@cache
def index_of(axis: str) -> Access | None:
    """The element that says where an axis is read; `None` for an axis that is a dimension, or of size one."""
    match = _TENSOR.fullmatch(axis)
    return None if match is None else Access(match[1], _axes(match[2]))


def is_dimension(axis: str) -> bool:
    """Whether an axis is a dimension of the index space, and not one of size one, or read at an element."""
    return axis != ELLIPSIS and not axis.isdigit() and index_of(axis) is None


def _axes(text: str) -> tuple[str, ...]:
    """The axes that a list names, without spaces around them."""
    return tuple(axis.strip() for axis in _COMMA.split(text)) if text.strip() else ()


@dataclass(frozen=True)
class Signature:
    """What a kernel reads and gives, as `x[..., i, k], y[k] -> z[..., i]` says it."""

    operands: tuple[Access, ...]
    result: Access

    @staticmethod
    def parse(text: str) -> Signature:
        """The signature that a text says; raises `OptionError` for what is none."""
        left, arrow, right = text.partition("->")
        if not arrow:
            raise _error(text, "it has no '->'", "write x[i, j] -> y[i]")
        operands, results = _accesses(left, text), _accesses(right, text)
        if len(results) != 1:
            raise _error(text, f"it has {len(results)} results", "a kernel gives one tensor")
        signature = Signature(tuple(operands), results[0])
        signature._check(text)
        return signature

    def _check(self, text: str) -> None:
        names = [access.name for access in self.operands]
        if len(set(names)) != len(names):
            raise _error(text, "two operands have one name", "name each operand")
        for access in (*self.operands, self.result):
            named = [axis for axis in access.axes if axis == ELLIPSIS or is_dimension(axis)]
            if len(set(named)) != len(named):
                raise _error(text, f"{access} has a dimension twice", "name each axis of a tensor")
            if ELLIPSIS in access.axes[1:]:
                raise _error(text, f"'...' of {access} is not in front", "leading axes come first")
        self._check_indices(text)
        known = {axis for access in self.operands for axis in access.axes}
        for axis in self.result.axes:
            if axis not in known or axis == "1":
                raise _error(text, f"no operand has the axis '{axis}' of the result", "")

    def _check_indices(self, text: str) -> None:
        """Check that each element that says where an axis is read is one of an operand."""
        ranks = {access.name: len(access.axes) for access in self.operands}
        for access in self.operands:
            for index in access.indices:
                if index.name not in ranks or index.name == access.name:
                    raise _error(text, f"{index} in {access} is no other operand", "list the operand of indices, too")
                if ELLIPSIS not in index.axes and len(index.axes) != ranks[index.name]:
                    raise _error(text, f"'{index.name}' has {ranks[index.name]} axes, not as {index}", "")

    def dimensions(self) -> list[str]:
        """The dimensions that it names, in order: those of the result, then others."""
        axes = (axis for access in (self.result, *self.operands) for axis in access.axes)
        return [axis for axis in dict.fromkeys(axes) if is_dimension(axis)]

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
        return Signature(tuple(operands), Access(self.result.name, _spelled(self.result.axes, leading)))


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
    """An axis as `Access` has it."""
    index = index_of(axis)
    is_known = [_AXIS.fullmatch(axis)] if index is None else [_INDEX_AXIS.fullmatch(inner) for inner in index.axes]
    if not all(is_known):
        hint = "an axis is a name, '...', 1, or an element of indices such as rows[i]"
        raise _error(whole, f"'{axis}' is no axis", hint)
    return axis if index is None else str(index)


def _error(text: str, reason: str, hint: str) -> OptionError:
    return OptionError(f"the signature '{text}': {reason}", hint=hint)
