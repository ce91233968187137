"""Answers that must call tools: whatever a model would rather say, calls fit the schemas of the tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_generators import TEMPLATE, write_model

from glow_mlir.errors import InputError
from glow_mlir.generation.generator import Generator
from glow_mlir.generation.tool_calls import BEGIN, ToolCallStream

pytestmark = pytest.mark.extra

POINT = {
    "$defs": {
        "Point": {
            "type": "object",
            "properties": {"x": {"enum": [1, 2]}},
            "required": ["x"],
            "additionalProperties": False,
        }
    },
    "type": "object",
    "properties": {"begin": {"$ref": "#/$defs/Point"}, "city": {"enum": ["Zürich", "東京"]}},
    "required": ["begin", "city"],
    "additionalProperties": False,
}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "go", "parameters": POINT}},
    {"type": "function", "function": {"name": "stop"}},
]
MESSAGES = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> Generator:
    for package in ("tokenizers", "jinja2", "llguidance"):
        pytest.importorskip(package)
    return opened(tmp_path_factory.mktemp("small"))


def opened(folder: Path, **options: Any) -> Generator:
    """The small generator with a context for tools."""
    return Generator(write_model(folder / "small.gguf", context=1024), threads=1, cache="float32", **options)


def called(generator: Generator, **options: Any) -> tuple[str, list[tuple[str, Any]]]:
    """The text of an answer, and its calls with their arguments."""
    found = generator.generate(MESSAGES, tools=TOOLS, max_tokens=240, temperature=1, **options)
    assert found.finish_reason == "stop"
    stream = ToolCallStream()
    assert stream.put(found.text) + stream.finish() == ""
    return found.text, [(call.name, json.loads(call.arguments)) for call in stream.calls]


@pytest.mark.parametrize("seed", range(4))
def test_calls_fit_their_schemas(generator: Generator, seed: int) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    _, calls = called(generator, tool_choice="required", parallel_tool_calls=False, seed=seed)
    ((name, arguments),) = calls
    if name == "go":
        jsonschema.validate(arguments, POINT)
    else:
        assert (name, arguments) == ("stop", {})


def test_a_named_function_is_called_once(generator: Generator) -> None:
    choice = {"type": "function", "function": {"name": "stop"}}
    assert called(generator, tool_choice=choice, seed=1)[1] == [("stop", {})]


def test_the_form_is_that_of_the_template(tmp_path: Path, generator: Generator) -> None:
    marked = opened(tmp_path, template=f"{TEMPLATE}{{# {BEGIN} #}}")
    choice = {"type": "function", "function": {"name": "stop"}}
    text, calls = called(marked, tool_choice=choice)
    assert text == '<tool_call>\n{"name": "stop", "arguments": {}}\n</tool_call>'
    assert calls == [("stop", {})]
    assert called(generator, tool_choice=choice)[0] == '[{"name": "stop", "arguments": {}}]'


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"tools": None}, "no tools"),
        ({"tools": [{"type": "function"}]}, "tool 0 has no function with a name"),
        ({"tools": [TOOLS[0], TOOLS[0]]}, "two tools have the same name"),
        ({"tools": [{"function": {"name": "a", "parameters": 3}}]}, "are no schema"),
        ({"tools": [{"function": {"name": "a", "parameters": {"properties": 3}}}]}, "the grammar cannot be used"),
        ({"tool_choice": {"type": "function", "function": {"name": "fly"}}}, "there is no tool 'fly'"),
        ({"tool_choice": "perhaps"}, "tool_choice must be"),
        ({"schema": {"type": "object"}}, "only one can constrain"),
    ],
)
def test_what_cannot_be_called_is_refused(generator: Generator, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        generator.stream(MESSAGES, **{"tools": TOOLS, "tool_choice": "required", **options})
