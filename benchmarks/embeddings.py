"""
Vectors of texts beside transformers with PyTorch, in turns: CPU time on one core, wall time on several.

    python benchmarks/embeddings.py                             # a random encoder of the size of MiniLM
    python benchmarks/embeddings.py bge-small-en-v1.5/ --threads 2 --rounds 15

A call has texts of equal lengths, or of mixed ones, which PyTorch gets sorted by length and padded, in batches of the
size of which it is fastest. Vectors are means of rows, of length 1. The least time of all rounds counts; what is
printed are tokens a second, ours and PyTorch's, ours over theirs, and the largest difference of the vectors.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import glow_mlir
from contest.machine import machine, stay_on, usable_cores

SIZES: Mapping[str, int] = {
    "vocab_size": 30522,
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "max_position_embeddings": 512,
}
"""The sizes of MiniLM with 6 layers."""

LENGTHS: Mapping[str, tuple[int, int, int]] = {
    "16": (16, 16, 64), "128": (128, 128, 8), "512": (512, 512, 2), "5 to 200": (5, 200, 64), "one of 16": (16, 16, 1),
}  # fmt: skip
"""What a call has → the least and the greatest number of tokens of a text, and the number of texts."""

BATCHES = (1, 8, 32, 64)
"""The numbers of texts in a batch of PyTorch's."""


def random_encoder(folder: Path) -> Path:
    """Write an encoder of the size of MiniLM with random weights, and a tokenizer of words without meaning."""
    import tokenizers
    from tokenizers import models, processors

    torch.manual_seed(0)
    transformers.BertModel(transformers.BertConfig(**SIZES)).save_pretrained(folder)
    words: Any = models.WordPiece({f"w{number}": number for number in range(SIZES["vocab_size"])}, unk_token="w1")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.post_processor = processors.BertProcessing(("w3", 3), ("w2", 2))
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def by_pytorch(model: Any, texts: Sequence[Sequence[int]], batch: int) -> np.ndarray:
    """The vectors of texts, computed in batches of texts of similar lengths."""
    order = np.argsort([-len(text) for text in texts], kind="stable")
    found = np.empty((len(texts), model.config.hidden_size), np.float32)
    for begin in range(0, len(order), batch):
        chosen = order[begin : begin + batch]
        longest = len(texts[chosen[0]])
        ids = torch.tensor([[*texts[number], *[0] * (longest - len(texts[number]))] for number in chosen])
        mask = torch.tensor([[int(at < len(texts[number])) for at in range(longest)] for number in chosen])
        with torch.inference_mode():
            rows = model(ids, attention_mask=mask).last_hidden_state * mask[..., None]
            means = rows.sum(dim=1) / mask.sum(dim=1, keepdim=True)
            found[chosen] = torch.nn.functional.normalize(means).numpy()
    return found


def least(calls: Mapping[str, Callable[[], np.ndarray]], rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    """The least seconds of each call, which are made in turns."""
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            begin = clock()
            call()
            found[name] = min(found[name], clock() - begin)
    return found


def measure(folder: Path, threads: int, rounds: int) -> None:
    """Print a line for each kind of call."""
    torch.set_num_threads(threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    model = transformers.AutoModel.from_pretrained(folder).float().eval()
    embedder, rng = glow_mlir.Embedder(folder, threads=threads, pooling="mean"), np.random.default_rng(0)
    for name, (shortest, longest, count) in LENGTHS.items():
        sizes = rng.integers(shortest, longest + 1, count)
        texts = [rng.integers(5, embedder.model.config.vocabulary, size).tolist() for size in sizes]
        batches = [batch for batch in BATCHES if batch <= count]
        calls: dict[str, Callable[[], np.ndarray]] = {
            f"batches of {batch}": lambda batch=batch, texts=texts: by_pytorch(model, texts, batch) for batch in batches
        }
        calls["ours"] = lambda texts=texts: embedder.embed_tokens(texts, normalize=True)
        error = float(np.abs(calls["ours"]() - by_pytorch(model, texts, count)).max())
        seconds = least(calls, rounds, clock)
        own = seconds.pop("ours")
        best = min(seconds, key=lambda batch: seconds[batch])
        rates = f"{sum(sizes) / own:.0f} tokens a second, PyTorch {sum(sizes) / seconds[best]:.0f} ({best})"
        print(f"{name} tokens: {rates}, ratio {seconds[best] / own:.2f}, error {error:.1e}", flush=True)


def main() -> int:
    """Measure an encoder in a folder, or one with random weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", type=Path, help="a folder of a checkpoint; by default a random encoder")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    stay_on(usable_cores()[: options.threads])
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        measure(options.model or random_encoder(Path(folder)), options.threads, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
