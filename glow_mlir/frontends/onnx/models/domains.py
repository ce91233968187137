"""Domains of ONNX's operators; ONNX's own domain has two names."""

from __future__ import annotations

STANDARD = frozenset({"", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training"})
"""The domains of the standard, whose operators its checker knows."""


def plain_domain(domain: str) -> str:
    """The canonical name of a domain, which is empty for ONNX's own."""
    return "" if domain == "ai.onnx" else domain
