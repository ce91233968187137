"""Domains of ONNX's operators, of which that of ONNX itself has two names."""

from __future__ import annotations

STANDARD = frozenset({"", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training"})
"""The domains of the standard, whose operators its checker knows."""


def plain_domain(domain: str) -> str:
    """The one name of a domain, which is empty for that of ONNX itself."""
    return "" if domain == "ai.onnx" else domain
