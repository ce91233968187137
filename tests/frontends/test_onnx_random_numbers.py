"""ONNX's operators that draw random numbers: distributions, seeds, and the same bits in both backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import model_of, node, refusal, value

from glow_mlir import InferenceSession
from glow_mlir.backends.interpreter.executable import InterpretedModule
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.onnx.importer import import_model

COUNT = 40_000

DEVIATIONS = 5.0
"""How many standard deviations a mean may be away from what is expected: one draw of a million is farther."""


def drawn(model: onnx.ModelProto, *inputs: np.ndarray, calls: int = 1, seed: int = 0) -> list[np.ndarray]:
    """The first output of calls; machine code and interpreter agree on it."""
    session = InferenceSession(model, cache=False)
    session.set_state({"random.seed": np.array(seed)} if "random.seed" in session.get_state() else {})
    interpreted = InterpretedModule(import_model(model, seed=seed)).entry()
    names = [item.name for item in model.graph.input]
    feeds = dict(zip(names, inputs, strict=True))
    found: list[np.ndarray] = []
    for _ in range(calls):
        found.append(session.run(None, feeds)[0])
        expected = interpreted.run(feeds)[model.graph.output[0].name]
        tolerance = 1e-6 if expected.dtype.itemsize >= 4 else 2e-3
        np.testing.assert_allclose(found[-1].astype("f8"), expected.astype("f8"), rtol=tolerance, atol=tolerance)
    return found


def draw(kind: str, *shape: int, **attributes: Any) -> onnx.ModelProto:
    return model_of([helper.make_node(kind, [], ["y"], shape=shape, **attributes)], [])


def assert_uniform(numbers: np.ndarray, low: float, high: float) -> None:
    """Numbers of 20 parts of a range are equally frequent, by Pearson's test: chi-square of 19 is below 50."""
    counts, _ = np.histogram(numbers.astype("f8"), 20, (low, high))
    assert counts.sum() == numbers.size
    expected = numbers.size / 20
    assert ((counts - expected) ** 2 / expected).sum() < 50


def assert_mean(numbers: np.ndarray, mean: float, deviation: float) -> None:
    assert abs(numbers.astype("f8").mean() - mean) < DEVIATIONS * deviation / numbers.size**0.5


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16])
def test_uniform(dtype: int) -> None:
    (found,) = drawn(draw("RandomUniform", 100, COUNT // 100, dtype=dtype, low=-1.0, high=3.0))
    assert found.dtype == helper.tensor_dtype_to_np_dtype(dtype)
    assert found.min() >= -1
    assert_mean(found, 1.0, 4 / 12**0.5 * 2)  # f16 has 11 bits, whose mean is a little lower.
    if dtype in (TensorProto.FLOAT, TensorProto.DOUBLE):
        assert_uniform(found, -1, 3)
        assert found.max() < 3


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16])
def test_normal(dtype: int) -> None:
    (found,) = drawn(draw("RandomNormal", COUNT, dtype=dtype, mean=2.0, scale=3.0))
    centred = (found.astype("f8") - 2) / 3
    for power, (mean, deviation) in {1: (0, 1), 2: (1, 2**0.5), 3: (0, 15**0.5), 4: (3, 96**0.5)}.items():
        assert_mean(centred**power, mean, deviation)
    share = np.mean(np.abs(centred) < 1.0)
    assert abs(share - 0.6827) < DEVIATIONS * 0.466 / COUNT**0.5


@pytest.mark.parametrize("kind", ["RandomUniformLike", "RandomNormalLike"])
def test_like_an_operand(kind: str) -> None:
    model = model_of([node(kind)], [value("x", TensorProto.DOUBLE, (3, 1, 5))])
    (found,) = drawn(model, np.zeros((3, 1, 5)))
    assert found.shape == (3, 1, 5)
    assert found.dtype == np.float64
    model = model_of([node(kind, dtype=TensorProto.FLOAT)], [value("x", TensorProto.INT32, (7,))])
    assert drawn(model, np.zeros(7, np.int32))[0].dtype == np.float32


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (0, 3), (1, 7), (7, 1), (2, 3, 5, 7), (1, 300)])
def test_shapes(shape: tuple[int, ...]) -> None:
    (found,) = drawn(model_of([node("RandomUniformLike")], [value("x", shape=shape)]), np.zeros(shape, np.float32))
    assert found.shape == shape
    assert len(np.unique(found)) == found.size


def test_sizes_at_run_time_draw_as_well() -> None:
    model = model_of([node("RandomUniformLike")], [value("x", shape=("n", 4))])
    session = InferenceSession(model, cache=False, dimensions={"n": (1, 64)})
    numbers = session.run(None, {"x": np.zeros((50, 4), np.float32)})[0]
    assert numbers.shape == (50, 4)
    assert len(np.unique(numbers)) == numbers.size


def test_bernoulli() -> None:
    probabilities = np.repeat(np.array([0.0, 0.2, 0.7, 1.0], np.float32), COUNT // 4).reshape(4, -1)
    model = model_of([node("Bernoulli", dtype=TensorProto.INT64)], [value("x", shape=probabilities.shape)])
    (found,) = drawn(model, probabilities)
    assert found.dtype == np.int64
    assert np.isin(found, (0, 1)).all()
    for row, share in zip(found, (0.0, 0.2, 0.7, 1.0), strict=True):
        assert abs(row.mean() - share) <= DEVIATIONS * (share * (1 - share) / row.size) ** 0.5


@pytest.mark.parametrize("dtype", [TensorProto.INT32, TensorProto.INT64])
def test_multinomial(dtype: int) -> None:
    weights = np.array([[1, 0, 2, 5], [3, 3, 3, 0]], np.float32)
    with np.errstate(divide="ignore"):
        logarithms = np.log(weights) + 2
    model = model_of([node("Multinomial", dtype=dtype, sample_size=COUNT)], [value("x", shape=(2, 4))])
    (found,) = drawn(model, logarithms)
    assert found.shape == (2, COUNT)
    assert found.dtype == helper.tensor_dtype_to_np_dtype(dtype)
    for row, weight in zip(found, weights, strict=True):
        shares = np.bincount(row, minlength=4) / COUNT
        np.testing.assert_array_equal(shares == 0, weight == 0)
        np.testing.assert_allclose(shares, weight / weight.sum(), atol=DEVIATIONS * 0.5 / COUNT**0.5)


def test_each_call_draws_others_and_each_node_too() -> None:
    nodes = [helper.make_node("RandomUniform", [], [name], shape=[100], name=name) for name in ("y", "z")]
    session = InferenceSession(model_of(nodes, [], ["y", "z"]), cache=False)
    found = [array for _ in range(3) for array in session.run(None, {})]
    assert len(np.unique(np.concatenate(found))) >= 598  # Two of 600 fractions of 24 bits may be equal.


def test_numbers_follow_from_the_seed_of_the_session() -> None:
    model = draw("RandomNormal", 50)
    first = drawn(model, calls=2, seed=1)
    assert np.array_equal(first, drawn(model, calls=2, seed=1))
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first, drawn(model, calls=2, seed=2))


def test_seed_of_a_node_is_that_of_its_numbers() -> None:
    first = drawn(draw("RandomNormal", 50, seed=1.0), calls=2)
    assert np.array_equal(first, drawn(draw("RandomNormal", 50, seed=1.0, name="other"), calls=2, seed=3))
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first, drawn(draw("RandomNormal", 50, seed=1.5), calls=2))


def test_state_goes_on_where_it_was() -> None:
    session = InferenceSession(draw("RandomUniform", 9), cache=False)
    session.run(None, {})
    state = session.get_state()
    following = session.run(None, {})[0]
    session.set_state(state)
    assert np.array_equal(session.run(None, {})[0], following)


def dropout(ratio: float | None, outputs: str = "y m", opset: int = 22, **attributes: Any) -> onnx.ModelProto:
    """Training, of a ratio that is known, or an input."""
    kept = [numpy_helper.from_array(np.array(True), "training")]
    inputs = [value("x", shape=(100, COUNT // 100))]
    if ratio is None:
        inputs.append(value("ratio", shape=()))
    else:
        kept.append(numpy_helper.from_array(np.array(ratio, np.float32), "ratio"))
    nodes = [node("Dropout", "x ratio training", outputs, name="drop", **attributes)]
    return model_of(nodes, inputs, outputs.split(), kept, opset)


@pytest.mark.parametrize("opset", [12, 13, 22])
@pytest.mark.parametrize("ratio", [0.1, 0.75])
@pytest.mark.parametrize("known", [True, False])
def test_dropout_drops_a_share_and_scales_the_others(opset: int, ratio: float, known: bool) -> None:
    x = np.random.default_rng(0).uniform(1, 2, (100, COUNT // 100)).astype(np.float32)
    feeds = {"x": x} if known else {"x": x, "ratio": np.array(ratio, np.float32)}
    session = InferenceSession(dropout(ratio if known else None, opset=opset), cache=False)
    found, mask = session.run(None, feeds)
    assert mask.dtype == np.bool_
    np.testing.assert_allclose(found, np.where(mask, x / np.float32(1 - ratio), 0), rtol=1e-6)
    assert abs(mask.mean() - (1 - ratio)) < DEVIATIONS * (ratio * (1 - ratio) / COUNT) ** 0.5
    assert not np.array_equal(session.run(None, feeds)[1], mask)


def test_dropout_keeps_what_is_no_number_out() -> None:
    """What is dropped is 0, whatever it was."""
    x = np.full((100, COUNT // 100), np.inf, np.float32)
    found, mask = InferenceSession(dropout(0.5), cache=False).run(None, {"x": x})
    assert np.array_equal(found, np.where(mask, np.inf, 0))


def test_dropout_of_opset_6_trains_unless_it_is_a_test() -> None:
    model = model_of([node("Dropout", "x", "y m", ratio=0.5)], [value("x", shape=(COUNT,))], ["y", "m"], opset=6)
    found, mask = InferenceSession(model, cache=False).run(None, {"x": np.ones(COUNT, np.float32)})
    assert mask.dtype == np.float32
    assert np.array_equal(found, mask * 2)
    assert_mean(mask, 0.5, 0.5)


def in_branch(kind: str) -> onnx.ModelProto:
    inner = helper.make_node(kind, [], ["inner"], shape=[2], name="draw")
    words = ("then_branch", "else_branch")
    branches: dict[str, Any] = {word: helper.make_graph([inner], word, [], [value("inner")]) for word in words}
    return model_of([node("If", "x", **branches)], [value("x", TensorProto.BOOL, ())])


REFUSED: dict[str, tuple[Callable[[], onnx.ModelProto], type[Exception], str]] = {
    "integers": (lambda: draw("RandomNormal", 2, dtype=TensorProto.INT32), ModelError, "i32 is not a float type"),
    "rank": (lambda: model_of([node("Multinomial")]), ModelError, "operand 0 of Multinomial has 1 axes"),
    "classes": (
        lambda: model_of([node("Multinomial", dtype=TensorProto.FLOAT)], [value("x", shape=(2, 2))]),
        ModelError,
        "classes are i32 or i64, not f32",
    ),
    "ratio": (lambda: dropout(1.0), ModelError, "node 'drop': Dropout: ratio 1 is not from 0 up to 1"),
    "branch": (lambda: in_branch("RandomUniform"), UnsupportedError, "random numbers in a branch or loop"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusal(case: str) -> None:
    make, kind, reason = REFUSED[case]
    assert reason in refusal(make(), kind)  # pyright: ignore[reportArgumentType]
