"""Tokenizer and template of a decoder: from its GGUF file, or from the files beside its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from glow_mlir.errors import ModelError
from glow_mlir.frontends.decoders.models import DecoderModel
from glow_mlir.generation.template import ChatTemplate
from glow_mlir.generation.tokenizer import Tokenizer
from glow_mlir.support.file_kinds import GENAI
from glow_mlir.support.json_values import is_mapping, is_sequence

TOKENIZER = "tokenizer.json"
SETTINGS = ("config.json", "generation_config.json", "tokenizer_config.json", "special_tokens_map.json")
"""Files of a folder with facts about its tokens; later ones win, but each may name further ends."""

ENDS = "eos_token_id"

_IDS = ("bos_token_id", "eos_token_id", "pad_token_id")
"""Entries of the model in `genai_config.json` about its tokens."""

TEMPLATE_FILE = "chat_template.jinja"


def tokenizer_of(model: DecoderModel, given: str | Path | None) -> Tokenizer:
    """The tokenizer of a file that is given, or of the model; raises `ModelError` if there is none."""
    if given is not None:
        path = Path(given)
        return Tokenizer.of_file(path, _settings(path.parent))
    if not model.path.is_dir():
        return Tokenizer.of_gguf(model.metadata)
    path = model.path / TOKENIZER
    if not path.is_file():
        raise ModelError(f"the folder has no {TOKENIZER}", file=str(model.path), hint="give one as tokenizer")
    return Tokenizer.of_file(path, _settings(model.path))


def files_of_texts(model: DecoderModel, given: str | Path | None) -> list[Path]:
    """The files that `tokenizer_of` and `template_of` read, as far as they exist."""
    named: list[Path] = [] if model.path.is_dir() else [*model.files]
    folders: list[Path] = [model.path] if model.path.is_dir() else []
    if given is not None:
        named.append(Path(given))
        folders.append(Path(given).parent)
    settings = [folder / name for folder in folders for name in (TOKENIZER, TEMPLATE_FILE, GENAI, *SETTINGS)]
    return [path for path in (*named, *settings) if path.is_file()]


def template_of(model: DecoderModel, tokenizer: Tokenizer, given: str | None) -> ChatTemplate | None:
    """The template that is given, or the model's; `None` if it has none."""
    text = given
    if text is None:
        text = _folder_template(model.path) if model.path.is_dir() else model.metadata.get("tokenizer.chat_template")
    if text is None:
        return None
    if not isinstance(text, str):
        raise ModelError("the template for messages is no text", file=str(model.path))
    return ChatTemplate(text, tokenizer.named)


def _settings(folder: Path) -> dict[str, Any]:
    """What the files of a folder say about tokens."""
    found: dict[str, Any] = {}
    ends: list[Any] = []
    if (folder / GENAI).is_file():
        model = _object(folder / GENAI).get("model")
        found |= {name: model[name] for name in _IDS if name in model} if is_mapping(model) else {}
        named = found.get(ENDS)
        ends += named if is_sequence(named) else [named]
    for name in SETTINGS:
        path = folder / name
        if path.is_file():
            content = _object(path)
            # Models of text and more describe the decoder of text in an object of its own.
            inner = content.get("text_config")
            parts = [inner, content] if is_mapping(inner) else [content]
            for part in parts:
                named = part.get(ENDS)
                ends += named if is_sequence(named) else [named]
                found |= part
    return found | {ENDS: ends}


def _object(path: Path) -> Mapping[str, Any]:
    """The object in a JSON file."""
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"cannot be read: {error}", file=str(path)) from error
    if not is_mapping(content):
        raise ModelError("has no JSON object", file=str(path))
    return content


def _folder_template(folder: Path) -> Any:
    """The template in a folder; the default one where there are several."""
    path = folder / TEMPLATE_FILE
    if path.is_file():
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ModelError(f"cannot be read: {error}", file=str(path)) from error
    text = _settings(folder).get("chat_template")
    if is_sequence(text):
        named: dict[Any, Any] = {item.get("name"): item.get("template") for item in filter(is_mapping, text)}
        return named.get("default", next(iter(named.values()), None))
    return text
