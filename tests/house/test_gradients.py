"""Every operator that a trained network has can be differentiated; what cannot is listed here, with its reason."""

from __future__ import annotations

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.control_flow import RegionOp
from glow_mlir.dialects.glow_high.dialect import operators
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.expressed import Expressed
from glow_mlir.dialects.glow_high.generic import GenericOp
from glow_mlir.ir.registry import GRADIENTS

POSITIONS = "its results are places of elements, or how many there are"
QUANTIZED = "networks are trained in floats, and their codes made afterwards"

STEPS = "a step of a feature leads to another leaf or to none"
CACHE = "caches are for calls that generate tokens; networks are trained on whole sequences"

WITHOUT = {
    "blockwise_dequantize": QUANTIZED,
    "blockwise_matmul": QUANTIZED,
    "blockwise_matmul_integer": QUANTIZED,
    "binned_tree_ensemble": STEPS,
    "gradient": "the pass replaces it first, and differentiates what takes its place",
    "linear_attention": "its past is a recurrence over tokens, which the operator does not keep",
    "non_max_suppression": POSITIONS,
    "non_zero": POSITIONS,
    "paged_attention": CACHE,
    "roi_pool": "as roi_align with the mode max, it does not keep which element is the largest",
    "tf_idf_vectorizer": "its operand is integers",
    "tree_ensemble": STEPS,
    "unique": "which elements are equal changes with any of them",
    "write_pages": CACHE,
}
"""Operator → why it has no gradient."""

PENDING = frozenset[str]()
"""Operators whose gradients are being written: each leaves this list with its gradient."""

MOST = 14
"""How many operators have none, at most."""


def test_operators_without_a_gradient_are_listed() -> None:
    derived = (Elementwise, Expressed, GenericOp)
    missing = {
        kind.name.removeprefix("glow_high.")
        for kind in operators()
        if issubclass(kind, HighOp | RegionOp)
        and kind.get_irdl_definition().operands
        and not issubclass(kind, derived)
        and GRADIENTS.get(kind) is None
    }
    assert missing == WITHOUT.keys() | PENDING


def test_few_have_none() -> None:
    assert len(WITHOUT) <= MOST
    assert not PENDING & WITHOUT.keys()
