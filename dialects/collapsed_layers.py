"""The attribute `glow.layers` of a module: the layers that `collapse-layers` erased, and that `expand-layers` adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntAttr, ModuleOp, StringAttr

from glow_mlir.support.dataclass import dataclass

LAYERS = "glow.layers"
"""The module attribute of erased layers."""


@dataclass(frozen=True)
class CollapsedLayers:
    """
    A run of equal layers, `omitted` of which are erased behind the last one that is kept.

    `name` is that of a constant of the first layer. `placeholders` and `nodes` hold the names in one place of each
    layer, for each place.
    """

    name: str
    omitted: int
    placeholders: Sequence[tuple[str, ...]]
    nodes: Sequence[tuple[str, ...]]


def keep_collapsed(module: ModuleOp, runs: Sequence[CollapsedLayers]) -> None:
    """Record the erased layers of a module; none removes the attribute."""
    if not runs:
        module.attributes.pop(LAYERS, None)
        return
    module.attributes[LAYERS] = ArrayAttr(
        DictionaryAttr(
            {
                "name": StringAttr(run.name),
                "omitted": IntAttr(run.omitted),
                "placeholders": _table(run.placeholders),
                "nodes": _table(run.nodes),
            }
        )
        for run in runs
    )


def collapsed_layers(module: ModuleOp) -> list[CollapsedLayers]:
    """The erased layers of a module."""
    runs = cast("ArrayAttr[DictionaryAttr] | None", module.attributes.get(LAYERS))
    return [] if runs is None else [_run(run) for run in runs.data]


def names_in_layers(module: ModuleOp) -> set[str]:
    """The inputs and outputs of layers of which some are erased."""
    return {name for run in collapsed_layers(module) for row in run.placeholders for name in row}


def _run(attribute: DictionaryAttr) -> CollapsedLayers:
    name, omitted = cast("StringAttr", attribute.data["name"]).data, cast("IntAttr", attribute.data["omitted"]).data
    return CollapsedLayers(name, omitted, _names(attribute.data["placeholders"]), _names(attribute.data["nodes"]))


def _table(rows: Sequence[tuple[str, ...]]) -> ArrayAttr[ArrayAttr[StringAttr]]:
    return ArrayAttr(ArrayAttr(StringAttr(name) for name in row) for row in rows)


def _names(table: object) -> list[tuple[str, ...]]:
    rows = cast("ArrayAttr[ArrayAttr[StringAttr]]", table)
    return [tuple(name.data for name in row.data) for row in rows.data]
