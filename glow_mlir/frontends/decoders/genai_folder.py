"""Folders of onnxruntime-genai: a graph of ONNX, and `genai_config.json`, which describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from glow_mlir.constants.deferred import is_in_folder
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.checkpoints.folder import read_json
from glow_mlir.frontends.onnx.decoder_graph import DecoderGraph
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.file_kinds import GENAI
from glow_mlir.support.json_values import is_mapping

MAX_SIZE = 1 << 31

_UNUSED: Mapping[str, tuple[Any, ...]] = {
    "repetition_penalty": (1,),
    "no_repeat_ngram_size": (0,),
    "min_length": (0,),
    "num_beams": (1,),
    "num_return_sequences": (1,),
    "diversity_penalty": (0,),
}
"""Setting of `search` → its values that change nothing."""

_UNUSED_DRAWS: Mapping[str, tuple[Any, ...]] = {"temperature": (1,), "top_k": (0,), "top_p": (0, 1)}
"""The same for those that count if `do_sample` says that tokens are drawn."""

_NOTHING: Mapping[str, tuple[Any, ...]] = {}

_TEXTS = (".jinja", ".json", ".md", ".txt")
"""Suffixes of files that are no part of a graph."""

_OTHER_MODELS: Mapping[str, str] = {
    "encoder": "a decoder that reads an encoder's results",
    "vision": "images as inputs",
    "speech": "speech as input",
    "embedding": "a model of embeddings in front of the decoder",
    "image_generation": "images as results",
}
"""Entry of the description → what a model with it is, which is not supported."""


@dataclass(frozen=True)
class GenaiFolder:
    """A folder: the entry `model` of its description, and what that says of the decoder."""

    path: Path
    entries: Mapping[str, Any]
    graph: DecoderGraph
    family: str
    context: int
    unused: Mapping[str, Any]
    """The settings of `search` that ask for another choice of tokens than any request has by default."""

    @property
    def files(self) -> tuple[Path, ...]:
        """
        The description, the graph, and all files that may have tensors of the graph.

        Which of them do would be known only from the graph, which a compiled decoder does not read.
        """
        found = (path for path in sorted(self.path.rglob("*")) if path.suffix not in _TEXTS and path.is_file())
        return (self.path / GENAI, *found)

    @staticmethod
    def open(path: Path) -> GenaiFolder:
        """
        Read the description of a folder.

        Raises `ModelError` for one that is damaged, and `UnsupportedError` for anything but one graph from token ids
        to logits.
        """
        file = path / GENAI
        description = read_json(file)
        model, search = _object(description, "model", file), _object({"search": {}, **description}, "search", file)
        for entry, words in _OTHER_MODELS.items():
            if model.get(entry):
                raise UnsupportedError(f"{words} ('{entry}') cannot be generated from", file=str(file))
        decoder = _object(model, "decoder", file)
        if decoder.get("pipeline"):
            reason = "a pipeline of several graphs is not supported, only one graph"
            raise UnsupportedError(reason, file=str(file), node="pipeline")
        window = decoder.get("sliding_window")
        if is_mapping(window) and window.get("slide_inputs") is True:
            reason = "a prompt in windows of a fixed length (slide_inputs) is not supported"
            raise UnsupportedError(reason, file=str(file), node="sliding_window")
        name = _text(decoder, "filename", "model.onnx", file)
        if not is_in_folder(path, name):
            raise ModelError(f"the file '{name[:80]}' is not in the folder", file=str(file), node="filename")
        context, vocabulary = (_size(model, key, file) for key in ("context_length", "vocab_size"))
        graph = _named(DecoderGraph(path / name, vocabulary), decoder, file)
        known = {**_UNUSED, **(_UNUSED_DRAWS if search.get("do_sample") is True else _NOTHING)}
        unused = {key: search[key] for key in known if search.get(key) not in (None, *known[key])}
        return GenaiFolder(path, model, graph, _text(model, "type", "", file), context, unused)


def _object(entries: Mapping[str, Any], key: str, file: Path) -> Mapping[str, Any]:
    found = entries.get(key)
    if not is_mapping(found):
        raise ModelError("the entry must be an object", file=str(file), node=key)
    return found


def _text(entries: Mapping[str, Any], key: str, default: str, file: Path) -> str:
    found = entries.get(key, default)
    if not isinstance(found, str):
        raise ModelError("the entry must be text", file=str(file), node=key)
    return found


def _size(entries: Mapping[str, Any], key: str, file: Path) -> int:
    found = entries.get(key)
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found < MAX_SIZE:
        reason = f"the entry must be a size from 1 to {MAX_SIZE - 1}, not {found!r}"
        raise ModelError(reason, file=str(file), node=key)
    return found


def _named(graph: DecoderGraph, decoder: Mapping[str, Any], file: Path) -> DecoderGraph:
    """The graph with names that the description gives inputs and output."""
    inputs, outputs = (_object({key: decoder.get(key, {})}, key, file) for key in ("inputs", "outputs"))
    return replace(
        graph,
        tokens=_text(inputs, "input_ids", graph.tokens, file),
        positions=_text(inputs, "position_ids", graph.positions, file),
        mask=_text(inputs, "attention_mask", graph.mask, file),
        logits=_text(outputs, "logits", graph.logits, file),
    )
