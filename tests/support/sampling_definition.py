"""The definition of sampling, on numpy in f64; `glow_mlir.generation.sampling` says it in words."""

from __future__ import annotations

import numpy as np

from glow_mlir.generation.sampling import Sampling


def adjusted(
    logits: np.ndarray, sampling: Sampling, history: np.ndarray, output_start: int, mask: np.ndarray | None
) -> np.ndarray:
    """Logits [vocabulary], f32, with bias, penalties, and a mask of truth values; each step rounds to f32."""
    found = logits.copy()
    for token, bias in sampling.logit_bias.items():
        found[token] += np.float32(bias)
    for token in set(history.tolist()):
        own, times = float(found[token]), int(np.sum(history[output_start:] == token))
        own = own / sampling.repetition_penalty if own > 0 else own * sampling.repetition_penalty
        found[token] = own - (times * sampling.frequency_penalty + (times > 0) * sampling.presence_penalty)
    if mask is not None:
        found[~mask] = -np.inf
    return found


def kept(logits: np.ndarray, sampling: Sampling) -> tuple[np.ndarray, np.ndarray]:
    """The ids that the steps keep, the most likely first, and their weights."""
    ids = np.argsort(-logits, kind="stable")
    if sampling.temperature == 0:
        return ids[:1], np.ones(1)
    wide = logits.astype(np.float64)
    if sampling.top_k:
        ids = ids[: sampling.top_k]
    scaled = (wide - wide.max()) / sampling.temperature
    if sampling.typical_p < 1:
        shares = _shares(scaled[ids])
        information = -np.log(shares, where=shares > 0, out=np.full(len(ids), -np.inf))
        entropy = np.sum(shares * np.where(shares > 0, information, 0))
        order = np.lexsort((ids, abs(information - entropy)))
        count = _needed(shares[order], sampling.typical_p)
        ids = ids[np.sort(order[:count])]
    if sampling.top_p < 1:
        ids = ids[: _needed(_shares(scaled[ids]), sampling.top_p)]
    if sampling.min_p > 0:
        ids = ids[scaled[ids] - scaled[ids].max() >= np.log(sampling.min_p)]
    return ids, np.exp(scaled[ids])


def _shares(scaled: np.ndarray) -> np.ndarray:
    """Probabilities of scaled logits."""
    weights = np.exp(scaled - scaled.max())
    return weights / weights.sum()


def _needed(shares: np.ndarray, wanted: float) -> int:
    """How many of the first shares it takes to add up to the wanted one; at least one."""
    before = np.cumsum(shares) - shares
    return max(1, int(np.sum(before < wanted)))


def chosen(
    logits: np.ndarray,
    sampling: Sampling,
    history: np.ndarray,
    output_start: int,
    uniform: float,
    mask: np.ndarray | None = None,
) -> tuple[int, np.ndarray]:
    """The token for a uniform number, and the logarithmic probabilities of all tokens by the logits as they are."""
    ids, weights = kept(adjusted(logits, sampling, history, output_start, mask), sampling)
    order = np.argsort(ids)
    ends = np.cumsum(weights[order])
    token = ids[order][np.searchsorted(ends, uniform * ends[-1], side="right")]
    return int(token), np.log(_shares(logits.astype(np.float64)))
