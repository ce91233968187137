"""ONNX's counts of n-grams of numbers, or of strings, which are represented by numbers."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.ngrams import TfIdfVectorizerOp
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.values import Strings, takes_values
from glow_mlir.ir.registry import onnx_operator


@onnx_operator("TfIdfVectorizer", since=9)
@takes_values
def tf_idf_vectorizer(node: Node) -> SSAValue:
    """Count n-grams; the pool lists the n-grams of all lengths one after another."""
    indices = node.ints("ngram_indexes")
    if not indices or min(indices) < 0:
        raise ModelError("TfIdfVectorizer: ngram_indexes are columns, at least one", node=node.name)
    size = max(indices) + 1
    weights = node.floats("weights", ()) if node.has("weights") else None
    words = node.operand()
    return node.emit(
        TfIdfVectorizerOp,
        words.numbers if isinstance(words, Strings) else node.emit(CastOp, node.input(), to=i64),
        None if weights is None else node.constant(np.asarray(weights, np.float32), "weights"),
        [node.constant(pool, "ngrams") for pool in _pools(node, indices)],
        size=size,
        max_skip_count=node.int("max_skip_count"),
        mode=node.text("mode"),
    )


def _pools(node: Node, indices: tuple[int, ...]) -> list[np.ndarray]:
    """For each length that is counted, the sorted n-grams, each followed by the column of its count."""
    strings = tuple(node.strings.number(word) for word in node.texts("pool_strings", ()))
    numbers, starts = strings or node.ints("pool_int64s"), node.ints("ngram_counts")
    wanted = range(node.int("min_gram_length"), node.int("max_gram_length") + 1)
    pools: list[np.ndarray] = []
    position = 0
    for length, (start, stop) in enumerate(zip(starts, (*starts[1:], len(numbers)), strict=True), 1):
        count = (stop - start) // length
        if not 0 <= start <= stop <= len(numbers) or count * length != stop - start:
            reason = f"TfIdfVectorizer: pool entries {start} to {stop} are not n-grams of length {length}"
            raise ModelError(reason, node=node.name, hint="check ngram_counts and pool_int64s")
        if position + count > len(indices):
            raise ModelError("TfIdfVectorizer: there are more n-grams than ngram_indexes", node=node.name)
        if count and length in wanted:
            # If an n-gram is repeated, the last one counts.
            ngrams = [numbers[first : first + length] for first in range(start, stop, length)]
            known = dict(zip(ngrams, indices[position:], strict=False))
            pools.append(np.array([(*ngram, known[ngram]) for ngram in sorted(known)], np.int64))
        position += count
    return pools
