"""Forms of operators that few models have, as onnxruntime computes them, or as numpy where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import refusal
from python_value_cases import by_onnxruntime

from glow_mlir import InferenceSession
from glow_mlir.errors import ExecutionError, GlowWarning, ModelError

RANDOM = np.random.default_rng(5)


def numbers(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def codes(*shape: int, dtype: str = "uint8") -> np.ndarray:
    return RANDOM.integers(0, 100, shape).astype(dtype)


def model_of(
    kind: str, arrays: Sequence[np.ndarray], opset: int = 18, domain: str = "", results: int = 1, **attributes: Any
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of one node, and what it is given."""
    given = {f"x{place}": array for place, array in enumerate(arrays)}
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), list(array.shape))
        for name, array in given.items()
    ]
    names = [f"y{place}" for place in range(results)]
    node = helper.make_node(kind, list(given), names, "node", domain=domain, **attributes)
    graph = helper.make_graph([node], "graph", inputs, [onnx.ValueInfoProto(name=name) for name in names])
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), given


def assert_as_onnxruntime(kind: str, arrays: Sequence[np.ndarray], **options: Any) -> None:
    model, given = model_of(kind, arrays, **options)
    expected = by_onnxruntime(model, given)
    for backend in ("interpreter", "cpu"):
        found = InferenceSession(model, backend=backend, cache=False).run(None, given)
        for ours, theirs in zip(found, expected, strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


REPEATED: dict[str, Sequence[Sequence[int]]] = {
    "ij,ij->ij": ((1, 3), (2, 3)),
    "ab,ab->a": ((2, 1), (2, 3)),
    "bij,bjk->bik": ((1, 2, 3), (4, 3, 5)),
    "i,i->": ((1,), (5,)),
    "ij,jk": ((2, 1), (3, 4)),
    "...ij,...jk->...ik": ((5, 2, 1), (1, 3, 4)),
    "ij,ij,ij->j": ((1, 3), (2, 1), (2, 3)),
}


@pytest.mark.parametrize("equation", REPEATED)
def test_axes_of_one_element_repeat_in_einsum(equation: str) -> None:
    assert_as_onnxruntime("Einsum", [numbers(*shape) for shape in REPEATED[equation]], equation=equation)


def test_axes_of_a_diagonal_are_as_long() -> None:
    for equation, shape in (("ii->i", (1, 3)), ("iji->j", (3, 2, 1))):
        model, _ = model_of("Einsum", [numbers(*shape)], equation=equation)
        assert "node 'node': Einsum: axis 'i' is " in refusal(model, ModelError)


@pytest.mark.parametrize("opset", [7, 9, 15])
def test_a_batch_of_numbers_is_one_channel(opset: int) -> None:
    operands = [numbers(5), *(np.abs(numbers(1)) for _ in range(4))]
    assert_as_onnxruntime("BatchNormalization", operands, opset=opset)
    if opset == 15:
        assert_as_onnxruntime("BatchNormalization", operands, opset=opset, results=3, training_mode=1)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("shapes", [((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((5, 2, 3), (3,)), ((3,), (5, 3, 4))])
def test_products_of_vectors_of_codes(shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: str) -> None:
    left, right = (codes(*shape, dtype=dtype) for shape in shapes)
    scale, zero = np.array(0.1, np.float32), np.array(3, dtype)
    operands = [left, scale, zero, right, scale, zero, np.array(9, np.float32), np.array(2, dtype)]
    assert_as_onnxruntime("QLinearMatMul", operands)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize(("opset", "attributes"), [(9, {}), (13, {"axes": [1, 2]}), (13, {"axes": [0, -1]})])
def test_mean_variance_normalization_of_all_types(dtype: str, opset: int, attributes: dict[str, Any]) -> None:
    x = numbers(2, 3, 4, 5, dtype=dtype)
    model, given = model_of("MeanVarianceNormalization", [x], opset=opset, **attributes)
    axes = tuple(attributes.get("axes", (0, 2, 3)))
    wide = x.astype(np.float64)
    wide -= wide.mean(axes, keepdims=True)
    (found,) = InferenceSession(model, cache=False, strict=True).run(None, given)
    assert found.dtype == x.dtype
    tolerance = 1e-2 if dtype == "float16" else 1e-7
    np.testing.assert_allclose(found, wide / (wide.std(axes, keepdims=True) + 1e-9), atol=tolerance)


IMAGE = numbers(2, 3, 4, 5)
EARLY: dict[str, tuple[str, np.ndarray, int, dict[str, Any]]] = {
    "an affine function": ("Affine", IMAGE, 7, {"alpha": 2.0, "beta": 0.5}),
    "a scaled image": ("ImageScaler", IMAGE, 9, {"bias": [1.0, 2.0, 3.0], "scale": 2.0}),
    "a soft plus": ("ParametricSoftplus", IMAGE, 7, {"alpha": 0.5, "beta": 2.0}),
    "a tanh": ("ScaledTanh", IMAGE, 7, {"alpha": 0.5, "beta": 2.0}),
    "a factor": ("Scale", IMAGE, 1, {"scale": 3.0}),
    "a crop by borders": ("Crop", IMAGE, 7, {"border": [1, 0, 2, 1]}),
    "a crop by size": ("Crop", IMAGE, 7, {"border": [1, 1, 0, 0], "scale": [2, 3]}),
    "a threshold": ("ThresholdedRelu", IMAGE, 7, {"alpha": 0.3}),
    "a normalization": ("MeanVarianceNormalization", IMAGE, 7, {}),
    "a normalization of all": ("MeanVarianceNormalization", IMAGE, 7, {"across_channels": 1}),
    "a difference from the mean": ("MeanVarianceNormalization", IMAGE, 7, {"normalize_variance": 0}),
    "a normalization of three axes": ("MeanVarianceNormalization", numbers(2, 3, 4), 13, {}),
}


@pytest.mark.parametrize("case", EARLY)
def test_what_onnxruntime_has_and_the_standard_has_not(case: str) -> None:
    kind, x, opset, attributes = EARLY[case]
    model, given = model_of(kind, [x], opset=opset, **attributes)
    with pytest.warns(GlowWarning, match=f"node 'node': {kind}: "):
        session = InferenceSession(model, cache=False)
    np.testing.assert_allclose(session.run(None, given)[0], by_onnxruntime(model, given)[0], rtol=1e-5, atol=1e-5)
    assert f"node 'node': {kind}: " in refusal(model, ModelError, strict=True)


def test_what_early_operators_cannot_have_is_refused() -> None:
    for kind, attributes, expected in (
        ("ImageScaler", {"bias": [1.0]}, "1 biases for 3 channels"),
        ("Crop", {"border": [1, 1]}, "border is [1, 1]"),
        ("ScaledTanh", {}, "beta"),
    ):
        model, _ = model_of(kind, [IMAGE], opset=7, **attributes)
        assert expected in refusal(model, ModelError)


@pytest.mark.parametrize("kind", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
@pytest.mark.parametrize("types", [("float16", "float32"), ("float32", "float16")])
def test_operands_of_other_types_are_converted_to_that_of_the_first(kind: str, types: tuple[str, str]) -> None:
    x, skip, scale, bias = (numbers(2, 3, 4), numbers(2, 3, 4), numbers(4), numbers(4))
    one, other = types
    operands = [x.astype(one), skip.astype(one), scale.astype(other), bias.astype(other)]
    model, given = model_of(kind, operands, domain="com.microsoft")
    with pytest.warns(GlowWarning, match="; it is converted"):
        session = InferenceSession(model, cache=False)
    plain = model_of(kind, [operand.astype(one) for operand in operands], domain="com.microsoft")
    (expected,) = InferenceSession(plain[0], cache=False).run(None, plain[1])
    (found,) = session.run(None, given)
    assert found.dtype == np.dtype(one)
    np.testing.assert_allclose(found, expected, atol=1e-2)
    assert "with strict=False it is converted" in refusal(model, ModelError, strict=True)


@pytest.mark.parametrize(
    ("kind", "features", "intercepts", "attributes"),
    [
        ("LinearClassifier", 4, 3, {"classlabels_ints": [0, 1, 2], "post_transform": "LOGISTIC"}),
        ("LinearClassifier", 4, 1, {"classlabels_ints": [0, 1]}),
        ("LinearRegressor", 3, 2, {"targets": 2}),
    ],
)
def test_models_with_more_coefficients_than_columns(
    kind: str, features: int, intercepts: int, attributes: dict[str, Any]
) -> None:
    """The first model of onnxruntime's tutorial is such a one."""
    results = 2 if kind == "LinearClassifier" else 1
    coefficients = numbers(features * intercepts).tolist()
    given = {"coefficients": coefficients, "intercepts": numbers(intercepts).tolist(), **attributes}
    model, feed = model_of(kind, [numbers(5, 2)], domain="ai.onnx.ml", results=results, **given)
    with pytest.warns(GlowWarning, match=f"coefficients for {intercepts} times 2 features; the first"):
        session = InferenceSession(model, cache=False)
    for ours, theirs in zip(session.run(None, feed), by_onnxruntime(model, feed), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    assert "coefficients for" in refusal(model, ModelError, strict=True)


CORNERS = np.array(
    [
        [0, 0, 0, 7, 7],
        [1, 2, 3, 2, 3],
        [0, 1.5, 2.5, 9.5, 4.5],
        [1, 6, 6, 2, 2],
        [0, 100, 100, 120, 120],
        [0, -3, -3, 9, 1],
    ]
)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(("cells", "scale"), [((1, 1), 1.0), ((2, 3), 0.5), ((7, 9), 1.0)])
def test_largest_elements_of_regions(dtype: str, cells: tuple[int, int], scale: float) -> None:
    operands = [numbers(2, 5, 8, 8, dtype=dtype), CORNERS.astype(dtype)]
    assert_as_onnxruntime("MaxRoiPool", operands, pooled_shape=cells, spatial_scale=scale)


def test_images_of_regions_have_to_be_there() -> None:
    for image in (-1, 2, 1e20):
        model, given = model_of(
            "MaxRoiPool", [numbers(2, 5, 8, 8), np.array([[image, 0, 0, 1, 1]], np.float32)], pooled_shape=[1, 1]
        )
        for backend in ("interpreter", "cpu"):
            with pytest.raises(ExecutionError, match="the number of an image is out of range"):
                InferenceSession(model, backend=backend, cache=False).run(None, given)


def test_position_of_a_rotary_embedding_may_be_a_number() -> None:
    tables = [numbers(16, 4), numbers(16, 4)]
    operands = [numbers(2, 3, 8), np.array(2), *tables]
    assert_as_onnxruntime("RotaryEmbedding", operands, domain="com.microsoft", num_heads=1)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_zero_points_of_blocks_may_come_with_a_call(bits: int) -> None:
    columns, depth, block = 5, 96, 32
    blocks = depth // block
    operands = [
        numbers(2, depth),
        RANDOM.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8),
        np.abs(numbers(columns, blocks)) * np.float32(1e-3),
        RANDOM.integers(0, 256, (columns, -(-blocks * bits // 8))).astype(np.uint8),
    ]
    sizes = {"bits": bits, "block_size": block, "N": columns, "K": depth}
    assert_as_onnxruntime("MatMulNBits", operands, domain="com.microsoft", **sizes)


def test_scales_of_blocks_in_a_table_may_come_with_a_call() -> None:
    table = RANDOM.integers(0, 256, (6, 32)).astype(np.uint8)
    scales, rows = np.abs(numbers(6, 4)), np.array([[1, 5]])
    model, given = model_of(
        "GatherBlockQuantized", [table, rows, scales], domain="com.microsoft", block_size=16, quantize_axis=1, bits=4
    )
    model.graph.initializer.append(numpy_helper.from_array(table, "x0"))
    del model.graph.input[0], given["x0"]
    for backend in ("interpreter", "cpu"):
        found = InferenceSession(model, backend=backend, cache=False).run(None, given)[0]
        np.testing.assert_allclose(found, by_onnxruntime(model, given)[0], rtol=1e-5)
