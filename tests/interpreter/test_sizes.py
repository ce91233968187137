"""Sizes that are known at run time only: they are taken from inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glow_mlir import InferenceSession
from glow_mlir.errors import InputError
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module
from glow_mlir.support.symbols import Symbol, SymbolicSize, tell_symbols, wrong_size

BATCH = SymbolicSize.of(Symbol("batch", 1, 8))
LENGTH = SymbolicSize.of(Symbol("length", 0, 99))

TEXT = """
glow_high.placeholder @x : tensor<?x4xf32, #glow.sizes<[batch], batch = 1 to 8>> {input}
glow_high.placeholder @w : tensor<4x2xf32> {input}
glow_high.placeholder @y : tensor<?x2xf32, #glow.sizes<[batch * 2], batch = 1 to 8>> {output}
glow_high.func @main(@x, @w, @y) {
  %x = glow_high.get @x : tensor<?x4xf32, #glow.sizes<[batch], batch = 1 to 8>>
  %w = glow_high.get @w : tensor<4x2xf32>
  %0 = glow_high.matmul %x, %w : tensor<?x2xf32, #glow.sizes<[batch], batch = 1 to 8>>
  %1 = glow_high.concat %0, %0 {axis = 0} : tensor<?x2xf32, #glow.sizes<[batch * 2], batch = 1 to 8>>
  glow_high.save %1, @y
}
"""


def run(batch: int) -> np.ndarray:
    inputs = {"x": np.ones((batch, 4), np.float32), "w": np.ones((4, 2), np.float32)}
    return run_function(parse_module(TEXT, new_context(), "given.mlir"), inputs)["y"]


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_one_module_runs_with_any_size_within_its_bounds(batch: int) -> None:
    np.testing.assert_array_equal(run(batch), np.full((2 * batch, 2), 4.0))


MADE = """
glow_high.placeholder @x : tensor<?x2xf32, #glow.sizes<[batch], batch = 1 to 8>> {input}
glow_high.placeholder @y : tensor<?x2xf32, #glow.sizes<[batch], batch = 1 to 8>> {output}
glow_low.func @main(@x, @y) {
  %y = glow_low.weight @y {mutable} : memref<?x2xf32, #glow.sizes<[batch], batch = 1 to 8>>
  glow_low.splat @out %y {value = 0.5 : f32}
}
"""


@pytest.mark.parametrize("batch", [1, 8])
def test_an_instruction_that_reads_nothing_makes_as_much_as_there_is_room_for(batch: int) -> None:
    inputs = {"x": np.zeros((batch, 2), np.float32)}
    made = run_function(parse_module(MADE, new_context(), "given.mlir"), inputs)["y"]
    np.testing.assert_array_equal(made, np.full((batch, 2), 0.5))


@pytest.mark.parametrize("batch", [0, 9])
def test_bounds_are_checked_at_entry(batch: int) -> None:
    with pytest.raises(InputError, match=f"^input 'x': batch = {batch} is not in 1 to 8"):
        run(batch)


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_a_session_runs_with_any_size_within_its_bounds(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    session = InferenceSession(path, backend=backend)
    assert [argument.shape for argument in (*session.get_inputs(), *session.get_outputs())] == [
        ["batch", 4],
        [4, 2],
        ["batch * 2", 2],
    ]
    for batch in (1, 8, 3):
        inputs = {"x": np.ones((batch, 4), np.float32), "w": np.ones((4, 2), np.float32)}
        (y,) = session.run(None, inputs)
        np.testing.assert_array_equal(y, np.full((2 * batch, 2), 4.0))
    with pytest.raises(InputError, match=r"^input 'x': batch = 9 is not in 1 to 8"):
        session.run(None, {**inputs, "x": np.ones((9, 4), np.float32)})
    with pytest.raises(InputError, match=r"^input 'x' must be float32\[batch, 4\], not float32\[3, 5\]"):
        session.run(None, {**inputs, "x": np.ones((3, 5), np.float32)})


def test_sums_and_multiples_of_symbols() -> None:
    size = 2 * (BATCH + 3) + LENGTH + BATCH
    assert not isinstance(size, int)
    assert str(size) == "batch * 3 + length + 6"
    assert size == BATCH * 3 + (LENGTH + 6)
    assert (size.at({"batch": 2, "length": 5}), size.most) == (17, 129)


def test_symbols_follow_from_shapes() -> None:
    values: dict[str, int] = {}
    sizes = (BATCH + LENGTH, 5, BATCH * 2)
    tell_symbols(zip(sizes, (10, 5, 6), strict=True), values)
    assert values == {"batch": 3, "length": 7}
    assert wrong_size(sizes, (10, 5, 6), values) == ""
    assert wrong_size((BATCH,), (4,), values) == "axis 0 is 4 long, not batch with batch = 3"
    assert wrong_size((BATCH * 2,), (7,), values) == "axis 0 is 7 long, not batch * 2 with batch = 3"
    assert wrong_size((5,), (6,), values) == "axis 0 is 6 long, not 5"
    assert wrong_size((BATCH + LENGTH,), (6,), {}).endswith("with batch = unknown, length = unknown")
