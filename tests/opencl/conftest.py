"""All tests here need a device of OpenCL, and keep programs in a cache of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opencl_devices import opencl_device


@pytest.fixture(autouse=True, scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder for the programs of all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GLOW_CACHE_DIR", str(tmp_path_factory.mktemp("programs")))
        yield


@pytest.fixture(autouse=True)
def needed_device() -> None:
    """Skip where there is no device."""
    opencl_device()
