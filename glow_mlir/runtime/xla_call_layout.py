"""
The layouts of calls from XLA.

Machine code (`codegen.xla_handler`) and runtime (`runtime.xla_calls`) share that of the record of an entry, in 64-bit
words from its start. Fields that different threads write are on different cache lines.
"""

HANDLER = "glow_xla_call"
"""The name of the handler, by which XLA calls entries."""

LINE = 16
"""Words between fields of different threads: two cache lines, because processors prefetch pairs of lines."""

FUNCTION, CONSTANTS, INPUTS, OUTPUTS, SLOTS = range(5)
"""The address of the entry, that of its constants, and the numbers of its inputs, of its outputs and of the slots."""
ENDED = LINE
"""The number of calls that have ended."""
FIRST_SLOT = 2 * LINE
"""The first slot, for one call at a time; the next ones are `LINE` apart."""

BUSY, ACTIVATIONS, POINTERS = range(3)
"""In a slot: 1 while a call uses it, and the addresses of activations and of the array of pointers to bindings."""


def words(slots: int) -> int:
    """The size of a record in words."""
    return FIRST_SLOT + slots * LINE
