"""Programs of TOSA on Arm's reference model: what `load` makes of what `compile` gave."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
from xdsl.dialects import func

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.errors import ExecutionError
from glow_mlir.runtime.artifact import Binding
from glow_mlir.runtime.executable import EntryPoint, Executable
from glow_mlir.runtime.state import Initial, State
from glow_mlir.support.dataclass import dataclass
from tosa_backend.elements import from_held, to_held
from tosa_backend.ports import Port
from tosa_backend.text import tosa_text
from tosa_backend.tools import MODEL, run, serialize


@dataclass(frozen=True)
class TosaFunction:
    """One function: what callers give and get, by storage; what the program takes and gives; and the program."""

    name: str
    bindings: Mapping[str, Binding]
    """Symbol of storage → the binding, in the order in which callers see them."""
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    program: func.FuncOp

    @cached_property
    def text(self) -> str:
        """The program, as `tosa-opt` reads it."""
        return tosa_text(self.program)

    def write(self, file: Path) -> None:
        """Write the program as a flatbuffer, which NPU compilers read; raises `GlowError`."""
        with tempfile.TemporaryDirectory() as folder:
            text = Path(folder, "program.mlir")
            text.write_text(self.text, encoding="utf-8")
            serialize(text, file)


@dataclass(frozen=True)
class TosaProgram:
    """What is compiled: the functions of a module, and the state that they share."""

    functions: tuple[TosaFunction, ...]
    state: tuple[Initial, ...]


class TosaDevice(Executable):
    """The functions of a program, each of which can be called."""

    def __init__(self, compiled: TosaProgram) -> None:
        super().__init__([function.name for function in compiled.functions], State(compiled.state))
        self._functions = {function.name: function for function in compiled.functions}

    def load(self, name: str) -> EntryPoint:
        return TosaEntry(self._functions[name], self.state)


class TosaEntry(EntryPoint):
    """A function on the reference model, which reads and writes files; calls are apart, and may overlap."""

    def __init__(self, function: TosaFunction, state: State) -> None:
        super().__init__(function.name, list(function.bindings.values()), state)
        self._function = function
        self._folder = Path(tempfile.mkdtemp(prefix="glow-tosa-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._file = self._folder / "program.tosa"
        function.write(self._file)

    def _call(self, inputs: Mapping[str, np.ndarray], state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        given = {"input": inputs, "state": state}
        bindings = [self._function.bindings[port.symbol] for port in self._function.inputs]
        arrays = [given[binding.role][binding.name] for binding in bindings]
        entering = [_entering(port, array) for port, array in zip(self._function.inputs, arrays, strict=True)]
        outputs: dict[str, np.ndarray] = {}
        for port, array in zip(self._function.outputs, self._executed(entering), strict=True):
            binding, found = self._function.bindings[port.symbol], _leaving(port, array)
            if binding.role == "state":
                state[binding.name][...] = found
            else:
                outputs[binding.name] = found
        return outputs

    def _executed(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """What the reference model makes of arrays as TOSA holds them."""
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            given = [Path(folder, f"in{number}.npy") for number in range(len(arrays))]
            got = [Path(folder, f"out{number}.npy") for number in range(len(self._function.outputs))]
            for path, array in zip(given, arrays, strict=True):
                np.save(path, array)
            run(
                MODEL,
                [f"--tosa_file={self._file}", "--flatbuffer_dir=.", f"--output_dir={folder}", *_named(given, got)],
            )
            if missing := [path for path in got if not path.exists()]:
                raise ExecutionError(f"{MODEL} wrote {len(got) - len(missing)} results of {len(got)}")
            return [np.load(path) for path in got]


def _named(given: list[Path], got: list[Path]) -> list[str]:
    """The arguments that name the tensors of a function, as it is serialized, and their files."""
    sides = (("ifm", "TosaInput", given), ("ofm", "TosaOutput", got))
    found: list[str] = []
    for option, tensor, paths in sides:
        if paths:
            names = ",".join(f"{tensor}_{number}" for number in range(len(paths)))
            files = ",".join(path.name if option == "ofm" else str(path) for path in paths)
            found += [f"--{option}_name={names}", f"--{option}_file={files}"]
    return found


def _entering(port: Port, array: np.ndarray) -> np.ndarray:
    """What a port takes of an array of the caller's: the codes of its numbers where it takes codes."""
    return np.ascontiguousarray(to_held(port.computed(array)))


def _leaving(port: Port, array: np.ndarray) -> np.ndarray:
    """What callers get of what a port gives: the numbers of its codes where it gives codes."""
    return port.computed(from_held(array.reshape(port.shape), numpy_dtype(port.element)))
