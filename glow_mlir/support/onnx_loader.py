"""
How ONNX's package is loaded: what it imports beside what reads and checks models waits until somebody uses it.

These modules bring in parsers of command lines, archives and JSON, and take a quarter of the time of `import onnx`. One
whose import does not begin at the package itself, or that somebody has imported before, stays as it is.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from glow_mlir.support import finder

if TYPE_CHECKING:
    from importlib.abc import Loader

_WAITING = frozenset(
    f"onnx.{name}" for name in "compose gen_proto parser printer serialization utils version_converter".split()
)


def install() -> None:
    """Load ONNX's package in this way from now on."""
    finder.install(_Finder())


class _Finder(finder.Finder):
    """Finds the modules that wait, while the package is loaded."""

    def finds(self, name: str) -> bool:
        return name in _WAITING and _is_loading("onnx")

    def loader(self, name: str, plain: Loader) -> Loader:
        from importlib.util import LazyLoader

        return LazyLoader(plain)


def _is_loading(name: str) -> bool:
    """Whether the code of a module is running."""
    return bool(getattr(sys.modules[name].__spec__, "_initializing", False))
