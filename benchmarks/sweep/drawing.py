"""What templates draw from, and the table that has them by operator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from sweep.points import Application, Composed

Choice = TypeVar("Choice")

FLOATS = ("f32", "f16", "f64")
INTEGERS = ("i8", "u8", "i32", "i64")
NUMBERS = (*FLOATS, *INTEGERS)
EVERYTHING = (*NUMBERS, "bool")

WORK = (2**17, 2**22)
"""From how many elements to how many operands have, where an operator does little with each."""


class Draw:
    """Draws sizes, shapes and choices by a seed; `span` is from how many elements to how many operands have."""

    def __init__(self, seed: int, span: tuple[int, int] = WORK) -> None:
        self.random = np.random.default_rng(seed)
        self.span = span

    def size(self, low: int, high: int) -> int:
        """A size in [`low`, `high`], most often an odd one, as often below the geometric middle as above."""
        size = round(math.exp(self.random.uniform(math.log(low), math.log(high))))
        return size | 1 if self.random.random() < 0.75 and size < high else size

    def pick(self, *choices: Choice) -> Choice:
        """One of them."""
        return choices[int(self.random.integers(len(choices)))]

    def chance(self, share: float = 0.5) -> bool:
        """Whether it is so."""
        return bool(self.random.random() < share)

    def number(self, low: float, high: float) -> float:
        """A number of few digits, that text keeps."""
        return round(float(self.random.uniform(low, high)), 3)

    def shape(self, rank: int | None = None, cost: float = 1) -> tuple[int, ...]:
        """A shape of odd sizes, of a rank from 1 to 5; `cost` is how much an element takes, in that of an addition."""
        rank = int(self.random.integers(1, 6)) if rank is None else rank
        low, high = (max(bound / cost, 2) for bound in self.span)
        elements = math.exp(self.random.uniform(math.log(low), math.log(high)))
        shares = self.random.dirichlet([2.0] * rank)
        sizes = [max(1, round(elements**share)) for share in shares]
        return tuple(size | 1 if self.chance(0.6) else size for size in sizes)

    def broadcast(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that is broadcast to `shape`: all of it, one number, the last axes, or some axes of one."""
        match int(self.random.integers(4)):
            case 0:
                return tuple(shape)
            case 1:
                return ()
            case 2:
                return tuple(shape[int(self.random.integers(len(shape))) :])
            case _:
                return tuple(size if self.chance() else 1 for size in shape)

    def axis(self, rank: int) -> int:
        """An axis, which may be counted from the end."""
        return int(self.random.integers(-rank, rank))

    def axes(self, rank: int) -> list[int]:
        """Some axes, at least one."""
        axes = [axis for axis in range(rank) if self.chance()]
        return axes or [rank - 1]


Template = Callable[[Draw, str, str], Application | Composed]
"""Draws one application of an operator: from what, which operator, and which element type."""

TEMPLATES: dict[tuple[str, str], tuple[Template, Sequence[str]]] = {}
"""Domain and operator → its template, and the element types that it takes."""


Kind = TypeVar("Kind", bound=Template)


def draws(types: Sequence[str], *operators: str, domain: str = "") -> Callable[[Kind], Kind]:
    """Enter a template in the table, for these operators."""

    def enter(template: Kind) -> Kind:
        for operator in operators:
            TEMPLATES[domain, operator] = template, types
        return template

    return enter
