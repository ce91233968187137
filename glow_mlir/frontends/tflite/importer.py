"""Import of a TensorFlow Lite model into functions of `glow_high`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.shapes import tensor
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.builder.constant_pool import ConstantPool
from glow_mlir.frontends.builder.module_builder import ModuleBuilder, named_location
from glow_mlir.frontends.builder.problems import Problems
from glow_mlir.frontends.tflite.file import OTHER_TYPES, Tensor, TfliteFile
from glow_mlir.frontends.tflite.names import Entry, entries_of
from glow_mlir.frontends.tflite.node import GraphValues
from glow_mlir.frontends.tflite.sizes import chosen_shapes
from glow_mlir.frontends.tflite.subgraphs import import_operator
from glow_mlir.frontends.tflite.variables import Variables, state_names
from glow_mlir.support.symbols import GivenDimension


def import_tflite(
    model: TfliteFile,
    pool: ConstantPool | None = None,
    tensors: Sequence[int] = (),
    name: str = "main",
    dimensions: Mapping[str, GivenDimension] | None = None,
    values: Mapping[str, np.ndarray] | None = None,
) -> ModuleOp:
    """
    The module of a model; inputs and outputs are as in the file.

    - `pool`: where large constants get names that do not depend on their content.
    - `tensors`: numbers of tensors of the first subgraph that are further outputs, called `tensor NUMBER`.
    - `name`: the name of the function, if the file has one entry; those of several have their own names.
    - `dimensions`: sizes and bounds of free axes of inputs, which have the size of the file by default.
    - `values`: inputs that become constants.

    Raises `UnsupportedError` with all operators that are not supported, `ModelError` for a damaged file, and
    `OptionError` for dimensions and values that do not fit.
    """
    entries, problems = entries_of(model), Problems()
    storage, initial = Storage(ModuleOp([])), dict[str, np.ndarray]()
    imports = [_GraphImport(model, entry, pool, storage, problems, initial) for entry in entries]
    for item in imports:
        item.run(dimensions or {}, values or {})
    problems.raise_all()
    for item in imports:
        item.finish(name if len(entries) == 1 else item.entry.name, tensors if item.entry.subgraph == 0 else ())
    return storage.module


class _GraphImport:
    """The import of one entry of a file; `initial` are the initial values of variables, which entries share."""

    def __init__(
        self,
        model: TfliteFile,
        entry: Entry,
        pool: ConstantPool | None,
        storage: Storage,
        problems: Problems,
        initial: dict[str, np.ndarray],
    ) -> None:
        self.entry = entry
        self._graph = model.subgraphs[entry.subgraph]
        names = frozenset(name for _, name in entry.outputs)
        self._builder = ModuleBuilder(names, pool, storage, problems=problems)
        variables = Variables(model, self._builder, state_names(model), initial)
        self._values = GraphValues(self._builder, self._graph.tensors, variables, calls=(entry.subgraph,))

    def run(self, dimensions: Mapping[str, GivenDimension], values: Mapping[str, np.ndarray]) -> None:
        """Import operators in their order, and note those that are not supported."""
        tensors = self._values.tensors
        shapes = chosen_shapes(self._graph, self.entry.inputs, dimensions)
        types = {
            name: tensor(shapes[number], ELEMENT_TYPES[_dtype(tensors[number], "an input")])
            for number, name in self.entry.inputs
        }
        given = self._builder.add_inputs(types, values)
        self._values.is_resized = any(shapes[number] != tensors[number].shape for number in shapes)
        for number, name in self.entry.inputs:
            self._values.set(number, given[name])
        for operator in self._graph.operators:
            with self._builder.node_errors(operator.kind, operator.name):
                import_operator(self._values, operator)

    def finish(self, function: str, others: Sequence[int]) -> None:
        """Complete the function, with other tensors as outputs."""
        self._values.variables.save()
        for number, name in (*self.entry.outputs, *((number, f"tensor {number}") for number in others)):
            _dtype(self._values.tensors[number], "an output")
            self._builder.add_output(name, self._output(number, name))
        self._builder.finish(function)

    def _output(self, number: int, name: str) -> SSAValue:
        """The value of a tensor that is an output, which may be a constant."""
        values, known = self._values.values, self._graph.tensors[number].values
        if number not in values and known is not None:
            values[number] = self._builder.constant(known, name, named_location(name))
        if number not in values:
            raise ModelError(f"output '{name}' is computed by no operator", hint="the file is cut off")
        return values[number]


def _dtype(item: Tensor, role: str) -> str:
    """The name of the dtype of a tensor that callers give or get."""
    if item.dtype in OTHER_TYPES or item.dtype not in ELEMENT_TYPES:
        raise UnsupportedError(f"{role} of {item.dtype} is not supported", node=item.name)
    return item.dtype
