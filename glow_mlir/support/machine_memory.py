"""The memory available to this process."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""Linux's files for the memory limit of a container in bytes, or `max`."""


def usable_memory() -> int:
    """The bytes of memory of this machine, or of the container that the process is in."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # There is no container, or it has no limit.
        found = min(found, int(GROUP_LIMIT.read_text(encoding="ascii")))
    return found
