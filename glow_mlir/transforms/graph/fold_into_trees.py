"""`fold-into-trees`: fold functions of tree outputs into leaf weights, and merge summed trees into ensembles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation, SSAValue

from glow_mlir.constants.index_ranges import failure_of
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.base import HighOp, group_like
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.trees import LINKS, TreeEnsembleOp
from glow_mlir.dialects.operand_types import WIDE_FLOATS
from glow_mlir.dialects.properties import integer, text
from glow_mlir.dialects.shapes import has_one_element, rank_of, sizes_of
from glow_mlir.errors import ExecutionError
from glow_mlir.interpreter.semantics import apply_semantics
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import fuse_locations
from glow_mlir.rewriting.policies import is_strict
from glow_mlir.support.dataclass import dataclass
from glow_mlir.xdsl_patches.operations import operands_of


class FoldIntoLeaves(Pattern):
    """
    Evaluate operators on the output of a tree once per leaf instead of once per row.

    Applies if the rest of the function reads a single resulting value.
    """

    @rooted
    def match_and_rewrite(self, op: TreeEnsembleOp, rewriter: Rewriter, /) -> None:
        storage = rewriter.storage
        weights, roots = storage.value_of(op.weights), storage.value_of(op.roots)
        if op.targets is not None or integer(op.size) != 1 or weights is None or roots is None or roots.size != 1:
            return
        # An ensemble starts its sums at 0, which changes the sign of zeros.
        known: dict[SSAValue, np.ndarray] = {op.result: weights + 0 if text(op.aggregate) == "sum" else weights}
        folded = _fold(op, known, storage)
        read = [value for value in known if any(use.operation not in folded for use in value.uses)]
        if len(read) != 1 or read[0] is op.result or WIDE_FLOATS.fault(read[0].type):
            return
        (result,) = read
        owner = result.owner
        assert isinstance(owner, Operation)
        emit = rewriter.emit_before(owner, owner.location)
        leaves = emit.constant(known[result].reshape(-1, 1), op.weights.name_hint or "leaves")
        given = (op.input, op.nodes, op.tests, op.roots, leaves, None)
        tree = emit(TreeEnsembleOp, *given, size=1, test=integer(op.test))
        if rank_of(result) != rank_of(tree):
            tree = emit(ReshapeOp, tree, shape=sizes_of(result))
        rewriter.replace(owner, (), [tree])


def _fold(op: TreeEnsembleOp, known: dict[SSAValue, np.ndarray], storage: Storage) -> set[Operation]:
    """
    Add to `known` the values computed per row from the tree, for each leaf [leaves, 1, …]; returns their operators.
    """
    rows, block = sizes_of(op.result)[0], op.parent_block()
    folded, pending = set[Operation](), list[SSAValue]([op.result])
    while pending:
        for use in pending.pop().uses:
            user = use.operation
            if user in folded or user.parent_block() is not block or not isinstance(user, HighOp):
                continue
            if len(user.results) != 1 or sizes_of(user.results[0]) != (rows, *[1] * (rank_of(user.results[0]) - 1)):
                continue
            if (found := _of_leaves(user, known, storage)) is not None:
                folded.add(user)
                known[user.results[0]] = found.reshape(-1, *[1] * (rank_of(user.results[0]) - 1))
                pending.append(user.results[0])
    return folded


def _of_leaves(op: HighOp, known: dict[SSAValue, np.ndarray], storage: Storage) -> np.ndarray | None:
    """Evaluate an operator for each leaf; `None` if it has other operands or does not compute one number per row."""
    if isinstance(op, ReshapeOp):
        return known[op.input]
    if not isinstance(op, Elementwise) and not (
        isinstance(op, GatherOp) and rank_of(op.input) == 1 and op.indices in known and op.input not in known
    ):
        return None
    operands: list[np.ndarray] = []
    leaves = max(len(known[value]) for value in operands_of(op) if value in known)
    rank = rank_of(op.results[0])
    for value in operands_of(op):
        array = known.get(value)
        if array is not None and isinstance(op, Elementwise):
            # Leaves take the first axis of the result, whatever the ranks of the operands.
            array = array.reshape(leaves, *[1] * (rank - 1)) if rank else None
        if array is None and (has_one_element(value) or isinstance(op, GatherOp)):
            array = storage.value_of(value)
        if array is None:
            return None
        operands.append(array)
    try:
        (found,) = apply_semantics(op, group_like(op, operands))
    except ExecutionError:  # An unreachable leaf has no table entry.
        return None
    return found if found.size == leaves else None


class MergeTrees(Pattern):
    """
    Merge trees on the same features whose outputs are added in sequence into one ensemble.

    The ensemble sums in an order of its own: with accuracy strict the trees stay separate.
    """

    @rooted
    def match_and_rewrite(self, op: TreeEnsembleOp, rewriter: Rewriter, /) -> None:
        first = None if is_strict(rewriter.function) else _Trees.of(op, rewriter.storage)
        if first is None:
            return
        trees, total = [first], op.result
        while (user := _only_sum(total)) is not None and user.left is total:
            term = user.right.owner
            found = _Trees.of(term, rewriter.storage) if isinstance(term, TreeEnsembleOp) else None
            if found is None or found.features is not first.features or user.right.type != op.result.type:
                break
            if len(found.roots) != 1 or not user.right.has_one_use():
                break
            trees.append(found)
            total = user.result
        if len(trees) < 2:
            return
        whole = total.owner
        assert isinstance(whole, Operation)
        emit = rewriter.emit_before(
            whole, fuse_locations(item.location for item in (*(tree.op for tree in trees), whole))
        )
        name = op.weights.name_hint or "leaves"
        nodes, tests, roots, weights = _joined(trees)
        operands = [emit.constant(nodes, "nodes"), None if tests is None else emit.constant(tests, "tests")]
        operands += [emit.constant(roots, "roots"), emit.constant(weights, name), None]
        merged = emit(TreeEnsembleOp, first.features, *operands, size=integer(op.size), test=integer(op.test))
        rewriter.replace(whole, (), [merged])


@dataclass(frozen=True)
class _Trees:
    """The constants of a summing ensemble whose features are columns of `features`."""

    op: TreeEnsembleOp
    features: SSAValue
    nodes: np.ndarray
    tests: np.ndarray | None
    roots: np.ndarray
    weights: np.ndarray

    @staticmethod
    def of(op: TreeEnsembleOp, storage: Storage) -> _Trees | None:
        """The constants of an operator; `None` if an operand is not constant, or it has targets."""
        arrays = [storage.value_of(value) for value in (op.nodes, op.roots, op.weights)]
        tests = None if op.tests is None else storage.value_of(op.tests)
        nodes, roots, weights = arrays
        if op.targets is not None or text(op.aggregate) != "sum" or nodes is None or roots is None or weights is None:
            return None
        if op.tests is not None and tests is None:
            return None
        if failure_of(op, storage):
            return None
        features, source = op.input, op.input.owner
        if isinstance(source, GatherOp) and integer(source.axis) in (1, -1) and rank_of(source.indices) == 1:
            columns = storage.value_of(source.indices)
            width = sizes_of(source.input)[1]
            # The selection of an out-of-range column fails, and must stay.
            if columns is not None and isinstance(width, int) and np.all((columns >= -width) & (columns < width)):
                nodes = nodes.copy()
                nodes[:, 0] = (columns % width)[nodes[:, 0]]
                features = source.input
        return _Trees(op, features, nodes, tests, roots, weights)

    def all_tests(self) -> np.ndarray:
        """The relations of each node."""
        return np.full(len(self.nodes), integer(self.op.test), np.uint8) if self.tests is None else self.tests


def _joined(trees: Sequence[_Trees]) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]:
    """Concatenate nodes, tests, roots and weights of several ensembles, with node and leaf numbers shifted."""
    nodes, roots = list[np.ndarray](), list[np.ndarray]()
    first_node = first_leaf = 0
    for tree in trees:
        moved = tree.nodes.copy()
        moved[:, 1:LINKS] = _moved(tree.nodes[:, 1:LINKS], first_node, first_leaf)
        nodes.append(moved)
        roots.append(_moved(tree.roots, first_node, first_leaf))
        first_node, first_leaf = first_node + len(tree.nodes), first_leaf + len(tree.weights)
    tests = None
    if any(tree.tests is not None for tree in trees) or len({integer(tree.op.test) for tree in trees}) > 1:
        tests = np.concatenate([tree.all_tests() for tree in trees])
    return np.concatenate(nodes), tests, np.concatenate(roots), np.concatenate([tree.weights for tree in trees])


def _moved(positions: np.ndarray, first_node: int, first_leaf: int) -> np.ndarray:
    """Shift node numbers (from 0 up) and leaf numbers (below 0) by these counts."""
    return np.where(positions >= 0, positions + first_node, positions - first_leaf).astype(positions.dtype)


def _only_sum(value: SSAValue) -> AddOp | None:
    """The sum that is the only reader of a value, in its block."""
    uses = list(value.uses)
    user = uses[0].operation if len(uses) == 1 else None
    owner = value.owner
    is_near = isinstance(owner, Operation) and user is not None and user.parent_block() is owner.parent_block()
    return user if is_near and isinstance(user, AddOp) else None


@dataclass(frozen=True)
class FoldIntoTreesPass(PatternPass):
    """
    Fold functions of tree outputs into leaf weights, and merge trees whose outputs are added into an ensemble.

    Converters write isolation forests this way: a model per tree, whose leaf is looked up in tables, and some thirty
    operators that compute a depth from it (skl2onnx). The result is one number per leaf. Columns selected in front of a
    tree become its features. With accuracy strict, trees whose outputs are added stay separate.
    """

    name = "fold-into-trees"

    WALKS = (Walk((FoldIntoLeaves(),)), Walk((MergeTrees(),)))
