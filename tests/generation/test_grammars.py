"""Grammars: whatever a model would rather say, what is chosen fits the schema."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import numpy as np
import pytest
from breadth import examples

from glow_mlir.errors import InputError
from glow_mlir.generation.grammar import MAX_DEPTH, MAX_SCHEMA, Constraint, Grammar, GrammarCompiler
from glow_mlir.generation.text_stream import TextStream
from glow_mlir.generation.tokenizer import Tokenizer
from glow_mlir.generation.tool_grammar import grammar_of_calls

pytestmark = pytest.mark.extra
pytest.importorskip("tokenizers")
pytest.importorskip("llguidance")

WORDS = ['{"', '":', '", "', "true", "null", "name", '"}', "]}", "12", "-0.", "é", "<|fim|>"]
LOGITS = 300
"""More than there are tokens, as models have them."""

LENGTH = 500


def tokenizer(*, adds_space: bool = False) -> Tokenizer:
    """Bytes, words of JSON, and an end."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *WORDS]
    types = np.array([2, 3, 3] + [6] * 256 + [1] * len(WORDS), np.int32)
    prefix = "tokenizer.ggml."
    return Tokenizer.of_gguf(
        {
            prefix + "model": "llama",
            prefix + "tokens": tokens,
            prefix + "token_type": types,
            prefix + "scores": np.zeros(len(tokens), np.float32),
            prefix + "add_space_prefix": adds_space,
        }
    )


TOKENIZER = tokenizer()
COMPILER = GrammarCompiler(TOKENIZER, LOGITS)


def chosen(constraint: Constraint, rng: np.random.Generator) -> str | None:
    """The text of random tokens among those that are allowed; none if there is no end."""
    ids, stream, text = list[int](), TextStream(TOKENIZER), ""
    # What ends texts and lists is liked, so that they end.
    liked = np.zeros(LOGITS)
    liked[[*TOKENIZER.ends, *TOKENIZER.encode('"]}')]] = 3
    while len(ids) < LENGTH:
        bits = np.unpackbits(constraint(np.array(ids, np.int32)).view(np.uint8), bitorder="little")[:LOGITS]
        assert bits.any()
        assert not bits[TOKENIZER.size :].any()
        logits = np.where(bits, rng.standard_normal(LOGITS) + liked * len(ids) / 40, -np.inf)
        number = int(logits.argmax())
        if number in TOKENIZER.ends:
            return text + stream.finish()
        ids.append(number)
        text += stream.put(number)
    return None


def schema(random_: random.Random, depth: int = 3) -> dict[str, Any]:
    """A random schema."""
    kinds = ["integer", "boolean", "null", "enum", "string", "number"] + ["object", "array", "anyOf"] * (depth > 0)
    kind = random_.choice(kinds)
    if kind == "enum":
        return {"enum": random_.sample(["a", "b", 'c"é', 3, None, True], random_.randint(1, 4))}
    if kind == "string":
        return {"type": kind} | random_.choice([{}, {"maxLength": 5}, {"minLength": 2, "maxLength": 9}])
    if kind == "integer":
        return {"type": kind} | random_.choice([{}, {"minimum": -7, "maximum": 40}, {"minimum": 3}])
    if kind == "array":
        most = random_.randint(1, 3)
        return {
            "type": kind,
            "items": schema(random_, depth - 1),
            "minItems": random_.randint(0, most),
            "maxItems": most,
        }
    if kind == "anyOf":
        return {"anyOf": [schema(random_, depth - 1) for _ in range(random_.randint(1, 3))]}
    if kind != "object":
        return {"type": kind}
    names = random_.sample(["a", "b", "long name", 'q"', "é"], random_.randint(0, 4))
    required = [name for name in names if random_.random() < 0.6]
    properties = {name: schema(random_, depth - 1) for name in names}
    return {"type": kind, "properties": properties, "required": required, "additionalProperties": False}


TYPES: dict[str, Any] = {
    "integer": int, "boolean": bool, "null": type(None), "string": str, "number": (int, float),
    "array": list, "object": dict,
}  # fmt: skip


def fits(value: Any, wanted: dict[str, Any]) -> bool:
    """Whether a value fits a schema of those above."""
    if "anyOf" in wanted:
        return any(fits(value, one) for one in wanted["anyOf"])
    if "enum" in wanted:
        return any(type(value) is type(one) and value == one for one in wanted["enum"])
    kind = wanted["type"]
    if not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        return False
    if kind == "string":
        return wanted.get("minLength", 0) <= len(value) <= wanted.get("maxLength", LENGTH)
    if kind == "integer":
        return wanted.get("minimum", value) <= value <= wanted.get("maximum", value)
    if kind == "array":
        return wanted["minItems"] <= len(value) <= wanted["maxItems"] and all(
            fits(item, wanted["items"]) for item in value
        )
    if kind != "object":
        return True
    known = wanted["properties"]
    return set(wanted["required"]) <= set(value) <= set(known) and all(fits(value[key], known[key]) for key in value)


def ended(count: int, seed: int) -> int:
    """How many of so many random schemas lead to an end; all of these are right."""
    random_, rng, found = random.Random(seed), np.random.default_rng(seed), 0
    for _ in range(count):
        wanted = schema(random_)
        text = chosen(COMPILER.constraint(Grammar.of_schema(wanted)), rng)
        if text is not None:
            found += 1
            assert fits(json.loads(text), wanted), (text, wanted)
    return found


def test_texts_fit_their_schemas() -> None:
    count = examples(60)
    assert ended(count, 1) >= 0.8 * count


@pytest.mark.long
def test_texts_fit_many_schemas() -> None:
    assert ended(300, 2) >= 240


def test_texts_fit_regular_expressions_and_grammars() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        text = chosen(COMPILER.constraint(Grammar("regex", r"[a-c]{2,5}-é\d+")), rng)
        assert text is None or re.fullmatch(r"[a-c]{2,5}-é\d+", text)
        assert chosen(COMPILER.constraint(Grammar("lark", 'start: "yes" | "no"')), rng) in ("yes", "no")


def test_forced_texts_are_tokens_of_their_bytes_where_texts_begin_with_spaces() -> None:
    words = tokenizer(adds_space=True)
    constraint = GrammarCompiler(words, LOGITS).constraint(Grammar("regex", "a name name é"))
    ids = list[int]()
    while (
        not (allowed := set(np.flatnonzero(np.unpackbits(constraint(np.array(ids)).view(np.uint8), bitorder="little"))))
        & words.ends
    ):
        ids.append(int(max(allowed)))
    assert words.decode(ids, continued=True) == "a name name é"


def test_a_constraint_follows_several_tokens_at_once() -> None:
    grammar = Grammar("regex", "name12")
    one, many = COMPILER.constraint(grammar), COMPILER.constraint(grammar)
    ids = np.array(TOKENIZER.encode("name12"), np.int32)
    for length in range(len(ids) + 1):
        bits = one(ids[:length]).copy()
    np.testing.assert_array_equal(bits, many(ids))
    np.testing.assert_array_equal(bits, many(ids))
    allowed = np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))
    assert set(allowed) == TOKENIZER.ends


NESTED: dict[str, Any] = {"type": "integer"}
for _ in range(MAX_DEPTH + 1):
    NESTED = {"type": "array", "items": NESTED}

WRONG: list[Any] = [
    "{", "[]", 7, "[" * 100_000, NESTED, {"type": "nothing"}, {"type": 3}, {"$ref": "#/nowhere"}, {"pattern": "("},
    {"minimum": 3, "maximum": 2, "type": "integer"}, {"enum": []}, {"$ref": "https://example.com/x"},
    {"type": "string", "pattern": "(?=a)b"}, {"type": "object", "description": "a" * (MAX_SCHEMA + 1)},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_schemas_with_errors_are_refused_in_one_line(number: int) -> None:
    with pytest.raises(InputError) as caught:
        COMPILER.constraint(Grammar.of_schema(WRONG[number]))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    "grammar", [Grammar("regex", "("), Grammar("lark", "start: nothing"), Grammar("lark", "x\n\n:")]
)
def test_grammars_with_errors_are_refused_in_one_line(grammar: Grammar) -> None:
    with pytest.raises(InputError) as caught:
        COMPILER.constraint(grammar)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("pattern", ["(a{1,60000}){1,60000}", "(.{0,1000}a){50}b", "((a|b|c){1,500}){1,500}"])
def test_grammars_that_are_large_end_soon(pattern: str) -> None:
    try:
        constraint = COMPILER.constraint(Grammar("regex", pattern))
    except InputError:
        return
    assert constraint(np.zeros(0, np.int32)).any()


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"allOf": [{"type": "string", "pattern": f"a{n}.*b"} for n in range(30)]}, "intersect more than 14 patterns"),
        ({"properties": {f"p{n}": {"type": "string"} for n in range(2000)}}, "an object of more than 1000 properties"),
    ],
)
def test_schemas_whose_grammars_take_long_are_refused(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Grammar.of_schema(schema)
    with pytest.raises(InputError, match=words):
        grammar_of_calls([{"name": "f", "parameters": schema}], "required", is_parallel=True, template=None)
