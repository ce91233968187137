"""Single operators as PyTorch would trace them, without PyTorch: what they give for arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from glow_mlir.api.model_session import ModelSession
from glow_mlir.frontends.torch.model import TracedModel
from glow_mlir.frontends.torch.traced_graph import (
    Expression,
    Reference,
    TracedGraph,
    TracedInput,
    TracedNode,
    TracedTensor,
)
from glow_mlir.support.dtypes import name_of

MOST = 9
"""The largest size of an axis whose size is known at run time only."""


def dense(array: np.ndarray, sizes: Sequence[Any] | None = None) -> TracedTensor:
    """An array as a traced tensor without gaps; `sizes` are what the graph says of it."""
    strides = tuple(step // array.itemsize for step in np.ascontiguousarray(array).strides)
    told = tuple(array.shape) if sizes is None else tuple(sizes)
    return TracedTensor(name_of(array.dtype), told, strides, (tuple(array.shape), strides))


def reference(argument: Any, names: Mapping[int, str]) -> Any:
    """An argument with references in the place of arrays."""
    if isinstance(argument, np.ndarray):
        return Reference(names[id(cast("object", argument))])
    if isinstance(argument, list | tuple):
        return tuple(reference(item, names) for item in cast("Sequence[Any]", argument))
    return argument


def computed(
    target: str,
    arguments: Sequence[Any],
    expected: Sequence[np.ndarray],
    keywords: Mapping[str, Any] | None = None,
    *,
    backend: str = "interpreter",
    free: Mapping[int, Sequence[Any]] | None = None,
    result_sizes: Sequence[Sequence[Any]] | None = None,
) -> list[np.ndarray]:
    """
    What an operator gives, whose arguments are arrays and what else it takes.

    Types and sizes of results are those of `expected`. `free` has the sizes of arguments by position that are known at
    run time only, as expressions; `result_sizes` those of results.
    """
    arrays = arrays_in([*arguments, *(keywords or {}).values()])
    names = {id(array): f"x{number}" for number, array in enumerate(arrays)}
    told = {id(arguments[place]): sizes for place, sizes in (free or {}).items()}
    inputs = tuple(TracedInput(names[id(array)], dense(array, told.get(id(array)))) for array in arrays)
    sizes = result_sizes or [None] * len(expected)
    results = tuple(dense(array, own) for array, own in zip(expected, sizes, strict=True))
    node = TracedNode(
        "y",
        target,
        tuple(reference(item, names) for item in arguments),
        {name: reference(item, names) for name, item in (keywords or {}).items()},
        results,
    )
    symbols = {
        symbol
        for tensor in (*(item.value for item in inputs), *results)
        if isinstance(tensor, TracedTensor)
        for size in tensor.sizes
        if isinstance(size, Expression)
        for symbol in size.symbols
    }
    outputs = tuple(Reference("y", number) for number in range(len(results)))
    graph = TracedGraph(inputs, (node,), outputs, dict.fromkeys(sorted(symbols), (1, MOST)))
    dimensions = {symbol: (1, MOST) for symbol in symbols if not symbol.startswith("u")}
    session = ModelSession.of(TracedModel(graph), backend=backend, cache=False, dimensions=dimensions)
    wanted = {argument.name for argument in session.first.inputs}
    found = session.run({names[id(array)]: array for array in arrays if names[id(array)] in wanted})
    return list(found.values())


def arrays_in(items: Sequence[Any]) -> list[np.ndarray]:
    """All arrays in nested lists."""
    found: list[np.ndarray] = []
    for item in items:
        if isinstance(item, np.ndarray):
            found.append(cast("np.ndarray", item))
        elif isinstance(item, list | tuple):
            found += arrays_in(cast("Sequence[Any]", item))
    return found


def size(name: str) -> Expression:
    """A size that is a symbol."""
    return Expression("symbol", value=name)
