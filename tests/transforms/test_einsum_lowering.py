"""The lowering of Einstein summation preserves its meaning, and runs on the CPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from breadth import examples
from execute import Case, check, module_of
from hypothesis import given, settings
from hypothesis import strategies as st
from validation import validate

from glow_mlir.dialects.glow_high.einsum import EinsumOp

SIZES = {"a": 2, "b": 3, "c": 1, "d": 4}


def operands(equation: str, hidden: Sequence[Sequence[int]] = (), dtype: str = "float32") -> list[np.ndarray]:
    """Operands for an equation; `hidden` has the sizes that `...` stands for in each term."""
    arrays: list[np.ndarray] = []
    for position, term in enumerate(equation.partition("->")[0].split(",")):
        before, dots, after = term.partition("...")
        middle = hidden[position] if dots else ()
        shape = [*(SIZES[label] for label in before), *middle, *(SIZES[label] for label in after)]
        arrays.append(np.random.default_rng(position).integers(-4, 5, shape).astype(dtype))
    return arrays


@settings(max_examples=examples(80))
@given(
    data=st.data(),
    terms=st.lists(st.text("abcd", max_size=4), min_size=1, max_size=3),
    dtype=st.sampled_from(["float32", "int32"]),
)
def test_lowering_preserves_meaning(data: st.DataObject, terms: list[str], dtype: str) -> None:
    labels = sorted(set("".join(terms)))
    result = "".join(data.draw(st.permutations(labels)))[: data.draw(st.integers(0, len(labels)))]
    equation = f"{','.join(terms)}->{result}"
    module, inputs = module_of(Case(EinsumOp, operands(equation, dtype=dtype), equation=equation))
    validate(module, "assign-target,lower", inputs)


@pytest.mark.parametrize(
    ("equation", "hidden"),
    [
        ("...ab,...bd->...ad", [(2, 1), (3,)]),
        ("...ab,...bd", [(2, 3), (1, 1)]),
        ("a...b,b...->...a", [(2, 3), (3,)]),
        ("...aa->...a", [(2, 3)]),
        ("...,...", [(2, 1), (3,)]),
        ("ba", []),
    ],
)
def test_hidden_and_implicit_axes(equation: str, hidden: list[tuple[int, ...]]) -> None:
    check(EinsumOp, operands(equation, hidden), equation=equation)


@pytest.mark.parametrize("equation", ["cabd,cdbd->cab", "abd,adb->a", "ab,bd,da->", "a,b->ba", "aab->b"])
def test_machine_code(equation: str) -> None:
    check(EinsumOp, operands(equation), equation=equation)
