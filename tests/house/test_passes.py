"""A pass is one word in three places: its name, its file, its FileCheck test."""

from __future__ import annotations

import re

import pytest
from checkout import ROOT
from filecheck_runner import filecheck_tests

from glow_mlir.ir.universe import OWN_PASSES

ROOMS = ("codegen", "conversion", "differentiation", "transforms")
PASSES = sorted(OWN_PASSES)
TESTS = {path.stem for path in filecheck_tests()}


@pytest.mark.parametrize("name", PASSES)
def test_pass_is_registered_under_its_own_name(name: str) -> None:
    assert OWN_PASSES[name]().name == name


@pytest.mark.parametrize("name", PASSES)
def test_file_of_a_pass_has_its_name(name: str) -> None:
    module = OWN_PASSES[name]().__module__
    assert module.startswith(tuple(f"glow_mlir.{room}." for room in ROOMS))
    assert module.rpartition(".")[2] == name.replace("-", "_")


@pytest.mark.parametrize("name", PASSES)
def test_pass_has_a_filecheck_test_of_its_name(name: str) -> None:
    assert {name, name.replace("-", "_")} & TESTS, f"tests/filecheck/**/{name}.mlir is missing"


def test_every_pass_is_registered() -> None:
    rooms = [ROOT / "glow_mlir" / room for room in ROOMS]
    sources = [path for room in rooms for path in room.glob("*.py")]
    found = {path.stem for path in sources if re.search(r"^class \w+Pass\(", path.read_text("utf-8"), re.MULTILINE)}
    assert found == {name.replace("-", "_") for name in PASSES}
