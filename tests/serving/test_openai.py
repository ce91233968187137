"""OpenAI's API, asked by OpenAI's client: answers, streams, calls of tools, and errors as it types them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from running_servers import needed, running
from small_generators import small_generator, write_model

from glow_mlir.errors import QueueFullError
from glow_mlir.generation.generator import Generator
from glow_mlir.host.host import Host
from glow_mlir.serving.metrics import metrics

pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("ignore")]

MESSAGES: list[Any] = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> Generator:
    for package in ("tokenizers", "jinja2", "openai"):
        needed(package)
    return small_generator(tmp_path_factory.mktemp("small"), parallel=3)


@pytest.fixture(scope="module")
def url(generator: Generator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from glow_mlir.serving.generators import Generators

    long = write_model(tmp_path_factory.mktemp("long") / "long.gguf", context=4096)
    models = {"small": generator, "long": Generator(long, threads=1, cache="float32")}
    generators = Generators(models)
    with Host() as host, running(generators=generators, metrics=lambda: metrics(host, generators.data())) as server:
        yield f"http://127.0.0.1:{server.http}/v1"
    generators.close()


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[Any]:
    with needed("openai").OpenAI(base_url=url, api_key="none", max_retries=0, timeout=60) as client:
        yield client


def test_models(client: Any) -> None:
    assert [model.id for model in client.models.list()] == ["small", "long"]
    assert client.models.retrieve("small").owned_by == "glow-mlir"


def test_chat_is_the_generators(client: Any, generator: Generator) -> None:
    found = client.chat.completions.create(
        model="small", messages=MESSAGES, temperature=0, max_tokens=9, logprobs=True, top_logprobs=2
    )
    wanted = generator.generate(MESSAGES, temperature=0, max_tokens=9)
    (choice,) = found.choices
    assert choice.message.content == wanted.text
    assert choice.finish_reason == wanted.finish_reason
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (wanted.prompt_tokens, len(wanted.tokens))
    assert len(choice.logprobs.content) == len(wanted.tokens)
    assert all(len(token.top_logprobs) == 2 for token in choice.logprobs.content)


def test_a_stream_is_the_answer_in_parts(client: Any, generator: Generator) -> None:
    options: dict[str, Any] = {"temperature": 0, "max_tokens": 15}
    chunks = list(
        client.chat.completions.create(
            model="small", messages=MESSAGES, stream=True, stream_options={"include_usage": True}, **options
        )
    )
    *parts, last = chunks
    text = "".join(chunk.choices[0].delta.content or "" for chunk in parts)
    wanted = generator.generate(MESSAGES, **options)
    assert text == wanted.text
    assert parts[0].choices[0].delta.role == "assistant"
    assert parts[-1].choices[0].finish_reason == wanted.finish_reason
    assert last.usage.completion_tokens == len(wanted.tokens)


def test_completions_of_several_prompts(client: Any, generator: Generator) -> None:
    found = client.completions.create(
        model="small", prompt=["hello", "he"], n=2, max_tokens=6, seed=5, logprobs=1, extra_body={"ignore_eos": True}
    )
    wanted = [
        generator.generate(prompt, max_tokens=6, seed=seed, ignore_end=True).text
        for prompt in ("hello", "he")
        for seed in (5, 6)
    ]
    assert [choice.text for choice in found.choices] == wanted
    assert [choice.index for choice in found.choices] == [0, 1, 2, 3]
    assert len(found.choices[0].logprobs.tokens) == 6


def test_calls_of_tools(client: Any) -> None:
    pytest.importorskip("llguidance")
    schema = {
        "type": "object",
        "properties": {"name": {"const": "weather"}, "arguments": {"type": "object", "maxProperties": 0}},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    options: dict[str, Any] = {
        "model": "small",
        "messages": MESSAGES,
        "tools": tools,
        "temperature": 0,
        "max_tokens": 90,
        "logit_bias": {str(byte): -100 for byte in b" \t\r\n"},  # Random weights like white space.
        "response_format": {"type": "json_schema", "json_schema": {"name": "call", "schema": schema}},
    }
    (choice,) = client.chat.completions.create(**options).choices
    assert choice.finish_reason == "tool_calls"
    assert [call.function.name for call in choice.message.tool_calls] == ["weather"]
    chunks = [chunk.choices[0] for chunk in client.chat.completions.create(**options, stream=True)]
    calls = [call for chunk in chunks for call in chunk.delta.tool_calls or ()]
    assert [call.function.arguments for call in calls] == [choice.message.tool_calls[0].function.arguments]
    assert chunks[-1].finish_reason == "tool_calls"


@pytest.mark.parametrize("seed", [1, 2])
def test_required_calls_are_the_same_streamed_and_not(url: str, seed: int) -> None:
    for package in ("llguidance", "jsonschema"):
        pytest.importorskip(package)
    from called_tools import compare

    counts = compare(url, "long", [seed])
    assert counts["calls"] >= counts["requests"] == 3


@pytest.mark.parametrize(
    ("options", "kind", "field"),
    [
        ({"model": "large"}, "NotFoundError", None),
        ({"temperature": 3}, "BadRequestError", "temperature"),
        ({"max_tokens": 10**6}, "BadRequestError", None),
        ({"messages": []}, "BadRequestError", "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "BadRequestError", None),
        ({"extra_body": {"colour": 1}}, "BadRequestError", "colour"),
        ({"extra_body": {"echo": True}}, "BadRequestError", "echo"),
        ({"stop": ["a", ""]}, "BadRequestError", "stop"),
        ({"logit_bias": {"a": 1}}, "BadRequestError", "logit_bias"),
        ({"logit_bias": {"9999": 1}}, "BadRequestError", None),
        ({"n": 0}, "BadRequestError", "n"),
        ({"top_logprobs": 2}, "BadRequestError", "top_logprobs"),
        ({"response_format": {"type": "json_schema"}}, "BadRequestError", "response_format"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}] * 1025}, "BadRequestError", "tools"),
        ({"tool_choice": "perhaps"}, "BadRequestError", "tool_choice"),
        ({"tool_choice": "required"}, "BadRequestError", None),
    ],
)
def test_errors_are_typed(client: Any, options: dict[str, Any], kind: str, field: str | None) -> None:
    with pytest.raises(getattr(needed("openai"), kind)) as error:
        client.chat.completions.create(**{"model": "small", "messages": MESSAGES, "max_tokens": 2, **options})
    assert error.value.param == field
    assert "\n" not in error.value.body["message"]


def test_who_has_no_token_is_told_so(generator: Generator) -> None:
    from glow_mlir.serving.generators import Generators

    generators = Generators({"small": generator})
    with running(generators=generators, token="secret") as server:
        openai = needed("openai")
        with openai.OpenAI(base_url=f"http://127.0.0.1:{server.http}/v1", api_key="guessed") as client:
            with pytest.raises(openai.AuthenticationError) as error:
                client.models.list()
            assert error.value.code == "invalid_api_key"
            client.api_key = "secret"
            assert client.models.list().data[0].id == "small"
    generators.close()


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/unknown", "NotFoundError"), ("/unknown/%00", "NotFoundError"), ("/chat/completions", "APIStatusError")],
)
def test_unknown_paths_are_told_as_errors(client: Any, path: str, kind: str) -> None:
    with pytest.raises(getattr(needed("openai"), kind)) as error:
        client.get(path, cast_to=object)
    assert error.value.code == "unknown_url"
    assert path.removesuffix("%00") in error.value.body["message"]
    assert error.value.body["message"].isprintable()


def test_too_many_requests_are_a_limit(client: Any, generator: Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise QueueFullError("3 requests wait, as many as may")

    monkeypatch.setattr(generator.engine, "submit", full)
    with pytest.raises(needed("openai").RateLimitError) as error:
        client.completions.create(model="small", prompt="hello")
    assert (error.value.code, error.value.response.headers["retry-after"]) == ("rate_limit_exceeded", "1")


def test_a_closed_connection_ends_its_request(client: Any, generator: Generator) -> None:
    stream = client.chat.completions.create(
        model="small", messages=MESSAGES, stream=True, max_tokens=200, extra_body={"ignore_eos": True}
    )
    next(iter(stream))
    stream.close()
    deadline = time.monotonic() + 10
    while generator.engine.running and time.monotonic() < deadline:
        time.sleep(0.01)
    assert generator.engine.running == 0


@pytest.mark.parametrize("bias", [{"999999999": 1}, {"9" * 5000: 1}], ids=["outside", "long"])
def test_a_bias_of_an_unknown_token_is_refused_at_once(client: Any, bias: dict[str, int]) -> None:
    with pytest.raises(needed("openai").BadRequestError, match="logit_bias"):
        client.chat.completions.create(model="small", messages=MESSAGES, logit_bias=bias, max_tokens=3, stream=True)


def test_a_client_that_left_before_the_first_event_leaves_no_request(generator: Generator) -> None:
    from glow_mlir.serving.openai_app import _Stream
    from glow_mlir.serving.openai_responses import Format

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        raise OSError("closed")

    scope = {"type": "http", "asgi": {"spec_version": "2.4"}}
    generation = generator.stream(MESSAGES, max_tokens=200, ignore_end=True)
    stream = _Stream(Format(True, "id", 0, "small", generator.tokenizer, None), [generation], 0)
    with pytest.raises(needed("starlette.requests").ClientDisconnect):
        asyncio.run(stream(scope, receive, send))
    assert generation.completion.finish_reason == "cancelled"


def test_tokens_are_counted(client: Any, generator: Generator) -> None:
    before = generator.engine.statistics.chosen_tokens
    client.chat.completions.create(model="small", messages=MESSAGES, max_tokens=4, extra_body={"ignore_eos": True})
    httpx = needed("httpx")
    text = httpx.get(f"{client.base_url}".replace("v1/", "metrics")).text
    assert f'glow_generator_tokens_total{{model="small",kind="chosen"}} {before + 4}\n' in text
    assert 'glow_generator_requests{model="small",state="running"} 0\n' in text
    found, _ = httpx.get(f"{client.base_url}".replace("v1/", "statistics")).json()["generators"]
    assert (found["name"], found["chosen_tokens"]) == ("small", before + 4)
