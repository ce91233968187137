"""Models on several devices, compared with the same on one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import onnx
from models import random_inputs
from partition_models import FULL, SMALL

from glow_mlir import InferenceSession
from glow_mlir.driver.pipelines import HOST_PROGRAM, PLACED
from glow_mlir.partitioning.report import DeviceShare, add_host_programs, planned_steps, shares_of


@cache
def expected(
    family: str, is_full: bool, target: str | None = None
) -> tuple[onnx.ModelProto, Mapping[str, np.ndarray], Mapping[str, np.ndarray]]:
    """A model, inputs, and what one device makes of them, of that target if one is named."""
    model = (FULL if is_full else SMALL)[family]()
    inputs = random_inputs(model, np.random.default_rng(0))
    session = InferenceSession(model, target=target)
    names = [output.name for output in session.get_outputs()]
    return model, inputs, dict(zip(names, session.run(None, inputs), strict=True))


def check(family: str, devices: str, partition: str, is_full: bool, target: str | None = None) -> list[DeviceShare]:
    """Compare a model on several devices with the same on one, of that target if one is named; what each device has."""
    model, inputs, wanted = expected(family, is_full, target)
    shares: list[DeviceShare] = []

    def observer(stage: Any, module: Any, seconds: float) -> None:
        if stage.name == PLACED.name:
            shares.extend(shares_of(module))
        elif stage.name == HOST_PROGRAM.name:
            add_host_programs(shares, planned_steps(module))

    session = InferenceSession(model, devices=devices, partition=partition, observers=[observer])
    for _ in range(2):
        for (name, array), found in zip(wanted.items(), session.run(None, inputs), strict=True):
            scale = np.abs(array.astype(np.float64)).max()
            np.testing.assert_allclose(found, array, rtol=1e-3, atol=1e-4 * scale, err_msg=name)
    return shares
