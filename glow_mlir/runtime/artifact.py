"""What a compilation leaves: machine code, packed constants, and a manifest that says how to call it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from glow_mlir.support.dtypes import named_dtype
from glow_mlir.support.json_text import parsed_json


@dataclass(frozen=True)
class Binding:
    """One input, output or state of the entry: its name, role, element type and shape."""

    name: str
    role: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor."""
        return int(np.prod(self.shape, dtype=np.int64)) * named_dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Step:
    """One instruction of the entry, for profiles: its kernel, its kind, and the ONNX nodes it comes from."""

    kernel: str
    kind: str
    location: str


@dataclass(frozen=True)
class Manifest:
    """How to call the machine code, and what it needs. Sizes are in bytes."""

    entry: str
    bindings: tuple[Binding, ...]
    activations: int
    activations_bound: int
    constants: int
    target: str
    profile: bool = False
    threads: int = 1
    """For how many threads instructions are cut into parts; 1 where none is."""
    steps: tuple[Step, ...] = ()
    digests: dict[str, str] = field(default_factory=dict[str, str])
    """Part of a stored artifact → digest; empty for one that was never stored."""

    def to_json(self) -> str:
        """The manifest as JSON text."""
        return json.dumps(asdict(self), indent=1)

    @staticmethod
    def from_json(text: str) -> Manifest:
        """The manifest that `to_json` wrote; raises `ValueError`, `KeyError` or `TypeError` for anything else."""
        data: dict[str, Any] = parsed_json(text)
        data["bindings"] = tuple(
            Binding(item["name"], item["role"], item["dtype"], tuple(item["shape"])) for item in data["bindings"]
        )
        data["steps"] = tuple(Step(**item) for item in data["steps"])
        return Manifest(**data)

    def of_role(self, role: str) -> tuple[Binding, ...]:
        """The bindings of that role, in order."""
        return tuple(binding for binding in self.bindings if binding.role == role)


@dataclass(frozen=True)
class Artifact:
    """Machine code, constants region and manifest of one compiled function."""

    code: bytes
    constants: np.ndarray
    manifest: Manifest
