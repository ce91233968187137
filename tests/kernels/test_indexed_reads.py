"""Kernels that read axes at indices: machine code and interpreter against numpy, errors, and refused signatures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i64

import glow_mlir
from glow_mlir import InferenceSession
from glow_mlir import kernels as k
from glow_mlir.dialects.element_types import element_type
from glow_mlir.dialects.shapes import tensor
from glow_mlir.errors import ExecutionError, GlowError
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import module_text, parse_module
from glow_mlir.kernels.kernel import Kernel
from glow_mlir.support.symbols import Symbol, SymbolicSize

RNG = np.random.default_rng(5)
TABLE = RNG.standard_normal((9, 7, 5)).astype(np.float32)
MATRIX = RNG.standard_normal((9, 70)).astype(np.float32)
LINE = RNG.standard_normal(33).astype(np.float32)


def picks(bound: int, *shape: int, dtype: str = "int64") -> np.ndarray:
    """Indices from the front and from the back."""
    return RNG.integers(-bound, bound, shape).astype(dtype)


def same(x: k.Tensor, at: k.Tensor) -> k.Tensor:
    return x


def twice(x: k.Tensor, at: k.Tensor) -> k.Tensor:
    return x * 2.0


def by_both(x: k.Tensor, p: k.Tensor, q: k.Tensor) -> k.Tensor:
    return -x


def times_index(x: k.Tensor, at: k.Tensor) -> k.Tensor:
    return x * k.cast(at, "float32")


def weighed(x: k.Tensor, at: k.Tensor, w: k.Tensor) -> k.Tensor:
    return k.reduce_sum(x * w, "j")


def softmax(x: k.Tensor, at: k.Tensor) -> k.Tensor:
    e = k.exp(x - k.reduce_fmax(x, "j"))
    return e / k.reduce_sum(e, "j")


def softmax_of(x: np.ndarray) -> np.ndarray:
    """The same in numpy."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@dataclass(frozen=True)
class Case:
    """A kernel, its operands, and what it gives."""

    kernel: Kernel
    operands: tuple[np.ndarray, ...]
    expected: np.ndarray

    @staticmethod
    def of(signature: str, function: Callable[..., k.Tensor], *operands: np.ndarray, expected: np.ndarray) -> Case:
        """The case of a function."""
        return Case(glow_mlir.kernel(signature)(function), operands, expected)


A, B, C, D, E, F = (
    picks(9, 11),
    picks(7, 3, dtype="int32"),
    picks(7, 8, 17, 4),
    picks(7, 6, 2, dtype="int32"),
    picks(33, 40),
    picks(5, 9, 7, 8),
)
BAGS, WEIGHTS = picks(9, 4, 6), RNG.standard_normal((4, 6)).astype(np.float32)
CHOSEN, FACTORS = picks(33, 5, 37), RNG.standard_normal((5, 37)).astype(np.float32)
ROWS, COLUMNS, BYTES = picks(9, 4), picks(70, 13), picks(7, 3, dtype="int8")

CASES: dict[str, Case] = {
    "rows": Case.of("x[at[i], k, l], at[i] -> y[i, k, l]", twice, TABLE, A, expected=TABLE[A] * 2),
    "rows as they are, of f16": Case.of(
        "x[j, at[i], l], at[i] -> y[j, i, l]", same, TABLE.astype(np.float16), B, expected=TABLE.astype("f2")[:, B]
    ),
    "elements": Case.of(
        "x[a, at[a, b, c], c], at[a, b, c] -> y[a, b, c]",
        twice,
        TABLE,
        C,
        expected=np.take_along_axis(TABLE[:8, :, :4], C, 1) * 2,
    ),
    "tuples": Case.of(
        "x[at[i, 0], at[i, 1], l], at[i, c] -> y[i, l]", same, TABLE, D, expected=TABLE[D[:, 0], D[:, 1]]
    ),
    "two operands of indices": Case.of(
        "x[p[i], q[j], l], p[i], q[j] -> y[i, j, l]",
        by_both,
        TABLE,
        ROWS,
        BYTES,
        expected=-TABLE[np.ix_(ROWS, BYTES)],
    ),
    "indices that are values, too": Case.of("x[at[i]], at[i] -> y[i]", times_index, LINE, E, expected=LINE[E] * E),
    "leading axes": Case.of(
        "x[..., at[..., j]], at[..., j] -> y[..., j]", twice, TABLE, F, expected=np.take_along_axis(TABLE, F, -1) * 2
    ),
    "bags, many columns": Case.of(
        "x[at[b, j], k], at[b, j], w[b, j] -> y[b, k]",
        weighed,
        MATRIX,
        BAGS,
        WEIGHTS,
        expected=(MATRIX[BAGS] * WEIGHTS[..., None]).sum(1),
    ),
    "sums of chosen elements": Case.of(
        "x[at[b, j]], at[b, j], w[b, j] -> y[b]",
        weighed,
        LINE,
        CHOSEN,
        FACTORS,
        expected=(LINE[CHOSEN] * FACTORS).sum(1),
    ),
    "softmax of chosen rows": Case.of(
        "x[at[i], j], at[i] -> y[i, j]", softmax, MATRIX, ROWS, expected=softmax_of(MATRIX[ROWS])
    ),
    "softmax of chosen columns": Case.of(
        "x[i, at[j]], at[j] -> y[i, j]", softmax, MATRIX, COLUMNS, expected=softmax_of(MATRIX[:, COLUMNS])
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_reads(name: str) -> None:
    case = CASES[name]
    text = module_text(case.kernel.module(*(tensor(x.shape, element_type(x.dtype)) for x in case.operands)))
    module = parse_module(text, new_context())
    assert module_text(module) == text
    names = [access.name for access in case.kernel.signature.operands]
    (interpreted,) = run_function(module, dict(zip(names, case.operands, strict=True))).values()
    np.testing.assert_allclose(interpreted, case.expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(case.kernel(*case.operands), case.expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["rows", "elements", "tuples", "bags, many columns", "softmax of chosen columns"])
@pytest.mark.parametrize("wrong", [-34, 33, 1 << 40])
def test_index_out_of_range(name: str, wrong: int) -> None:
    case = CASES[name]
    table, indices, *others = case.operands
    at = indices.astype(np.int64)
    at.flat[at.size - 1] = wrong if abs(wrong) > 70 or "columns" not in name else 3 * wrong
    with pytest.raises(ExecutionError, match="an index is out of range"):
        case.kernel(table, at, *others)
    module = case.kernel.module(*(tensor(x.shape, element_type(x.dtype)) for x in (table, at, *others)))
    names = [access.name for access in case.kernel.signature.operands]
    with pytest.raises(ExecutionError, match="an index is out of range"):
        run_function(module, dict(zip(names, (table, at, *others), strict=True)))


@pytest.mark.parametrize("threads", [1, 2])
def test_run_time_sizes_and_threads(threads: int) -> None:
    """A table of any length and any number of indices: moved as they are, and computed with."""
    rows, count = (SymbolicSize.of(Symbol(name, 1, 64)) for name in ("rows", "count"))
    for function, factor in ((same, 1), (twice, 2)):
        made = glow_mlir.kernel("x[at[i], j], at[i] -> y[i, j]")(function)
        session = InferenceSession(made.module(tensor((rows, 24), f32), tensor((count,), i64)), threads=threads)
        for length, number in ((5, 9), (64, 1), (33, 64)):
            x, at = RNG.standard_normal((length, 24)).astype(np.float32), picks(length, number)
            (found,) = session.run(None, {"x": x, "at": at})
            np.testing.assert_array_equal(found, x[at] * factor)


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("x[rows[i], k] -> y[i, k]", r"rows\[i\] in x\[rows\[i\], k\] is no other operand"),
        ("x[x[i], k] -> y[k]", r"x\[i\] in .* is no other operand"),
        ("x[rows[i, j]], rows[i] -> y[i]", "'rows' has 1 axes, not as"),
        ("x[i], rows[i] -> y[rows[i]]", "no operand has the axis"),
        ("x[rows[i + 1]], rows[i] -> y[i]", "is no axis"),
    ],
)
def test_signatures_that_are_none(signature: str, message: str) -> None:
    with pytest.raises(GlowError, match=message):
        glow_mlir.kernel(signature)


def test_operands_that_do_not_fit() -> None:
    made = glow_mlir.kernel("x[a, at[a, b]], at[a, b] -> y[a, b]")(same)
    with pytest.raises(GlowError, match="dimension 'a' is 4 long, and an axis that it reads 3"):
        made(np.zeros((3, 5), np.float32), np.zeros((4, 5), np.int64))
    with pytest.raises(GlowError, match="indices are integers, not f32"):
        made(np.zeros((3, 5), np.float32), np.zeros((3, 5), np.float32))
    both = glow_mlir.kernel("x[i + j, at[k]], at[k] -> y[i, k]; j < 3")(_window)
    with pytest.raises(GlowError, match="windows and reads at indices are not in one kernel"):
        both(np.zeros((5, 5), np.float32), np.zeros(4, np.int64))


def _window(x: k.Tensor, at: k.Tensor) -> k.Tensor:
    return k.reduce_sum(x, "j")
