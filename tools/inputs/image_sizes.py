"""Images of any size for a model of one: scaled by the triangle filter, as Pillow's and torchvision's, and cropped."""

from __future__ import annotations

import argparse

import numpy as np

STRETCH, CROP = "stretch", "crop"
"""Scaled to the sizes of the model, whatever the ratio; or so that it covers them, of which the middle is taken."""


def image_size(text: str) -> str | int:
    """The value of `--image-size`: `stretch`, `crop`, or how many pixels the shorter side gets before the crop."""
    if text in (STRETCH, CROP):
        return text
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"expected {STRETCH}, {CROP} or a number of pixels, got '{text}'")
    return int(text)


def resized(pixels: np.ndarray, how: str | int, height: int, width: int) -> np.ndarray:
    """
    An image [h, w, channels] of bytes as [height, width, channels].

    By a number, the shorter side has so many pixels before the middle is taken (torchvision's `Resize` and
    `CenterCrop`), and at least as many as the model wants. Raises `ValueError` for an image without pixels.
    """
    rows, columns, _ = pixels.shape
    if not rows or not columns:
        raise ValueError("it has no pixels")
    if how == STRETCH:
        return _scaled(pixels, height, width)
    scale = max(height / rows, width / columns)
    if isinstance(how, int):
        scale = max(scale, how / min(rows, columns))
    # Never less than the model wants, whatever the rounding.
    tall, wide = max(height, round(rows * scale)), max(width, round(columns * scale))
    top, left = (tall - height) // 2, (wide - width) // 2
    return _scaled(pixels, tall, wide)[top : top + height, left : left + width]


def _scaled(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    """An image with other numbers of rows and columns."""
    rows, columns, channels = pixels.shape
    if (rows, columns) == (height, width):
        return pixels
    wide = np.matmul(_weights(columns, width), pixels.astype(np.float32))  # A matrix of columns for each row.
    found = _weights(rows, height) @ wide.reshape(rows, width * channels)
    return np.clip(np.rint(found), 0, 255).astype(np.uint8).reshape(height, width, channels)


def _weights(given: int, wanted: int) -> np.ndarray:
    """
    What each of the `given` pixels of a line counts for each of those that are `wanted`, [wanted, given].

    Where a line becomes shorter, the triangle is as many pixels wider as one stands for: all of them count.
    """
    scale = given / wanted
    centers = (np.arange(wanted) + 0.5) * scale - 0.5
    distances = np.abs(np.arange(given) - centers[:, None]) / max(scale, 1.0)
    weights = np.maximum(1 - distances, 0)
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
