"""Images of any size fill the input of a model: within a step of Pillow's pixels, by every tool that takes images."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT
from hypothesis import given
from hypothesis import strategies as st
from in_process import run_tool

from glow_mlir.errors import InputError
from glow_mlir.tools import glow_profile, glow_run
from glow_mlir.tools.inputs.image_sizes import image_size, resized
from glow_mlir.tools.inputs.images import Image, Normalization

DIGITS = str(ROOT / "examples" / "digits.onnx")
SIZES = st.integers(1, 40)


@given(SIZES, SIZES, SIZES, SIZES, st.sampled_from([1, 3]), st.integers(0, 99))
def test_pixels_are_those_of_pillow(rows: int, columns: int, height: int, width: int, channels: int, seed: int) -> None:
    pillow = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(seed).integers(0, 256, (rows, columns, channels), dtype=np.uint8)
    found = resized(pixels, "stretch", height, width)
    image = pillow.fromarray(pixels[:, :, 0] if channels == 1 else pixels)
    expected = np.asarray(image.resize((width, height), pillow.Resampling.BILINEAR)).reshape(found.shape)
    assert abs(found.astype(int) - expected).max() <= 2  # It rounds between rows and columns as well.


@given(SIZES, SIZES, SIZES, SIZES, st.sampled_from(["crop", 1, 16, 64]))
def test_crops_are_of_the_middle_and_of_the_sizes_that_are_wanted(
    rows: int, columns: int, height: int, width: int, how: str | int
) -> None:
    mirrored = np.minimum(np.arange(columns), np.arange(columns)[::-1])
    pixels = np.broadcast_to((mirrored * 5).astype(np.uint8)[None, :, None], (rows, columns, 1))
    found = resized(pixels, how, height, width)
    assert (found.shape, found.dtype) == ((height, width, 1), np.uint8)
    same = resized(pixels, how, rows, columns)
    if how in ("crop", 1):
        np.testing.assert_array_equal(same, pixels)


@pytest.mark.parametrize("text", ["crops", "0", "-3", "12.5", ""])
def test_a_size_is_a_word_or_a_number(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="expected stretch, crop or a number of pixels"):
        image_size(text)


def test_an_image_without_pixels_is_told(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((0, 4), np.uint8))
    with pytest.raises(InputError, match="cannot be resized: it has no pixels"):
        Normalization(size="crop").batch([Image(tmp_path / "x.npy")], (1, 1, 8, 8), np.dtype(np.float32))


@pytest.mark.parametrize("how", ["stretch", "crop", "12"])
def test_glow_run_takes_images_of_any_size(how: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).integers(0, 256, (21, 13), dtype=np.uint8))
    command = [DIGITS, "--bind", "N=1", "--backend", "interpreter", "--image", "x.npy"]
    refused = run_tool(glow_run.main, command, directory=tmp_path)
    assert refused.code == 1
    assert b"(hint: --image-size crop or stretch makes it so" in refused.stderr
    found = run_tool(glow_run.main, [*command, "--image-size", how], directory=tmp_path)
    assert (found.code, found.stderr) == (0, b"")


def test_glow_profile_takes_them_as_well(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    for width in (3, 8, 20):
        (tmp_path / "images" / f"{width}.pgm").write_bytes(b"P5 %d 5 255\n" % width + bytes(5 * width))
    command = [DIGITS, "--bind", "N=1", "--dataset", "images", "--image-size", "crop", "-o", "p.json"]
    found = run_tool(glow_profile.main, command, directory=tmp_path)
    assert (found.code, found.stderr) == (0, b"")
