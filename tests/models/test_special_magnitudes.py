"""Numbers of every magnitude, and those that are none, through chains of operators and small models on the CPU."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glow_mlir.api.onnxruntime.inference_session import InferenceSession

UNARY = """Abs Ceil Cos Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Log Mish Neg Reciprocal Relu Round Selu
    Sigmoid Sign Sin Softplus Softsign Sqrt Tan Tanh""".split()
BINARY = "Add Div Max Min Mod Mul Pow Sub".split()
ATTRIBUTES: Mapping[str, dict[str, Any]] = {"Mod": {"fmod": 1}}
ACCURACIES = ["default", "strict"]
LARGEST = float(np.finfo(np.float32).max)
LENGTH = 8


def numbers() -> np.ndarray:
    """All decades, denormal ones too, both signs, what is no number, and random bits."""
    random = np.random.default_rng(0)
    decades = np.array([m * 10.0**e for e in range(-45, 38) for m in (1, 3)] + [3e38, LARGEST])
    special = np.array([0.0, np.inf, np.nan, 1.0, 0.5, 88.7, 103.9, 2.0**22, 2.0**31])
    patterns = random.integers(0, 2**32, 512, dtype=np.uint64).astype(np.uint32).view(np.float32)
    return np.concatenate([decades, -decades, special, -special, patterns]).astype(np.float32)


def model_of(nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], shape: Sequence[int], **constants: Any) -> Any:
    """A model with the input `x`."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    kept = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(list(nodes), "g", [x], [onnx.ValueInfoProto(name=name) for name in outputs], kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def node(kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, list(inputs), [output], **ATTRIBUTES.get(kind, {}), **attributes)


@functools.cache
def alone(kind: str, operands: int) -> InferenceSession:
    """One operator in the interpreter: the rows of `x` are its operands."""
    names = ["a", "b"][:operands]
    split = helper.make_node("Split", ["x"], names, axis=0, num_outputs=operands)
    return InferenceSession(
        model_of([split, node(kind, names, "y")], ["y"], [operands, numbers().size]), backend="interpreter"
    )


def assert_close(actual: np.ndarray, wanted: np.ndarray, operands: Sequence[np.ndarray], message: str) -> None:
    """The same numbers up to rounding, that of an operand included; the last one before infinity may be missed."""
    nan = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(actual), nan, message)
    clipped, expected = (np.clip(array[~nan].astype(np.float64), -LARGEST, LARGEST) for array in (actual, wanted))
    # A power of NaN may be a number.
    scale = np.minimum(np.max([np.nan_to_num(np.abs(operand[~nan])) for operand in operands], axis=0), 16.0)
    limit = 1e-5 * np.abs(expected) + 1e-6 * scale + 1e-44
    wrong = ~(np.abs(clipped - expected) <= limit)
    given = [operand[~nan][wrong][:3] for operand in operands]
    assert not wrong.any(), (message, given, clipped[wrong][:3], expected[wrong][:3])


@pytest.mark.parametrize("seed", range(8))
def test_chains(seed: int) -> None:
    """Each operator of a chain that is one loop, against the interpreter on what the chain itself gave it."""
    random = np.random.default_rng(seed)
    values, nodes, steps = ["x"], list[onnx.NodeProto](), list[tuple[str, list[str], str]]()
    for number in range(LENGTH):
        kinds, count = (UNARY, 1) if random.random() < 0.7 else (BINARY, 2)
        kind, output = str(random.choice(kinds)), f"v{number}"
        inputs = [values[-1], *random.choice(values, count - 1)]
        nodes.append(node(kind, inputs, output))
        steps.append((kind, [str(name) for name in inputs], output))
        values.append(output)
    x = numbers()
    session = InferenceSession(model_of(nodes, values[1:], [1, x.size]), accuracy=ACCURACIES[seed % 2], cache=False)
    found = dict(zip(values, [x, *(array[0] for array in session.run(None, {"x": x[None]}))], strict=True))
    for kind, inputs, output in steps:
        operands = [found[name] for name in inputs]
        (wanted,) = alone(kind, len(operands)).run(None, {"x": np.stack(operands)})
        assert_close(found[output], wanted[0], operands, f"{kind} of {inputs}")


def small_models() -> dict[str, tuple[Any, float]]:
    """Models by name, and the magnitude of inputs up to which none of their sums overflows."""
    random = np.random.default_rng(0)

    def weights(*shape: int) -> np.ndarray:
        return (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    image, rows = [1, 32, 16, 16], [1, 64, 256]
    pool: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    conv = node("Conv", ["x", "w", "c"], "t", pads=[1, 1, 1, 1])
    return {
        "convolution": (
            model_of([conv, node("Relu", ["t"], "y")], ["y"], image, w=weights(32, 32, 3, 3), c=weights(32)),
            1e35,
        ),
        "product": (model_of([node("MatMul", ["x", "w"], "y")], ["y"], rows, w=weights(256, 256)), 1e35),
        "softmax": (model_of([node("Softmax", ["x"], "y", axis=-1)], ["y"], rows), LARGEST),
        "maximum": (model_of([node("MaxPool", ["x"], "y", **pool)], ["y"], image), LARGEST),
        "average": (model_of([node("AveragePool", ["x"], "y", **pool)], ["y"], image), 1e35),
        "normalization": (
            model_of([node("LayerNormalization", ["x", "s"], "y")], ["y"], rows, s=np.ones(256, np.float32)),
            1e15,
        ),
    }


@pytest.mark.parametrize("accuracy", ACCURACIES)
@pytest.mark.parametrize("name", small_models())
def test_small_models(name: str, accuracy: str) -> None:
    """Outputs are right relative to the largest of them at any magnitude; a NaN that there has to be is there."""
    model, largest = small_models()[name]
    session = InferenceSession(model, accuracy=accuracy, cache=False)
    reference = InferenceSession(model, backend="interpreter")
    shape = session.get_inputs()[0].shape
    base = np.random.default_rng(1).uniform(-1, 1, shape)
    for magnitude in (1e-44, 1e-38, 1e-20, 1.0, 1e3, 1e10, 1e15, 1e30, 1e35, LARGEST):
        if magnitude > largest:
            continue
        x = (base * magnitude).astype(np.float32)
        (found,), (wanted,) = (each.run(None, {"x": x}) for each in (session, reference))
        assert np.isfinite(found).all(), magnitude
        bound = 1e-5 * float(np.abs(wanted).max()) + 1e-42
        np.testing.assert_allclose(found, wanted, rtol=0, atol=bound, err_msg=str(magnitude))
    for special in (np.nan, np.inf, -np.inf):
        x = base.astype(np.float32)
        x.reshape(-1)[::997] = special
        (found,), (wanted,) = (each.run(None, {"x": x}) for each in (session, reference))
        assert np.isnan(found[np.isnan(wanted)]).all()
        if accuracy == "strict":
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
