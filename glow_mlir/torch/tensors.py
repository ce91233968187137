"""Convert PyTorch tensors to numpy arrays and back, without copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch

from glow_mlir.frontends.torch.layouts import memory_order
from glow_mlir.support.dtypes import named_dtype

HOST = torch.empty(0).device.type
"""The device type of host memory."""

_SAME_BITS: dict[torch.dtype, torch.dtype] = {
    torch.bfloat16: torch.int16,
    torch.float8_e4m3fn: torch.uint8,
    torch.float8_e4m3fnuz: torch.uint8,
    torch.float8_e5m2: torch.uint8,
    torch.float8_e5m2fnuz: torch.uint8,
}
"""dtypes that numpy lacks → numpy dtypes used in their place."""


def array_of(tensor: torch.Tensor, order: tuple[int, ...] | None = None) -> np.ndarray:
    """The elements of a tensor with permuted axes; they share its memory unless it has gaps."""
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
    """A tensor that shares the memory of an array."""
    if (other := _SAME_BITS.get(dtype)) is None:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.int16 if other is torch.int16 else np.uint8)).view(dtype)


def in_strides(tensor: torch.Tensor, sizes: Sequence[int], strides: Sequence[int]) -> torch.Tensor:
    """Give a tensor without gaps these sizes and strides; copy it if the strides have gaps or overlap."""
    if memory_order(sizes, strides) is not None:
        return tensor.as_strided(sizes, strides)
    extent = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    positions = torch.arange(extent, device=HOST).as_strided(sizes, strides).reshape(-1)
    return tensor.new_zeros(extent).index_copy_(0, positions, tensor.reshape(-1)).as_strided(sizes, strides)


def listed(value: Any) -> list[Any]:
    """The elements of a tuple or list, or a list of a single other value."""
    return list(cast("Sequence[Any]", value)) if isinstance(value, tuple | list) else [value]


def dtype_named(name: str) -> torch.dtype:
    """The PyTorch dtype with a name."""
    found = getattr(torch, name)
    assert isinstance(found, torch.dtype)
    return found
