"""Entries as sessions run them: arguments in the words of onnxruntime, inputs that are checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.runtime.executable import EntryPoint, Executable
from glow_mlir.runtime.signature import Argument
from glow_mlir.support.dtypes import ONNX_WORDS, is_float_dtype


@dataclass(frozen=True)
class NodeArg:
    """
    An input or output of a session: `name`, `shape`, and `type` in onnxruntime's words (`tensor(float)`).

    `shape` has numbers, and the names of free dimensions, or `None` for those without. Where the model does not say
    what an output is before it is called, `shape` is `(...,)`, which stands for any number of axes, or `type` is empty.
    """

    name: str
    # Any: whoever gives all dimensions their sizes finds numbers alone.
    shape: tuple[Any, ...]
    type: str


def _node_arg(argument: Argument) -> NodeArg:
    type_ = f"tensor({ONNX_WORDS.get(argument.dtype, argument.dtype)})" if argument.dtype else ""
    return NodeArg(argument.name, (...,) if argument.shape is None else argument.named_shape, type_)


class SessionEntry:
    """An entry with what its callers get wrong told in one line."""

    def __init__(self, point: EntryPoint) -> None:
        self._point = point
        self.name = point.name
        self._inputs = {argument.name: (argument, argument.numpy_dtype, argument.shape) for argument in point.inputs}
        self._outputs = [argument.name for argument in point.outputs]

    def __str__(self) -> str:
        """The name, inputs and outputs, as `main(x: float32[N, 3]) -> (y: float32[N])`."""
        inputs, outputs = (
            ", ".join(f"{argument.name}: {argument}" for argument in arguments)
            for arguments in (self._point.inputs, self._point.outputs)
        )
        return f"{self.name}({inputs}) -> ({outputs})"

    def inputs(self) -> list[NodeArg]:
        """The inputs, in order."""
        return [_node_arg(argument) for argument in self._point.inputs]

    def outputs(self) -> list[NodeArg]:
        """The outputs, in order."""
        return [_node_arg(argument) for argument in self._point.outputs]

    def run(self, output_names: Sequence[str] | None, inputs: Mapping[str, Any]) -> list[np.ndarray]:
        """The outputs of those names, or all, in new arrays; raises `InputError` and `ExecutionError`."""
        wanted = self._outputs if output_names is None else output_names
        if isinstance(wanted, str):
            raise InputError(f"'{wanted}' is no list of outputs", hint=f"['{wanted}']")
        for name in wanted:
            if name not in self._outputs:
                raise InputError(f"there is no output '{name}'", hint=f"outputs are {', '.join(self._outputs)}")
        results = self._point.run(self._checked(inputs))
        return [results[name] for name in wanted]

    def _checked(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        # A caller without types may give anything.
        if not isinstance(cast(object, inputs), Mapping):
            hint = "a dict of arrays by their names"
            raise InputError(f"inputs cannot be of the type '{type(inputs).__name__}'", hint=hint)
        for name in inputs:
            if name not in self._inputs:
                raise InputError(f"there is no input '{name}'", hint=f"inputs are {', '.join(self._inputs)}")
        checked: dict[str, np.ndarray] = {}
        for name, (argument, dtype, shape) in self._inputs.items():
            if name not in inputs:
                raise InputError(f"input '{name}' is missing", hint=f"it is {argument}")
            array = as_typed(f"input '{name}'", inputs[name], dtype)
            if not array.dtype.isnative:
                array = array.astype(array.dtype.newbyteorder("="))
            # Most shapes have no free dimensions: to compare them takes no call.
            if array.dtype != dtype or (array.shape != shape and not argument.accepts(array.shape)):
                given = f"{array.dtype.name}{list(array.shape)}"
                hint = "convert the array, or import the model with other sizes"
                raise InputError(f"input '{name}' must be {argument}, not {given}", hint=hint)
            if argument.is_static and not (array.flags.c_contiguous and array.flags.aligned):
                array = np.require(array, requirements=("C", "ALIGNED")).reshape(array.shape)
            checked[name] = array
        return checked


class EntrySession:
    """Entries by name and the state that they share: what sessions of models and of bundles have in common."""

    def __init__(self, executable: Executable, names: Mapping[str, str], first: str) -> None:
        """`names` has what callers call each entry, and what the executable does; `first` is called by default."""
        self._executable = executable
        self._names = names
        self._entries: dict[str, SessionEntry] = {}
        self._entry = self._chosen(first)

    def __repr__(self) -> str:
        """What is called by default, and how many other entries there are."""
        others = len(self._names) - 1
        return f"<{type(self).__name__} {self._entry}{f' and {others} more' if others else ''}>"

    def get_entries(self) -> list[str]:
        """The names of the entries."""
        return list(self._names)

    def get_inputs(self, entry: str | None = None) -> list[NodeArg]:
        """The inputs of an entry, by default that of the session, in order."""
        return self._chosen(entry).inputs()

    def get_outputs(self, entry: str | None = None) -> list[NodeArg]:
        """The outputs of an entry, by default that of the session, in order."""
        return self._chosen(entry).outputs()

    def run(
        self, output_names: Sequence[str] | None, inputs: Mapping[str, Any], *, entry: str | None = None
    ) -> list[np.ndarray]:
        """
        Run an entry, by default that of the session: the outputs of those names, or all, in new arrays.

        C-contiguous, aligned inputs of the right type are used in place. Calls of entries with state wait for each
        other. What is not compiled yet for sizes or values of these inputs is compiled first, and raises what the
        constructor would. Raises `InputError` for a missing, unknown or misshapen input, or an unknown output or entry,
        and `ExecutionError` where the model fails on these inputs.
        """
        return self._chosen(entry).run(output_names, inputs)

    def get_state(self) -> dict[str, np.ndarray]:
        """The state of the model by name, which all entries share, as it is between two calls; in new arrays."""
        return self._executable.state.get()

    def set_state(self, values: Mapping[str, Any]) -> None:
        """Overwrite the state of those names; raises `InputError` for an unknown name or a misshapen array."""
        self._executable.state.set({name: as_array(f"state '{name}'", value) for name, value in values.items()})

    def reset_state(self, names: Sequence[str] | None = None) -> None:
        """Give the state of those names, or all of it, the value it began with; raises `InputError` as `set_state`."""
        self._executable.state.reset(names)

    def _chosen(self, name: str | None) -> SessionEntry:
        """The entry of that name, or that of the session."""
        if name is None:
            return self._entry
        if name not in self._names:
            raise InputError(f"there is no entry '{name}'", hint=f"entries are {', '.join(self._names)}")
        if name not in self._entries:
            self._entries[name] = SessionEntry(self._executable.entry(self._names[name]))
        return self._entries[name]


def as_typed(what: str, value: Any, dtype: np.dtype) -> np.ndarray:
    """
    A value as an array: numbers and lists of numbers in the type that is wanted, if it has all of them but for rounding
    of floats; anything else as it is. Raises `InputError` as `as_array`.
    """
    array = as_array(what, value)
    if array is value or array.dtype == dtype or not isinstance(value, bool | int | float | list | tuple | np.generic):
        return array
    is_float = is_float_dtype(dtype)
    if array.size and (array.dtype.kind not in ("iuf" if is_float else "iu") or dtype.kind == "b"):
        return array
    with np.errstate(over="ignore"):
        found = array.astype(dtype)
    return found if is_float or bool((found == array).all()) else array


def as_array(what: str, value: Any) -> np.ndarray:
    """A value as an array; raises `InputError` for anything else, such as lists of unequal lengths."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} is no array: {error}", hint="convert it with numpy.asarray") from error
