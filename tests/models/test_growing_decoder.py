"""A decoder whose keys and values grow: one compilation makes token after token, as onnxruntime does."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnxruntime
import pytest
from growing_decoder import FORMS, growing_decoder
from query_attention_model import DEPTH, KEY_HEADS, WIDTH, query_attention

from glow_mlir import InferenceSession
from glow_mlir.errors import InputError, OptionError


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
@pytest.mark.parametrize("form", FORMS)
def test_one_compilation_makes_any_number_of_tokens(form: str, backend: str) -> None:
    model = growing_decoder(form, layers=1).SerializeToString()
    bounds = {"past": (0, 40), "tokens": (1, 8)}
    session = InferenceSession(model, dimensions=bounds, backend=backend, cache=False)
    reference: Any = onnxruntime.InferenceSession(model)
    generator = np.random.default_rng(0)
    kept = {name: np.zeros((1, 2, 0, 16), np.float32) for name in ("keys0", "values0")}
    for tokens in (5, 1, 1, 8, 1):
        inputs = {"ids": generator.integers(0, 50, (1, tokens)), **kept}
        found, wanted = session.run(None, inputs), reference.run(None, inputs)
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
        kept = dict(zip(kept, found[1:], strict=True))
    assert session.specializations == []


def test_keys_and_values_grow_where_they_are() -> None:
    """What is given back is not moved; an old output that is given a second time stays what it is."""
    session = InferenceSession(
        growing_decoder("comparison", layers=1), dimensions={"past": (0, 40), "tokens": (1, 8)}, cache=False
    )
    names = ("keys0", "values0")

    def step(ids: list[int], kept: list[np.ndarray]) -> list[np.ndarray]:
        return session.run(None, {"ids": np.array([ids]), **dict(zip(names, kept, strict=True))})[1:]

    first = step([1, 2, 3], [np.zeros((1, 2, 0, 16), np.float32)] * 2)
    before = [array.copy() for array in first]
    second, other = step([4], first), step([5], first)
    for old, kept, grown, branch in zip(first, before, second, other, strict=True):
        assert np.shares_memory(old, grown)
        assert not np.shares_memory(old, branch)
        np.testing.assert_array_equal(old, kept)
        np.testing.assert_array_equal(grown[:, :, :3], kept)
        np.testing.assert_array_equal(branch[:, :, :3], kept)
        assert not np.array_equal(grown, branch)
    longer = [array.copy() for array in second]
    for found, wanted in zip(step([6], second), step([6], longer), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_tables_of_group_query_attention_grow() -> None:
    """One dimension is an expression of others; a call of other sizes is refused."""
    model = query_attention()
    bounds = {"batch": 1, "past": (0, 40), "length": (1, 8), "total": "past + length"}
    session = InferenceSession(model, dimensions=bounds, cache=False)
    reference: Any = onnxruntime.InferenceSession(model)
    generator = np.random.default_rng(0)
    tables = [np.zeros((1, KEY_HEADS, 0, DEPTH), np.float32)] * 2
    for tokens in (5, 1, 1, 1):
        rows = generator.normal(size=(1, tokens, WIDTH)).astype(np.float32)
        mask = np.ones((1, tables[0].shape[2] + tokens), np.int64)
        inputs = {"qkv": rows, "past.k": tables[0], "past.v": tables[1], "mask": mask}
        found, wanted = session.run(None, inputs), reference.run(None, inputs)
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
        assert [np.shares_memory(*pair) for pair in zip(tables, found[1:], strict=True)] == [tables[0].size > 0] * 2
        tables = found[1:]
    with pytest.raises(InputError, match="past"):
        session.run(None, {**inputs, "mask": np.ones((1, 30), np.int64)})


@pytest.mark.parametrize("text", ["past +", "past + unknown", "total + 1", ""])
def test_expressions_of_unknown_dimensions_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match=f"dimension 'total' cannot be '{re.escape(text)}' long"):
        InferenceSession(query_attention(), dimensions={"past": (0, 40), "length": 1, "total": text}, cache=False)
