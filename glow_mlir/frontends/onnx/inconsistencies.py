"""Inconsistencies of a model that do not prevent its import: warnings, or errors if the import is strict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import onnx
from xdsl.ir import SSAValue

from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.errors import ModelError, joined
from glow_mlir.frontends.onnx.models.doubts import Doubt
from glow_mlir.frontends.onnx.models.sparse import initializers_of
from glow_mlir.frontends.onnx.models.traversal import all_graphs
from glow_mlir.frontends.onnx.models.types import names_of_element, negative_extents, onnx_kind, says_unknown
from glow_mlir.frontends.onnx.values import Strings, Value
from glow_mlir.support.activity import caution
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, Sizes

WITH_INITIALIZERS = 3
"""The last IR version that requires every initializer to be an input as well."""


@dataclass
class Inconsistencies:
    """The inconsistencies of a model: each output is reported, all inner values are reported together."""

    outputs: dict[str, Doubt] = field(default_factory=dict[str, Doubt])
    values: dict[str, Doubt] = field(default_factory=dict[str, Doubt])
    others: list[Doubt] = field(default_factory=list[Doubt])
    doubts: list[tuple[str, Doubt]] = field(default_factory=list[tuple[str, Doubt]])
    """Operators and faults of nodes: the first of each operator is reported, with their number."""
    customs: list[tuple[str, Doubt]] = field(default_factory=list[tuple[str, Doubt]])
    """Kinds and faults that are common in files: the first of each kind is reported if the import is strict."""
    wrong: list[ModelError] = field(default_factory=list[ModelError])
    """Errors in any case: wrong element types. The first is raised after the import, if nothing else failed."""

    def check_graph(self, model: onnx.ModelProto) -> None:
        """Record initializers that are not inputs although the IR version requires it, and invalid sizes."""
        graph = model.graph
        self._check_names(graph)
        if lifted := lifted_initializers(model):
            listed = ", ".join(f"'{name}'" for name in lifted[:3]) + (", …" if len(lifted) > 3 else "")
            is_one = len(lifted) == 1
            plural = "initializer is not an input" if is_one else "initializers are not inputs"
            reason = f"{len(lifted)} {plural}, as IR version {model.ir_version} requires: {listed}"
            assumed = "it is treated as a constant" if is_one else "they are treated as constants"
            self.others.append(Doubt(reason, assumed, hint="export it with IR version 4 or later"))
        for inner in all_graphs(graph):
            for what, values in (("input", inner.input), ("output", inner.output), ("value", inner.value_info)):
                for value in values:
                    self._check_extents(what, value)

    def _check_extents(self, what: str, value: onnx.ValueInfoProto) -> None:
        """Record negative extents; in many files, -1 stands for a free dimension."""
        if negative := negative_extents(value):
            reason = f"{what} '{value.name}' is declared with an extent of {min(negative)}"
            doubt = Doubt(reason, "it is treated as free", hint="name the dimension, or omit its extent")
            if min(negative) == -1:
                self.customs.append((value.name, doubt))
            else:
                self.others.append(doubt)

    def _check_names(self, graph: onnx.GraphProto) -> None:
        """Record repeated names that only say "unknown"; by the standard, dimensions of one name have one size."""
        sizes = [size.dim_param for value in graph.input for size in value.type.tensor_type.shape.dim]
        for name, positions in Counter(filter(says_unknown, filter(None, sizes))).items():
            if positions > 1:
                reason = f"{positions} dimensions of inputs are called '{name}'"
                hint = "omit the name, or give each its own"
                self.others.append(Doubt(reason, "they are treated as independent", hint=hint))

    def check_values(self, graph: onnx.GraphProto, values: Mapping[str, Value | None], is_main: bool = False) -> None:
        """
        Record declared shapes and element types that differ from those of a graph's values; only tensors are checked.

        `is_main` is true for the model's own graph, which is checked last: raises `ModelError` if an element type of
        any graph differs.
        """
        for declared in () if is_main else graph.input:
            self._check("input", declared, values.get(declared.name), self.values)
        for declared in graph.output:
            self._check("output", declared, values.get(declared.name), self.outputs if is_main else self.values)
        for declared in graph.value_info:
            if declared.name not in self.outputs:
                self._check("value", declared, values.get(declared.name), self.values)
        if is_main and self.wrong:
            raise self.wrong[0]

    def _check(self, what: str, declared: onnx.ValueInfoProto, value: Value | None, found: dict[str, Doubt]) -> None:
        if isinstance(value, SSAValue) and (wrong := wrong_element(what, declared, value)) is not None:
            self.wrong.append(wrong)
            return
        tensor = value.numbers if isinstance(value, Strings) else value
        if isinstance(tensor, SSAValue) and (doubt := wrong_shape(what, declared, sizes_of(tensor))) is not None:
            found.setdefault(declared.name, doubt)

    def reported(self) -> list[Doubt]:
        """All inconsistencies to report; those of inner values come last, as one."""
        found = [*self.others, *_firsts(self.doubts), *self.outputs.values()]
        if self.values:
            first, *rest = self.values.values()
            more = f" ({len(rest)} more are declared with other shapes than they have)" if rest else ""
            found.append(Doubt(first.reason, first.assumed, hint=first.hint, times=more))
        return found

    def settle(self, file: str, is_strict: bool) -> None:
        """Warn of all inconsistencies; raises `ModelError` if `is_strict`."""
        found = [*self.reported(), *(_firsts(self.customs) if is_strict else ())]
        for inconsistency in found:
            inconsistency.file = file
        if is_strict and found:
            raise joined([inconsistency.refusal() for inconsistency in found])
        for inconsistency in found:
            caution(inconsistency.warning())


def _firsts(doubts: Iterable[tuple[str, Doubt]]) -> list[Doubt]:
    """The first doubt of each kind, with the numbers of nodes that have the same one or another of this kind."""
    by_kind: dict[str, list[Doubt]] = {}
    for kind, doubt in doubts:
        by_kind.setdefault(kind, []).append(doubt)
    found: list[Doubt] = []
    for first, *rest in by_kind.values():
        same = {
            doubt.node for doubt in (first, *rest) if (doubt.reason, doubt.assumed) == (first.reason, first.assumed)
        }
        alike = len({doubt.node for doubt in rest} - same)
        counts = [f"{len(same)} nodes"] if len(same) > 1 else []
        counts += [f"{alike} more nodes have a fault of this kind"] if alike > 1 else []
        counts += ["1 more node has a fault of this kind"] if alike == 1 else []
        more = f" ({', '.join(counts)})" if counts else ""
        found.append(Doubt(first.reason, first.assumed, node=first.node, hint=first.hint, times=more))
    return found


HINT = "declarations must match the results of nodes"


def wrong_element(what: str, declared: onnx.ValueInfoProto, value: SSAValue) -> ModelError | None:
    """The error for a declared element type that differs from the value's; `None` if it does not."""
    declared_type, actual = declared.type.tensor_type.elem_type, onnx_kind(value)
    if declared_type in (onnx.TensorProto.UNDEFINED, actual):
        return None
    names = [names_of_element(kind)[0] for kind in (declared_type, actual)]
    return ModelError(f"{what} '{declared.name}' is declared as {names[0]}, but is {names[1]}", hint=HINT)


def wrong_shape(what: str, declared: onnx.ValueInfoProto, shape: Sizes) -> Doubt | None:
    """The doubt about a declared shape that a value cannot have; `None` if it can."""
    declared_type = declared.type.tensor_type
    if not declared_type.HasField("shape"):
        return None
    extents = [size.dim_value if size.HasField("dim_value") else -1 for size in declared_type.shape.dim]
    if len(extents) == len(shape) and all(map(_may_be, extents, shape)):
        return None
    listed = ", ".join("?" if extent < 0 else str(extent) for extent in extents)
    reason = f"{what} '{declared.name}' is declared with shape ({listed}), but has shape {shape}"
    return Doubt(reason, "the result of its node is used", hint=HINT)


def _may_be(extent: int, size: Size) -> bool:
    """Whether a size can equal a declared extent; a negative extent is free."""
    return extent < 0 or smallest(size) <= extent <= largest(size)


def lifted_initializers(model: onnx.ModelProto) -> Sequence[str]:
    """The initializers that are not inputs although the model's old IR version requires it."""
    if not 1 <= model.ir_version <= WITH_INITIALIZERS:
        return ()
    inputs = {value.name for value in model.graph.input}
    return [name for name in initializers_of(model.graph) if name not in inputs]


def without_shapes(graph: onnx.GraphProto, inner: Iterable[onnx.GraphProto]) -> None:
    """Remove all declared shapes except those of the graph's inputs, from a graph and its subgraphs `inner`."""
    follow = [*graph.output, *graph.value_info]
    follow += [value for own in inner for value in (*own.input, *own.output, *own.value_info)]
    for value in follow:
        if value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.ClearField("shape")
