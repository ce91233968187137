"""A pass is one word in three places: its name, its file, its FileCheck test."""

from __future__ import annotations

import re

from checkout import ROOT
from filecheck_runner import filecheck_tests

from glow_mlir.ir.universe import OWN_PASSES

ROOMS = ("codegen", "conversion", "differentiation", "transforms")
PASSES = sorted(OWN_PASSES)
TESTS = {path.stem for path in filecheck_tests()}


def test_passes_are_registered_under_their_own_names() -> None:
    assert not [name for name in PASSES if OWN_PASSES[name]().name != name]


def test_file_of_a_pass_has_its_name() -> None:
    rooms = tuple(f"glow_mlir.{room}." for room in ROOMS)
    modules = {name: OWN_PASSES[name]().__module__ for name in PASSES}
    assert not [module for module in modules.values() if not module.startswith(rooms)]
    assert not {name: of for name, of in modules.items() if of.rpartition(".")[2] != name.replace("-", "_")}


def test_passes_have_a_filecheck_test_of_their_name() -> None:
    assert not [name for name in PASSES if not {name, name.replace("-", "_")} & TESTS]


def test_every_pass_is_registered() -> None:
    rooms = [ROOT / "glow_mlir" / room for room in ROOMS]
    sources = [path for room in rooms for path in room.rglob("*.py")]
    found = {path.stem for path in sources if re.search(r"^class \w+Pass\(", path.read_text("utf-8"), re.MULTILINE)}
    assert found == {name.replace("-", "_") for name in PASSES}
