"""Names that are hard on text, and models whose values all have such names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import onnx

_FORMS: tuple[Callable[[int], str], ...] = (
    lambda n: f"{n}",
    lambda n: f"{n}_2",
    lambda n: f"_{n}",
    lambda n: f"{n}.5",
    lambda n: f"%{n}",
    lambda n: f".{n}",
    lambda n: "ä" * (n + 1),
    lambda n: "名前" * (n + 1),
    lambda n: "_" * (n + 1),
    lambda n: "%" * (n + 1),
    lambda n: f"a_{n}_1",
    lambda n: f"a/{n}",
    lambda n: f"a:{n}",
    lambda n: f"a {n}",
    lambda n: f'"{n}"\n\\',
    lambda n: f"ünit-{n}$",
)


def hostile_name(number: int) -> str:
    """
    A name for each number, all different: digits, dots, spaces, quotes, letters outside of ASCII.

    Some lose everything where only MLIR's characters are kept, others are the same then.
    """
    return _FORMS[number % len(_FORMS)](number // len(_FORMS))


def renamed(model: onnx.ModelProto, kept: Iterable[str] = ()) -> tuple[onnx.ModelProto, dict[str, str]]:
    """
    A copy of a model in which every node and every value but the `kept` ones has a hostile name, and name before → name
    in the copy.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    names = {name: name for name in kept}
    _rename_graph(copy.graph, names)
    return copy, names


def _rename_graph(graph: onnx.GraphProto, names: dict[str, str]) -> None:
    for owner in (*graph.input, *graph.initializer, *graph.output, *graph.value_info):
        owner.name = _new(owner.name, names)
    for node in graph.node:
        node.name = hostile_name(len(names))
        node.input[:] = _all_new(node.input, names)
        node.output[:] = _all_new(node.output, names)
        for attribute in node.attribute:
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                _rename_graph(inner, names)


def _all_new(given: Iterable[str], names: dict[str, str]) -> list[str]:
    return [_new(name, names) for name in given]


def _new(name: str, names: dict[str, str]) -> str:
    """The new name for a name; an absent value stays absent."""
    return names.setdefault(name, hostile_name(len(names))) if name else ""
