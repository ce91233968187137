"""Operators of many operands: what is asked about each does not grow with their number."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx_models import model_of, node, value

from glow_mlir.analysis import accesses
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model


def sum_of(count: int) -> onnx.ModelProto:
    """A sum whose operands are few values, each of them many times."""
    kinds = ("Relu", "Neg", "Abs", "Sigmoid")
    nodes = [node(kind, "x", kind.lower()) for kind in kinds]
    return model_of([*nodes, node("Sum", " ".join(kinds[i % 4].lower() for i in range(count)))], [value("x")])


def test_questions_grow_as_operands_do(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = accesses.regions_overlap

    def counted(*regions: Any) -> bool:
        asked[-1] += 1
        return real(*regions)

    monkeypatch.setattr(accesses, "regions_overlap", counted)
    for operands in (150, 600):
        asked.append(0)
        Compilation(import_model(sum_of(operands)), backend="cpu").run("stacked")
    assert 0 < asked[1] < 5 * asked[0]
