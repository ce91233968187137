"""
The programs of the sampler, as functions that emit operators on one row of logits [vocabulary].

Logits are compared as they are, in f32; weights exp((x - largest) / temperature) and their sums are f64, so that a
draw differs from the definition only where the uniform number is as close to a border as f64 rounds.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32, f64, i32, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.expressions import Tensor, converted, exp, log, minimum, where
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp
from glow_mlir.dialects.glow_high.indexing import GatherOp, ScatterElementsOp
from glow_mlir.dialects.glow_high.reductions import ArgMaxOp, CumSumOp, ReduceMaxOp, ReduceSumOp, Reduction, TopKOp
from glow_mlir.dialects.shapes import size_of
from glow_mlir.frontends.builder.emission import over_all
from glow_mlir.frontends.builder.formulas import Formulas
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.frontends.builder.slices import cut, iota, part_of
from glow_mlir.support.dataclass import dataclass

OPTIONS = ("inverse_temperature", "top_k", "top_p", "log_min_p", "typical_p", "uniform", "total")
"""
The elements of the input `options`, f64: those of `Sampling`, infinite where they are left out, one divided by the
temperature, because a product takes a fifth of the time of a quotient, the logarithm of `min_p`, the uniform number,
and the sum of the weights of all tokens where those beside the candidates count.
"""

PENALTIES = ("repetition", "presence", "frequency")
"""The elements of the input `penalties`, f64."""

NOT_ENOUGH = -1
"""In place of a token: the candidates are too few."""

NO_TOKEN = -2
"""In place of a token: the largest logit is not finite."""

_BLOCK = 512
"""The number of tokens whose weights are summed up before those of others are looked at."""

_Values = dict[str, SSAValue]


class _Row:
    """A row of logits in a program, with what steps on it share."""

    def __init__(self, node: NodeBuilder, given: _Values) -> None:
        self.node, self.logits = node, given["logits"]
        self.formulas = Formulas(node)
        options = given.get("options")
        self.options = (
            {}
            if options is None
            else {name: self.formulas.of(part_of(node, options, number)) for number, name in enumerate(OPTIONS)}
        )

    @property
    def words(self) -> int:
        """The number of tokens."""
        return size_of(self.logits)

    def of(self, value: SSAValue) -> Tensor:
        """The operand of a formula for a value."""
        return self.formulas.of(value)

    def value(self, formula: Tensor) -> SSAValue:
        """The value of a formula."""
        return self.formulas.value(formula)

    def reduced(self, operator: type[Reduction], formula: Tensor) -> Tensor:
        """All elements of a formula, reduced to a scalar."""
        return self.of(over_all(operator, self.value(formula), self.node))

    def total(self, formula: Tensor) -> Tensor:
        """The sum of a formula's elements."""
        return self.reduced(ReduceSumOp, formula)

    def count(self, condition: Tensor) -> Tensor:
        """The number of elements for which a condition holds, i64."""
        return self.total(converted(condition, i64))

    def running(self, formula: Tensor, is_exclusive: bool = False) -> Tensor:
        """Running totals of a vector."""
        return self.of(self.node.emit(CumSumOp, self.value(formula), axis=0, exclusive=is_exclusive))

    def at(self, values: Tensor, positions: Tensor) -> Tensor:
        """Elements of a vector at positions."""
        return self.of(self.node.emit(GatherOp, self.value(values), self.value(positions), axis=0))

    def ranks(self, count: int) -> Tensor:
        """0, 1, … as f64."""
        return self.of(iota(self.node, count, dtype=np.dtype(np.float64)))

    def last(self, vector: Tensor, number: int = -1) -> Tensor:
        """An element of a vector, by default the last."""
        value = self.value(vector)
        return self.of(part_of(self.node, value, number % size_of(value)))

    def first_of(self, values: Tensor, count: int, largest: bool) -> tuple[Tensor, Tensor]:
        """The largest or smallest elements of a vector in order, and their positions; equal ones by position."""
        found = self.node.emit_all(TopKOp, self.value(values), k=count, axis=0, largest=largest)
        return self.of(found[0]), self.of(found[1])

    def scaled(self, logits: Tensor, top: Tensor) -> Tensor:
        """Logits relative to the largest one, divided by the temperature, f64."""
        return (converted(logits, f64) - converted(top, f64)) * self.options["inverse_temperature"]

    def checked(self, token: Tensor, top: Tensor) -> _Values:
        """The output: the token, or `NO_TOKEN` where the largest logit is not finite."""
        is_finite = abs(top) < np.inf
        return {"token": self.value(where(is_finite, token, NO_TOKEN))}


@dataclass(frozen=True)
class _Candidates:
    """Tokens in the order of their logits, the largest first: [count] each."""

    ids: Tensor
    """i64."""
    scaled: Tensor
    """Logits relative to the largest one, divided by the temperature, f64."""
    is_kept: Tensor

    @property
    def weights(self) -> Tensor:
        """The weights of those that are kept, 0 for the others."""
        return where(self.is_kept, exp(self.scaled), 0.0)


def greedy(node: NodeBuilder, given: _Values) -> _Values:
    """The token with the largest logit."""
    row = _Row(node, given)
    token = row.of(node.emit(ArgMaxOp, row.logits, axis=0, keepdims=False))
    return row.checked(token, row.at(row.of(row.logits), token))


def total(node: NodeBuilder, given: _Values) -> _Values:
    """The sum of the weights of all tokens."""
    row = _Row(node, given)
    logits = row.of(row.logits)
    return {"total": row.value(row.total(exp(row.scaled(logits, row.reduced(ReduceMaxOp, logits)))))}


def drawn(node: NodeBuilder, given: _Values) -> _Values:
    """
    A draw among all tokens that are likely enough.

    Blocks of tokens share the interval from 0 to `total`; then the tokens of the one that was met share its part.
    """
    row = _Row(node, given)
    top = row.reduced(ReduceMaxOp, row.of(row.logits))

    def weights(logits: Tensor) -> Tensor:
        scaled = row.scaled(logits, top)
        return where(scaled >= row.options["log_min_p"], exp(scaled), 0.0)

    whole = row.words // _BLOCK * _BLOCK
    sums: list[SSAValue] = []
    for start, end, columns in ((0, whole, _BLOCK), (whole, row.words, row.words - whole)):
        if start < end:
            part = cut(node, row.logits, {0: (start, end)})
            blocks = row.of(node.emit(ReshapeOp, part, shape=((end - start) // columns, columns)))
            sums.append(node.emit(ReduceSumOp, row.value(weights(blocks)), axes=(1,), keepdims=False))
    ends = row.running(row.of(node.emit(ConcatOp, sums, axis=0)))
    aim = row.formulas.kept(row.options["uniform"] * row.last(ends))
    is_before = ends <= aim
    block = row.count(is_before)
    rest = row.formulas.kept(aim - row.reduced(ReduceMaxOp, where(is_before, ends, 0.0)))
    ids = row.formulas.kept(row.of(iota(node, _BLOCK)) + block * _BLOCK)
    logits = row.at(row.of(row.logits), minimum(ids, row.words - 1))
    inside = row.running(where(ids < row.words, weights(logits), 0.0))
    # The sums of a block and of its elements round differently.
    offset = minimum(row.count(inside <= rest), row.count(inside < row.last(inside)))
    return row.checked(block * _BLOCK + offset, top)


def candidates(node: NodeBuilder, given: _Values, count: int, is_typical: int, is_whole: int) -> _Values:
    """
    A draw among the `count` first tokens, in the order of their logits or of how typical they are.

    If all tokens count (`is_whole`), the result is `NOT_ENOUGH` where the steps would keep others, too. For typical
    tokens that is the order of typicality, otherwise `options` have the `total` of all weights.
    """
    row = _Row(node, given)
    logits, options = row.of(row.logits), row.options
    if is_typical and is_whole:
        top = row.reduced(ReduceMaxOp, logits)
        scaled = row.formulas.kept(row.scaled(logits, top))
        found = _Candidates(row.of(iota(node, row.words)), scaled, scaled >= -np.inf)
    else:
        values, ids = row.first_of(logits, count, largest=True)
        top = row.last(values, 0)
        scaled = row.formulas.kept(row.scaled(values, top))
        found = _Candidates(ids, scaled, row.formulas.kept(row.ranks(count) < options["top_k"]))
    is_enough = None
    if is_typical:
        found, is_enough = _typical(row, found, count)
    weights = row.formulas.kept(found.weights)
    before = row.running(weights, is_exclusive=True)
    everything = row.total(weights)
    if is_whole and not is_typical:
        everything = options["total"]
        is_enough = (row.total(weights) >= options["top_p"] * everything) | (
            row.last(found.scaled) < options["log_min_p"]
        )
    peak = row.reduced(ReduceMaxOp, where(found.is_kept, found.scaled, -np.inf)) if is_typical else None
    height = found.scaled if peak is None else found.scaled - peak
    is_likely = (before < options["top_p"] * everything) | (before <= 0.0)
    weights = where(is_likely & (height >= options["log_min_p"]), weights, 0.0)
    token = _by_ids(row, found.ids, weights)
    if is_whole and is_enough is not None and count < row.words:
        token = where(is_enough, token, NOT_ENOUGH)
    return row.checked(token, top)


def _typical(row: _Row, found: _Candidates, count: int) -> tuple[_Candidates, Tensor]:
    """
    The `count` most typical ones, those that the step keeps marked, again by logits; and whether they are enough.

    The information of a token, less the entropy, is the mean of scaled logits less its own.
    """
    weights = row.formulas.kept(found.weights)
    everything = row.total(weights)
    mean = row.total(where(weights > 0.0, weights * found.scaled, 0.0)) / everything
    _, order = row.first_of(where(found.is_kept, abs(mean - found.scaled), np.inf), count, largest=False)
    own, wanted = row.at(weights, order), row.options["typical_p"] * everything
    before = row.running(own, is_exclusive=True)
    is_kept = row.formulas.kept((before < wanted) | (before <= 0.0))
    scaled = row.at(found.scaled, order)
    # Equally typical tokens have equal logits or the mean between them, so equal ones stay in the order of their ids.
    values, back = row.first_of(where(is_kept, scaled, -np.inf), count, largest=True)
    kept = converted(row.at(converted(is_kept, i32), back), i32) > 0
    return _Candidates(row.at(row.at(found.ids, order), back), values, row.formulas.kept(kept)), row.total(
        own
    ) >= wanted


def _by_ids(row: _Row, ids: Tensor, weights: Tensor) -> Tensor:
    """A draw among candidates that share an interval in the order of their ids."""
    node, count = row.node, size_of(row.value(ids))
    if count == row.words:
        nothing = node.splat(0.0, f64, (count,))
        weights = row.of(node.emit(ScatterElementsOp, nothing, row.value(ids), row.value(weights), axis=0))
    else:
        _, order = row.first_of(converted(ids, i32), count, largest=False)
        ids, weights = row.at(ids, order), row.at(weights, order)
    ends = row.running(weights)
    # All weights are 0 if the largest logit is not finite.
    place = minimum(row.count(ends <= row.options["uniform"] * row.last(ends)), count - 1)
    return place if count == row.words else row.at(ids, place)


def adjusted(node: NodeBuilder, given: _Values) -> _Values:
    """Logits with bias, penalties and mask, as far as there are inputs for them; each step rounds to f32."""
    row = _Row(node, given)
    logits = row.of(row.logits)

    def written(ids: SSAValue, values: Tensor) -> Tensor:
        """The logits with other values at ids."""
        updates = row.value(converted(values, f32))
        return row.of(node.emit(ScatterElementsOp, row.value(logits), ids, updates, axis=0))

    if (ids := given.get("bias_ids")) is not None:
        logits = written(ids, row.at(logits, row.of(ids)) + row.of(given["bias"]))
    if (history := given.get("history")) is not None:
        penalties = (row.of(part_of(node, given["penalties"], number)) for number in range(len(PENALTIES)))
        repetition, presence, frequency = penalties
        own = converted(row.at(logits, row.of(history)), f64)
        own = where(own > 0.0, own / repetition, own * repetition)
        times = converted(row.of(given["times"]), f64)
        logits = written(history, own - (times * frequency + where(times > 0.0, presence, 0.0)))
    if (mask := given.get("mask")) is not None:
        logits = where(row.of(mask) > 0, logits, -np.inf)
    return {"logits": row.value(logits)}


def logprobs(node: NodeBuilder, given: _Values, count: int) -> _Values:
    """The logarithmic probabilities of a token and of the `count` most likely ones."""
    row = _Row(node, given)
    logits = row.of(row.logits)
    top = converted(row.reduced(ReduceMaxOp, logits), f64)
    shift = row.formulas.kept(top + log(row.total(exp(converted(logits, f64) - top))))
    own = converted(row.at(logits, row.of(given["token"])), f64) - shift
    if not count:
        return {"own": row.value(own)}
    values, ids = row.first_of(logits, count, largest=True)
    return {"own": row.value(own), "ids": row.value(ids), "logprobs": row.value(converted(values, f64) - shift)}
