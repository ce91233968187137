"""Weights in blocks of codes, as onnxruntime and ONNX write them, give the numbers that onnxruntime computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import message

from glow_mlir import InferenceSession
from glow_mlir.driver.compiler import Compilation
from glow_mlir.errors import GlowError, ModelError, UnsupportedError
from glow_mlir.frontends.onnx.importer import import_model

RANDOM = np.random.default_rng(5)

Operands = list[np.ndarray | None]


def nbits(
    sizes: tuple[int, int], bits: int, block: int, zero_points: str = "", dtype: str = "float32", bias: bool = False
) -> Operands:
    """The operands of a MatMulNBits but the first: weights of so many columns and so deep."""
    columns, depth = sizes
    blocks = -(-depth // block)
    points = {
        "": None,
        "bytes": RANDOM.integers(0, 256, (columns, -(-blocks * bits // 8)), np.uint8),
        "numbers": RANDOM.integers(0, 1 << bits, (columns, blocks)).astype(dtype),
    }
    codes = RANDOM.integers(0, 256, (columns, blocks, block * bits // 8), np.uint8)
    scales = (RANDOM.uniform(0.1, 0.4, (columns, blocks)) / (1 << bits)).astype(dtype)
    return [codes, scales, points[zero_points], None, RANDOM.normal(size=columns).astype(dtype) if bias else None]


def model_of(x: np.ndarray, operands: Sequence[np.ndarray | None], **attributes: Any) -> onnx.ModelProto:
    """A model of one MatMulNBits of an input, with the other operands as constants."""
    names = ["x", *("" if array is None else f"w{position}" for position, array in enumerate(operands))]
    while not names[-1]:
        names.pop()
    constants = [numpy_helper.from_array(a, f"w{i}") for i, a in enumerate(operands) if a is not None]
    node = helper.make_node("MatMulNBits", names, ["y"], "product", domain="com.microsoft", **attributes)
    return graph_of([node], x, constants)


def graph_of(nodes: Sequence[onnx.NodeProto], x: np.ndarray, constants: Sequence[onnx.TensorProto]) -> onnx.ModelProto:
    """A model of one input, whose last node makes the output."""
    given = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
    graph = helper.make_graph(nodes, "g", [given], [onnx.ValueInfoProto(name=nodes[-1].output[0])], constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def by_onnxruntime(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    """What onnxruntime computes, by the operators as they are: it would let a product round its rows."""
    runtime = cast(Any, onnxruntime)
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def check(model: onnx.ModelProto, x: np.ndarray, tolerance: float = 1e-5) -> None:
    """Fail where one of our backends and onnxruntime disagree by more than a share of the largest result."""
    expected = by_onnxruntime(model, x)
    for backend in ("interpreter", "cpu"):
        (found,) = InferenceSession(model, backend=backend, cache=False).run(None, {"x": x})
        assert found.dtype == expected.dtype
        limit = tolerance * float(np.abs(expected).max())
        np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), rtol=0, atol=limit)


def rows(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Random numbers."""
    return RANDOM.normal(size=shape).astype(dtype)


WIDTHS = [
    *((bits, block, points) for bits, block in ((2, 32), (4, 16), (4, 128)) for points in ("", "bytes", "numbers")),
    # onnxruntime has no zero points of floats for codes of 8 bits.
    *((8, block, points) for block in (32, 256) for points in ("", "bytes")),
]


@pytest.mark.parametrize(("bits", "block", "zero_points"), WIDTHS)
def test_products_are_those_of_onnxruntime(bits: int, block: int, zero_points: str) -> None:
    sizes, shape = (40, 288), (3, 288)
    operands = nbits(sizes, bits, block, zero_points, bias=block == 32)
    widths = {"bits": bits, "block_size": block, "N": sizes[0], "K": sizes[1]}
    x = rows(*shape)
    check(model_of(x, operands, **widths), x)


def test_rows_may_be_in_batches_or_alone_and_depths_odd() -> None:
    for shape, depth in (((2, 3, 64), 64), ((1, 93), 93), ((2, 3, 90), 90), ((33,), 33)):
        x = rows(*shape)
        for columns, level in ((24, 0), (1, 0), (24, 4)):
            operands = nbits((columns, depth), 4, 32, "bytes")
            model = model_of(x, operands, bits=4, block_size=32, N=columns, K=depth, accuracy_level=level)
            check(model, x)
            assert "blockwise_matmul" in operators(model)


def test_products_of_f16_are_rounded_to_it() -> None:
    x = rows(2, 64, dtype="float16")
    operands = nbits((24, 64), 4, 32, "bytes", "float16")
    check(model_of(x, operands, bits=4, block_size=32, N=24, K=64), x, 2e-3)


def test_rows_are_rounded_where_the_model_allows_it() -> None:
    """onnxruntime rounds rows from `accuracy_level` 4 on: to the same codes, which others of another size tell."""
    x = rows(2, 288)
    x[1, 32:64] = 0
    for bits in (4, 8):
        operands = nbits((40, 288), bits, 32, "bytes")
        widths = {"bits": bits, "block_size": 32, "N": 40, "K": 288}
        rounded = model_of(x, operands, **widths, accuracy_level=4)
        check(rounded, x, 2e-6)
        exact = by_onnxruntime(model_of(x, operands, **widths), x)
        assert np.abs(by_onnxruntime(rounded, x) - exact).max() > 1e-3 * np.abs(exact).max()


def refusal(kind: type[GlowError], operands: Sequence[np.ndarray | None], **attributes: int) -> str:
    """What is said about a product that is refused."""
    sizes = {"bits": 4, "block_size": 32, "N": 24, "K": 64, **attributes}
    with pytest.raises(kind) as caught:
        import_model(model_of(rows(1, 64), operands, **sizes))
    return message(caught.value)


def test_what_is_not_supported_is_refused_in_one_line() -> None:
    plain = nbits((24, 64), 4, 32)
    order = [*plain[:3], RANDOM.permutation(np.arange(64, dtype=np.int32) // 32)]
    assert "reordered groups (g_idx) are not supported" in refusal(UnsupportedError, order)
    assert "quantized values of 3 bits are not supported" in refusal(UnsupportedError, plain, bits=3)
    for block in (0, 8, 24, -32):
        assert f"'product': MatMulNBits: blocks of {block} values" in refusal(UnsupportedError, plain, block_size=block)
    assert "packed for an onnxruntime kernel" in refusal(UnsupportedError, plain, weight_prepacked=1)
    wrong = refusal(ModelError, plain, N=23)
    assert "operand 1 has the shape (24, 2, 16), which does not fit (23, 32)" in wrong
    assert "'product'" in wrong
    assert "rows have 64 elements, and K is 60" in refusal(ModelError, plain, K=60)
    points = [*plain[:2], np.zeros((24, 3), np.uint8)]
    assert "operand 3 has the shape (24, 3), which does not fit (24, 1)" in refusal(ModelError, points)


def test_an_order_of_blocks_that_is_theirs_is_none() -> None:
    x = rows(1, 64)
    operands = [*nbits((24, 64), 4, 32)[:3], np.arange(64, dtype=np.int32) // 32]
    check(model_of(x, operands, bits=4, block_size=32, N=24, K=64), x)


# ---- ONNX's own operators -----------------------------------------------------------------------------------------


KINDS = {
    "int4": (TensorProto.INT4, -8, 8),
    "uint4": (TensorProto.UINT4, 0, 16),
    "int8": (TensorProto.INT8, -128, 128),
    "uint8": (TensorProto.UINT8, 0, 256),
}
"""Type of codes → its number, the least code, and the one behind the largest."""


def codes_of(kind: str, name: str, shape: tuple[int, ...]) -> onnx.TensorProto:
    """A constant of random codes of the whole range."""
    number, least, end = KINDS[kind]
    return helper.make_tensor(name, number, shape, RANDOM.integers(least, end, shape).reshape(-1).tolist())


def dequantized_product(kind: str, axis: int, has_points: bool, reader: str, depth: int = 64) -> onnx.ModelProto:
    """A product of rows [3, depth] with a DequantizeLinear in blocks of 16 along an axis, the depth."""
    shape, blocks = [24, 24], [24, 24]
    shape[axis], blocks[axis] = depth, -(-depth // 16)
    scales = RANDOM.uniform(0.01, 0.1, blocks).astype(np.float32)
    constants = [codes_of(kind, "c", (shape[0], shape[1])), numpy_helper.from_array(scales, "s")]
    names = ["c", "s"]
    if has_points:
        constants.append(codes_of(kind, "z", (blocks[0], blocks[1])))
        names.append("z")
    nodes = [helper.make_node("DequantizeLinear", names, ["w"], axis=axis, block_size=16)]
    if reader == "Gemm":
        constants.append(numpy_helper.from_array(RANDOM.normal(size=24).astype(np.float32), "b"))
        nodes.append(helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=axis))
    else:
        nodes.append(helper.make_node("MatMul", ["x", "w"], ["y"]))
    return graph_of(nodes, rows(3, depth), constants)


def operators(model: onnx.ModelProto) -> str:
    """The graph that is compiled, as text."""
    compilation = Compilation(import_model(model), target="avx2")
    compilation.run(until="lowered")
    return str(compilation.module)


@pytest.mark.parametrize("has_points", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_products_with_a_dequantization_of_blocks_read_the_codes(kind: str, has_points: bool) -> None:
    x = rows(3, 64)
    for axis, reader in ((0, "MatMul"), (0, "Gemm"), (1, "Gemm")):
        model = dequantized_product(kind, axis, has_points, reader)
        check(model, x)
        assert "glow_high.blockwise_matmul" in operators(model)


def test_other_dequantizations_of_codes_of_four_bits_become_numbers() -> None:
    """One scale for each row, blocks along the wrong axis, and rows that fill no bytes."""
    x = rows(3, 64)
    wrong = dequantized_product("int4", 1, True, "MatMul", 24)
    wrong.graph.node[0].attribute[0].i = 1
    check(wrong, x[:, :24])
    for shape in ((), (64,)):
        scales = numpy_helper.from_array(RANDOM.uniform(0.01, 0.1, shape).astype(np.float32), "s")
        nodes = [
            helper.make_node("DequantizeLinear", ["c", "s"], ["w"], axis=0),
            helper.make_node("MatMul", ["x", "w"], ["y"]),
        ]
        model = graph_of(nodes, x, [codes_of("int4", "c", (64, 9)), scales])
        check(model, x)
        assert ("blockwise" in operators(model)) == (not shape)  # One scale is one block a column.


def test_numbers_become_integers_of_four_bits() -> None:
    constants = [codes_of("int4", "z", ()), numpy_helper.from_array(np.array(0.5, np.float32), "s")]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    x = rows(2, 12) * 8
    check(graph_of(nodes, x, constants), x)


@pytest.mark.parametrize("kind", ["int4", "uint4", "uint8"])
@pytest.mark.parametrize("has_points", [False, True])
def test_rows_are_gathered_as_codes(kind: str, has_points: bool) -> None:
    """A table of onnxruntime's, of packed bytes or of ONNX's integers of four bits."""
    indices = np.array([[3, 0, 9], [1, 1, 4]], np.int64)
    table = (10, 32 if kind == "uint8" else 64)
    scales = RANDOM.uniform(0.01, 0.1, (10, 4)).astype(np.float32)
    constants = [codes_of(kind, "c", table), numpy_helper.from_array(scales, "s")]
    names = ["c", "x", "s"]
    if has_points:
        constants.append(codes_of(kind, "z", (10, 2 if kind == "uint8" else 4)))
        names.append("z")
    widths: dict[str, Any] = {"bits": 4, "block_size": 16}
    node = helper.make_node("GatherBlockQuantized", names, ["y"], domain="com.microsoft", quantize_axis=1, **widths)
    model = graph_of([node], indices, constants)
    check(model, indices)
    text = operators(model)
    assert "glow_high.gather" in text
    assert "tensor<10x64xf32>" not in text, "the table has become numbers"


def gathered(indices: np.ndarray, bits: int, block: int = 16) -> onnx.ModelProto:
    """Rows of a table [10, 64] of codes in bytes."""
    codes = RANDOM.integers(0, 256, (10, 8 * bits)).astype(np.uint8)
    scales = RANDOM.uniform(0.01, 0.1, (10, 4)).astype(np.float32)
    constants = [numpy_helper.from_array(codes, "c"), numpy_helper.from_array(scales, "s")]
    widths: dict[str, Any] = {"bits": bits, "block_size": block, "quantize_axis": 1}
    node = helper.make_node("GatherBlockQuantized", ["c", "x", "s"], ["y"], "rows", domain="com.microsoft", **widths)
    return graph_of([node], indices, constants)


@pytest.mark.parametrize(
    ("bits", "block", "reason"), [(3, 16, "quantized values of 3 bits"), (4, 0, "blocks of 0 values")]
)
def test_tables_of_other_codes_are_refused(bits: int, block: int, reason: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        import_model(gathered(np.zeros(3, np.int64), bits, block))
    assert f"'rows': GatherBlockQuantized: {reason} are not supported" in message(caught.value)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_no_indices_take_no_rows(bits: int) -> None:
    """onnxruntime has no tables of codes of 2 bits."""
    indices = np.zeros((2, 0), np.int64)
    for backend in ("interpreter", "cpu"):
        session = InferenceSession(gathered(indices, bits), backend=backend, cache=False)
        assert session.run(None, {"x": indices})[0].shape == (2, 0, 64)
