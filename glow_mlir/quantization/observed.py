"""Observed values: the values of a graph that may be quantized, by names that are stable across compilations."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Operation, SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import DataMovement
from glow_mlir.dialects.glow_high.interfaces import OnQuantized
from glow_mlir.dialects.glow_high.storage import GetOp, PlaceholderOp, SaveOp, SplatOp
from glow_mlir.dialects.shapes import element_of, has_static_shape, rank_of
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.traversal import operations, own_operations


def observed_values(module: ModuleOp) -> dict[str, SSAValue]:
    """
    The f32 values that operators with a quantized form read or write, without constants, in program order.

    As in Glow, a value is named by the nodes of its operator and the result number, `conv1:0`. Values in branches and
    loops, which may occur any number of times, are left out.
    """
    storage, counts = Storage(module), Counter[str]()
    found: dict[str, SSAValue] = {}
    for function in high_functions(module):
        concerned = {
            value
            for op in own_operations(function)
            if isinstance(op, HighOp) and op.ON_QUANTIZED is not None
            for value in (*op.operands, *op.results)
        }
        for op in own_operations(function):
            for result in op.results:
                nodes = _nodes(op, storage)
                name = f"{nodes}:{counts[nodes]}"
                counts[nodes] += 1
                if result in concerned and element_of(result) == f32 and not storage.is_constant(result):
                    found[name] = result
    return {name: value for name, value in found.items() if has_static_shape(value)}


def _nodes(op: Operation, storage: Storage) -> str:
    """The name of an operator: its nodes, the placeholder it reads, or else its kind."""
    read = storage.by_name.get(op.storage_name) if isinstance(op, GetOp) else None
    if isinstance(read, PlaceholderOp):
        return read.public_name
    return location_name(op.location) or op.name.partition(".")[2]


def graph_digest(module: ModuleOp) -> str:
    """
    A digest of the graphs of a module: operators, their nodes, properties, operands and element types.

    Constants, sizes and saves are ignored: a profile fits other batch sizes of the same graph, and the graph that
    `instrument-profile` leaves. `weights_digest` covers weights.
    """
    state = hashlib.sha256()
    for line in _lines(module):
        state.update(line.encode() + b"\n")
    return f"sha256:{state.hexdigest()[:32]}"


def weights_digest(module: ModuleOp) -> str:
    """
    A digest of the product weights of a module: of each, the first slice along its first axis, if that is available
    without the whole.
    """
    state, storage = hashlib.sha256(), Storage(module)
    for function in high_functions(module):
        for op in own_operations(function):
            is_product = isinstance(op, HighOp) and op.ON_QUANTIZED is OnQuantized.PRODUCT
            known = storage.deferred(op.operands[1]) if is_product else None
            if known is not None and known.shape and known.separable(0):
                state.update(known.part(0, 0, 1).tobytes())
    return f"sha256:{state.hexdigest()[:32]}"


def _lines(module: ModuleOp) -> Iterator[str]:
    """A line for each function of `glow_high`, and for each operation in it."""
    for function in high_functions(module):
        numbers: dict[SSAValue, int] = {}
        yield function.sym_name.data
        for op in operations(function):
            if isinstance(op, SaveOp):
                continue
            values = [numbers.setdefault(value, len(numbers)) for value in (*op.operands, *op.results)]
            types = [f"{element_of(result)} {rank_of(result)}" for result in op.results]
            # Data movement has sizes in its properties; a splat is a constant.
            is_plain = isinstance(op, HighOp) and not isinstance(op, DataMovement | SplatOp)
            properties = {name: str(value) for name, value in op.properties.items()} if is_plain else {}
            yield f"{op.name} {location_name(op.location)} {values} {types} {sorted(properties.items())}"
