"""
Host programs: what the host puts into the queues of devices for one call, step by step, as data.

The compiler has decided all of it (docs/devices.md): where values are, what is transferred when, who waits for whom.
"""

from __future__ import annotations

from glow_mlir.runtime.artifact import Binding
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Allocate:
    """A buffer of so many bytes in the memory of a device, or of the host where none is named."""

    buffer: int
    device: str
    nbytes: int


@dataclass(frozen=True)
class Free:
    """A buffer is given back."""

    buffer: int


@dataclass(frozen=True)
class Call:
    """A queue runs an entry of its device, on buffers in the order of its inputs and outputs."""

    queue: str
    entry: str
    buffers: tuple[int, ...]


@dataclass(frozen=True)
class Transfer:
    """A queue copies bytes from a buffer in one memory to one in another."""

    queue: str
    target: int
    source: int
    nbytes: int


@dataclass(frozen=True)
class RecordEvent:
    """An event that happens when a queue has done all operations that it has now."""

    queue: str
    event: int


@dataclass(frozen=True)
class WaitEvent:
    """A queue goes on when an event has happened."""

    queue: str
    event: int


Step = Allocate | Free | Call | Transfer | RecordEvent | WaitEvent


@dataclass(frozen=True)
class HostProgram:
    """The steps of an entry. The first buffers are those of its bindings, in order; the others are allocated."""

    name: str
    bindings: tuple[Binding, ...]
    steps: tuple[Step, ...]
