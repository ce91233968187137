"""The entries of a model, and the names of their inputs and outputs: those of signatures, or else of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from glow_mlir.frontends.tflite.file import Signature, TfliteFile
from glow_mlir.support.dataclass import dataclass

Names = Sequence[tuple[int, str]]
"""The number of a tensor, and a name; a tensor may be several outputs."""

MAIN = "main"
"""The name of the entry that is the first subgraph, where it has no signature."""


@dataclass(frozen=True)
class Entry:
    """What callers call: a subgraph, and the names of its inputs and outputs."""

    name: str
    subgraph: int
    inputs: Names
    outputs: Names


def entries_of(model: TfliteFile) -> list[Entry]:
    """
    The entries of a file: the first subgraph, and what the signatures name.

    Without a signature, the first subgraph is `main`. Equal names of entries, or in one of them, get a number.
    """
    signatures = [*model.signatures]
    if all(item.subgraph for item in signatures):
        signatures.insert(0, Signature(MAIN, 0))
    taken: set[str] = set()
    return [_entry(model, item, _unique(item.key or MAIN, taken)) for item in signatures]


def _entry(model: TfliteFile, signature: Signature, name: str) -> Entry:
    graph = model.subgraphs[signature.subgraph]
    tensors = [tensor.name for tensor in graph.tensors]
    taken: set[str] = set()
    inputs, outputs = (
        _named(numbers, own, tensors, taken)
        for numbers, own in ((graph.inputs, signature.inputs), (graph.outputs, signature.outputs))
    )
    return Entry(name, signature.subgraph, inputs, outputs)


def _named(numbers: Sequence[int], known: Mapping[int, str], tensors: Sequence[str], taken: set[str]) -> Names:
    return [
        (number, _unique(known.get(number) or tensors[number] or f"tensor_{position}", taken))
        for position, number in enumerate(numbers)
    ]


def _unique(wish: str, taken: set[str]) -> str:
    """The wish, with a number where it is taken."""
    name, count = wish, 1
    while name in taken:
        name, count = f"{wish}_{count}", count + 1
    taken.add(name)
    return name
