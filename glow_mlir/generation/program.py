"""Programs over arrays, as models for sessions: functions that emit operators."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from glow_mlir.runtime.signature import Argument, Signature
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import GivenDimension

if TYPE_CHECKING:
    import numpy as np
    from xdsl.dialects.builtin import ModuleOp

Shaped = Mapping[str, tuple[str, tuple[int | str, ...]]]
"""Name → dtype and shape; sizes that are text are free dimensions."""


@dataclass(frozen=True)
class Program:
    """
    A program as a model for sessions.

    The function `function` of the module `home` emits it: it takes a `NodeBuilder`, the values of inputs by name, and
    `numbers`, and returns the values of outputs by name. The module is imported only where the program is compiled.
    """

    home: str
    function: str
    inputs: Shaped
    outputs: Shaped
    numbers: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Its name."""
        return f"the program {self.function}"

    @property
    def identity(self) -> str:
        """The name of the function, and what it is called with."""
        return f"program {self.home}.{self.function} {self.numbers} {dict(self.inputs)} {dict(self.outputs)}"

    def free_dimensions(self) -> list[str]:
        """The labels of its free dimensions."""
        shapes = [shape for _, shape in self.inputs.values()]
        return list(dict.fromkeys(size for shape in shapes for size in shape if isinstance(size, str)))

    def signature(self, dimensions: Mapping[str, GivenDimension]) -> Signature:
        """Inputs and outputs; `dimensions` has sizes of free dimensions."""

        def arguments(given: Shaped) -> tuple[Argument, ...]:
            return tuple(Argument(name, *form).sized(dimensions) for name, form in given.items())

        return Signature(arguments(self.inputs), arguments(self.outputs), {})

    def module(
        self,
        dimensions: Mapping[str, GivenDimension],
        by_content: bool = True,
        values: Mapping[str, np.ndarray] | None = None,
    ) -> ModuleOp:
        """The module of `glow_high` for these sizes."""
        from glow_mlir.dialects.element_types import ELEMENT_TYPES
        from glow_mlir.dialects.shapes import tensor
        from glow_mlir.frontends.builder.inputs import input_shapes
        from glow_mlir.frontends.builder.module_builder import ModuleBuilder, named_location
        from glow_mlir.frontends.builder.node_builder import NodeBuilder

        builder = ModuleBuilder(frozenset(self.outputs))
        shapes = input_shapes({name: shape for name, (_, shape) in self.inputs.items()}, dimensions, ())
        types = {name: tensor(shapes[name], ELEMENT_TYPES[dtype]) for name, (dtype, _) in self.inputs.items()}
        given = builder.add_inputs(types, values or {})
        node = NodeBuilder(builder, self.function, self.function, named_location(self.function))
        emit = getattr(import_module(self.home), self.function)
        for output, value in emit(node, given, *self.numbers).items():
            builder.add_output(output, value)
        return builder.finish("main")
