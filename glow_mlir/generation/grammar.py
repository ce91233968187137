"""
Grammars: which tokens may follow so that the text fits a JSON schema, a regular expression or a grammar of Lark.

Parsing is done by the package `llguidance`, which computes the allowed tokens of a step in about 50 µs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from glow_mlir.errors import ExecutionError, InputError, ModelError
from glow_mlir.generation.tokenizer import Tokenizer
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.json_values import is_mapping, is_sequence
from glow_mlir.support.optional_packages import imported

MAX_SCHEMA = 1 << 18
"""The maximum number of characters of a grammar."""

MARK = "\x02"
"""A character before a text, which is a token of its own where characters are not bytes."""

MAX_DEPTH = 64
"""The maximum nesting of a schema."""

MAX_PROPERTIES = 1000
"""The maximum number of properties of an object: the time of their grammar grows with the square of it."""

MAX_INTERSECTED = 14
"""The maximum number of patterns that `allOf` may intersect: the time doubles with each, whatever its bounds are."""


@dataclass(frozen=True)
class Grammar:
    """A grammar as text: of `kind` `json` (a schema), `regex` or `lark`."""

    kind: str
    text: str

    @staticmethod
    def of_schema(schema: Mapping[str, Any] | str) -> Grammar:
        """The grammar of JSON by a schema, given as data or as text; raises `InputError` for other text."""
        if isinstance(schema, str):
            try:
                schema = json.loads(schema)
            except (ValueError, RecursionError) as error:
                raise InputError(f"the schema is no JSON: {error}") from None
        if not isinstance(schema, Mapping):
            raise InputError("a schema is an object", hint="such as {'type': 'object'}")
        check_schema(schema)
        return Grammar("json", json.dumps(schema))


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise `InputError` for a schema that is nested too deep to be read, or whose grammar would take too long."""
    if _depth(schema) > MAX_DEPTH:
        raise InputError(f"the schema is nested more than {MAX_DEPTH} levels deep")
    patterns, parts, rest = 0, 0, list[Any]([schema])
    while rest:
        item: Any = rest.pop()
        if not is_mapping(item):
            rest += item if is_sequence(item) else ()
            continue
        found: Any = item.get("properties")
        if is_mapping(found) and len(found) > MAX_PROPERTIES:
            raise InputError(f"the schema has an object of more than {MAX_PROPERTIES} properties")
        both: Any = item.get("allOf")
        is_pattern = isinstance(item.get("pattern"), str)
        patterns += is_pattern
        # What is beside a reference is intersected with what it refers to.
        parts += (len(both) if is_sequence(both) else 0) + (is_pattern and "$ref" in item)
        rest += item.values()
    if min(patterns, parts) > MAX_INTERSECTED:
        reason = f"the schema may intersect more than {MAX_INTERSECTED} patterns"
        raise InputError(reason, hint="write it with fewer of allOf and pattern")


def _depth(value: Any) -> int:
    """The nesting of JSON data; counts no further than one more than the limit."""
    depth, level = 0, list[Any]([value])
    while level and depth <= MAX_DEPTH:
        nested: list[Any] = [item for item in level if isinstance(item, Mapping | list)]
        level = [part for item in nested for part in (item.values() if hasattr(item, "values") else item)]
        depth += bool(nested)
    return depth


class GrammarCompiler:
    """Makes the constraints of requests for one tokenizer; `vocabulary` is the number of logits."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: int) -> None:
        self._module = _package()
        if not tokenizer.ends:
            raise ModelError("grammars need a token that ends texts", hint="the tokenizer has none")
        self._vocabulary = vocabulary
        self._tokenizer = self._module.LLTokenizer(
            self._module.TokenizerWrapper(_Words(tokenizer, vocabulary)),
            n_vocab=vocabulary,
            eos_token=sorted(tokenizer.ends),
        )

    def constraint(self, grammar: Grammar) -> Constraint:
        """The constraint of a request; raises `InputError` for grammars that have errors or are too large."""
        if len(grammar.text) > MAX_SCHEMA:
            raise InputError(f"the grammar has more than {MAX_SCHEMA} characters")
        matcher = self._module.LLMatcher
        make = {
            "json": matcher.grammar_from_json_schema,
            "regex": matcher.grammar_from_regex,
            "lark": matcher.grammar_from_lark,
        }
        try:
            compiled = make[grammar.kind](grammar.text)
        except ValueError as error:
            raise InputError(f"the grammar cannot be used: {_reason(error)}") from None
        found = matcher(self._tokenizer, compiled, log_level=0)
        if found.is_error():
            raise InputError(f"the grammar cannot be used: {_reason(found.get_error())}")
        return Constraint(found, self._vocabulary)


class Constraint:
    """The state of a grammar behind the tokens of a request; the `Mask` of the engine."""

    def __init__(self, matcher: Any, vocabulary: int) -> None:
        self._matcher = matcher
        self._words = -(-vocabulary // 32)
        self._consumed = 0

    def __call__(self, chosen: np.ndarray) -> np.ndarray:
        """The allowed tokens behind the chosen ones as bits; raises `ExecutionError` if parsing gets too complex."""
        if len(chosen) > self._consumed:
            self._matcher.consume_tokens(chosen[self._consumed :].tolist())
            self._consumed = len(chosen)
        bits = self._matcher.compute_bitmask()
        if self._matcher.is_error():
            raise ExecutionError(f"the grammar stopped: {_reason(self._matcher.get_error())}")
        return np.frombuffer(bits, np.uint32)[: self._words]


class _Words:
    """A tokenizer as `llguidance` reads it."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: int) -> None:
        self._tokenizer = tokenizer
        self.eos_token_id = min(tokenizer.ends)
        self.bos_token_id = tokenizer.begin
        self.tokens = [tokenizer.piece(number) for number in range(min(tokenizer.size, vocabulary))]
        self.tokens += [b""] * (vocabulary - len(self.tokens))
        self.special_token_ids = sorted(tokenizer.controls)
        texts = (item for item in enumerate(self.tokens) if item[1] and item[0] not in tokenizer.controls)
        self._ids = {text: number for number, text in texts}
        self._most = max(map(len, self._ids), default=0)

    def __call__(self, text: str) -> list[int]:
        """The tokens of a text that a grammar forces, in the middle of another one: their bytes are the text's."""
        wanted = text.encode("utf-8", "replace")
        # A space that is put before texts goes before the mark, which no token has but its own.
        marked = self._tokenizer.encode(MARK + text)
        place = next((place + 1 for place, number in enumerate(marked) if self.tokens[number] == MARK.encode()), 0)
        for ids in (self._tokenizer.encode(text), marked[place:]):
            if b"".join(self.tokens[number] for number in ids) == wanted:
                return ids
        return self._longest(wanted)

    def _longest(self, text: bytes) -> list[int]:
        """The longest tokens from the left; none where no token goes on."""
        found, position = list[int](), 0
        while position < len(text):
            sizes = range(min(self._most, len(text) - position), 0, -1)
            size = next((size for size in sizes if text[position : position + size] in self._ids), None)
            if size is None:
                break
            found.append(self._ids[text[position : position + size]])
            position += size
        return found


def _reason(error: object) -> str:
    """The first line of an error, behind which is the state of the parser."""
    return f"{str(error).partition(chr(10))[0]:.300}"


def _package() -> Any:
    """The package; raises `OptionError` if it is not installed."""
    return imported("llguidance", "generate", "grammars need the package llguidance")
