"""Products of one matrix with batches of few rows take the batch for the rows, with the bits of every row alone."""

from __future__ import annotations

import numpy as np
import pytest
from models import GraphBuilder
from onnx import TensorProto

from glow_mlir import InferenceSession

SHAPES = {
    "as rows": (2, 9, 24, 20),
    "of three": (3, 11, 2, 24, 70),
    "of one row": (1, 7, 24, 33),
    "none": (2, 0, 24, 20),
}
"""Name → sizes of rows and batches, depth and columns."""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("target", ["avx512", "avx2", "host"])
@pytest.mark.parametrize("name", SHAPES)
def test_batches_of_few_rows_have_the_bits_of_each_row(name: str, target: str, threads: int):
    *sizes, depth, columns = SHAPES[name]
    g = GraphBuilder(0)
    # The batch is transposed: its rows are not evenly spaced, and the product is added to what has rows of its own.
    x = g.node("Transpose", "x", perm=[1, 0, *range(2, len(sizes) + 1)])
    y = g.node("Add", g.node("MatMul", x, "w"), "residual")
    rows = [sizes[1], sizes[0], *sizes[2:]]
    shapes = {"x": [*sizes, depth], "w": [depth, columns], "residual": [*rows, columns]}
    model = g.model({key: (int(TensorProto.FLOAT), shape) for key, shape in shapes.items()}, {y: shapes["residual"]})
    chosen = None if target == "host" else target
    session = InferenceSession(model.SerializeToString(), cache=False, threads=threads, target=chosen)
    rng = np.random.default_rng(0)
    values = {key: rng.standard_normal(shape).astype(np.float32) for key, shape in shapes.items()}
    (found,) = session.run(None, values)
    plain = np.swapaxes(values["x"], 0, 1) @ values["w"] + values["residual"]
    np.testing.assert_allclose(found, plain, rtol=1e-5, atol=1e-5)
    once = {**values, "x": np.broadcast_to(values["x"][:1], values["x"].shape)}
    once["residual"] = np.zeros_like(values["residual"])
    (found,) = session.run(None, once)
    if found.size:
        assert (found == found[:, :1]).all()
