"""Triangular systems, Cholesky's factors and LU factors: as operations, and as calls of LAPACK."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, f32, i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.elementwise_math import NegOp
from glow_mlir.dialects.shapes import element_of, shape_of, sizes_of
from glow_mlir.frontends.builder.linear_algebra import (
    cholesky_factor,
    lu_factors,
    transposed_matrices,
    triangular_solution,
)
from glow_mlir.frontends.stablehlo.node import StablehloNode, Value, of_parts, stablehlo_operator
from glow_mlir.frontends.stablehlo.operators.control_flow import leaves


def parts_of(node: StablehloNode, position: int) -> list[SSAValue]:
    """The parts of an operand, of floats of 32 bits or more, in which systems are solved."""
    return [wide(node, part) for part in leaves([node.value(position)])]


def wide(node: StablehloNode, value: SSAValue) -> SSAValue:
    """Floats of 32 bits or more."""
    return node.cast(value, f32) if byte_width(element_of(value)) < byte_width(f32) else value


def like(node: StablehloNode, position: int, parts: Sequence[SSAValue]) -> Value:
    """The numbers of parts, in the element type of an operand."""
    given = leaves([node.value(position)])
    return of_parts([node.cast(part, element_of(own)) for part, own in zip(parts, given, strict=True)])


def turned_parts(node: StablehloNode, parts: Sequence[SSAValue], is_adjoint: bool = False) -> list[SSAValue]:
    """The transposed matrices, or the adjoint ones."""
    found = [transposed_matrices(node, part) for part in parts]
    return [*found[:1], *(node.emit(NegOp, part) if is_adjoint else part for part in found[1:])]


def solved(
    node: StablehloNode, on_left: bool, lower: bool, is_unit: bool, turned: bool, is_adjoint: bool = False
) -> Value:
    """
    X with A · X = B, or X · A = B unless `on_left`, for the operands A and B.

    A is the triangular matrix, its transpose if `turned`, or else its adjoint if `is_adjoint`.
    """
    if 0 in sizes_of(leaves([node.value(1)])[0]):
        return node.value(1)
    matrix, right = parts_of(node, 0), parts_of(node, 1)
    if is_adjoint:
        matrix, lower = turned_parts(node, matrix, is_adjoint), not lower
    if turned == on_left:
        matrix, lower = turned_parts(node, matrix), not lower
    if not on_left:
        right = turned_parts(node, right)
    found = triangular_solution(node, matrix, right, not lower, is_unit)
    return like(node, 1, found if on_left else turned_parts(node, found))


@stablehlo_operator("triangular_solve")
def triangular_solve(node: StablehloNode) -> Value:
    """A system of equations with a triangular matrix."""
    kind = node.text("transpose_a")
    on_left, lower, is_unit = (bool(node.integer(name)) for name in ("left_side", "lower", "unit_diagonal"))
    return solved(node, on_left, lower, is_unit, turned=kind == "TRANSPOSE", is_adjoint=kind == "ADJOINT")


def factored(node: StablehloNode, lower: bool) -> tuple[Value, SSAValue]:
    """Cholesky's factor of matrices, of which one triangle is read, and the number of the pivot that fails, or 0."""
    matrix = parts_of(node, 0)
    if 0 in sizes_of(matrix[0]):
        return node.value(0), node.splat(0, i32, sizes_of(matrix[0])[:-2])
    factor, failed = cholesky_factor(node, matrix if lower else turned_parts(node, matrix, is_adjoint=True))
    return like(node, 0, factor if lower else turned_parts(node, factor, is_adjoint=True)), failed


@stablehlo_operator("cholesky")
def cholesky(node: StablehloNode) -> Value:
    """Cholesky's factor of symmetric matrices; NaN where they are not positive definite."""
    return factored(node, bool(node.integer("lower")))[0]


# ---- Calls of LAPACK


def letter(node: StablehloNode, name: str) -> str:
    """A flag of a call of LAPACK, which is a letter."""
    for attributes in (node.op.attributes.get("mhlo.backend_config"), node.properties.get("backend_config")):
        if isinstance(attributes, DictionaryAttr) and isinstance(found := attributes.data.get(name), IntegerAttr):
            return chr(found.value.data)
    raise node.unsupported(f"without the flag '{name}' is not supported")


def potrf(node: StablehloNode) -> Sequence[Value]:
    """Cholesky's factor, and the number of the pivot that fails."""
    return factored(node, letter(node, "uplo") == "L")


def trsm(node: StablehloNode) -> Sequence[Value]:
    """A system of equations with a triangular matrix."""
    on_left, lower = letter(node, "side") == "L", letter(node, "uplo") == "L"
    is_unit, kind = letter(node, "diag") == "U", letter(node, "trans_x")
    return [solved(node, on_left, lower, is_unit, turned=kind == "T", is_adjoint=kind == "C")]


def getrf(node: StablehloNode) -> Sequence[Value]:
    """LU factors, the rows that are swapped, from 1 on, and the number of the pivot that is 0."""
    matrix = parts_of(node, 0)
    if 0 in shape_of(matrix[0]):
        raise node.unsupported("of matrices without elements is not supported")
    factors, pivots, failed = lu_factors(node, matrix)
    pivots = node.emit(AddOp, pivots, node.splat(1, pivots))
    return [like(node, 0, factors), pivots, failed]


ROUTINES: Mapping[str, Callable[[StablehloNode], Sequence[Value]]] = {
    f"lapack_{letter}{name}_ffi": routine
    for letter in "sdcz"
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
    return found[0] if found else "this routine"
