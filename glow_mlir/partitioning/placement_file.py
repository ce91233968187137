"""Placement files: devices of nodes, and seconds of nodes on devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from glow_mlir.dialects.device import DeviceSpec
from glow_mlir.errors import OptionError
from glow_mlir.partitioning.operators import Profile
from glow_mlir.support.json_text import parsed_json


def read_placement(file: str, devices: Sequence[DeviceSpec]) -> dict[str, str]:
    """
    Read node → device from a JSON file: `{"cpu:0": ["conv1", "relu1"], "opencl:0": [...]}`; empty without a file.

    Raises `OptionError` for an invalid file, or one that names another device.
    """
    found: dict[str, str] = {}
    if not file:
        return found
    path = Path(file)
    names = [device.name for device in devices]
    for device, nodes in _object(path).items():
        if device not in names:
            raise OptionError(f"{path}: there is no device {device}", hint=f"there are {', '.join(names)}")
        if not isinstance(nodes, list) or not all(isinstance(node, str) for node in cast("list[Any]", nodes)):
            raise OptionError(f"{path}: '{device}' has no list of nodes")
        for node in cast("list[str]", nodes):
            if found.setdefault(node, device) != device:
                raise OptionError(f"{path}: node '{node}' is on {found[node]} and on {device}")
    return found


def read_profile(path: Path) -> Profile:
    """
    Read device, or backend → nodes → seconds from a JSON file: `{"cpu": {"conv1": 0.0012, "conv2+relu2": 0.001}}`.

    `glow-run --profile --json` writes such a file for its backend. Raises `OptionError` for an invalid file.
    """
    found: dict[str, Mapping[str, float]] = {}
    data = _object(path)
    if "profile" in data:
        return {str(data.get("backend")): _measured(data["profile"], path)}
    for device, times in data.items():
        given = cast("dict[str, Any]", times if isinstance(times, dict) else {"": ""})
        if not all(isinstance(time, int | float) and time >= 0 for time in given.values()):
            raise OptionError(f"{path}: '{device}' has no seconds of nodes")
        found[device] = {node: float(time) for node, time in given.items()}
    return found


def _measured(profile: Any, path: Path) -> dict[str, float]:
    """Nodes → the seconds of their instructions."""
    found: dict[str, float] = {}
    try:
        for item in profile["instructions"]:
            found[item["nodes"]] = found.get(item["nodes"], 0.0) + item["median_us"] / 1e6
    except (LookupError, TypeError) as error:
        raise OptionError(f"{path} has no times of instructions", hint="glow-run --profile --json FILE") from error
    return found


def _object(path: Path) -> dict[str, Any]:
    try:
        data = parsed_json(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise OptionError(f"{path} cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise OptionError(f"{path} is not a JSON object of devices")
    return cast("dict[str, Any]", data)
