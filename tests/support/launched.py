"""Launch programs run on the CPU: device functions compiled for this machine, called one part after another."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
import pytest
from execute import Guarded
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from glow_mlir.backends.cpu.backend import CpuBackend
from glow_mlir.codegen.binding_layouts import bound_layouts
from glow_mlir.codegen.build import build_region, constants_of
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.device_functions import emit_device_functions
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.llvm.symbols import undefined_symbols
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.constants.storage import Storage
from glow_mlir.driver.compiler import Compilation
from glow_mlir.ir.registry import BACKENDS
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.runtime.artifact import Binding
from glow_mlir.runtime.launches import ACTIVATIONS, BINDINGS, CONSTANTS, SCALARS, STATUS, Launch, LaunchProgram
from glow_mlir.runtime.loader import Library

NAME = "launched"


class LaunchedBackend(CpuBackend):
    """The CPU as a device, whose parts may all run at once. Nobody knows it but `launching`."""

    name: ClassVar[str] = NAME
    PART_SCRATCH: ClassVar[int] = 1 << 24


@pytest.fixture
def launching(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be the backend."""
    monkeypatch.setitem(BACKENDS.all(), NAME, LaunchedBackend)


@dataclass(frozen=True)
class Launched:
    """The only function of a module as a launch program, with what its caller has to provide."""

    program: LaunchProgram
    library: Library
    constants: np.ndarray
    bindings: Sequence[Binding]
    activations: int

    def run(self, inputs: Mapping[str, np.ndarray], seed: int = 0) -> dict[str, np.ndarray]:
        """
        Run the program, the parts of each launch in random order; returns the outputs.

        Fails where something is written outside of the regions, or an instruction has failed.
        """
        order = np.random.default_rng(seed)
        bound = [Guarded.of(binding.shape, binding.numpy_dtype, shift=0) for binding in self.bindings]
        arena = Guarded.of((self.activations,), np.dtype(np.uint8), shift=0)
        arena.array.fill(0xFF)
        for binding, buffer in zip(self.bindings, bound, strict=True):
            if binding.name in inputs:
                buffer.array[...] = inputs[binding.name]
        status = np.zeros(self.program.statuses, np.int32)
        regions = {
            CONSTANTS: [self.constants],
            ACTIVATIONS: [arena.array],
            BINDINGS: [buffer.array for buffer in bound],
            STATUS: [status],
            SCALARS: [np.array(self.program.scalars, np.int32)],
        }
        bases = {name: [array.ctypes.data for array in arrays] for name, arrays in regions.items()}
        for launch, indices in self.program.launches():
            for part in order.permutation(launch.parts):
                self._call(launch, indices, bases, int(part))
        for buffer in (*bound, arena):
            buffer.check()
        assert not status.any()
        found = zip(self.bindings, bound, strict=True)
        return {binding.name: buffer.array for binding, buffer in found if binding.role == "output"}

    def _call(self, launch: Launch, indices: Sequence[int], bases: Mapping[str, Sequence[int]], part: int) -> None:
        pointers = [bases[place.region][place.binding] + place.at(indices) for place in launch.operands]
        assert not launch.symbols
        numbers = [*indices[-1:]] * launch.takes_round + [part]
        types = [*[ctypes.c_void_p] * len(pointers), *[ctypes.c_int64] * len(numbers)]
        self.library.function(launch.function, types)(*pointers, *numbers)


def launched(module: ModuleOp, threads: int = 4) -> Launched:
    """Take a module with one function down to places in memory, and make a launch program of that."""
    compilation = Compilation(module, backend=NAME, fields={"threads": threads})
    compilation.run(until="allocated")
    (function,) = low_functions(module)
    builder = ModuleBuilder(function.target)
    (program,) = emit_device_functions([function], builder)
    builder.module.verify()
    data = compile_text(emit_module(flattened(builder.module)), function.target)
    assert undefined_symbols(data) == ()
    constants = build_region(constants_of([function], Storage(module)))
    activations = function.properties["activations"]
    assert isinstance(activations, IntegerAttr)
    found = LaunchProgram.from_data(json.loads(json.dumps(asdict(program))))
    assert found == program
    return Launched(found, Library(data), constants, bound_layouts(function), activations.value.data)
