"""
How ONNX's package is loaded: what it imports beside what reads and checks models waits until somebody uses it.

These modules bring in parsers of command lines, archives and JSON, and take a quarter of the time of `import onnx`. One
whose import does not begin at the package itself, or that somebody has imported before, stays as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from glow_mlir.support import finder

_WAITING = frozenset(
    f"onnx.{name}" for name in "compose gen_proto parser printer serialization utils version_converter".split()
)


def install() -> None:
    """Load ONNX's package in this way from now on."""
    finder.install(_Finder())


class _Finder:
    """Finds the modules that wait, while the package is loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where such a module is; nothing for all others, and where the package is there."""
        if name not in _WAITING or not _is_loading("onnx"):
            return None
        from importlib.util import LazyLoader

        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def _is_loading(name: str) -> bool:
    """Whether the code of a module is running."""
    return bool(getattr(sys.modules[name].__spec__, "_initializing", False))
