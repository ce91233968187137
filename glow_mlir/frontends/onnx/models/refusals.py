"""Reasons why operators of onnxruntime are not supported, other than that they are not implemented yet."""

from __future__ import annotations

from collections.abc import Mapping

from glow_mlir.ir.registry import operator_label

_ON_GPUS = "onnxruntime has no CPU kernel as a reference"
_GENERATION = "it calls a decoder graph until sequences end, export one step of the decoder"
_PACKED = "its weights are packed for an onnxruntime kernel"
_TEXT = "it preprocesses text, run it before the model"

REASONS: Mapping[tuple[str, str], str] = {
    ("com.microsoft", kind): reason
    for reason, kinds in {
        _ON_GPUS: (
            *("BiasAdd", "BiasDropout", "BiasSoftmax", "BiasSplitGelu", "BitmaskBiasDropout", "BitmaskDropout"),
            *("ComplexMul", "ComplexMulConj", "DecoderAttention", "DecoderMaskedSelfAttention"),
            *("DequantizeBFP", "DequantizeWithOrder", "DynamicSparseAttention", "FusedMatMulActivation"),
            *("GatedRelativePositionBias", "GemmFastGelu", "GemmFloat8", "GemmaRotaryEmbedding", "GroupNorm"),
            *("Irfft", "IsAllFinite", "LongformerAttention", "MatMulBlockQuantizedFp4Weight"),
            *("MatMulBlockQuantizedFp8Weight", "MatMulNBitsMlp", "MatMulNBitsQLoRA", "MatMulNBitsQkv", "NhwcConv"),
            *("PackedAttention", "PackedMultiHeadAttention", "PagedAttention", "QOrderedAttention", "QOrderedGelu"),
            *("QOrderedLayerNormalization", "QOrderedLongformerAttention", "QOrderedMatMul", "QuantizeBFP"),
            *("QuantizeWithOrder", "RelativePositionBias", "RemovePadding", "RestorePadding", "Rfft"),
            *("SkipGroupNorm", "SparsePagedAttention"),
        ),
        _GENERATION: ("BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"),
        _PACKED: ("GatherPacked", "MatMulFpQ4", "MatMulPacked", "MoEPacked"),
        _TEXT: ("BifurcationDetector", "MurmurHash3", "NGramHashMapping", "Tokenizer", "WordConvEmbedding"),
    }.items()
    for kind in kinds
}
"""Domain and name of an operator → the reason."""


def refused_label(domain: str, kind: str) -> str:
    """The label of an unsupported operator, with the reason if there is one."""
    label, reason = operator_label(domain, kind), REASONS.get((domain, kind))
    return label if reason is None else f"{label}: {reason}"
