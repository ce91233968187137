"""What is exported to ONNX is valid, keeps names and types, and means the same to us and to onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from checkout import ROOT
from control_flow_models import greedy_decoder, lstm, mandelbrot
from execute import Case, module_of
from models import bert_encoder, lstm_network, random_inputs, resnet18
from onnx import checker, defs, numpy_helper, parser
from onnx_models import model_of, node, value, weight
from operator_forms import BY_OPERANDS, FORMS, IMAGE, PLANE, floats, integers, signed
from other_runtimes import Arrays, by_onnxruntime
from quantized_models import quantized_model
from single_node import SingleNode

from glow_mlir.dialects.glow_high.indexing import ReverseSequenceOp
from glow_mlir.dialects.glow_high.selection import NonMaxSuppressionOp
from glow_mlir.driver.compiler import Compilation
from glow_mlir.errors import UnsupportedError, UnsupportedOperatorsError
from glow_mlir.frontends.onnx.export import exporter
from glow_mlir.frontends.onnx.export.exporter import exported_model, save_model
from glow_mlir.frontends.onnx.export.writer import OPSET
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module
from glow_mlir.tools.glow_import import main


def assert_near(expected: Arrays, found: Arrays, step: float = 2e-4) -> None:
    assert list(expected) == list(found)
    for name, wanted in expected.items():
        scale = float(np.abs(wanted.astype(np.float64)).max(initial=1e-3))
        assert found[name].dtype == wanted.dtype
        np.testing.assert_allclose(found[name], wanted, rtol=1e-3, atol=step * scale, err_msg=name)


def check(model: onnx.ModelProto, stage: str) -> onnx.ModelProto:
    """Import, export and import again: valid, of the same inputs and outputs, the same results everywhere."""
    module = import_model(model)
    inputs = random_inputs(model, np.random.default_rng(0))
    expected = run_function(module.clone(), inputs)
    Compilation(module).run(stage)
    exported = exported_model(module)
    checker.check_model(exported, full_check=True)
    assert [item.name for item in exported.graph.input] == list(inputs)
    assert [item.name for item in exported.graph.output] == [item.name for item in model.graph.output]
    # A sum that is rounded otherwise may be the next code.
    step = 0.02 if any(node.op_type == "QuantizeLinear" for node in exported.graph.node) else 2e-4
    assert_near(expected, run_function(import_model(exported), inputs), step)
    assert_near(expected, by_onnxruntime(exported, inputs), step)
    return exported


DIGITS = ROOT / "examples" / "residual_digits.onnx"


def digits() -> onnx.ModelProto:
    """The trained network of the examples, for one image."""
    model = onnx.load(DIGITS)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 1
    return model


NETWORKS: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "residual": (lambda: resnet18(size=32, classes=7), "optimized"),
    "encoder": (lambda: bert_encoder(layers=1, length=8, width=16, heads=2), "optimized"),
    "digits": (digits, "optimized"),
    "recurrent": (lambda: lstm_network(layers=1, steps=3, width=4, hidden=5), "optimized"),
    "quantized": (lambda: quantized_model("residual", "qdq-u8"), "imported"),
    "codes": (lambda: quantized_model("residual", "qdq-u8"), "optimized"),
    # Weights of 7 bits: onnxruntime's sums of two products of u8 and i8 end at 16 bits on processors without VNNI.
    "codes of rows": (lambda: quantized_model("encoder", "qdq-one-scale"), "optimized"),
}


@pytest.mark.parametrize("network", NETWORKS)
def test_networks(network: str) -> None:
    make, stage = NETWORKS[network]
    check(make(), stage)


EMPTY = np.zeros(0, np.float32)
WIDE = signed(2, 4, 5)

MORE: dict[str, tuple[str, list[np.ndarray], dict[str, Any]]] = {
    "Attention": ("Attention", [floats(1, 2, 3, 4)] * 3, {"is_causal": 1}),
    "CumSum": ("CumSum", [WIDE, np.array(1)], {"reverse": 1}),
    "DequantizeLinear": (
        "DequantizeLinear",
        [np.arange(-6, 6, dtype=np.int8).reshape(3, 4), floats(3), np.array([1, 0, 2], np.int8)],
        {"axis": 0},
    ),
    "GridSample": ("GridSample", [IMAGE, signed(1, 3, 4, 2) / 2], {"padding_mode": "border", "align_corners": 1}),
    "Resize": ("Resize", [IMAGE, EMPTY, np.array([1, 1, 1.6, 0.7], np.float32)], {"mode": "linear"}),
    "ScatterElements": ("ScatterElements", [PLANE, np.array([[1, 0, 1]]), floats(1, 3)], {"reduction": "add"}),
    "Trilu": ("Trilu", [WIDE], {"upper": 0}),
}
"""Operators of the newest opset in forms that neither `FORMS` nor the rows of `operator_cases` have."""


def through_onnx(node: SingleNode) -> None:
    """What a node gives does not change by import and export, here and in onnxruntime."""
    model, feeds = node.with_constants()
    module = import_model(model)
    expected = run_function(module.clone(), feeds)
    exported = exported_model(module)
    checker.check_model(exported, full_check=True)
    assert_near(expected, run_function(import_model(exported), feeds))
    assert_near(expected, by_onnxruntime(exported, feeds))


def newest(kind: str) -> int:
    """The newest form of an operator that the export writes."""
    schemas = (item for item in defs.get_all_schemas_with_history() if item.name == kind and item.domain == "")
    return max(item.since_version for item in schemas if item.since_version <= OPSET and not item.deprecated)


@pytest.mark.parametrize("kind", FORMS)
def test_operators_of_all_forms(kind: str) -> None:
    form = FORMS[kind][max(FORMS[kind])]
    constant = range(1, len(form.operands)) if kind in BY_OPERANDS else ()
    through_onnx(SingleNode(kind, form.operands, newest(kind), form.attributes, form.outputs, constant))


@pytest.mark.parametrize("case", MORE)
def test_other_forms(case: str) -> None:
    kind, operands, attributes = MORE[case]
    through_onnx(SingleNode(kind, operands, 25, attributes, constant=range(1, len(operands))))


@pytest.mark.parametrize(("batch", "time"), [(1, 0), (0, 1), (0, 2), (2, 1), (3, 2)])
def test_sequences_along_any_axes(batch: int, time: int) -> None:
    """ONNX has those of the first two axes alone."""
    x = np.arange(2 * 3 * 4 * 5, dtype=np.int8).reshape(2, 3, 4, 5)
    lengths = np.arange(x.shape[batch]) % (x.shape[time] + 1)
    module, inputs = module_of(Case(ReverseSequenceOp, x, lengths, batch_axis=batch, time_axis=time))
    exported = exported_model(module)
    checker.check_model(exported, full_check=True)
    assert_near(run_function(module, inputs), by_onnxruntime(exported, inputs))


def test_names_stay() -> None:
    nodes = [node("Conv", "x w", "a", "first conv"), node("Relu", "a", "y", "act")]
    image = value("x", shape=(1, 2, 4, 4))
    weights = numpy_helper.from_array(floats(3, 2, 3, 3), "filter")
    nodes[0].input[1] = "filter"
    exported = exported_model(import_model(model_of(nodes, [image], initializers=[weights])))
    assert [(item.name, item.op_type) for item in exported.graph.node] == [("first conv", "Conv"), ("act", "Relu")]
    assert exported.graph.node[1].output == ["y"]
    assert [value.type.tensor_type.elem_type for value in exported.graph.output] == [onnx.TensorProto.FLOAT]


def test_the_node_that_gives_a_result_keeps_its_name() -> None:
    nodes = [node("Gemm", "x weights bias", "y", "classifier", transA=1)]
    weights = [numpy_helper.from_array(floats(4, 3), "weights"), numpy_helper.from_array(floats(3), "bias")]
    exported = check(model_of(nodes, [value("x", shape=(4, 2))], initializers=weights), "imported")
    kinds = {item.name: item.op_type for item in exported.graph.node}
    assert len(kinds) == len(exported.graph.node) > 1
    assert kinds["classifier"] == "Gemm"


def test_outputs_that_no_operator_computes() -> None:
    """An input, a weight, and one value under two names."""
    model = model_of(
        [node("Identity", "x", "y"), node("Relu", "x", "z"), node("Identity", "z", "again")], outputs=["y"]
    )
    model.graph.output.extend(value(name) for name in ("z", "again", "w"))
    model.graph.initializer.append(weight("w", 1, 2))
    x = np.array([-1, 2], np.float32)
    found = by_onnxruntime(exported_model(import_model(model)), {"x": x})
    expected = {"y": x, "z": np.maximum(x, 0), "again": np.maximum(x, 0), "w": np.array([1, 2], np.float32)}
    assert_near(expected, found)


def test_values_with_several_names() -> None:
    """Outputs that are one value behind the optimizer, the last in another layout than the others."""
    image, x = value("x", shape=(1, 2, 3, 3)), floats(1, 2, 3, 3)
    kinds = {"y": "Relu", "z": "Relu", "a": "Relu"}
    nodes = [node(kind, "x", name) for name, kind in kinds.items()] + [node("Transpose", "a", "t", perm=[0, 2, 3, 1])]
    nodes.append(node("Transpose", "t", "again", perm=[0, 3, 1, 2]))
    module = import_model(model_of(nodes, [image], ["y", "z", "t", "again"]))
    Compilation(module).run("optimized")
    exported = exported_model(module)
    checker.check_model(exported, full_check=True)
    expected = {"y": x, "z": x, "t": x.transpose(0, 2, 3, 1), "again": x}
    assert_near(expected, by_onnxruntime(exported, {"x": x}))


def test_where_maxima_are() -> None:
    node = SingleNode("MaxPool", [IMAGE], 22, {"kernel_shape": [2, 2]}, outputs=2)
    through_onnx(node)


LOOPS: dict[str, tuple[onnx.ModelProto, Arrays]] = {
    "scan": (lstm("scan", 3, 2, 4, 5), {}),
    "loop over rows": (lstm("loop", 3, 2, 4, 5), {}),
    "computed trips": (mandelbrot(4, 9), {"n": np.array(3)}),
    "early exit": (greedy_decoder(5, 12, 6), {"first": integers(3)}),
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("stage", ["imported", "optimized"])
def test_loops(name: str, stage: str) -> None:
    model, given = LOOPS[name]
    inputs = given or random_inputs(model, np.random.default_rng(0))
    expected = by_onnxruntime(model, inputs)
    module = import_model(model)
    Compilation(module).run(stage)
    exported = exported_model(module)
    checker.check_model(exported, full_check=True)
    assert_near(expected, by_onnxruntime(exported, inputs))
    assert_near(expected, run_function(import_model(exported), inputs))


def test_branches_and_rows_from_the_back() -> None:
    """Branches that yield a weight, a value from around them and one of their own; a scan that goes backwards."""
    text = """<ir_version: 9, opset_import: ["": 20]>
    branches (float[3, 2] x, bool c) => (float[3, 2] y, float[3, 2] z) {
        y, a = If (c) <
            then_branch = yes () => (float[3, 2] p, float[3, 2] q) { p = Identity (w)  q = Relu (x) },
            else_branch = no () => (float[3, 2] r, float[3, 2] s) { r = Identity (x)  s = Neg (w) }
        >
        last, z = Scan <num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1],
            body = trip (float[2] h, float[2] row) => (float[2] n, float[2] o) {
                t = Add (h, row)  n = Tanh (t)  o = Mul (n, row)
            }> (zero, a)
    }"""
    model = parser.parse_model(text)
    weights = {"w": signed(3, 2), "zero": np.zeros(2, np.float32)}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    module = import_model(model)
    exported = exported_model(module)
    checker.check_model(exported, full_check=True)
    for chosen in (True, False):
        inputs = {"x": -2 * signed(3, 2), "c": np.array(chosen)}
        assert_near(by_onnxruntime(model, inputs), by_onnxruntime(exported, inputs))


@pytest.mark.parametrize("direction", [0, 1])
def test_scans_over_any_number_of_rows(direction: int) -> None:
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 20]>
    scan (float[n, 2] x) => (float[2] last, float[n, 2] y) {{
        zero = Constant <value_floats = [0.0, 0.0]> ()
        last, y = Scan <num_scan_inputs = 1, scan_input_directions = [{direction}],
            body = trip (float[2] h, float[2] row) => (float[2] n, float[2] o) {{
                t = Add (h, row)  n = Tanh (t)  o = Mul (n, row)
            }}> (zero, x)
    }}""")
    exported = exported_model(import_model(model, {"n": (1, 5)}))
    checker.check_model(exported, full_check=True)
    for rows in (1, 3, 5):
        inputs = {"x": signed(rows, 2)}
        assert_near(by_onnxruntime(model, inputs), by_onnxruntime(exported, inputs))


def test_rows_of_trips_that_do_not_take_place_are_zero() -> None:
    text = """
    glow_high.func @main(%x: tensor<4xf32>, %go: tensor<i1>) -> tensor<5x4xf32> {
      %y = glow_high.loop %k = 5 while %go {
        %off = glow_high.not %go : tensor<i1>
        glow_high.yield %off, %x
      } : tensor<5x4xf32>
      glow_high.return %y
    }"""
    module = parse_module(text, new_context())
    x, go = np.arange(1, 5, dtype=np.float32), np.array(True)
    (wanted,) = run_function(module, {"main.x": x, "main.go": go}).values()
    (found,) = by_onnxruntime(exported_model(module), {"x": x, "go": go}).values()
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(found, [x, *np.zeros((4, 4))])


def test_sizes_that_are_known_at_run_time_only() -> None:
    """Sizes are dimensions with names, and what follows from them is computed in the graph."""
    text = """<ir_version: 9, opset_import: ["": 20]> sizes (float[n, m, 4] x) => (float[a, b] y, float[n, c, 4] z) {
        shape = Shape (x)  one = Constant <value_ints = [1]> ()  four = Constant <value_ints = [4]> ()
        m = Slice (shape, one, two)  wide = Mul (m, four)  rest = Constant <value_ints = [-1]> ()
        flat = Concat <axis = 0> (rest, wide)  y = Reshape (x, flat)
        twice = Concat <axis = 1> (x, x)  whole = Shape (twice)
        fill = ConstantOfShape <value = float[1] {2}> (whole)  z = Mul (twice, fill)
    }"""
    model = parser.parse_model(text)
    model.graph.initializer.append(numpy_helper.from_array(integers(2), "two"))
    module = import_model(model, {"n": (1, 5), "m": (1, 7)})
    Compilation(module).run("optimized")
    exported = exported_model(module)
    checker.check_model(exported, full_check=True)
    assert [item.dim_param for item in exported.graph.input[0].type.tensor_type.shape.dim] == ["n", "m", ""]
    again = import_model(exported, {"n": (1, 5), "m": (1, 7)})
    for n, m in ((1, 1), (5, 3)):
        inputs = {"x": floats(n, m, 4)}
        assert_near(by_onnxruntime(model, inputs), by_onnxruntime(exported, inputs))
        assert_near(by_onnxruntime(model, inputs), run_function(again, inputs))


def test_results_that_are_as_large_as_their_data_says() -> None:
    """Their sizes are symbols, which the graph counts."""
    text = """<ir_version: 9, opset_import: ["": 20]>
    selected (float[6, 4] boxes, float[6] scores) => (float[k, 4] best, int64[1, p] places, float[u] different) {
        zero = Constant <value_ints = [0]> ()  axes = Constant <value_ints = [0, 1]> ()
        all = Unsqueeze (boxes, zero)  by_class = Unsqueeze (scores, axes)
        most = Constant <value_int = 3> ()  overlap = Constant <value_float = 0.5> ()
        rows = NonMaxSuppression (all, by_class, most, overlap, overlap)
        two = Constant <value_int = 2> ()  numbers = Gather <axis = 1> (rows, two)
        best = Gather (boxes, numbers)
        places = NonZero (scores)
        different = Unique (scores)
    }"""
    model = parser.parse_model(text)
    module = import_model(model)
    Compilation(module).run("optimized")
    exported = exported_model(module)
    checker.check_model(exported, full_check=True)
    again = import_model(exported)
    corners = np.sort(floats(6, 2, 2), axis=1).reshape(6, 4)
    for scores in ([0.9, 0, 0.8, 0.6, 0.6, 0], [0.1] * 6):
        inputs = {"boxes": corners, "scores": np.array(scores, np.float32)}
        assert_near(by_onnxruntime(model, inputs), by_onnxruntime(exported, inputs))
        assert_near(by_onnxruntime(model, inputs), run_function(again, inputs))


GRAPHS: dict[str, tuple[str, Arrays]] = {
    "sizes of a computed shape": (
        "graph (float[N, 3] x) => (float[A] y) {"
        " s = Shape <start = 0, end = 1> (x)  m = Constant <value_ints = [-1]> ()  y = Reshape (x, m)"
        " both = Concat <axis = 0> (x, x)  t = Shape (both)  f = ConstantOfShape (t) }",
        {"x": floats(2, 3)},
    ),
    "sizes alone": (
        "graph (float[N] x) => (float[A] y) { s = Shape <start = 0, end = 1> (x)  y = ConstantOfShape (s) }",
        {"x": floats(3)},
    ),
    "codes": (
        "graph (float[2, 3] x) => (float[2, 3] y) {"
        " s = Constant <value_float = 0.5> ()  q = QuantizeLinear <output_dtype = 3> (x, s)"
        " y = DequantizeLinear (q, s) }",
        {"x": signed(2, 3)},
    ),
    "transposes": (
        "graph (float[2, 3] x) => (float[2, 3] y) {"
        " a = Relu (x)  t = Transpose (a)  u = Transpose (t)  b = Identity (u)  y = Neg (b) }",
        {"x": signed(2, 3)},
    ),
    "what is found": (
        "graph (float[6] x) => (float[L] y) {"
        " p = NonZero (x)  n = Size (p)  s = Shape <start = 1> (p)  y = ConstantOfShape (s) }",
        {"x": np.array([0, 1, 0, 2, 3, 0], np.float32)},
    ),
}
"""Graphs, some with a size `N` of 0 to 4, and inputs."""


@pytest.mark.parametrize("case", GRAPHS)
@pytest.mark.parametrize("stage", ["imported", "optimized"])
def test_every_intermediate_value_is_an_output_too(case: str, stage: str) -> None:
    text, inputs = GRAPHS[case]
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')
    model.graph.output.extend(onnx.shape_inference.infer_shapes(model).graph.value_info)
    assert len(model.graph.output) == len(model.graph.node)
    module = import_model(model, {"N": (0, 4)} if "[N" in text else {})
    Compilation(module).run(stage)
    exported = exported_model(module)
    checker.check_model(exported, full_check=True)
    assert_near(by_onnxruntime(model, inputs), by_onnxruntime(exported, inputs))


def test_scales_are_of_the_type_of_the_numbers() -> None:
    text = """
    glow_high.func @main(%x: tensor<4xf16>) -> tensor<4xf16> {
      %q = glow_high.quantize %x {to = !quant.uniform<i8:f16, 0.5:3>} : tensor<4x!quant.uniform<i8:f16, 0.5:3>>
      %y = glow_high.dequantize %q : tensor<4xf16>
      glow_high.return %y
    }"""
    module, x = parse_module(text, new_context()), np.array([-1.3, 0, 0.6, 100], np.float16)
    exported = exported_model(module)
    checker.check_model(exported, full_check=True)
    (wanted,) = run_function(module, {"main.x": x}).values()
    (found,) = by_onnxruntime(exported, {"x": x}).values()
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, wanted)


def test_no_box_is_chosen_where_nobody_asks_for_any() -> None:
    """Whatever there is room for."""
    boxes, scores = floats(1, 6, 4), floats(1, 2, 6)
    module, inputs = module_of(Case(NonMaxSuppressionOp, boxes, scores, limit=3))
    exported = exported_model(module)
    assert_near(run_function(module, inputs), by_onnxruntime(exported, inputs))


def test_large_weights_lie_beside_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "LARGEST", 1 << 10)
    weights = numpy_helper.from_array(floats(30, 40), "w")
    model = model_of([node("MatMul", "x w")], [value("x", shape=(2, 30))], initializers=[weights])
    path = tmp_path / "model.onnx"
    save_model(exported_model(import_model(model)), path)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    x = {"x": floats(2, 30)}
    assert_near(run_function(import_model(model), x), by_onnxruntime(path, x))


def test_what_has_no_words_is_listed_at_once() -> None:
    text = """
    glow_high.func @f(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>) {
      %0 = glow_high.cum_prod %x {axis = 1} : tensor<2x3xf32>
      %1 = glow_high.bit_cast %x {to = i32} : tensor<2x3xi32>
      glow_high.return %0, %1
    }"""
    with pytest.raises(UnsupportedOperatorsError) as caught:
        exported_model(parse_module(text, new_context()))
    assert "glow_high.cum_prod" in str(caught.value)
    assert "glow_high.bit_cast" in str(caught.value)


def test_state_has_no_words() -> None:
    text = """
    glow_high.placeholder @s : tensor<2xf32> {state}
    glow_high.placeholder @y : tensor<2xf32> {output}
    glow_high.func @f(@s, @y) {
      %0 = glow_high.get @s {mutable} : tensor<2xf32>
      glow_high.save %0, @y
    }"""
    with pytest.raises(UnsupportedError, match="'s' is state"):
        exported_model(parse_module(text, new_context()))


def test_tool_writes_an_optimized_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nodes = [node("Identity", "x", "a"), node("Relu", "a", "b"), node("Relu", "b", "y", "act")]
    onnx.save(model_of(nodes), "model.onnx")
    assert main(["model.onnx", "--to-onnx", "small.onnx"]) == 0
    assert [item.op_type for item in onnx.load("small.onnx").graph.node] == ["Relu"]
    assert sorted(item.name for item in tmp_path.iterdir()) == ["model.onnx", "small.onnx"]
    assert main(["model.onnx", "--to-onnx", "same.onnx", "--stage", "imported", "-o", "module.mlir"]) == 0
    assert [item.op_type for item in onnx.load("same.onnx").graph.node] == ["Relu", "Relu"]
    assert Path("module.mlir").exists()
    assert main(["model.onnx", "--to-onnx", "-"]) == 1
    assert main(["model.onnx", "--to-onnx", "model.onnx"]) == 1
