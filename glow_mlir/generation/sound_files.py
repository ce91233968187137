"""Sound from files, as mono samples."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np

from glow_mlir.errors import InputError

MAX_SECONDS = 24 * 3600
"""The longest sound, in seconds."""

MAX_WIDTH = 4
"""The bytes of a sample at most."""


def read_wave(path: str | Path, rate: int) -> np.ndarray:
    """
    The samples of a WAV file of PCM, as f32 from -1 to 1; several channels become their mean.

    Raises `InputError` for files that cannot be read, that have no samples, or another number
    of them a second than `rate`.
    """
    try:
        with wave.open(str(path), "rb") as file:
            channels, width, own, count = file.getparams()[:4]
            if own != rate:
                hint = f"convert it: ffmpeg -i {Path(path).name} -ar {rate} -ac 1 other.wav"
                raise InputError(f"has {own} samples a second, not {rate}", file=str(path), hint=hint)
            if width > MAX_WIDTH:
                raise wave.Error(f"its samples have {width} bytes each")
            data = file.readframes(min(count, MAX_SECONDS * rate + 1))
    except (OSError, ValueError, EOFError, wave.Error) as error:
        reason = (error.strerror if isinstance(error, OSError) else str(error)) or "is cut off"
        hint = f"it is a WAV file of PCM with {rate} samples a second: ffmpeg -i FILE -ar {rate} -ac 1 other.wav"
        raise InputError(f"cannot be read: {reason}", file=str(path), hint=hint) from error
    found = len(data) // (width * channels)
    if not 0 < found <= MAX_SECONDS * rate:
        reason = f"is longer than {MAX_SECONDS // 3600} hours" if found else "has no samples"
        raise InputError(reason, file=str(path))
    data = data[: found * width * channels]
    return _numbers(data, width).reshape(-1, channels).mean(1, dtype=np.float32)


def _numbers(data: bytes, width: int) -> np.ndarray:
    """Samples of `width` bytes as f32; those of one byte have no sign."""
    parts = np.frombuffer(data, np.uint8).reshape(-1, width)
    if width == 1:
        return (parts[:, 0].astype(np.float32) - 128) / 128
    # As the upper bytes of 32 bits, samples of all widths have the same range.
    wide = np.zeros((len(parts), 4), np.uint8)
    wide[:, 4 - width :] = parts
    return wide.view("<i4")[:, 0].astype(np.float32) / np.float32(2**31)
