"""The packages of the extra `serve`, imported when a server starts."""

from __future__ import annotations

from functools import cache
from typing import Any

from glow_mlir.support.optional_packages import imported


@cache
def package(module: str) -> Any:
    """A module of a serving package; raises `OptionError` if it is not installed."""
    return imported(module, "serve", f"serving needs {module.partition('.')[0]}")
