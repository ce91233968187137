"""Models on a device of OpenCL and the CPU: most of the work is on the device, and results are the CPU's."""

from __future__ import annotations

import pytest
from partition_models import FULL, SMALL
from partitioned_runs import check, expected

pytestmark = pytest.mark.extra

WAYS = (("opencl,cpu", "preferred"), ("cpu,opencl", "pipeline"), ("opencl,cpu", "latency"))
"""Devices, and how operators are placed on them."""


@pytest.mark.parametrize("family", SMALL)
@pytest.mark.parametrize(("devices", "partition"), WAYS)
def test_model_on_device_and_cpu(family: str, devices: str, partition: str) -> None:
    check(family, devices, partition, is_full=False)


@pytest.mark.parametrize("family", SMALL)
def test_device_has_nearly_all(family: str) -> None:
    device, cpu = check(family, "opencl,cpu", "preferred", is_full=False)
    assert device.multiply_adds >= 0.95 * (device.multiply_adds + cpu.multiply_adds)
    assert device.operators >= 0.8 * (device.operators + cpu.operators)
    if not device.refused:
        graph = expected(family, is_full=False)[0].graph
        assert device.transfers <= len(graph.input) + len(graph.output)


@pytest.mark.long
@pytest.mark.parametrize("family", FULL)
def test_model_of_full_size_on_device_and_cpu(family: str) -> None:
    check(family, "opencl,cpu", "preferred", is_full=True)
