"""An entry as a session runs it: arguments in the words of onnxruntime, inputs that are checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.runtime.executable import EntryPoint
from glow_mlir.runtime.signature import Argument
from glow_mlir.support.dtypes import ONNX_WORDS


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
            array = as_array(f"input '{name}'", inputs[name])
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


def as_array(what: str, value: Any) -> np.ndarray:
    """A value as an array; raises `InputError` for anything else, such as lists of unequal lengths."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} is no array: {error}", hint="convert it with numpy.asarray") from error
