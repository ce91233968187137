"""
A harder set of digits: turned, enlarged and placed anywhere in a noisy picture, among pieces of other digits.

Pictures are composed from scikit-learn's digits, those to learn from of the ones that `train_digits` trains with, those
held back of the ones that it tests with, as many as one wants (after the cluttered MNIST of Mnih et al., arXiv
1406.6247).
"""

from __future__ import annotations

import numpy as np
from train_digits import load

SIZE = 16
"""Rows and columns of a picture."""

DIGIT = 8
"""Rows and columns of a digit as scikit-learn has it."""

TURN = np.pi / 9
"""The largest angle by which a digit is turned, in radians."""

SCALES = (1.0, 1.5)
"""How much larger digits become, from and to."""

PIECES = 4
"""How many pieces of other digits are around."""

PIECE = 3
"""Rows and columns of a piece."""

NOISE = 0.05
"""The standard deviation of the noise, where a digit is 1."""


def training_set(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pictures to learn from, f32 [count, 1, 16, 16], and the digits in them."""
    images, labels, _, _ = load()
    return composed(images[:, 0], labels, count, rng)


def held_out_set(count: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """The same of digits that no picture of `training_set` has; always the same ones."""
    _, _, images, labels = load()
    return composed(images[:, 0], labels, count, np.random.default_rng(1))


def composed(
    images: np.ndarray, labels: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of digits drawn from `images` [N, 8, 8], and their labels."""
    chosen = rng.integers(len(images), size=count)
    pictures = placed(images[chosen], rng)
    for _ in range(PIECES):
        add_pieces(pictures, images, rng)
    pictures += (rng.standard_normal(pictures.shape) * NOISE).astype(np.float32)
    return pictures[:, None], labels[chosen]


def placed(digits: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each digit in a picture of its own, turned, enlarged and moved, by bilinear interpolation."""
    count = len(digits)
    angles, scales = rng.uniform(-TURN, TURN, count), rng.uniform(*SCALES, count)
    room = ((SIZE - DIGIT * scales) / 2).clip(0)
    centers = (SIZE - 1) / 2 + rng.uniform(-1, 1, (2, count)) * room
    rows, columns = (
        grid - center[:, None, None] for grid, center in zip(np.indices((SIZE, SIZE)), centers, strict=True)
    )
    cosines, sines = (f(angles)[:, None, None] / scales[:, None, None] for f in (np.cos, np.sin))
    middle = (DIGIT - 1) / 2
    return sampled(digits, rows * cosines - columns * sines + middle, rows * sines + columns * cosines + middle)


def sampled(images: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Each image at places between its pixels, one array of them for each; 0 outside."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    rows, columns = (np.clip(places + 1, 0, DIGIT + 1) for places in (rows, columns))
    above, left = (np.minimum(places.astype(np.int64), DIGIT) for places in (rows, columns))
    down, right = rows - above, columns - left
    image = np.arange(len(images))[:, None, None]
    upper = padded[image, above, left] * (1 - right) + padded[image, above, left + 1] * right
    lower = padded[image, above + 1, left] * (1 - right) + padded[image, above + 1, left + 1] * right
    return (upper * (1 - down) + lower * down).astype(np.float32)


def add_pieces(pictures: np.ndarray, images: np.ndarray, rng: np.random.Generator) -> None:
    """Put a piece of another digit into each picture, where that is brighter."""
    count = len(pictures)
    sources = rng.integers(len(images), size=count)
    here, there = rng.integers(SIZE - PIECE + 1, size=(2, count)), rng.integers(DIGIT - PIECE + 1, size=(2, count))
    for row in range(PIECE):
        for column in range(PIECE):
            places = (np.arange(count), here[0] + row, here[1] + column)
            pieces = images[sources, there[0] + row, there[1] + column]
            pictures[places] = np.maximum(pictures[places], pieces)
