"""Operators that compute no index of an axis by itself are listed here, with their reason."""

from __future__ import annotations

from operator_cases import CASES
from operator_parts import operator_of

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.dialect import operators
from glow_mlir.dialects.glow_high.transposition import PerAxis

DATA = "data decide how many elements there are, and where"
GRAPHS = "a pass replaces it before anything asks"
NONE = "it has no operand"
RESHAPED = "its axes are others than those of its operand, and `runs` says what becomes of them"

WITHOUT = {
    "gradient": GRAPHS,
    "max_pool_with_indices": "indices count the elements of all images",
    "non_max_suppression": DATA,
    "non_zero": DATA,
    "reshape": RESHAPED,
    "saved": GRAPHS,
    "shape": NONE,
    "splat": NONE,
    "unique": DATA,
    "variables": GRAPHS,
}
"""Operator → why none of its axes is independent."""


def test_operators_without_independent_axes_are_listed() -> None:
    mixed = {name for name, case in CASES.items() if not operator_of(case.cases()[0]).access_map().independent()}
    replaced = {
        kind.name.removeprefix("glow_high.")
        for kind in operators()
        if issubclass(kind, HighOp) and not kind.HAS_INSTRUCTION
    }
    assert mixed | replaced == WITHOUT.keys()


def test_what_properties_say_the_size_of_has_no_tiles() -> None:
    """A tile has the properties of the whole, and would be as large."""
    sized = [case for case in CASES.values() if PerAxis.EXTENT in case.operator.LIST_PROPERTIES.values()]
    assert len(sized) > 1
    for case in sized:
        assert operator_of(case.cases()[0]).parallel_axes().count == 0, case.operator.name
