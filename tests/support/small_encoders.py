"""Small encoders with random weights in GGUF files, and a vocabulary of a few words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gguf_files import random_blocks, write_gguf

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = tuple(f"▁{word}" for word in "a b c d the cat dog sat on mat query".split()) + tuple("abcd")
WIDTH, HIDDEN, CONTEXT = 64, 96, 48


def write_encoder(path: Path, kind: str = "F32", layers: int = 2, labels: int = 0, **metadata: Any) -> Path:
    """Write an encoder of the family of BERT; with `labels`, one that has a head for them."""
    tokens = [*SPECIAL, *WORDS]
    entries: dict[str, Any] = {
        "general.architecture": "bert",
        "bert.embedding_length": WIDTH,
        "bert.block_count": layers,
        "bert.feed_forward_length": HIDDEN,
        "bert.attention.head_count": 4,
        "bert.context_length": CONTEXT,
        "bert.attention.layer_norm_epsilon": 1e-12,
        "bert.attention.causal": False,
        "bert.pooling_type": 4 if labels else 1,
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": (9, (5, [3] * len(SPECIAL) + [1] * len(WORDS))),
        **{f"tokenizer.ggml.{name}_token_id": number for name, number in IDS.items()},
    }
    shapes = {"token_embd": (len(tokens), WIDTH), "token_types": (2, WIDTH), "position_embd": (CONTEXT, WIDTH)}
    norms = ["token_embd_norm"]
    for layer in range(layers):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            shapes[f"blk.{layer}.{name}"] = (WIDTH, WIDTH)
        shapes |= {f"blk.{layer}.ffn_up": (HIDDEN, WIDTH), f"blk.{layer}.ffn_down": (WIDTH, HIDDEN)}
        norms += [f"blk.{layer}.{name}" for name in ("attn_output_norm", "layer_output_norm")]
    if labels:
        shapes |= {"cls": (WIDTH, WIDTH), "cls.output": (labels, WIDTH)}
    tensors: dict[str, Any] = {}
    for number, (name, shape) in enumerate(shapes.items()):
        own = kind if name.startswith("blk.") else "F32"
        # Rows of layers are large enough for texts to differ.
        data = np.frombuffer(random_blocks("F32", shape, number), np.float32) * (1 if own != "F32" else 2)
        content = random_blocks(own, shape, number) if own != "F32" else data.astype(np.float32).tobytes()
        tensors[f"{name}.weight"] = (own, shape, content)
        if name.startswith(("blk.", "cls")):
            tensors[f"{name}.bias"] = ("F32", shape[:1], random_blocks("F32", shape[:1], 100 + number))
    for name in norms:
        tensors[f"{name}.weight"] = ("F32", (WIDTH,), np.ones(WIDTH, np.float32).tobytes())
        tensors[f"{name}.bias"] = ("F32", (WIDTH,), random_blocks("F32", (WIDTH,)))
    return write_gguf(path, {**entries, **metadata}, tensors)


IDS = {"padding": 0, "unknown": 1, "bos": 2, "cls": 2, "seperator": 3, "mask": 4}
"""Numbers of special tokens, in the format's spelling."""
