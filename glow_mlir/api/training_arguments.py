"""Checks of the arguments of training sessions: targets, and misplaced optimizer keywords."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from glow_mlir.api.device_tensors import on_device
from glow_mlir.errors import InputError, KeywordError
from glow_mlir.runtime.device_array import DeviceArray
from glow_mlir.runtime.typed_arrays import as_typed
from glow_mlir.support.dtypes import is_plain
from glow_mlir.training.losses import Loss
from glow_mlir.training.optimizers import OPTIMIZERS, OTHER_NAMES


def check_options(names: Iterable[str]) -> None:
    """Raise `KeywordError` for keywords that belong to optimizers, including PyTorch's names for them."""
    taken = {field.name for kind in OPTIMIZERS.values() for field in fields(kind)}
    for name in names:
        if name in taken or name in OTHER_NAMES:
            own = "learning_rate" if name == "lr" else name
            hint = f"optimizer=glow_mlir.training.AdamW({own}=…)"
            raise KeywordError(f"TrainingSession has no keyword '{name}'", hint=hint)


def checked_targets(name: str, value: Any, dtype: np.dtype[Any], loss: Loss, shape: Sequence[int | str]) -> Any:
    """
    Check the targets for the loss of an output of shape `shape`; integers that fit are converted to `dtype`.

    Tensors on a device stay there, and are not checked. Raises `InputError` for invalid classes.
    """
    found = None if isinstance(value, np.ndarray) or is_plain(value) else on_device(value)
    if isinstance(found, DeviceArray):
        return found
    array = as_typed(f"input '{name}'", value if found is None else found, dtype)
    if array.dtype.kind not in "iub":
        return array
    if array.dtype.kind != "b" and (reason := loss.wrong_class(array, shape)):
        hint = "classes start at 0; only the ignore_index of the loss is excluded"
        raise InputError(f"input '{name}' {reason}", hint=hint)
    with np.errstate(over="ignore"):
        converted = array.astype(dtype)
    return converted if bool((converted == array).all()) else array
