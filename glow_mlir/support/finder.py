"""Finders of modules of other packages, which load these in a way of their own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.importlib import MetaPathFinderProtocol


def install(finder: MetaPathFinderProtocol) -> None:
    """Ask a finder before all others from now on; one of its kind that is asked already stays the only one."""
    if not any(isinstance(known, type(finder)) for known in sys.meta_path):
        sys.meta_path.insert(0, finder)
