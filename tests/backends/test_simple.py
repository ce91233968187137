"""Backends that are a table of emitters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from glow_mlir import InferenceSession
from glow_mlir.backends.simple import Emitter, SimpleBackend
from glow_mlir.dialects.glow_high.activations import ReluOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.reductions import TopKOp
from glow_mlir.errors import UnsupportedOperatorsError
from glow_mlir.interpreter.semantics import apply_semantics
from glow_mlir.ir.registry import BACKENDS


@dataclass
class Steps:
    """A program: what each step computes of the values before it, and which of these are outputs."""

    steps: list[Callable[[Mapping[str, np.ndarray], list[Any]], Any]] = field(default_factory=list)
    outputs: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, step: Callable[[Mapping[str, np.ndarray], list[Any]], Any]) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def input(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
        return self.add(lambda inputs, values: inputs[name])

    def constant(self, array: np.ndarray) -> int:
        return self.add(lambda inputs, values: array)

    def output(self, name: str, value: int) -> None:
        self.outputs[name] = value


def emit(program: Steps, op: HighOp, operands: list[int]) -> int | tuple[int, ...]:
    """Emit what the interpreter computes."""
    whole = program.add(lambda inputs, values: apply_semantics(op, [values[number] for number in operands]))
    parts = [program.add(lambda inputs, values, at=at: values[whole][at]) for at in range(len(op.results))]
    return tuple(parts) if len(parts) > 1 else parts[0]


class Table(SimpleBackend):
    """A device with a few operators."""

    name = "table"
    EMITTERS: ClassVar[Mapping[type[HighOp], Emitter]] = dict.fromkeys((AddOp, MulOp, SubOp, ReluOp, TopKOp), emit)

    def begin(self, name: str) -> Steps:
        return Steps()

    def run(self, program: Steps, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        values: list[Any] = []
        for step in program.steps:
            values.append(step(inputs, values))
        return {name: np.array(values[number]) for name, number in program.outputs.items()}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The backend is known by its name."""
    made = Table()
    monkeypatch.setitem(BACKENDS.all(), "table", lambda: made)


def session_of(text: str, path: Path, **keywords: Any) -> InferenceSession:
    """The session of a module in text, of which the tests compare results."""
    file = path / "model.mlir"
    file.write_text(text)
    return InferenceSession(file, **(keywords or {"backend": "table"}))


STATE = """
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @sum : tensor<4xf32> {state, value = dense<1.0> : tensor<4xf32>}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.constant @w : tensor<4xf32> {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>}
glow_high.func @main(@x, @sum, @y) {
  %x = glow_high.get @x : tensor<4xf32>
  %sum = glow_high.get @sum {mutable} : tensor<4xf32>
  %w = glow_high.get @w : tensor<4xf32>
  %half = glow_high.splat {value = 0.5} : tensor<4xf32>
  %0 = glow_high.mul %x, %w : tensor<4xf32>
  %1 = glow_high.add %sum, %0 : tensor<4xf32>
  %2 = glow_high.mul %1, %half : tensor<4xf32>
  glow_high.save %1, @sum
  glow_high.save %2, @y
}
"""


def test_constants_splats_and_state(tmp_path: Path) -> None:
    session = session_of(STATE, tmp_path)
    x, total = np.ones(4, np.float32), np.ones(4, np.float32)
    for _ in range(3):
        total += x * np.arange(1, 5, dtype=np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], total / 2)


def test_several_results(tmp_path: Path) -> None:
    text = """
glow_high.func @main(%x: tensor<5xf32>) -> (tensor<2xf32>, tensor<2xi64>) {
  %values, %indices = glow_high.top_k %x {k = 2} : tensor<2xf32>, tensor<2xi64>
  glow_high.return %values, %indices
}
"""
    values, indices = session_of(text, tmp_path).run(None, {"x": np.array([3, 1, 4, 1, 5], np.float32)})
    assert list(values) == [5, 4]
    assert list(indices) == [4, 2]


WITH_LOOP = """
glow_high.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = glow_high.relu %x : tensor<4xf32>
  %e = glow_high.exp %r : tensor<4xf32>
  %y = glow_high.add %e, %r : tensor<4xf32>
  glow_high.return %y
}
"""


def test_what_is_not_in_the_table_is_an_error_or_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperatorsError, match=r"not supported by the backend 'table': glow_high\.exp"):
        session_of(WITH_LOOP, tmp_path)
    x = np.linspace(-1, 1, 4, dtype=np.float32)
    found = session_of(WITH_LOOP, tmp_path, devices="table,interpreter").run(None, {"x": x})[0]
    np.testing.assert_allclose(found, np.exp(np.maximum(x, 0)) + np.maximum(x, 0), rtol=1e-6)


def test_branches_are_an_error_or_elsewhere(tmp_path: Path) -> None:
    text = """
glow_high.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %r = glow_high.relu %x : tensor<4xf32>
  %y = glow_high.if %c {
    %0 = glow_high.add %r, %x : tensor<4xf32>
    glow_high.yield %0
  } else {
    glow_high.yield %r
  } : tensor<4xf32>
  glow_high.return %y
}
"""
    with pytest.raises(UnsupportedOperatorsError, match=r"not supported by the backend 'table': glow_high\.if"):
        session_of(text, tmp_path)
    session = session_of(text, tmp_path, devices="table,interpreter")
    x = np.array([-1, 2, -3, 4], np.float32)
    for condition, wanted in ((True, np.maximum(x, 0) + x), (False, np.maximum(x, 0))):
        np.testing.assert_array_equal(session.run(None, {"c": np.array(condition), "x": x})[0], wanted)
