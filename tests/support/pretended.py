"""Functions of a test that pass for code of this package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import glow_mlir

Function = TypeVar("Function", bound=Callable[..., Any])


def as_ours(function: Function) -> Function:
    """The function, as one of this package: what it raises is our bug."""
    file = str(Path(glow_mlir.__file__).with_name("pretended.py"))
    function.__code__ = function.__code__.replace(co_filename=file)
    return function
