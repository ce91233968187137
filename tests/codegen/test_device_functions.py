"""Launch programs on the CPU equal the interpreter, and the machine code of the CPU to the bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx
import pytest
from cut import however_small
from execute import Case, assert_same, compile_module, module_of, sample
from launched import launched, launching
from models import GraphBuilder, layer_norm, lstm_network, random_inputs
from onnx import TensorProto
from quantized_models import mobile, quantized_model
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from glow_mlir.backends.interface import backend_of
from glow_mlir.codegen.instruction_functions import kernel_of
from glow_mlir.codegen.selection.kernel import operands_of
from glow_mlir.codegen.selection.partitions import partitions_of
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import operations
from glow_mlir.runtime.launches import Launch, Repeat

_ = launching
pytestmark = pytest.mark.usefixtures("launching")


def classifier() -> onnx.ModelProto:
    """A convolution with a ReLU, a maximum of windows, a product and a softmax."""
    g = GraphBuilder(0)
    filters = g.weight(g.rng.standard_normal((8, 3, 3, 3)).astype(np.float32))
    x = g.node("Relu", g.node("Conv", "input", filters, pads=[1] * 4))
    x = g.node("Flatten", g.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]))
    x = g.node("Gemm", x, g.weight(g.rng.standard_normal((10, 512)).astype(np.float32) / 16), transB=1)
    result = g.node("Softmax", x)
    return g.model({"input": (TensorProto.FLOAT, [1, 3, 16, 16])}, {result: [1, 10]}, opset=13)


def normalized() -> onnx.ModelProto:
    """A layer normalization."""
    g = GraphBuilder(1)
    return g.model({"input": (TensorProto.FLOAT, [2, 8, 32])}, {layer_norm(g, "input", 32): [2, 8, 32]}, opset=17)


MODELS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "classifier": classifier,
    "normalized": normalized,
    "mobile": mobile,
    "codes": lambda: quantized_model("residual", "qdq-u8"),
    "encoder of codes": lambda: quantized_model("encoder", "qdq-i8"),
    "recurrent": lambda: lstm_network(layers=1, steps=5, width=12, hidden=20),
}


def imported(model: onnx.ModelProto) -> tuple[ModuleOp, dict[str, np.ndarray]]:
    """A model as a module, and inputs for it."""
    return import_model(model), random_inputs(model, np.random.default_rng(0))


@pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, is_cut: bool) -> None:
    module, inputs = imported(MODELS[name]())
    meant, expected = run_function(module.clone(), inputs), compile_module(module.clone()).run(inputs)
    if is_cut:
        with however_small():
            device = launched(module)
    else:
        device = launched(module, threads=1)
    assert any(launch.parts > 1 for launch, _ in device.program.launches()) == is_cut
    for seed in range(2):
        found = device.run(inputs, seed)
        assert_same(expected, found, 0)
        if "codes" not in name:  # A code may be rounded another way.
            assert_same(meant, found, 2e-5)


def test_equal_instructions_share_a_function() -> None:
    cases = [Case(MatMulOp, sample((8, 16), seed=seed), sample((16, 24), seed=seed)) for seed in range(3)]
    module, inputs = module_of(*cases)
    expected = run_function(module.clone(), inputs)
    device = launched(module, threads=1)
    assert len(list(device.program.launches())) > len(device.program.functions())
    assert_same(expected, device.run(inputs))


LOOP = """
glow_high.placeholder @x : tensor<7x32xf32> {input}
glow_high.placeholder @y : tensor<7x32xf32> {output}
glow_low.func @main(@x, @y) {
  %x = glow_low.weight @x : memref<7x32xf32>
  %y = glow_low.weight @y {mutable} : memref<7x32xf32>
  glow_low.loop %i = 7 {
    %a = glow_low.window %x[%i by 32] : memref<7x32xf32> to memref<32xf32>
    %b = glow_low.window %y[%i by 32] : memref<7x32xf32> to memref<32xf32>
    glow_low.copy @out %b, @in %a
  }
}
"""


def of_text(text: str) -> ModuleOp:
    """A module in front of selection."""
    return Parser(new_context(), f'builtin.module attributes {{glow.stage = "stacked"}} {{{text}}}').parse_module()


def test_loops_repeat_launches() -> None:
    inputs = {"x": sample((7, 32))}
    module = of_text(LOOP)
    expected = run_function(module.clone(), inputs)
    device = launched(module)
    (step,) = device.program.steps
    assert isinstance(step, Repeat)
    assert step.trips == 7
    assert all(isinstance(inner, Launch) for inner in step.body)
    assert_same(expected, device.run(inputs))


def test_what_depends_on_numbers_of_the_device_is_refused() -> None:
    counted = LOOP.replace("= 7 {", "= @in %n {").replace(
        "  glow_low.loop",
        "  %n = glow_low.weight @n : memref<i64>\n  glow_low.fill @out %y {value = 0.0}\n  glow_low.loop",
    )
    counted = counted.replace("@main(@x", "@main(@n, @x")
    module = of_text("glow_high.placeholder @n : tensor<i64> {input}" + counted)
    with pytest.raises(
        ModelError, match="'launched' cannot run loop: the number of its trips is known only on the device"
    ):
        launched(module)


def test_parts_that_run_at_once_have_scratch_of_their_own() -> None:
    """Winograd's transformed images are of one worker; here there are more parts than threads."""
    operands = sample((3, 28, 28, 32)), sample((32, 3, 3, 32))
    module, inputs = module_of(Case(ConvOp, *operands, constants=[1], strides=(1, 1), dilations=(1, 1)))
    expected = compile_module(module.clone()).run(inputs)
    with however_small():
        device = launched(module, threads=2)
    (function,) = low_functions(module)
    found = [op for op in operations(function) if isinstance(op, Instruction) and partitions_of(op)]
    private = {op: kernel_of(op, backend_of(function)).private(op) for op in found}
    assert private
    for op, numbers in private.items():
        scratch = operands_of(op, "scratch")
        assert {shape_of(scratch[number])[0] for number in numbers} == {max(partitions_of(op).values())}
    assert max(launch.parts for launch, _ in device.program.launches()) > 2
    assert_same(expected, device.run(inputs), 0)
