"""Adapters as models of OpenAI's API, and texts that go on where the context is full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from adapter_files import random_pairs, write_peft
from running_servers import needed, running
from small_generators import small_generator

from glow_mlir.errors import OptionError
from glow_mlir.generation.generator import Generator

pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("ignore")]

MESSAGES: list[Any] = [{"role": "user", "content": "hello " * 60}]


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> Generator:
    for package in ("tokenizers", "jinja2", "openai"):
        needed(package)
    folder = tmp_path_factory.mktemp("small")
    shapes = {f"model.layers.{layer}.self_attn.{name}_proj": (256, 256) for layer in range(2) for name in "qo"}
    adapters = {name: write_peft(folder / name, random_pairs(shapes, seed)) for seed, name in enumerate(("a", "b"))}
    return small_generator(folder, adapters=adapters)


@pytest.fixture(scope="module")
def client(generator: Generator) -> Iterator[Any]:
    from glow_mlir.serving.generators import Generators

    generators = Generators({"small": generator})
    with running(generators=generators) as server:
        url = f"http://127.0.0.1:{server.http}/v1"
        with needed("openai").OpenAI(base_url=url, api_key="none", max_retries=0, timeout=60) as client:
            yield client
    generators.close()


def test_adapters_are_models(client: Any) -> None:
    found = {model.id: (model.parent, model.max_model_len) for model in client.models.list()}
    assert found == {"small": (None, 256), "a": ("small", 256), "b": ("small", 256)}
    assert client.models.retrieve("b").parent == "small"


def test_the_model_of_a_request_chooses_its_adapter(client: Any, generator: Generator) -> None:
    texts: dict[str, str] = {}
    for name in ("small", "a", "b"):
        options: dict[str, Any] = {"messages": MESSAGES, "temperature": 0, "max_tokens": 12, "model": name}
        found, again = (client.chat.completions.create(**options) for _ in range(2))
        assert found.model == name
        # What another adapter computed of the same prompt is not reused.
        assert found.usage.prompt_tokens_details.cached_tokens == 0
        assert again.usage.prompt_tokens_details.cached_tokens >= 64
        texts[name] = found.choices[0].message.content
        assert again.choices[0].message.content == texts[name]
        adapter = None if name == "small" else name
        wanted = generator.generate(MESSAGES, temperature=0, max_tokens=12, adapter=adapter, salt="alone")
        assert texts[name] == wanted.text
        chunks = client.chat.completions.create(**options, stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == texts[name]
    assert len(set(texts.values())) == 3


def test_an_adapter_has_a_name_of_its_own(generator: Generator) -> None:
    from glow_mlir.serving.generators import Generators

    with pytest.raises(OptionError, match="two models have the name 'a'"):
        Generators({"a": generator})


def test_a_text_goes_on_where_the_context_is_full(client: Any, generator: Generator) -> None:
    options: dict[str, Any] = {"model": "small", "prompt": "hello", "temperature": 0, "max_tokens": 400}
    more = {"context_shift": True, "n_keep": 4, "ignore_eos": True}
    found = client.completions.create(**options, extra_body=more)
    wanted = generator.generate("hello", temperature=0, max_tokens=400, context_shift=True, keep=4, ignore_end=True)
    assert (found.choices[0].text, found.usage.dropped_tokens) == (wanted.text, wanted.dropped_tokens)
    assert found.usage.completion_tokens == 400
    bad = needed("openai").BadRequestError
    with pytest.raises(bad, match="more than the context of 256"):
        client.completions.create(**options)
    with pytest.raises(bad, match="context_shift needs max_tokens"):
        client.chat.completions.create(model="small", messages=MESSAGES, extra_body=more)
    with pytest.raises(bad, match="keep cannot be 255"):
        client.completions.create(**options, extra_body={**more, "n_keep": 255})


def test_the_tool_takes_several() -> None:
    from glow_mlir.tools.glow_serve import parse_arguments

    found = parse_arguments(["small.gguf", "--adapter", "a=one", "--adapter", "b=two=2"])
    assert found.adapters == [("a", "one"), ("b", "two=2")]
