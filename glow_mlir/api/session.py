"""The public API: `InferenceSession`, in the shape that users of onnxruntime know."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from glow_mlir.api.compile_options import (
    FULL_PRECISION,
    CompileOptions,
    check_pipeline,
    count_threads,
    given_dimensions,
    names_of,
)
from glow_mlir.api.model_compiler import ModelCompiler
from glow_mlir.api.model_identity import model_backend
from glow_mlir.api.models import accepted_model
from glow_mlir.api.session_entry import EntrySession
from glow_mlir.dialects.packages import DEFAULT_BACKEND
from glow_mlir.errors import OptionError, UnsupportedError
from glow_mlir.runtime.executable import Executable
from glow_mlir.runtime.machine_code import MachineCode, MachineEntry
from glow_mlir.runtime.signature import missing_sizes
from glow_mlir.runtime.specializations import Specialization, SpecializationLimits, Specializations
from glow_mlir.support.symbols import Dimension

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from glow_mlir.driver.compiler import Observer
    from glow_mlir.driver.pipelines import PassObserver, Pipeline
    from glow_mlir.frontends.onnx.importer import ModelSource
    from glow_mlir.quantization.options import Quantization


class InferenceSession(EntrySession):
    """
    A model, compiled and ready to run.

    `model` is a path to an `.onnx` or `.mlir` file, the bytes of an ONNX model (`bytes`, `bytearray`, `memoryview`), a
    `ModelProto`, or a module of any stage down to `allocated`, which is left as it is. `dimensions` gives free
    dimensions their sizes; for those without, and for the values of inputs that fix shapes, the model is compiled when
    it is called, and `limits` says how many of these specializations are kept (docs/sizes.md). `backend` names one
    (docs/add-a-backend.md), by default the one that the functions of a module say; one that interprets runs a `.mlir`
    file or module just as it stands. Compiled models are kept on disk (docs/cache.md) unless `cache` is false.
    `observers` are told of each stage of a compilation down to `llvm`, and `pass_observers` of each pass down to
    `allocated`; a model from the cache goes through none. `disable` names passes to leave out, and `pipeline` takes the
    place of the backend's own: it says `target` and `profile` itself, and has to lead to what the backend loads. With
    the `accuracy` "strict", instead of "default", no kernel is used whose rounding errors are larger than those of
    plain sums (docs/floating-point.md). With `optimize` "size", instead of "speed", kernels are those with little code
    and memory; `ram_bytes` and `flash_bytes` limit what is written and what is only read (docs/memory.md). An inference
    computes in as many `threads`, the caller's among them; 0 stands for the number of cores. Results do not depend on
    it. With `tune`, kernels are chosen by measuring them; last digits then depend on what was measured, though not on
    `threads` (docs/tuning.md). `entry` names the function that `run` calls where a module has several; by default that
    is the only one, or `main`. All share constants and state. `quantize` says by which profile, and how, numbers become
    codes (docs/quantization.md). With the `precision` "bf16" or "f16", instead of "f32", floats of f32 are computed and
    stored in that, but for those of the nodes, or kinds of operators, in `keep_precision`; inputs and outputs keep
    their types. With `weights` "int8" or "int4", constant right operands of matrix products, and tables of embeddings,
    become codes with a scale for each 32, but for those that the nodes in `keep_precision` read. `configuration` is the
    path of a file that says all of that but `weights`, as `glow-tune` writes it (docs/tuning.md), and goes with none of
    it. Raises `GlowError` for whatever is wrong with the model, and `OptionError` for a `target` whose code this
    machine cannot run, a number of threads that there cannot be, or a `keep_precision` that keeps nothing from being
    narrower.

    Several threads may call `run` at once. The workers of `threads` serve one call at a time; one that finds them busy
    computes alone. Where the model has state, calls follow one another, each on the state that the one before it left.
    A child of `os.fork` has the state of that moment, perhaps of half a call that another thread was in.
    """

    def __init__(
        self,
        model: ModelSource | bytearray | memoryview | os.PathLike[str] | ModuleOp,
        *,
        backend: str | None = None,
        threads: int | None = None,
        dimensions: Mapping[str, Dimension] | None = None,
        target: str | None = None,
        profile: bool = False,
        cache: bool = True,
        observers: Sequence[Observer] = (),
        pipeline: Pipeline | None = None,
        disable: Sequence[str] = (),
        pass_observers: Sequence[PassObserver] = (),
        accuracy: str | None = None,
        optimize: str | None = None,
        ram_bytes: int | None = None,
        flash_bytes: int | None = None,
        tune: bool = False,
        entry: str | None = None,
        quantize: Quantization | None = None,
        precision: str | None = None,
        keep_precision: Sequence[str] = (),
        weights: str | None = None,
        configuration: str | os.PathLike[str] | None = None,
        limits: SpecializationLimits | None = None,
    ) -> None:
        count = count_threads(threads)
        check_pipeline(pipeline, target, profile)
        source = accepted_model(model)
        options = CompileOptions(
            backend=model_backend(source) if backend is None else backend,
            threads=count,
            dimensions=given_dimensions(dimensions),
            target=target,
            profile=profile,
            observers=tuple(observers),
            pipeline=pipeline,
            disable=names_of("disable", disable, "passes"),
            pass_observers=tuple(pass_observers),
            accuracy=accuracy,
            optimize=optimize,
            ram_bytes=ram_bytes,
            flash_bytes=flash_bytes,
            tune=tune,
            quantize=quantize,
            precision=precision or FULL_PRECISION,
            keep_precision=names_of("keep_precision", keep_precision, "nodes"),
            weights=weights or FULL_PRECISION,
        )
        self._options = options.configured(None if configuration is None else Path(configuration))
        compiler = ModelCompiler(source, self._options, cache)
        found = compiler.open()
        executable, self._seconds = compiler.executable(found, limits or SpecializationLimits())
        super().__init__(executable, {name: name for name in executable.names}, executable.chosen(entry))

    @property
    def executable(self) -> Executable:
        """What the backend runs; of several specializations the one that ran last, which an `OptionError` asks for."""
        return self._executable.current

    @property
    def specializations(self) -> list[Specialization]:
        """
        What is compiled for sizes and values of calls, the one that ran last at the end.

        Empty for a model without free dimensions and inputs that fix shapes.
        """
        return self._executable.kept() if isinstance(self._executable, Specializations) else []

    @property
    def shape_inputs(self) -> tuple[str, ...]:
        """The inputs whose values fix shapes, as far as calls have shown."""
        return self._executable.value_names if isinstance(self._executable, Specializations) else ()

    def require_sizes(self) -> None:
        """Raise `UnsupportedError` where the model is compiled only when it is called: sizes or values are missing."""
        if not isinstance(self._executable, Specializations):
            return
        if free := self._executable.signature.free:
            raise missing_sizes(free)
        listed = ", ".join(f"'{name}'" for name in self.shape_inputs)
        hint = f"'glow-import --value {self.shape_inputs[0]}=NUMBERS' makes a module for one value"
        raise UnsupportedError(f"the model is compiled for the values of inputs that fix shapes: {listed}", hint=hint)

    @property
    def compile_seconds(self) -> Mapping[str, float]:
        """
        Seconds that each stage of the compilation took; empty where the artifact came from the cache.

        Of several specializations, those of the one that ran last.
        """
        return self.specializations[-1].compile_seconds if self.specializations else self._seconds

    @property
    def machine_code(self) -> MachineCode:
        """The loaded machine code; raises `OptionError` for a backend without."""
        executable = self.executable
        if not isinstance(executable, MachineCode):
            reason = f"the backend '{self._options.backend}' has no machine code"
            raise OptionError(reason, hint=f"backend='{DEFAULT_BACKEND}'")
        return executable

    @property
    def machine_entry(self) -> MachineEntry:
        """The machine code of the entry of the session; raises `OptionError` for a backend without."""
        return self.machine_code.load(self._entry.name)

    @property
    def entry(self) -> str:
        """The name of the function that `run` calls by default."""
        return self._entry.name
