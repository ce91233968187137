"""Sessions in onnxruntime's words: a facade over those that know none."""

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
        """`session` has the entries and the state."""
        self._session = session
        self._entry = session.first
        self._settings: Settings | None = None
        """The settings that select which messages of calls are written."""
        self._is_watched = False
        """Whether options say anything of each call."""

    def __repr__(self) -> str:
        """The default entry, and the number of others."""
        return f"<{type(self).__name__} {self._session}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, it is its model, options and state: where it is unpickled, the model is loaded or compiled."""
        return self._recipe().pickled(self.get_state())

    def __copy__(self) -> SessionFacade:
        """Another session of the same model and options, with the state of this one as it is now."""
        return self._recipe().again(self.get_state())

    def __deepcopy__(self, memo: dict[int, Any]) -> SessionFacade:
        """As `copy.copy`: sessions of the same model have nothing in common that changes."""
        return self.__copy__()

    @abstractmethod
    def _recipe(self) -> Recipe[SessionFacade]:
        """The recipe of another session of the same model."""

    def get_entries(self) -> list[str]:
        """The names of the entries."""
        return self._session.entries

    def get_inputs(self, entry: str | None = None) -> list[NodeArg]:
        """The inputs of an entry, by default that of the session, in order."""
        return [node_arg(argument) for argument in self.session_entry(entry).inputs]

    def get_outputs(self, entry: str | None = None) -> list[NodeArg]:
        """The outputs of an entry, by default that of the session, in order."""
        return [node_arg(argument) for argument in self.session_entry(entry).outputs]

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
        `run` beside the caller: another thread hands outputs, `user_data` and the text of an error, or "", to
        `callback`. On devices the call is in their queues when this returns, behind those before it.

        The arrays of inputs have to stay as they are until then. Raises `InputError` for missing or unknown inputs.
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
        """The results of a call of an entry, with its options."""
        settings: list[Settings] = [] if self._settings is None else [self._settings]
        if run_options is not None:
            settings.insert(0, _options_of(run_options))
        with telling(*settings), cancellable(run_options, self._session.time_limit):
            return call()

    def get_state(self) -> dict[str, np.ndarray]:
        """The state of the model by name, which all entries share, as it is between two calls; in new arrays."""
        return self._session.get_state()

    def set_state(self, values: Mapping[str, Any]) -> None:
        """Overwrite the state of those names; raises `InputError` for an unknown name or a misshapen array."""
        self._session.set_state(values)

    def reset_state(self, names: Sequence[str] | None = None) -> None:
        """Give the state of those names, or all of it, the value it began with; raises `InputError` as `set_state`."""
        self._session.reset_state(names)

    def session_entry(self, name: str | None = None) -> SessionEntry:
        """The entry of that name, or that of the session; raises `InputError` for an unknown one."""
        return self._session.entry(name)


def _outputs(entry: SessionEntry, names: Sequence[str] | None, inputs: Mapping[str, Any]) -> list[np.ndarray]:
    """The outputs of those names, or all, of a run; raises `InputError` for unknown ones."""
    wanted = None if names is None else entry.listed_outputs(names)
    try:
        found = entry.run(inputs)
    except InputError as error:
        _check_missing(entry, inputs, error)
        raise
    return list(found.values()) if wanted is None else _chosen(found, wanted)


def _check_missing(entry: SessionEntry, inputs: Mapping[str, Any], error: InputError) -> None:
    """Add onnxruntime's wording to an error of missing inputs, since programs match it."""
    given = list(inputs) if isinstance(cast("object", inputs), Mapping) else []
    names = [argument.name for argument in entry.inputs]
    if (missing := [name for name in names if name not in given]) and set(given) < set(names):
        error.reason = f"{error.reason}: Required inputs ({missing}) are missing from input feed ({given})"


def _begun(
    entry: SessionEntry, names: Sequence[str] | None, inputs: Mapping[str, Any]
) -> Callable[[], list[np.ndarray]] | None:
    """What waits for the outputs of a call that is in queues now, or says why it is not; `None` without queues."""
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
