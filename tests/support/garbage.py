"""The collection of garbage that tests wait for."""

from __future__ import annotations

import gc


def collect_garbage() -> None:
    """Collect all cyclic garbage."""
    gc.collect()
