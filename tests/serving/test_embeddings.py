"""Embeddings by OpenAI's API, asked by OpenAI's client, and ranked documents by that of Cohere and Jina."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest
from running_servers import needed, running
from small_encoders import WIDTH, write_encoder
from small_generators import small_generator

from glow_mlir.generation.embedder import Embedder

pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("ignore")]

TEXTS = ["the cat sat", "a dog", "the cat"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    for package in ("tokenizers", "openai"):
        needed(package)
    folder = tmp_path_factory.mktemp("small")
    return {
        "small": Embedder(write_encoder(folder / "small.gguf"), threads=1),
        "ranker": Embedder(write_encoder(folder / "ranker.gguf", labels=1), threads=1),
        "text": small_generator(folder),
    }


@pytest.fixture(scope="module")
def url(models: dict[str, Any]) -> Iterator[str]:
    from glow_mlir.serving.generators import Generators

    generators = Generators(models)
    with running(generators=generators) as server:
        yield f"http://127.0.0.1:{server.http}/v1"
    generators.close()


@pytest.fixture(scope="module")
def client(url: str) -> Any:
    return needed("openai").OpenAI(base_url=url, api_key="none", max_retries=0, timeout=60)


@pytest.mark.parametrize("form", [{}, {"encoding_format": "float"}, {"encoding_format": "base64"}])
def test_embeddings_are_the_embedders(form: dict[str, str], client: Any, models: dict[str, Any]) -> None:
    found = client.embeddings.create(model="small", input=TEXTS, **form)
    rows = [np.frombuffer(_bytes(item.embedding), "<f4") for item in found.data]
    np.testing.assert_array_equal(rows, models["small"].embed(TEXTS))
    assert [item.index for item in found.data] == [0, 1, 2]
    count = sum(len(models["small"].tokens_of(text)) for text in TEXTS)
    assert (found.usage.prompt_tokens, found.usage.total_tokens) == (count, count)


def _bytes(embedding: Any) -> bytes:
    """The bytes of a vector: the client decodes base64 where nobody asked for it."""
    from base64 import b64decode

    return b64decode(embedding) if isinstance(embedding, str) else np.array(embedding, "<f4").tobytes()


def test_forms_of_input(client: Any, models: dict[str, Any]) -> None:
    wanted = models["small"].embed(TEXTS)
    tokens = [models["small"].tokens_of(text) for text in TEXTS]
    forms: list[tuple[Any, np.ndarray]] = [(TEXTS[0], wanted[:1]), (tokens[1], wanted[1:2]), (tokens, wanted)]
    for given, rows in forms:
        found = client.embeddings.create(model="small", input=given, encoding_format="float")
        np.testing.assert_allclose([item.embedding for item in found.data], rows, rtol=0, atol=1e-7)


def test_dimensions(client: Any, models: dict[str, Any]) -> None:
    (item,) = client.embeddings.create(model="small", input=TEXTS[0], dimensions=5).data
    np.testing.assert_allclose(item.embedding, models["small"].embed(TEXTS[0], dimensions=5), rtol=0, atol=1e-7)
    assert np.linalg.norm(item.embedding) == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "kind", "field"),
    [
        ({"model": "large"}, "NotFoundError", None),
        ({"model": "text"}, "BadRequestError", None),
        ({"model": "ranker"}, "BadRequestError", None),
        ({"input": []}, "BadRequestError", "input"),
        ({"input": ["a"] * 2049}, "BadRequestError", "input"),
        ({"input": [["a"]]}, "BadRequestError", "input"),
        ({"input": [999]}, "BadRequestError", None),
        ({"input": "a " * 100}, "BadRequestError", None),
        ({"dimensions": WIDTH + 1}, "BadRequestError", "dimensions"),
        ({"dimensions": 0}, "BadRequestError", "dimensions"),
        ({"encoding_format": "int8"}, "BadRequestError", "encoding_format"),
        ({"extra_body": {"colour": 1}}, "BadRequestError", "colour"),
        ({"extra_body": {"truncate_prompt_tokens": 5}}, "BadRequestError", "truncate_prompt_tokens"),
    ],
)
def test_errors_are_typed(client: Any, options: dict[str, Any], kind: str, field: str | None) -> None:
    with pytest.raises(getattr(needed("openai"), kind)) as error:
        client.embeddings.create(**{"model": "small", "input": "a", **options})
    assert error.value.param == field
    assert "\n" not in error.value.body["message"]


def test_long_texts_are_cut_if_asked_to(client: Any, models: dict[str, Any]) -> None:
    text = "a " * 100
    found = client.embeddings.create(model="small", input=text, extra_body={"truncate_prompt_tokens": -1})
    np.testing.assert_array_equal(
        np.array(found.data[0].embedding, np.float32), models["small"].embed(text, truncate=True)
    )


def test_an_embedder_generates_no_text(client: Any) -> None:
    assert [model.id for model in client.models.list()] == ["small", "ranker", "text"]
    with pytest.raises(needed("openai").BadRequestError, match="generates no text"):
        client.completions.create(model="small", prompt="a")


def asked(url: str, **data: Any) -> Any:
    """The answer to a request for ranked documents."""
    request = Request(f"{url}/rerank", json.dumps(data).encode(), {"content-type": "application/json"})
    with urlopen(request) as answer:
        return json.load(answer)


def test_documents_are_ranked(url: str, models: dict[str, Any]) -> None:
    documents = [*TEXTS, "a " * 100]
    scores = models["ranker"].rank("query", documents, truncate=True)
    order = np.argsort(-scores)
    found = asked(url, model="ranker", query="query", documents=[*TEXTS, {"text": documents[3]}])
    assert [item["index"] for item in found["results"]] == order.tolist()
    np.testing.assert_allclose([item["relevance_score"] for item in found["results"]], scores[order], atol=1e-7)
    assert found["usage"]["total_tokens"] > 48
    best = asked(url, model="ranker", query="query", documents=documents, top_n=1, return_documents=True)
    assert [item["document"]["text"] for item in best["results"]] == [documents[order[0]]]


@pytest.mark.parametrize(
    ("options", "status", "field"),
    [
        ({"documents": []}, 400, "documents"),
        ({"documents": [1]}, 400, "documents"),
        ({"query": None}, 400, "query"),
        ({"top_n": 0}, 400, "top_n"),
        ({"colour": 1}, 400, "colour"),
        ({"model": "small"}, 400, None),
        ({"model": "large"}, 404, None),
        ({"query": "a " * 100}, 400, None),
    ],
)
def test_wrong_requests_for_ranks(url: str, options: dict[str, Any], status: int, field: str | None) -> None:
    with pytest.raises(HTTPError) as error:
        asked(url, **{"model": "ranker", "query": "query", "documents": TEXTS, **options})
    assert error.value.code == status
    assert json.load(error.value)["error"]["param"] == field
