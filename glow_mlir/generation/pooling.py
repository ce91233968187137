"""
How a model makes one vector of a text: what its files say, in GGUF's metadata or as sentence-transformers writes it.

A folder of sentence-transformers has `modules.json`, a list of modules: the network, a pooling of its rows, dense
layers, and a normalization. https://sbert.net/docs/package_reference/sentence_transformer/models.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.checkpoints.folder import CONFIG, CheckpointFolder, read_json, read_value
from glow_mlir.frontends.decoders.models import DecoderModel
from glow_mlir.frontends.gguf.file import GgufFile
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.json_values import is_mapping, is_sequence

MODULES, PROMPTS, SETTINGS = "modules.json", "config_sentence_transformers.json", "tokenizer_config.json"

NETWORKS = tuple(
    f"sentence_{name}_config.json" for name in ("bert", "roberta", "distilbert", "camembert", "xlm-roberta")
)
"""Names of the file that describes the network as a module; others than the first are old."""

REDUCERS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "mean": lambda rows: rows.mean(axis=0, dtype=np.float64).astype(np.float32),
    "cls": lambda rows: rows[0],
    "last": lambda rows: rows[-1],
    "max": lambda rows: rows.max(axis=0),
}
"""Name of a pooling → the vector of the rows [tokens, width] of a text."""

_FLAGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "last",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len",
    "pooling_mode_weightedmean_tokens": "weightedmean",
}
"""Entry of the configuration of a pooling → its name."""

_NAMES = {"lasttoken": "last"}
"""Other names of poolings."""

_GGUF_POOLINGS = {1: "mean", 2: "cls", 3: "last"}
"""`pooling_type` → name of a pooling; others are none, and the score of a text."""

SCORINGS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "Sigmoid": lambda rows: np.exp(-np.logaddexp(0, -rows)),
    "Identity": lambda rows: rows,
}
"""Name of a function → scores of the results of a head."""

_ACTIVATIONS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {"Identity": lambda rows: rows, "Tanh": np.tanh}


@dataclass(frozen=True)
class Dense:
    """A layer behind the pooling: `weight` [results, elements], `bias` [results] or none, and an activation."""

    weight: np.ndarray
    bias: np.ndarray | None
    activation: Callable[[np.ndarray], np.ndarray]

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """The results [count, results] for rows [count, elements] of f32."""
        found = rows @ self.weight.T
        return self.activation(found if self.bias is None else found + self.bias)


@dataclass(frozen=True)
class Pooling:
    """
    How the rows of a text become a vector.

    - `kind`: a name of `REDUCERS`; `dense`: the layers behind it.
    - `is_normalized`: whether vectors have the length 1.
    - `length`: the number of tokens of a text, if the files say one; `cuts_front`: whether longer texts lose their
      beginning; `is_lower`: whether texts are in small letters.
    - `prompts`: texts to begin with, by name.
    """

    kind: str
    is_normalized: bool = True
    dense: tuple[Dense, ...] = ()
    length: int | None = None
    cuts_front: bool = False
    is_lower: bool = False
    prompts: Mapping[str, str] = field(default_factory=dict[str, str])
    default_prompt: str = ""
    """The name of the prompt that all texts begin with; empty for none."""
    is_declared: bool = False
    """Whether the files say how to pool, and not only that they have a network."""
    scoring: str = "Sigmoid"
    """What makes a score of the result of a head: `Sigmoid` or `Identity`."""

    @staticmethod
    def of_model(model: DecoderModel, path: Path) -> Pooling:
        """
        What the files of a model at a path say; if they say nothing, an encoder's mean, and a decoder's last row.

        Raises `ModelError` for damaged files, and `UnsupportedError` for modules and poolings that are unknown.
        """
        found = Pooling._declared(model, path)
        size = model.network.width
        for layer in found.dense:
            if layer.weight.ndim != 2 or layer.weight.shape[1] != size:
                reason = f"a layer of the shape {list(layer.weight.shape)} takes no rows of {size} elements"
                raise ModelError(reason, file=str(path))
            size = layer.weight.shape[0]
        return found

    @staticmethod
    def _declared(model: DecoderModel, path: Path) -> Pooling:
        """The same, with layers that may not fit."""
        usual = "last" if model.network.is_causal else "mean"
        if isinstance(model.source, GgufFile):
            declared: Any = model.metadata.get(f"{model.metadata['general.architecture']}.pooling_type")
            kind = _GGUF_POOLINGS.get(declared) if isinstance(declared, int) else None
            names = [f"dense_{number}.weight" for number in (2, 3)]
            layers = [model.source.tensors[name] for name in names if name in model.source.tensors]
            dense = tuple(Dense(layer.array().astype(np.float32), None, _ACTIVATIONS["Identity"]) for layer in layers)
            return Pooling(kind or usual, dense=dense, is_declared=kind is not None)
        is_ranking = bool(model.network.labels)
        if not (path / MODULES).is_file():
            found = Pooling(usual)
        elif is_ranking and [kind for kind, _ in _modules(path)] == ["Transformer"]:
            found = Pooling(usual, is_declared=True, **_texts(network_path(path)))
        else:
            found = of_folder(path)
        return replace(found, scoring=_scoring(path, model.metadata)) if is_ranking else found

    def finished(self, rows: np.ndarray, dimensions: int | None, is_normalized: bool | None) -> np.ndarray:
        """
        The vectors for pooled rows [count, width]: through the dense layers, cut to `dimensions`, and normalized.

        Vectors that are trained to be cut keep their meaning (Kusupati et al. 2022).
        """
        for layer in self.dense:
            rows = layer(rows)
        rows = rows[:, :dimensions]
        if self.is_normalized if is_normalized is None else is_normalized:
            lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
            rows = (rows / np.maximum(lengths, 1e-12)).astype(np.float32)
        return rows

    def size(self, width: int) -> int:
        """The number of elements of a vector, for rows of `width`."""
        return self.dense[-1].weight.shape[0] if self.dense else width


def network_path(path: Path) -> Path:
    """The file or folder with the network of a model, which old folders of sentence-transformers have as a part."""
    if (path / MODULES).is_file() and not (path / CONFIG).is_file():
        return next((folder for kind, folder in _modules(path) if kind == "Transformer"), path)
    return path


def _modules(folder: Path) -> list[tuple[str, Path]]:
    """The modules of a folder: the last part of the name of each class, and its folder; raises `ModelError`."""
    path = folder / MODULES
    given = read_value(path)
    if not is_sequence(given) or not all(map(is_mapping, given)):
        raise ModelError("has no list of modules", file=str(path))
    found: list[tuple[str, Path]] = []
    for module in given:
        kind, own = module.get("type"), module.get("path")
        is_inside = isinstance(own, str) and not PurePath(own).is_absolute() and ".." not in PurePath(own).parts
        if not isinstance(kind, str) or not is_inside:
            raise ModelError("has a module without type, or whose path is not in its folder", file=str(path))
        found.append((kind.rpartition(".")[2], folder / own))
    return found


def of_folder(folder: Path) -> Pooling:
    """What a folder of sentence-transformers says."""
    kind, is_normalized, dense = "", False, list[Dense]()
    for name, path in _modules(folder):
        if name == "Pooling" and not kind:
            kind = _kind(path / CONFIG)
        elif name == "Dense" and kind and not is_normalized:
            dense.append(_dense(path))
        elif name == "Normalize" and kind:
            is_normalized = True
        elif name != "Transformer" or kind:
            raise UnsupportedError(f"the module '{name}' is not supported there", file=str(folder / MODULES))
    if not kind:
        raise UnsupportedError("has no pooling", file=str(folder / MODULES))
    declared: Mapping[str, Any] = read_json(folder / PROMPTS) if (folder / PROMPTS).is_file() else {}
    prompts: Any = declared.get("prompts") or {}
    default: Any = declared.get("default_prompt_name") or ""
    if not is_mapping(prompts) or not all(isinstance(text, str) for text in prompts.values()):
        raise ModelError("prompts must be texts by name", file=str(folder / PROMPTS))
    if default not in (*prompts, ""):
        raise ModelError(f"there is no prompt '{default}'", file=str(folder / PROMPTS))
    texts: dict[str, Any] = {"prompts": prompts, "default_prompt": default, **_texts(network_path(folder))}
    return Pooling(kind, is_normalized, tuple(dense), is_declared=True, **texts)


def _scoring(folder: Path, network: Mapping[str, Any]) -> str:
    """What makes scores, which versions of sentence-transformers write in three ways."""
    path = folder / PROMPTS
    declared: Mapping[str, Any] = read_json(path) if path.is_file() else {}
    inner: Any = network.get("sentence_transformers")
    named = (
        declared.get("activation_fn"),
        inner.get("activation_fn") if is_mapping(inner) else None,
        network.get("sbert_ce_default_activation_function"),
    )
    name = str(next((item for item in named if item is not None), "Sigmoid")).rpartition(".")[2]
    if name not in SCORINGS:
        raise UnsupportedError(f"scores by the function '{name}' are not supported", file=str(folder))
    return name


def _texts(folder: Path) -> dict[str, Any]:
    """How the texts of a network are cut and written: fields of `Pooling`."""
    path = next((folder / name for name in NETWORKS if (folder / name).is_file()), None)
    network: Mapping[str, Any] = {} if path is None else read_json(path)
    settings: Mapping[str, Any] = read_json(folder / SETTINGS) if (folder / SETTINGS).is_file() else {}
    length = network.get("max_seq_length")
    if length is not None and (type(length) is not int or length < 1):
        raise ModelError("max_seq_length must be a size", file=str(path))
    # Tokenizers without a limit have a number that is larger than any.
    limit = settings.get("model_max_length")
    return {
        "length": limit if length is None and type(limit) is int and 0 < limit < MAX_LENGTH else length,
        "cuts_front": settings.get("truncation_side") == "left",
        "is_lower": network.get("do_lower_case") is True,
    }


MAX_LENGTH = 1 << 24
"""Larger numbers of tokens are no limit."""


def _kind(path: Path) -> str:
    """The name of the pooling in a configuration."""
    declared = read_json(path)
    modes = declared.get("pooling_mode", [name for flag, name in _FLAGS.items() if declared.get(flag)])
    names: list[Any] = [*modes] if is_sequence(modes) else [modes]
    kinds = [_NAMES.get(str(name), str(name)) for name in names]
    if len(kinds) != 1 or kinds[0] not in REDUCERS:
        hint = f"poolings are {', '.join(REDUCERS)}"
        raise UnsupportedError(f"the pooling '{' + '.join(kinds)}' is not supported", file=str(path), hint=hint)
    if declared.get("include_prompt") is False:
        raise UnsupportedError("a pooling without the tokens of the prompt is not supported", file=str(path))
    return kinds[0]


def _dense(path: Path) -> Dense:
    """The layer in a folder."""
    source = CheckpointFolder.open(path)
    name = str(source.config.get("activation_function", "Identity")).rpartition(".")[2]
    weight, bias = source.tensors.get("linear.weight"), source.tensors.get("linear.bias")
    if name not in _ACTIVATIONS:
        raise UnsupportedError(f"the activation '{name}' is not supported", file=str(path / CONFIG))
    if weight is None or weight.ndim != 2 or (bias is not None and bias.shape != weight.shape[:1]):
        raise ModelError("the layer has no matrix, or no bias that fits", file=str(path), node="linear.weight")
    return Dense(weight.astype(np.float32), None if bias is None else bias.astype(np.float32), _ACTIVATIONS[name])
