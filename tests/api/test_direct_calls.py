"""Calls like those before them answer as those do, and as others where anything differs."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
from onnx_models import model_of, node, value

from glow_mlir import InferenceSession, SpecializationLimits
from glow_mlir.errors import InputError


def doubling(rows: int | str) -> onnx.ModelProto:
    """A model that adds two inputs, of which one is doubled."""
    nodes = [node("Add", "x x", "d"), node("Add", "d z", "y")]
    return model_of(nodes, [value("x", shape=(rows, 3)), value("z", shape=(rows, 3))], ["y"])


@pytest.mark.parametrize("rows", [2, "N"])
def test_later_calls_answer_as_the_first(rows: int | str) -> None:
    session = InferenceSession(doubling(rows), cache=False, warm="specialised")
    kept: list[np.ndarray] = []
    for number in range(8):
        x = np.full((2, 3), number, np.float32)
        found = session.run(None, {"z": x, "x": 10 * x})[0]
        np.testing.assert_array_equal(found, 21 * x)
        kept.append(found)
    for number, array in enumerate(kept):
        np.testing.assert_array_equal(array, np.full((2, 3), 21 * number, np.float32))


def test_calls_at_once_share_the_worker_threads() -> None:
    session = InferenceSession(doubling(50_000), cache=False, threads=2)

    def wrong(number: int) -> int:
        x = np.full((50_000, 3), number, np.float32)
        return sum(bool((session.run(None, {"x": x, "z": x})[0] != 3 * number).any()) for _ in range(20))

    with ThreadPoolExecutor(3) as pool:
        assert sum(pool.map(wrong, range(1, 4))) == 0


@pytest.mark.parametrize("most", [8, None])
def test_calls_of_many_sizes_answer_in_arrays_of_their_shape(most: int | None) -> None:
    """One compilation serves them, and each size has a direct call of its own."""
    session = InferenceSession(doubling("N"), cache=False, dimensions={"N": (1, most)})
    kept: list[tuple[int, np.ndarray]] = []
    for number in range(4):
        for rows in (2, 7, 1, 8):
            x = np.full((rows, 3), rows + number, np.float32)
            kept.append((rows + number, session.run(None, {"x": x, "z": x})[0]))
            assert kept[-1][1].shape == (rows, 3)
            assert kept[-1][1].base is None
    for number, array in kept:
        np.testing.assert_array_equal(array, np.full(array.shape, 3 * number, np.float32))


def test_others_are_looked_at() -> None:
    session = InferenceSession(doubling(2), cache=False)
    x = np.ones((2, 3), np.float32)
    for _ in range(3):
        session.run(None, {"x": x, "z": x})
    wide = np.ones((2, 6), np.float32)[:, ::2]
    read_only = x.copy()
    read_only.flags.writeable = False
    for given in (wide, read_only, x.tolist(), x.astype(">f4"), np.asfortranarray(x)):
        np.testing.assert_array_equal(session.run(None, {"x": given, "z": x})[0], 3 * x)
    for wrong in ({"x": x}, {"x": x, "z": x, "w": x}, {"x": x, "z": x[:1]}, {"x": x, "z": x.astype(np.float64)}):
        with pytest.raises(InputError):
            session.run(None, wrong)


def test_what_was_given_up_is_not_called() -> None:
    limits = SpecializationLimits(number=1)
    session = InferenceSession(doubling("N"), cache=False, warm="specialised", limits=limits)
    for _ in range(3):
        for rows in (1, 2, 3):
            x = np.ones((rows, 3), np.float32)
            for _ in range(3):
                np.testing.assert_array_equal(session.run(None, {"x": x, "z": x})[0], 3 * x)
            (kept,) = session.specializations
            assert set(kept.sizes.values()) == {rows}
            assert kept.calls == 3


def test_what_was_given_up_is_not_kept() -> None:
    limits = SpecializationLimits(number=1)
    session = InferenceSession(doubling("N"), cache=False, warm="specialised", limits=limits)
    kept: list[weakref.ref[object]] = []
    for rows in range(1, 5):
        x = np.ones((rows, 3), np.float32)
        for _ in range(2):
            session.run(None, {"x": x, "z": x})
        kept.append(weakref.ref(session.specializations[0].executable))
    gc.collect()
    assert [reference() is not None for reference in kept] == [False, False, False, True]


def test_outputs_of_computed_sizes_are_arrays_of_their_own() -> None:
    nodes = [node("NonZero", "x", "places"), node("Compress", "x wanted", "some", axis=1)]
    model = model_of(
        nodes, [value("x", shape=(3, 40)), value("wanted", onnx.TensorProto.BOOL, (40,))], ["places", "some"]
    )
    session = InferenceSession(model, cache=False)
    generator = np.random.default_rng(0)
    kept: list[tuple[list[np.ndarray], list[np.ndarray]]] = []
    for share in (0.5, 0.0, 1.0, 0.1, 0.5, 0.9, 0.02):
        x = np.where(generator.random((3, 40)) < share, generator.random((3, 40)), 0).astype(np.float32)
        wanted = generator.random(40) < share
        expected = [np.stack(np.nonzero(x)), np.compress(wanted, x, axis=1)]
        kept.append((expected, session.run(["places", "some"], {"x": x, "wanted": wanted})))
    for expected, found in kept:
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_array_equal(other, one)


def test_values_that_determine_shapes_select_the_code() -> None:
    nodes = [node("Range", "start limit step", "numbers"), node("Mul", "numbers x", "y")]
    shapes = {name: value(name, onnx.TensorProto.INT32, ()) for name in ("start", "limit", "step", "x")}
    session = InferenceSession(model_of(nodes, list(shapes.values()), ["y"]), cache=False)
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    for turn in range(4):
        for start, limit, step in ((0, 5, 1), (3, 21, 4), (0, 5, 1), (9, 2, -2)):
            given = {"start": start, "limit": limit, "step": step, "x": turn}
            feeds = {name: np.array(number, np.int32) for name, number in given.items()}
            expected = np.arange(start, limit, step).astype(np.int32) * turn
            kept.append((expected, session.run(None, feeds)[0]))
    assert len(session.specializations) == 3
    for expected, found in kept:
        np.testing.assert_array_equal(found, expected)
