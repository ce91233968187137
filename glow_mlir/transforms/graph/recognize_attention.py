"""`recognize-attention`: recognize attention written as matrix products and a softmax."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.attention import AttentionOp, seen_keys
from glow_mlir.dialects.glow_high.data_movement import TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, WhereOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.normalization import SoftmaxOp
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import PatternPass, Walk
from glow_mlir.rewriting.formulas import Apply, Formula, Number, Product, Variable
from glow_mlir.rewriting.matching import Match
from glow_mlir.rewriting.recognition import Recognition
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes

HIDDEN = -1e37
"""Scores at or below this hide a key if any other is visible: no score of a finite model makes up for them."""


@dataclass(frozen=True)
class RecognizeAttentionPass(PatternPass):
    """
    Replace two matrix products with a softmax along the rows between them by an attention.

    A scale of the scores and up to two addends become its scale and mask; a constant mask that hides the keys behind
    each query makes it causal. A mask may also select between scores and a number.
    """

    name = "recognize-attention"

    def walks(self) -> tuple[Walk, ...]:
        return (WALK,)


def _attention(match: Match, emit: Emitter) -> SSAValue | None:
    """Build the attention of a match, after checks that the formula does not express."""
    softmax = next(op for op in match.ops if isinstance(op, SoftmaxOp))
    first = next(op for op in match.ops if isinstance(op, MatMulOp) and op is not match.ops[0])
    scores = sizes_of(softmax.input)
    if integer(softmax.axis) % len(scores) != len(scores) - 1 or sizes_of(first.result) != scores:
        return None
    key = match.values["key"]
    if not flag(first.transpose_right):
        key = emit(TransposeOp, key, permutation=(*range(rank_of(key) - 2), rank_of(key) - 1, rank_of(key) - 2))
    addends = [match.values[name] for name in ("mask", "other") if name in match.values]
    if "condition" in match.values:
        chosen = _chosen(match, emit)
        if chosen is None:
            return None
        addends.append(chosen)
    addends, past = _causal(addends, scores, emit)
    mask = addends[0] if len(addends) == 1 else emit(AddOp, *addends) if addends else None
    causal = {} if past is None else {"causal": True, "past": past}
    return emit(
        AttentionOp, match.values["query"], key, match.values["value"], mask, scale=match.numbers["scale"], **causal
    )


def _chosen(match: Match, emit: Emitter) -> SSAValue | None:
    """The additive mask equal to a selection between scores and a number; `None` if the number hides no key."""
    number, condition = match.numbers["hidden"], match.values["condition"]
    if number > HIDDEN:
        return None
    like = match.values["query"]
    where = next(op for op in match.ops if isinstance(op, WhereOp))
    keeps_scores = emit.known(where.yes) is None
    zero, hidden = emit.splat(0.0, like), emit.splat(number, like)
    known = emit.known(condition)
    branches = (zero, hidden) if keeps_scores else (hidden, zero)
    if known is None:
        return emit(WhereOp, condition, *branches)
    array = np.where(known if keeps_scores else ~known, 0.0, number)
    return emit.constant(array.astype(numpy_dtype(element_of(like))), "mask")


def _causal(addends: list[SSAValue], scores: Sizes, emit: Emitter) -> tuple[list[SSAValue], int | None]:
    """The remaining addends, and the number of keys in front of the first query if one addend is a causal mask."""
    # With a second mask, which may hide all visible keys, merely low scores would count.
    limit = HIDDEN if len(addends) == 1 else -np.inf
    for addend in addends:
        past = causal_past(emit.known(addend), scores, limit)
        if past is not None:
            return [other for other in addends if other is not addend], past
    return addends, None


def causal_past(mask: np.ndarray | None, scores: Sizes, limit: float) -> int | None:
    """
    The number of keys in front of the first query if `mask` is causal; `None` otherwise.

    Keys are hidden by numbers up to `limit`.
    """
    queries, keys = scores[-2:]
    if not isinstance(queries, int) or not isinstance(keys, int):
        return None
    if mask is None or mask.shape[-2:] != (queries, keys) or mask.size != queries * keys or queries < 2:
        return None
    table = mask.reshape(queries, keys)
    past = int(np.count_nonzero(table[0] == 0)) - 1
    seen = seen_keys(queries, keys, past)
    is_causal = past >= 0 and not table[seen].any() and bool((table[~seen] <= limit).all())
    return past if is_causal else None


QUERY, KEY, VALUE = Variable("query"), Variable("key"), Variable("value")
MASK, OTHER, CONDITION = Variable("mask"), Variable("other"), Variable("condition")
SCALE, NUMBER = Number("scale"), Number("hidden")
PLAIN = (("transpose_left", False),)
SCORES = Product(SCALE, ((Apply(MatMulOp, (QUERY, KEY), PLAIN), 1.0),))


def _weighted(scores: Formula) -> Formula:
    """Formulas of the weighted means of the values by these scores."""
    return Apply(MatMulOp, (Apply(SoftmaxOp, (scores,)), VALUE), (*PLAIN, ("transpose_right", False)))


PATTERNS = (
    Recognition(
        "recognize-attention",
        tuple(
            _weighted(scores)
            for scores in (
                SCORES,
                SCORES + MASK,
                SCORES + MASK + OTHER,
                Apply(WhereOp, (CONDITION, SCORES, NUMBER)),
                Apply(WhereOp, (CONDITION, NUMBER, SCORES)),
                Apply(WhereOp, (CONDITION, SCORES, NUMBER)) + MASK,
            )
        ),
        _attention,
    ),
)
"""Formulas of attention."""

WALK = Walk(PATTERNS)
