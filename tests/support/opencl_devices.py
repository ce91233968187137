"""Devices of OpenCL for tests, which are skipped where there is none."""

from __future__ import annotations

import pytest

from glow_mlir.backends.opencl.device import OpenCLDevice, device
from glow_mlir.backends.opencl.library import device_name, devices


def opencl_device() -> OpenCLDevice:
    """The first device; skips the test where there is none."""
    pytest.importorskip("pyopencl")
    if not devices():
        pytest.skip("no driver of OpenCL is installed: PyPI has PoCL in pocl-binary-distribution")
    return device(device_name(0))
