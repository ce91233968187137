"""ONNX's conditional operator, If."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Block, Region, SSAValue

from glow_mlir.dialects.control_flow import verify_scalar
from glow_mlir.dialects.glow_high.control_flow import IfOp, YieldOp
from glow_mlir.dialects.glow_high.data_movement import ExpandOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_math import NotOp
from glow_mlir.dialects.glow_high.storage import GetOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.dialects.symbol_binding import SymbolBinding
from glow_mlir.errors import InputValuesError, ModelError, UnsupportedError
from glow_mlir.frontends.builder.slices import cut, filled, scalar, zero_unless
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.structures import leaves_of, rebuilt, structure_of
from glow_mlir.frontends.onnx.values import Value, takes_values
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.ir.traversal import own_operations
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, Symbol, symbols_of

Pair = tuple[Size, Size]
"""The sizes of one axis in the two branches."""

BRANCHES = ("then_branch", "else_branch")
"""The graph attributes of If."""


@onnx_operator("If")
@takes_values
def if_(node: Node) -> Sequence[Value | None] | None:
    """The branch selected by a constant condition, or both branches as regions if the condition is not constant."""
    condition = node.known(0)
    if condition is None:
        return _branch(node)
    if condition.size != 1:
        hint = "check the constant condition"
        raise ModelError(f"If: expected 1 element in the condition, got {condition.size}", node=node.name, hint=hint)
    return node.outputs_of(BRANCHES[0 if condition.item() else 1])


def _branch(node: Node) -> list[Value] | None:
    """Both branches as regions that yield the tensors of their results."""
    verify_scalar(node.input(), i1, "the condition")
    blocks, ends = [Block(), Block()], list[list[Value] | None]()
    misfits: dict[int, ModelError] = {}
    for number, name in enumerate(BRANCHES):
        try:
            ends.append(node.region_values(name, blocks[number]))
        except ModelError as error:
            misfits[number] = error
            ends.append(None)
    if misfits:
        _stand_in(node, blocks, ends, misfits)
    one, other = ends
    if one is None or other is None:
        return None
    check_number(node, len(one), len(other), "a branch gives")
    for position, pair in enumerate(zip(one, other, strict=True)):
        if structure_of(pair[0]) != structure_of(pair[1]):
            raise _differing(node, f"result {position} has different structures in the branches")
    results = [[leaf for value in end for leaf in leaves_of(value)[0]] for end in (one, other)]
    for position, (first, second) in enumerate(zip(*results, strict=True)):
        _check_alike(node, position, first, second)
    return rebuilt(map(leaves_of, one), list(Join(node, blocks, results).emit()))


def _stand_in(
    node: Node, blocks: list[Block], ends: list[list[Value] | None], misfits: Mapping[int, ModelError]
) -> None:
    """
    Replace a branch that does not fit the sizes by a placeholder: a call that takes it fails.

    Raises `InputValuesError` if inputs that are not floats decide which branch is taken: their values must be known.
    Raises the first branch's error if neither branch fits.
    """
    number, error = next(iter(misfits.items()))
    fitting, found = blocks[1 - number], ends[1 - number]
    if len(misfits) > 1:
        raise error
    reason = f"{BRANCHES[number]} does not fit the sizes"
    missing = node.builder.missing_value(node.input(), f"If: {reason} ({error}): the condition", node.name)
    if isinstance(missing, InputValuesError) and not node.depends_on_floats(node.input()):
        raise missing
    if found is None:
        return
    node.doubt(f"{reason} ({error.reason})", "a call that takes it fails")
    own = {op.bound for op in own_operations(fitting) if isinstance(op, SymbolBinding)}
    taken_apart = [leaves_of(value) for value in found]
    blocks[number] = Block()
    with node.builder.inside(blocks[number]):
        condition = node.emit(ReshapeOp, node.input(), shape=())
        zero = zero_unless(node, node.emit(NotOp, condition) if number else condition, reason)
        leaves = [_filled_like(node, zero, leaf, own) for inner, _ in taken_apart for leaf in inner]
    ends[number] = rebuilt(taken_apart, leaves)


def _filled_like(node: Node, number: SSAValue, like: SSAValue, own: AbstractSet[Symbol]) -> SSAValue:
    """A number expanded to the type of `like`, with sizes that depend on `own` symbols at their upper bounds."""
    shape = [largest(size) if own & set(symbols_of([size])) else size for size in sizes_of(like)]
    return node.emit(ExpandOp, node.cast(number, element_of(like)), shape=shape)


def _differing(node: Node, reason: str) -> UnsupportedError:
    """The error for branches with results of different structure; it asks for the condition's value if an input."""
    if isinstance(node.input().owner, GetOp):
        return node.builder.missing_value(node.input(), f"If: {reason}: the condition", node.name)
    return node.unsupported(reason)


@dataclass
class Join:
    """
    The joined results of two branches.

    If a size differs, both branches yield a tensor padded with zeros to the larger upper bound, and the actual size. A
    symbol is bound to the actual size.
    """

    node: Node
    blocks: Sequence[Block]
    results: Sequence[Sequence[SSAValue]]
    """The values that each branch yields."""
    differing: dict[Pair, None] = field(default_factory=dict[Pair, None])
    """Pairs of sizes that differ between the branches."""

    def emit(self) -> Iterator[SSAValue]:
        """Emit the operator; the results, with the sizes of the branch taken."""
        pairs = [list(zip(*map(sizes_of, values), strict=True)) for values in zip(*self.results, strict=True)]
        self.differing.update((pair, None) for sizes in pairs for pair in sizes if pair[0] != pair[1])
        types: list[Attribute] = []
        for number, (block, values) in enumerate(zip(self.blocks, self.results, strict=True)):
            with self.node.builder.inside(block):
                yielded = [self._filled(*item) for item in zip(values, pairs, strict=True)]
                yielded += [scalar(self.node, pair[number]) for pair in self.differing]
            block.add_op(YieldOp.of(yielded, self.node.location))
            types = [value.type for value in yielded]
        branch = IfOp.of(self.node.input(), types, map(Region, self.blocks), self.node.location)
        found = list(self.node.insert(branch).results)
        counts = zip(self.differing, found[len(pairs) :], strict=True)
        sizes = {pair: self._bound(pair, count) for pair, count in counts}
        for value, own in zip(found, pairs, strict=False):
            bounds = {axis: (0, sizes[pair]) for axis, pair in enumerate(own) if pair in sizes}
            yield cut(self.node, value, bounds)

    def _filled(self, value: SSAValue, pairs: Sequence[Pair]) -> SSAValue:
        """Pad a value with zeros at the end of axes whose sizes differ."""
        for axis, pair in enumerate(pairs):
            if pair in self.differing:
                value = filled(self.node, value, axis, max(map(largest, pair)))
        return value

    def _bound(self, pair: Pair, count: SSAValue) -> Size:
        """A symbol bound to `count`, which is one of two sizes."""
        return self.node.bind_symbol(count, max(map(largest, pair)), min(map(smallest, pair)))


def check_number(node: Node, expected: int, found: int, what: str) -> None:
    """Raise `ModelError` if `found` is not `expected`; `what` is the message's start, such as "a branch gives"."""
    if found != expected:
        hint = "check the graphs inside of the node"
        raise ModelError(f"{node.kind}: {what} {found} values, not {expected}", node=node.name, hint=hint)


def _check_alike(node: Node, position: int, one: SSAValue, other: SSAValue) -> None:
    """Raise an error if a result's type differs between the branches."""
    if element_of(one) != element_of(other):
        reason = f"If: result {position} is of {element_of(one)} in one branch, of {element_of(other)} in the other"
        raise ModelError(reason, node=node.name, hint="cast one of them")
    # If the condition is an input, the sizes are known for each of its two values.
    is_given = isinstance(node.input().owner, GetOp)
    if rank_of(one) != rank_of(other) or (is_given and sizes_of(one) != sizes_of(other)):
        shapes = f"{sizes_of(one)} in one branch, {sizes_of(other)} in the other"
        what = f"If: result {position} has the shape {shapes}: the condition"
        raise node.builder.missing_value(node.input(), what, node.name)
