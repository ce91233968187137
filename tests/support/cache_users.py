"""What keeps something in a cache, each behind the same three questions, and who may be somebody else."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT

from glow_mlir.runtime.artifact import Artifact, Entry, Manifest
from glow_mlir.runtime.cache import ArtifactCache, cache_key
from glow_mlir.runtime.identity import ContentIndex
from glow_mlir.runtime.json_cache import JsonCache

KEY = cache_key("one")
_FILE = ROOT / "examples" / "digits.onnx"
SOMEBODY = 12345
"""A user who is neither root nor this one."""

NEEDS_OWNERS = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no owners")
NEEDS_ROOT = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")


def artifact(code: bytes = b"code", size: int = 100) -> Artifact:
    """An artifact with that many bytes of constants."""
    return Artifact((code,), np.arange(size, dtype=np.uint8), Manifest((Entry("main", (), 0, 0, "host"),), size))


@dataclass(frozen=True)
class CacheUser:
    """One of those who keep something in a cache, at a root: writes it, has it or not, and where it lies."""

    name: str
    write: Callable[[Path], object]
    has: Callable[[Path], bool]
    folder: Callable[[Path], Path]


def _write_digest(root: Path) -> None:
    ContentIndex(root).digest(_FILE)


def _has_digest(root: Path) -> bool:
    """Whether the digest comes from the index: the one there is changed, to tell it from the true one."""
    folder, changed = ContentIndex(root).directory, "0" * 64
    for entry in folder.glob("*.json"):
        entry.write_text(f'{{"digest": "{changed}"}}')
    return ContentIndex(root).digest(_FILE) == changed


CACHE_USERS = (
    CacheUser(
        "artifacts",
        lambda root: ArtifactCache(root).store(KEY, artifact()),
        lambda root: ArtifactCache(root).load(KEY) is not None,
        lambda root: ArtifactCache(root).directory,
    ),
    CacheUser(
        "answers",
        lambda root: JsonCache("subject", root).store(KEY, {"chosen": 1}),
        lambda root: JsonCache("subject", root).load(KEY) is not None,
        lambda root: JsonCache("subject", root).directory,
    ),
    CacheUser("contents", _write_digest, _has_digest, lambda root: ContentIndex(root).directory),
)
"""All that keep something in a cache. `contents` needs `identity.SETTLED_NS` to be less than 0."""
