"""Triangular systems, Cholesky's factors and LU factors of StableHLO, against numpy."""

from __future__ import annotations

import re

import numpy as np
import pytest
from stablehlo_programs import check, signature_of, type_of

from glow_mlir.errors import UnsupportedError

GENERATOR = np.random.default_rng(0)
MATRICES = GENERATOR.standard_normal((2, 4, 4)) + 4 * np.eye(4)


@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE"])
@pytest.mark.parametrize("is_unit", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_triangular_systems(left: bool, lower: bool, is_unit: bool, transpose: str) -> None:
    triangle = np.tril(MATRICES) if lower else np.triu(MATRICES)
    if is_unit:
        triangle = triangle * (1 - np.eye(4)) + np.eye(4)
    matrix = triangle if transpose == "NO_TRANSPOSE" else triangle.swapaxes(1, 2)
    expected = GENERATOR.standard_normal((2, 4, 3) if left else (2, 3, 4))
    right = matrix @ expected if left else expected @ matrix
    flags = f"left_side = {str(left).lower()}, lower = {str(lower).lower()}, unit_diagonal = {str(is_unit).lower()}"
    body = f"""%r = "stablehlo.triangular_solve"(%0, %1) <{{{flags}, transpose_a = #stablehlo<transpose {transpose}>}}>
 : {signature_of([MATRICES, right], [expected])}"""
    check(body, [MATRICES, right], [expected], 1e-10)


@pytest.mark.parametrize("lower", [False, True])
def test_cholesky_reads_one_triangle(lower: bool) -> None:
    factor = np.tril(MATRICES) * np.where(np.eye(4) > 0, np.sign(MATRICES), 1)
    whole = factor @ factor.swapaxes(1, 2)
    given, expected = (np.tril(whole), factor) if lower else (np.triu(whole), factor.swapaxes(1, 2).copy())
    body = f"""%r = "stablehlo.cholesky"(%0) <{{lower = {str(lower).lower()}}}>
 : {signature_of([given], [expected])}"""
    check(body, [given], [expected], 1e-10)


def call(callee: str, operand: np.ndarray, results: list[np.ndarray], flags: str = "") -> str:
    """A call of LAPACK as jaxlib writes it."""
    types = ", ".join(map(type_of, results))
    return f"""%c:{len(results)} = "stablehlo.custom_call"(%0) <{{call_target_name = "{callee}"}}>
 {{mhlo.backend_config = {{{flags}}}}} : ({type_of(operand)}) -> ({types})"""


def test_a_call_of_lapack_tells_which_pivot_fails() -> None:
    matrices = np.stack([np.eye(3), np.diag([1.0, -1.0, 1.0])])
    failed = np.array([0, 2], np.int32)
    body = call("lapack_dpotrf_ffi", matrices, [matrices, failed], "uplo = 76 : ui8")
    body += f"\n%r = stablehlo.add %c#1, %c#1 : {type_of(failed)}"
    check(body, [matrices], [2 * failed])


def test_lu_factors_swap_the_rows_of_the_largest_pivots() -> None:
    matrix = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]])
    pivots = np.array([3, 3, 3], np.int32)
    failed = np.array(0, np.int32)
    body = call("lapack_dgetrf_ffi", matrix, [matrix, pivots, failed])
    check(f"{body}\n%r = stablehlo.minimum %c#1, %c#1 : {type_of(pivots)}", [matrix], [pivots])
    expected = np.array([[7.0, 8.0, 10.0], [1 / 7, 6 / 7, 11 / 7], [4 / 7, 0.5, -0.5]])
    check(f"{body}\n%r = stablehlo.minimum %c#0, %c#0 : {type_of(matrix)}", [matrix], [expected], 1e-12)


@pytest.mark.parametrize(
    ("callee", "what"),
    [("lapack_dgeqrf_ffi", "QR factors"), ("lapack_dgesdd_ffi", "singular values"), ("lapack_dsyevd_ffi", "symmetric")],
)
def test_other_factorizations_are_refused_by_name(callee: str, what: str) -> None:
    body = call(callee, MATRICES, [MATRICES]) + f"\n%r = stablehlo.negate %c : {type_of(MATRICES)}"
    with pytest.raises(UnsupportedError, match=f"'{callee}'.*{re.escape(what)}"):
        check(body.replace("%c:1", "%c"), [MATRICES], [MATRICES])
