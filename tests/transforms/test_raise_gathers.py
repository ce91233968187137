"""Tables whose rows are gathered stay in their narrow type in the constants of a compiled model."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from glow_mlir import InferenceSession

ROWS, COLUMNS = 20_003, 33

TYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "int8": np.int8,
    "uint8": np.uint8,
    "int16": np.int16,
}

RNG = np.random.default_rng(0)
COLUMN_SCALES = RNG.random(COLUMNS, np.float32) + 0.5
ROW_SCALES = RNG.random((ROWS, 1), np.float32) + 0.5

NODES: dict[str, list[Any]] = {
    "cast": [],
    "scale": [("Mul", "columns")],
    "chain": [("Mul", "columns"), ("Neg",), ("Mul", "rows"), ("Clip", "low", "high"), ("Add", "one")],
}


def model(kind: str, table: np.ndarray, indices: list[int | str]) -> bytes:
    """A gather of rows of a table that is cast, with the elementwise operators of a kind in between."""
    nodes = [helper.make_node("Cast", ["table"], ["v0"], to=TensorProto.FLOAT)]
    for number, (operator, *operands) in enumerate(NODES[kind]):
        nodes.append(helper.make_node(operator, [f"v{number}", *operands], [f"v{number + 1}"]))
    nodes.append(helper.make_node("Gather", [f"v{len(NODES[kind])}", "i"], ["y"]))
    given = {
        **{"table": table, "columns": COLUMN_SCALES, "rows": ROW_SCALES, "one": np.float32(1)},
        **{"low": np.float32(-20), "high": np.float32(30)},
    }
    weights = [numpy_helper.from_array(np.asarray(array), name) for name, array in given.items()]
    i = helper.make_tensor_value_info("i", TensorProto.INT64, indices)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [*indices, COLUMNS])
    graph = helper.make_graph(nodes, "rows", [i], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()


def expected(kind: str, table: np.ndarray) -> np.ndarray:
    """The table of a kind, as numpy computes it."""
    value = table.astype(np.float32)
    if kind != "cast":
        value = value * COLUMN_SCALES
    return np.clip(-value * ROW_SCALES, -20, 30) + np.float32(1) if kind == "chain" else value


@pytest.mark.parametrize("kind", NODES)
@pytest.mark.parametrize("type_", TYPES)
def test_tables_stay_in_their_narrow_type(type_: str, kind: str) -> None:
    table = RNG.integers(0, 60, (ROWS, COLUMNS)).astype(TYPES[type_])
    indices = RNG.integers(-ROWS, ROWS, (2, 5))
    session = InferenceSession(model(kind, table, [2, 5]), cache=False)
    np.testing.assert_array_equal(session.run(None, {"i": indices})[0], expected(kind, table)[indices])
    scales = ROW_SCALES.nbytes if kind == "chain" else 0
    assert session.machine_code.constants.nbytes < table.nbytes + scales + 8192


def test_any_number_of_rows_within_bounds() -> None:
    table = RNG.integers(0, 60, (ROWS, COLUMNS)).astype(np.float16)
    session = InferenceSession(model("chain", table, ["N"]), dimensions={"N": (0, 500)}, cache=False)
    for count in (0, 1, 7, 500):
        indices = RNG.integers(-ROWS, ROWS, count)
        np.testing.assert_array_equal(session.run(None, {"i": indices})[0], expected("chain", table)[indices])
    assert session.machine_code.constants.nbytes < table.nbytes + ROW_SCALES.nbytes + 8192
