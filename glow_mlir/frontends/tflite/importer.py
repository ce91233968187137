"""Import of a TensorFlow Lite model into a function of `glow_high`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.shapes import tensor
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.builder.constant_pool import ConstantPool
from glow_mlir.frontends.builder.module_builder import ModuleBuilder, named_location
from glow_mlir.frontends.tflite.file import OTHER_TYPES, Subgraph, Tensor, TfliteFile
from glow_mlir.frontends.tflite.names import names_of
from glow_mlir.frontends.tflite.node import GraphValues
from glow_mlir.frontends.tflite.subgraphs import import_operator
from glow_mlir.frontends.tflite.variables import Variables

FAMILIES = (
    "activations arrangement control_flow creation data_movement elementwise indexing lookups lstm normalization pools "
    "products quantization reductions resizing slices softmax state svdf"
).split()
"""The modules with importers of operators."""


def import_tflite(
    model: TfliteFile, pool: ConstantPool | None = None, tensors: Sequence[int] = (), name: str = "main"
) -> ModuleOp:
    """
    The module of a model: its first subgraph is the function `name`, and inputs and outputs are as in the file.

    The tensors with the numbers `tensors` are further outputs, called `tensor NUMBER`.

    Raises `UnsupportedError` with all operators that are not supported, and `ModelError` for a damaged file.
    """
    for family in FAMILIES:
        import_module(f"glow_mlir.frontends.tflite.operators.{family}")
    return _GraphImport(model, pool).run(name, tensors)


class _GraphImport:
    """The import of the first subgraph of a file."""

    def __init__(self, model: TfliteFile, pool: ConstantPool | None) -> None:
        self._graph: Subgraph = model.subgraphs[0]
        self._inputs, self._outputs = names_of(model)
        self._builder = ModuleBuilder(frozenset(name for _, name in self._outputs), pool)
        self._values = GraphValues(self._builder, self._graph.tensors, Variables(model, self._builder))

    def run(self, function: str, others: Sequence[int]) -> ModuleOp:
        """Import operators in their order, and name those that are not supported; with other tensors as outputs."""
        tensors, values = self._graph.tensors, self._values.values
        types = {
            name: tensor(tensors[number].shape, ELEMENT_TYPES[_dtype(tensors[number], "an input")])
            for number, name in self._inputs
        }
        given = self._builder.add_inputs(types, {})
        values.update({number: given[name] for number, name in self._inputs})
        for operator in self._graph.operators:
            with self._builder.node_errors(operator.kind, operator.name):
                import_operator(self._values, operator)
        self._builder.problems.raise_all()
        self._values.variables.save()
        for number, name in (*self._outputs, *((number, f"tensor {number}") for number in others)):
            self._builder.add_output(name, self._output(number, name))
        return self._builder.finish(function)

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
    if item.dtype in OTHER_TYPES:
        raise UnsupportedError(f"{role} of {item.dtype} is not supported", node=item.name)
    return item.dtype
