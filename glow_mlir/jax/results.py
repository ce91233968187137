"""Results of calls as arrays of JAX, and donated arrays of JAX, whose memory results take."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, cast

import jax
import numpy as np
from jax.core import Tracer

from glow_mlir.api.onnxruntime.devices import CPU
from glow_mlir.jax.lowering import is_key
from glow_mlir.runtime.aligned_memory import ALIGNMENT, MIN_ALIGNED


def jax_array(array: np.ndarray, info: Any) -> jax.Array:
    """
    A result as an array of JAX, which takes over its memory where XLA's alignment allows that.

    `info` says of the result what its array does not: whether its type is weak, and whether it is of keys.
    """
    dtype = info.dtype
    if is_key(dtype):
        kind: Any = jax.random.key_impl(jax.numpy.empty(0, dtype))
        return cast("jax.Array", jax.random.wrap_key_data(jax.numpy.asarray(array), impl=kind))
    with _wide() if dtype.itemsize >= WIDE and dtype.kind in "iufc" else contextlib.nullcontext():
        if info.weak_type and not array.shape:
            found: jax.Array = jax.numpy.asarray(array.item())
            return found if found.dtype == dtype else jax.numpy.asarray(array)
        if array.nbytes >= MIN_ALIGNED and not array.ctypes.data % ALIGNMENT and array.dtype.isbuiltin == 1:
            return cast("jax.Array", jax.dlpack.from_dlpack(array))
        return jax.numpy.asarray(array)


def _itself(value: Any) -> Any:
    return value


WIDE = 8
"""The bytes of element types that JAX has only where its option `jax_enable_x64` is set, and of the complex ones."""


def _wide() -> AbstractContextManager[Any]:
    """The context in which arrays keep 64 bits."""
    home: Any = jax if hasattr(jax, "enable_x64") else import_module("jax.experimental")
    return home.enable_x64(True)


def is_deleted(value: Any) -> bool:
    """Whether a leaf of an argument is an array that was deleted, or donated to another call."""
    return isinstance(value, jax.Array) and value.is_deleted()


def is_donatable(value: Any, expected: jax.ShapeDtypeStruct) -> bool:
    """Whether a leaf of an argument is an array of this type, in this process's memory, that a call can take over."""
    if not isinstance(value, jax.Array) or isinstance(value, Tracer) or is_deleted(value):
        return False
    fits = value.shape == expected.shape and value.dtype == expected.dtype
    return fits and all(device.platform == CPU for device in value.devices())


taken: Callable[[jax.Array], jax.Array] = jax.jit(_itself, donate_argnums=0, keep_unused=True)
"""
An array that is given up, as a new one that nothing else refers to.

It has the same memory, unless that belongs to others or has views: JAX copies it then.
"""


def memory_of(value: jax.Array) -> np.ndarray:
    """The memory of an array that nothing else refers to, to write to as long as `value` lives."""
    value.block_until_ready()
    memory = (ctypes.c_char * value.nbytes).from_address(value.unsafe_buffer_pointer())
    return np.frombuffer(memoryview(memory), value.dtype).reshape(value.shape)
