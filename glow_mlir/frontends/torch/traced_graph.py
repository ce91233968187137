"""
A graph that PyTorch traced, as plain data: what importers, caches and other processes need of it, without PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from glow_mlir.support.dataclass import dataclass

ATTRIBUTE = "attribute"
"""What is called to have a graph that an operator is given."""


@dataclass(frozen=True)
class Expression:
    """
    A number that follows from symbols: the name of a symbol, a number, or an operation on two or more expressions.

    Operations are `add`, `mul`, `floordiv`, `mod`, `max`, `min` and, for all else that PyTorch computes, its own word.
    """

    word: str
    """An operation; `symbol` or `number` for what has no parts."""
    parts: tuple[Expression, ...] = ()
    value: int | str = 0
    """The number, or the name of the symbol."""

    @property
    def symbols(self) -> frozenset[str]:
        """The names of the symbols that it follows from."""
        if self.word == "symbol":
            return frozenset((str(self.value),))
        return frozenset(name for part in self.parts for name in part.symbols)


TracedSize = int | Expression
"""The number of elements along an axis, or between two of them."""


@dataclass(frozen=True)
class Word:
    """An argument of an operator that is one of PyTorch's words: a `dtype`, `device`, `layout` or `memory_format`."""

    kind: str
    text: str


@dataclass(frozen=True)
class Reference:
    """A result of a node, or an input, by its name; `index` says which of several results."""

    name: str
    index: int = 0


Argument = Reference | Expression | Word | int | float | bool | str | None | tuple["Argument", ...]
"""What an operator is given."""


@dataclass(frozen=True)
class TracedTensor:
    """The element type, sizes and strides (in elements) of a tensor; strides as they were for `hint` sizes."""

    dtype: str
    sizes: tuple[TracedSize, ...]
    strides: tuple[TracedSize, ...] = ()
    hint: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    """Sizes and strides of the example."""
    view: tuple[str, TracedSize] | None = None
    """The input that it is, or is a view of, and how many elements behind the beginning of that it begins."""
    offset: TracedSize = 0
    """How many elements lie in memory in front of it."""


TracedValue = TracedTensor | Expression | int | float | bool | None
"""What a node gives: a tensor, or a number."""


@dataclass(frozen=True)
class SourceLocation:
    """Where a node comes from: the module that was called, and the line of the program."""

    module: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        """`file:line`, as far as it is known."""
        return f"{self.file}:{self.line}" if self.file else ""


CONSTANT = "traced.constant.default"
"""The target of a node that is a tensor, whose bytes are its argument, in hexadecimal digits."""


SIZE = "traced.size.default"
"""The target of a node that is a size as a tensor, of an expression."""


@dataclass(frozen=True)
class TracedNode:
    """One call of an operator: `aten.add.Tensor`, its arguments, and its results in order."""

    name: str
    target: str
    arguments: tuple[Argument, ...]
    keywords: Mapping[str, Argument]
    results: tuple[TracedValue, ...]
    location: SourceLocation = SourceLocation()


@dataclass(frozen=True)
class TracedInput:
    """An input of a graph: a tensor, or a number that is what the expression says."""

    name: str
    value: TracedTensor | Expression | int


@dataclass(frozen=True)
class TracedGraph:
    """Inputs, nodes in order, and outputs, which may be numbers or nothing, in order."""

    inputs: tuple[TracedInput, ...]
    nodes: tuple[TracedNode, ...]
    outputs: tuple[Argument, ...]
    symbols: Mapping[str, tuple[int, int | None]] = field(default_factory=dict[str, tuple[int, int | None]])
    """Symbol → the least and largest number that it is; `None` where nothing is known of that."""
    size_inputs: tuple[str, ...] = ()
    """Inputs that only say by their size what a symbol is."""

    @property
    def values(self) -> dict[str, tuple[TracedValue, ...]]:
        """Input or node → what it gives."""
        given: dict[str, tuple[TracedValue, ...]] = {item.name: (item.value,) for item in self.inputs}
        return given | {node.name: node.results for node in self.nodes}
