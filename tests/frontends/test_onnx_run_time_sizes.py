"""Models with bounds of free dimensions: one compilation computes for all sizes, as onnxruntime does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from models import bert_encoder
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp

from glow_mlir import InferenceSession
from glow_mlir.driver.pipelines import Stage
from glow_mlir.errors import InputError, OptionError, UnsupportedError

BOUNDS = {"batch": (1, 4), "length": (1, 16)}


def onnx_model(
    nodes: Sequence[onnx.NodeProto], shape: Sequence[int | str], opset: int = 17, **constants: Any
) -> onnx.ModelProto:
    """A model of one input `x`, whose last node gives `y`."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    weights = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(list(nodes), "graph", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def node(kind: str, operands: str, result: str, **attributes: Any) -> onnx.NodeProto:
    results = result.split()
    return helper.make_node(kind, operands.split(), results, name=f"{kind.lower()}_{results[0]}", **attributes)


TABLE = np.arange(128, dtype=np.float32).reshape(16, 8)

GATES: dict[str, Any] = {
    name: np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    for name, shape in {"w": (2, 20, 8), "r": (2, 20, 5), "b": (2, 40), "v": (1, 15, 10), "u": (1, 15, 5)}.items()
}

MODELS = {
    "shapes computed of shapes": onnx_model(
        [
            node("Shape", "x", "s"),
            node("Gather", "s first", "batch"),
            node("Gather", "s second", "length"),
            node("Unsqueeze", "batch zero", "b"),
            node("Unsqueeze", "length zero", "l"),
            node("Concat", "b l two four", "split", axis=0),
            node("Reshape", "x split", "heads"),
            node("Transpose", "heads", "turned", perm=[0, 2, 1, 3]),
            node("Transpose", "turned", "back", perm=[0, 2, 1, 3]),
            node("Reshape", "back whole", "same"),
            node("Slice", "table zero l", "rows"),
            node("Add", "same rows", "y"),
        ],
        ["batch", "length", 8],
        first=np.int64(0),
        second=np.int64(1),
        zero=np.array([0]),
        two=np.array([2]),
        four=np.array([4]),
        whole=np.array([0, 0, -1]),
        table=TABLE,
    ),
    "sizes as numbers": onnx_model(
        [
            node("Shape", "x", "s"),
            node("Cast", "s", "numbers", to=TensorProto.FLOAT),
            node("ReduceSum", "x one", "sum", keepdims=0),
            node("Slice", "numbers one two", "count"),
            node("Div", "sum count", "y"),
        ],
        ["batch", "length", 8],
        one=np.array([1]),
        two=np.array([2]),
    ),
    "parts from the back, and between symbols": onnx_model(
        [
            node("Shape", "x", "s"),
            node("Slice", "s first second", "l"),
            node("Neg", "l", "back"),
            node("Slice", "x zero minus first", "most"),
            node("Slice", "x minus far first", "last"),
            node("Slice", "table back far", "rows"),
            node("Slice", "x minus least first minus", "turned"),
            node("Concat", "most last turned x", "all", axis=1),
            node("Add", "x rows", "sum"),
            node("Concat", "all sum", "long", axis=1),
            node("Concat", "l l l l", "parts", axis=0),
            node("Split", "long parts", "one two three four", axis=1),
            node("Sub", "one two", "difference"),
            node("Mul", "difference four", "y"),
        ],
        ["batch", "length", 8],
        zero=np.array([0]),
        first=np.array([1]),
        second=np.array([2]),
        minus=np.array([-1]),
        far=np.array([np.iinfo(np.int64).max]),
        least=np.array([np.iinfo(np.int64).min]),
        table=TABLE,
    ),
    "ranges and triangles": onnx_model(
        [
            node("Shape", "x", "s"),
            node("Gather", "s first", "l"),
            node("Add", "l l", "end"),
            node("Range", "l end one", "from"),
            node("Range", "zero end two", "even"),
            node("Add", "from even", "sum"),
            node("Unsqueeze", "sum axis", "column"),
            node("Cast", "column", "numbers", to=TensorProto.FLOAT),
            node("Add", "x numbers", "moved"),
            node("Trilu", "moved one", "upper"),
            node("Trilu", "x minus", "lower", upper=0),
            node("Sub", "upper lower", "y"),
        ],
        ["batch", "length", 8],
        first=np.int64(1),
        zero=np.int64(0),
        one=np.int64(1),
        two=np.int64(2),
        axis=np.array([1]),
        minus=np.int64(-1),
    ),
    "recurrent layers": onnx_model(
        [
            node("LSTM", "x w r b", "states h c", hidden_size=5, direction="bidirectional"),
            node("Transpose", "states", "rows", perm=[0, 2, 1, 3]),
            node("Reshape", "rows merged", "wide"),
            node("GRU", "wide v u", "y", hidden_size=5, linear_before_reset=1),
        ],
        ["batch", "length", 8],
        merged=np.array([0, 0, -1]),
        **GATES,
    ),
    "sequences with lengths": onnx_model(
        [
            node("Greater", "x nothing", "signs"),
            node("Cast", "signs", "ones", to=TensorProto.INT32),
            node("ReduceSum", "ones steps", "counts", keepdims=0),
            node("Gather", "counts first", "lengths", axis=1),
            node("LSTM", "x w r b lengths", "y h c", hidden_size=5, direction="bidirectional"),
        ],
        ["batch", "length", 8],
        nothing=np.float32(0),
        steps=np.array([0]),
        first=np.int64(0),
        **{name: GATES[name] for name in "wrb"},
    ),
    "nearest images": onnx_model(
        [
            node("Unsqueeze", "x second", "image"),
            node("Shape", "image", "s"),
            node("Mul", "s times", "sizes"),
            node("Resize", "image none scales", "wide", mode="nearest"),
            node(
                "Resize",
                "image none none sizes",
                "z",
                coordinate_transformation_mode="asymmetric",
                nearest_mode="floor",
            ),
            node("Sub", "wide z", "y"),
        ],
        ["batch", "length", 8],
        second=np.array([1]),
        none=np.zeros(0, np.float32),
        times=np.array([1, 1, 3, 2]),
        scales=np.array([1, 1, 3, 2], np.float32),
    ),
    "axes merged and split": onnx_model(
        [
            node("Reshape", "x rows", "flat"),
            node("MatMul", "flat weights", "product"),
            node("Shape", "x", "s"),
            node("Reshape", "product s", "back"),
            node("Reshape", "back columns", "wide"),
            node("Relu", "wide", "positive"),
            node("Reshape", "positive s", "again"),
            node("Reshape", "again line", "all"),
            node("Sqrt", "all", "roots"),
            node("Reshape", "roots s", "split"),
            node("Add", "split x", "y"),
        ],
        ["batch", "length", 8],
        rows=np.array([-1, 8]),
        columns=np.array([0, -1]),
        line=np.array([-1]),
        weights=np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32),
    ),
    "tiles and borders": onnx_model(
        [
            node("Tile", "x twice", "tiles"),
            node("Slice", "tiles nothing many", "long"),
            node("Pad", "long border number", "constant"),
            node("Pad", "long border", "edge", mode="edge"),
            node("Pad", "long border", "reflect", mode="reflect"),
            node("Pad", "long border", "wrap", mode="wrap"),
            node("Sum", "constant edge reflect wrap", "y"),
        ],
        ["batch", "length", 8],
        opset=19,
        nothing=np.array([0, 0, 0]),
        many=np.array([99, 99, 8]),
        twice=np.array([2, 3, 1]),
        border=np.array([1, 2, 0, 0, 1, 3]),
        number=np.float32(0.5),
    ),
    "expands, constants and concats": onnx_model(
        [
            node("Shape", "x", "s"),
            node("Equal", "s minus", "open"),
            node("Where", "open one s", "chosen"),
            node("Max", "chosen one", "sizes"),
            node("Expand", "row sizes", "rows"),
            node("ConstantOfShape", "s", "ones", value=numpy_helper.from_array(np.ones(1, np.float32))),
            node("Add", "rows ones", "sum"),
            node("Concat", "x sum x", "y", axis=1),
        ],
        ["batch", "length", 8],
        row=np.arange(8, dtype=np.float32),
        minus=np.array([-1]),
        one=np.array([1]),
    ),
}


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
@pytest.mark.parametrize("name", MODELS)
def test_one_compilation_serves_all_sizes(name: str, backend: str) -> None:
    model = MODELS[name].SerializeToString()
    session = InferenceSession(model, backend=backend, dimensions=BOUNDS, cache=False)
    reference: Any = onnxruntime.InferenceSession(model)
    for batch, length in ((1, 1), (4, 16), (3, 7)):
        x = np.random.default_rng(0).normal(size=(batch, length, 8)).astype(np.float32)
        (found,), (wanted,) = session.run(None, {"x": x}), reference.run(None, {"x": x})
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert session.specializations == []


def test_an_encoder_runs_with_any_number_of_sequences_of_any_length() -> None:
    model = bert_encoder(layers=1, width=32, heads=2, length=200, vocabulary=50, is_free=True).SerializeToString()
    session = InferenceSession(model, dimensions={"batch": (1, 4), "length": (1, 200)}, cache=False)
    reference: Any = onnxruntime.InferenceSession(model)
    # Few queries are not packed; blocks of queries, and vectors of keys, end with a rest or without.
    for batch, length in ((1, 200), (2, 3), (4, 9), (3, 70), (1, 128)):
        generator = np.random.default_rng(length)
        ids = generator.integers(0, 50, (batch, length))
        inputs = {"ids": ids, "mask": (np.arange(length) < generator.integers(1, length, (batch, 1))).astype(np.int64)}
        (found,), (wanted,) = session.run(None, inputs), reference.run(None, inputs)
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_a_product_of_any_number_of_rows_fetches_weights_ahead() -> None:
    generator = np.random.default_rng(0)
    weights = generator.normal(size=(256, 1088)).astype(np.float32)
    model = onnx_model([node("MatMul", "x w", "p"), node("Relu", "p", "y")], ["batch", 256], w=weights)
    session = InferenceSession(model.SerializeToString(), dimensions={"batch": (0, 100)}, cache=False)
    for rows in (0, 1, 6, 13, 100):
        x = generator.normal(size=(rows, 256)).astype(np.float32)
        (found,) = session.run(None, {"x": x})
        np.testing.assert_allclose(found, np.maximum(x @ weights, 0), rtol=1e-4, atol=1e-4)


def test_what_takes_no_such_sizes_is_named() -> None:
    scales = np.array([1, 1, 1, 2], np.float32)
    resize = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear")
    resized = onnx_model([resize], [1, 2, 5, "width"], s=scales)
    with pytest.raises(UnsupportedError, match=r"^1 operator is not supported .* \('y'\)"):
        InferenceSession(resized.SerializeToString(), dimensions={"width": (1, 20000)}, cache=False)


@pytest.mark.parametrize("bounds", [(4, 1), (-1, 4), (1, 2, 3), ("a", 4)])
def test_bounds_are_two_numbers(bounds: Any) -> None:
    model = MODELS["sizes as numbers"].SerializeToString()
    with pytest.raises(OptionError, match=r"^dimension 'batch' cannot be"):
        InferenceSession(model, dimensions={"batch": bounds, "length": 4}, cache=False)


def session_of(
    nodes: Sequence[onnx.NodeProto], bounds: Any, shape: Sequence[int | str] = ("batch", 4), **constants: Any
) -> InferenceSession:
    return InferenceSession(onnx_model(nodes, shape, **constants), dimensions=bounds, cache=False)


def rows(count: int, value: float = 1.0) -> dict[str, np.ndarray]:
    return {"x": np.full((count, 4), value, np.float32)}


def test_outputs_stay_what_they_are_after_further_calls() -> None:
    session = session_of([node("Relu", "x", "y")], {"batch": (1, 16)})
    (kept,) = session.run(None, rows(2))
    session.run(None, rows(2, 7.0))
    np.testing.assert_array_equal(kept, np.ones((2, 4)))


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_scalars_are_outputs(backend: str) -> None:
    model = onnx_model([node("ReduceSum", "x", "y", keepdims=0)], ["batch", 4])
    session = InferenceSession(model, dimensions={"batch": (1, 16)}, cache=False, backend=backend)
    (total,) = session.run(None, rows(3))
    assert (total.shape, total.item()) == ((), 12)


def test_sizes_that_may_be_negative_are_refused() -> None:
    less = [node("Shape", "x", "s"), node("Sub", "s five", "t"), node("ConstantOfShape", "t", "y")]
    with pytest.raises(UnsupportedError, match=r"^node 'constantofshape_y': the size batch - 5 may be negative"):
        session_of(less, {"batch": (1, 8)}, five=np.array([5, 0]))
    (found,) = session_of(less, {"batch": (5, 8)}, five=np.array([5, 0])).run(None, rows(7))
    assert found.shape == (2, 4)


DIFFERING = {
    "from three before the end": [np.array([-3]), np.array([9]), np.array([0])],
    "up to the fifth": [np.array([0]), np.array([5]), np.array([0])],
    "every second": [np.array([0]), np.array([9]), np.array([0]), np.array([2])],
}


@pytest.mark.parametrize("name", DIFFERING)
def test_parts_may_differ_with_the_sizes(name: str) -> None:
    operands = DIFFERING[name]
    constants: dict[str, Any] = {f"operand{place}": array for place, array in enumerate(operands)}
    session = session_of([node("Slice", f"x {' '.join(constants)}", "y")], {"batch": (1, 8)}, **constants)
    start, end, _, *steps = (int(array.item()) for array in operands)
    for count in (1, 2, 5, 8):
        given = rows(count)
        (found,) = session.run(None, given)
        np.testing.assert_array_equal(found, given["x"][start : end : steps[0] if steps else 1])


def test_bounds_hold_beside_dimensions_without() -> None:
    session = session_of([node("Relu", "x", "y")], {"batch": (1, 4)}, ("batch", "length"))
    for batch, length in ((1, 3), (4, 3), (2, 5)):
        (found,) = session.run(None, {"x": np.ones((batch, length), np.float32)})
        assert found.shape == (batch, length)
    assert [item.sizes for item in session.specializations] == [{"length": 3}, {"length": (1, 64)}]
    with pytest.raises(InputError, match=r"^dimension 'batch' is 9, which is not in 1 to 4"):
        session.run(None, {"x": np.ones((9, 3), np.float32)})


def test_equal_bounds_are_a_size() -> None:
    (found,) = session_of([node("Relu", "x", "y")], {"batch": (0, 0)}).run(None, rows(0))
    assert found.shape == (0, 4)


def test_quotients_of_shapes_are_rounded_towards_zero() -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("Sub", "s seven", "t"),
        node("Div", "t two", "u"),
        node("Slice", "x zeros u", "y"),
    ]
    constants: dict[str, Any] = {"seven": np.array([0, 7]), "two": np.array([1, 2]), "zeros": np.array([0, 0])}
    (found,) = session_of(nodes, {"batch": (1, 8)}, **constants).run(None, rows(2))
    assert found.shape == (2, 3)


def test_softmax_over_several_axes() -> None:
    model = onnx_model([node("Softmax", "x", "y", axis=1)], ["batch", 4, 2], opset=12)
    session = InferenceSession(model, dimensions={"batch": (1, 8)}, cache=False)
    x = np.random.default_rng(0).normal(size=(5, 4, 2)).astype(np.float32)
    (found,) = session.run(None, {"x": x})
    np.testing.assert_allclose(found, np.exp(x) / np.exp(x).sum((1, 2), keepdims=True), rtol=1e-5)


def test_products_of_rows_with_rows_along_any_depth() -> None:
    """Both operands are as deep as run time tells, one is stored transposed; Gemm takes what MatMul takes."""
    nodes = [
        node("Transpose", "x", "t", perm=[1, 0]),
        node("MatMul", "x t", "g"),
        node("Gemm", "x x", "h", transB=1, alpha=0.5),
        node("Add", "g h", "y"),
    ]
    model = onnx_model(nodes, ["batch", "length"]).SerializeToString()
    for backend in ("cpu", "interpreter"):
        session = InferenceSession(
            model, backend=backend, dimensions={"batch": (1, 20), "length": (1, 40)}, cache=False
        )
        for shape in ((1, 1), (20, 40), (7, 19)):
            x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
            (found,) = session.run(None, {"x": x})
            np.testing.assert_allclose(found, 1.5 * x @ x.T, rtol=1e-4, atol=1e-4)


def test_bounds_may_be_numbers_of_numpy() -> None:
    """The artifact, which names them, is written to the cache."""
    model = onnx_model([node("Relu", "x", "y")], ["batch"]).SerializeToString()
    session = InferenceSession(model, dimensions={"batch": (np.int64(1), np.int32(5))})  # pyright: ignore[reportArgumentType]
    (found,) = session.run(None, {"x": np.full(3, -1, np.float32)})
    np.testing.assert_array_equal(found, np.zeros(3))


def test_dimensions_go_by_names() -> None:
    model = onnx_model([node("Relu", "x", "y")], ["batch"]).SerializeToString()
    with pytest.raises(OptionError, match=r"sizes by the names of dimensions \(hint: {'batch': 1}"):
        InferenceSession(model, dimensions="batch", cache=False)  # pyright: ignore[reportArgumentType]


def test_a_label_that_names_nothing_is_no_size() -> None:
    model = onnx_model([node("Relu", "x", "y")], ["-", 4]).SerializeToString()
    session = InferenceSession(model, cache=False)
    assert session.get_inputs()[0].shape == ["-", 4]
    assert session.run(None, {"x": np.ones((3, 4), np.float32)})[0].shape == (3, 4)


def test_hints_are_about_sizes_where_these_are_the_reason() -> None:
    """Of an operator that takes numbers alone, and of several operators at once."""
    determinants = onnx_model([node("Det", "x", "y")], ["batch", "length", "length"])
    parts = [node("DFT", "x four one", result) for result in "abc"]
    constants: dict[str, Any] = {"four": np.array(4), "one": np.array(1)}
    transforms = onnx_model([*parts, node("Sum", "a b c", "y")], ["batch", "length", 1], opset=20, **constants)
    for model in (determinants, transforms):
        with pytest.raises(UnsupportedError, match=r"\(hint: give dimensions numbers instead of bounds\)$"):
            InferenceSession(model.SerializeToString(), dimensions=BOUNDS, cache=False)


def test_integers_are_resized_once_along_each_axis() -> None:
    """An axis of known size in front of one that is known at run time only, and behind it."""
    operands = {"scales": np.array([1, 2.0, 1.5, 2.0], np.float32)}
    model = onnx_model([node("Resize", "x scales", "y", mode="linear")], [1, 2, "width", 2], opset=20, **operands)
    model.graph.node[0].input[:] = ["x", "", "scales"]
    for edge in (model.graph.input[0], model.graph.output[0]):
        edge.type.tensor_type.elem_type = TensorProto.UINT8
    x = np.random.default_rng(0).integers(0, 256, (1, 2, 3, 2), np.uint8)
    found, wanted = (
        InferenceSession(model.SerializeToString(), dimensions={"width": size}, cache=False).run(None, {"x": x})[0]
        for size in ((1, 8), 3)
    )
    np.testing.assert_allclose(found.astype(int), wanted.astype(int), atol=1)


def test_each_quotient_is_computed_once_in_a_function() -> None:
    nodes: list[onnx.NodeProto] = []
    for number in range(6):
        resize = node("Resize", f"x{number} scales", f"larger{number}", coordinate_transformation_mode="asymmetric")
        resize.input.insert(1, "")
        window = {"kernel_shape": [2, 1], "strides": [2, 1], "pads": [1, 0, 0, 0]}
        nodes += [resize, node("MaxPool", f"larger{number}", f"x{number + 1}", **window)]
    nodes = [node("Relu", "x", "x0"), *nodes, node("Relu", "x6", "y")]
    model = onnx_model(nodes, [1, 1, "height", 2], opset=20, scales=np.array([1, 1, 1.5, 1], np.float32))
    modules: list[str] = []

    def observe(stage: Stage, module: ModuleOp, seconds: float) -> None:
        modules.append(str(module))

    InferenceSession(model.SerializeToString(), dimensions={"height": (1, 900)}, observers=[observe], cache=False)
    divisions = [function.count("llvm.udiv") for function in modules[-1].split("llvm.func")]
    assert 6 <= max(divisions) <= 4 * 6


def test_scales_of_sizes_beyond_f32_are_refused_at_once() -> None:
    model = onnx_model(
        [node("Resize", "x scales", "y", mode="linear")], ["height"], opset=20, scales=np.array([0.5], np.float32)
    )
    model.graph.node[0].input.insert(1, "")
    with pytest.raises(UnsupportedError, match=r"^node 'resize_y': .* height elements scaled by 0.5 have no size"):
        InferenceSession(model.SerializeToString(), dimensions={"height": (2, 1 << 38)}, cache=False)


@pytest.mark.parametrize("group", [1, 20], ids=["filters", "depthwise"])
def test_no_images_are_as_many_as_others_for_threads_that_pack_filters(group: int) -> None:
    filters = [20, 20 // group, 3, 3]
    model = onnx_model([node("Conv", "x w", "y", group=group)], ("N", 20, 9, 6))
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, filters))
    session = InferenceSession(model, dimensions={"N": (0, 4)}, threads=2)
    random = np.random.default_rng(0)
    for count in (0, 1, 3):
        inputs = {
            "x": random.standard_normal((count, 20, 9, 6), np.float32),
            "w": random.standard_normal(filters, np.float32),
        }
        oracle = InferenceSession(model, dimensions={"N": count}, backend="interpreter")
        np.testing.assert_allclose(session.run(None, inputs)[0], oracle.run(None, inputs)[0], rtol=1e-4, atol=1e-4)
