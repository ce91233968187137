"""A short run takes one value of a parameter called `target`, which has to be a target like another."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from pathlib import Path

import breadth
import pytest
from breadth import TARGET, combinations
from checkout import ROOT

from glow_mlir.backends.interface import get_backend


def sole_parameters(path: Path) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    """The tests of a file with one `parametrize`: function, names and values."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef):
            continue
        calls = [call for call in node.decorator_list if isinstance(call, ast.Call)]
        found = [call for call in calls if ast.unparse(call.func) == "pytest.mark.parametrize"]
        if len(found) == 1:
            names, values = found[0].args[:2]
            yield node.name, names, values


def test_what_is_called_a_target_is_one() -> None:
    known, seen, others = {"host", *get_backend("cpu").targets()}, 0, list[str]()
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name, names, values in sole_parameters(path):
            if isinstance(names, ast.Constant) and names.value == TARGET and isinstance(values, ast.List):
                given = {item.value for item in values.elts if isinstance(item, ast.Constant)}
                seen += 1
                others += [f"{path.name}::{name}: {value}" for value in given - known]
    assert seen
    assert not others


@pytest.mark.parametrize("axes", [("abcde", "xy", "uv"), ("ab", "xy", "uv"), ("abc", "vwxyz"), ("abc",)])
def test_a_short_run_has_each_value_of_each_axis(axes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breadth, "_breadth", {"is_short": True})
    chosen = combinations(*axes)
    assert len(chosen) == max(map(len, axes))
    assert [set(values) for values in zip(*chosen, strict=True)] == [set(axis) for axis in axes]
    breadth.begin(is_short=False)
    assert combinations(*axes) == [*itertools.product(*axes)]
