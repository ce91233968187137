"""
How modules of xDSL are loaded: with data classes and definitions of operations that are made when they are needed.

As xDSL makes them, they take a quarter of the time that Python needs to import what a compilation is made of. What
modules mean stays as it is, and those that somebody has imported before are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import TYPE_CHECKING, Any

from glow_mlir.support import finder

if TYPE_CHECKING:
    from importlib.abc import Loader

_PACKAGE = "xdsl."
_DIALECTS = "xdsl.dialects."


def install() -> None:
    """Load modules of xDSL in this way from now on."""
    finder.install(_Finder())


class _Finder(finder.Finder):
    """Finds the modules of xDSL."""

    def finds(self, name: str) -> bool:
        return name.startswith(_PACKAGE)

    def loader(self, name: str, plain: Loader) -> Loader:
        return _Loader(name, plain.path) if type(plain) is SourceFileLoader else plain


class _Loader(SourceFileLoader):
    """Loads a module of xDSL."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the code of a module."""
        code = self.get_code(module.__name__)
        assert code is not None
        is_dialect = module.__name__.startswith(_DIALECTS)
        exec(code, vars(module), _Names(vars(module), _OF_DIALECTS if is_dialect else _OF_ALL))


def _dataclass(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Our decorator of data classes, or that of Python for what ours has not."""
    from glow_mlir.support.dataclass import dataclass

    def decorator(cls: type | None = None, /, **flags: bool) -> Any:
        if flags.get("unsafe_hash") is False:
            del flags["unsafe_hash"]
        decorate: Callable[..., Any] = dataclass if flags.keys() <= _FLAGS else theirs
        return decorate(cls, **flags)

    return decorator


_FLAGS = frozenset({"eq", "frozen", "init", "order", "repr"})


def _op_definition(_: Callable[..., Any]) -> Callable[..., Any]:
    from glow_mlir.xdsl_patches.definitions import op_definition

    return op_definition


_OF_ALL: Mapping[str, Callable[[Any], Any]] = {"dataclass": _dataclass}
"""Name of a decorator → what takes its place, in all modules."""

_OF_DIALECTS: Mapping[str, Callable[[Any], Any]] = {**_OF_ALL, "irdl_op_definition": _op_definition}
"""The same, in modules of dialects."""


class _Names(dict[str, Any]):
    """The names of a module while its code runs: decorators that it imports are replaced; it holds none itself."""

    def __init__(self, names: dict[str, Any], decorators: Mapping[str, Callable[[Any], Any]]) -> None:
        self._names = names
        self._decorators = decorators

    def __missing__(self, name: str) -> Any:
        return self._names[name]

    def __setitem__(self, name: str, value: Any) -> None:
        replaced = self._decorators.get(name)
        self._names[name] = value if replaced is None else replaced(value)

    def __delitem__(self, name: str) -> None:
        del self._names[name]
