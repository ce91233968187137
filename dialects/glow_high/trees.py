"""Ensembles of decision trees, which are constants like weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType, f64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, result_def

from glow_mlir.dialects.glow_high.base import SEGMENTS, HighOp
from glow_mlir.dialects.glow_high.index_ranges import IndexRange
from glow_mlir.dialects.glow_high.interfaces import Arithmetic
from glow_mlir.dialects.operand_types import I16, I32, TENSOR, UI8, UI16, WIDE_FLOATS
from glow_mlir.dialects.properties import int_prop, integer, ints, ints_prop, text, text_prop
from glow_mlir.dialects.shapes import element_of, require, shape_of, size_of, sizes_of, tensor
from glow_mlir.xdsl_patches.definitions import op_definition

AGGREGATES = ("sum", "min", "max")
"""How the weights of all trees for one target are combined."""

LESS, EQUAL, GREATER, UNORDERED = 1, 2, 4, 8
"""The relations of a feature to a threshold. A test is the sum of some of them and holds if one of these does."""

ANY_RELATION = LESS | EQUAL | GREATER | UNORDERED
"""The test that always holds."""

LINKS = 3
"""Numbers of a node before the bits of its threshold: its feature, and its children if the test holds or fails."""


def threshold_words(element: Attribute) -> int:
    """The number of i32 words for the bits of a threshold, the lowest first."""
    return 2 if element == f64 else 1


class Ensemble(HighOp):
    """An ensemble of decision trees: the weights of the leaves that a row of features leads to, by target."""

    NOTATION: ClassVar[str] = "input[i, *c] -> result[i, *j]"

    FAILURE: ClassVar[str] = "a number of a node, a test or a target is out of range"

    def _check(self, columns: int, named: SSAValue | None, names: tuple[int, ...]) -> None:
        """Raise `VerifyException` for an aggregate, targets or a size that do not fit leaves with `columns` weights."""
        aggregate, size = text(self.aggregate), integer(self.size)
        require(aggregate in AGGREGATES, f"'{aggregate}' is none of {', '.join(AGGREGATES)}")
        require(size > 0, f"there must be a target, not {size}")
        if named is None:
            require(columns == size, f"leaves have {columns} weights for {size} targets: targets must name theirs")
        else:
            require(shape_of(named) == names, f"targets must have shape {names}, not {shape_of(named)}")

    def is_discontinuous(self) -> bool:
        return True

    size = int_prop()
    aggregate = text_prop("sum")


@op_definition
class TreeEnsembleOp(Ensemble):
    """
    The predictions of decision trees for each row of features in `input` [N, C], as [N, size] (ONNX TreeEnsemble).

    Each of the `nodes` [M, 3 + W] compares a feature to a threshold: it has the number of the feature, its children
    where the test holds and where it does not, and the bits of the threshold, of the element type of `input`, in one
    i32, or two for f64, the lowest first. A child from 0 on is a node, whose number is higher; −1 − l is leaf l.
    `tests` [M] says of each node for which relations to its threshold the test holds, the sum of 1 for less, 2 for
    equal, 4 for greater, and 8 for NaN; without it, all have `test`. `roots` [R] are the first nodes of the trees, or
    leaves. A leaf has `weights` [L, K], each for the target that `targets` [L, K] names, or −1 for none; without it,
    for each target in order. `aggregate` is `sum`, `min` or `max`; a target that no leaf of a row names is 0. It
    fails where a number is out of range.

    ```mlir
    %y = glow_high.tree_ensemble %x, %nodes, none, %roots, %weights {size = 1} : tensor<8x1xf32>
    ```
    """

    name = "glow_high.tree_ensemble"
    irdl_options = SEGMENTS

    input = operand_def(WIDE_FLOATS.of_rank(2))
    nodes = operand_def(I32.of_rank(2))
    tests = opt_operand_def(UI8.of_rank(1))
    roots = operand_def(I32.of_rank(1))
    weights = operand_def(WIDE_FLOATS.of_rank(2))
    targets = opt_operand_def(I32.of_rank(2))
    test = int_prop(LESS | EQUAL)
    result = result_def(TENSOR)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        nodes, leaves = shape_of(self.nodes), shape_of(self.weights)
        columns = LINKS + threshold_words(element_of(self.input))
        require(nodes[0] > 0 and size_of(self.roots) > 0, "an ensemble has a tree and a node")
        require(nodes[1] == columns, f"nodes for features of {element_of(self.input)} have {columns} numbers")
        require(self.tests is None or shape_of(self.tests) == nodes[:1], f"tests must have {nodes[0]} elements")
        require(0 <= integer(self.test) <= ANY_RELATION, f"a test is from 0 to {ANY_RELATION}")
        self._check(leaves[1], self.targets, leaves)
        return (tensor((sizes_of(self.input)[0], integer(self.size)), element_of(self.weights)),)

    def index_ranges(self) -> Sequence[IndexRange]:
        nodes, leaves = self.plain_shape("nodes")[0], self.plain_shape("weights")[0]
        named = () if self.targets is None else (IndexRange("targets", -1, integer(self.size)),)
        return (
            IndexRange("nodes", 0, sizes_of(self.input)[1], columns=(0, 1)),
            IndexRange("nodes", -leaves, nodes, columns=(1, LINKS), ascends=0),
            IndexRange("roots", -leaves, nodes),
            *named,
        )

    def arithmetic(self) -> Arithmetic:
        nodes, trees = shape_of(self.nodes)[0], max(1, size_of(self.roots))
        return Arithmetic(shape_of(self.input)[0] * trees * (1 + (nodes // trees).bit_length()))


@op_definition
class BinnedTreeEnsembleOp(Ensemble):
    """
    The predictions of decision trees with shared tests for each row of features in `input` [N, C], as [N, size].

    Each of the `ranges` [F, 2] is of tests of one feature: its number, and how many tests there are up to the end of
    the range. Test p compares the feature of its range to `thresholds`[p]; it holds for the `relations` (those of
    `tree_ensemble`) that the first `counts`[0] ranges have in common, the next `counts`[1], and so on. `tests` [R, I]
    has the test of each node of a tree, whose first node is its root. `links` [R, I, 2] lead from a node where its test
    fails, and where it holds, to a node with a higher number, or −1 − l to leaf l. Without them the trees are complete:
    node i leads to 2i + 1 and 2i + 2, level by level. The leaves of a tree, 2^B, have `weights` [R, K, 2^B]: those of
    tree r are for the target `targets`[r], or, without that, for each target in order. `aggregate` is as in
    `tree_ensemble`, which becomes this where it is worth it (`bin-trees`). It fails where a number is out of range.

    ```mlir
    %y = glow_high.binned_tree_ensemble %x, %ranges, %thresholds, %tests, none, %weights
      {relations = [3], counts = [30], size = 1} : tensor<8x1xf32>
    ```
    """

    name = "glow_high.binned_tree_ensemble"
    irdl_options = SEGMENTS

    input = operand_def(WIDE_FLOATS.of_rank(2))
    ranges = operand_def(I32.of_rank(2))
    thresholds = operand_def(WIDE_FLOATS.of_rank(1))
    tests = operand_def(UI16.of_rank(2))
    links = opt_operand_def(I16.of_rank(3))
    weights = operand_def(WIDE_FLOATS.of_rank(3))
    targets = opt_operand_def(I32.of_rank(1))
    relations = ints_prop()
    counts = ints_prop()
    result = result_def(TENSOR)

    def leaf_bits(self) -> int:
        """The number of bits that number the leaves of a tree: its depth if the tree is complete."""
        return self.plain_shape("weights")[2].bit_length() - 1

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        trees, columns, leaves = shape_of(self.weights)
        count, element = shape_of(self.ranges)[0], element_of(self.input)
        require(element_of(self.thresholds) == element, f"thresholds must be {element}, as features are")
        require(shape_of(self.ranges)[1] == 2, "a range is a feature, and where its tests end")
        require(leaves == 1 << self.leaf_bits() and leaves > 1, f"a tree has 2^B leaves, two or more, not {leaves}")
        shape = (trees, leaves - 1) if self.links is None else (trees, shape_of(self.tests)[1])
        require(shape_of(self.tests) == shape, f"tests must have shape {shape}, not {shape_of(self.tests)}")
        if self.links is not None:
            pairs = (*shape, 2)
            require(shape_of(self.links) == pairs, f"links must have shape {pairs}, not {shape_of(self.links)}")
        relations, counts = ints(self.relations), ints(self.counts)
        fits = len(relations) == len(counts) and sum(counts) == count and min(counts, default=0) >= 0
        require(fits, f"relations and counts must tell those of all {count} ranges")
        require(all(0 <= test <= ANY_RELATION for test in relations), f"a test is from 0 to {ANY_RELATION}")
        self._check(columns, self.targets, (trees,))
        require(self.targets is None or columns == 1, "a tree with a target has one weight in each leaf")
        return (tensor((sizes_of(self.input)[0], integer(self.size)), element_of(self.weights)),)

    def index_ranges(self) -> Sequence[IndexRange]:
        count, (_, nodes), leaves = size_of(self.thresholds), self.plain_shape("tests"), 1 << self.leaf_bits()
        links = () if self.links is None else (IndexRange("links", -leaves, nodes, ascends=1),)
        named = () if self.targets is None else (IndexRange("targets", 0, integer(self.size)),)
        return (
            IndexRange("ranges", 0, sizes_of(self.input)[1], columns=(0, 1)),
            IndexRange("ranges", 0, count + 1, columns=(1, 2), covers=True),
            IndexRange("tests", 0, count),
            *links,
            *named,
        )

    def arithmetic(self) -> Arithmetic:
        trees = shape_of(self.weights)[0]
        return Arithmetic(shape_of(self.input)[0] * (size_of(self.thresholds) + trees * (1 + self.leaf_bits())))


def tests_of(mode: str, tracks_true: bool) -> int:
    """The relations of a test by its word in ONNX, such as `LEQ`; `tracks_true` says that NaN passes it."""
    known = {
        "LEQ": LESS | EQUAL,
        "LT": LESS,
        "GTE": GREATER | EQUAL,
        "GT": GREATER,
        "EQ": EQUAL,
        "NEQ": LESS | GREATER | UNORDERED,
    }
    return known[mode] | (UNORDERED if tracks_true else 0)
