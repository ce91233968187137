"""Entries that XLA calls: their records, and the handler that it calls them by."""

from __future__ import annotations

import itertools

import numpy as np

from glow_mlir.runtime import xla_call_layout as layout
from glow_mlir.runtime.aligned_memory import ALIGNMENT, aligned
from glow_mlir.runtime.cores import usable_cores
from glow_mlir.runtime.machine_code import MachineEntry

MAX_SLOTS = 8
"""The maximum number of calls of a record at once; others wait. Memory that no call has used takes none."""


class CallRecord:
    """
    The record of an entry, whose address is the attribute of its calls.

    It has to live as long as a call is in progress: XLA may make calls later than their caller returns.
    """

    def __init__(self, entry: MachineEntry) -> None:
        """`entry` takes pointers alone: `MachineEntry.takes_pointers`."""
        slots = min(MAX_SLOTS, usable_cores())
        roles = [binding.role for binding in entry.bindings]
        self._entry = entry
        self._words = aligned(layout.words(slots) * 8, np.zeros).view(np.int64)
        self._words[layout.FUNCTION] = entry.address
        self._words[layout.INPUTS], self._words[layout.OUTPUTS] = roles.count("input"), roles.count("output")
        self._words[layout.SLOTS] = slots
        self._kept = [self._slot(number) for number in range(slots)]
        self._begun = itertools.count()
        self.renew()

    def _slot(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Fill a slot; return its activations and its pointers."""
        activations = aligned(max(self._entry.entry.activations, ALIGNMENT))
        pointers = np.array([0] * len(self._entry.bindings) + self._entry.behind, np.int64)
        start = layout.FIRST_SLOT + number * layout.LINE
        self._words[start + layout.ACTIVATIONS] = activations.ctypes.data
        self._words[start + layout.POINTERS] = pointers.ctypes.data
        return activations, pointers

    @property
    def address(self) -> int:
        """The address of the record."""
        return self._words.ctypes.data

    def renew(self) -> None:
        """Take over the constants that the entry has now."""
        self.constants_address = self._entry.constants_address
        """The address of the constants that calls use."""
        self._words[layout.CONSTANTS] = self.constants_address

    def begin(self) -> None:
        """Count a call that XLA has begun, or will."""
        next(self._begun)  # One step, which threads at once both make; a lock takes longer.

    @property
    def is_idle(self) -> bool:
        """Whether all calls have ended."""
        begun = int(repr(self._begun).removeprefix("count(").removesuffix(")"))  # There is no other way to read it.
        return int(self._words[layout.ENDED]) >= begun
