"""PyTorch computes a graph, or a part of one, whose compilation fails for whatever reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glow_mlir.errors import ExecutionError, GlowError, OptionError, OutOfMemoryError, UnsupportedError
from glow_mlir.support.activity import caution
from glow_mlir.torch.graph_reports import GraphReport

Call = Callable[[list[Any]], list[Any]]
"""Computes the outputs of a graph from its inputs."""

RAISED = (ExecutionError, OptionError, OutOfMemoryError, MemoryError)
"""Errors that are not failures of a compilation: of data, of options, of memory, and cancellations."""

OF_PYTORCH = "raised by PyTorch, which computes"
"""How the note begins of an error of an operator that PyTorch computes."""


class SafetyNet:
    """What to do about failures to compile one graph; the `report` of the graph lists them."""

    def __init__(self, report: GraphReport, raises: bool) -> None:
        """With `raises`, the errors are raised."""
        self._report = report
        self.raises = raises

    def made(self, part: str, make: Callable[[], Call], instead: Callable[[], Call]) -> Call:
        """
        The call that `make` compiles for a `part` of the graph.

        From the first failure on, also of later compilations in calls, that of `instead` takes its place.
        """
        if self.raises:
            return make()
        try:
            call = make()
        except RAISED:
            raise
        except Exception as error:
            self.catch(part, error)
            return instead()
        return _GuardedCall(self, part, call, instead)

    def catch(self, part: str, error: Exception) -> None:
        """Warn of a failure; raise it instead if errors are wanted."""
        if self.raises:
            raise error
        reason = reason_of(error)
        if part not in self._report.failures:
            hint = "options={'fallback': 'error'} raises the error"
            caution(UnsupportedError(f"PyTorch computes {part}: compiling it failed: {reason}", hint=hint))
        self._report.failures[part] = reason


class _GuardedCall:
    """A call that may compile further code, such as code for new sizes or for changed weights."""

    def __init__(self, net: SafetyNet, part: str, call: Call, instead: Callable[[], Call]) -> None:
        self._net, self._part = net, part
        self._call, self._instead = call, instead

    def __call__(self, inputs: list[Any]) -> list[Any]:
        """The outputs of the graph."""
        try:
            return self._call(inputs)
        except Exception as error:
            if is_of_data(error):
                raise
            self._net.catch(self._part, error)
            self._call = self._instead()
        return self._call(inputs)


def is_of_data(error: Exception) -> bool:
    """Whether an error of a call is no failure to compile: one of `RAISED`, or of an operator that PyTorch computes."""
    return isinstance(error, RAISED) or any(note.startswith(OF_PYTORCH) for note in getattr(error, "__notes__", ()))


def reason_of(error: Exception) -> str:
    """An error in one line: the text of our own, the type and text of others."""
    text = " ".join(str(error).split())
    return text if isinstance(error, GlowError) else f"{type(error).__name__}: {text}".removesuffix(": ")
