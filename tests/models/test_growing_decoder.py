"""A decoder whose keys and values grow: one compilation makes token after token, as onnxruntime does."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from growing_decoder import FORMS, growing_decoder

from glow_mlir import InferenceSession


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
