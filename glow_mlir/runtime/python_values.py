"""Inputs and outputs that are not tensors of numbers, converted around entries that compute on tensors of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from glow_mlir.runtime.artifact import Binding
from glow_mlir.runtime.device_array import on_host
from glow_mlir.runtime.executable import EntryPoint, Executable
from glow_mlir.runtime.signature import Argument
from glow_mlir.runtime.state import State
from glow_mlir.runtime.string_table import CallStrings, StringTable
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import STRING

Form = Mapping[str, Any]
"""
The form of a value, as JSON data; one of

- `{"tensor": NAME}`: the tensor itself,
- `{"strings": NAME}`: the strings whose numbers are in a tensor,
- `{"sequence": [FORM, …]}`: a list,
- `{"maps": NAME, "keys": [KEY, …]}`: a list of dictionaries, one for each row of a matrix of values,
- `{"none": true}`: an empty optional.
"""

ENTRIES, STRINGS, OUTPUTS = "entries", "strings", "outputs"
"""Keys of a module's data: for each entry by name the string inputs and the outputs, and all strings."""


@dataclass(frozen=True)
class EntryValues:
    """The string inputs of an entry, and its outputs with name, ONNX type and form."""

    strings: frozenset[str]
    outputs: tuple[tuple[str, str, Form], ...]

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> EntryValues:
        """The values from JSON data; raises `KeyError` or `TypeError` for anything else."""
        outputs = ((item["name"], item["type"], item["form"]) for item in data[OUTPUTS])
        return EntryValues(frozenset(data[STRINGS]), tuple(outputs))


class PythonValuesEntry(EntryPoint):
    """An entry whose callers pass and receive strings, sequences, maps and optionals."""

    def __init__(self, entry: EntryPoint, values: EntryValues, table: StringTable) -> None:
        inputs = [self._as_strings(item, values.strings) for item in entry.bindings if item.role == "input"]
        self._flat = {item.name: item for item in entry.bindings if item.role == "output"}
        super().__init__(entry.name, [*inputs, *self._flat.values()], State([]))
        self._entry = entry
        self._values = values
        self._table = table

    @staticmethod
    def _as_strings(binding: Binding, strings: frozenset[str]) -> Binding:
        return replace(binding, dtype=STRING) if binding.name in strings else binding

    @property
    def outputs(self) -> tuple[Argument, ...]:
        return tuple(self._argument(*item) for item in self._values.outputs)

    def _argument(self, name: str, type_: str, form: Form) -> Argument:
        if "tensor" in form or "strings" in form:
            found = Argument.of(self._flat[form.get("tensor") or form["strings"]])
            return Argument(name, STRING if "strings" in form else found.dtype, found.shape)
        return Argument(name, "", (), type_)

    def _call(self, inputs: Mapping[str, np.ndarray], state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        table = CallStrings(self._table)
        strings = self._values.strings
        given = {
            name: table.numbers(value, f"input '{name}'") if name in strings else value
            for name, value in inputs.items()
        }
        found = self._entry.run(given)
        return {name: cast("Any", _made(form, found, table)) for name, _, form in self._values.outputs}


def _made(form: Form, found: Mapping[str, np.ndarray], table: StringTable) -> object:
    """The Python value of a form."""
    if "tensor" in form:
        return found[form["tensor"]]
    if "strings" in form:
        return table.strings(on_host(found[form["strings"]]))
    if "sequence" in form:
        return [_made(item, found, table) for item in form["sequence"]]
    if "maps" in form:
        keys = form["keys"]
        return [dict(zip(keys, row, strict=True)) for row in found[form["maps"]].tolist()]
    return None


class PythonValuesExecutable(Executable):
    """An executable some of whose entries have values that are not tensors of numbers."""

    def __init__(self, executable: Executable, data: Mapping[str, Any]) -> None:
        super().__init__(executable.names, executable.state)
        self.executable = executable
        """The executable on tensors of numbers."""
        self._table = StringTable(cast("Sequence[str]", data[STRINGS]))
        self._values = {name: EntryValues.from_data(item) for name, item in data[ENTRIES].items()}

    @property
    def memory(self) -> dict[object, int]:
        return self.executable.memory

    @property
    def activation_bytes(self) -> int:
        return self.executable.activation_bytes

    @property
    def current(self) -> Executable:
        return self.executable.current

    def load(self, name: str) -> EntryPoint:
        entry = self.executable.load(name)
        return PythonValuesEntry(entry, self._values[name], self._table) if name in self._values else entry


def with_python_values(executable: Executable, data: Mapping[str, Any] | None) -> Executable:
    """Wrap an executable so that callers use the Python values described by its module, see `ir.python_values`."""
    return PythonValuesExecutable(executable, data) if data else executable
