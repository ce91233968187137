"""Finders of modules of other packages, which load these in a way of their own."""

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
    """Finds some modules where Python does, and lets others load them."""

    @abstractmethod
    def finds(self, name: str) -> bool:
        """Whether it is for a module of that name."""

    @abstractmethod
    def loader(self, name: str, plain: Loader) -> Loader:
        """The loader of a module that `plain` loads otherwise."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where a module is, and how it is loaded; nothing for all others."""
        spec = PathFinder.find_spec(name, path, target) if self.finds(name) else None
        if spec is not None and spec.loader is not None:
            spec.loader = self.loader(name, spec.loader)
        return spec


def install(finder: Finder) -> None:
    """Ask a finder before all others from now on; one of its kind that is asked already stays the only one."""
    if not any(isinstance(known, type(finder)) for known in sys.meta_path):
        sys.meta_path.insert(0, finder)
