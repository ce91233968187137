"""
Calls of random tools, as OpenAI's client asks for them and puts them together from a stream.

    python tests/support/called_tools.py http://127.0.0.1:8000/v1 MODEL --count 200
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

import jsonschema
import openai

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

WORDS = ["Zürich", "東京", "naïve", 'a"b\\c', "line\nline", "🙂", "</tool_call>", "<|im_end|>", "", "{}", "Ω≈ç"]

DEPTH = 3

TOGETHER = 4
"""How many requests wait for answers at once."""

CLIENT: Mapping[str, Any] = {"api_key": "none", "max_retries": 0, "timeout": 300}

Call = tuple[str, Any]
"""The name of a function, and the arguments of a call."""


def request_of(seed: int) -> dict[str, Any]:
    """A request for calls of tools, whose answers are finite."""
    random = Random(f"tools {seed}")
    names = {"".join(random.choice(LETTERS) for _ in range(random.choice([1, 6, 64]))) for _ in range(3)}
    tools = [_tool(random, name) for name in sorted(names)[: random.randint(1, 3)]]
    name = random.choice(tools)["function"]["name"]
    choice = random.choice(["required", {"type": "function", "function": {"name": name}}])
    return {
        "messages": [{"role": "user", "content": f"Call a tool, {random.choice(WORDS)}!"}],
        "tools": tools,
        "tool_choice": choice,
        "parallel_tool_calls": random.random() < 0.5,
        "temperature": random.choice([0, 0.7, 1]),
        "seed": seed,
        "max_tokens": 3000,
    }


def _tool(random: Random, name: str) -> dict[str, Any]:
    parameters = _object(random, DEPTH)
    if random.random() < 0.3:
        part = {"type": "object", "properties": {"at": {"enum": [0, 1]}}, "required": ["at"]}
        parameters["$defs"] = {"part": {**part, "additionalProperties": False}}
        parameters["properties"]["part"] = {"$ref": "#/$defs/part"}
    described = {"description": random.choice(WORDS), "parameters": parameters, "strict": True}
    return {"type": "function", "function": {"name": name, **described}}


def _object(random: Random, depth: int) -> dict[str, Any]:
    names = [random.choice(["city", "größe", "x", "a b", "日"]) + str(number) for number in range(random.randint(0, 3))]
    properties = {name: _schema(random, depth - 1) for name in names}
    required = [name for name in names if random.random() < 0.7]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _schema(random: Random, depth: int) -> dict[str, Any]:
    """A schema of values of bounded length."""
    kind = random.randrange(8 if depth > 0 else 5)
    if kind == 0:
        return {"enum": random.sample(WORDS, 3)}
    if kind == 1:
        return {"type": "string", "maxLength": 8}
    if kind == 2:
        return {"type": "integer", "minimum": random.randint(-50, 0), "maximum": random.randint(1, 999)}
    if kind == 3:
        return {"type": ["boolean", "null"]}
    if kind == 4:
        return {"const": random.choice(WORDS)}
    if kind == 5:
        return {"type": "array", "items": _schema(random, depth - 1), "maxItems": 2}
    if kind == 6:
        return {"anyOf": [_schema(random, depth - 1), {"type": "null"}]}
    return _object(random, depth - 1)


def checked(request: Mapping[str, Any], calls: Iterable[Any]) -> list[Call]:
    """The calls of an answer; raises `AssertionError` for those that a request did not ask for."""
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in request["tools"]}
    found = [(call.function.name, json.loads(call.function.arguments)) for call in calls]
    for name, arguments in found:
        jsonschema.validate(arguments, schemas[name])
    choice = request["tool_choice"]
    if choice != "required":
        assert [name for name, _ in found] == [choice["function"]["name"]]
    assert len(found) == 1 or request["parallel_tool_calls"]
    assert found
    return found


def whole(client: openai.OpenAI, model: str, seed: int) -> list[Call]:
    """The calls of an answer that is not streamed."""
    request = request_of(seed)
    (choice,) = client.chat.completions.create(model=model, **request).choices
    assert choice.finish_reason == "tool_calls", f"{choice.finish_reason}: {choice.message.content}"
    assert choice.message.content is None
    return checked(request, choice.message.tool_calls or ())


def streamed(client: openai.OpenAI, model: str, seed: int) -> list[Call]:
    """The calls of a stream, put together by the client."""
    request = request_of(seed)
    with client.chat.completions.stream(model=model, **request) as events:
        (choice,) = events.get_final_completion().choices
    assert choice.finish_reason == "tool_calls"
    return checked(request, choice.message.tool_calls or ())


async def streamed_beside(url: str, model: str, seeds: Sequence[int]) -> list[list[Call]]:
    """The calls of several streams at once, put together from their parts."""
    async with openai.AsyncOpenAI(base_url=url, **CLIENT) as client:
        return await _streamed_beside(client, model, seeds)


async def _streamed_beside(client: openai.AsyncOpenAI, model: str, seeds: Sequence[int]) -> list[list[Call]]:
    turns = asyncio.Semaphore(TOGETHER)

    async def one(seed: int) -> list[Call]:
        async with turns:
            request = request_of(seed)
            parts: dict[int, list[str]] = {}
            async for event in await client.chat.completions.create(model=model, stream=True, **request):
                for call in event.choices[0].delta.tool_calls or ():
                    name, arguments = parts.setdefault(call.index, ["", ""])
                    function = call.function
                    assert function is not None
                    parts[call.index] = [name + (function.name or ""), arguments + (function.arguments or "")]
            found = [(name, json.loads(arguments)) for name, arguments in parts.values()]
            assert [*parts] == [*range(len(parts))]
            return found

    return await asyncio.gather(*map(one, seeds))


def compare(url: str, model: str, seeds: Sequence[int]) -> Counter[str]:
    """Ask for each seed in three ways, which must agree; the numbers of requests and calls."""
    beside = asyncio.run(streamed_beside(url, model, seeds))
    counts = Counter[str]()
    with openai.OpenAI(base_url=url, **CLIENT) as client:
        for seed, parts in zip(seeds, beside, strict=True):
            found = whole(client, model, seed)
            assert streamed(client, model, seed) == found == parts, f"seed {seed}"
            counts.update({"requests": 3, "calls": 3 * len(found), "several": 3 * (len(found) > 1)})
    return counts


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("--count", type=int, default=200)
    args = parser.parse_args()
    print(dict(compare(args.url, args.model, range(args.count))))


if __name__ == "__main__":
    main()
