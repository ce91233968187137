"""Tokens that end a turn: by the texts that models have for them, and as templates write them behind an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from glow_mlir.errors import InputError

if TYPE_CHECKING:
    from glow_mlir.generation.template import ChatTemplate
    from glow_mlir.generation.tokenizer import Tokenizer

TEXTS = frozenset(
    (
        "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<end_of_turn>", "<turn|>",
        "<|endoftext|>", "<|end_of_text|>", "<|END_OF_TURN_TOKEN|>", "<|end_of_turn|>", "<end_of_utterance>",
        "<｜end▁of▁sentence｜>", "<EOT>", "_<EOT>", "[EOT]", "<|eot|>", "<|eom|>", "[e~[", "<|endofassistant|>",
        "</s>", "<eos>", "[EOS]", "<|calls|>", "<|flush|>", "<|tool_response>",
    )
)  # fmt: skip
"""Texts of such tokens, whatever else the file says."""

MESSAGE_END = "<|end|>"
MESSAGE_FORMATS = (frozenset(("<|return|>", "<|call|>")), frozenset(("<|calls|>", "<|flush|>")))
"""Where a vocabulary has all of one of these, a turn is several messages, and `MESSAGE_END` ends one of them only."""

QUESTION, ANSWER = "question", "qqanswerqq"


def ends_among(ids: Mapping[str, int]) -> set[int]:
    """The ids of those that a vocabulary has; `ids` is id by token."""
    texts = {text for text in TEXTS if text in ids}
    if any(all(text in ids for text in format_) for format_ in MESSAGE_FORMATS):
        texts.discard(MESSAGE_END)
    return {ids[text] for text in texts}


def ends_of_template(template: ChatTemplate, tokenizer: Tokenizer) -> set[int]:
    """The control token that a template writes behind an answer, or none; not those of templates that refuse a chat."""
    chat = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}]
    # Some end an answer only with what begins the next message.
    for messages in (chat, [*chat, chat[0]]):
        try:
            text = template.render(messages, add_generation_prompt=False)
        except InputError:
            continue
        _, answer, behind = text.rpartition(ANSWER)
        number = tokenizer.control_at(behind.lstrip()) if answer else None
        if number is not None:
            return {number}
    return set()
