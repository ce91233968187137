"""A function of JAX that this compiler has compiled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.frontends.stablehlo.node import parts_of_array
from glow_mlir.jax.lowering import Lowered, host_array
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
        self._names = [item.name for item in self.session.get_inputs()]
        self._counts = [2 if item.dtype.kind == "c" else 1 for item in lowered.types]
        """The number of inputs of each leaf: complex numbers are two."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """
        Call the function.

        Raises `InputError` for arguments whose tree, shapes or element types are not those that it was compiled for.
        """
        own = {name: value for name, value in keywords.items() if name not in self._lowered.static}
        leaves, tree = jax.tree.flatten((arguments, own))
        if tree != self._lowered.arguments:
            hint = "call from_jax again with such arguments as examples"
            raise InputError(f"the arguments are {tree}, not {self._lowered.arguments}", hint=hint)
        names = iter(self._names)
        feeds: dict[str, np.ndarray] = {}
        for count, leaf, expected in zip(self._counts, leaves, self._lowered.types, strict=True):
            own = [next(names) for _ in range(count)]
            feeds.update(zip(own, parts_of_array(self._array(own[0], leaf, expected)), strict=True))
        results = iter(self.session.run(None, feeds))
        return jax.tree.unflatten(
            self._lowered.results, [_result(results, each) for each in self._lowered.result_types]
        )

    def _array(self, name: str, value: Any, expected: Any) -> np.ndarray:
        """The array of a leaf; Python's numbers get the element type that the program has."""
        array = np.asarray(value) if getattr(value, "dtype", None) == expected.dtype else host_array(value)
        if array.dtype != expected.dtype and not hasattr(value, "dtype"):
            array = array.astype(expected.dtype)
        if array.shape != expected.shape or array.dtype != expected.dtype:
            found, wanted = f"{array.dtype}{list(array.shape)}", f"{expected.dtype}{list(expected.shape)}"
            raise InputError(
                f"argument '{name}' is {found}, not {wanted}", hint="call from_jax again with such examples"
            )
        return array

    @cached_property
    def text(self) -> str:
        """The program in StableHLO."""
        return self._lowered.text


def _result(arrays: Iterator[np.ndarray], element: Any) -> jax.Array:
    """The next leaf of the results: that of complex numbers has two arrays; that of random keys is their data."""
    array = next(arrays)
    if isinstance(element, str):
        return jax.random.wrap_key_data(jax_array(array), impl=element)
    if element.kind != "c":
        return jax_array(array)
    whole = np.empty(array.shape, element)
    whole.real, whole.imag = array, next(arrays)
    return jax_array(whole)


def jax_array(array: np.ndarray) -> jax.Array:
    """An array of JAX with the content of a result, whose memory it takes over where XLA's alignment allows that."""
    if array.nbytes >= MIN_ALIGNED and not array.ctypes.data % ALIGNMENT and array.dtype.isbuiltin == 1:
        return jax.dlpack.from_dlpack(array)
    return jax.numpy.asarray(array)
