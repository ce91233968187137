"""Embeddings by OpenAI's API, and ranked documents by that of Cohere and Jina, over HTTP."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np

from glow_mlir.generation.embedder import SEQUENCES
from glow_mlir.serving.embedding_requests import embedding_request, rank_request
from glow_mlir.serving.generators import Generators
from glow_mlir.serving.handlers import Handler, answering, data_of
from glow_mlir.serving.openai_app import unless_disconnected
from glow_mlir.serving.openai_errors import FieldError, failed
from glow_mlir.serving.service import Service

T = TypeVar("T")


class EmbeddingApp:
    """The handlers of /v1/embeddings and /v1/rerank."""

    def __init__(self, service: Service, generators: Generators) -> None:
        self._service, self._generators = service, generators

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths and their handlers, which answer errors themselves."""
        paths = {"/v1/embeddings": self.embed, "/v1/rerank": self.rank, "/v2/rerank": self.rank, "/rerank": self.rank}
        return [("POST", path, answering(handler, failed)) for path, handler in paths.items()]

    async def embed(self, request: Any) -> Any:
        """The vectors of texts."""
        wanted = embedding_request(await data_of(self._service, request))
        served = self._generators.embedder(wanted.model, is_ranker=False)
        embedder, dimensions = served.embedder, wanted.dimensions
        if dimensions is not None and dimensions > embedder.dimensions:
            raise FieldError("dimensions", f"must be {embedder.dimensions} at most")

        def vectors(texts: Sequence[Any]) -> tuple[int, np.ndarray]:
            tokens = [embedder.tokens_of(text, truncate=wanted.truncates) for text in texts]
            return sum(map(len, tokens)), embedder.embed_tokens(tokens, dimensions=dimensions)

        parts = await unless_disconnected(request, _in_parts(wanted.texts, vectors))
        written = [_written(row, wanted.is_base64) for _, rows in parts for row in rows]
        return {
            "object": "list",
            "data": [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(written)],
            "model": served.name,
            "usage": _usage(parts),
        }

    async def rank(self, request: Any) -> Any:
        """Documents by how well they answer a query, the best one first; long ones are cut to the context."""
        wanted = rank_request(await data_of(self._service, request))
        served = self._generators.embedder(wanted.model, is_ranker=True)
        embedder = served.embedder

        def scores(documents: Sequence[str]) -> tuple[int, np.ndarray]:
            pairs = [embedder.pair_of(wanted.query, document, truncate=True) for document in documents]
            return sum(len(pair.tokens) for pair in pairs), embedder.scores(pairs)

        parts = await unless_disconnected(request, _in_parts(wanted.documents, scores))
        found = np.concatenate([rows for _, rows in parts])
        results: list[dict[str, Any]] = []
        for index in np.argsort(-found, kind="stable")[: wanted.count].tolist():
            results.append({"index": index, "relevance_score": float(found[index])})
            if wanted.returns_documents:
                results[-1]["document"] = {"text": wanted.documents[index]}
        entry = {"id": f"rerank-{uuid4().hex}", "object": "list", "model": served.name}
        return {**entry, "results": results, "usage": _usage(parts)}


Part = tuple[int, np.ndarray]
"""The number of tokens of some texts, and their results."""


async def _in_parts(texts: Sequence[T], compute: Callable[[Sequence[T]], Part]) -> list[Part]:
    """The results of some texts after the other, in another thread: nobody waits for them if the client leaves."""
    found: list[Part] = []
    for begin in range(0, len(texts), SEQUENCES):
        found.append(await asyncio.to_thread(compute, texts[begin : begin + SEQUENCES]))
    return found


def _usage(parts: Sequence[Part]) -> dict[str, int]:
    tokens = sum(count for count, _ in parts)
    return {"prompt_tokens": tokens, "total_tokens": tokens}


def _written(row: np.ndarray, is_base64: bool) -> Any:
    """A vector as JSON: a list, or the bytes of little-endian f32 in base64."""
    return b64encode(row.astype("<f4").tobytes()).decode() if is_base64 else np.ascontiguousarray(row)
