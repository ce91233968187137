"""`--check`: compare every layer of a model with a reference, and find the first wrong one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from glow_mlir.api.model_identity import is_ir
from glow_mlir.api.model_session import ModelSession
from glow_mlir.api.models import accepted_model, import_any
from glow_mlir.dialects.packages import REFERENCE_BACKEND
from glow_mlir.errors import OptionError
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import is_float_dtype
from glow_mlir.support.file_kinds import TFLITE
from glow_mlir.support.optional_packages import imported
from glow_mlir.tools.reports.tables import Alignment, print_table

LITERT = "litert"
"""The reference for models of TensorFlow Lite."""

REFERENCES: dict[str, str] = {
    REFERENCE_BACKEND: f"the {REFERENCE_BACKEND}",
    "onnxruntime": "onnxruntime",
    LITERT: "LiteRT's reference kernels",
}
"""Reference → its name in sentences."""

TOLERANCES: dict[str, tuple[float, float]] = {
    "bfloat16": (8e-2, 8e-2),
    "float16": (1e-2, 1e-2),
    "float32": (1e-3, 1e-3),
    "float64": (1e-8, 1e-8),
}
"""
Element type → tolerance relative to the element, and to the largest value of the layer; other types must be equal.

The tolerances allow for errors that accumulate over a hundred layers, because each layer is compared including the
errors of the layers before it. Between onnxruntime and exact arithmetic, ResNet-50 reaches 1.2e-4.
"""

MIN_SCALE = 1e-3
"""A lower bound for the largest value of a layer: after cancellation, only noise is left to compare."""

COLUMNS: dict[str, Alignment] = {
    "layer": "left",
    "kind": "left",
    "shape": "left",
    "max abs error": "right",
    "max rel error": "right",
    "": "left",
}

WHOLE = "output"
"""The kind of a model output from the normal compilation."""

Outputs = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Tolerance:
    """
    The allowed error of a value: `atol + rtol * |reference|`, as in numpy.

    A `None` is replaced by a default for the element type; the absolute part is then a share of the layer's largest
    value.
    """

    rtol: float | None = None
    atol: float | None = None

    def limits(self, reference: np.ndarray, scale: float) -> np.ndarray:
        """The limit for each element."""
        rtol, atol = TOLERANCES.get(reference.dtype.name, (0.0, 0.0))
        relative = rtol if self.rtol is None else self.rtol
        absolute = atol * max(MIN_SCALE, scale) if self.atol is None else self.atol
        finite = np.where(np.isfinite(reference), np.abs(reference.astype(np.float64)), 0.0)
        return absolute + relative * finite


@dataclass(frozen=True)
class Layer:
    """
    One compared value: name and kind of its layer, its largest error, absolute and relative to its largest magnitude.
    """

    name: str
    kind: str
    output: str
    shape: tuple[int, ...]
    error: float
    relative: float
    is_wrong: bool

    @property
    def row(self) -> list[str]:
        """The layer as a row of the table."""
        numbers = [f"{value:.3g}" for value in (self.error, self.relative)]
        return [self.name, self.kind, str(list(self.shape)), *numbers, "WRONG" if self.is_wrong else "ok"]


def compare(
    name: str, kind: str, output: str, actual: np.ndarray, reference: np.ndarray, tolerance: Tolerance
) -> Layer:
    """Compare the values of one layer; NaN agrees with NaN, and infinity with the same one."""
    if actual.shape != reference.shape or actual.dtype != reference.dtype:
        return Layer(name, kind, output, actual.shape, np.inf, np.inf, True)
    wide, expected = actual.astype(np.float64), reference.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        agree = (actual == reference) | (np.isnan(wide) & np.isnan(expected))
        # Different wide integers may round to the same double.
        least = 0.0 if is_float_dtype(reference.dtype) else 1.0
        distances = np.nan_to_num(np.abs(wide - expected), nan=np.inf, posinf=np.inf)
        errors = np.where(agree, 0.0, np.maximum(distances, least))
    magnitudes = np.abs(expected[np.isfinite(expected)])
    scale = float(magnitudes.max(initial=0.0))
    error = float(errors.max(initial=0.0))
    relative = 0.0 if error == 0 else error / scale if scale else np.inf
    is_wrong = bool(np.any((errors > tolerance.limits(reference, scale)) & ~agree))
    return Layer(name, kind, output, actual.shape, error, relative, is_wrong)


@dataclass(frozen=True)
class CheckReport:
    """The layers of a model in topological order, followed by the outputs of the normal compilation."""

    reference: str
    layers: Sequence[Layer]
    outputs: Sequence[Layer]
    key: str = "check"

    @property
    def is_right(self) -> bool:
        """Whether all layers and outputs agree."""
        return not any(layer.is_wrong for layer in (*self.layers, *self.outputs))

    @property
    def first_wrong(self) -> Layer | None:
        """The first wrong layer; everything it depends on is right."""
        return next((layer for layer in self.layers if layer.is_wrong), None)

    def verdict(self) -> str:
        """The result in one line."""
        wrong = self.first_wrong
        if wrong is not None:
            number = sum(layer.is_wrong for layer in self.layers)
            return f"first wrong layer: '{wrong.name}' ({wrong.kind}), of {number} wrong among {len(self.layers)}"
        if not self.is_right:
            names = ", ".join(f"'{layer.name}'" for layer in self.outputs if layer.is_wrong)
            alone = "every layer alone is right, so an optimization across layers is wrong" if self.layers else "wrong"
            return f"output {names}: {alone}"
        agreeing = f"{counted(len(self.layers), 'layer')} and {counted(len(self.outputs), 'output')}"
        return f"{agreeing} agree with {REFERENCES[self.reference]}"

    def show(self) -> None:
        """Print the table and the verdict."""
        found = [*self.layers, *self.outputs]
        alarming = {number for number, layer in enumerate(found) if layer.is_wrong}
        print_table(f"comparison with {REFERENCES[self.reference]}", COLUMNS, [layer.row for layer in found], alarming)
        print(f"check: {self.verdict()}")

    def data(self) -> dict[str, object]:
        """The report as JSON data."""
        wrong = self.first_wrong
        return {
            "reference": self.reference,
            "ok": self.is_right,
            "first_wrong": None if wrong is None else wrong.name,
            "layers": [
                {
                    "layer": layer.name,
                    "kind": layer.kind,
                    "output": layer.output,
                    "shape": list(layer.shape),
                    "max_abs_error": layer.error if np.isfinite(layer.error) else None,
                    "max_rel_error": layer.relative if np.isfinite(layer.relative) else None,
                    "ok": not layer.is_wrong,
                }
                for layer in (*self.layers, *self.outputs)
            ],
        }


def counted(number: int, noun: str) -> str:
    """`1 layer`, `2 layers`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class Comparison:
    """A comparison: the model with its options and inputs, the reference, and the tolerance."""

    model: Any
    options: Mapping[str, Any]
    """Keyword arguments of the session."""
    inputs: Outputs
    reference: str
    tolerance: Tolerance
    values: Outputs = field(default_factory=dict[str, np.ndarray])
    """Inputs that determine shapes."""

    def run(self, outputs: Outputs) -> CheckReport:
        """Compare all layers, and the given outputs of the normal compilation."""
        if is_tflite(self.model):
            compared = self._of_tflite()
        else:
            compared = self._of_module() if is_ir(self.model) else self._of_onnx()
        layers = [
            compare(*compared.layers[name], name, compared.actual[name], compared.expected[name], self.tolerance)
            for name in compared.layers
        ]
        # The model's own outputs come first in both runs, under their names in the file, which users know.
        pairs = zip(compared.expected.items(), outputs.values(), strict=False)
        whole = [compare(name, WHOLE, name, array, expected, self.tolerance) for (name, expected), array in pairs]
        return CheckReport(self.reference, layers, whole)

    def _of_onnx(self) -> Compared:
        from glow_mlir.frontends.onnx.intermediate_outputs import exposed_model

        exposed = exposed_model(self.model)
        actual = self._run(exposed.model, self.options, exposed.outputs)
        if self.reference == "onnxruntime":
            expected = run_onnxruntime(exposed.serialized(), self.inputs)
        else:
            module = import_any(exposed.model, self.options["dimensions"], values=self.values)
            expected = self._run(module, {"backend": REFERENCE_BACKEND}, exposed.outputs)
        return Compared(exposed.layers, actual, expected)

    def _of_tflite(self) -> Compared:
        from glow_mlir.tools.reports.tflite_check import exposed_tensors, run_litert

        model, sizes = accepted_model(self.model), self.options["dimensions"]
        exposed = exposed_tensors(model, sizes, self.values)
        options = {name: value for name, value in self.options.items() if name != "dimensions"}
        actual = self._run(exposed.module, options)
        if self.reference == LITERT:
            expected = run_litert(model, exposed, self.inputs)
        else:
            expected = self._run(exposed_tensors(model, sizes, self.values).module, {"backend": REFERENCE_BACKEND})
        return Compared(exposed.layers, actual, expected)

    def _of_module(self) -> Compared:
        from glow_mlir.rewriting.saved_results import with_saved_results

        module, layers = with_saved_results(import_any(self.model, {}))
        session = ModelSession.of(module, cache=False, **self.options)
        actual = self._outputs(session)
        expected = self._run(module, {"backend": REFERENCE_BACKEND, "entry": session.first.name})
        return Compared(layers.get(session.first.name, {}), actual, expected)

    def _run(self, model: Any, options: Mapping[str, Any], names: Sequence[str] | None = None) -> Outputs:
        """Compile and run a model; `names` are its output names in the file, if they differ from ours."""
        return self._outputs(ModelSession.of(model, cache=False, **options), names)

    def _outputs(self, session: ModelSession, names: Sequence[str] | None = None) -> Outputs:
        found = session.run({argument.name: self.inputs[argument.name] for argument in session.first.inputs})
        return dict(zip(names or found, found.values(), strict=True))


@dataclass(frozen=True)
class Compared:
    """Two runs of a model: the outputs that are layers (with name and kind), and all outputs of both runs."""

    layers: Mapping[str, tuple[str, str]]
    actual: Outputs
    expected: Outputs


def check_reference(reference: str, model: str | Path) -> None:
    """Raise `OptionError` if a model cannot be compared with the reference."""
    otherwise = f"--check {REFERENCE_BACKEND}"
    if reference == LITERT:
        from glow_mlir.tools.reports.tflite_check import litert

        if not is_tflite(model):
            raise OptionError("LiteRT runs models of TensorFlow Lite alone", hint=otherwise)
        litert()
    if reference == "onnxruntime":
        if is_ir(model) or is_tflite(model):
            kind = "models of TensorFlow Lite" if is_tflite(model) else "modules of ours"
            raise OptionError(f"onnxruntime runs ONNX models, not {kind}", hint=otherwise)
        onnxruntime()


def is_tflite(model: object) -> bool:
    """Whether a model is given as a file of TensorFlow Lite."""
    return isinstance(model, str | Path) and Path(model).suffix == TFLITE


def onnxruntime() -> Any:
    """The onnxruntime package; raises `OptionError` if it is not installed."""
    otherwise = f"--check {REFERENCE_BACKEND}"
    return imported("onnxruntime", "check", "--check onnxruntime needs onnxruntime", otherwise=otherwise)


def run_onnxruntime(model: bytes, inputs: Outputs) -> Outputs:
    """All outputs of a model in onnxruntime without optimizations; raises `OptionError` if it refuses the model."""
    package = onnxruntime()
    settings: Any = package.SessionOptions()
    settings.graph_optimization_level = package.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.log_severity_level = 4
    try:
        session: Any = package.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
        names: list[str] = [output.name for output in session.get_outputs()]
        results: list[np.ndarray] = session.run(names, dict(inputs))
    except Exception as error:
        # Its exceptions have no narrower common base class.
        raise OptionError(f"onnxruntime refuses the model: {' '.join(str(error).split())}") from error
    return dict(zip(names, results, strict=True))
