"""Resize images to the model's input size: the triangle filter of Pillow and torchvision, and crops."""

from __future__ import annotations

import argparse

import numpy as np

STRETCH, CROP = "stretch", "crop"
"""Modes: stretch to the model's size, or scale to cover it and take the middle."""


def image_size(text: str) -> str | int:
    """Parse the value of `--image-size`: `stretch`, `crop`, or the pixels of the shorter side before the crop."""
    if text in (STRETCH, CROP):
        return text
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"expected {STRETCH}, {CROP} or a number of pixels, got '{text}'")
    return int(text)


def resized(pixels: np.ndarray, how: str | int, height: int, width: int) -> np.ndarray:
    """
    Resize an image [h, w, channels] of bytes to [height, width, channels].

    If `how` is a number, scale the shorter side to that many pixels (at least as many as the model needs), then take
    the middle, like torchvision's `Resize` and `CenterCrop`. Raises `ValueError` for an image without pixels.
    """
    rows, columns, _ = pixels.shape
    if not rows or not columns:
        raise ValueError("it has no pixels")
    if how == STRETCH:
        return _scaled(pixels, height, width)
    scale = max(height / rows, width / columns)
    if isinstance(how, int):
        scale = max(scale, how / min(rows, columns))
    # At least the model's size, despite rounding.
    tall, wide = max(height, round(rows * scale)), max(width, round(columns * scale))
    top, left = (tall - height) // 2, (wide - width) // 2
    return _scaled(pixels, tall, wide)[top : top + height, left : left + width]


def _scaled(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    """Scale an image to other numbers of rows and columns."""
    rows, columns, channels = pixels.shape
    if (rows, columns) == (height, width):
        return pixels
    wide = np.matmul(_weights(columns, width), pixels.astype(np.float32))  # For each row, a matrix of its columns.
    found = _weights(rows, height) @ wide.reshape(rows, width * channels)
    return np.clip(np.rint(found), 0, 255).astype(np.uint8).reshape(height, width, channels)


def _weights(given: int, wanted: int) -> np.ndarray:
    """
    The weights of the `given` pixels of a line for each of the `wanted` pixels, [wanted, given].

    When a line shrinks, the triangle grows by the same factor, so that every input pixel counts.
    """
    scale = given / wanted
    centers = (np.arange(wanted) + 0.5) * scale - 0.5
    distances = np.abs(np.arange(given) - centers[:, None]) / max(scale, 1.0)
    weights = np.maximum(1 - distances, 0)
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
