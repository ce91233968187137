"""Sessions with onnxruntime's interface: a facade over the sessions of `glow_mlir.api`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import numpy as np

from glow_mlir.api.onnxruntime.allocators import CPU_MEMORY, OrtMemoryInfo
from glow_mlir.api.onnxruntime.call_limits import cancellable
from glow_mlir.api.onnxruntime.io_binding import IOBinding
from glow_mlir.api.onnxruntime.messages import telling
from glow_mlir.api.onnxruntime.native import NativeSession
from glow_mlir.api.onnxruntime.node_arg import NodeArg, node_arg
from glow_mlir.api.onnxruntime.ort_value import OrtValue
from glow_mlir.api.onnxruntime.refused_names import Explained
from glow_mlir.api.onnxruntime.run_options import RunOptions
from glow_mlir.api.onnxruntime.settings import Settings
from glow_mlir.api.reopening import Recipe
from glow_mlir.api.session import Session
from glow_mlir.api.session_entry import SessionEntry, check_named
from glow_mlir.errors import GlowError, InputError

if TYPE_CHECKING:
    from glow_mlir.api.onnxruntime.async_calls import Callback

Result = TypeVar("Result")


class SessionFacade(Explained, ABC):
    """A session with onnxruntime's interface: the common part of models and bundles."""

    def __init__(self, session: Session) -> None:
        """`session` provides the entries and the state."""
        self._session = session
        self._entry = session.first
        self._settings: Settings | None = None
        """The settings that select messages of calls."""
        self._is_watched = False
        """Whether options request a message for each call."""

    def __repr__(self) -> str:
        """The default entry, and the number of others."""
        return f"<{type(self).__name__} {self._session}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as model, options and state; unpickling loads or compiles the model."""
        return self._recipe().pickled(self.get_state())

    def __copy__(self) -> SessionFacade:
        """Another session of the same model and options, with a copy of the present state."""
        return self._recipe().again(self.get_state())

    def __deepcopy__(self, memo: dict[int, Any]) -> SessionFacade:
        """As `copy.copy`: sessions of the same model share nothing mutable."""
        return self.__copy__()

    @abstractmethod
    def _recipe(self) -> Recipe[SessionFacade]:
        """The recipe of another session of the same model."""

    def get_entries(self) -> list[str]:
        """The names of the entries."""
        return self._session.entries

    def get_inputs(self, entry: str | None = None) -> list[NodeArg]:
        """The inputs of an entry in order, by default the session's entry."""
        return [node_arg(argument) for argument in self.session_entry(entry).inputs]

    def get_outputs(self, entry: str | None = None) -> list[NodeArg]:
        """The outputs of an entry in order, by default the session's entry."""
        return [node_arg(argument) for argument in self.session_entry(entry).outputs]

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """The memory of each input, which is the CPU's."""
        return [CPU_MEMORY] * len(self.get_inputs())

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """The memory of each output, which is the CPU's."""
        return [CPU_MEMORY] * len(self.get_outputs())

    def get_input_epdevices(self) -> list[None]:
        """The devices of the inputs: none, because only the CPU exists."""
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
        Run an entry, by default the session's; return the named outputs, or all, in new arrays.

        C-contiguous, aligned inputs of the right type are used in place. Calls of entries with state wait for each
        other. Code missing for the sizes or values of these inputs is compiled first, which raises the same errors as
        the constructor. Raises `InputError` for a missing, unknown or misshapen input, or an unknown output or entry,
        and `ExecutionError` if the model fails on these inputs.
        """
        chosen = self._entry if entry is None else self.session_entry(entry)
        if run_options is None and not self._is_watched:
            return _outputs(chosen, output_names, input_feed)
        return self._watched(run_options, lambda: _outputs(chosen, output_names, input_feed), chosen)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """`run` with tensors as inputs and results."""
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
        `run` asynchronously: another thread passes outputs, `user_data` and the error text (or "") to `callback`. On
        devices, the call is queued when this method returns, after earlier calls.

        Input arrays must not change until then. Raises `InputError` for missing or unknown inputs.
        """
        from glow_mlir.api.onnxruntime.async_calls import call_in_background

        check_named(input_feed, "inputs")
        self._entry.check_names(input_feed)
        feed = dict(input_feed)
        if run_options is not None:
            _options_of(run_options)
        is_plain = run_options is None and not self._is_watched
        call = _begun(self._entry, output_names, feed) if is_plain else None
        call_in_background(call or (lambda: self.run(output_names, feed, run_options)), callback, user_data)

    def io_binding(self, entry: str | None = None) -> IOBinding:
        """A binding of inputs and outputs of an entry to memory, by default of the session's entry."""
        return IOBinding(self, entry)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """
        Call an entry on bound memory; raises the errors of `run`, and `InputError` for unbound inputs or no bound
        output.
        """
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
        """The session in the form of onnxruntime's native module, for programs that bypass its Python class."""
        return NativeSession(self)

    def _watched(self, run_options: RunOptions | None, call: Callable[[], Result], entry: SessionEntry) -> Result:
        """The results of a call of an entry under its options."""
        settings: list[Settings] = [] if self._settings is None else [self._settings]
        if run_options is not None:
            settings.insert(0, _options_of(run_options))
        with telling(*settings), cancellable(run_options, self._session.time_limit):
            return call()

    def get_state(self) -> dict[str, np.ndarray]:
        """Copies of the states by name, as they are between two calls; all entries share them."""
        return self._session.get_state()

    def set_state(self, values: Mapping[str, Any]) -> None:
        """Overwrite the named states; raises `InputError` for an unknown name or a misshapen array."""
        self._session.set_state(values)

    def reset_state(self, names: Sequence[str] | None = None) -> None:
        """Reset the named states, or all, to their initial values; raises `InputError` as `set_state`."""
        self._session.reset_state(names)

    def session_entry(self, name: str | None = None) -> SessionEntry:
        """The entry of that name, or the session's; raises `InputError` for an unknown one."""
        return self._session.entry(name)


def _outputs(entry: SessionEntry, names: Sequence[str] | None, inputs: Mapping[str, Any]) -> list[np.ndarray]:
    """The named outputs of a run, or all; raises `InputError` for unknown ones."""
    wanted = None if names is None else entry.listed_outputs(names)
    try:
        found = entry.run(inputs)
    except InputError as error:
        _check_missing(entry, inputs, error)
        raise
    return list(found.values()) if wanted is None else _chosen(found, wanted)


def _check_missing(entry: SessionEntry, inputs: Mapping[str, Any], error: InputError) -> None:
    """Add onnxruntime's wording to an error about missing inputs, because programs match it."""
    given = list(inputs) if isinstance(cast("object", inputs), Mapping) else []
    names = [argument.name for argument in entry.inputs]
    if (missing := [name for name in names if name not in given]) and set(given) < set(names):
        error.reason = f"{error.reason}: Required inputs ({missing}) are missing from input feed ({given})"


def _begun(
    entry: SessionEntry, names: Sequence[str] | None, inputs: Mapping[str, Any]
) -> Callable[[], list[np.ndarray]] | None:
    """
    Start a queued call; return a function that waits for its outputs or raises its error, or `None` without queues.
    """
    try:
        wanted, wait = entry.listed_outputs(names), entry.begin(inputs)
    except GlowError as error:
        return partial(_failed, error)
    return None if wait is None else lambda: _chosen(wait(), wanted)


def _failed(error: GlowError) -> NoReturn:
    raise error


def _chosen(results: Mapping[str, np.ndarray], wanted: Sequence[str]) -> list[np.ndarray]:
    return [results[name] for name in wanted or results]


def _options_of(given: object) -> RunOptions:
    """The options of a call; raises `InputError` for anything else."""
    if not isinstance(given, RunOptions):
        hint = "glow_mlir.RunOptions()"
        raise InputError(f"run_options cannot be of the type '{type(given).__name__}'", hint=hint)
    return given
