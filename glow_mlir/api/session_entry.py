"""Entries as sessions run them: arguments in the words of onnxruntime, inputs that are checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np

from glow_mlir.api.allocators import CPU_MEMORY, OrtMemoryInfo
from glow_mlir.api.async_calls import Callback, call_beside
from glow_mlir.api.call_limits import cancellable
from glow_mlir.api.io_binding import IOBinding
from glow_mlir.api.messages import telling
from glow_mlir.api.native import NativeSession
from glow_mlir.api.ort_value import OrtValue
from glow_mlir.api.refused_names import Explained
from glow_mlir.api.reopening import Recipe
from glow_mlir.api.run_options import RunOptions
from glow_mlir.api.settings import Settings
from glow_mlir.errors import InputError
from glow_mlir.runtime.executable import EntryPoint, Executable
from glow_mlir.runtime.signature import Argument
from glow_mlir.support.dtypes import is_float_dtype, is_plain, onnx_word

Result = TypeVar("Result")


@dataclass(frozen=True)
class NodeArg:
    """
    An input or output of a session: `name`, `shape`, and `type` in onnxruntime's words (`tensor(float)`).

    `shape` has numbers, and the names of free dimensions, or `None` for those without. Where the model does not say
    what an output is before it is called, `shape` is `[...]`, which stands for any number of axes, or `type` is empty.
    """

    name: str
    # Any: whoever gives all dimensions their sizes finds numbers alone.
    shape: list[Any]
    type: str


def _node_arg(argument: Argument) -> NodeArg:
    type_ = f"tensor({onnx_word(argument.dtype)})" if argument.dtype else ""
    return NodeArg(argument.name, [...] if argument.shape is None else list(argument.named_shape), type_)


class SessionEntry:
    """An entry with what its callers get wrong told in one line."""

    def __init__(self, point: EntryPoint) -> None:
        self._point = point
        self.name = point.name
        self._inputs = {argument.name: (argument, argument.numpy_dtype, argument.shape) for argument in point.inputs}
        self._arguments = {argument.name: argument for argument in point.outputs}
        self._outputs = list(self._arguments)

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
        if isinstance(output_names, str):
            raise InputError(f"'{output_names}' is no list of outputs", hint=f"['{output_names}']")
        if output_names is not None and not isinstance(cast("object", output_names), Iterable):
            raise InputError(f"{output_names!r} is no list of outputs", hint="None for all")
        for name in output_names or ():
            self.check_output(name)
        results = self._point.run(self._checked(inputs))
        return [results[name] for name in output_names or self._outputs]

    def bound(
        self, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]
    ) -> Callable[[], dict[str, np.ndarray]]:
        """A call on these inputs, with `outputs` in their places; raises `InputError` for missing inputs."""
        checked = self._checked(inputs)
        call = self._point.bound(checked, outputs)
        copies = [
            (checked[name], value) for name, value in inputs.items() if not np.may_share_memory(checked[name], value)
        ]
        if not copies:
            return call

        def call_on_copies() -> dict[str, np.ndarray]:
            for copy, value in copies:
                copy[...] = value
            return call()

        return call_on_copies

    def check_output(self, name: str, place: np.ndarray | None = None) -> None:
        """Raise `InputError` for an unknown output, or memory into which it does not fit, or that is only read."""
        try:
            argument = self._arguments[name]
        except (KeyError, TypeError):  # Some callers give lists, which are nothing's name.
            raise InputError(f"there is no output '{name}'", hint=f"outputs are {', '.join(self._outputs)}") from None
        if place is None:
            return
        fits = argument.shape is None or argument.accepts(place.shape)
        if not fits or (argument.dtype and place.dtype != argument.numpy_dtype):
            given = f"{place.dtype.name}{list(place.shape)}"
            raise InputError(f"output '{name}' is {argument}, and its memory is for {given}", hint="bind other memory")
        if not place.flags.writeable:
            raise InputError(f"the memory for output '{name}' may only be read", hint="bind other memory")

    def check_names(self, names: Iterable[str]) -> None:
        """Raise `InputError` for an unknown or missing input."""
        given = set(names)
        for name in given:
            self._known(name)
        for name, (argument, _, _) in self._inputs.items():
            if name not in given:
                raise InputError(f"input '{name}' is missing", hint=f"it is {argument}")

    def check_input(self, name: str, value: Any) -> np.ndarray:
        """The array of a type and layout for an input; raises `InputError` for what does not fit it."""
        argument, dtype, shape = self._known(name)
        if type(value) is np.ndarray and value.dtype == dtype and value.shape == shape:
            if (flags := value.flags).c_contiguous and flags.aligned:
                return value
        array = as_typed(f"input '{name}'", value, dtype)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        if array.dtype != dtype or not argument.accepts(array.shape):
            given = f"{array.dtype.name}{list(array.shape)}"
            hint = "convert the array, or import the model with other sizes"
            raise InputError(f"input '{name}' must be {argument}, not {given}", hint=hint)
        if argument.is_static and not (array.flags.c_contiguous and array.flags.aligned):
            array = np.require(array, requirements=("C", "ALIGNED")).reshape(array.shape)
        return array

    def _known(self, name: str) -> tuple[Argument, np.dtype[Any], tuple[int | str, ...] | None]:
        """An input, its dtype and shape; raises `InputError` for an unknown one."""
        try:
            return self._inputs[name]
        except (KeyError, TypeError):  # Some callers give lists, which are nothing's name.
            raise InputError(f"there is no input '{name}'", hint=f"inputs are {', '.join(self._inputs)}") from None

    def _checked(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        # A caller without types may give anything; to ask for the class of a dict takes less time.
        if type(cast("object", inputs)) is not dict:
            _check_named(inputs, "inputs")
        if inputs.keys() != self._inputs.keys():
            self.check_names(inputs)
        return {name: self.check_input(name, inputs[name]) for name in self._inputs}


class EntrySession(Explained, ABC):
    """Entries by name and the state that they share: what sessions of models and of bundles have in common."""

    def __init__(self, executable: Executable, names: Mapping[str, str], first: str) -> None:
        """`names` has what callers call each entry, and what the executable does; `first` is called by default."""
        self._executable = executable
        self._settings: Settings | None = None
        """What says which messages of calls are written."""
        self._is_watched = False
        """Whether options say anything of each call."""
        self._time_limit = 0.0
        """Seconds that a call may take; 0 for any time."""
        self._names = names
        self._entries: dict[str, SessionEntry] = {}
        self._entry = self.session_entry(first)

    def __repr__(self) -> str:
        """What is called by default, and how many other entries there are."""
        others = len(self._names) - 1
        return f"<{type(self).__name__} {self._entry}{f' and {others} more' if others else ''}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, it is its model, options and state: where it is unpickled, the model is loaded or compiled."""
        return self._recipe().pickled(self.get_state())

    def __copy__(self) -> EntrySession:
        """Another session of the same model and options, with the state of this one as it is now."""
        return self._recipe().again(self.get_state())

    def __deepcopy__(self, memo: dict[int, Any]) -> EntrySession:
        """As `copy.copy`: sessions of the same model have nothing in common that changes."""
        return self.__copy__()

    @abstractmethod
    def _recipe(self) -> Recipe:
        """What makes another session of the same model."""

    def get_entries(self) -> list[str]:
        """The names of the entries."""
        return list(self._names)

    def get_inputs(self, entry: str | None = None) -> list[NodeArg]:
        """The inputs of an entry, by default that of the session, in order."""
        return self.session_entry(entry).inputs()

    def get_outputs(self, entry: str | None = None) -> list[NodeArg]:
        """The outputs of an entry, by default that of the session, in order."""
        return self.session_entry(entry).outputs()

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """The memory of each input, which is the CPU's."""
        return [CPU_MEMORY] * len(self.get_inputs())

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """The memory of each output, which is the CPU's."""
        return [CPU_MEMORY] * len(self.get_outputs())

    def get_input_epdevices(self) -> list[None]:
        """The device that the provider of each input names, as none does: there is one, the CPU."""
        return [None] * len(self.get_inputs())

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
        *,
        entry: str | None = None,
    ) -> list[np.ndarray]:
        """
        Run an entry, by default that of the session: the outputs of those names, or all, in new arrays.

        C-contiguous, aligned inputs of the right type are used in place. Calls of entries with state wait for each
        other. What is not compiled yet for sizes or values of these inputs is compiled first, and raises what the
        constructor would. Raises `InputError` for a missing, unknown or misshapen input, or an unknown output or entry,
        and `ExecutionError` where the model fails on these inputs.
        """
        chosen = self._entry if entry is None else self.session_entry(entry)
        if run_options is None and not self._is_watched:
            return chosen.run(output_names, input_feed)
        return self._watched(run_options, lambda: chosen.run(output_names, input_feed), chosen)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """`run` on tensors, which gives tensors."""
        results = self.run(output_names, input_dict_ort_values, run_options)
        return [OrtValue.ortvalue_from_numpy(array) for array in results]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callback,
        user_data: Any = None,
        run_options: RunOptions | None = None,
    ) -> None:
        """
        `run` in another thread, which hands outputs, `user_data` and the text of an error, or "", to `callback`.

        The arrays of inputs have to stay as they are until then. Raises `InputError` for missing or unknown inputs.
        """
        _check_named(input_feed, "inputs")
        self._entry.check_names(input_feed)
        feed = dict(input_feed)
        if run_options is not None:
            _options_of(run_options)
        call_beside(lambda: self.run(output_names, feed, run_options), callback, user_data)

    def io_binding(self, entry: str | None = None) -> IOBinding:
        """Inputs and outputs of an entry, by default that of the session, that stay where they are."""
        return IOBinding(self, entry)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Call an entry on what is bound; raises as `run`, and `InputError` where an input, or all outputs, are not."""
        if not isinstance(cast("object", iobinding), IOBinding):
            raise InputError(f"a '{type(iobinding).__name__}' is no binding", hint="io_binding() makes one")
        if iobinding.session is not self:
            raise InputError("a binding belongs to another session", hint="io_binding() of this one makes its own")
        if run_options is None and not self._is_watched:
            iobinding.call()
        else:
            self._watched(run_options, iobinding.call, iobinding.entry)

    @property
    def _sess(self) -> NativeSession:
        """The session in the form that programs know who go past onnxruntime's Python class."""
        return NativeSession(self)

    def _watched(self, run_options: RunOptions | None, call: Callable[[], Result], entry: SessionEntry) -> Result:
        """What a call of an entry gives, as options say."""
        settings: list[Settings] = [] if self._settings is None else [self._settings]
        if run_options is not None:
            settings.insert(0, _options_of(run_options))
        with telling(*settings), cancellable(run_options, self._time_limit):
            return call()

    def get_state(self) -> dict[str, np.ndarray]:
        """The state of the model by name, which all entries share, as it is between two calls; in new arrays."""
        return self._executable.state.get()

    def set_state(self, values: Mapping[str, Any]) -> None:
        """Overwrite the state of those names; raises `InputError` for an unknown name or a misshapen array."""
        _check_named(values, "values of the state")
        self._executable.state.set({name: as_array(f"state '{name}'", value) for name, value in values.items()})

    def reset_state(self, names: Sequence[str] | None = None) -> None:
        """Give the state of those names, or all of it, the value it began with; raises `InputError` as `set_state`."""
        self._executable.state.reset(names)

    def session_entry(self, name: str | None = None) -> SessionEntry:
        """The entry of that name, or that of the session; raises `InputError` for an unknown one."""
        if name is None:
            return self._entry
        if not isinstance(cast("object", name), str) or name not in self._names:
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
    if array is value or array.dtype == dtype or not is_plain(value):
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


def _check_named(given: object, what: str) -> None:
    """Raise `InputError` for what has no names."""
    if not isinstance(given, Mapping):
        hint = "a dict of arrays by their names"
        raise InputError(f"{what} cannot be of the type '{type(given).__name__}'", hint=hint)


def _options_of(given: object) -> RunOptions:
    """The options of a call; raises `InputError` for anything else."""
    if not isinstance(given, RunOptions):
        hint = "glow_mlir.RunOptions()"
        raise InputError(f"run_options cannot be of the type '{type(given).__name__}'", hint=hint)
    return given
