"""Triangular systems, Cholesky's factors and LU factors: as operations, and as calls of LAPACK."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.shapes import element_of, shape_of, sizes_of
from glow_mlir.frontends.builder.linear_algebra import (
    cholesky_factor,
    lu_factors,
    transposed_matrices,
    triangular_solution,
)
from glow_mlir.frontends.stablehlo.node import StablehloNode, Value, stablehlo_operator


def wide(node: StablehloNode, value: SSAValue) -> SSAValue:
    """Floats of 32 bits or more, in which systems are solved."""
    return node.cast(value, f32) if byte_width(element_of(value)) < byte_width(f32) else value


def solved(
    node: StablehloNode, matrix: SSAValue, right: SSAValue, on_left: bool, lower: bool, is_unit: bool, turned: bool
) -> SSAValue:
    """X with A · X = B, or X · A = B unless `on_left`; A is the triangular matrix, or its transpose if `turned`."""
    element, shape = element_of(right), sizes_of(right)
    if 0 in shape:
        return right
    matrix, right = wide(node, matrix), wide(node, right)
    if turned == on_left:
        matrix, lower = transposed_matrices(node, matrix), not lower
    if not on_left:
        right = transposed_matrices(node, right)
    found = triangular_solution(node, matrix, right, not lower, is_unit)
    return node.cast(found if on_left else transposed_matrices(node, found), element)


@stablehlo_operator("triangular_solve")
def triangular_solve(node: StablehloNode) -> SSAValue:
    """A system of equations with a triangular matrix."""
    turned = node.text("transpose_a") in ("TRANSPOSE", "ADJOINT")
    on_left, lower, is_unit = (bool(node.integer(name)) for name in ("left_side", "lower", "unit_diagonal"))
    return solved(node, node.input(0), node.input(1), on_left, lower, is_unit, turned)


def factored(node: StablehloNode, matrix: SSAValue, lower: bool) -> tuple[SSAValue, SSAValue]:
    """Cholesky's factor of matrices, of which one triangle is read, and the number of the pivot that fails, or 0."""
    element = element_of(matrix)
    matrix = wide(node, matrix)
    if 0 in sizes_of(matrix):
        from xdsl.dialects.builtin import i32

        return node.cast(matrix, element), node.splat(0, i32, sizes_of(matrix)[:-2])
    factor, failed = cholesky_factor(node, matrix if lower else transposed_matrices(node, matrix))
    return node.cast(factor if lower else transposed_matrices(node, factor), element), failed


@stablehlo_operator("cholesky")
def cholesky(node: StablehloNode) -> SSAValue:
    """Cholesky's factor of symmetric matrices; NaN where they are not positive definite."""
    return factored(node, node.input(), bool(node.integer("lower")))[0]


# ---- Calls of LAPACK


def letter(node: StablehloNode, name: str) -> str:
    """A flag of a call of LAPACK, which is a letter."""
    for attributes in (node.op.attributes.get("mhlo.backend_config"), node.properties.get("backend_config")):
        if isinstance(attributes, DictionaryAttr) and isinstance(found := attributes.data.get(name), IntegerAttr):
            return chr(found.value.data)
    raise node.unsupported(f"without the flag '{name}' is not supported")


def potrf(node: StablehloNode) -> Sequence[Value]:
    """Cholesky's factor, and the number of the pivot that fails."""
    return factored(node, node.input(), letter(node, "uplo") == "L")


def trsm(node: StablehloNode) -> Sequence[Value]:
    """A system of equations with a triangular matrix."""
    on_left, lower = letter(node, "side") == "L", letter(node, "uplo") == "L"
    is_unit, turned = letter(node, "diag") == "U", letter(node, "trans_x") != "N"
    return [solved(node, node.input(0), node.input(1), on_left, lower, is_unit, turned)]


def getrf(node: StablehloNode) -> Sequence[Value]:
    """LU factors, the rows that are swapped, from 1 on, and the number of the pivot that is 0."""
    matrix = wide(node, node.input())
    if 0 in shape_of(matrix):
        raise node.unsupported("of matrices without elements is not supported")
    factors, pivots, failed = lu_factors(node, matrix)
    pivots = node.emit(AddOp, pivots, node.splat(1, pivots))
    return [node.cast(factors, element_of(node.input())), pivots, failed]


ROUTINES: Mapping[str, Callable[[StablehloNode], Sequence[Value]]] = {
    f"lapack_{letter}{name}_ffi": routine
    for letter in "sd"
    for name, routine in (("potrf", potrf), ("trsm", trsm), ("getrf", getrf))
}
"""Target of a call → the importer of the routine of LAPACK."""

FACTORIZATIONS: Mapping[str, str] = {
    "geev": "eigenvalues of general matrices",
    "gees": "Schur's decomposition",
    "gehrd": "Hessenberg's form",
    "geqp3": "QR factors with pivots",
    "geqrf": "QR factors",
    "gesdd": "singular values",
    "gesvd": "singular values",
    "gtsv": "tridiagonal systems",
    "heevd": "eigenvalues of Hermitian matrices",
    "hetrd": "tridiagonal form",
    "orgqr": "QR factors",
    "syevd": "eigenvalues of symmetric matrices",
    "sytrd": "tridiagonal form",
    "ungqr": "QR factors",
}
"""Part of the name of a routine of LAPACK → what it computes, which is not supported."""


def described(target: str) -> str | None:
    """What a routine of LAPACK that is not supported computes; `None` for another target."""
    if not target.startswith("lapack_"):
        return None
    found = [text for name, text in FACTORIZATIONS.items() if name in target]
    return found[0] if found else "this routine, or complex matrices"
