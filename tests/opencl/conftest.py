"""All tests here need a device of OpenCL."""

from __future__ import annotations

import pytest
from opencl_devices import opencl_device


@pytest.fixture(autouse=True)
def needed_device() -> None:
    """Skip where there is no device."""
    opencl_device()
