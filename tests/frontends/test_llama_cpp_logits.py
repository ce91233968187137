"""
Files of llama.cpp's own converter have llama.cpp's logits, with keys and values of f32.

Needs the package llama-cpp-python, and `LLAMA_CPP_MODELS`, the folder `models` of llama.cpp's sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decoder_calls import Caller, drawn

from glow_mlir.frontends.decoders.models import open_model

pytestmark = [pytest.mark.extra, pytest.mark.long]

CASES = (
    "llama", "llama, biases", "llama, linear", "llama, yarn", "mistral", "mixtral", "qwen2", "qwen3", "qwen3moe",
    "gemma2", "gemma3", "phi3, long", "gpt2", "smollm3", "olmo2", "granite",
)  # fmt: skip
"""Cases of `transformers_decoders`, but for windows of Phi-3, which llama.cpp ignores."""

ROUNDED = ("gemma2", "gemma3", "gpt2")
"""Cases with GELU, which llama.cpp looks up in a table of f16."""


def calls(first: np.ndarray, second: np.ndarray, other: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
    """Tokens, positions and sequences: a prompt, steps and chunks; then a second sequence beside the first's end."""
    begin = 0
    for size in (9, 1, 1, 7, 5):
        yield first[begin : begin + size], np.arange(begin, begin + size), 0
        begin += size
    tokens = np.concatenate([second, other])
    yield tokens, np.concatenate([np.arange(len(second)), np.arange(12, 12 + len(other))]), np.repeat([1, 0], [9, 6])


@pytest.mark.parametrize("name", CASES)
def test_logits_are_those_of_llama_cpp(name: str, tmp_path: Path) -> None:
    """Of a prompt, steps, chunks, two sequences together, and a sequence that has been truncated to 12 tokens."""
    for package in ("transformers", "gguf", "llama_cpp"):
        pytest.importorskip(package)
    from llama_cpp_decoders import CONTEXT, LlamaCpp, converted
    from transformers_decoders import decoder_of, logits_of

    decoder = decoder_of(name)
    path = converted(decoder, tmp_path)
    theirs, ours = LlamaCpp(path), Caller(open_model(path, CONTEXT), "cpu")
    first, second, other = drawn(23), drawn(9, seed=2), drawn(6, seed=3)
    rows: list[tuple[np.ndarray, np.ndarray]] = []
    for tokens, positions, sequences in calls(first, second, other):
        if len(tokens) == 15:
            theirs.truncate(0, 12)
        rows.append((ours.call(tokens, positions, sequences), theirs.logits(tokens, positions, sequences)))
    theirs.close()
    found, wanted = (np.concatenate(each) for each in zip(*rows, strict=True))
    scale = float(np.abs(wanted).max())
    np.testing.assert_allclose(found, wanted, rtol=0, atol=(1e-3 if name in ROUNDED else 1e-5) * scale)
    if name in ROUNDED:
        np.testing.assert_allclose(found[: len(first)], logits_of(decoder, first), rtol=0, atol=1e-5 * scale)
