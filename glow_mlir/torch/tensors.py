"""Tensors of PyTorch as arrays of numpy, and the reverse, without copies."""

from __future__ import annotations

import numpy as np
import torch

from glow_mlir.support.dtypes import named_dtype

_SAME_BITS: dict[torch.dtype, torch.dtype] = {
    torch.bfloat16: torch.int16,
    torch.float8_e4m3fn: torch.uint8,
    torch.float8_e4m3fnuz: torch.uint8,
    torch.float8_e5m2: torch.uint8,
    torch.float8_e5m2fnuz: torch.uint8,
}
"""Types that numpy lacks → those of numpy in which they are handed over."""


def array_of(tensor: torch.Tensor, order: tuple[int, ...] | None = None) -> np.ndarray:
    """The elements of a tensor, which shares them where it has no gaps, with its axes in another order."""
    found = tensor.detach()
    if order is not None:
        found = found.permute(order)
    if found.is_neg():
        found = found.resolve_neg()
    if (other := _SAME_BITS.get(found.dtype)) is None:
        return found.numpy()
    name = str(found.dtype).removeprefix("torch.")
    return found.view(other).numpy().view(named_dtype(name))


def tensor_of(array: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    """A tensor that shares the elements of an array."""
    if (other := _SAME_BITS.get(dtype)) is None:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.int16 if other is torch.int16 else np.uint8)).view(dtype)


def dtype_named(name: str) -> torch.dtype:
    """The dtype of PyTorch of that name."""
    found = getattr(torch, name)
    assert isinstance(found, torch.dtype)
    return found
