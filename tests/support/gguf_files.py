"""GGUF files for tests: a writer of the format, and decoders converted as llama.cpp's converter does it."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from glow_mlir.frontends.gguf.block_types import BLOCK_TYPES
from glow_mlir.frontends.gguf.cursor import PLAIN

NUMBERS = {type_.name: number for number, type_ in BLOCK_TYPES.items()}
"""Name of a type of tensors → its number."""

QUANTIZED = [type_.name for type_ in BLOCK_TYPES.values() if type_.unpack is not None]
"""Names of quantized types."""

Tensors = Mapping[str, tuple[str, tuple[int, ...], bytes]]
"""Name of a tensor → the name of its type, its shape, and its bytes."""

Entry = tuple[int, Any]
"""Number of the type of a value, and the value; an array's is `(9, (number of the type, items))`."""


def text(value: str) -> bytes:
    """A string of the format."""
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value_bytes(kind: int, value: Any) -> bytes:
    """A value of the metadata, without its type."""
    if kind == 8:
        return text(value)
    if kind == 9:
        own, items = value
        return struct.pack("<IQ", own, len(items)) + b"".join(value_bytes(own, item) for item in items)
    return np.array(value, PLAIN[kind]).tobytes()


def entry_of(value: Any) -> Entry:
    """The entry for a value of Python."""
    if isinstance(value, tuple):
        return cast("Entry", value)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return 9, (entry_of(items[0])[0], items)
    kinds: Sequence[tuple[type, int]] = ((bool, 7), (int, 4), (float, 6), (str, 8))
    return next(kind for type_, kind in kinds if isinstance(value, type_)), value


def gguf_bytes(metadata: Mapping[str, Any], tensors: Tensors, version: int = 3) -> bytes:
    """A file with these entries and tensors."""
    found = [b"GGUF", struct.pack("<IQQ", version, len(tensors), len(metadata))]
    for key, value in metadata.items():
        kind, own = entry_of(value)
        found += [text(key), struct.pack("<I", kind), value_bytes(kind, own)]
    offset, data = 0, b""
    for name, (kind, shape, content) in tensors.items():
        sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
        found += [text(name), sizes, struct.pack("<IQ", NUMBERS[kind], offset)]
        data += content + bytes(-len(content) % 32)
        offset = len(data)
    header = b"".join(found)
    return header + bytes(-len(header) % 32) + data


def random_blocks(kind: str, shape: tuple[int, ...], seed: int = 0) -> bytes:
    """Random blocks of a type, of numbers around 0.1."""
    type_, rng = BLOCK_TYPES[NUMBERS[kind]], np.random.default_rng(seed)
    count = int(np.prod(shape)) // type_.elements
    if type_.unpack is None:
        numbers = (rng.standard_normal(count) / 10).astype(np.float32)
        if type_.name == "BF16":
            return (numbers.view(np.uint32) >> 16).astype(np.uint16).tobytes()
        return numbers.astype(type_.dtype).tobytes()
    blocks = rng.integers(0, 256, (count, type_.nbytes), np.uint8)
    if kind == "MXFP4":
        blocks[:, 0] = rng.integers(120, 124, count)
        return blocks.tobytes()
    largest, *begins = SCALES[kind]
    for begin in begins:
        halves = rng.uniform(-largest, largest, (count, 1)).astype(np.float16)
        blocks[:, int(begin) : int(begin) + 2] = halves.view(np.uint8)
    return blocks.tobytes()


SCALES: Mapping[str, tuple[float, ...]] = {
    "Q4_0": (0.04, 0),
    "Q4_1": (0.02, 0, 2),
    "Q5_0": (0.02, 0),
    "Q5_1": (0.01, 0, 2),
    "Q8_0": (2e-3, 0),
    "Q4_K": (3e-4, 0, 2),
    "Q5_K": (2e-4, 0, 2),
    "Q6_K": (1e-4, 208),
    "IQ4_NL": (2e-3, 0),
}
"""Type → the largest f16 of its blocks, and their first bytes."""


def write_gguf(
    path: Path, metadata: Mapping[str, Any], tensors: Mapping[str, tuple[str, tuple[int, ...], bytes]]
) -> Path:
    """Write a file."""
    path.write_bytes(gguf_bytes(metadata, tensors))
    return path


def llama_metadata(**sizes: Any) -> dict[str, Any]:
    """The metadata of a small decoder of the family llama."""
    return {
        "general.architecture": "llama",
        "llama.embedding_length": 64,
        "llama.block_count": 2,
        "llama.feed_forward_length": 96,
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
        "llama.context_length": 128,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 10000.0,
        **{f"llama.{key}": value for key, value in sizes.items()},
    }


def llama_tensors(
    kind: str, layers: int = 2, width: int = 256, hidden: int = 256, vocabulary: int = 96
) -> dict[str, Any]:
    """The tensors of a small decoder of the family llama with random weights of a type, and head tied to the table."""
    keys = width // 2
    shapes = {
        "attn_q": (width, width), "attn_k": (keys, width), "attn_v": (keys, width), "attn_output": (width, width),
        "ffn_gate": (hidden, width), "ffn_up": (hidden, width), "ffn_down": (width, hidden),
    }  # fmt: skip
    found: dict[str, Any] = {"token_embd.weight": (kind, (vocabulary, width), random_blocks(kind, (vocabulary, width)))}
    ones = ("F32", (width,), np.ones(width, np.float32).tobytes())
    for layer in range(layers):
        for number, (name, shape) in enumerate(shapes.items()):
            seed = 16 * layer + number + 1
            found[f"blk.{layer}.{name}.weight"] = (kind, shape, random_blocks(kind, shape, seed))
        found.update({f"blk.{layer}.{name}.weight": ones for name in ("attn_norm", "ffn_norm")})
    return {**found, "output_norm.weight": ones}
