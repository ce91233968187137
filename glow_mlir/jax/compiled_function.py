"""A function of JAX that this compiler has compiled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.frontends.stablehlo.node import parts_of_array
from glow_mlir.jax.lowering import Lowered, host_array, is_key
from glow_mlir.runtime.aligned_memory import ALIGNMENT, MIN_ALIGNED

if TYPE_CHECKING:
    from glow_mlir.api.onnxruntime.inference_session import InferenceSession


class CompiledFunction:
    """Call a compiled function with pytrees of arrays of JAX or numpy; results are arrays of JAX."""

    def __init__(self, lowered: Lowered, options: Mapping[str, Any]) -> None:
        from glow_mlir.api.onnxruntime.inference_session import InferenceSession

        self._lowered = lowered
        self.session: InferenceSession = InferenceSession(lowered.model, **options)
        """The session that computes; its inputs are the leaves of the arguments."""
        self._inputs = [item.name for item in self.session.get_inputs()]

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """
        Call the function.

        Raises `InputError` for arguments whose tree, shapes or element types are not those that it was compiled for,
        and for other values of static ones.
        """
        own = {name: value for name, value in keywords.items() if not self._is_static(name, value)}
        leaves, tree = jax.tree.flatten((arguments, own))
        if tree != self._lowered.arguments:
            hint = "call from_jax again with such arguments as examples"
            raise InputError(f"the arguments are {tree}, not {self._lowered.arguments}", hint=hint)
        items = zip(self._lowered.names, leaves, self._lowered.types, strict=True)
        arrays = [part for item in items for part in parts_of_array(_array(*item))]
        found = iter(self.session.run(None, dict(zip(self._inputs, arrays, strict=True))))
        results = [_result(found, element) for element in self._lowered.elements]
        return jax.tree.unflatten(self._lowered.results, results)

    def _is_static(self, name: str, value: Any) -> bool:
        """Whether the function was compiled for this value of an argument; raises `InputError` for another value."""
        static = self._lowered.static
        if name not in static:
            return False
        if static[name] is not value and static[name] != value:
            raise InputError(
                f"argument '{name}' is {value!r}, not {static[name]!r}", hint="call from_jax again for this value"
            )
        return True

    @cached_property
    def text(self) -> str:
        """The program in StableHLO."""
        return self._lowered.text


def _array(name: str, value: Any, expected: Any) -> np.ndarray:
    """
    The array of a leaf; Python's numbers get the element type that the program has.

    Raises `InputError` for another shape or element type, and for numbers that the element type does not have.
    """
    wanted = f"{expected.dtype}{list(expected.shape)}"
    if isinstance(value, jax.core.Tracer):
        hint = "compile the function that calls it instead"
        raise InputError(f"argument '{name}' is traced: jax.jit and jax.grad cannot see a compiled function", hint=hint)
    if not hasattr(value, "dtype"):
        return _of_number(name, value, expected, wanted)
    array = np.asarray(value) if value.dtype == expected.dtype else host_array(value)
    if array.shape != expected.shape or array.dtype != expected.dtype:
        raise InputError(
            f"argument '{name}' is {array.dtype}{list(array.shape)}, not {wanted}",
            hint="call from_jax again with such examples",
        )
    return array


def _of_number(name: str, value: Any, expected: Any, wanted: str) -> np.ndarray:
    """The array of a number of Python."""
    kind = next((kind for kind in _KINDS if isinstance(value, kind)), None)
    wider = [] if kind is None else [*_KINDS.values()][[*_KINDS].index(kind) :]
    if expected.shape or not any(jax.dtypes.issubdtype(expected.dtype, each) for each in wider):
        hint = "call from_jax again with such examples"
        raise InputError(f"argument '{name}' is of type {type(value).__name__}, not {wanted}", hint=hint)
    try:
        return np.asarray(value, expected.dtype)
    except OverflowError as error:
        raise InputError(f"argument '{name}' is {value}, which {expected.dtype} does not have") from error


_KINDS: Mapping[type, type[np.generic]] = {
    bool: np.bool_,
    int: np.integer,
    float: np.floating,
    complex: np.complexfloating,
}
"""Kind of Python's numbers → the element types for it; those behind it have its numbers too."""


def _result(parts: Iterator[np.ndarray], element: Any) -> jax.Array:
    """The next result: one array, two for complex numbers, or the data of keys of random numbers."""
    first = jax_array(next(parts))
    if is_key(element):
        return jax.random.wrap_key_data(first, impl=element._impl)
    if jax.dtypes.issubdtype(element, np.complexfloating):
        return jax.lax.complex(first, jax_array(next(parts)))
    return first


def jax_array(array: np.ndarray) -> jax.Array:
    """An array of JAX with the content of a result, whose memory it takes over where XLA's alignment allows that."""
    if array.nbytes >= MIN_ALIGNED and not array.ctypes.data % ALIGNMENT and array.dtype.isbuiltin == 1:
        return jax.dlpack.from_dlpack(array)
    return jax.numpy.asarray(array)
