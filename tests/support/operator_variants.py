"""
More cases of operators than `operator_cases` has: other shapes, element types and properties, and special numbers.

`tests/test_operator_variants.py` compiles those of a family into one function, and compares it with the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from execute import Case, Given
from operator_cases import OPERATORS

Cases = Iterator[Case]

FLOATS = ("f4", "f8", "f2")
NUMBERS = (*FLOATS, "i8", "i4", "i2", "i1", "u1", "u2", "u4", "u8")
EVERYTHING = (*NUMBERS, "?")


@dataclass(frozen=True)
class Family:
    """Cases that make one function, and the tolerance of `execute.assert_same`."""

    cases: Callable[[], Cases]
    tolerance: float | None


class Families(dict[str, Family]):
    """Families by name."""

    def add(self, tolerance: float | None = None) -> Callable[[Callable[[], Cases]], Callable[[], Cases]]:
        """Add the family that a function yields, by the name of the function."""

        def register(cases: Callable[[], Cases]) -> Callable[[], Cases]:
            self[cases.__name__] = Family(cases, tolerance)
            return cases

        return register


def case(operator: str, *operands: Given, **more: Any) -> Case:
    """A case of the operator of a name."""
    return Case(OPERATORS[operator], *operands, **more)
