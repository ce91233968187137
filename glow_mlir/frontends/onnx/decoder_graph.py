"""What is known of the graph of a decoder before it is read."""

from __future__ import annotations

from pathlib import Path

from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class DecoderGraph:
    """
    The file of a decoder's graph, its vocabulary, and names of its inputs and output, by default onnxruntime-genai's.

    Token ids, positions and the mask of attention are [batch, length], logits [batch, length, vocabulary].
    """

    path: Path
    vocabulary: int
    tokens: str = "input_ids"
    positions: str = "position_ids"
    mask: str = "attention_mask"
    logits: str = "logits"
