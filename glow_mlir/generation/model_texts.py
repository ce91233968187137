"""Tokenizer and template of a decoder, made when they are asked for first if they are known to be whole."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from glow_mlir.frontends.decoders.models import DecoderModel
from glow_mlir.generation.template import ChatTemplate
from glow_mlir.generation.text_files import files_of_texts, template_of, tokenizer_of
from glow_mlir.generation.tokenizer import Tokenizer
from glow_mlir.generation.turn_ends import ends_of_template
from glow_mlir.runtime.cache import cache_key
from glow_mlir.runtime.identity import file_identity
from glow_mlir.runtime.json_cache import JsonCache
from glow_mlir.runtime.sources import source_stamp
from glow_mlir.support.collector import without_collector
from glow_mlir.support.distributions import versions

PACKAGES = ("tokenizers", "jinja2")
"""The packages that make them."""

MAX_ENTRIES = 1000
"""The number of models that are remembered."""


class ModelTexts:
    """
    The tokenizer of a decoder, and its template for messages.

    Making them takes longer than loading a compiled program, and finds what is damaged. So those of a model that were
    made before, of the same files and by the same packages, are made again when they are asked for first.

    - `tokenizer`: a file to use instead of the model's own; `template`: likewise, text of Jinja.
    """

    def __init__(self, model: DecoderModel, tokenizer: str | Path | None, template: str | None) -> None:
        self._model, self._tokenizer, self._template = model, tokenizer, template
        self._known = JsonCache("texts", limit=MAX_ENTRIES)

    @cached_property
    def is_whole(self) -> bool:
        """Whether they were made before."""
        return self._known.load(self._key) is not None

    def check(self) -> None:
        """Make them, and remember that that succeeded; raises the errors of `tokenizer_of` and `template_of`."""
        _ = self._made
        self._known.store(self._key, {})

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer."""
        return self._made[0]

    @property
    def template(self) -> ChatTemplate | None:
        """The template; `None` if there is none."""
        return self._made[1]

    @cached_property
    @without_collector()  # A vocabulary is many objects that live as long as this one.
    def _made(self) -> tuple[Tokenizer, ChatTemplate | None]:
        tokenizer = tokenizer_of(self._model, self._tokenizer)
        template = template_of(self._model, tokenizer, self._template)
        return tokenizer if template is None else tokenizer.with_ends(ends_of_template(template, tokenizer)), template

    @cached_property
    def _key(self) -> str:
        """What they are made of."""
        files = [(str(path), file_identity(path)) for path in files_of_texts(self._model, self._tokenizer)]
        return cache_key(repr(files), repr(self._template), repr(versions(PACKAGES)), source_stamp())
