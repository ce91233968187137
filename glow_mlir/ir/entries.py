"""The interface of functions for callers: bindings of an entry, and state shared between functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.constants.storage import constant_array
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.call import CallOp
from glow_mlir.dialects.glow_high.storage import FunctionOp, PlaceholderOp
from glow_mlir.dialects.glow_low.host import CallOp as LowCallOp
from glow_mlir.dialects.shapes import has_static_shape, largest_shape, shape_of, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.ir.locations import location_name, source_location
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.traversal import own_operations
from glow_mlir.runtime.artifact import Binding
from glow_mlir.runtime.state import Initial
from glow_mlir.support.symbols import Symbol, symbols_of


def entries_of(module: ModuleOp) -> list[FunctionOp]:
    """The functions of a module that callers name: all except packing functions and callees."""
    hidden = packing_functions(module) | called_functions(module)
    return [function for function in functions(module) if function.sym_name.data not in hidden]


def called_functions(module: ModuleOp) -> set[str]:
    """The names of the functions called in a module."""
    ops = (op for function in functions(module) for op in own_operations(function))
    return {op.callee_name for op in ops if isinstance(op, CallOp | LowCallOp)}


def packing_functions(module: ModuleOp) -> set[str]:
    """The names of the packing functions of a module."""
    ops = module.body.block.ops
    return {name for op in ops if isinstance(op, PlaceholderOp) and (name := op.packing_function) is not None}


def bindings_of(function: FunctionOp) -> tuple[Binding, ...]:
    """Inputs, outputs and state of a function, in order."""
    return tuple(map(_binding, placeholders_of(function)))


def _binding(op: PlaceholderOp) -> Binding:
    type_ = op.tensor_type
    sizes = () if has_static_shape(type_) else sizes_of(type_)
    return Binding(op.public_name, op.role, numpy_dtype(type_.element_type).name, largest_shape(type_), sizes)


def placeholders_of(function: FunctionOp) -> Iterator[PlaceholderOp]:
    """The placeholders that a function is bound to, in order."""
    storage = function.storage()
    for name in function.binding_names:
        op = storage[name]
        assert isinstance(op, PlaceholderOp)
        yield op


def symbols_in(function: FunctionOp) -> list[Symbol]:
    """The symbols in the sizes of bound placeholders, by name; callers provide their values."""
    return symbols_of(size for op in placeholders_of(function) for size in sizes_of(op.tensor_type))


def shared_state(functions: Iterable[FunctionOp]) -> dict[str, PlaceholderOp]:
    """The state of some functions by public name; raises `ModelError` if names and state are not one to one."""
    found: dict[str, PlaceholderOp] = {}
    for function in functions:
        for op in placeholders_of(function):
            if op.role == "state" and found.setdefault(op.public_name, op) is not op:
                reason = (
                    f"@{found[op.public_name].sym_name.data} and @{op.sym_name.data} have the same name for callers"
                )
                file_position = source_location(op)
                raise ModelError(
                    reason, file=file_position, node=location_name(op.location), hint="give one another 'label'"
                )
    return found


def initial_state(module: ModuleOp) -> list[Initial]:
    """The initial state shared by the functions of a module; raises `ModelError` as `shared_state` does."""
    return [
        Initial(name, numpy_dtype(op.tensor_type.element_type).name, shape_of(op.tensor_type), _content(op))
        for name, op in shared_state(functions(module)).items()
    ]


def _content(op: PlaceholderOp) -> np.ndarray | None:
    """The bytes of the initial value of state; `None` for zeros."""
    return np.ascontiguousarray(constant_array(op)).reshape(-1).view(np.uint8) if op.has_content else None
