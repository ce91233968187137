"""Templates of chats: transformers' text, and nothing that a template does takes long or fills the memory."""

from __future__ import annotations

import random
import resource
from typing import Any

import pytest
from breadth import examples
from llama_cpp_models import llama_cpp_models
from template_mutants import ATTACKS, TEMPLATE, TOKENS, mutant

from glow_mlir.errors import GlowError, InputError
from glow_mlir.generation.template import ChatTemplate

pytestmark = pytest.mark.extra
pytest.importorskip("jinja2")

SYSTEM, USER = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello there"}
ANSWER, NEXT = {"role": "assistant", "content": "Hi!"}, {"role": "user", "content": "How are you?"}
CITY = {"type": "object", "properties": {"city": {"type": "string", "description": "city"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "weather", "description": "Get weather", "parameters": CITY}}
CALL = {"id": "call_1abcdefg", "type": "function", "function": {"name": "weather", "arguments": {"city": "Paris"}}}
CALLING = {"role": "assistant", "content": "", "tool_calls": [CALL]}
RESULT = {"role": "tool", "content": "sunny", "tool_call_id": "call_1abcdefg", "name": "weather"}
CHATS: list[tuple[list[Any], list[Any] | None]] = [
    ([USER], None), ([SYSTEM, USER], None), ([USER, ANSWER, NEXT], None), ([SYSTEM, USER, ANSWER, NEXT], None),
    ([USER], [TOOL]), ([SYSTEM, USER, CALLING, RESULT], [TOOL]),
]  # fmt: skip


def rendered(text: str, **variables: Any) -> str:
    """The text of a chat."""
    return ChatTemplate(text, TOKENS).render([SYSTEM, USER, ANSWER, NEXT], **variables)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ATTACKS)
def test_no_template_takes_long_or_fills_the_memory(name: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(GlowError) as caught:
        rendered(ATTACKS[name])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500 << 10


def test_numbers_and_long_texts_of_messages_are_no_attack() -> None:
    call = {"function": {"name": "f", "arguments": {"time": 17 * 10**11, "text": "a" * 10**6}}}
    text = (
        "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(t.time) }} {{ t.time | string }} {{ t | tojson(indent=4) | length }}"
    )
    assert rendered(text, t=call["function"]["arguments"]).startswith("1700000000000 1700000000000 10000")
    messages = [{"role": "user", "content": "word " * 200}, ANSWER] * 1000
    assert len(ChatTemplate(TEMPLATE, TOKENS).render(messages)) > 130_000


def test_damaged_templates_give_text_or_one_line() -> None:
    random_, refused = random.Random(4), list[str]()
    for _ in range(examples(2400)):
        try:
            rendered(mutant(random_, TEMPLATE), tools=[TOOL])
        except GlowError as error:
            refused.append(str(error))
    assert refused
    assert not [words for words in refused if "\n" in words]


def test_messages_that_are_none_are_refused_by_number() -> None:
    template = ChatTemplate(TEMPLATE, TOKENS)
    wrong: list[Any] = [
        {},
        1,
        {"role": 1},
        {"role": "user"},
        {"role": "user", "content": 1},
        {"role": "user", "content": [1]},
    ]
    for message in [*wrong, {"role": "user", "content": [{"type": "image_url"}]}]:
        with pytest.raises(InputError, match="message 1 "):
            template.render([USER, message])


@pytest.mark.long
def test_templates_render_as_in_transformers() -> None:
    render = pytest.importorskip("transformers.utils.chat_template_utils").render_jinja_template
    paths = sorted((llama_cpp_models() / "templates").glob("*.jinja"))
    assert paths
    for path in paths:
        text = path.read_text(encoding="utf-8")
        for messages, tools in CHATS:
            try:
                wanted = render([messages], tools=tools, chat_template=text, add_generation_prompt=True, **TOKENS)[0][0]
            except Exception:  # Templates fail in any way.
                wanted = None
            try:
                found = ChatTemplate(text, TOKENS).render(messages, tools=tools)
            except GlowError:
                found = None
            assert found == wanted, path.name
