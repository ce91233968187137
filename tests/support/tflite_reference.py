"""LiteRT's reference kernels, for comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from glow_mlir import InferenceSession
from glow_mlir.frontends.tflite.file import TfliteFile
from glow_mlir.frontends.tflite.importer import import_tflite

WITHOUT_REFERENCE = ("CEIL", "ELU", "ROUND", "LOCAL_RESPONSE_NORMALIZATION")
"""Operators that are compared with LiteRT's default kernels: it has no reference kernel, or one of another meaning."""

MAX_ERROR = 3e-6
"""The distance of floats that is allowed, as a share of the largest number of a tensor."""

MAX_COUNTED = 1000
"""How many different values of a tensor are counted."""


def reference(model: bytes, kind: str = "", is_all_kept: bool = False) -> Any:
    """An interpreter with the reference kernels, where the operator has one; it may keep all tensors."""
    interpreter: Any = pytest.importorskip("ai_edge_litert.interpreter")
    kernels = interpreter.OpResolverType
    chosen = kernels.BUILTIN_WITHOUT_DEFAULT_DELEGATES if kind in WITHOUT_REFERENCE else kernels.BUILTIN_REF
    found = interpreter.Interpreter(
        model_content=model, experimental_op_resolver_type=chosen, experimental_preserve_all_tensors=is_all_kept
    )
    found.allocate_tensors()
    return found


class AllTensors:
    """A model here and in LiteRT, whose outputs and tensors in between are compared call by call."""

    def __init__(self, model: bytes) -> None:
        self.file = TfliteFile.of(memoryview(model))
        graph = self.file.subgraphs[0]
        made = {number for operator in graph.operators for number in operator.outputs} - {*graph.outputs}
        self._numbers = sorted(number for number in made if graph.tensors[number].dtype != "resource")
        self._session = InferenceSession(import_tflite(self.file, tensors=self._numbers), threads=1)
        self._reference = reference(model, is_all_kept=True)
        self._numbers = [*graph.outputs, *self._numbers]
        self._largest, self._errors = dict.fromkeys(self._numbers, 0.0), dict.fromkeys(self._numbers, 0.0)
        self.seen: dict[int, set[float]] = {number: set() for number in self._numbers}
        """Number of a tensor → values that it had."""

    def compare(self, inputs: Sequence[np.ndarray]) -> None:
        """Call both; raises `AssertionError` for an integer that differs."""
        names = [item.name for item in self._session.get_inputs()]
        for number, array in zip(self.file.subgraphs[0].inputs, inputs, strict=True):
            self._reference.set_tensor(number, array)
        self._reference.invoke()
        results = self._session.run(None, dict(zip(names, inputs, strict=True)))
        for number, found in zip(self._numbers, results, strict=True):
            wanted = self._reference.get_tensor(number)
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            if wanted.dtype.kind == "f":
                self._largest[number] = max(self._largest[number], np.abs(wanted).max(initial=0))
                self._errors[number] = max(self._errors[number], np.abs(found - wanted).max(initial=0))
            else:
                name = self.file.subgraphs[0].tensors[number].name
                np.testing.assert_array_equal(found, wanted, err_msg=f"{number}: {name}")
            if len(self.seen[number]) < MAX_COUNTED:
                self.seen[number] |= {*np.unique(wanted)[:MAX_COUNTED].tolist()}

    def check_floats(self) -> None:
        """Raise `AssertionError` unless floats of all calls so far are as good as equal."""
        for number in self._numbers:
            assert self._errors[number] <= MAX_ERROR * self._largest[number], (
                self.file.subgraphs[0].tensors[number].name
            )
