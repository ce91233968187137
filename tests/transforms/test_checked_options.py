"""Options of passes that name a backend, a target or an accuracy, and those that are numbers of something."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.driver.pipelines import parse_pipeline
from glow_mlir.errors import OptionError
from glow_mlir.ir.universe import GLOW_UNIVERSE
from glow_mlir.transforms.checked_options import BackendPass

NAMES = ("backend", "target", "accuracy")

PASSES = {name: make() for name, make in GLOW_UNIVERSE.all_passes.items()}

OPTIONS = [
    (name, option)
    for name, item in PASSES.items()
    for option in NAMES
    if option in {field.name for field in dataclasses.fields(item)}
]


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_every_pass_refuses_an_unknown_name_where_it_has_nothing_to_do(name: str, option: str) -> None:
    options: Any = {option: "nope"}
    with pytest.raises(OptionError, match="'nope'") as caught:
        PASSES[name](**options).apply(Context(), ModuleOp([]))
    assert caught.value.hint.startswith("there are ")


def test_every_pass_for_a_backend_refuses_it_before_anything_runs() -> None:
    found: list[type[ModulePass]] = [item for item in PASSES.values() if issubclass(item, BackendPass)]
    assert {name for name, option in OPTIONS if option != "target"} == {item.name for item in found}


def test_an_error_about_an_option_is_no_bug_of_ours() -> None:
    with pytest.raises(OptionError) as caught:
        parse_pipeline("fuse-epilogues{accuracy=nope}")
    assert str(caught.value) == "no accuracy 'nope' (hint: there are default, strict)"


def test_a_cache_has_no_fewer_than_0_bytes() -> None:
    with pytest.raises(OptionError) as caught:
        parse_pipeline("tile-lines{cache=-5}")
    assert str(caught.value) == "cache=-5 is no number of bytes (hint: 0 tiles nothing)"
    assert parse_pipeline("tile-lines{cache=0}").passes
