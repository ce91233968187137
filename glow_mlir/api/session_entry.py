"""Entries of compiled models, with checks of their arguments and one-line errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeGuard, cast

import numpy as np

from glow_mlir.api.device_tensors import on_device
from glow_mlir.api.direct_calls import DirectCalls
from glow_mlir.errors import InputError
from glow_mlir.runtime.device_array import DeviceArray, OutputTarget, Tensor, on_host
from glow_mlir.runtime.executable import EntryPoint
from glow_mlir.runtime.signature import Argument
from glow_mlir.runtime.typed_arrays import as_typed
from glow_mlir.support.dtypes import is_plain


class SessionEntry:
    """An entry that checks its arguments; each error is one line."""

    def __init__(self, point: EntryPoint) -> None:
        self._point = point
        self.name = point.name
        self._inputs = {argument.name: (argument, argument.numpy_dtype, argument.shape) for argument in point.inputs}
        self._arguments = {argument.name: argument for argument in point.outputs}
        self._output_names = frozenset(self._arguments)
        self._direct = DirectCalls(point)

    def __str__(self) -> str:
        """The name, inputs and outputs, as `main(x: float32[N, 3]) -> (y: float32[N])`."""
        inputs, outputs = (
            ", ".join(f"{argument.name}: {argument}" for argument in arguments)
            for arguments in (self._point.inputs, self._point.outputs)
        )
        return f"{self.name}({inputs}) -> ({outputs})"

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The inputs, in order."""
        return self._point.inputs

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """The outputs, in order."""
        return self._point.outputs

    def run(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """All outputs by name, in new arrays; raises `InputError` and `ExecutionError`."""
        if (found := self._direct.run(inputs)) is not None:
            return found
        checked = self.checked(inputs)
        found = self.run_checked(checked)
        self._direct.learn(checked)
        return found

    def run_checked(self, inputs: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
        """As `run`, on the result of `checked`."""
        if not _are_here(inputs):
            return {name: on_host(value) for name, value in self._point.bound_on(inputs, {})().items()}
        return self._point.run(inputs)

    def begin(self, inputs: Mapping[str, Any]) -> Callable[[], dict[str, np.ndarray]] | None:
        """
        Put a call into the queues of devices; return a function that waits for its outputs, or `None` if the caller's
        thread computes.

        Raises the errors of `run`; errors on a device are raised when it is waited for.
        """
        from glow_mlir.runtime.device_entry import QueuedEntryPoint

        point = self._point
        if not isinstance(point, QueuedEntryPoint):
            return None
        pending = point.begin(self.checked(inputs), {})
        return lambda: {name: on_host(value) for name, value in pending.wait().items()}

    def bound(
        self, inputs: Mapping[str, Tensor], outputs: Mapping[str, OutputTarget]
    ) -> Callable[[], dict[str, Tensor]]:
        """A prepared call on these inputs, which writes to `outputs`; raises `InputError` for missing inputs."""
        checked = self.checked(inputs)
        if _are_here(checked) and _are_here(outputs):
            call = cast("Callable[[], dict[str, Tensor]]", self._point.bound(checked, outputs))
        else:
            call = self._point.bound_on(checked, outputs)
        copies = [
            (array, value)
            for name, value in inputs.items()
            if isinstance(array := checked[name], np.ndarray) and not np.may_share_memory(array, cast("Any", value))
        ]
        if not copies:
            return call

        def call_on_copies() -> dict[str, Tensor]:
            for copy, value in copies:
                copy[...] = value
            return call()

        return call_on_copies

    def check_output(self, name: str, target: Tensor | None = None) -> None:
        """Raise `InputError` for an unknown output, or memory that does not fit it or is read-only."""
        try:
            argument = self._arguments[name]
        except (KeyError, TypeError):  # Some callers pass unhashable lists.
            raise InputError(f"there is no output '{name}'", hint=f"outputs are {', '.join(self._arguments)}") from None
        if target is None:
            return
        fits = argument.shape is None or argument.accepts(target.shape)
        if not fits or (argument.dtype and target.dtype != argument.numpy_dtype):
            given = f"{target.dtype.name}{list(target.shape)}"
            raise InputError(f"output '{name}' is {argument}, and its memory is for {given}", hint="bind other memory")
        if isinstance(target, np.ndarray) and not target.flags.writeable:
            raise InputError(f"the memory for output '{name}' may only be read", hint="bind other memory")

    def listed_outputs(self, names: object) -> list[str]:
        """The requested outputs, or none for all; raises `InputError` for unknown ones and if it is not a list."""
        if type(names) is list and self._are_outputs(cast("list[str]", names)):  # The common case.
            return cast("list[str]", names)
        if isinstance(names, str):
            raise InputError(f"'{names}' is no list of outputs", hint=f"['{names}']")
        if names is not None and not isinstance(names, Iterable):
            raise InputError(f"{names!r} is no list of outputs", hint="None for all")
        wanted = list(cast("Iterable[str]", names or ()))  # A generator can be read only once.
        for name in wanted:
            self.check_output(name)
        return wanted

    def _are_outputs(self, names: list[str]) -> bool:
        """Whether all of these are names of outputs."""
        try:
            return self._output_names.issuperset(names)
        except TypeError:  # Some callers pass unhashable lists.
            return False

    def check_names(self, names: Iterable[str]) -> None:
        """Raise `InputError` for an unknown or missing input."""
        given = set(names)
        for name in given:
            self._known(name)
        for name, (argument, _, _) in self._inputs.items():
            if name not in given:
                raise InputError(f"input '{name}' is missing", hint=f"it is {argument}")

    def check_input(self, name: str, value: Any) -> Tensor:
        """The tensor for an input, in the required type and layout; raises `InputError` if it does not fit."""
        argument, dtype, shape = self._known(name)
        if type(value) is np.ndarray and value.dtype == dtype:
            if value.shape == shape:
                if (flags := value.flags).c_contiguous and flags.aligned:
                    return value
            elif not argument.is_static and argument.accepts(value.shape):
                return value
        if argument.type:
            return value  # Not a tensor; its elements are checked when they are used.
        return self._converted(argument, dtype, value)

    def _converted(self, argument: Argument, dtype: np.dtype[Any], value: Any) -> Tensor:
        """Convert a tensor to the type and layout of an input."""
        name = argument.name
        array = None if isinstance(value, np.ndarray) or is_plain(value) else on_device(value)
        if array is None:
            array = as_typed(f"input '{name}'", value, dtype)
            if not array.dtype.isnative:
                array = array.astype(array.dtype.newbyteorder("="))
        if array.dtype != dtype or not argument.accepts(array.shape):
            given = f"{array.dtype.name}{list(array.shape)}"
            hint = "convert the array, or import the model with other sizes"
            raise InputError(f"input '{name}' must be {argument}, not {given}", hint=hint)
        if isinstance(array, DeviceArray):
            return array
        if argument.is_static and not (array.flags.c_contiguous and array.flags.aligned):
            array = np.require(array, requirements=("C", "ALIGNED")).reshape(array.shape)
        return array

    def _known(self, name: str) -> tuple[Argument, np.dtype[Any], tuple[int | str, ...] | None]:
        """The argument, dtype and shape of an input; raises `InputError` for an unknown one."""
        try:
            return self._inputs[name]
        except (KeyError, TypeError):  # Some callers pass unhashable lists.
            raise InputError(f"there is no input '{name}'", hint=f"inputs are {', '.join(self._inputs)}") from None

    def checked(self, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """All inputs in the types and layouts of calls; raises `InputError`."""
        # Untyped callers may pass anything; comparing the class with dict is fastest.
        if type(cast("object", inputs)) is not dict:
            check_named(inputs, "inputs")
        if inputs.keys() != self._inputs.keys():
            self.check_names(inputs)
        return {name: self.check_input(name, inputs[name]) for name in self._inputs}


def _are_here(tensors: Mapping[str, OutputTarget]) -> TypeGuard[Mapping[str, np.ndarray]]:
    """Whether all tensors are in host memory."""
    for tensor in tensors.values():  # Runs in each call: faster than a generator.
        if not isinstance(tensor, np.ndarray) and not is_python_value(tensor):
            return False
    return True


def is_python_value(value: object) -> bool:
    """Whether a value is not a tensor, but a sequence, map or optional in Python's types."""
    return value is None or isinstance(value, list | tuple | dict)


def check_named(given: object, what: str) -> None:
    """Raise `InputError` for an argument that is not a mapping by name."""
    if not isinstance(given, Mapping):
        hint = "a dict of arrays by their names"
        raise InputError(f"{what} cannot be of the type '{type(given).__name__}'", hint=hint)
