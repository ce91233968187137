"""What xDSL's tools find by the entry point `xdsl.universe`: our dialects and passes, imported when named."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.transforms import get_all_passes
from xdsl.universe import Universe

DIALECTS: dict[str, str] = {
    "glow": "glow_mlir.dialects.glow:GLOW",
    "glow_high": "glow_mlir.dialects.glow_high.dialect:GLOW_HIGH",
    "glow_low": "glow_mlir.dialects.glow_low.dialect:GLOW_LOW",
    "quant": "glow_mlir.dialects.quant:QUANT",
}
"""Dialect → where it is defined."""

PASSES: dict[str, str] = {
    "allocate": "glow_mlir.transforms.allocate:AllocatePass",
    "apply-patterns": "glow_mlir.transforms.apply_patterns:ApplyPatternsPass",
    "assign-target": "glow_mlir.transforms.assign_target:AssignTargetPass",
    "canonicalize": "glow_mlir.transforms.canonicalize:CanonicalizePass",
    "convert-precision": "glow_mlir.transforms.convert_precision:ConvertPrecisionPass",
    "decompose-data-movement": "glow_mlir.transforms.decompose_data_movement:DecomposeDataMovementPass",
    "deduplicate": "glow_mlir.transforms.deduplicate:DeduplicatePass",
    "eliminate-copies": "glow_mlir.transforms.eliminate_copies:EliminateCopiesPass",
    "eliminate-dead-stores": "glow_mlir.transforms.eliminate_dead_stores:EliminateDeadStoresPass",
    "equalize-channels": "glow_mlir.transforms.equalize_channels:EqualizeChannelsPass",
    "expand-powers": "glow_mlir.transforms.expand_powers:ExpandPowersPass",
    "flatten-convolutions": "glow_mlir.transforms.flatten_convolutions:FlattenConvolutionsPass",
    "fold-constants": "glow_mlir.transforms.fold_constants:FoldConstantsPass",
    "fold-dilated-convolutions": "glow_mlir.transforms.fold_dilated_convolutions:FoldDilatedConvolutionsPass",
    "fold-into-weights": "glow_mlir.transforms.fold_into_weights:FoldIntoWeightsPass",
    "fold-transposes-into-matmul": "glow_mlir.transforms.fold_transposes_into_matmul:FoldTransposesIntoMatmulPass",
    "fold-transposes-into-pools": "glow_mlir.transforms.fold_transposes_into_pools:FoldTransposesIntoPoolsPass",
    "fold-quantization": "glow_mlir.transforms.fold_quantization:FoldQuantizationPass",
    "fuse-epilogues": "glow_mlir.transforms.fuse_epilogues:FuseEpiloguesPass",
    "fuse-prologues": "glow_mlir.transforms.fuse_prologues:FuseProloguesPass",
    "tile-lines": "glow_mlir.transforms.tile_lines:TileLinesPass",
    "gather-to-slice": "glow_mlir.transforms.gather_to_slice:GatherToSlicePass",
    "glow-high-to-glow-low": "glow_mlir.conversion.glow_high_to_glow_low:GlowHighToGlowLowPass",
    "glow-low-to-llvm": "glow_mlir.codegen.glow_low_to_llvm:GlowLowToLlvmPass",
    "hoist-from-loops": "glow_mlir.transforms.hoist_from_loops:HoistFromLoopsPass",
    "instrument-debug": "glow_mlir.transforms.instrument_debug:InstrumentDebugPass",
    "instrument-profile": "glow_mlir.transforms.instrument_profile:InstrumentProfilePass",
    "lower": "glow_mlir.transforms.lower:LowerPass",
    "lower-quantization": "glow_mlir.transforms.lower_quantization:LowerQuantizationPass",
    "merge-arithmetic": "glow_mlir.transforms.merge_arithmetic:MergeArithmeticPass",
    "merge-matmuls": "glow_mlir.transforms.merge_matmuls:MergeMatmulsPass",
    "merge-pads": "glow_mlir.transforms.merge_pads:MergePadsPass",
    "quantize": "glow_mlir.transforms.quantize:QuantizePass",
    "quantize-weights": "glow_mlir.transforms.quantize_weights:QuantizeWeightsPass",
    "raise-clips": "glow_mlir.transforms.raise_clips:RaiseClipsPass",
    "recognize-activations": "glow_mlir.transforms.recognize_activations:RecognizeActivationsPass",
    "recognize-attention": "glow_mlir.transforms.recognize_attention:RecognizeAttentionPass",
    "recognize-normalization": "glow_mlir.transforms.recognize_normalization:RecognizeNormalizationPass",
    "recognize-softmax": "glow_mlir.transforms.recognize_softmax:RecognizeSoftmaxPass",
    "remove-identity-clips": "glow_mlir.transforms.remove_identity_clips:RemoveIdentityClipsPass",
    "remove-unused-storage": "glow_mlir.transforms.remove_unused_storage:RemoveUnusedStoragePass",
    "schedule": "glow_mlir.transforms.schedule:SchedulePass",
    "select": "glow_mlir.transforms.select:SelectPass",
    "share-buffers": "glow_mlir.transforms.share_buffers:ShareBuffersPass",
    "shorten-lifetimes": "glow_mlir.transforms.shorten_lifetimes:ShortenLifetimesPass",
    "shrink-splats": "glow_mlir.transforms.shrink_splats:ShrinkSplatsPass",
    "simplify-control-flow": "glow_mlir.transforms.simplify_control_flow:SimplifyControlFlowPass",
    "simplify-convolutions": "glow_mlir.transforms.simplify_convolutions:SimplifyConvolutionsPass",
    "sink-clips": "glow_mlir.transforms.sink_clips:SinkClipsPass",
    "sink-conversions": "glow_mlir.transforms.sink_conversions:SinkConversionsPass",
    "sink-from-loops": "glow_mlir.transforms.sink_from_loops:SinkFromLoopsPass",
    "sink-reshapes": "glow_mlir.transforms.sink_reshapes:SinkReshapesPass",
    "sink-transposes": "glow_mlir.transforms.sink_transposes:SinkTransposesPass",
    "stack": "glow_mlir.transforms.stack:StackPass",
    "unroll-loops": "glow_mlir.transforms.unroll_loops:UnrollLoopsPass",
    "verify-allocated": "glow_mlir.transforms.verify_allocated:VerifyAllocatedPass",
    "verify-low": "glow_mlir.transforms.verify_low:VerifyLowPass",
    "verify-lowered": "glow_mlir.transforms.verify_lowered:VerifyLoweredPass",
    "verify-selected": "glow_mlir.transforms.verify_selected:VerifySelectedPass",
}
"""Pass → where it is defined."""


def _load(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(module), name)


def _lazy(place: str) -> Callable[[], Any]:
    return lambda: _load(place)


def pass_class(name: str) -> type[ModulePass]:
    """The class of one of our passes."""
    return _load(PASSES[name])


def dialect(name: str) -> Dialect:
    """One of our dialects."""
    return _load(DIALECTS[name])


OWN_PASSES: dict[str, Callable[[], type[ModulePass]]] = {name: _lazy(place) for name, place in PASSES.items()}
"""Pass → its class. In our tools a pass of ours takes the place of one of xDSL's with its name."""

GLOW_UNIVERSE = Universe(
    all_dialects={name: _lazy(place) for name, place in DIALECTS.items()},
    all_passes={name: load for name, load in OWN_PASSES.items() if name not in get_all_passes()},
)
"""Our dialects and passes, found by `xdsl-opt` through the entry point, which refuses names that it knows."""
