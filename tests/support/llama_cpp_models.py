"""The models of llama.cpp's sources: vocabularies with vectors, and templates."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def llama_cpp_models() -> Path:
    """The folder that the environment names; skips the test where it names none."""
    found = os.environ.get("LLAMA_CPP_MODELS")
    if not found:
        pytest.skip("LLAMA_CPP_MODELS names no folder")
    return Path(found)
