"""What the backend for TOSA writes of each operator, and what it refuses; Arm's programs are not needed for that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT
from execute import Case, module_of
from onnx import TensorProto, helper, numpy_helper
from operator_cases import CASES
from package_sites import TOSA_PACKAGE, install_example, output, run
from quantized_models import NETWORKS
from tosa_backend.backend import TosaBackend
from tosa_backend.builder import Content
from tosa_backend.rules import rules
from tosa_backend.tools import FOLDER
from tosa_cases import NAME, compiled, offer_tosa, operations
from tosa_forms import FORMS, whole
from xdsl.dialects.builtin import i8

from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.quantization import IntegerRescaleOp
from glow_mlir.driver.compiler import Compilation
from glow_mlir.errors import OptionError, UnsupportedOperatorsError
from glow_mlir.frontends.onnx.importer import import_model

DIGITS = ROOT / "examples" / "digits.onnx"


@pytest.fixture(autouse=True)
def backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """The backend, as an installed package offers it."""
    offer_tosa(monkeypatch)


WRITTEN: dict[str, str] = {
    "abs": "abs",
    "ceil": "ceil",
    "cos": "cos",
    "erf": "erf",
    "exp": "exp",
    "expm1": "mul tanh exp add mul",
    "floor": "floor",
    "is_nan": "equal logical_not",
    "neg": "negate",
    "round": "cast cast abs greater select",
    "sign": "greater equal select select greater select",
    "sin": "sin",
    "tan": "sin cos reciprocal mul",
    "tanh": "tanh",
    "hard_swish": "mul add maximum minimum mul",
    "mish": "maximum abs negate exp add sub sub reciprocal mul log equal sub select add tanh mul",
    "relu": "maximum",
    "sigmoid": "sigmoid",
    "softplus": "maximum abs negate exp add sub sub reciprocal mul log equal sub select add",
    "softsign": "abs add reciprocal mul",
    "celu": "reciprocal mul mul tanh exp add mul mul maximum minimum add",
    "elu": "greater mul tanh exp add mul mul select",
    "gelu": "mul mul mul add mul mul tanh add mul",
    "hard_sigmoid": "mul add maximum minimum",
    "is_inf": "equal",
    "leaky_relu": "greater mul select",
    "selu": "greater mul tanh exp add mul mul select mul",
    "shrink": "greater add greater sub select select",
    "swish": "mul negate exp add reciprocal mul",
    "thresholded_relu": "greater select",
    "add": "add",
    "sub": "sub",
    "div": "reciprocal mul",
    "max": "maximum",
    "min": "minimum",
    "equal": "equal",
    "greater": "greater",
    "greater_or_equal": "greater_equal",
    "less": "greater",
    "less_or_equal": "greater_equal",
    "prelu": "greater mul select",
    "log": "log",
    "log1p": "add sub sub reciprocal mul log equal sub select",
    "sqrt": "pow",
    "reciprocal": "reciprocal",
    "mul": "reshape mul",
    "pow": "pow",
    "and": "logical_and",
    "or": "logical_or",
    "xor": "logical_xor",
    "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor",
    "bitwise_not": "bitwise_xor",
    "not": "logical_xor",
    "cast": "greater ceil floor select cast",
    "clip": "reshape reshape maximum minimum",
    "where": "reshape select",
    "quantize": "reciprocal mul cast cast abs greater select cast add greater ceil floor select cast",
    "dequantize": "identity",
    "storage_cast": "identity",
    "lookup": "table",
    "concat": "concat",
    "expand": "tile",
    "pad": "gather reshape gather reshape",
    "reshape": "reshape",
    "slice": "reverse slice reshape slice reshape",
    "tile": "tile",
    "transpose": "transpose",
    "gather": "reshape greater add select reshape gather reshape reshape",
    "splat": "maximum",
    "reduce_l1": "abs reduce_sum",
    "reduce_l2": "mul reduce_sum pow",
    "reduce_max": "reduce_max",
    "reduce_mean": "reduce_sum mul",
    "reduce_min": "reduce_min",
    "reduce_prod": "reduce_product",
    "reduce_sum": "reduce_sum",
    "reduce_sum_square": "mul reduce_sum",
    "reduce_log_sum": "reduce_sum reduce_sum log reshape",
    "reduce_log_sum_exp": ("reduce_max reduce_max abs equal select sub exp reduce_sum reduce_sum log add reshape"),
    "arg_max": "argmax reshape",
    "arg_min": "negate argmax",
    "softmax": "reduce_max sub exp reduce_sum reciprocal mul",
    "log_softmax": "reduce_max sub exp reduce_sum log sub",
    "hardmax": "argmax reshape equal cast cast",
    "layer_normalization": ("reduce_sum mul sub mul reduce_sum mul add pow reciprocal mul mul reshape reshape mul add"),
    "rms_normalization": "mul reduce_sum mul add pow reciprocal mul mul reshape mul",
    "instance_normalization": (
        "reduce_sum reduce_sum mul sub mul reduce_sum reduce_sum mul add pow reciprocal mul reshape mul reshape mul add"
    ),
    "group_normalization": (
        "reshape reduce_sum reduce_sum reduce_sum mul sub mul reduce_sum reduce_sum reduce_sum mul add "
        "pow reciprocal mul reshape mul reshape mul add reshape"
    ),
    "batch_normalization": "mul add",
    "lrn": "mul reshape reshape pad avg_pool2d reshape reshape mul add pow pow mul reciprocal mul",
    "matmul": "reshape conv2d reshape",
    "fully_connected": "reshape conv2d reshape",
    "einsum": "matmul",
    "conv": "conv2d",
    "conv_transpose": "transpose_conv2d",
    "attention": (
        "transpose reshape reshape matmul reshape reduce_max sub exp reduce_sum reciprocal mul reshape "
        "reshape matmul reshape"
    ),
    "dft": "slice reshape reshape conv2d reshape reshape",
    "blockwise_matmul": "reshape conv2d reshape",
    "blockwise_matmul_integer": (
        "cast reshape tile reshape mul reshape conv2d reshape "
        "cast reshape reduce_sum reshape sub mul cast mul reshape conv2d reshape add"
    ),
    "predicate": "identity",
    "predicated_matmul": "reshape tile matmul",
    "grouped_matmul": (
        "reshape greater add select gather reshape reshape transpose matmul reshape reshape greater add select gather "
        "reshape add"
    ),
    "avg_pool": "avg_pool2d",
    "max_pool": "max_pool2d",
    "sum_pool": "depthwise_conv2d",
    "resize": (
        "reshape gather reshape mul reshape gather reshape mul add reshape gather reshape mul reshape "
        "gather reshape mul add"
    ),
}
"""Operator → the operations of TOSA that its case of `operator_cases` becomes, in order."""


@pytest.mark.parametrize("name", CASES)
def test_what_is_written_of_an_operator(name: str) -> None:
    module = CASES[name].module(False)
    if name in WRITTEN:
        assert operations(compiled(module)) == WRITTEN[name].split()
        return
    with pytest.raises(UnsupportedOperatorsError, match="not supported by the backend 'tosa'"):
        compiled(module)


@pytest.mark.parametrize("name", FORMS)
def test_what_is_written_of_a_form(name: str) -> None:
    written, case = FORMS[name]
    module, _ = module_of(case)
    assert operations(compiled(module)) == written.split()


def test_each_operator_that_is_executed_has_one_rule() -> None:
    families = {kind for kind in rules() if any(other is not kind and issubclass(other, kind) for other in rules())}
    assert families == {Elementwise}
    assert len(rules()) > 25


TEXT = """
"builtin.module"() ({
"func.func"() <{sym_name = "main", function_type = (tensor<1x7x7x5xi8>) -> tensor<1x7x7x4xi32>}> ({
^bb0(%0: tensor<1x7x7x5xi8>):
%1 = "tosa.const"() <{values = dense_resource<WEIGHTS> : tensor<4x3x3x5xi8>}> : () -> tensor<4x3x3x5xi8>
%2 = "tosa.const"() <{values = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
%3 = "tosa.const"() <{values = dense<-128> : tensor<1xi8>}> : () -> tensor<1xi8>
%4 = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
%5 = "tosa.conv2d"(%0, %1, %2, %3, %4) <{pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>, \
dilation = array<i64: 1, 1>, acc_type = i32}> : (tensor<1x7x7x5xi8>, tensor<4x3x3x5xi8>, tensor<1xi32>, \
tensor<1xi8>, tensor<1xi8>) -> tensor<1x7x7x4xi32>
"func.return"(%5) : (tensor<1x7x7x4xi32>) -> ()
}) : () -> ()
}) : () -> ()
{-# dialect_resources: { builtin: {
WEIGHTS: "0x01000000BYTES"
} } #-}
"""
"""A convolution of integers without a sign, whose zero is held as -128."""


def test_text_of_a_program() -> None:
    _, case = FORMS["sums of ui8 and i8"]
    module, _ = module_of(case)
    weights = case.operands[1]
    assert isinstance(weights, np.ndarray)
    wanted = TEXT.replace("\\\n", "").replace("WEIGHTS", Content.of(weights)).replace("BYTES", weights.tobytes().hex())
    found = [line.strip() for line in compiled(module).text.strip().splitlines()]
    assert found == wanted.strip().splitlines()


@pytest.mark.parametrize("name", ["residual", "mobile"])
def test_xdsl_verifies_a_program(name: str) -> None:
    compiled(import_model(NETWORKS[name]())).program.verify()


def test_equal_constants_are_one() -> None:
    program = compiled(import_model(NETWORKS["residual"]())).program
    constants = [op.properties["values"] for op in program.walk() if op.name.startswith("tosa.const")]
    assert len(set(constants)) == len(constants)


REFUSED = {
    "f64": Case(AddOp, np.ones((2, 3)), np.ones((2, 3))),
    "ui16": Case(AddOp, np.ones((2, 3), np.uint16), np.ones((2, 3), np.uint16)),
    "i8, which wraps": Case(AddOp, np.ones((2, 3), np.int8), np.ones((2, 3), np.int8)),
    "seven axes": Case(AddOp, np.ones((1,) * 7, np.float32), np.ones((1,) * 7, np.float32)),
    "a multiplier of a call": Case(IntegerRescaleOp, whole(2, 3, dtype="int32"), *[np.ones(3, np.int32)] * 2, to=i8),
}
"""What TOSA has not → the operator."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_tosa_has_not_is_one_error(name: str) -> None:
    module, _ = module_of(REFUSED[name])
    with pytest.raises(UnsupportedOperatorsError, match="1 operator is not supported by the backend 'tosa'"):
        compiled(module)


def test_codes_are_rescaled_by_integers_alone() -> None:
    module, _ = module_of(Case(AddOp, np.ones(2, np.float32), np.ones(2, np.float32)))
    with pytest.raises(OptionError, match=r"by integers alone \(hint: requantization=integer\)"):
        Compilation(module, NAME, "host,requantization=float").run()


def test_pipeline_that_leads_elsewhere_is_one_error() -> None:
    module, _ = module_of(Case(AddOp, np.ones(2, np.float32), np.ones(2, np.float32)))
    with pytest.raises(OptionError, match="does not end with the stages 'lowered' and 'tosa'"):
        Compilation(module, NAME, pipeline=TosaBackend().pipeline().until("optimized")).artifact()


def test_borders_of_floats_are_the_hosts() -> None:
    values = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4)
    node = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["codes"]),
        helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["y"]),
    ]
    constants = [
        numpy_helper.from_array(np.asarray(0.01, np.float32), "scale"),
        numpy_helper.from_array(np.asarray(7, np.uint8), "zero"),
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, values.shape) for name in "xy"]
    graph = helper.make_graph(node, "borders", ports[:1], ports[1:], constants)
    function = compiled(
        import_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10))
    )
    assert [str(type_) for type_ in function.program.function_type.inputs] == ["tensor<2x3x4xi8>"]
    assert [str(type_) for type_ in function.program.function_type.outputs] == ["tensor<2x3x4xi8>"]


def test_programs_that_are_missing_are_one_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    function = compiled(module_of(FORMS["nearest"][1])[0])
    hint = rf"\(hint: pip install tosa-tools in an environment of its own, and set {FOLDER} to its bin folder\)"
    with pytest.raises(OptionError, match=rf"there is no tosa-opt in {tmp_path} {hint}"):
        function.write(tmp_path / "program.tosa")


def test_tools_print_programs_of_an_installed_package(tmp_path: Path) -> None:
    install_example(tmp_path, TOSA_PACKAGE)
    command = ("-m", "glow_mlir.tools.glow_import", DIGITS, "--bind", "N=1", "--backend", NAME)
    text = output(tmp_path, *command, "--stage", "tosa", "-o", "-")
    assert text.count('"tosa.conv2d"') == 3
    assert "glow_high" not in text
    assert "\ntosa\n" in output(tmp_path, "-m", "glow_mlir.tools.glow_opt", "--list-pipelines")
    finished = run(tmp_path, "-m", "tosa_backend", "no-such.onnx")
    assert finished.returncode == 1
    assert finished.stderr.startswith("error: no-such.onnx: ")
