"""The CPU backend: machine code through the `llvm` dialect; it executes what its kernels accept."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from xdsl.ir import Operation

from glow_mlir.backends.cpu.tuning import Tuner
from glow_mlir.backends.interface import Backend, Setting
from glow_mlir.codegen.bodies import executes
from glow_mlir.codegen.selection.candidate import Candidate
from glow_mlir.codegen.selection.kernel import Kernel
from glow_mlir.codegen.selection.selected import fault_of
from glow_mlir.codegen.selection.tables import TABLES
from glow_mlir.codegen.target import Target, target_named
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ExpandOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.driver.pipelines import Pipeline, llvm
from glow_mlir.errors import ModelError
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.registry import backend
from glow_mlir.ir.text import position_of
from glow_mlir.runtime.pool_layout import MOST_THREADS

WITHOUT_KERNEL = (ConcatOp, ExpandOp, ReshapeOp, TransposeOp)
"""Operators that are views, or that the pass `decompose-data-movement` makes copies between views."""


@backend("cpu")
class CpuBackend(Backend):
    """Executes every operator for which a kernel is registered that accepts it, and those that need none."""

    name = "cpu"
    MOST_THREADS = MOST_THREADS
    TABLES = (TABLES,)

    _tuner: Tuner | None = None

    def check_target(self, target: str) -> None:
        if target != "host":  # Which is always there, and takes a while to ask.
            target_named(target)

    def supports(self, op: Operation) -> bool:
        # Kernels that pack their operands need constants, which an operator need not have.
        general = (kernel for kernel in self.kernels.values() if not kernel.ONLY_PACKED)
        return isinstance(op, WITHOUT_KERNEL) or any(kernel.accepts(op) for kernel in general)

    def can_select(self, op: Operation, setting: Setting) -> bool:
        return self._guess(op, setting) is not None

    def supports_strided_inner(self, op: Operation, setting: Setting) -> bool:
        guess = self._guess(op, setting)
        return guess is not None and guess.STRIDED_INNER

    def prologue_reads(self, op: Operation, setting: Setting) -> int:
        guess = self._guess(op, setting)
        return int(guess is not None and guess.PROLOGUE)

    def supports_row_tiling(self, op: Operation, setting: Setting) -> bool:
        guess = self._guess(op, setting)
        return guess is not None and guess.ROW_TILING

    def cache_bytes(self, target: str) -> int:
        return target_named(target).l2_bytes

    def pipeline(self, target: str = "host", profile: bool = False) -> Pipeline:
        """The shared one down to places in memory, then the `llvm` dialect."""
        return super().pipeline(target, profile).then(llvm(target, profile))

    def select(self, op: Operation, setting: Setting, threads: int = 1, tune: bool = False) -> None:
        if not isinstance(op, Instruction):
            return
        storage, accuracy = setting.storage, setting.accuracy
        machine = dataclasses.replace(target_named(setting.target), threads=threads)
        ways = self.candidates(op, storage, machine, accuracy)
        if tune:
            tuner, alone = self._tuner_of(storage, setting.target), dataclasses.replace(machine, threads=1)
            found = tuner.fastest(op, alone, list(self.candidates(op, storage, alone, accuracy)))
            if threads > 1 and found is not None:
                # Results do not depend on threads: these choose among what has the same bits.
                same = [way for way in ways if way.arithmetic == found.arithmetic]
                found = tuner.fastest(op, machine, same)
        else:
            found = next(ways, None)
        if found is not None:
            found.write(op, storage, machine)

    def check_selected(self, op: Operation, target: str, threads: int) -> None:
        assert isinstance(op, Instruction)
        fault = fault_of(op, self.kernels, dataclasses.replace(target_named(target), threads=threads))
        if fault is not None:
            reason, hint = fault
            place = position_of(op.location)
            raise ModelError(reason, file=place, node=location_name(op.location), hint=hint)

    def _tuner_of(self, storage: Storage, target: str) -> Tuner:
        """The tuner of a model, which lives as long as its instructions are selected."""
        if self._tuner is None or self._tuner.storage is not storage:
            self._tuner = Tuner(target, storage)
        return self._tuner

    def candidates(self, op: Operation, storage: Storage, target: Target, accuracy: str) -> Iterator[Candidate]:
        """Ways to execute an instruction: those of the first kernel that pays, the best guess first; then others."""
        rest: list[Candidate] = []
        by_lines = "image_lines" in op.properties
        is_decided = False
        for kernel in self.kernels.values():
            if (accuracy == "strict" and not kernel.STRICT) or (by_lines and not kernel.ROW_TILING):
                continue
            if not executes(kernel, op):
                continue
            own = [Candidate(kernel, tiles) for tiles in kernel.candidates(op, storage, target)]
            if own and not is_decided and kernel.is_profitable(op, storage, target):
                is_decided = True
                yield from own
            else:
                rest += own
        if is_decided:
            yield from rest

    def _guess(self, op: Operation, setting: Setting) -> Kernel | None:
        """The kernel that an instruction gets, as it is now, where nothing is measured."""
        ways = self.candidates(op, setting.storage, target_named(setting.target), setting.accuracy)
        found = next(ways, None)
        return None if found is None else found.kernel
