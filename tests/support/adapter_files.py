"""Files of low-rank adapters for tests: folders of PEFT, and GGUF files as llama.cpp's converter makes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gguf_files import write_gguf

Pairs = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""Name of a matrix → A [rank, depth] and B [rows, rank], f32."""

CONFIG: Mapping[str, Any] = {"peft_type": "LORA", "bias": "none", "lora_alpha": 6, "r": 3}


def random_pairs(shapes: Mapping[str, tuple[int, int]], seed: int = 0, rank: int = 3) -> dict[str, Any]:
    """Random pairs for matrices of these shapes."""
    rng = np.random.default_rng(seed)
    sizes = {name: ((rank, depth), (rows, rank)) for name, (rows, depth) in shapes.items()}
    return {
        name: tuple(rng.standard_normal(size).astype(np.float32) / 5 for size in each) for name, each in sizes.items()
    }


def write_peft(folder: Path, pairs: Pairs, **config: Any) -> Path:
    """A folder of PEFT; names are those of modules."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({**CONFIG, **config}), encoding="utf-8")
    header: dict[str, Any] = {}
    body = b""
    for name, arrays in pairs.items():
        for letter, array in zip("AB", arrays, strict=True):
            entry = {"dtype": "F32", "shape": array.shape, "data_offsets": [len(body), len(body) + array.nbytes]}
            header[f"base_model.model.{name}.lora_{letter}.weight"] = entry
            body += array.tobytes()
    data = json.dumps(header).encode()
    (folder / "adapter_model.safetensors").write_bytes(len(data).to_bytes(8, "little") + data + body)
    return folder


def write_gguf_adapter(path: Path, pairs: Pairs, alpha: float | None = 6.0, **entries: Any) -> Path:
    """A GGUF file; names are those of tensors, without `.weight`."""
    metadata: dict[str, Any] = {"general.type": "adapter", "adapter.type": "lora", **entries}
    if alpha is not None:
        metadata["adapter.lora.alpha"] = alpha
    tensors = {
        f"{name}.weight.lora_{letter}": ("F32", array.shape, array.tobytes())
        for name, arrays in pairs.items()
        for letter, array in zip("ab", arrays, strict=True)
    }
    return write_gguf(path, metadata, tensors)
