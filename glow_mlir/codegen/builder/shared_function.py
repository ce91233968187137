"""Functions of the module that many instructions call: built once for each variant, with their arguments by name."""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.value import Index, Value


class SharedBody(ABC):
    """Code within functions that may read scalar parameters of the instruction."""

    @property
    @abstractmethod
    def takes_scalars(self) -> bool:
        """Whether it reads scalar parameters."""


class SharedFunction(ABC):
    """A variant of a function. Subclasses are frozen dataclasses, and the code depends only on their fields."""

    @property
    @abstractmethod
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the parameters, in order."""

    @property
    @abstractmethod
    def readable(self) -> str:
        """The readable name of the function."""

    @abstractmethod
    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        """Emit the body; `given` has the arguments by name."""

    def call(self, b: Builder, **arguments: Index) -> None:
        """Call the function, which is built the first time. Arguments that this variant lacks are ignored."""
        name = b.module.shared(self, lambda name: self._build(b.module, name), self.readable)
        b.call(name, [arguments[parameter] for parameter, _ in self.parameters])

    @property
    def _takes_scalars(self) -> bool:
        """Whether a field reads scalar parameters."""
        return any(value.takes_scalars for value in vars(self).values() if isinstance(value, SharedBody))

    def _build(self, module: ModuleBuilder, name: str) -> None:
        names, types = zip(*self.parameters, strict=True)
        function = define_function(
            module, name, types, internal=True, inline=False, takes_scalars=self._takes_scalars, names=names
        )
        with function as (b, arguments):
            self.emit(b, dict(zip(names, arguments, strict=True)))
