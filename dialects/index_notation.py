"""
Index notation: which dimension each axis of the operands and of the result is, in the manner of einsum.

An axis of an operand may be a sum of dimensions, `2*i + j - 1`: windows, of which those elements take part in folds
that there are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache

from glow_mlir.errors import OptionError
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size

ELLIPSIS = "..."
"""Any number of leading axes."""

_TENSOR = re.compile(r"\s*([A-Za-z_]\w*)\s*\[([^\[\]]*)\]\s*")
_AXIS = re.compile(r"[A-Za-z_]\w*|\.\.\.|1")
_TERM = re.compile(r"([+-]?)(?:(?:([0-9]+)\*)?([A-Za-z_][\w.]*)|([0-9]+))")
_EXTENT = re.compile(r"\s*([A-Za-z_]\w*)\s*<\s*([0-9]+)\s*")


@dataclass(frozen=True)
class Sum:
    """An index that is a sum: dimensions, by how much each moves it, and where it starts."""

    terms: Mapping[str, int]
    offset: int

    def __str__(self) -> str:
        terms = (name if times == 1 else f"{times}*{name}" for name, times in self.terms.items())
        sign = "-" if self.offset < 0 else "+"
        return " + ".join(terms) + (f" {sign} {abs(self.offset)}" if self.offset else "")


@cache
def sum_of(axis: str) -> Sum | None:
    """The sum that an axis is; `None` for a dimension, `...` or `1`. Raises `ValueError` for what is none of them."""
    if _AXIS.fullmatch(axis) or re.fullmatch(r"\.\.\.\w*", axis):
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
    """The dimensions of an axis, or the `...` or `1` that it is."""
    found = sum_of(axis)
    return (axis,) if found is None else tuple(found.terms)


@dataclass(frozen=True)
class Access:
    """A tensor of a signature: its name, and what each of its axes is, `1` for one of size one."""

    name: str
    axes: tuple[str, ...]
    borders: tuple[tuple[int, int], ...] = ()
    """How many zeros an operand has before and behind it along each axis, which folds take as elements; or nothing."""

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


@dataclass(frozen=True)
class Signature:
    """
    What a kernel reads and gives, as `x[..., i, k], y[k] -> z[..., i]` says it.

    Behind `;` stands how long dimensions are that no operand has as an axis: `x[2*i + j - 1] -> y[i]; j < 3`. Where it
    does not stand there, windows reach as far behind an operand as before it.
    """

    operands: tuple[Access, ...]
    result: Access
    extents: Mapping[str, Size] = field(default_factory=dict[str, Size])

    @staticmethod
    def parse(text: str) -> Signature:
        """The signature that a text says; raises `OptionError` for what is none."""
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
            named = [name for name in access.names if name != "1"]
            if len(set(named)) != len(named):
                raise _error(text, f"{access} has a dimension twice", "name each axis of a tensor")
            if ELLIPSIS in access.axes[1:]:
                raise _error(text, f"'...' of {access} is not in front", "leading axes come first")
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

    def dimensions(self) -> list[str]:
        """The dimensions that it names, in order: those of the result, then others."""
        names = (name for access in (self.result, *self.operands) for name in access.names)
        return [name for name in dict.fromkeys(names) if name not in (ELLIPSIS, "1")]

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
        operands = [
            Access(access.name, _spelled(access.axes, leading[most - count :]))
            for access, count in zip(self.operands, counts, strict=True)
        ]
        return Signature(tuple(operands), Access(self.result.name, _spelled(self.result.axes, leading)), self.extents)


def _leading(access: Access, rank: int) -> int:
    """How many axes `...` stands for in an operand of that rank."""
    named = len([axis for axis in access.axes if axis != ELLIPSIS])
    if rank < named or (rank > named and ELLIPSIS not in access.axes):
        raise ValueError(f"{access} has {named} axes{' or more' if ELLIPSIS in access.axes else ''}, got {rank}")
    return rank - named


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
        axes = [axis.strip() for axis in match[2].split(",")] if match[2].strip() else []
        for axis in axes:
            try:
                sum_of(axis)
            except ValueError as error:
                raise _error(whole, str(error), "an axis is a name, '...', 1 or a sum such as 2*i + j - 1") from None
        found.append(Access(match[1], tuple(str(sum_of(axis) or axis) for axis in axes)))
        position = match.end()
        if position < len(text.rstrip()):
            if text[position] != ",":
                raise _error(
                    whole, f"'{text[position:].strip()}' does not follow a tensor", "put commas between tensors"
                )
            position += 1
    return found


def _extents(tail: str, whole: str) -> dict[str, Size]:
    """The sizes behind the tensors of a signature."""
    found: dict[str, Size] = {}
    for part in tail.split(",") if tail.strip() else ():
        match = _EXTENT.fullmatch(part)
        if match is None:
            raise _error(whole, f"'{part.strip()}' is no size", "write j < 3")
        found[match[1]] = int(match[2])
    return found


def _error(text: str, reason: str, hint: str) -> OptionError:
    return OptionError(f"the signature '{text}': {reason}", hint=hint)
