"""Python's collector of cyclic garbage, and how the compiler keeps it away."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Generator[None]:
    """
    Pause the collector of cyclic garbage; also a decorator.

    IR is a large graph of objects that nearly all live until a compilation ends. The collector walks them again and
    again as ops are built, and finds next to nothing. One that is off already stays off.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
