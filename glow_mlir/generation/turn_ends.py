"""Tokens that end a turn, by the texts that models have for them."""

from __future__ import annotations

from collections.abc import Mapping

TEXTS = frozenset(
    (
        "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<end_of_turn>", "<turn|>",
        "<|endoftext|>", "<|end_of_text|>", "<|END_OF_TURN_TOKEN|>", "<|end_of_turn|>", "<end_of_utterance>",
        "<｜end▁of▁sentence｜>", "<EOT>", "_<EOT>", "[EOT]", "<|eot|>", "<|eom|>", "[e~[", "<|endofassistant|>",
    )
)  # fmt: skip
"""Texts of such tokens, whatever else the file says."""


def ends_among(ids: Mapping[str, int]) -> set[int]:
    """The ids of those that a vocabulary has; `ids` is id by token."""
    return {ids[text] for text in TEXTS if text in ids}
