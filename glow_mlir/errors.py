"""The exceptions of the project: one family under `GlowError`, each printed as one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self


class GlowError(Exception):
    """
    A mistake of the user's, told in one line.

    `reason` says what is wrong, `file` and `node` where, `hint` what to do about it. `notes` point at other places that
    belong to it, and `others` are further mistakes that were found with this one.
    """

    notes: Sequence[GlowError] = ()
    others: Sequence[GlowError] = ()

    def __init__(self, reason: str, *, file: str = "", node: str = "", hint: str = "") -> None:
        self.reason = reason
        self.file = file
        self.node = node
        self.hint = hint
        super().__init__(reason)

    def with_notes(self, notes: Iterable[GlowError]) -> Self:
        """This error with those notes behind it."""
        self.notes = (*self.notes, *notes)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """As it is, in another process: kinds of errors are made of different things."""
        return _again, (type(self), self.args), self.__dict__

    def __str__(self) -> str:
        return printable(self.line)

    @property
    def line(self) -> str:
        """The line that tells of it, with any characters that its names have."""
        where = ": ".join(part for part in (self.file, f"node '{self.node}'" if self.node else "") if part)
        line = f"{where}: {self.reason}" if where else self.reason
        line = f"{line} (hint: {self.hint})" if self.hint else line
        return f"{line} (and {len(self.others)} more)" if self.others else line


def _again(kind: type[GlowError], args: tuple[Any, ...]) -> GlowError:
    """An error that was pickled, without what it says."""
    return kind.__new__(kind, *args)


class GlowWarning(UserWarning):
    """A mistake of the user's that the work goes on in spite of, in one line, where nobody listens for such."""


def printable(text: str) -> str:
    """A text in one line: a damaged model may have any character in its names."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def joined(errors: Sequence[GlowError]) -> GlowError:
    """Several errors as one to raise, which is the first."""
    first, *others = errors
    first.others = (*first.others, *others)
    return first


class ModelError(GlowError):
    """A model file that cannot be read, or that contradicts itself."""


class UnsupportedError(GlowError):
    """Something valid that this compiler, or the chosen backend, does not do."""


class RefusedNameError(UnsupportedError, AttributeError):
    """A name of onnxruntime's that has no meaning here."""


class InputValuesError(UnsupportedError):
    """
    Operands that fix shapes and depend on inputs of the model: those whose values have to be known are `inputs`.

    `trip_capacities` are numbers of trips of loops that nothing bounds: for how many there is to be room has to be
    known as well.
    """

    def __init__(
        self, reason: str, inputs: Sequence[str], *, node: str = "", trip_capacities: Sequence[str] = ()
    ) -> None:
        self.inputs = tuple(inputs)
        self.trip_capacities = tuple(trip_capacities)
        wanted = [f"the value of {', '.join(map(repr, self.inputs))}"] if inputs else []
        wanted += [f"the most that '{capacity}' may be, as a dimension" for capacity in trip_capacities]
        super().__init__(reason, node=node, hint=f"give {' and '.join(wanted)}")


class HostValuesError(UnsupportedError):
    """A model with values for Python where one model of tensors of numbers is wanted: it is compiled in parts."""


class LargeInputError(UnsupportedError):
    """An operand that fixes shapes and depends on an input with more elements than anybody gives the value of."""


class TripValuesError(UnsupportedError):
    """An operand that fixes shapes and is computed anew in each trip of a loop."""


class UnsupportedOperatorsError(UnsupportedError):
    """All operators of a model that are not supported, reported at once."""

    def __init__(
        self,
        nodes: Sequence[tuple[str, str]],
        *,
        file: str = "",
        by: str = "the importer",
        hint: str = "docs/add-an-operator.md shows how to add one",
    ) -> None:
        self.nodes = tuple(nodes)
        listed = ", ".join(f"{kind} ('{name}')" for kind, name in nodes)
        plural = "operators are" if len(nodes) > 1 else "operator is"
        super().__init__(f"{len(nodes)} {plural} not supported by {by}: {listed}", file=file, hint=hint)


class OutOfMemoryError(GlowError):
    """A value, or what a compilation or an inference keeps at once, that takes more memory than there is."""


class ExecutionError(GlowError):
    """A call that fails on its data: its results are invalid."""


class IndexOutOfRangeError(ExecutionError, IndexError, RuntimeError):
    """A call with an index outside the range of an axis; PyTorch's operators raise either of these errors for it."""


OUT_OF_CAPACITY = "a loop takes more trips than the capacity of"
"""Why a call fails that a session makes again with a larger capacity; the label of the loop follows in quotes."""


CHANGES_SHARED_ROWS = "a call changes rows of an earlier result in their place"
"""Why a call fails that is made again without sharing the memory of an earlier result."""


def failed_call(reason: str, node: str) -> ExecutionError:
    """The error of a call that fails on its data at a node."""
    loop = reason.removeprefix(OUT_OF_CAPACITY).strip()
    hint = f"dimensions={{{loop}: N}} reserves memory for N trips" if reason.startswith(OUT_OF_CAPACITY) else ""
    kind = IndexOutOfRangeError if reason.endswith("out of range") else ExecutionError
    return kind(reason, node=node, hint=hint)


class CancelledError(ExecutionError):
    """A call that was ended before it was done: somebody told it to end, or interrupted it."""


class TimeLimitError(CancelledError, TimeoutError):
    """A call, or a compilation, that took longer than it was allowed to."""


class InputError(GlowError, ValueError):
    """A run-time input of the wrong name, shape or element type."""


class MapError(InputError, RuntimeError):
    """A map with a key or value of another type than the model declares, for which onnxruntime has `RuntimeError`."""


class UnknownNetworkError(InputError):
    """A name of a network, or a version of it, that a host does not have."""


class QueueFullError(GlowError):
    """A request for which there is no room in a queue, now."""


class NetworkHangsError(GlowError):
    """A network whose calls do not end, so that nobody computes what it is asked for."""


class OptionError(GlowError, ValueError, RuntimeError):
    """A command-line option or argument that makes no sense."""


class KeywordError(OptionError, TypeError):
    """A keyword argument that a function or a constructor does not have."""


class PackageError(GlowError):
    """An operator package that cannot be loaded, or that contradicts another."""


class ExtensionError(GlowError):
    """A failure inside a pass, lowering, kernel or importer of another package; `file` is the place in its code."""


class ParseFailure(GlowError):
    """Textual IR with a syntax error, or that does not verify."""


class CacheError(GlowError):
    """A folder or file of the cache that others own or may write to, so that what it holds may be theirs."""


class LayersDifferError(GlowError):
    """Layers of one form whose code depends on the elements of their weights: each is compiled by itself."""


class CompilerBugError(GlowError):
    """A failure that is the compiler's own fault; `reason` names the reproducer file."""
