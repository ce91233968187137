"""Import of a TensorFlow Lite model into functions of `glow_high`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.shapes import sizes_of, tensor
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.builder.constant_pool import ConstantPool
from glow_mlir.frontends.builder.module_builder import ModuleBuilder, named_location
from glow_mlir.frontends.builder.problems import Problems
from glow_mlir.frontends.tflite.file import CUSTOM, OTHER_TYPES, Operator, Tensor, TfliteFile
from glow_mlir.frontends.tflite.names import Entry, entries_of
from glow_mlir.frontends.tflite.node import IMPORTERS, GraphValues, Importer, TfliteNode
from glow_mlir.frontends.tflite.sizes import chosen_shapes, followed, grown_axes
from glow_mlir.frontends.tflite.variables import Variables
from glow_mlir.support.symbols import NUMBERS_INSTEAD, GivenDimension, Sizes

HINTS: Mapping[str, str] = {
    f"{CUSTOM}ethos-u": "the file is compiled for an Ethos-U: give the file that Vela took",
    **dict.fromkeys(
        ("HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE", "HASHTABLE_LOOKUP"),
        "look up in front of the model, and give it the numbers",
    ),
}
"""Operators that are not supported → what to do instead."""

STRINGS_HINT = "strings are not supported: make numbers of them in front of the model"
"""What to do for operators of strings."""

PACKAGE_HINT = "an operator package may have it: docs/add-an-operator.md"
"""What to do for other custom operators."""


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
        variables = Variables(model, self._builder, initial)
        self._values = GraphValues(self._builder, [*self._graph.tensors], variables)
        self._is_resized = False
        """Whether an input has another shape than in the file."""

    def run(self, dimensions: Mapping[str, GivenDimension], values: Mapping[str, np.ndarray]) -> None:
        """Import operators in their order, and note those that are not supported."""
        tensors = self._values.tensors
        shapes = chosen_shapes(self._graph, self.entry.inputs, dimensions)
        types = {
            name: tensor(shapes[number], ELEMENT_TYPES[_dtype(tensors[number], "an input")])
            for number, name in self.entry.inputs
        }
        given = self._builder.add_inputs(types, values)
        self._is_resized = any(shapes[number] != tensors[number].shape for number in shapes)
        for number, name in self.entry.inputs:
            self._set(number, given[name])
        for operator in self._graph.operators:
            with self._builder.node_errors(operator.kind, operator.name):
                self._import(operator)

    def finish(self, function: str, others: Sequence[int]) -> None:
        """Complete the function, with other tensors as outputs."""
        self._values.variables.save()
        for number, name in (*self.entry.outputs, *((number, f"tensor {number}") for number in others)):
            _dtype(self._values.tensors[number], "an output")
            self._builder.add_output(name, self._output(number, name))
        self._builder.finish(function)

    def _set(self, number: int, value: SSAValue) -> None:
        """Give a tensor its value, and the shape that it has."""
        self._values.values[number] = value
        self._values.tensors[number] = replace(self._values.tensors[number], shape=sizes_of(value))

    def _output(self, number: int, name: str) -> SSAValue:
        """The value of a tensor that is an output, which may be a constant."""
        values, known = self._values.values, self._graph.tensors[number].values
        if number not in values and known is not None:
            values[number] = self._builder.constant(known, name, named_location(name))
        if number not in values:
            raise ModelError(f"output '{name}' is computed by no operator", hint="the file is cut off")
        return values[number]

    def _import(self, operator: Operator) -> None:
        importer = IMPORTERS.first(operator.kind)
        if importer is None:
            hint = HINTS.get(operator.kind, PACKAGE_HINT if operator.kind.startswith(CUSTOM) else "")
            raise UnsupportedError(f"operator {operator.kind} is not supported", node=operator.name, hint=hint)
        named = [self._graph.tensors[number] for number in (*operator.inputs, *operator.outputs) if number >= 0]
        if strings := [item.name for item in named if item.dtype == "string"]:
            raise UnsupportedError(
                f"{operator.kind}: '{strings[0]}' has strings", node=operator.name, hint=STRINGS_HINT
            )
        if any(number >= 0 and not self._values.is_known(number) for number in operator.inputs):
            return  # An operator in front of it is not supported, and named.
        if self._is_resized:
            self._resize_results(operator)
        found = self._imported(importer, operator)
        results = [] if found is None else [found] if isinstance(found, SSAValue) else found
        for number, result in zip(operator.outputs, results, strict=False):
            self._check(operator, self._graph.tensors[number], sizes_of(result))
            self._set(number, result)

    def _imported(self, importer: Importer, operator: Operator) -> SSAValue | Sequence[SSAValue] | None:
        """What an importer returns; raises `UnsupportedError` if it computes with sizes that have bounds only."""
        try:
            return importer(TfliteNode(self._values, operator))
        except (TypeError, AttributeError) as error:
            if not self._builder.has_bounds:
                raise
            reason = f"{operator.kind} does not support sizes known only at run time"
            raise UnsupportedError(reason, node=operator.name, hint=NUMBERS_INSTEAD) from error

    def _resize_results(self, operator: Operator) -> None:
        """Give results the shapes that follow from the first operand that grows as they do."""
        tensors, file = self._values.tensors, self._graph.tensors
        known = (number for number in operator.inputs if number in self._values.values)
        grown = next((number for number in known if grown_axes(file[number].shape, tensors[number].shape)), None)
        if grown is None:
            return
        for number in operator.outputs:
            shape = followed(file[number], file[grown], tensors[grown].shape)
            tensors[number] = replace(tensors[number], shape=shape)

    def _check(self, operator: Operator, item: Tensor, shape: Sizes) -> None:
        """Raise `ModelError` unless the shape of a result is that of the file, but for free axes."""
        is_free = self._is_resized and len(shape) == len(item.shape)
        if shape != item.shape and not is_free:
            reason = f"a result has the shape {list(shape)}, not {list(item.shape)}"
            raise ModelError(f"{operator.kind}: {reason}", node=operator.name)


def _dtype(item: Tensor, role: str) -> str:
    """The name of the dtype of a tensor that callers give or get."""
    if item.dtype in OTHER_TYPES:
        raise UnsupportedError(f"{role} of {item.dtype} is not supported", node=item.name)
    return item.dtype
