"""Elements of less than 16 bits through ONNX: constants, inputs and outputs, files, quantization, and the way back."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from glow_mlir import InferenceSession
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.blockwise import BlockwiseMatMulOp
from glow_mlir.dialects.glow_high.storage import GetOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.export.exporter import exported_model
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module
from glow_mlir.support.dtypes import NARROW_FLOATS, NARROW_INTEGERS, named_dtype
from glow_mlir.tools import glow_import

KINDS = {
    name: helper.np_dtype_to_tensor_dtype(named_dtype(name)) for name in sorted([*NARROW_FLOATS, *NARROW_INTEGERS])
}
"""dtype → ONNX's element type."""


def elements(name: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Random elements, all of which every type has but for the powers of two, where 0 becomes NaN."""
    return np.random.default_rng(seed).integers(0, 2, shape).astype(named_dtype(name))


def moving_model() -> onnx.ModelProto:
    """A model that moves an input of every narrow type, and gives constants of them."""
    nodes: list[onnx.NodeProto] = []
    inputs: list[onnx.ValueInfoProto] = []
    outputs: list[onnx.ValueInfoProto] = []
    constants: list[onnx.TensorProto] = []
    for seed, (name, kind) in enumerate(KINDS.items()):
        x, y, z, c = (f"{name}.{letter}" for letter in "xyzc")
        inputs.append(helper.make_tensor_value_info(x, kind, (3, 5)))
        constants.append(numpy_helper.from_array(elements(name, (3, 7), seed), c))
        nodes.append(helper.make_node("Transpose", [x], [y]))
        nodes.append(helper.make_node("Identity", [c], [z]))
        outputs.append(helper.make_tensor_value_info(y, kind, (5, 3)))
        outputs.append(helper.make_tensor_value_info(z, kind, (3, 7)))
    graph = helper.make_graph(nodes, "moving", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])


def test_elements_are_moved_and_kept(tmp_path: Path) -> None:
    """In machine code, from external data, from the text beside its weight file, and from an exported model."""
    path, outside, text, back = (tmp_path / name for name in ("m.onnx", "e.onnx", "m.mlir", "b.onnx"))
    model = moving_model()
    onnx.save(model, path)
    onnx.save(model, outside, save_as_external_data=True, size_threshold=0, location="e.bin")
    assert glow_import.main([str(path), "-o", str(text)]) == 0
    assert glow_import.main([str(path), "--to-onnx", str(back)]) == 0
    onnx.checker.check_model(str(back), full_check=True)
    inputs = {f"{name}.x": elements(name, (3, 5), 99 + seed) for seed, name in enumerate(KINDS)}
    sessions = [InferenceSession(path), *(InferenceSession(at, backend="interpreter") for at in (outside, text, back))]
    for session in sessions:
        results = dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs), strict=True))
        for seed, name in enumerate(KINDS):
            for letter, wanted in (("y", inputs[f"{name}.x"].T), ("z", elements(name, (3, 7), seed))):
                found = results[f"{name}.{letter}"]
                assert found.dtype == wanted.dtype
                np.testing.assert_array_equal(found.view(np.uint8), np.ascontiguousarray(wanted).view(np.uint8))
    assert [argument.type for argument in sessions[0].get_inputs()[:2]] == [
        "tensor(float4e2m1)",
        "tensor(float8e4m3fn)",
    ]


def test_conversions_are_exported_with_what_they_do_beyond_the_range(tmp_path: Path) -> None:
    path, back = tmp_path / "m.onnx", tmp_path / "b.onnx"
    forms: list[tuple[int, dict[str, Any]]] = [
        (TensorProto.FLOAT8E4M3FN, {"saturate": 0}),
        (TensorProto.FLOAT8E8M0, {"round_mode": "down"}),
    ]
    nodes = [helper.make_node("Cast", ["x"], [f"y{n}"], to=kind, **more) for n, (kind, more) in enumerate(forms)]
    outputs = [helper.make_tensor_value_info(f"y{n}", kind, (4,)) for n, (kind, _) in enumerate(forms)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4,))], outputs)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)]), path)
    assert glow_import.main([str(path), "--to-onnx", str(back)]) == 0
    x = np.array([1.7, 500, np.inf, 0.3], np.float32)
    for at in (path, back):
        first, second = InferenceSession(at, backend="interpreter").run(None, {"x": x})
        np.testing.assert_array_equal(first.astype(np.float32), np.array([1.75, np.nan, np.nan, 0.3125], np.float32))
        np.testing.assert_array_equal(second.astype(np.float64), [1, 256, 2.0**127, 0.25])


@pytest.mark.parametrize("name", ["f8E5M2", "f8E8M0FNU", "ui4", "i2"])
def test_moves_that_the_standard_has_for_wide_elements_alone(name: str) -> None:
    """They are exported with casts around them, which keep infinities and NaN."""
    text = f"""
    glow_high.func @main(%x: tensor<4x3x{name}>) -> (tensor<4x3x{name}>, tensor<4x3x{name}>) {{
      %1 = glow_high.slice %x {{starts = [1, 0], ends = [4, 3]}} : tensor<3x3x{name}>
      %2 = glow_high.slice %x {{starts = [0, 0], ends = [1, 3]}} : tensor<1x3x{name}>
      %3 = glow_high.concat %1, %2 {{axis = 0}} : tensor<4x3x{name}>
      %rows = glow_high.loop %i = 4 over (%row = %3 reversed) {{
        glow_high.yield %row
      }} : tensor<4x3x{name}>
      glow_high.return %3, %rows
    }}"""
    module = parse_module(text, new_context())
    model = exported_model(module)
    onnx.checker.check_model(model, full_check=True)
    dtype = numpy_dtype(element_of(next(op for op in module.walk() if isinstance(op, GetOp)).result))
    codes = np.array([0, 1, 2, 3, 127, 124, 255, 252, 4, 5, 6, 7], np.uint8)
    x = codes.view(dtype).reshape(4, 3)
    wanted = list(run_function(module, {"main.x": x}).values())
    found = list(run_function(import_model(model), {"x": x}).values())
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.dtype == theirs.dtype == dtype
        np.testing.assert_array_equal(ours.astype(np.float32), theirs.astype(np.float32))


def quantizing_model() -> onnx.ModelProto:
    """Codes and numbers of them: scales for axes and blocks, zero points, and scales of other types."""
    rng = np.random.default_rng(0)
    scales = {
        "one": np.array(0.25, np.float32),
        "rows": rng.uniform(0.1, 0.5, 4).astype(np.float32),
        "blocks": rng.uniform(0.1, 0.5, (4, 3)).astype(np.float32),
        "powers": np.array(0.5, named_dtype("float8_e8m0fnu")),
    }
    points = {
        "p4": np.array([-3, 0, 2, 7], named_dtype("int4")),
        "p2": np.array(1, named_dtype("uint2")),
        "pu": rng.integers(0, 16, (4, 3)).astype(named_dtype("uint4")),
        "p8": np.array(0, named_dtype("float8_e5m2")),
    }
    forms: list[tuple[str, str, str, dict[str, int]]] = [
        ("rows", "p4", "int4", {"axis": 0}),
        ("one", "p2", "uint2", {}),
        ("blocks", "pu", "uint4", {"axis": 1, "block_size": 4}),
        ("one", "p8", "float8_e5m2", {"saturate": 0}),
        ("blocks", "", "float8_e4m3fn", {"axis": 1, "block_size": 4}),
        ("rows", "", "float4_e2m1fn", {"axis": 0}),
        ("powers", "", "float8_e4m3fnuz", {}),
    ]
    nodes: list[onnx.NodeProto] = []
    for n, (scale, point, name, more) in enumerate(forms):
        operands = [scale, point] if point else [scale]
        kind: dict[str, Any] = {} if point else {"output_dtype": KINDS[name]}
        nodes.append(helper.make_node("QuantizeLinear", ["x", *operands], [f"q{n}"], **more, **kind))
        more = {key: value for key, value in more.items() if key != "saturate"}
        wide: dict[str, Any] = {"output_dtype": TensorProto.FLOAT} if scale == "powers" else {}
        nodes.append(helper.make_node("DequantizeLinear", [f"q{n}", *operands], [f"y{n}"], **more, **wide))
    outputs = [helper.make_tensor_value_info(f"q{n}", KINDS[form[2]], (4, 10)) for n, form in enumerate(forms)]
    outputs += [helper.make_tensor_value_info(f"y{n}", TensorProto.FLOAT, (4, 10)) for n in range(len(forms))]
    constants = [numpy_helper.from_array(array, name) for name, array in {**scales, **points}.items()]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 10))]
    graph = helper.make_graph(nodes, "quantizing", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])


def test_quantization_is_that_of_the_standard() -> None:
    model = quantizing_model()
    x = np.random.default_rng(1).uniform(-3, 3, (4, 10)).astype(np.float32)
    expected = cast("list[np.ndarray]", ReferenceEvaluator(model).run(None, {"x": x}))
    for backend in ("interpreter", "cpu"):
        results = InferenceSession(model, backend=backend).run(None, {"x": x})
        for wanted, found in zip(expected, results, strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found.astype(np.float32), wanted.astype(np.float32), rtol=1e-6)


@pytest.mark.parametrize(("name", "scale"), [("float4_e2m1fn", "float8_e8m0fnu"), ("float8_e4m3fn", "float32")])
def test_floats_in_blocks_stay_narrow_in_products(name: str, scale: str) -> None:
    """Constants of floats with a scale for each 32 along the depth, as those of the microscaling formats."""
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(64, 24)).astype(named_dtype(name))
    scales = np.abs(rng.normal(size=(2, 24))).astype(named_dtype(scale))
    given: dict[str, Any] = {"axis": 0, "block_size": 32, "output_dtype": TensorProto.FLOAT}
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["n"], **given),
        helper.make_node("MatMul", ["x", "n"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (3, 64))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (3, 24))],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(scales, "s")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])
    x = rng.normal(size=(3, 64)).astype(np.float32)
    (wanted,) = cast("list[np.ndarray]", ReferenceEvaluator(model).run(None, {"x": x}))
    compilation = Compilation(import_model(model), target="avx2")
    compilation.run(until="lowered")
    assert any(isinstance(op, BlockwiseMatMulOp) and op.element for op in compilation.module.walk())
    for backend in ("interpreter", "cpu"):
        (found,) = InferenceSession(model, backend=backend).run(None, {"x": x})
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
