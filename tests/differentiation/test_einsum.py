"""Gradients of Einstein summation."""

from __future__ import annotations

import pytest
from operator_gradients import check_operator, numbers

from glow_mlir.dialects.glow_high.einsum import EinsumOp

Shape = tuple[int, ...]

CASES: dict[str, tuple[Shape, ...]] = {
    "bij,bjk->bik": ((2, 2, 3), (2, 3, 2)),
    "bhid,bhjd->bhij": ((1, 2, 2, 3), (1, 2, 2, 3)),
    "i,j->ij": ((2,), (3,)),
    "ij,j": ((2, 3), (3,)),
    "ij->": ((2, 3),),
    "ij->ji": ((2, 3),),
    "ij,jk,kl->il": ((2, 2), (2, 3), (3, 2)),
    "ij,kl->il": ((2, 2), (2, 3)),
    "ii->i": ((3, 3),),
    "ii": ((3, 3),),
    "iji,j->ij": ((2, 3, 2), (3,)),
    "iii->i": ((2, 2, 2),),
    "...ij,...jk->...ik": ((2, 1, 2, 3), (3, 3, 2)),
    "...i,...i->...": ((1, 3), (2, 2, 3)),
    "...ii->...i": ((2, 2, 2),),
}


@pytest.mark.parametrize("equation", CASES)
def test_equation(equation: str) -> None:
    terms = {f"x{place}": numbers(*shape, seed=place) for place, shape in enumerate(CASES[equation])}
    check_operator(EinsumOp, terms, [list(terms)], equation=equation)


@pytest.mark.parametrize("equation", ["bij,bjk->bik", "iji,j->ij"])
def test_second_derivative(equation: str) -> None:
    terms = {f"x{place}": numbers(*shape, seed=place) for place, shape in enumerate(CASES[equation])}
    check_operator(EinsumOp, terms, [list(terms)], order=2, equation=equation)
