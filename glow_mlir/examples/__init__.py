"""Models that come with the package, so that there is one at hand: `python -m glow_mlir.examples` writes them."""

from __future__ import annotations

from importlib.resources import files

EXAMPLES = {
    "digits.onnx": "a trained network for digits: image float32[N, 1, 8, 8] to probabilities float32[N, 10]",
}
"""File → what it is."""


def example(name: str) -> bytes:
    """The bytes of an example, one of `EXAMPLES`."""
    return files(__name__).joinpath(name).read_bytes()
