"""Text that is well formed and still cannot be read: too large, or nested too deep."""

from __future__ import annotations

import pytest

from glow_mlir.errors import OutOfMemoryError, ParseFailure
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module


def test_a_constant_that_no_memory_holds_is_told_with_its_size() -> None:
    text = "\nglow_high.constant @c : tensor<2xf32> {value = dense<1.0> : tensor<99999999999999xf32>}"
    with pytest.raises(OutOfMemoryError) as caught:
        parse_module(text, new_context(), "x.mlir")
    assert caught.value.file.startswith("x.mlir:2:")
    assert caught.value.reason == "there is too little memory for a value of 'tensor<99999999999999xf32>'"
    assert caught.value.hint


def test_regions_that_are_nested_too_deep_are_told_in_words() -> None:
    with pytest.raises(ParseFailure) as caught:
        parse_module("module {" * 3000 + "}" * 3000, new_context(), "x.mlir")
    assert caught.value.file.startswith("x.mlir:1:")
    assert caught.value.reason == "the text is nested too deep"
    assert caught.value.hint
