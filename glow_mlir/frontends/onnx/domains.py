"""Domains of ONNX's operators, of which that of ONNX itself has two names."""

from __future__ import annotations


def plain_domain(domain: str) -> str:
    """The one name of a domain, which is empty for that of ONNX itself."""
    return "" if domain == "ai.onnx" else domain
