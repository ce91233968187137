"""Generators of random bits of StableHLO, against bits that XLA gives."""

from __future__ import annotations

import numpy as np
import pytest
from stablehlo_programs import program, results_of, type_of

from glow_mlir import InferenceSession
from glow_mlir.frontends.stablehlo.model import StablehloModel

STATE = np.array([1 + (2 << 32), 3 + (4 << 32)], np.uint64)


def generated(algorithm: str, shape: tuple[int, ...], state: np.ndarray = STATE) -> tuple[np.ndarray, np.ndarray]:
    """The next state, and random bits."""
    bits = np.zeros(shape, np.uint32)
    body = f"""%s, %b = "stablehlo.rng_bit_generator"(%0) <{{rng_algorithm = #stablehlo<rng_algorithm {algorithm}>}}>
 : ({type_of(state)}) -> ({type_of(state)}, {type_of(bits)})"""
    (following,) = results_of(f"{body}\n%r = stablehlo.or %s, %s : {type_of(state)}", [state], [state])
    (found,) = results_of(f"{body}\n%r = stablehlo.or %b, %b : {type_of(bits)}", [state], [bits])
    return following, found


def test_philox_gives_the_bits_of_xla() -> None:
    following, bits = generated("PHILOX", (4,))
    assert bits.tolist() == [512747620, 1298009047, 1267190206, 761827841]
    assert following.tolist() == [STATE[0], STATE[1] + np.uint64(1)]
    np.testing.assert_array_equal(generated("DEFAULT", (4,))[1], bits)


def rotated(word: int, count: int) -> int:
    """A word of 32 bits rotated to the left."""
    return (word << count | word >> 32 - count) & 0xFFFFFFFF


def threefry(counter: tuple[int, int], key: tuple[int, int]) -> list[int]:
    """Threefry 2x32 with 20 rounds, by its definition."""
    keys = (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
    left, right = ((word + own) & 0xFFFFFFFF for word, own in zip(counter, key, strict=True))
    for group in range(5):
        for count in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            left = (left + right) & 0xFFFFFFFF
            right = rotated(right, count) ^ left
        left = (left + keys[(group + 1) % 3]) & 0xFFFFFFFF
        right = (right + keys[(group + 2) % 3] + group + 1) & 0xFFFFFFFF
    return [left, right]


def test_threefry_of_the_authors() -> None:
    assert threefry((0, 0), (0, 0)) == [0x6B200159, 0x99BA4EFE]


@pytest.mark.parametrize("shape", [(6,), (5,), (3, 4), (3, 5), ()])
def test_both_words_of_threefry_are_neighbours_along_an_even_axis(shape: tuple[int, ...]) -> None:
    _, bits = generated("THREE_FRY", shape)
    even = [axis for axis, size in enumerate(shape) if size % 2 == 0]
    axis = even[0] if even else int(np.argmax(shape)) if shape else 0
    half = tuple(-(-size // 2) if at == axis else size for at, size in enumerate(shape))
    count = int(np.prod(half))
    words = [threefry((3 + number, 4), (1, 2)) for number in range(count)]
    pairs = np.array(words, np.uint32).T.reshape(2, *half)
    expected = pairs[0] if not shape else np.stack([pairs[0], pairs[1]], axis + 1)
    whole = expected.reshape([2 * size if at == axis else size for at, size in enumerate(half)])
    np.testing.assert_array_equal(bits, whole[tuple(map(slice, shape))])


@pytest.mark.parametrize(("kind", "mean", "deviation"), [("UNIFORM", 3.5, 3 / 12**0.5), ("NORMAL", 2.0, 5.0)])
def test_draws_of_a_session_have_their_moments_and_differ(kind: str, mean: float, deviation: float) -> None:
    low, high = np.array(2, np.float32), np.array(5, np.float32)
    draws = np.zeros(4000, np.float32)
    body = f"""%s = stablehlo.constant dense<4000> : tensor<1xi64>
%r = "stablehlo.rng"(%0, %1, %s) <{{rng_distribution = #stablehlo<rng_distribution {kind}>}}>
 : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> {type_of(draws)}"""
    session = InferenceSession(StablehloModel(program(body, [low, high], [draws])), threads=1)
    feeds = dict(zip([item.name for item in session.get_inputs()], [low, high], strict=True))
    (first,), (second,) = session.run(None, feeds), session.run(None, feeds)
    assert abs(first.mean() - mean) < 0.05 * deviation + 0.1
    assert abs(first.std() - deviation) < 0.05 * deviation
    assert (first != second).any()
