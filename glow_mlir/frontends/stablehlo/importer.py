"""Import of a StableHLO program into a function of `glow_high`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from importlib import import_module
from typing import cast

import numpy as np
from xdsl.dialects.builtin import (
    DenseResourceAttr,
    DictionaryAttr,
    ModuleOp,
    NameLoc,
    NoneAttr,
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from glow_mlir.dialects.element_types import NUMPY_NAMES
from glow_mlir.dialects.shapes import declared_shape, tensor
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.builder.constant_pool import ConstantPool
from glow_mlir.frontends.builder.module_builder import ModuleBuilder, named_location
from glow_mlir.frontends.stablehlo.node import (
    IMPORTERS,
    ComplexValue,
    Importer,
    Program,
    UnfinishedError,
    Value,
    of_parts,
    part_type,
    parts_of_array,
)
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.distinct_names import apart
from glow_mlir.support.symbols import Sizes

FAMILIES = (
    "bits",
    "broadcasts",
    "complex_numbers",
    "control_flow",
    "data_movement",
    "dynamic_shapes",
    "elementwise",
    "gathers",
    "linear_algebra",
    "normalization",
    "plumbing",
    "products",
    "quantization",
    "ragged_products",
    "random_numbers",
    "reductions",
    "scatters",
    "sorts",
    "special_functions",
    "window_choices",
    "windows",
)
"""The modules with importers of operations."""


@dataclass(frozen=True)
class Given:
    """What is known of a program beside its text."""

    constants: Mapping[int, np.ndarray] = field(default_factory=dict[int, np.ndarray])
    """The arguments of the entry that are constants, by number."""
    resources: Sequence[np.ndarray] = ()
    """The constants that the text leaves out, in its order."""
    inputs: Sequence[str] = ()
    """The names of the entry's arguments, where the text has none."""
    outputs: Sequence[str] = ()
    """The names of its results."""
    shapes: Mapping[str, Sizes] = field(default_factory=dict[str, Sizes])
    """The shapes of arguments that have free dimensions, by name."""
    values: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """The values of inputs that are constants."""


def import_stablehlo(
    module: ModuleOp,
    entry: str = "main",
    given: Given | None = None,
    pool: ConstantPool | None = None,
    name: str = "main",
) -> ModuleOp:
    """
    The module of `glow_high` of a program: its function `entry` becomes the function `name`.

    Arguments that are no constants are inputs, with the names that the program gives them, unless other ones are given.

    Raises `UnsupportedError` with all operations that are not supported, and `ModelError` for a damaged program.
    """
    importers()
    function = entry_of(module, entry)
    given = given or Given()
    inputs, outputs = given.inputs or input_names(function), given.outputs or output_names(function)
    results_of = zip(outputs, function.function_type.outputs, strict=True)
    builder = ModuleBuilder(frozenset(part for pair in results_of for part, _ in border(*pair)), pool)
    program = Program(builder, functions_of(module), _resources(module, given.resources))
    arguments = _arguments(function, inputs, builder, given)
    results: list[Value] = []
    with suppress(UnfinishedError):
        results = program.run(function.body.block, arguments)
    builder.problems.raise_all()
    for output, value in zip(outputs, results, strict=True):
        _add_output(builder, output, value)
    return builder.finish(name)


def _resources(module: ModuleOp, arrays: Sequence[np.ndarray]) -> dict[Operation, np.ndarray]:
    """The value of each constant that the text leaves out; raises `ModelError` if there are not as many arrays."""
    left_out = [
        op
        for op in module.walk()
        if op.name == "stablehlo.constant" and isinstance(op.properties.get("value"), DenseResourceAttr)
    ]
    if len(left_out) != len(arrays):
        raise ModelError(f"the program leaves out {len(left_out)} constants, and has {len(arrays)}")
    return dict(zip(left_out, arrays, strict=True))


def importers() -> Mapping[str, Importer]:
    """Name of an operation, with its dialect → the function that imports it; from all families."""
    for family in FAMILIES:
        import_module(f"glow_mlir.frontends.stablehlo.operators.{family}")
    return IMPORTERS


def functions_of(module: ModuleOp) -> dict[str, FuncOp]:
    """The functions of a program, by name."""
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}


def entry_of(module: ModuleOp, entry: str) -> FuncOp:
    """The function called `entry`; raises `ModelError` if there is none."""
    functions = functions_of(module)
    if entry not in functions:
        known = ", ".join(functions) or "none"
        raise ModelError(f"the program has no function '{entry}'", hint=f"its functions are {known}")
    return functions[entry]


PARTS = ("real", "imag")
"""
The names of the parts of complex numbers, behind a dot: an argument or result of complex numbers is two inputs or
outputs, `NAME.real` and `NAME.imag`, because tensors at the border of a program have no complex elements.
"""


def border(name: str, type_: Attribute, shape: Sizes | None = None) -> list[tuple[str, TensorType[Attribute]]]:
    """
    The inputs or outputs for an argument or result: one, or two for complex numbers.

    They have the shape of the type, unless another one is given.

    Raises `UnsupportedError` for a type that no tensor has.
    """
    element = cast("Attribute", type_.element_type) if isinstance(type_, TensorType) else NoneAttr()
    part = part_type(element)
    stored = element if part is None else part
    if not isinstance(type_, TensorType) or stored not in NUMPY_NAMES:
        raise UnsupportedError(f"'{name}' of type {type_} is not supported")
    names = [name] if part is None else [f"{name}.{part}" for part in PARTS]
    sizes = declared_shape(cast("Attribute", type_)) if shape is None else shape
    return [(each, tensor(sizes, stored)) for each in names]


def _arguments(function: FuncOp, names: Sequence[str], builder: ModuleBuilder, given: Given) -> list[Value]:
    """The arguments of the entry: inputs, and constants."""
    constants = given.constants
    arguments = [*enumerate(zip(names, function.body.block.args, strict=True))]
    inputs = {
        number: border(name, argument.type, given.shapes.get(name))
        for number, (name, argument) in arguments
        if number not in constants
    }
    values = builder.add_inputs({name: type_ for parts in inputs.values() for name, type_ in parts}, given.values)
    found: list[Value] = []
    for number, (name, _) in arguments:
        if number in constants:
            arrays = parts_of_array(constants[number])
            parts = [builder.constant(array, name, named_location(name)) for array in arrays]
        else:
            parts = [values[part] for part, _ in inputs[number]]
        found.append(of_parts(parts))
    return found


def _add_output(builder: ModuleBuilder, name: str, value: Value) -> None:
    parts = {name: value}
    if isinstance(value, ComplexValue):
        parts = {f"{name}.{PARTS[0]}": value.real, f"{name}.{PARTS[1]}": value.imaginary}
    for each, part in parts.items():
        assert isinstance(part, SSAValue)
        builder.add_output(each, part)


def input_names(function: FuncOp) -> list[str]:
    """The names of arguments: those of their locations, or else `arg0` and so on; each is unique."""
    wishes: list[str] = []
    for number, argument in enumerate(function.body.block.args):
        location = argument.location if hasattr(argument, "location") else None
        wishes.append(location.desc.data if isinstance(location, NameLoc) else argument.name_hint or f"arg{number}")
    return apart(wishes)


def output_names(function: FuncOp) -> list[str]:
    """The names of results: what JAX says of them, or else `result0` and so on; each is unique."""
    attributes = function.res_attrs.data if function.res_attrs is not None else ()
    wishes: list[str] = []
    for number in range(len(function.function_type.outputs)):
        own = attributes[number].data if number < len(attributes) else {}  # pyright: ignore
        info = own.get("jax.result_info") if isinstance(own, Mapping | DictionaryAttr) else None  # pyright: ignore
        wishes.append(info.data if isinstance(info, StringAttr) and info.data else f"result{number}")
    return apart(wishes)
