"""The packages of the extra `serve`, which are imported where a server starts."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from glow_mlir.errors import OptionError


@cache
def package(module: str) -> Any:
    """A module of a package that serves; raises `OptionError` where it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise OptionError(
            f"serving needs {name}, which is not installed", hint="pip install 'glow-mlir[serve]'"
        ) from error
