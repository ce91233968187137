"""Modules built without ONNX, as another front end does: run-time sizes, folded constants, errors of nodes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from checkout import run_python
from xdsl.dialects.builtin import ModuleOp, TensorType, f32, i64
from xdsl.ir import Attribute

from glow_mlir import InferenceSession
from glow_mlir.dialects.glow_high.activations import ReluOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp
from glow_mlir.dialects.glow_high.selection import NonZeroOp
from glow_mlir.dialects.glow_high.sizes import ShapeOp
from glow_mlir.dialects.shapes import shape_of, sizes_of, tensor
from glow_mlir.errors import InputValuesError, ModelError, UnsupportedOperatorsError
from glow_mlir.frontends.builder.inputs import input_shapes
from glow_mlir.frontends.builder.module_builder import ModuleBuilder, named_location
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.frontends.builder.slices import cut, iota
from glow_mlir.ir.locations import location_name

WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3) - 5
BIAS = np.array([0.5, -0.5, 1.0], np.float32)


def batch(**sizes: tuple[int | str, ...]) -> dict[str, TensorType[Attribute]]:
    """Types of inputs of f32 whose free dimension `N` is between 1 and 8."""
    return {name: tensor(shape, f32) for name, shape in input_shapes(sizes, {"N": (1, 8)}, ()).items()}


def node(builder: ModuleBuilder, kind: str, name: str) -> NodeBuilder:
    return NodeBuilder(builder, kind, name, named_location(name), [f"{name}_result"])


def perceptron() -> ModuleOp:
    """relu(x · w + b) for any number of rows, each of which comes as two rows of two."""
    builder = ModuleBuilder({"y"})
    x = builder.add_inputs(batch(x=("N", 2, 2)), {})["x"]
    view = node(builder, "view", "flatten")
    # Rows are known at run time only, columns are a product of constants.
    rows = view.required_sizes(view.emit(ShapeOp, sizes=sizes_of(x)[:1]), "the rows")
    factors = view.constant(np.array(2)), view.constant(np.array(2))
    columns = view.required_integers(view.emit(MulOp, *factors), "the columns")
    flat = view.emit(ReshapeOp, x, shape=(*rows, *columns))
    linear = node(builder, "linear", "hidden")
    product = linear.emit(FullyConnectedOp, flat, linear.constant(WEIGHTS, "w"), linear.constant(BIAS, "b"))
    builder.add_output("y", node(builder, "relu", "activation").emit(ReluOp, product))
    builder.problems.raise_all()
    return builder.finish("main")


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_a_module_with_a_run_time_size_runs(backend: str) -> None:
    session = InferenceSession(perceptron(), backend=backend, cache=False)
    for count in (1, 3, 8):
        x = np.linspace(-1, 1, count * 4, dtype=np.float32).reshape(count, 2, 2)
        expected = np.maximum(x.reshape(count, 4) @ WEIGHTS + BIAS, 0)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, rtol=1e-5, atol=1e-6)


def test_operators_have_the_locations_and_names_of_their_nodes() -> None:
    module = perceptron()
    (relu,) = (op for op in module.walk() if isinstance(op, ReluOp))
    assert location_name(relu.location) == relu.result.name_hint == "activation"
    producer = relu.input.owner
    assert isinstance(producer, FullyConnectedOp)
    assert location_name(producer.location) == "hidden"
    assert "glow_high.constant @w : tensor<4x3xf32>" in str(module)


def test_a_size_that_data_decides_is_bound_to_a_symbol() -> None:
    builder = ModuleBuilder({"places"})
    x = builder.add_inputs({"x": tensor((6,), f32)}, {})["x"]
    nonzero = node(builder, "nonzero", "nonzero")
    found, count = nonzero.emit_all(NonZeroOp, x)
    number = nonzero.bind_symbol(count, shape_of(found)[1])
    assert nonzero.once(x, lambda: iota(nonzero, number)) is nonzero.once(x, lambda: iota(nonzero, number))
    builder.add_output("places", cut(nonzero, found, {1: (0, number)}))
    session = InferenceSession(builder.finish("main"), cache=False)
    (places,) = session.run(None, {"x": np.array([0, 1, 0, 0, 2, 3], np.float32)})
    np.testing.assert_array_equal(places, [[1, 4, 5]])


def test_an_input_with_a_value_is_a_constant() -> None:
    builder = ModuleBuilder({"y"})
    given: Mapping[str, np.ndarray] = {"shape": np.array([3, 2])}
    inputs = builder.add_inputs({"x": tensor((6,), f32), "shape": tensor((2,), i64)}, given)
    view = node(builder, "view", "view")
    shape = view.required_integers(inputs["shape"], "the shape")
    builder.add_output("y", view.emit(ReshapeOp, inputs["x"], shape=shape))
    session = InferenceSession(builder.finish("main"), cache=False)
    assert [value.name for value in session.get_inputs()] == ["x"]
    assert session.run(None, {"x": np.zeros(6, np.float32)})[0].shape == (3, 2)


def test_operands_that_do_not_fit_name_their_node() -> None:
    builder = ModuleBuilder({"y"})
    inputs = builder.add_inputs(batch(x=("N", 4), z=("N", 3)), {})
    with pytest.raises(ModelError, match=r"^node 'sum': add: .*4.*3"), builder.node_errors("add", "sum"):
        node(builder, "add", "sum").emit(AddOp, inputs["x"], inputs["z"])


def test_a_value_that_is_missing_names_node_and_input() -> None:
    builder = ModuleBuilder({"y"})
    inputs = builder.add_inputs({"x": tensor((6,), f32), "shape": tensor((2,), i64)}, {})
    with builder.node_errors("view", "reshaped"):
        view = node(builder, "view", "reshaped")
        view.required_integers(inputs["shape"], "the shape")
    with pytest.raises(InputValuesError) as caught:
        builder.problems.raise_all()
    expected = "node 'reshaped': the shape of view depends on an input of the model (hint: give the value of 'shape')"
    assert str(caught.value) == expected


def test_problems_of_all_nodes_are_raised_at_once() -> None:
    builder = ModuleBuilder({"y"})
    for name in ("first", "second"):
        with builder.node_errors("fft", name):
            raise node(builder, "fft", name).unsupported("complex numbers are not supported")
    mark = builder.problems.mark()
    builder.problems.unknown.append(("tried", "another way"))
    builder.problems.forget_since(mark)
    with pytest.raises(UnsupportedOperatorsError) as caught:
        builder.problems.raise_all()
    assert [name for _, name in caught.value.nodes] == ["first", "second"]


def test_building_imports_no_onnx() -> None:
    names = "constant_pool module_builder node_builder slices"
    modules = "".join(f"import glow_mlir.frontends.builder.{name}\n" for name in names.split())
    run_python(f"{modules}import sys\nassert 'onnx' not in sys.modules")
