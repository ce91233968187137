"""Index notation: which dimension each axis of the operands and of the result is, in the manner of einsum."""

from __future__ import annotations

import re
from collections.abc import Sequence

from glow_mlir.errors import OptionError
from glow_mlir.support.dataclass import dataclass

ELLIPSIS = "..."
"""Any number of leading axes."""

_TENSOR = re.compile(r"\s*([A-Za-z_]\w*)\s*\[([^\[\]]*)\]\s*")
_AXIS = re.compile(r"[A-Za-z_]\w*|\.\.\.|1")


@dataclass(frozen=True)
class Access:
    """A tensor of a signature: its name, and what each of its axes is, `1` for one of size one."""

    name: str
    axes: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(self.axes)}]"


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
            named = [axis for axis in access.axes if axis != "1"]
            if len(set(named)) != len(named):
                raise _error(text, f"{access} has a dimension twice", "name each axis of a tensor")
            if ELLIPSIS in access.axes[1:]:
                raise _error(text, f"'...' of {access} is not in front", "leading axes come first")
        known = {axis for access in self.operands for axis in access.axes}
        for axis in self.result.axes:
            if axis not in known or axis == "1":
                raise _error(text, f"no operand has the axis '{axis}' of the result", "")

    def dimensions(self) -> list[str]:
        """The dimensions that it names, in order: those of the result, then others."""
        axes = (axis for access in (self.result, *self.operands) for axis in access.axes)
        return [axis for axis in dict.fromkeys(axes) if axis not in (ELLIPSIS, "1")]

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
        return Signature(tuple(operands), Access(self.result.name, _spelled(self.result.axes, leading)))


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
            if not _AXIS.fullmatch(axis):
                raise _error(whole, f"'{axis}' is no axis", "an axis is a name, '...' or 1")
        found.append(Access(match[1], tuple(axes)))
        position = match.end()
        if position < len(text.rstrip()):
            if text[position] != ",":
                raise _error(
                    whole, f"'{text[position:].strip()}' does not follow a tensor", "put commas between tensors"
                )
            position += 1
    return found


def _error(text: str, reason: str, hint: str) -> OptionError:
    return OptionError(f"the signature '{text}': {reason}", hint=hint)
