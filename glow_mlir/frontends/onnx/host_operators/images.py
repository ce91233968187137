"""ONNX's ImageDecoder, implemented with Pillow (the extra `glow-mlir[images]`)."""

from __future__ import annotations

import io

import numpy as np

from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.onnx.host_operators.registry import Attributes
from glow_mlir.support.optional_packages import imported

_MODES = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}
"""Pixel format → Pillow's mode, from which it is computed."""


def image_decoder(attributes: Attributes, data: np.ndarray) -> np.ndarray:
    """The pixels of an encoded image, a vector of bytes, as uint8 [height, width, channels]."""
    pillow = imported("PIL.Image", "images", "ImageDecoder needs Pillow", error=UnsupportedError)
    format_ = attributes.text("pixel_format", "RGB")
    if format_ not in _MODES:
        raise attributes.wrong(f"pixel_format is '{format_}'", f"it is {', '.join(_MODES)}")
    try:
        with pillow.open(io.BytesIO(np.ascontiguousarray(data, np.uint8).tobytes())) as image:
            pixels = np.asarray(image.convert(_MODES[format_]))
    except (OSError, SyntaxError, pillow.DecompressionBombError) as error:
        raise attributes.failed(f"the bytes are not an image: {error}", "pass a complete image file") from error
    if format_ == "BGR":
        pixels = pixels[..., ::-1]
    return np.ascontiguousarray(pixels.reshape(*pixels.shape[:2], -1))
