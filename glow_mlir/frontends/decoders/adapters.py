"""
Low-rank adapters of decoders (LoRA, Hu et al. 2021), from folders of PEFT and from GGUF files of llama.cpp.

An adapter adds B·(A·x) · alpha / rank to what a matrix makes of x, for the matrices that it has a pair of A and B for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.checkpoints.folder import mapped_tensors, read_json
from glow_mlir.frontends.decoders.config import is_number
from glow_mlir.frontends.decoders.families import LAYER_PREFIX, LLAMA_NAMES, Family
from glow_mlir.frontends.decoders.weights import SPELLINGS
from glow_mlir.frontends.gguf.file import GgufFile
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.json_values import is_mapping

CONFIG, TENSORS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
"""What names of tensors begin with in PEFT's files."""

KINDS: Mapping[str, tuple[str, str]] = {"peft": (".lora_A.weight", ".lora_B.weight"), "gguf": (".lora_a", ".lora_b")}
"""Kind of a file → what names of A and B end with."""

Factor = Callable[[str, int], float]
"""Name of a matrix, and the rank → what the product of its pair is multiplied by."""

NEEDED: Mapping[str, tuple[Any, ...]] = {
    "peft_type": ("LORA",),
    "bias": (None, "none"),
    # Others begin with parts of the weights, and are added to what is left of these.
    "init_lora_weights": (None, True, False, "gaussian", "eva", "orthogonal"),
}
"""Entry of PEFT's configuration → the values that are supported; `None`: it is left out."""

IGNORED = frozenset((
    "task_type", "auto_mapping", "peft_version", "base_model_name_or_path", "revision", "inference_mode",
    "r", "target_modules", "exclude_modules", "rank_pattern", "layers_to_transform", "layers_pattern",
    "lora_dropout", "fan_in_fan_out", "ensure_weight_tying", "megatron_config", "megatron_core", "runtime_config",
    "loftq_config", "eva_config", "corda_config", "lora_ga_config", "qalora_group_size",
    "lora_alpha", "alpha_pattern", "use_rslora",
))  # fmt: skip
"""
Entries that may have any value: those that are read, and those that say how an adapter was made, or what it is for.

Any other, such as `use_dora`, `alora_invocation_tokens` or one that is not known, has to be empty or false.
"""


@dataclass(frozen=True)
class Pair:
    """The matrices of one product: `down` [rank, depth], and `up` [rows, rank] with the factor in it; f32."""

    down: np.ndarray
    up: np.ndarray


@dataclass(frozen=True)
class Adapter:
    """
    An adapter in a file.

    `kind`: `peft` for the names and the order of rows of checkpoints, `gguf` for those of GGUF files; `pairs` by name
    of the matrix in the file; `files`: what it consists of; `architecture`: that of its decoder in GGUF files, if it is
    known.
    """

    path: Path
    kind: str
    pairs: Mapping[str, Pair]
    files: tuple[Path, ...]
    architecture: str | None = None

    @staticmethod
    def open(path: str | Path) -> Adapter:
        """
        Read a folder with `adapter_config.json` and `adapter_model.safetensors`, or a GGUF file.

        Raises `ModelError` for files that are missing or damaged, and `UnsupportedError` for other kinds of adapters.
        """
        path = Path(path)
        if not path.exists():
            raise ModelError("there is no such file or folder", file=str(path), hint="an adapter is a folder of PEFT")
        if path.is_dir():
            return _of_folder(path)
        return _of_gguf(path)

    def __reduce__(self) -> tuple[object, ...]:
        """Open the files again in another process."""
        return Adapter.open, (self.path,)

    def name_of(self, name: str, layer: int, family: Family) -> str | None:
        """The name here of a decoder's matrix, or `None` if it has no pair; `name` is that of GGUF files."""
        if self.kind == "gguf":
            spelled = [f"blk.{layer}.{name}.weight"]
        else:
            names = {**LLAMA_NAMES, **family.names}
            prefix = names.get("layer", LAYER_PREFIX).format(layer=layer)
            spelled = [change(f"{prefix}{names[name]}") for change in SPELLINGS] if name in names else []
        return next((own for own in spelled if own in self.pairs), None)


def _of_gguf(path: Path) -> Adapter:
    """The adapter in a GGUF file."""
    file = GgufFile.open(path)
    metadata = file.metadata
    if metadata.get("adapter.type") != "lora":
        hint = "llama.cpp's convert_lora_to_gguf.py makes one"
        raise UnsupportedError("is no adapter of the type lora", file=str(path), node="adapter.type", hint=hint)
    if (key := "adapter.alora.invocation_tokens") in metadata:
        raise UnsupportedError("adapters behind invocation tokens are not supported", file=str(path), node=key)
    alpha = _number(metadata.get("adapter.lora.alpha", 0), path, "adapter.lora.alpha")
    tensors = {name: tensor.array() for name, tensor in file.tensors.items() if not tensor.is_quantized}
    if quantized := file.tensors.keys() - tensors.keys():
        raise UnsupportedError("the tensor is quantized", file=str(path), node=min(quantized))

    def factor(_: str, rank: int) -> float:
        # As llama.cpp has it: without alpha, products are not scaled.
        return alpha / rank if alpha else 1.0

    architecture = metadata.get("general.architecture")
    own = architecture if isinstance(architecture, str) else None
    return Adapter(path, "gguf", _pairs(path, "gguf", tensors, factor), file.paths, own)


def _of_folder(path: Path) -> Adapter:
    """The adapter in a folder of PEFT."""
    config = read_json(path / CONFIG)
    for key in (*NEEDED, *(key for key in config if key not in NEEDED and key not in IGNORED)):
        value = config.get(key)
        if value not in NEEDED[key] if key in NEEDED else value:
            reason = f"adapters with {key:.40} {value!r:.40} are not supported"
            raise UnsupportedError(reason, file=str(path / CONFIG), node=key)
    alpha = _number(config.get("lora_alpha"), path / CONFIG, "lora_alpha")
    patterns: Any = config.get("alpha_pattern") or {}
    if not is_mapping(patterns) or any(not key.replace(".", "").replace("_", "").isalnum() for key in patterns):
        raise UnsupportedError("alpha_pattern has more than names of modules", file=str(path / CONFIG))
    alphas = {key: _number(value, path / CONFIG, key) for key, value in patterns.items()}
    is_by_root = bool(config.get("use_rslora"))

    def factor(name: str, rank: int) -> float:
        own = next((value for key, value in alphas.items() if name == key or name.endswith(f".{key}")), alpha)
        return own / (math.sqrt(rank) if is_by_root else rank)

    tensors = {name.removeprefix(PREFIX): array for name, array in mapped_tensors(path / TENSORS).items()}
    return Adapter(path, "peft", _pairs(path, "peft", tensors, factor), (path / CONFIG, path / TENSORS))


def _pairs(path: Path, kind: str, tensors: Mapping[str, np.ndarray], factor: Factor) -> dict[str, Pair]:
    """The pairs of a file."""
    down_end, up_end = KINDS[kind]
    found: dict[str, Pair] = {}
    for name, down in tensors.items():
        if name.endswith(up_end) and name.removesuffix(up_end) + down_end in tensors:
            continue
        matrix = name.removesuffix(down_end)
        up = tensors.get(matrix + up_end)
        if not name.endswith(down_end) or up is None:
            raise UnsupportedError("the tensor is no part of a pair of matrices", file=str(path), node=name)
        if down.ndim != 2 or up.ndim != 2 or down.shape[0] != up.shape[1] or not down.shape[0]:
            reason = f"matrices of the shapes {list(down.shape)} and {list(up.shape)} are no pair"
            raise ModelError(reason, file=str(path), node=name)
        scaled = up.astype(np.float32) * np.float32(factor(matrix, down.shape[0]))
        found[matrix] = Pair(down.astype(np.float32), scaled)
        # Rows of other adapters have zeros in these products, which infinity would make NaN.
        if not all(np.isfinite(part).all() for part in (found[matrix].down, scaled)):
            raise ModelError("the matrices have numbers that are not finite", file=str(path), node=name)
    if not found:
        raise ModelError("there are no matrices", file=str(path))
    return found


def _number(value: Any, path: Path, name: str) -> float:
    """A number of a configuration."""
    if not is_number(value):
        raise ModelError(f"is {value!r:.40}, and no number", file=str(path), node=name)
    return float(value)
