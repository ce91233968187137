"""Caches in pages: bits of a row depend on nothing but the row, its keys and values, and state stays in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from breadth import examples
from execute import Case, module_of
from xdsl.dialects.builtin import ModuleOp

from glow_mlir import InferenceSession
from glow_mlir.api.model_session import ModelSession
from glow_mlir.dialects.glow_high.pages import PagedAttentionOp, WritePagesOp
from glow_mlir.errors import ExecutionError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

HEADS, QUERIES, DEPTH, BLOCK, ROWS = 2, 4, 8, 8, 64
LENGTHS = (150, 64, 7)
"""The tokens of sequences."""

COLUMNS = 20
"""The pages of a row of the table."""

STEP = """
glow_high.placeholder @keys : tensor<64x2x8x8xf16> {state}
glow_high.placeholder @values : tensor<64x2x8x8xf16> {state}
glow_high.placeholder @q : tensor<?x4x8xf32, ROWS> {input}
glow_high.placeholder @k : tensor<?x2x8xf32, ROWS> {input}
glow_high.placeholder @v : tensor<?x2x8xf32, ROWS> {input}
glow_high.placeholder @table : tensor<3x20xi64> {input}
glow_high.placeholder @sequences : tensor<?xi64, ROWS> {input}
glow_high.placeholder @positions : tensor<?xi64, ROWS> {input}
glow_high.placeholder @y : tensor<?x4x8xf32, ROWS> {output}
glow_high.func @step(@q, @k, @v, @table, @sequences, @positions, @keys, @values, @y) {
  %q = glow_high.get @q : tensor<?x4x8xf32, ROWS>
  %k = glow_high.get @k : tensor<?x2x8xf32, ROWS>
  %v = glow_high.get @v : tensor<?x2x8xf32, ROWS>
  %table = glow_high.get @table : tensor<3x20xi64>
  %sequences = glow_high.get @sequences : tensor<?xi64, ROWS>
  %positions = glow_high.get @positions : tensor<?xi64, ROWS>
  %keys = glow_high.get @keys {mutable} : tensor<64x2x8x8xf16>
  %values = glow_high.get @values {mutable} : tensor<64x2x8x8xf16>
  %0 = glow_high.write_pages %keys, %k, %table, %sequences, %positions {transposed = true} : tensor<64x2x8x8xf16>
  %1 = glow_high.write_pages %values, %v, %table, %sequences, %positions : tensor<64x2x8x8xf16>
  %2 = glow_high.paged_attention %q, %0, %1, %table, %sequences, %positions PROPERTIES : tensor<?x4x8xf32, ROWS>
  glow_high.save %0, @keys
  glow_high.save %1, @values
  glow_high.save %2, @y
}
"""


def step_module(properties: str) -> ModuleOp:
    """A function that writes rows to pages and attends to them."""
    text = STEP.replace("PROPERTIES", properties).replace("ROWS", f"#glow.sizes<[rows], rows = 1 to {ROWS}>")
    return parse_module(text, new_context())


def step(properties: str, **options: Any) -> InferenceSession:
    """A session for that, in chunks of 32 tokens."""
    return InferenceSession(step_module(properties), target="host,l1_bytes=4096", **options)


class Served:
    """Sequences of random tokens that a session computes by any schedule."""

    def __init__(self) -> None:
        generator = np.random.default_rng(0)
        self.tokens = [
            {
                name: generator.standard_normal((length, heads, DEPTH)).astype(np.float32)
                for name, heads in (("q", QUERIES), ("k", HEADS), ("v", HEADS))
            }
            for length in LENGTHS
        ]

    def run(self, session: InferenceSession, calls: list[list[tuple[int, int]]], pages: np.ndarray) -> list[np.ndarray]:
        """The results of all tokens, by sequence; a call has tokens as (sequence, position), -1 for padding."""
        results = [np.zeros((length, QUERIES, DEPTH), np.float32) for length in LENGTHS]
        for rows in calls:
            (found,) = session.run(None, self.inputs(rows, pages))
            for (sequence, position), result in zip(rows, found, strict=True):
                if position < 0:
                    assert not result.any()
                else:
                    results[sequence][position] = result
        return results

    def inputs(self, rows: list[tuple[int, int]], pages: np.ndarray) -> Mapping[str, np.ndarray]:
        """The inputs of a call."""
        sequences, positions = np.array(rows).T
        gathered = {name: np.stack([self.tokens[s][name][p] for s, p in rows]) for name in "qkv"}
        return {**gathered, "table": pages, "sequences": sequences, "positions": positions}


def one_by_one() -> list[list[tuple[int, int]]]:
    """Each token in a call of its own."""
    return [[(sequence, position)] for sequence, length in enumerate(LENGTHS) for position in range(length)]


def at_random(generator: np.random.Generator) -> list[list[tuple[int, int]]]:
    """Chunks of sequences, some together in one call, in any order, with padding between them."""
    calls: list[list[tuple[int, int]]] = []
    done = [0] * len(LENGTHS)
    while left := [sequence for sequence, length in enumerate(LENGTHS) if done[sequence] < length]:
        rows: list[tuple[int, int]] = []
        for sequence in generator.permutation(left)[: generator.integers(1, 4)]:
            wanted = (1, 7, 18, 64)[int(generator.integers(4))]
            count = min(wanted, ROWS - len(rows), LENGTHS[sequence] - done[sequence])
            rows += [(int(sequence), done[sequence] + number) for number in range(count)]
            done[sequence] += count
        rows += [(0, -1)] * int(generator.integers(0, min(3, ROWS - len(rows)) + 1))
        if generator.integers(2):
            rows = [rows[place] for place in generator.permutation(len(rows))]
        calls.append(rows)
    return calls


def pages_of(generator: np.random.Generator) -> np.ndarray:
    """A table in which no two sequences share a page."""
    return generator.permutation(64)[: 3 * COLUMNS].reshape(3, COLUMNS)


@pytest.mark.parametrize("properties", ["{scale = 0.5}", "{scale = 0.5, window = 37, softcap = 3.0}"])
@pytest.mark.parametrize("threads", [1, 2])
def test_bits_depend_on_the_row_alone(properties: str, threads: int) -> None:
    generator, served = np.random.default_rng(threads), Served()
    expected = served.run(step(properties, threads=1), one_by_one(), pages_of(generator))
    session = step(properties, threads=threads)
    for _ in range(examples(100)):
        found = served.run(session, at_random(generator), pages_of(generator))
        assert all(one.tobytes() == other.tobytes() for one, other in zip(expected, found, strict=True))


def test_results_are_those_of_the_interpreter() -> None:
    generator, served = np.random.default_rng(3), Served()
    calls, pages = at_random(generator)[:3], pages_of(generator)
    for properties in ("{scale = 0.5}", "{window = 37, softcap = 3.0}"):
        expected = served.run(step(properties, backend="interpreter"), calls, pages)
        found = served.run(step(properties, threads=1), calls, pages)
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_allclose(one, other, atol=2e-6)


def test_state_stays_in_its_place() -> None:
    """The code gets the memory of the state, and copies nothing (`eliminate-copies-state.mlir`)."""
    session, served = ModelSession.from_keywords(step_module(""), {"threads": 1}), Served()
    arrays, pages = session.loaded.state.arrays, pages_of(np.random.default_rng(0))
    before = {name: array.ctypes.data for name, array in arrays.items()}
    for rows in one_by_one()[:5]:
        session.run(served.inputs(rows, pages))
    assert {name: array.ctypes.data for name, array in arrays.items()} == before
    assert all(array.any() for array in arrays.values())


def test_tokens_behind_a_row_may_be_no_numbers() -> None:
    generator = np.random.default_rng(0)
    query = generator.standard_normal((3, QUERIES, DEPTH)).astype(np.float32)
    keys, values = (generator.standard_normal((4, HEADS, *shape)).astype(np.float16) for shape in ((8, 8), (8, 8)))
    table, sequences, positions = np.array([[2, 0, 1, 3]]), np.zeros(3, int), np.array([3, 4, 5])
    keys[2, :, :, 5:], values[2, :, 5:] = np.nan, np.inf
    module, inputs = module_of(Case(PagedAttentionOp, query, keys, values, table, sequences, positions))
    (found,) = InferenceSession(module, threads=1).run(None, inputs)
    assert np.isfinite(found[:2]).all()
    assert not np.isfinite(found[2]).any()


OUTSIDE = {
    "a page that is not there": {"table": np.array([[0, 9]]), "positions": np.array([8, 1])},
    "a negative page": {"table": np.array([[0, -1]]), "positions": np.array([8, 1])},
    "a position behind the table": {"positions": np.array([0, 16])},
    "a sequence that is not there": {"sequences": np.array([0, 1])},
    "a negative sequence": {"sequences": np.array([-1, 0])},
}
"""Inputs that are not those of a right call."""


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("wrong", OUTSIDE.values(), ids=OUTSIDE)
def test_places_outside_are_refused(wrong: Mapping[str, np.ndarray], backend: str) -> None:
    right = {"table": np.array([[0, 2]]), "sequences": np.array([0, 0]), "positions": np.array([0, 1])}
    keys, values = np.zeros((3, HEADS, DEPTH, 8), np.float16), np.zeros((3, HEADS, 8, DEPTH), np.float16)
    rows, query = np.zeros((2, HEADS, DEPTH), np.float32), np.zeros((2, QUERIES, DEPTH), np.float32)
    for operator, operands in ((WritePagesOp, (values, rows)), (PagedAttentionOp, (query, keys, values))):
        module, inputs = module_of(Case(operator, *operands, *{**right, **wrong}.values()))
        with pytest.raises(ExecutionError, match="an index is out of range"):
            InferenceSession(module, backend=backend).run(None, inputs)


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_a_row_behind_the_table_is_refused_behind_its_neighbour(backend: str) -> None:
    """Rows of neighbouring tokens are computed together, and the next page in memory is that of another sequence."""
    keys, values = np.ones((4, HEADS, DEPTH, 8), np.float16), np.ones((4, HEADS, 8, DEPTH), np.float16)
    table, query = np.array([[0, 1], [2, 3]]), np.ones((2, QUERIES, DEPTH), np.float32)
    case = Case(PagedAttentionOp, query, keys, values, table, np.array([0, 0]), np.array([15, 16]))
    module, inputs = module_of(case)
    with pytest.raises(ExecutionError, match="an index is out of range"):
        InferenceSession(module, backend=backend, threads=1).run(None, inputs)


def test_entries_that_no_row_needs_may_be_anything() -> None:
    table = np.array([[1, -1, 1 << 40]])
    keys, values = np.ones((3, HEADS, DEPTH, 8), np.float16), np.ones((3, HEADS, 8, DEPTH), np.float16)
    query = np.ones((2, QUERIES, DEPTH), np.float32)
    case = Case(PagedAttentionOp, query, keys, values, table, np.array([0, 77]), np.array([7, -1]))
    module, inputs = module_of(case)
    (found,) = InferenceSession(module, threads=1).run(None, inputs)
    np.testing.assert_array_equal(found[0], 1)
    np.testing.assert_array_equal(found[1], 0)
