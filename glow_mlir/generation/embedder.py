"""A model that makes vectors of texts, or scores of how well documents answer a query."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.errors import InputError, OptionError, UnsupportedError
from glow_mlir.frontends.decoders.models import open_model
from glow_mlir.generation.packed_texts import PAGE, PackedForm, PackedText, PackedTexts
from glow_mlir.generation.pooling import REDUCERS, SCORINGS, Pooling, network_path
from glow_mlir.generation.text_files import tokenizer_of
from glow_mlir.generation.token_ids import token_ids
from glow_mlir.generation.tokenizer import Tokenizer
from glow_mlir.options.generation import ACTIVATIONS, CONTEXT, POOLINGS

SEQUENCES = 64
"""The texts of a call at most."""

Text = str | Sequence[int]
"""Text, or token ids, which are taken as they are."""

_PLACE = re.compile(r"\{(query|document)\}")
"""Where a template has a query and a document."""

_WANTED = {"cls": "first", "last": "last"}
"""Pooling → the rows that it needs, where these are not all."""


class Embedder:
    """
    An encoder or a decoder in a GGUF file, or in a folder of a checkpoint, ready to embed texts or to rank them.

    ```python
    embedder = glow_mlir.Embedder("all-MiniLM-L6-v2")
    first, second = embedder.embed(["A cat sits outside.", "A kitten is in the garden."])
    print(first @ second)
    ```

    - `context`: the number of tokens that a text may have, by default the model's, but at most 8,192.
    - `pooling`: `mean`, `cls`, `last` or `max`; by default what the files say, else the mean for encoders, and the last
      token for decoders.
    - `activations`: `int15`, `int8` or `float32`: what rows are rounded to in front of quantized weights.
    - `tokenizer`: a `tokenizer.json` to use instead of the model's own.
    - `options`: further options of the session, such as `threads`.

    Threads may share it: texts of several are computed together. The vector of a text does not depend on others, to the
    bit. Raises `ModelError` for damaged files, and `OptionError` for options out of range or packages that are missing.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        context: int | None = None,
        pooling: str | None = None,
        activations: str | None = None,
        tokenizer: str | Path | None = None,
        **options: Any,
    ) -> None:
        path = Path(path)
        self.model = open_model(network_path(path))
        self.pooling = _chosen(Pooling.of_model(self.model, path), pooling)
        self.model = self.model.bounded(context, min(CONTEXT, self.pooling.length or CONTEXT))
        self.tokenizer: Tokenizer = tokenizer_of(self.model, tokenizer)
        config = self.model.network
        is_ranking = bool(config.labels)
        if activations is not None and activations not in ACTIVATIONS:
            raise OptionError(
                f"activations cannot be '{activations}'", hint=f"they are one of {', '.join(ACTIVATIONS)}"
            )
        kind = ("last" if config.is_causal else "cls") if is_ranking else self.pooling.kind
        wanted = "texts" if is_ranking and config.scores_mean else _WANTED.get(kind, "all")
        form = PackedForm(config.context, SEQUENCES, wanted, config.is_causal, frozenset(config.inputs))
        program: Any = self.model.program(
            pages=form.pages,
            rows=form.rows,
            outputs=form.outputs,
            sequences=form.sequences,
            page=PAGE,
            cache="float32",
            left_bits=None if activations is None else ACTIVATIONS[activations],
            result="scores" if is_ranking else "hidden",
        )
        session = InferenceSession(program, dimensions=program.dimensions, **options)
        self._pool = REDUCERS[kind]
        template: Any = self.model.metadata.get("tokenizer.chat_template.rerank")
        self._template = template if isinstance(template, str) else None
        self._texts = PackedTexts(lambda inputs: session.run(None, inputs)[0], form)

    @property
    def is_ranker(self) -> bool:
        """Whether it scores pairs of texts, and makes no vectors."""
        return bool(self.model.network.labels)

    @property
    def dimensions(self) -> int:
        """The number of elements of a vector."""
        return self.pooling.size(self.model.network.width)

    @property
    def context(self) -> int:
        """The number of tokens that a text may have."""
        return self.model.config.context

    @property
    def prompts(self) -> Mapping[str, str]:
        """The texts that the model's files have to begin others with, such as queries, by name."""
        return self.pooling.prompts

    def embed(
        self,
        texts: Text | Sequence[Text],
        *,
        dimensions: int | None = None,
        normalize: bool | None = None,
        prompt: str | None = None,
        truncate: bool = False,
    ) -> np.ndarray:
        """
        The vectors [texts, dimensions] of texts as f32; of a single text, its vector.

        - `dimensions`: keep only that many elements, which models may be trained for.
        - `normalize`: whether vectors have the length 1; by default as the files say, and so if they do not say it.
        - `prompt`: the name of one of `prompts`, which texts begin with; by default that which the files say, if any.
        - `truncate`: whether longer texts are cut to the context; else they are refused.

        Raises `InputError` for texts that are empty or too long.
        """
        if isinstance(texts, str) or (len(texts) and all(isinstance(item, int | np.integer) for item in texts)):
            return self.embed([texts], dimensions=dimensions, normalize=normalize, prompt=prompt, truncate=truncate)[0]  # pyright: ignore
        numbers = [self.tokens_of(text, prompt=prompt, truncate=truncate) for text in texts]  # pyright: ignore
        return self.embed_tokens(numbers, dimensions=dimensions, normalize=normalize)

    def embed_tokens(
        self, tokens: Sequence[Sequence[int]], *, dimensions: int | None = None, normalize: bool | None = None
    ) -> np.ndarray:
        """The vectors [texts, dimensions] of texts that are tokens, as `tokens_of` returns them; see `embed`."""
        if self.is_ranker:
            raise OptionError("scores pairs of texts, and makes no vectors", file=str(self.model.path), hint="use rank")
        if dimensions is not None and not 1 <= dimensions <= self.dimensions:
            raise InputError(f"dimensions cannot be {dimensions}", hint=f"vectors have {self.dimensions} elements")
        texts = [PackedText(item) for item in tokens]
        if not texts:
            return np.zeros((0, dimensions or self.dimensions), np.float32)
        return self.pooling.finished(self._pooled(texts), dimensions, normalize)

    def rank(self, query: str, documents: Sequence[str], *, truncate: bool = False) -> np.ndarray:
        """
        The scores [documents] of how well documents answer a query, as f32: better ones have higher scores.

        They are from 0 to 1 unless the files say that a score is the network's result. `truncate`: whether documents
        are cut to the context; else long ones are refused. Raises `OptionError` for models that make vectors.
        """
        return self.scores([self.pair_of(query, document, truncate=truncate) for document in documents])

    def scores(self, pairs: Sequence[PackedText]) -> np.ndarray:
        """The scores [pairs] of pairs of query and document, as `pair_of` returns them; see `rank`."""
        if not self.is_ranker:
            raise OptionError("makes vectors, and no scores", file=str(self.model.path), hint="use embed")
        labels = self.model.network.labels
        architecture = self.model.metadata.get("general.architecture")
        names: Any = self.model.metadata.get(f"{architecture}.classifier.output_labels")
        is_answer = names is not None and [*names] == ["yes", "no"] and labels == 2
        if labels > 1 and not is_answer:
            raise UnsupportedError(f"a head for {labels} classes gives no score", file=str(self.model.path))
        if not pairs:
            return np.zeros(0, np.float32)
        rows = self._pooled(pairs)
        found = rows[:, 0] - rows[:, 1] if is_answer else rows[:, 0]
        return SCORINGS[self.pooling.scoring](found)

    def tokens_of(self, text: Text, *, prompt: str | None = None, truncate: bool = False) -> list[int]:
        """The tokens of a text with those around it, cut to the context if asked to; see `embed` for errors."""
        if not isinstance(text, str):
            return self._checked(text, truncate)
        name = self.pooling.default_prompt if prompt is None else prompt
        if name and name not in self.prompts:
            known = ", ".join(self.prompts) or "none"
            raise InputError(f"there is no prompt '{name}'", hint=f"prompts are {known}")
        frame = self.tokenizer.frame
        whole = self.prompts.get(name, "") + text
        ids = self.tokenizer.encode(whole.lower() if self.pooling.is_lower else whole, begin=True, end=True)
        if (surplus := len(ids) - self.context) > 0 and truncate:
            begin, end = len(frame.before), len(ids) - len(frame.behind)
            cut = begin if self.pooling.cuts_front else max(end - surplus, begin)
            ids = [*ids[:cut], *ids[cut + surplus :]]
        return self._checked(ids, truncate=False)

    def pair_of(self, query: str, document: str, *, truncate: bool = False) -> PackedText:
        """Query and document as a text; the document is cut to the context if asked to; see `rank`."""
        if self._template is not None:
            return self._filled(self._template, query, document, truncate)
        form = self.tokenizer.pair
        first, second = (self.tokenizer.encode(text) for text in (query, document))
        if truncate:
            left = self.context - len(form.before) - len(first) - len(form.between) - len(form.behind)
            second = second[: max(left, 0)]
        head = [*form.before, *first, *form.between]
        ids = self._checked([*head, *second, *form.behind], truncate=False)
        second_type = form.type if form.type < self.model.network.token_types else 0
        types = [0] * len(head) + [second_type] * (len(ids) - len(head))
        return PackedText(ids, types)

    def _filled(self, template: str, query: str, document: str, truncate: bool) -> PackedText:
        """A template with query and document, whose text is no control token."""

        def tokens(given: str) -> list[int]:
            texts = {"query": query, "document": given}
            filled = _PLACE.sub(lambda match: self.tokenizer.guarded(texts[match[1]]), template)
            return self.tokenizer.encode(filled, special=True)

        ids = tokens(document)
        if truncate and len(ids) > self.context:
            left = max(self.context - len(tokens("")) - 1, 0)
            ids = tokens(self.tokenizer.decode(self.tokenizer.encode(document)[:left]))
        return PackedText(self._checked(ids, truncate=False))

    def _checked(self, given: Sequence[int], truncate: bool) -> list[int]:
        """Tokens that the model can take; raises `InputError` for others."""
        ids = token_ids(given, self.model.config.vocabulary)
        if not ids:
            raise InputError("a text is empty")
        if len(ids) > self.context and not truncate:
            reason = f"the text has {len(ids)} tokens, and the context {self.context}"
            raise InputError(reason, hint="give less text, or truncate it")
        return ids[: self.context]

    def _pooled(self, texts: Sequence[PackedText]) -> np.ndarray:
        """The pooled rows [texts, elements]."""
        self._texts.compute(texts)
        return np.stack([self._pool(np.concatenate(text.rows)) for text in texts])


def makes_vectors(path: str | Path) -> bool:
    """Whether the files of a model say that it embeds or ranks texts: an encoder, a pooling, or a head for classes."""
    path = Path(path)
    model = open_model(network_path(path))
    if model.is_graph:
        return False
    return not model.network.is_causal or bool(model.network.labels) or Pooling.of_model(model, path).is_declared


def _chosen(declared: Pooling, kind: str | None) -> Pooling:
    """What the files say, with another pooling if that is given."""
    if kind is None:
        return declared
    if kind not in POOLINGS:
        raise OptionError(f"the pooling cannot be '{kind}'", hint=f"poolings are {', '.join(POOLINGS)}")
    return replace(declared, kind=kind)
