"""Programs of TOSA on Arm's reference model: what `load` makes of what `compile` gave."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
from xdsl.dialects import func

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.errors import ExecutionError
from glow_mlir.interpreter.semantics import apply_semantics
from glow_mlir.runtime.artifact import Binding
from glow_mlir.runtime.executable import EntryPoint, Executable
from glow_mlir.runtime.state import Initial, State
from glow_mlir.support.dataclass import dataclass
from tosa_backend.elements import from_held, to_held
from tosa_backend.ports import Port, Signature
from tosa_backend.text import tosa_text
from tosa_backend.tools import MODEL, run, serialize


@dataclass(frozen=True)
class TosaFunction:
    """One function: what callers give and get, by storage; its ports; and the program."""

    name: str
    bindings: Mapping[str, Binding]
    """Symbol of storage → the binding, in the order in which callers see them."""
    signature: Signature
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
        self._folder = tempfile.TemporaryDirectory(prefix="glow-tosa-")
        self._file = Path(self._folder.name, "program.tosa")
        function.write(self._file)

    def _call(self, inputs: Mapping[str, np.ndarray], state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        given = {"input": inputs, "state": state}
        bindings, signature = self._function.bindings, self._function.signature
        arrays = [
            _entering(port, given[bindings[port.symbol].role][bindings[port.symbol].name]) for port in signature.inputs
        ]
        outputs: dict[str, np.ndarray] = {}
        for port, array in zip(signature.outputs, self._executed(arrays), strict=True):
            binding, found = bindings[port.symbol], _leaving(port, array)
            if binding.role == "state":
                state[binding.name][...] = found
            else:
                outputs[binding.name] = found
        return outputs

    def _executed(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """What the reference model makes of arrays as TOSA holds them."""
        with tempfile.TemporaryDirectory(dir=self._folder.name) as folder:
            given = [Path(folder, f"in{number}.npy") for number in range(len(arrays))]
            got = [Path(folder, f"out{number}.npy") for number in range(len(self._function.signature.outputs))]
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
    codes = array if port.on_host is None else apply_semantics(port.on_host, [array, None, None])[0]
    return np.ascontiguousarray(to_held(codes))


def _leaving(port: Port, array: np.ndarray) -> np.ndarray:
    """What callers get of what a port gives: the numbers of its codes where it gives codes."""
    found = from_held(array.reshape(port.shape), numpy_dtype(port.element))
    return found if port.on_host is None else apply_semantics(port.on_host, [found, None, None])[0]
