"""Semantics of keys and values in pages: attention is computed in f64, and rounded once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.pages import PagedAttentionOp, WritePagesOp
from glow_mlir.dialects.properties import flag, integer, number
from glow_mlir.errors import failed_call
from glow_mlir.interpreter.linear import wide
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.registry import semantics


def item(op: HighOp, numbers: np.ndarray, *place: int) -> np.ndarray:
    """The item of an array at a place; raises `ExecutionError` where it has none."""
    if any(not 0 <= index < size for index, size in zip(place, numbers.shape, strict=False)):
        raise failed_call(op.FAILURE, location_name(op.location))
    return numbers[place]


@semantics(WritePagesOp)
def write_pages(
    op: WritePagesOp,
    pages: np.ndarray,
    rows: np.ndarray,
    table: np.ndarray,
    sequences: np.ndarray,
    positions: np.ndarray,
) -> np.ndarray:
    """Write the rows in order."""
    result = np.array(pages)
    slots = np.moveaxis(result, -1, 2) if flag(op.transposed) else result
    block = slots.shape[2]
    for row, sequence, position in zip(rows.astype(pages.dtype), sequences, positions, strict=True):
        if position >= 0:
            page = item(op, table, int(sequence), int(position) // block)
            item(op, slots, int(page))[:, position % block] = row
    return result


@semantics(PagedAttentionOp)
def paged_attention(
    op: PagedAttentionOp,
    query: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    table: np.ndarray,
    sequences: np.ndarray,
    positions: np.ndarray,
    sinks: np.ndarray | None,
    lengths: np.ndarray | None,
    key_scales: np.ndarray | None,
    value_scales: np.ndarray | None,
) -> np.ndarray:
    """Attend row by row."""
    (_, heads, _), (_, groups, _, block) = query.shape, keys.shape
    result = np.zeros((*query.shape[:2], values.shape[-1]), np.float32)
    window, softcap = integer(op.window), number(op.softcap)
    for row, (sequence, position) in enumerate(zip(sequences, positions, strict=True)):
        if position < 0:
            continue
        first = max(0, int(position) + 1 - window) if window else 0
        end = int(position) + 1
        if lengths is not None:
            length = int(item(op, lengths, int(sequence)))
            if position >= length:
                raise failed_call(op.FAILURE, location_name(op.location))
            end = min(length, int(position) + window) if window else length
        pages = [int(item(op, table, int(sequence), n)) for n in range(first // block, (end - 1) // block + 1)]
        seen = slice(first % block, end - first // block * block)

        def joined(pages_: np.ndarray, axis: int, pages: Sequence[int] = pages, seen: slice = seen) -> np.ndarray:
            whole = np.concatenate([item(op, pages_, page) for page in pages], axis=axis)
            return wide(np.moveaxis(np.moveaxis(whole, axis, -1)[..., seen], -1, axis))

        own_keys, own_values = joined(keys, -1), joined(values, -2)
        if key_scales is not None:
            own_keys = own_keys * joined(key_scales, -1)
        if value_scales is not None:
            own_values = own_values * np.moveaxis(joined(value_scales, -1), -1, -2)
        queries = wide(query[row]).reshape(groups, heads // groups, -1) * number(op.scale)
        scores = np.matmul(queries, own_keys).reshape(heads, -1)
        if softcap:
            scores = softcap * np.tanh(scores / softcap)
        further = np.zeros((heads, 0)) if sinks is None else wide(sinks)[:, None]
        peak = np.concatenate([scores, further], axis=1).max(axis=1, keepdims=True)
        powers = np.exp(scores - peak)
        weights = powers / (powers.sum(axis=1, keepdims=True) + np.exp(further - peak).sum(axis=1, keepdims=True))
        result[row] = np.matmul(weights.reshape(groups, heads // groups, -1), own_values).reshape(heads, -1)
    return result
