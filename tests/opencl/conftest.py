"""All tests here need a device of OpenCL, and keep programs in a cache of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from opencl_devices import opencl_device


@pytest.fixture(autouse=True)
def needed_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip where there is no device."""
    opencl_device()
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "cache"))
