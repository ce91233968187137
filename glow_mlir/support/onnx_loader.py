"""
Delay some imports of the `onnx` package until they are used.

These modules import parsers of command lines, archives and JSON, and take a quarter of the time of `import onnx`.
Modules imported from elsewhere, or already imported, are not affected.
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
    """Install the delayed loading of the `onnx` package."""
    finder.install(_Finder())


class _Finder(finder.Finder):
    """Find the modules to delay, while the package is loaded."""

    def finds(self, name: str) -> bool:
        return name in _WAITING and _is_loading("onnx")

    def loader(self, name: str, plain: Loader) -> Loader:
        from importlib.util import LazyLoader

        return LazyLoader(plain)


def _is_loading(name: str) -> bool:
    """Whether the code of a module is running."""
    return bool(getattr(sys.modules[name].__spec__, "_initializing", False))
