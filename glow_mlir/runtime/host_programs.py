"""
Host programs: the queue operations of one call, step by step, as data.

The compiler has decided them (docs/devices.md): buffers, transfers, and waiting.
"""

from __future__ import annotations

from glow_mlir.runtime.artifact import Binding
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Allocate:
    """Allocate a buffer of that many bytes in device memory, or in host memory if no device is named."""

    buffer: int
    device: str
    nbytes: int


@dataclass(frozen=True)
class Free:
    """Free a buffer."""

    buffer: int


@dataclass(frozen=True)
class Call:
    """A queue runs an entry of its device, on buffers in the order of its inputs and outputs."""

    queue: str
    entry: str
    buffers: tuple[int, ...]


@dataclass(frozen=True)
class Transfer:
    """A queue copies bytes between buffers in different memories."""

    queue: str
    target: int
    source: int
    nbytes: int


@dataclass(frozen=True)
class RecordEvent:
    """Record an event that happens when a queue has finished all present operations."""

    queue: str
    event: int


@dataclass(frozen=True)
class WaitEvent:
    """A queue waits for an event."""

    queue: str
    event: int


Step = Allocate | Free | Call | Transfer | RecordEvent | WaitEvent


@dataclass(frozen=True)
class HostProgram:
    """The steps of an entry. The first buffers are its bindings, in order; the others are allocated."""

    name: str
    bindings: tuple[Binding, ...]
    steps: tuple[Step, ...]
