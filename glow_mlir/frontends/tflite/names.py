"""The names of a model's inputs and outputs: those of its signature, or else of their tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from glow_mlir.frontends.tflite.file import TfliteFile

Names = Sequence[tuple[int, str]]
"""The number of a tensor, and a name; a tensor may be several outputs."""


def names_of(model: TfliteFile) -> tuple[Names, Names]:
    """The names of inputs and of outputs of the first subgraph, in order; equal names get a number."""
    graph = model.subgraphs[0]
    signature = next((item for item in model.signatures if item.subgraph == 0), None)
    known: tuple[Mapping[int, str], Mapping[int, str]] = ({}, {})
    if signature is not None:
        known = signature.inputs, signature.outputs
    tensors = [tensor.name for tensor in graph.tensors]
    taken: set[str] = set()
    inputs, outputs = (
        _unique(numbers, own, tensors, taken) for numbers, own in zip((graph.inputs, graph.outputs), known, strict=True)
    )
    return inputs, outputs


def _unique(numbers: Sequence[int], known: Mapping[int, str], tensors: Sequence[str], taken: set[str]) -> Names:
    found: list[tuple[int, str]] = []
    for position, number in enumerate(numbers):
        wish = known.get(number) or tensors[number] or f"tensor_{position}"
        name, count = wish, 1
        while name in taken:
            name, count = f"{wish}_{count}", count + 1
        taken.add(name)
        found.append((number, name))
    return found
