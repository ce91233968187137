"""Calls of other code, tokens and tuples, and the operations between devices, which are refused by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.stablehlo.free_dimensions import CHECK
from glow_mlir.frontends.stablehlo.node import Importer, StablehloNode, TupleValue, Value, listed, stablehlo_operator
from glow_mlir.frontends.stablehlo.operators.dynamic_shapes import checked, dynamic_reduce_window
from glow_mlir.frontends.stablehlo.operators.linear_algebra import ROUTINES, described
from glow_mlir.frontends.stablehlo.operators.sorts import approximate_top_k, dynamic_top_k

ANNOTATIONS = frozenset(
    {
        "LayoutConstraint",
        "MoveToDevice",
        "MoveToHost",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "Sharding",
        "annotate_device_placement",
        "xla.sdy.FuncResultSharding",
    }
)
"""Targets of calls that give their operands as they are: they say where values lie, or how they are laid out."""


@stablehlo_operator("sdy.sharding_constraint")
def sharding_constraint(node: StablehloNode) -> Value:
    """A tensor with a wish how devices share it, which one device has as a whole."""
    return node.value(0)


CALLED: Mapping[str, Importer] = {
    **ROUTINES,
    "ApproxTopK": approximate_top_k,
    "stablehlo.dynamic_approx_top_k": approximate_top_k,
    "stablehlo.dynamic_reduce_window": dynamic_reduce_window,
    "stablehlo.dynamic_top_k": dynamic_top_k,
}
"""Target of a call → its importer."""


@stablehlo_operator("custom_call")
def custom_call(node: StablehloNode) -> Sequence[Value]:
    """A call of code that is no part of the program: annotations, some routines of LAPACK, and what JAX calls."""
    target = node.text("call_target_name")
    if target in ANNOTATIONS:
        return [node.value(position) for position in range(len(node.op.results))]
    if target == CHECK:
        return checked(node)
    if target in CALLED:
        return listed(CALLED[target](node))
    what = described(target)
    if what is not None:
        hint = "compute it outside of the function, for example with numpy"
        reason = f"{node.kind}: a call of '{target}' ({what}) is not supported"
        raise UnsupportedError(reason, node=node.name, hint=hint)
    raise node.unsupported(f"a call of '{target}' is not supported")


DEVICES = (
    "all_gather all_reduce all_to_all async_done async_start collective_broadcast collective_permute cross-replica-sum "
    "infeed outfeed recv reduce_scatter send"
)
"""The operations that move values between devices, or to and from a host."""


@stablehlo_operator(*DEVICES.split())
def between_devices(node: StablehloNode) -> Sequence[Value]:
    """Raise `UnsupportedError`: programs run on one device."""
    reason = f"{node.kind}: moves values between devices, which is not supported"
    raise UnsupportedError(reason, node=node.name, hint="export the program for one device")


@stablehlo_operator("partition_id", "replica_id")
def device(node: StablehloNode) -> Value:
    """0, the number of the only device."""
    return node.constant(np.zeros((), numpy_dtype(node.element())))


@stablehlo_operator("tuple")
def tuple_(node: StablehloNode) -> Value:
    """Several values as one, which the import takes apart."""
    return TupleValue(tuple(node.value(position) for position in range(node.count)))


@stablehlo_operator("get_tuple_element")
def get_tuple_element(node: StablehloNode) -> Value:
    """A value of a tuple."""
    found, index = node.value(0), node.integer("index")
    if not isinstance(found, TupleValue) or not 0 <= index < len(found.items):
        raise ModelError(f"{node.kind}: the operand is no tuple with an item {index}", node=node.name)
    return found.items[index]


@stablehlo_operator("after_all", "create_token")
def token(node: StablehloNode) -> Sequence[Value]:
    """A value that only orders side effects, of which there are none: any value stands for it."""
    return [node.constant(np.zeros((), np.int32))]
