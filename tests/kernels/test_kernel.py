"""Kernels by users: what machine code gives, against numpy and the interpreter, over shapes, types and threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from xdsl.dialects.builtin import TensorType, bf16, f16, f32, f64, i1, i32
from xdsl.ir import Attribute

import glow_mlir
from glow_mlir import kernels as k
from glow_mlir.dialects.element_types import element_type, numpy_dtype
from glow_mlir.dialects.shapes import tensor
from glow_mlir.errors import GlowError
from glow_mlir.kernels.kernel import Kernel
from glow_mlir.support.symbols import Symbol, SymbolicSize


@glow_mlir.kernel("x[..., j] -> y[..., j]")
def softmax(x: k.Tensor) -> k.Tensor:
    e = k.exp(x - k.reduce_fmax(x, "j"))
    return e * (1.0 / k.reduce_sum(e, "j"))


@glow_mlir.kernel("x[..., j], scale[j], bias[j] -> y[..., j]")
def layer_norm(x: k.Tensor, scale: k.Tensor, bias: k.Tensor, epsilon: float = 1e-5) -> k.Tensor:
    d = x - k.reduce_mean(x, "j")
    factor = 1.0 / k.sqrt(k.reduce_mean(d * d, "j") + epsilon)
    return d * factor * scale + bias


@glow_mlir.kernel("q[..., d], keys[..., t, d], v[..., t, e] -> y[..., e]")
def attention(q: k.Tensor, keys: k.Tensor, v: k.Tensor, scale: float = 0.125) -> k.Tensor:
    s = k.reduce_sum(q * keys, "d") * scale
    p = k.exp(s - k.reduce_fmax(s, "t"))
    return k.reduce_sum(p * v, "t") / k.reduce_sum(p, "t")


@glow_mlir.kernel("x[n, c, s] -> y[n, c, s]")
def over_channels(x: k.Tensor) -> k.Tensor:
    e = k.exp(x - k.reduce_max(x, "c"))
    return e / k.reduce_sum(e, "c")


@glow_mlir.kernel("x[i, j], w[k, j] -> y[k, i]")
def transposed_product(x: k.Tensor, w: k.Tensor) -> k.Tensor:
    return k.reduce_sum(x * w, "j")


@glow_mlir.kernel("x[i, j] -> y[]")
def all_of_it(x: k.Tensor) -> k.Tensor:
    return k.reduce_sum(x * x, ["i", "j"])


@glow_mlir.kernel("x[..., j], gate[..., j] -> y[..., j]")
def elementwise(x: k.Tensor, gate: k.Tensor) -> k.Tensor:
    return k.where(gate > 0, x * gate, abs(x) - 1)


@glow_mlir.kernel("x[i, j], y[i] -> z[i, j]")
def against_rows(x: k.Tensor, y: k.Tensor) -> k.Tensor:
    return (x - y) * k.reduce_max(y, "i")


@glow_mlir.kernel("x[i, j], w[j, 1] -> y[i, j]")
def kept(x: k.Tensor, w: k.Tensor) -> k.Tensor:
    e, f, g = k.tanh(x * w), k.exp(x), k.sin(x)
    return e * k.reduce_sum(e, "j") + f * k.reduce_max(f, "j") + g * k.reduce_min(g, "j")


@glow_mlir.kernel("x[i, j] -> y[i]")
def shares(x: k.Tensor) -> k.Tensor:
    return k.reduce_sum(x / k.size_along(x, "j"), "j")


@glow_mlir.kernel("x[i, j] -> y[j, i]")
def transposed(x: k.Tensor) -> k.Tensor:
    return x


@glow_mlir.kernel("x[i, j], w[k] -> y[i]")
def of_one_operand(x: k.Tensor, w: k.Tensor) -> k.Tensor:
    return k.reduce_mean(x, "j")


@glow_mlir.kernel("x[i, j] -> y[i, j]")
def to_either_end(x: k.Tensor) -> k.Tensor:
    return k.where(x > 0, k.reduce_max(x, "j"), k.reduce_min(x, "j"))


@glow_mlir.kernel("x[i, j], s[i], w[j] -> y[i, j]")
def scaled_by_columns(x: k.Tensor, s: k.Tensor, w: k.Tensor) -> k.Tensor:
    return x * k.reduce_sum(k.where(x * w > 0, s, -s), "j") / k.reduce_sum(x * w, ["i", "j"])


@glow_mlir.kernel("x[..., i], w[...] -> y[..., i]")
def spread_over_all(x: k.Tensor, w: k.Tensor) -> k.Tensor:
    return k.reduce_sum(x * w, ["...0", "i"]) - x


def _softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True, initial=-1e30))
    return e / e.sum(axis, keepdims=True)


def _layer_norm(x: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * scale + bias


def _attention(q: np.ndarray, keys: np.ndarray, v: np.ndarray) -> np.ndarray:
    p = _softmax(np.einsum("...d,...td->...t", q, keys) * 0.125)
    return np.einsum("...t,...te->...e", p, v)


def _over_channels(x: np.ndarray) -> np.ndarray:
    return _softmax(x, 1)


def _transposed_product(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return w @ x.T


def _squares(x: np.ndarray) -> np.ndarray:
    return (x * x).sum()


def _elementwise(x: np.ndarray, gate: np.ndarray) -> np.ndarray:
    return np.where(gate > 0, x * gate, abs(x) - 1)


def _against_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x - y[:, None]) * y.max()


def _kept(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    e, f, g = np.tanh(x * w[:, 0]), np.exp(x), np.sin(x)
    return e * e.sum(-1, keepdims=True) + f * f.max(-1, keepdims=True) + g * g.min(-1, keepdims=True)


def _mean(x: np.ndarray, *_: np.ndarray) -> np.ndarray:
    return np.asarray(x.mean(1))


def _to_either_end(x: np.ndarray) -> np.ndarray:
    largest, smallest = np.asarray(x.max(1, keepdims=True)), np.asarray(x.min(1, keepdims=True))
    return np.where(x > 0, largest, smallest)


def _scaled_by_columns(x: np.ndarray, s: np.ndarray, w: np.ndarray) -> np.ndarray:
    signs = np.where(x * w > 0, s[:, None], -s[:, None])
    return x * signs.sum(1, keepdims=True) / (x * w).sum()


def _spread_over_all(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return (x * w).sum() - x


@dataclass(frozen=True)
class Case:
    """A kernel, the shapes of its operands, and what numpy gives in f64."""

    kernel: Kernel
    shapes: tuple[tuple[int, ...], ...]
    expected: Callable[..., np.ndarray]

    def __str__(self) -> str:
        return f"{self.kernel.name}-{'-'.join('x'.join(map(str, shape)) for shape in self.shapes)}"

    def arrays(self, dtype: np.dtype | type = np.float32) -> list[np.ndarray]:
        """Operands: the same for the same case."""
        rng = np.random.default_rng(5)
        return [rng.standard_normal(shape).astype(dtype) for shape in self.shapes]


CASES = [
    *(Case(softmax, (shape,), _softmax) for shape in ((12, 128), (3, 5, 17), (4, 1000), (7,), (2, 3, 1), (9, 0))),
    *(Case(layer_norm, ((*rows, n), (n,), (n,)), _layer_norm) for rows, n in (((8,), 96), ((3, 3), 13), ((5,), 768))),
    Case(attention, ((12, 64), (12, 100, 64), (12, 100, 64)), _attention),
    Case(attention, ((2, 3, 8), (2, 3, 5, 8), (2, 3, 5, 20)), _attention),
    Case(attention, ((5, 8), (1, 7, 8), (5, 7, 3)), _attention),
    *(Case(over_channels, (shape,), _over_channels) for shape in ((2, 10, 33), (1, 3, 8), (3, 4, 1))),
    Case(transposed_product, ((6, 20), (9, 20)), _transposed_product),
    Case(all_of_it, ((7, 9),), _squares),
    Case(elementwise, ((5, 33), (5, 33)), _elementwise),
    Case(elementwise, ((4, 5, 8), (5, 8)), _elementwise),
    Case(elementwise, ((1, 8), (6, 8)), _elementwise),
    Case(spread_over_all, ((4, 20), (1,)), _spread_over_all),
    Case(against_rows, ((6, 10), (6,)), _against_rows),
    Case(kept, ((5, 40), (40, 1)), _kept),
    *(Case(shares, (shape,), _mean) for shape in ((20, 5), (8, 64), (3, 7))),
    Case(transposed, ((5, 12),), np.transpose),
    *(Case(to_either_end, (shape,), _to_either_end) for shape in ((3, 20), (8, 20))),
    Case(scaled_by_columns, ((8, 20), (8,), (20,)), _scaled_by_columns),
    Case(of_one_operand, ((6, 9), (4,)), _mean),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_values(case: Case, backend: str) -> None:
    arrays = case.arrays()
    types = [tensor(array.shape, f32) for array in arrays]
    names = [access.name for access in case.kernel.signature.operands]
    session = glow_mlir.InferenceSession(case.kernel.module(*types), backend=backend)
    (found,) = session.run(None, dict(zip(names, arrays, strict=True)))
    expected = case.expected(*(array.astype(np.float64) for array in arrays))
    assert (found.dtype, found.shape) == (np.float32, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("case", [CASES[0], CASES[6], CASES[9], CASES[12]], ids=str)
@pytest.mark.parametrize("element", [f16, bf16, f64], ids=str)
def test_other_floats(case: Case, element: Attribute) -> None:
    arrays = case.arrays(numpy_dtype(element))
    found = case.kernel(*arrays)
    expected = case.expected(*(array.astype(np.float64) for array in arrays))
    assert found.dtype == arrays[0].dtype
    tolerance = {"f16": 2e-3, "bf16": 2e-2, "f64": 1e-12}[str(element)]
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integers(dtype: str) -> None:
    @glow_mlir.kernel("x[i, j] -> y[i, j]")
    def spread(x: k.Tensor) -> k.Tensor:
        return (k.reduce_max(x, "j") - k.reduce_min(x, "j")) * x + k.reduce_sum(x, "j")

    x = np.random.default_rng(0).integers(0, 200, (5, 37)).astype(dtype)
    expected = (x.max(1, keepdims=True) - x.min(1, keepdims=True)) * x + x.sum(1, keepdims=True, dtype=dtype)
    types = tensor(x.shape, element_type(x.dtype))
    for backend in ("cpu", "interpreter"):
        (found,) = glow_mlir.InferenceSession(spread.module(types), backend=backend).run(None, {"x": x})
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("case", [CASES[0], CASES[8], CASES[9], CASES[12]], ids=str)
def test_threads_give_the_same_bits(case: Case) -> None:
    arrays = case.arrays()
    module = case.kernel.module(*(tensor(array.shape, f32) for array in arrays))
    feeds = {access.name: array for access, array in zip(case.kernel.signature.operands, arrays, strict=True)}
    one, three = (glow_mlir.InferenceSession(module, threads=count).run(None, feeds)[0] for count in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_sizes_that_are_known_at_run_time_only() -> None:
    rows, columns = (SymbolicSize.of(Symbol(name, 1, 50)) for name in ("rows", "columns"))
    types = [tensor((rows, columns), f32), tensor((columns,), f32), tensor((columns,), f32)]
    for backend in ("cpu", "interpreter"):
        session = glow_mlir.InferenceSession(layer_norm.module(*types), backend=backend, threads=2)
        for shape in ((3, 50), (50, 7), (1, 1)):
            rng = np.random.default_rng(1)
            x, scale, bias = (rng.standard_normal(s).astype(np.float32) for s in (shape, shape[1:], shape[1:]))
            (found,) = session.run(None, {"x": x, "scale": scale, "bias": bias})
            np.testing.assert_allclose(found, _layer_norm(x, scale, bias), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("most", [1, 2, 7])
def test_rows_that_are_kept_of_lines_whose_number_the_call_says(most: int) -> None:
    rows = SymbolicSize.of(Symbol("rows", 0, most))
    x = np.random.default_rng(3).standard_normal((most, 40)).astype(np.float32)
    w = np.random.default_rng(4).standard_normal((40, 1)).astype(np.float32)
    module = kept.module(tensor((rows, 40), f32), tensor((40, 1), f32))
    session = glow_mlir.InferenceSession(module)
    for count in range(most + 1):
        (found,) = session.run(None, {"x": x[:count], "w": w})
        np.testing.assert_allclose(found, _kept(x[:count], w), rtol=2e-5, atol=2e-5)


def test_an_onnx_operator_in_a_model_with_others_around_it() -> None:
    layer_norm.onnx_operator("RowNorm", "test.kernels")
    shape, n = [4, 24], [24]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, s) for name, s in zip("xsb", (shape, n, n))]
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("RowNorm", ["e", "s", "b"], ["n"], "norm", domain="test.kernels", epsilon=0.5),
        helper.make_node("Add", ["n", "x"], ["y"]),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("test.kernels", 1)]
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs), opset_imports=opsets, ir_version=10)
    rng = np.random.default_rng(2)
    x, s, b = (rng.standard_normal(size).astype(np.float32) for size in (shape, n, n))
    (found,) = glow_mlir.InferenceSession(model).run(None, {"x": x, "s": s, "b": b})
    e = np.exp(x)
    d = e - e.mean(-1, keepdims=True)
    np.testing.assert_allclose(
        found, d / np.sqrt((d * d).mean(-1, keepdims=True) + 0.5) * s + b + x, rtol=1e-4, atol=1e-5
    )
    assert isinstance(model, onnx.ModelProto)


def test_errors_in_a_model_name_the_node() -> None:
    @glow_mlir.kernel("x[i, j] -> y[i, j]")
    def scaled(x: k.Tensor, scale: float = 0.5) -> k.Tensor:
        return x * scale

    scaled.onnx_operator("Scaled", "test.nodes")

    def message(shape: list[int], **attributes: Any) -> str:
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
        node = helper.make_node("Scaled", ["x"], ["y"], "scaling", domain="test.nodes", **attributes)
        graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)])
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("test.nodes", 1)]
        with pytest.raises(GlowError) as caught:
            glow_mlir.InferenceSession(helper.make_model(graph, opset_imports=opsets, ir_version=10))
        return str(caught.value)

    assert message([2]) == "node 'scaling': kernel scaled: x[i, j] has 2 axes, got 1"
    unknown = "node 'scaling': kernel scaled: there is no parameter 'scael' (hint: parameters are: scale)"
    assert message([2, 3], scael=2.0) == unknown


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("x[i, j]", "it has no '->'"),
        ("x[i] -> y[i], z[i]", "it has 2 results"),
        ("x[i], x[j] -> y[i]", "two operands have one name"),
        ("x[i, i] -> y[i]", "x[i, i] has a dimension twice"),
        ("x[i, ...] -> y[i]", "'...' of x[i, ...] is not in front"),
        ("x[i] -> y[j]", "no operand has the axis 'j' of the result"),
        ("x[2*] -> y[i]", "'2*' is no axis"),
        ("x[i] y[i] -> z[i]", "'y[i]' does not follow a tensor"),
    ],
)
def test_signatures_that_are_none(signature: str, message: str) -> None:
    with pytest.raises(GlowError, match=r"the signature .*: ") as caught:
        glow_mlir.kernel(signature)
    assert message in str(caught.value)


def _refused(
    signature: str, function: Callable[..., k.Tensor], *types: TensorType[Attribute], **parameters: int
) -> str:
    with pytest.raises(GlowError) as caught:
        glow_mlir.kernel(signature)(function).module(*types, **parameters)
    return str(caught.value)


def test_errors_name_the_kernel_and_say_what_to_do() -> None:
    def total(x: k.Tensor) -> k.Tensor:
        return k.reduce_sum(x, "j")

    def exponential(x: k.Tensor) -> k.Tensor:
        return k.exp(x)

    def branching(x: k.Tensor) -> k.Tensor:
        return x if x > 0 else -x

    def added(x: k.Tensor, y: k.Tensor) -> k.Tensor:
        return x + y

    matrix = tensor((2, 3), f32)
    assert "kernel total: it gives a value over [i], not [i, j]" in _refused("x[i, j] -> y[i, j]", total, matrix)
    assert "a fold along 'j' of a value without it" in _refused("x[i] -> y[i]", total, tensor((2,), f32))
    assert "kernel total: x[i, j] has 2 axes, got 1" in _refused("x[i, j] -> y[i]", total, tensor((2,), f32))
    assert "it has the operands x, got 2" in _refused("x[i, j] -> y[i]", total, matrix, matrix)
    assert "the function takes x, the signature has a" in _refused("a[i, j] -> y[i]", total, matrix)
    assert "there is no parameter 'n'" in _refused("x[i, j] -> y[i]", total, matrix, n=3)
    assert "exp of i32" in _refused("x[i] -> y[i]", exponential, tensor((2,), i32))
    branch = _refused("x[i] -> y[i]", branching, tensor((2,), f32))
    assert "a kernel has no branches" in branch
    assert "use where" in branch
    with pytest.raises(GlowError, match="kernel <lambda>: its name is none that C code can call"):
        glow_mlir.kernel("x[i] -> y[i]")(lambda x: x)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    mixed = _refused("x[i], y[i] -> z[i]", added, tensor((2,), f32), tensor((2,), i32))
    assert "add of f32 and i32" in mixed
    assert "cast" in mixed
    sizes = _refused("x[i], y[i] -> z[i]", added, tensor((2,), f32), tensor((3,), f32))
    assert "dimension 'i' is 2 and 3 long" in sizes


Words = Callable[[k.Tensor, k.Tensor, k.Tensor], k.Tensor]

REFUSED: list[tuple[Words, str]] = [
    (lambda x, i, m: k.where(x == 0, 1.0, x), "kernels do not compare by '=='"),  # pyright: ignore[reportArgumentType]
    (lambda x, i, m: x * (x != 0), "not_equal"),
    (lambda x, i, m: k.where(x, 1.0, x), "a condition is a truth value"),
    (lambda x, i, m: k.where(x > 0, 1.0, 0.0), 'cast(condition, "float32") is 1 or 0'),
    (lambda x, i, m: x & x, "and of f32"),
    (lambda x, i, m: m + m, "add of i1"),
    (lambda x, i, m: -m, "negate of i1"),
    (lambda x, i, m: k.maximum(m, m), "max of i1"),
    (lambda x, i, m: k.reduce_max(m, "i"), "max of i1"),
    (lambda x, i, m: k.fma(i, i, i), "fma of i32"),
    (lambda x, i, m: i + 1.5, "add of i32 and 1.5, which is none"),
    (lambda x, i, m: k.maximum(i, float("-inf")), "max of i32 and -inf, which is none"),
    (lambda x, i, m: k.cast(i, "int8") + 128, "add of i8 and 128, which is none"),
    (lambda x, i, m: k.cast(i, "uint8") - (-1), "sub of ui8 and -1, which is none"),
    (lambda x, i, m: x + "1", "add of f32 and '1', which is none"),  # pyright: ignore[reportOperatorIssue, reportUnknownLambdaType]
    (lambda x, i, m: x * k.exp(2.0), "exp of numbers alone"),  # pyright: ignore[reportArgumentType]
    (lambda x, i, m: x * k.reduce_sum(2.0, "i"), "add of numbers alone"),  # pyright: ignore[reportArgumentType]
    (lambda x, i, m: x / k.size_along(x, "j"), "along 'j' of a value without it"),
    (lambda x, i, m: k.reduce_sum(x, -1), "along '-1' of a value without it"),  # pyright: ignore[reportArgumentType]
    (lambda x, i, m: x > 0, "it gives truth values"),
]


@pytest.mark.parametrize(("function", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_values_do_not_do(function: Words, message: str) -> None:
    def words(x: k.Tensor, i: k.Tensor, m: k.Tensor) -> k.Tensor:
        return function(x, i, m)

    types = tensor((2,), f32), tensor((2,), i32), tensor((2,), i1)
    assert message in _refused("x[i], i[i], m[i] -> y[i]", words, *types)


def test_numbers_on_either_side_and_sizes_of_nothing() -> None:
    @glow_mlir.kernel("x[i] -> y[i]")
    def sides(x: k.Tensor) -> k.Tensor:
        return 2**x + 7 % x + k.reduce_mean(x, [])

    x = np.array([1, 2, 3, 5], np.float32)
    np.testing.assert_allclose(sides(x), 2**x + 7 % x + x, rtol=1e-6)


def test_magnitudes_of_integers() -> None:
    @glow_mlir.kernel("x[i] -> y[i]")
    def magnitude(x: k.Tensor) -> k.Tensor:
        return abs(x)

    for x in (np.array([1, 200], np.uint8), np.array([1, -20], np.int8)):
        np.testing.assert_array_equal(magnitude(x), np.abs(x))


def test_arrays_that_are_none() -> None:
    with pytest.raises(GlowError, match="kernel all_of_it: an operand is list, no array"):
        all_of_it([[1.0, 2.0]])  # pyright: ignore[reportArgumentType]
    with pytest.raises(GlowError, match="kernel all_of_it: there are no tensors of complex64"):
        all_of_it(np.ones((2, 2), np.complex64))
    with pytest.raises(GlowError, match=r"kernel kept: an axis of w\[j, 1\] has size 1, got 2"):
        kept(np.ones((3, 4), np.float32), np.ones((4, 2), np.float32))


def test_sizes_of_parallel_dimensions_that_are_known_at_run_time_only() -> None:
    @glow_mlir.kernel("x[i, j] -> y[i, j]")
    def share(x: k.Tensor) -> k.Tensor:
        return x / k.size_along(x, ["i", "j"])

    rows = SymbolicSize.of(Symbol("rows", 1, 50))
    for backend in ("cpu", "interpreter"):
        session = glow_mlir.InferenceSession(share.module(tensor((rows, 8), f32)), backend=backend)
        (found,) = session.run(None, {"x": np.ones((12, 8), np.float32)})
        np.testing.assert_allclose(found, np.full((12, 8), 1 / 96), rtol=1e-6)


def test_small_powers_are_products_and_roots() -> None:
    x = np.array([0.0, 1e-4, 0.3, 1.0, 7.5, 1e4, np.inf, np.nan], np.float32)
    for exponent in (0.25, 0.5, 0.75, 1.5, 3.0, 4.0, -0.75, -1.5, -2.0, 5.0, 0.3):

        @glow_mlir.kernel("x[i] -> y[i]")
        def power(x: k.Tensor, exponent: float = exponent) -> k.Tensor:
            return x**exponent

        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(power(x), x**exponent, rtol=2e-6)
