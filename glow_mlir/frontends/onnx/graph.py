"""Import of the graph of an ONNX model into a function of `glow_high`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cache
from typing import Any

import numpy as np
import onnx
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.constants.storage import Storage
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.constant_pool import ConstantPool
from glow_mlir.frontends.builder.inputs import without_trip_capacities
from glow_mlir.frontends.builder.module_builder import ModuleBuilder
from glow_mlir.frontends.onnx.graph_outputs import GraphOutputs
from glow_mlir.frontends.onnx.inconsistencies import Inconsistencies
from glow_mlir.frontends.onnx.model_import import ModelImport
from glow_mlir.frontends.onnx.models.functions import find_importer
from glow_mlir.frontends.onnx.models.sparse import initializers_of
from glow_mlir.frontends.onnx.models.tensors import Tensors
from glow_mlir.frontends.onnx.models.types import declared_sizes, input_types
from glow_mlir.frontends.onnx.scope import Scope
from glow_mlir.frontends.onnx.values import Strings
from glow_mlir.ir.python_values import tell_python_values
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import GivenDimension


@dataclass
class GraphImporter:
    """
    Import one graph as a function.

    `tensors` reads the contents of the model's tensors. With a `pool`, large constants have meaningless names. `values`
    are inputs with constant values. Initializers named in `state` become state, trainable if its value is true. If
    there is a `module`, the function is added to it, and shares storage of the same name and type.
    """

    graph: onnx.GraphProto
    opsets: Mapping[str, int]
    dimensions: Mapping[str, GivenDimension]
    tensors: Tensors = field(default_factory=Tensors)
    pool: ConstantPool | None = None
    values: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    inconsistencies: Inconsistencies = field(default_factory=Inconsistencies)
    """Faults of the model that do not prevent the import."""
    state: Mapping[str, bool] = field(default_factory=dict[str, bool])
    module: ModuleOp | None = None
    seed: int = 0
    """The seed of random numbers for nodes without a seed of their own."""
    importers: Mapping[tuple[str, str], Callable[..., Any]] = field(
        default_factory=dict[tuple[str, str], Callable[..., Any]]
    )
    """Domain and kind of an operator → its importer in this graph, in place of the usual one."""

    def run(self, name: str) -> ModuleOp:
        """Import the graph as function `name` of a new module."""
        initializers = initializers_of(self.graph)
        inputs = [value for value in self.graph.input if value.name not in initializers]
        outputs = [value.name for value in self.graph.output]
        builder = ModuleBuilder(
            frozenset(outputs), self.pool, Storage(ModuleOp([]) if self.module is None else self.module), self.seed
        )
        dimensions, builder.trip_capacities = without_trip_capacities(
            self.dimensions, {size for value in inputs for size in map(str, declared_sizes(value))}
        )
        model = ModelImport(builder, self.tensors, self.state, self.inconsistencies, cache(self._importer))
        scope = Scope(model, self.opsets, initializers=initializers)
        given = builder.add_inputs(input_types(inputs, dimensions), self.values)
        strings = {value.name for value in inputs if value.type.tensor_type.elem_type == onnx.TensorProto.STRING}
        scope.values.update((name, Strings(value) if name in strings else value) for name, value in given.items())
        scope.run(self.graph.node)
        scope.lacks(outputs)
        builder.problems.raise_all()
        described = GraphOutputs(builder)
        for output in self.graph.output:
            value = scope.lookup(output.name) if scope.knows(output.name) else None
            if value is None:
                hint = "the model is cut off or edited wrongly"
                raise ModelError(f"output '{output.name}' is computed by no node", hint=hint)
            described.add(output, value)
        self.inconsistencies.check_values(self.graph, scope.values, is_main=True)
        module = builder.finish(name)
        if strings or not described.are_tensors:
            entry = {"strings": sorted(strings), "outputs": described.described}
            tell_python_values(module, {"entries": {name: entry}, "strings": list(model.strings.words)})
        return module

    def _importer(self, domain: str, kind: str, version: int) -> Callable[..., Any] | None:
        """The importer of an operator in this graph; `None` if there is none."""
        return self.importers.get((domain, kind)) or find_importer(domain, kind, version)
