"""A graph traced by PyTorch, as plain data for importers, caches and other processes, without PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from glow_mlir.support.dataclass import dataclass

ATTRIBUTE = "attribute"
"""The target of a node that returns a graph passed to an operator."""


SYMBOLS = ("symbol", "float_symbol")
"""The words of symbols, for whole numbers and for floats."""

LEAVES = ("number", "float", *SYMBOLS)
"""The words of expressions without parts."""


@dataclass(frozen=True)
class Expression:
    """
    A number computed from symbols: a symbol, a constant, or an operation on two or more expressions.

    Operations are `add`, `mul`, `floordiv`, `mod`, `max`, `min`, and PyTorch's word for all others.
    """

    word: str
    """An operation; one of `LEAVES` for an expression without parts."""
    parts: tuple[Expression, ...] = ()
    value: int | float | str = 0
    """The number, or the name of the symbol."""

    @property
    def symbols(self) -> frozenset[str]:
        """The names of its symbols."""
        if self.word in SYMBOLS:
            return frozenset((str(self.value),))
        return frozenset(name for part in self.parts for name in part.symbols)


TracedSize = int | Expression
"""A size, or a stride in elements."""


@dataclass(frozen=True)
class Word:
    """An argument that is one of PyTorch's words: a `dtype`, `device`, `layout` or `memory_format`."""

    kind: str
    text: str


@dataclass(frozen=True)
class Reference:
    """A reference to an input or a node's result; `index` is the position among several results."""

    name: str
    index: int = 0


Argument = Reference | Expression | Word | int | float | bool | str | None | tuple["Argument", ...]
"""An argument of an operator."""


@dataclass(frozen=True)
class TracedTensor:
    """The element type, sizes and strides (in elements) of a tensor; `hint` has those of the example."""

    dtype: str
    sizes: tuple[TracedSize, ...]
    strides: tuple[TracedSize, ...] = ()
    hint: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    """Sizes and strides of the example."""
    view: tuple[str, TracedSize] | None = None
    """The input that it is, or is a view of, and its offset from the start of that input, in elements."""
    offset: TracedSize = 0
    """Its offset in memory, in elements."""


TracedValue = TracedTensor | Expression | int | float | bool | None
"""A result of a node: a tensor, or a number."""


@dataclass(frozen=True)
class SourceLocation:
    """The origin of a node: the module that was called, and the line of the program."""

    module: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        """`file:line`, or an empty string if it is unknown."""
        return f"{self.file}:{self.line}" if self.file else ""


CONSTANT = "traced.constant.default"
"""The target of a node that is a constant tensor; its argument has the bytes, in hexadecimal digits."""


SIZE = "traced.size.default"
"""The target of a node that converts a size, an expression, to a tensor."""


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
    """An input of a graph: a tensor, or a number given by an expression."""

    name: str
    value: TracedTensor | Expression | int


@dataclass(frozen=True)
class TracedGraph:
    """Inputs, nodes in order, and outputs, which may be numbers or nothing, in order."""

    inputs: tuple[TracedInput, ...]
    nodes: tuple[TracedNode, ...]
    outputs: tuple[Argument, ...]
    symbols: Mapping[str, tuple[int, int | None]] = field(default_factory=dict[str, tuple[int, int | None]])
    """Symbol → its lower and upper bound; `None` if there is no upper bound."""
    derived: Mapping[str, Expression] = field(default_factory=dict[str, Expression])
    """Symbol → the number for which it stands, an expression of other symbols that is not a size."""
    size_inputs: tuple[str, ...] = ()
    """Inputs that are needed only because their sizes define symbols."""

    @property
    def values(self) -> dict[str, tuple[TracedValue, ...]]:
        """Input or node → its results."""
        given: dict[str, tuple[TracedValue, ...]] = {item.name: (item.value,) for item in self.inputs}
        return given | {node.name: node.results for node in self.nodes}
