"""Calls like those before them answer as those do, and as others where anything differs."""

from __future__ import annotations

import gc
import weakref

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
