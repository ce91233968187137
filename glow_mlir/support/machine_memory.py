"""How much memory this process may have."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""Where Linux says how many bytes a container may have, or `max`."""


def usable_memory() -> int:
    """The bytes of memory of this machine, or of the container that the process is in."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # There is no container, or it has no limit.
        found = min(found, int(GROUP_LIMIT.read_text(encoding="ascii")))
    return found
