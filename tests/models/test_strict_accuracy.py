"""With the accuracy strict, each step of arithmetic rounds where the model says it: the bits are those of numpy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glow_mlir import InferenceSession

Build = Callable[["Codes"], str]

EVERY_CODE = np.arange(256).astype(np.uint8)


class Codes:
    """A model of the codes `a` and `b`, each of 256 values, and what numpy makes of them, step by step."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.values = {"a": EVERY_CODE.reshape(256, 1), "b": EVERY_CODE.reshape(1, 256)}

    def constant(self, value: float | np.ndarray, dtype: type = np.float32) -> str:
        """A weight of the model."""
        name = f"c{len(self.weights)}"
        self.values[name] = np.array(value, dtype)
        self.weights.append(numpy_helper.from_array(self.values[name], name))
        return name

    def node(self, kind: str, *operands: str, value: np.ndarray) -> str:
        """A node whose result numpy has computed."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, operands, [name]))
        self.values[name] = value
        return name

    def of(self, kind: str, *operands: str) -> str:
        """Arithmetic, rounded once."""
        return self.node(kind, *operands, value=ARITHMETIC[kind](*(self.values[name] for name in operands)))

    def _parameters(self) -> tuple[str, str]:
        # Tenths, whose ratios are near halves: codes are on ties, and the last bit decides.
        scale = self.rng.choice([0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.6])
        return self.constant(scale), self.constant(int(self.rng.integers(1, 200)), np.uint8)

    def numbers(self, codes: str) -> str:
        """What codes stand for."""
        scale, zero = self._parameters()
        shifted = self.values[codes].astype(np.int32) - self.values[zero].astype(np.int32)
        return self.node("DequantizeLinear", codes, scale, zero, value=shifted.astype(np.float32) * self.values[scale])

    def codes(self, value: str) -> str:
        """The codes of numbers."""
        scale, zero = self._parameters()
        found = np.rint(self.values[value] / self.values[scale]) + self.values[zero]
        return self.node("QuantizeLinear", value, scale, zero, value=np.clip(found, 0, 255).astype(np.uint8))

    def model(self, result: str) -> onnx.ModelProto:
        """The whole model."""
        inputs = [helper.make_tensor_value_info(name, TensorProto.UINT8, self.values[name].shape) for name in "ab"]
        output = helper.make_tensor_value_info(result, TensorProto.UINT8, self.values[result].shape)
        graph = helper.make_graph(self.nodes, "codes", inputs, [output], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


ARITHMETIC: dict[str, Callable[..., np.ndarray]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Max": np.maximum,
    "Relu": partial(np.maximum, np.float32(0)),
    "Clip": np.clip,
}

STEPS: dict[str, Build] = {
    "another scale": lambda g: g.numbers("a"),
    "an addend": lambda g: g.of("Add", g.numbers("a"), g.constant(0.7)),
    "a factor": lambda g: g.of("Mul", g.numbers("a"), g.constant(1.5)),
    "a divisor": lambda g: g.of("Div", g.numbers("a"), g.constant(0.3)),
    "a chain": lambda g: g.of(
        "Div", g.of("Sub", g.of("Mul", g.numbers("a"), g.constant(3)), g.constant(0.7)), g.constant(0.3)
    ),
    "a ReLU": lambda g: g.of("Relu", g.of("Add", g.numbers("a"), g.constant(0.7))),
    "a clip": lambda g: g.of("Clip", g.numbers("a"), g.constant(-0.3), g.constant(0.7)),
    "codes between": lambda g: g.numbers(g.codes(g.numbers("a"))),
    "a sum of codes": lambda g: g.of("Add", g.numbers("a"), g.numbers("b")),
    "a difference of codes": lambda g: g.of("Sub", g.numbers("a"), g.numbers("b")),
    "a product of codes": lambda g: g.of("Mul", g.numbers("a"), g.numbers("b")),
    "the larger code": lambda g: g.of("Max", g.numbers("a"), g.numbers("b")),
    "a product and a sum": lambda g: g.of("Add", g.of("Mul", g.numbers("a"), g.numbers("b")), g.numbers("a")),
}


@pytest.mark.parametrize("steps", STEPS)
def test_codes_are_those_of_the_models_own_quantizations(steps: str) -> None:
    for seed in range(4):
        g = Codes(seed)
        result = g.codes(STEPS[steps](g))
        session = InferenceSession(g.model(result), accuracy="strict", cache=False)
        (codes,) = session.run(None, {name: g.values[name] for name in "ab"})
        np.testing.assert_array_equal(codes, g.values[result], err_msg=f"seed {seed}")


def _floats(*steps: tuple[str, float | np.ndarray], shape: list[int]) -> onnx.ModelProto:
    """A model of operators with constants, one after the other."""
    nodes, weights, value = list[onnx.NodeProto](), list[onnx.TensorProto](), "x"
    for number, (kind, constant) in enumerate(steps):
        weights.append(numpy_helper.from_array(np.array(constant, np.float32), f"c{number}"))
        nodes.append(helper.make_node(kind, [value, f"c{number}"], [f"v{number}"]))
        value = f"v{number}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "floats", [x], [onnx.ValueInfoProto(name=value)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


OVERFLOWS: dict[str, tuple[tuple[str, float | np.ndarray], ...]] = {
    "products": (("Mul", 1e30), ("Mul", 1e-30)),
    "quotients": (("Div", 1e-30), ("Mul", 1e-30)),
    "behind a product of matrices": (("MatMul", np.full((4, 4), 1e30)), ("Mul", 1e-30)),
    "in front of a product of matrices": (("Mul", 1e30), ("MatMul", np.full((4, 4), 1e-30))),
}


@pytest.mark.parametrize("steps", OVERFLOWS)
def test_overflows_stay(steps: str) -> None:
    model = _floats(*OVERFLOWS[steps], shape=[4, 4])
    (result,) = InferenceSession(model, accuracy="strict", cache=False).run(None, {"x": np.full((4, 4), 1e10, "f4")})
    assert np.isposinf(result).all()


def test_each_step_of_a_chain_rounds() -> None:
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    steps = [("Mul", 3.1), ("Add", 0.7), ("Div", 0.3), ("Sub", 1.9), ("Mul", 7.7)]
    model = _floats(*steps, shape=[64, 64])
    (result,) = InferenceSession(model, accuracy="strict", cache=False).run(None, {"x": x})
    for kind, constant in steps:
        x = ARITHMETIC[kind](x, np.float32(constant))
    np.testing.assert_array_equal(result, x)


def test_the_maximum_of_a_number_and_nothing_of_it_is_no_leaky_relu() -> None:
    nodes = [helper.make_node("Mul", ["x", "c"], ["nothing"]), helper.make_node("Max", ["x", "nothing"], ["y"])]
    weights = [numpy_helper.from_array(np.array(0, np.float32), "c")]
    x = np.array([np.inf, -np.inf, 3, -3, np.nan], np.float32)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)]
    graph = helper.make_graph(nodes, "maximum", inputs, [onnx.ValueInfoProto(name="y")], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    (result,) = InferenceSession(model, cache=False).run(None, {"x": x})
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(result, np.maximum(x, x * np.float32(0)))


def _layers(dtype: str) -> onnx.ModelProto:
    """Convolutions of 5x5 and 3x3, and a product of matrices, all of which have many terms."""
    rng = np.random.default_rng(0)
    nodes, weights, value = list[onnx.NodeProto](), list[onnx.TensorProto](), "x"
    for number, shape in enumerate([(64, 16, 5, 5), (32, 64, 3, 3), (32, 32, 3, 3)]):
        filters = (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) / 2)).astype(np.float32)
        weights.append(numpy_helper.from_array(filters.astype(dtype), f"w{number}"))
        nodes.append(helper.make_node("Conv", [value, f"w{number}"], [f"c{number}"], pads=[shape[2] // 2] * 4))
        nodes.append(helper.make_node("Relu", [f"c{number}"], [f"r{number}"]))
        value = f"r{number}"
    matrix = rng.standard_normal((24, 48)).astype(np.float32).astype(dtype)
    weights.append(numpy_helper.from_array(matrix, "matrix"))
    nodes.append(helper.make_node("MatMul", [value, "matrix"], ["y"]))
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x = helper.make_tensor_value_info("x", kind, [1, 16, 24, 24])
    graph = helper.make_graph(nodes, "layers", [x], [onnx.ValueInfoProto(name="y")], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def test_sums_err_less_than_by_default() -> None:
    x = np.random.default_rng(1).standard_normal((1, 16, 24, 24)).astype(np.float32)
    (exact,) = InferenceSession(_layers("float64"), cache=False).run(None, {"x": x.astype(np.float64)})
    errors = [
        np.sqrt(
            np.mean(
                (InferenceSession(_layers("float32"), accuracy=how, cache=False).run(None, {"x": x})[0] - exact) ** 2
            )
        )
        for how in ("strict", "default")
    ]
    size = np.sqrt(np.mean(exact**2))
    assert errors[0] < 2.5e-7 * size
    assert errors[0] < 0.8 * errors[1]
