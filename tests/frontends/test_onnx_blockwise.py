"""Weights in blocks of codes, as onnxruntime and ONNX write them, give the numbers that onnxruntime computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnx_models import message

from glow_mlir import InferenceSession
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
    given = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
    constants = [numpy_helper.from_array(a, f"w{i}") for i, a in enumerate(operands) if a is not None]
    node = helper.make_node("MatMulNBits", names, ["y"], "product", domain="com.microsoft", **attributes)
    graph = helper.make_graph([node], "g", [given], [onnx.ValueInfoProto(name="y")], constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def by_onnxruntime(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    """What onnxruntime computes."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return cast(Any, session.run(None, {"x": x}))[0]


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
    for shape, depth in (((2, 3, 64), 64), ((1, 93), 93)):
        x = rows(*shape)
        operands = nbits((24, depth), 4, 32, "bytes")
        check(model_of(x, operands, bits=4, block_size=32, N=24, K=depth), x)


def test_products_of_f16_are_rounded_to_it() -> None:
    x = rows(2, 64, dtype="float16")
    operands = nbits((24, 64), 4, 32, "bytes", "float16")
    check(model_of(x, operands, bits=4, block_size=32, N=24, K=64), x, 2e-3)


def refusal(kind: type[GlowError], operands: Sequence[np.ndarray | None], **attributes: int) -> str:
    """What is said about a product that is refused."""
    sizes = {"bits": 4, "block_size": 32, "N": 24, "K": 64, **attributes}
    with pytest.raises(kind) as caught:
        import_model(model_of(rows(1, 64), operands, **sizes))
    return message(caught.value)


def test_what_is_not_supported_is_refused_in_one_line() -> None:
    plain = nbits((24, 64), 4, 32)
    order = [*plain[:3], RANDOM.permutation(np.arange(64, dtype=np.int32) // 32)]
    assert "belong to blocks in another order (g_idx) are not supported" in refusal(UnsupportedError, order)
    assert "codes of 3 bits are not supported" in refusal(UnsupportedError, plain, bits=3)
    assert "packed for a kernel of onnxruntime" in refusal(UnsupportedError, plain, weight_prepacked=1)
    wrong = refusal(ModelError, plain, N=23)
    assert "operand 1 has the shape (24, 2, 16), which does not fit (23, 32)" in wrong
    assert "'product'" in wrong
    points = [*plain[:2], np.zeros((24, 3), np.uint8)]
    assert "the zero points have the shape (24, 3), not (24, 1)" in refusal(ModelError, points)


def test_an_order_of_blocks_that_is_theirs_is_none() -> None:
    x = rows(1, 64)
    operands = [*nbits((24, 64), 4, 32)[:3], np.arange(64, dtype=np.int32) // 32]
    check(model_of(x, operands, bits=4, block_size=32, N=24, K=64), x)
