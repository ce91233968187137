"""The CPU backend: machine code through the `llvm` dialect; it executes what its kernels accept."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from glow_mlir.backends.cpu.measured import measured
from glow_mlir.backends.cpu.targets import MACHINES, PRESETS, check_linking, check_processor, host_target, lacks
from glow_mlir.backends.cpu.tuning import Tuner
from glow_mlir.backends.interface import AllocateConstants, Compiling
from glow_mlir.codegen.build import build_artifact, zeroed
from glow_mlir.codegen.costs import KernelCosts
from glow_mlir.codegen.glow_low_to_scf import GlowLowToScfPass
from glow_mlir.codegen.kernel_backend import KernelBackend
from glow_mlir.codegen.selection.candidate import Candidate
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.target import Target, with_fields
from glow_mlir.driver.pipelines import ALLOCATED, MACHINE_CODE, Pipeline, machine_code_stages
from glow_mlir.errors import OptionError
from glow_mlir.ir.registry import backend
from glow_mlir.runtime import machine_code
from glow_mlir.runtime.artifact import Artifact
from glow_mlir.runtime.executable import Executable
from glow_mlir.runtime.pool_layout import MAX_THREADS


@backend("cpu")
class CpuBackend(KernelBackend):
    """Executes the operators that the kernels of this compiler accept."""

    name = "cpu"
    MAX_THREADS = MAX_THREADS
    MACHINE_CODE = True

    _tuner: Tuner | None = None

    def compile(self, compilation: Compiling, allocate: AllocateConstants | None = None) -> Artifact:
        """
        Machine code, constants and manifest of all functions.

        Raises `OptionError` for a pipeline that does not lead there.
        """
        pipeline = compilation.ladder
        if pipeline.stage_names[-len(MACHINE_CODE) :] != MACHINE_CODE:
            reason = f"pipeline '{pipeline.name}' does not end with the stages {', '.join(MACHINE_CODE)}"
            raise OptionError(reason, hint="Backend.pipeline() gives one that does")
        compilation.run(ALLOCATED.name)
        profile = bool(pipeline.option(GlowLowToScfPass.name, "profile", False))
        return compilation.finish(
            lambda passes: build_artifact(compilation.module, compilation.context, profile, passes, allocate or zeroed)
        )

    def load(self, artifact: Artifact, threads: int) -> Executable:
        return machine_code.load(artifact, threads)

    def targets(self) -> Mapping[str, Target]:
        return {name: self._own(target) for name, target in PRESETS.items()}

    def about_targets(self) -> Mapping[str, str]:
        return {name: machine.about for name, machine in MACHINES.items()}

    def host(self) -> Target:
        return self._own(host_target())

    def _own(self, target: Target) -> Target:
        """A target of this backend, or of a backend that extends it."""
        return target if target.backend == self.name else dataclasses.replace(target, backend=self.name)

    def check_target(self, target: Target) -> None:
        super().check_target(target)
        if not target.triple:
            raise OptionError(
                f"a target of the backend '{self.name}' says its triple", hint="such as x86_64-unknown-linux-gnu"
            )
        check_linking(target)
        check_processor(target.triple, target.cpu, target.features, target.pointer_bits)
        if target.pointer_bits < 64 and target.policy.threads > 1:
            raise OptionError("parts of a call are shared with pointers of 64 bits alone", hint="threads=1")

    def measured(self, target: Target) -> KernelCosts:
        return measured(target)

    def lacks(self, target: Target) -> str:
        return lacks(target)

    def pipeline(self, target: str | None = None, profile: bool = False) -> Pipeline:
        """
        The shared pipeline down to memory allocation, then structured functions, and lowering to the `llvm` dialect.
        """
        return super().pipeline(target, profile).then(*machine_code_stages(profile))

    def measured_best(
        self, op: Instruction, storage: Storage, target: Target, ways: Iterator[Candidate]
    ) -> Candidate | None:
        tuner, alone = self._tuner_of(storage), with_fields(target, {"threads": 1})
        found = tuner.fastest(op, alone, list(self.candidates(op, storage, alone)))
        if target.policy.threads > 1 and found is not None:
            # Results do not depend on threads, which only select among bitwise equal choices.
            same = [way for way in ways if way.arithmetic == found.arithmetic]
            found = tuner.fastest(op, target, same)
        return found

    def _tuner_of(self, storage: Storage) -> Tuner:
        """The tuner of a model, which lives until its instructions are selected."""
        if self._tuner is None or self._tuner.storage is not storage:
            self._tuner = Tuner(storage)
        return self._tuner
