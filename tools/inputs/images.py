"""Images as input of a model: read from files, scaled, normalized and brought into the model's layout."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.optional_packages import imported
from glow_mlir.tools.inputs.image_sizes import resized

MODES: dict[str, tuple[float, float]] = {
    "0to1": (1 / 255, 0.0),
    "neg1to1": (2 / 255, -1.0),
    "0to255": (1.0, 0.0),
    "neg128to127": (1.0, -128.0),
}
"""Value range, in Glow's terms → factor and summand that map 8-bit pixels to it."""

LAYOUTS: dict[str, tuple[int, int, int]] = {"NCHW": (2, 0, 1), "NHWC": (0, 1, 2)}
"""Layout of the input → order of the axes height, width and channel."""

_PNM_HEADER = re.compile(rb"P([56])\s(?:\s*#[^\n]*\n)*\s*(\d+)\s(?:\s*#[^\n]*\n)*\s*(\d+)\s(?:\s*#[^\n]*\n)*\s*(\d+)\s")


@dataclass(frozen=True)
class Normalization:
    """
    How pixels become numbers: mapped to the range `mode`, then for each channel `(pixel - mean) / stddev`.

    The default mode is 0 to 1 for float inputs, and the pixel itself for integer inputs.
    """

    layout: str = "NCHW"
    mode: str | None = None
    mean: tuple[float, ...] = (0.0,)
    stddev: tuple[float, ...] = (1.0,)
    size: str | int | None = None
    """How to resize images to the input (`image_sizes.resized`); `None` if they have the right size."""

    def batch(self, images: Sequence[Image], shape: Sequence[int | str], dtype: np.dtype) -> np.ndarray:
        """
        Stack the images into one input of this shape and type; raises `InputError` for an image that does not fit.
        """
        if len(shape) != 4:
            raise InputError(f"an image needs an input of 4 axes, and this one has {len(shape)}")
        sizes = dict(zip(self.layout, shape, strict=True))
        arrays = [self._one(image.pixels(sizes, self.size), dtype) for image in images]
        return np.ascontiguousarray(np.stack(arrays), dtype)

    def _one(self, pixels: np.ndarray, dtype: np.dtype) -> np.ndarray:
        factor, summand = MODES[self.mode or ("0to1" if dtype.kind == "f" else "0to255")]
        channels = pixels.shape[-1]
        for name, values in (("mean", self.mean), ("stddev", self.stddev)):
            if len(values) not in (1, channels):
                raise InputError(f"--{name} has {len(values)} numbers for {channels} channels")
        values = pixels.astype(np.float64) * factor + summand
        return ((values - self.mean) / self.stddev).transpose(LAYOUTS[self.layout])


class Image:
    """An image in a file: `.npy` of bytes, PGM, PPM, or any format of Pillow. It is read immediately."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.open("rb").close()
            self._content: Any = READERS.get(path.suffix.lower(), _read_with_pillow)(path)
        except InputError as error:
            error.file = str(path)
            raise
        except (OSError, ValueError, EOFError) as error:
            system = getattr(error, "strerror", None)
            reason = f"cannot be read: {system}" if system else f"is no image: {error}"
            raise InputError(" ".join(reason.split()), file=str(path)) from error

    def pixels(self, sizes: dict[str, int | str], size: str | int | None = None) -> np.ndarray:
        """
        The pixels as bytes [height, width, channels], resized to `sizes` according to `size`; raises `InputError` for
        other sizes.
        """
        content = self._content
        if hasattr(content, "convert"):
            content = content.convert("L" if sizes["C"] == 1 else "RGB")
        array: np.ndarray = np.asarray(content)
        if array.ndim == 2:
            array = array[:, :, None]
        if array.ndim != 3 or array.dtype != np.uint8:
            found = f"{array.dtype.name}{list(array.shape)}"
            raise InputError(f"an image is uint8[height, width, channels], not {found}", file=str(self.path))
        wanted = (sizes["H"], sizes["W"], sizes["C"])
        if size is not None and isinstance(wanted[0], int) and isinstance(wanted[1], int):
            array = self._resized(array, size, wanted[0], wanted[1])
        if array.shape != wanted:
            given, expected = (" × ".join(map(str, shape)) for shape in (array.shape, wanted))
            hint = "--image-size crop or stretch makes it so, or another --layout"
            raise InputError(
                f"the image has {given} pixels and channels, not {expected}", file=str(self.path), hint=hint
            )
        return array

    def _resized(self, array: np.ndarray, size: str | int, height: int, width: int) -> np.ndarray:
        try:
            return resized(array, size, height, width)
        except ValueError as error:
            raise InputError(f"the image cannot be resized: {error}", file=str(self.path)) from error


def _read_npy(path: Path) -> np.ndarray:
    return np.load(path, allow_pickle=False)


def _read_pnm(path: Path) -> np.ndarray:
    """The pixels of a binary PGM or PPM file with at most 8 bits."""
    data = path.read_bytes()
    header = _PNM_HEADER.match(data)
    if header is None:
        raise InputError("is no binary PGM or PPM file")
    kind, width, height, largest = (int(group) for group in header.groups())
    channels = 1 if kind == 5 else 3
    if not 0 < largest < 256:
        raise InputError(f"has {largest} levels, more than 8 bits")
    raw = np.frombuffer(data, np.uint8, offset=header.end())
    if raw.size < width * height * channels:
        raise InputError("is cut off")
    pixels = raw[: width * height * channels].reshape(height, width, channels)
    return (pixels.astype(np.uint16) * 255 // largest).astype(np.uint8)


def _read_with_pillow(path: Path) -> Any:
    """Read the image with Pillow."""
    needed, otherwise = "reading this kind of image takes Pillow", "convert the image to PPM, PGM or .npy"
    pillow = imported("PIL.Image", "images", needed, error=InputError, otherwise=otherwise)
    image = pillow.open(path)
    image.load()
    return image


READERS: dict[str, Callable[[Path], Any]] = {".npy": _read_npy, ".pgm": _read_pnm, ".ppm": _read_pnm}
"""Suffix of a file → its reader; Pillow reads all others."""
