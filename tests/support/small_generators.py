"""A generator for tests: a small decoder with random weights, and a vocabulary of bytes and a few tokens more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gguf_files import llama_metadata, llama_tensors, random_blocks, write_gguf

from glow_mlir.generation.embedder import Embedder
from glow_mlir.generation.generator import Generator
from glow_mlir.generation.pieces import GPT2_BYTES

SPECIAL = ("<|begin|>", "<|im_start|>", "<|im_end|>")
"""Control tokens: texts begin with the first one, turns end with the last one."""

WORDS = ("he", "ll", "hell", "lo")

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if tools %}{{ tools | tojson }}{% endif %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokens() -> list[str]:
    """The vocabulary."""
    return [*sorted(GPT2_BYTES, key=GPT2_BYTES.__getitem__), *WORDS, *SPECIAL]


def write_model(path: Path, kind: str = "F32", context: int = 256, more: Any = (), **tensors: Any) -> Path:
    """Write the file of the model, with more entries and tensors."""
    vocabulary = tokens()
    metadata: dict[str, Any] = {
        **llama_metadata(embedding_length=256, feed_forward_length=256, context_length=context),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": vocabulary,
        "tokenizer.ggml.token_type": (9, (5, [1] * (256 + len(WORDS)) + [3] * len(SPECIAL))),
        "tokenizer.ggml.merges": ["h e", "l l", "he ll", "l o"],
        "tokenizer.ggml.bos_token_id": vocabulary.index(SPECIAL[0]),
        "tokenizer.ggml.eos_token_id": vocabulary.index(SPECIAL[2]),
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.chat_template": TEMPLATE,
        **dict(more),
    }
    return write_gguf(path, metadata, {**llama_tensors(kind, vocabulary=len(vocabulary)), **tensors})


def small_ranker(folder: Path, **options: Any) -> Embedder:
    """The model with a head for two answers, and without one in `plain.gguf`; the file `head` has its rows."""
    head = random_blocks("F32", (2, 256))
    entries = {
        "tokenizer.chat_template.rerank": "<|im_start|>{query}: {document}<|im_end|>",
        "llama.classifier.output_labels": ["yes", "no"],
        "llama.pooling_type": 4,
    }
    write_model(folder / "plain.gguf")
    (folder / "head").write_bytes(head)
    path = write_model(folder / "ranker.gguf", more=entries, **{"cls.output.weight": ("F32", (2, 256), head)})
    return Embedder(path, **options)


def small_generator(folder: Path, **options: Any) -> Generator:
    """A generator on the model."""
    return Generator(write_model(folder / "small.gguf"), **{"threads": 1, "cache": "float32", **options})
