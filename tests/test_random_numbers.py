"""The generator of random bits: its published vectors, and the same bits from interpreter and machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from execute import Case, compile_module, module_of, runnable_targets
from gradients import Emit, differentiated, gradient_module
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import LessOp, MulOp, WhereOp
from glow_mlir.dialects.glow_high.random_numbers import WIDTH, WORDS, PhiloxOp
from glow_mlir.interpreter.machine import run_function

VECTORS = """
    00000000 00000000 00000000 00000000  00000000 00000000  6627e8d5 e169c58d bc57ac4c 9b00dbd8
    ffffffff ffffffff ffffffff ffffffff  ffffffff ffffffff  408f276d 41c83b0e a20bc7c6 6d5451fd
    243f6a88 85a308d3 13198a2e 03707344  a4093822 299f31d0  d16cfe09 94fdcceb 5001e420 24126ea1
"""
"""Counter, key and words of Philox4x32-10, from the file `kat_vectors` of the authors' library Random123."""

WORDS_OF_VECTORS = np.array([[int(word, 16) for word in row.split()] for row in VECTORS.strip().splitlines()], "u4")


def halves(first: int) -> np.ndarray:
    """Two columns of the vectors as one of 64 bits."""
    return np.ascontiguousarray(WORDS_OF_VECTORS[:, first : first + 2]).view("<i8")[:, 0]


def both(target: str, *operands: np.ndarray, **properties: Any) -> tuple[np.ndarray, np.ndarray]:
    """What machine code and the interpreter give."""
    module, inputs = module_of(Case(PhiloxOp, *operands, **properties))
    (expected,) = run_function(module.clone(), inputs).values()
    (found,) = compile_module(module, target).run(inputs).values()
    return found, expected


@pytest.mark.parametrize("word", range(WORDS))
@pytest.mark.parametrize("target", runnable_targets())
def test_published_vectors(word: int, target: str) -> None:
    for found in both(target, halves(0), halves(2), halves(4), word=word):
        np.testing.assert_array_equal(found, WORDS_OF_VECTORS[:, 6 + word])


@given(
    shape=st.lists(st.integers(1, 20), max_size=3),
    word=st.integers(0, WORDS - 1),
    bits=st.integers(1, WIDTH),
    seed=st.integers(0, 1 << 32),
)
@settings(deadline=None, max_examples=25)
def test_machine_code_gives_the_same_bits(shape: list[int], word: int, bits: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    operands = [random.integers(-(1 << 63), 1 << 63, sizes, np.int64) for sizes in (shape, (), ())]
    found, expected = both("host", *operands, word=word, bits=bits)
    np.testing.assert_array_equal(found, expected)
    assert found.max(initial=0) < 1 << bits


def test_bits_are_independent() -> None:
    """Each bit of words of neighbours is as often set as not, and differs from any other as often as not."""
    count = 1 << 14
    module, inputs = module_of(Case(PhiloxOp, np.arange(count), np.array(3), np.array(11)))
    (words,) = run_function(module, inputs).values()
    signs = np.unpackbits(words.view("u1").reshape(count, 4), axis=1) * 2.0 - 1
    most = 5.5 * count**0.5  # Standard deviations; there are some 1,600 sums.
    assert np.abs(signs.sum(axis=0)).max() < most
    products = signs.T @ signs
    assert np.abs(products - np.diag(np.diag(products))).max() < most
    assert np.abs(signs[1:].T @ signs[:-1]).max() < most


def test_gradient_of_a_mask() -> None:
    """That of what is dropped is 0, and that of the others the scale; bits have none."""
    scalars = {"stream": np.array(2), "key": np.array(3), "limit": np.array(1 << 31, np.uint32)}
    numbers = {"scale": np.array(2, np.float32), "zero": np.array(0, np.float32)}
    inputs = {"x": np.linspace(1, 2, 400, dtype=np.float32), "index": np.arange(400), **scalars, **numbers}

    def dropped(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        bits = emit(PhiloxOp, *(values[name] for name in ("index", "stream", "key")))
        scaled = emit(MulOp, values["x"], values["scale"])
        return emit(WhereOp, emit(LessOp, bits, values["limit"]), scaled, values["zero"])

    module = differentiated(gradient_module(dropped, inputs, ["x"]))
    expected = run_function(module, inputs)
    assert 150 < np.count_nonzero(expected["y"]) < 250
    np.testing.assert_array_equal(expected["dx"], np.where(expected["y"], np.float32(2), 0))
    found = compile_module(module).run(inputs)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
