"""A function of JAX that this compiler has compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import jax
import numpy as np
from jax.core import Tracer

from glow_mlir.errors import InputError
from glow_mlir.frontends.stablehlo.node import complex_array, parts_of_array
from glow_mlir.jax.lowering import Lowered, host_array
from glow_mlir.jax.results import is_deleted, is_donatable, jax_array, memory_of, taken
from glow_mlir.jax.xla_program import XlaProgram, xla_program
from glow_mlir.runtime.aligned_memory import MIN_ALIGNED

if TYPE_CHECKING:
    from glow_mlir.api.onnxruntime.inference_session import InferenceSession

_NOTHING = np.empty(0, np.float32)
"""In place of an array that is known later."""

NO_KEYWORDS: dict[str, Any] = {}
"""The arguments by name of a call that has none."""

HINT = "call from_jax again with such arguments as examples"
"""What to do about arguments that a compiled function does not take."""


class CompiledFunction:
    """Call a compiled function with pytrees of arrays of JAX or numpy; results are arrays of JAX."""

    def __init__(self, lowered: Lowered, options: Mapping[str, Any]) -> None:
        from glow_mlir.api.onnxruntime.inference_session import InferenceSession

        self._lowered = lowered
        self.session: InferenceSession = InferenceSession(lowered.model, **options)
        """The session that computes; its inputs are the leaves of the arguments."""
        self._inputs = [item.name for item in self.session.get_inputs()]
        self._outputs = [item.name for item in self.session.get_outputs()]
        self._replacing = self._replaced_inputs()
        self._has_run = False

    def __call__(self, /, *arguments: Any, **keywords: Any) -> Any:
        """
        Call the function.

        Raises `InputError` for arguments whose tree, shapes or element types are not those that it was compiled for.
        """
        lowered = self._lowered
        is_plain = not keywords and not lowered.parameters.static
        positional, named = (arguments, NO_KEYWORDS) if is_plain else self._dynamic(arguments, keywords)
        program = self._program if self._has_run else None  # XLA compiles it, which one call does not pay for.
        if program is not None and (found := program(positional, named)) is not None:
            return found[0]
        leaves, tree = cast("tuple[list[Any], Any]", jax.tree.flatten((positional, named)))
        if tree != lowered.arguments:
            raise InputError(f"the arguments are {_tree(tree)}, not {_tree(lowered.arguments)}", hint=HINT)
        kept = self._kept(leaves)
        arrays: list[np.ndarray] = []
        for number, item in enumerate(zip(lowered.names, leaves, lowered.types, strict=True)):
            # A view of an array that is given up would make JAX copy it.
            arrays += [_NOTHING] if number in kept.values() else parts_of_array(_array(*item))
        results = self._results(dict(zip(self._inputs, arrays, strict=True)), leaves, kept)
        for number in lowered.donated:
            if isinstance(leaves[number], jax.Array):
                leaves[number].delete()
        self._has_run = True
        return jax.tree.unflatten(lowered.results, results)

    @cached_property
    def _program(self) -> XlaProgram | None:
        """The program that XLA calls, if it can."""
        return xla_program(self.session.executable.entry(), self._lowered, self._replacing)

    def _kept(self, leaves: Sequence[Any]) -> Mapping[str, int]:
        """The outputs that take the memory of a leaf of this call → the number of that leaf; none is taken twice."""
        found: dict[str, int] = {}
        for name, number in self._replacing.items():
            is_first = all(leaves[number] is not leaves[other] for other in found.values())
            if is_first and is_donatable(leaves[number], self._lowered.types[number]):
                found[name] = number
        return found

    def _results(self, feeds: dict[str, np.ndarray], leaves: Sequence[Any], kept: Mapping[str, int]) -> list[jax.Array]:
        """The leaves of the results, some of them in the memory of leaves of the arguments."""
        owned = {name: taken(leaves[number]) for name, number in kept.items()}
        targets = {name: memory_of(value) for name, value in owned.items()}
        feeds |= {self._inputs[number]: targets[name] for name, number in kept.items()}
        results = self._run(feeds, targets)
        rest = iter(self._outputs)
        found: list[jax.Array] = []
        for info in self._lowered.result_types:
            name = next(rest)
            if name in owned:
                found.append(owned[name])
            elif jax.numpy.issubdtype(info.dtype, np.complexfloating):
                found.append(jax_array(complex_array(results[name], results[next(rest)], info.dtype), info))
            else:
                found.append(jax_array(results[name], info))
        return found

    def _run(self, feeds: dict[str, np.ndarray], targets: dict[str, np.ndarray]) -> Mapping[str, Any]:
        """The results of the session by name, those in `targets` there."""
        if targets:
            return self.session.session_entry(None).bound(feeds, targets)()
        return dict(zip(self._outputs, self.session.run(None, feeds), strict=True))

    def _dynamic(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """The arguments of a call that are arrays; static ones must be those that the program is compiled for."""
        lowered = self._lowered
        split = lowered.parameters.split(arguments, keywords, lowered.leading)
        for name, value in split.static.items():
            if name not in lowered.static or not _is_equal(value, lowered.static[name]):
                wanted = repr(lowered.static[name]) if name in lowered.static else "its default"
                hint = "call from_jax again for another value of a static argument"
                raise InputError(f"argument '{name}' is {value!r}, and the program is compiled for {wanted}", hint=hint)
        return split.positional, dict(split.named)

    def _replaced_inputs(self) -> Mapping[str, int]:
        """The large outputs that may take the memory of a donated leaf → the number of that leaf."""
        lowered = self._lowered
        numbers = {lowered.names[number]: number for number in sorted(lowered.donated)}
        found: dict[str, int] = {}
        if not numbers or len(self._inputs) != len(lowered.types):  # Complex numbers are in no memory of one array.
            return found
        for binding in self.session.executable.entry().bindings:
            free = [numbers[name] for name in binding.in_place_of if numbers.get(name, -1) not in (-1, *found.values())]
            if binding.role == "output" and binding.nbytes >= MIN_ALIGNED and free:
                found[binding.name] = free[0]
        return found

    @property
    def text(self) -> str:
        """The program in StableHLO."""
        return self._lowered.text


def _array(name: str, value: Any, expected: jax.ShapeDtypeStruct) -> np.ndarray:
    """The array of a leaf; Python's numbers get the element type that the program has."""
    if isinstance(value, Tracer):
        hint = "jit, grad and vmap take the function itself; compile what they give"
        raise InputError(f"argument '{name}' is traced by JAX, and a compiled function takes arrays", hint=hint)
    if not hasattr(value, "dtype") and not isinstance(value, bool | int | float | complex):
        raise InputError(f"argument '{name}' is a '{type(value).__name__}', not an array", hint=HINT)
    if is_deleted(value):
        raise InputError(f"argument '{name}' was deleted, or donated to another call")
    if type(value) is int and not _has(expected.dtype, value):
        raise InputError(f"argument '{name}' is {value}, which {expected.dtype} does not have")
    is_whole = type(value) is int and expected.dtype.kind != "b"
    is_alike = is_whole or getattr(value, "dtype", None) == expected.dtype
    array = np.asarray(value, expected.dtype if is_whole else None) if is_alike else host_array(value)
    if array.dtype != expected.dtype and not hasattr(value, "dtype") and _fits(array, expected.dtype):
        array = array.astype(expected.dtype)
    if array.shape != expected.shape or array.dtype != expected.dtype:
        found, wanted = f"{array.dtype}{list(array.shape)}", f"{expected.dtype}{list(expected.shape)}"
        raise InputError(f"argument '{name}' is {found}, not {wanted}", hint=HINT)
    return array


KINDS = {kind: rank for rank, group in enumerate(("b", "iu", "fV", "c")) for kind in group}
"""The kind of an element type of numpy → its rank among those that hold the ones before; bfloat16 is of kind V."""


def _fits(array: np.ndarray, dtype: Any) -> bool:
    """Whether an element type holds Python's numbers."""
    return array.dtype.kind in KINDS and KINDS[array.dtype.kind] <= KINDS[dtype.kind]


def _has(dtype: np.dtype[Any], number: int) -> bool:
    """Whether an element type has an integer, or rounds it."""
    if dtype.kind not in "iu":
        return dtype.kind != "b" and abs(number) < 1 << 64
    return np.iinfo(dtype).min <= number <= np.iinfo(dtype).max


def _is_equal(one: Any, other: Any) -> bool:
    return one is other or bool(type(one) is type(other) and one == other)


def _tree(tree: Any) -> str:
    """A tree of arguments in one line."""
    return str(tree).removeprefix("PyTreeDef(").removesuffix(")").replace("\n", " ")
