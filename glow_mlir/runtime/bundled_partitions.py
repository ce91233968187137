"""One artifact for several devices, which caches store like any other: code, constants and manifest of each device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from glow_mlir.runtime.artifact import Artifact, Binding, Entry, Manifest, binding_from_data
from glow_mlir.runtime.host_programs import Allocate, Call, Free, HostProgram, RecordEvent, Step, Transfer, WaitEvent
from glow_mlir.runtime.partitions import DevicePart, PartitionedArtifact

PAGE = 4096
"""The alignment of each device's constants in bytes."""

STEPS: dict[str, type[Step]] = {
    kind.__name__: kind for kind in (Allocate, Call, Free, RecordEvent, Transfer, WaitEvent)
}
"""The name of a step in JSON → its class."""


def bundled(whole: PartitionedArtifact, allocate: Callable[[int], np.ndarray]) -> Artifact:
    """
    Combine the artifacts of all devices, which are `Artifact`s, into one; `allocate` allocates the bytes for all
    constants.
    """
    code: list[bytes] = []
    parts: list[dict[str, Any]] = []
    entries: list[Entry] = []
    large: list[tuple[int, int]] = []
    end = 0
    for part in whole.parts:
        artifact: Artifact = part.artifact
        begin = -(-end // PAGE) * PAGE
        end = begin + artifact.constants.nbytes
        entries += [replace(entry, code=entry.code + len(code)) for entry in artifact.manifest.entries]
        large += [(offset + begin, size) for offset, size in artifact.manifest.large]
        parts.append(
            {
                "device": part.device,
                "backend": part.backend,
                "threads": part.threads,
                "code": [len(code), len(code) + len(artifact.code)],
                "constants": [begin, end],
                "manifest": artifact.manifest.to_json(),
            }
        )
        code += artifact.code
    region = allocate(end)
    for part, described in zip(whole.parts, parts, strict=True):
        begin, until = described["constants"]
        region[begin:until] = part.artifact.constants
    described = {"parts": parts, "programs": [_program_data(program) for program in whole.programs]}
    return Artifact(tuple(code), region, Manifest(tuple(entries), end, large=tuple(large), partitions=described))


def unbundled(artifact: Artifact) -> PartitionedArtifact:
    """Split an artifact from `bundled` into those of the devices; raises `ValueError` or `KeyError` for another."""
    described = artifact.manifest.partitions
    if described is None:
        raise ValueError("the artifact has a single device")
    parts: list[DevicePart] = []
    for part in described["parts"]:
        (first, last), (begin, end) = part["code"], part["constants"]
        own = Artifact(artifact.code[first:last], artifact.constants[begin:end], Manifest.from_json(part["manifest"]))
        parts.append(DevicePart(part["device"], part["backend"], part["threads"], own))
    return PartitionedArtifact(tuple(parts), tuple(map(_program, described["programs"])))


def _program_data(program: HostProgram) -> dict[str, Any]:
    """A host program as JSON data."""
    return {
        "name": program.name,
        "bindings": [asdict(binding) for binding in program.bindings],
        "steps": [{"step": type(step).__name__, **asdict(step)} for step in program.steps],
    }


def _program(data: dict[str, Any]) -> HostProgram:
    bindings: tuple[Binding, ...] = tuple(map(binding_from_data, data["bindings"]))
    return HostProgram(data["name"], bindings, tuple(map(_step, data["steps"])))


def _step(data: dict[str, Any]) -> Step:
    kind = STEPS[data["step"]]
    fields: dict[str, Any] = {name: value for name, value in data.items() if name != "step"}
    if "buffers" in fields:
        fields["buffers"] = tuple(fields["buffers"])
    return kind(**fields)
