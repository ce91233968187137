"""Every operator has a colour with a meaning, and colours can be told apart."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from glow_mlir.ir.universe import GLOW_UNIVERSE
from glow_mlir.pictures.colours import COLOURS, FAMILIES, OTHER, meaning_of

CONES = np.array([[0.31399, 0.63951, 0.0465], [0.15537, 0.75789, 0.08671], [0.01775, 0.10944, 0.87257]])
"""Linear RGB → what the eye's three kinds of cones see."""
BLIND = {
    "protanopia": [[0, 1.05118, -0.05116], [0, 1, 0], [0, 0, 1]],
    "deuteranopia": [[1, 0, 0], [0.9513, 0, 0.0487], [0, 0, 1]],
}
INK = "#1c2330"


def linear(colour: str) -> np.ndarray:
    """A colour in linear RGB, from 0 to 1."""
    values = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def test_every_operator_has_a_meaning() -> None:
    modules = {
        op.__module__.rpartition(".")[2]
        for name, dialect in GLOW_UNIVERSE.all_dialects.items()
        if name.startswith("glow")
        for op in dialect().operations
        if op.__module__.startswith("glow_mlir.")
    }
    assert {module for module in modules if meaning_of(module) == OTHER} == set()
    assert meaning_of("of_another_package") == OTHER
    assert {*FAMILIES, OTHER} == set(COLOURS)
    listed = [family for families in FAMILIES.values() for family in families]
    assert len(listed) == len(set(listed))


def test_colours_are_told_apart_and_letters_are_read_on_them() -> None:
    seen = {name: linear(colour) for name, colour in COLOURS.items()}
    for one, other in combinations(COLOURS, 2):
        assert np.abs(seen[one] - seen[other]).max() > 0.05, (one, other)
    for kind, matrix in BLIND.items():
        blind = {name: np.cbrt(np.linalg.inv(CONES) @ np.array(matrix) @ CONES @ rgb) for name, rgb in seen.items()}
        for one, other in combinations(COLOURS, 2):
            assert np.abs(blind[one] - blind[other]).max() > 0.02, (kind, one, other)
    for name, colour in COLOURS.items():
        assert (luminance(colour) + 0.05) / (luminance(INK) + 0.05) > 4.5, name
