"""Finders that customize how modules of other packages are loaded."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Loader


class Finder(ABC):
    """Finds some modules at their normal places, and replaces their loader."""

    @abstractmethod
    def finds(self, name: str) -> bool:
        """Whether the finder handles a module."""

    @abstractmethod
    def loader(self, name: str, plain: Loader) -> Loader:
        """The replacement for a module's normal loader."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The location and loader of a handled module; nothing for others."""
        spec = PathFinder.find_spec(name, path, target) if self.finds(name) else None
        if spec is not None and spec.loader is not None:
            spec.loader = self.loader(name, spec.loader)
        return spec


def install(finder: Finder) -> None:
    """Install a finder before all others, unless one of its kind is already installed."""
    if not any(isinstance(known, type(finder)) for known in sys.meta_path):
        sys.meta_path.insert(0, finder)
