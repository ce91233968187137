"""A backend whose code is made by kernels: it executes the operators that they accept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from xdsl.ir import Operation

from glow_mlir.backends.interface import Backend
from glow_mlir.codegen.kernels.tiled import SUFFIX, TiledKernel, is_worth_parts, tiled, tiles_for
from glow_mlir.codegen.selection.acceptance import executes
from glow_mlir.codegen.selection.candidate import Candidate
from glow_mlir.codegen.selection.form import ByForm
from glow_mlir.codegen.selection.kernel import Kernel, kind_of
from glow_mlir.codegen.selection.selected import Fault, fault_of
from glow_mlir.codegen.selection.tables import TABLES
from glow_mlir.codegen.tile import Tile
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.control_flow import ControlFlowOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ExpandOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.shapes import has_static_shape
from glow_mlir.dialects.target import Target
from glow_mlir.errors import ModelError, OptionError
from glow_mlir.ir.locations import location_name, source_location
from glow_mlir.ir.run_time_sizes import require_numbers


def is_allowed(kernel: Kernel, target: Target, by_lines: bool) -> bool:
    """Whether a target's policy allows a kernel, which computes some lines of images if `by_lines`."""
    if (target.is_strict and not kernel.STRICT) or (by_lines and not kernel.ROW_TILING):
        return False
    return kernel.LEAN or target.policy.optimize != "size"


WITHOUT_KERNEL = (ConcatOp, ExpandOp, ReshapeOp, TransposeOp)
"""Operators that are views, or that the pass `decompose-data-movement` turns into copies between views."""


class KernelBackend(Backend):
    """Executes every operator that a registered kernel accepts, and those that need no kernel."""

    KEEPS_MODULE = False
    TABLES = (TABLES,)

    def supports(self, op: Operation) -> bool:
        # Kernels that pack their operands need constants, which an operator need not have.
        general = (kernel for kernel in self._kernels_for(op) if not kernel.ONLY_PACKED)
        without = isinstance(op, (*WITHOUT_KERNEL, ControlFlowOp))
        return without or self._supported.once(op, lambda: any(k.accepts(op) for k in general))

    def can_select(self, op: Operation, storage: Storage, target: Target) -> bool:
        return self._guess(op, storage, target) is not None

    def can_fuse(self, op: Operation, storage: Storage, target: Target) -> bool:
        return self._fused.once(op, lambda: self._can_fuse(op, storage, target), storage, target)

    def _can_fuse(self, op: Operation, storage: Storage, target: Target) -> bool:
        guess = self._guess(op, storage, target)
        if not isinstance(guess, TiledKernel):
            return guess is not None
        tile = guess.tile_of(op)
        if tile is None or not tile.staged:
            return True
        # The kernel has to be the one that the instruction gets without the bodies that are stacks of tiles.
        alone = self._without_stacks(tile, storage, target)
        return alone in (None, guess.inner, guess) and guess.is_worth(tile, target)

    def _without_stacks(self, tile: Tile, storage: Storage, target: Target) -> Kernel | None:
        """The kernel that an instruction gets without the bodies that are stacks of its tiles."""
        return self._guess(tile.whole(), storage, target)

    def supports_strided_inner(self, op: Operation, storage: Storage, target: Target) -> bool:
        guess = self._guess(op, storage, target)
        return guess is not None and guess.takes_strided_inner(op, target)

    def supports_row_tiling(self, op: Operation, storage: Storage, target: Target, must_be_best: bool = True) -> bool:
        found = self._first(op, storage, target, by_lines=not must_be_best)
        return found is not None and found.kernel.ROW_TILING

    def select(
        self, op: Operation, storage: Storage, target: Target, tune: bool = False, capacity: int | None = None
    ) -> None:
        if not isinstance(op, Instruction):
            return
        ways = self.candidates(op, storage, target)
        if capacity is not None:
            every = list(ways)
            ways = iter([way for way in every if way.scratch_bytes(op, storage, target) <= capacity] or every)
        if tune:
            found = self.measured_best(op, storage, target, ways)
        elif capacity is None:
            found = self._first(op, storage, target)
        else:
            found = next(ways, None)
        if found is None:
            require_numbers(op, "no kernel")
        else:
            found.write(op, storage, target)

    def measured_best(
        self, op: Instruction, storage: Storage, target: Target, ways: Iterator[Candidate]
    ) -> Candidate | None:
        """The fastest of some ways to execute an instruction; raises `OptionError` if the backend cannot measure."""
        raise OptionError(f"the backend '{self.name}' measures no kernels", hint="tune=False")

    def check_selected(self, op: Operation, target: Target) -> None:
        assert isinstance(op, Instruction)
        fault = self._faults.once(op, lambda: fault_of(op, self.kernels, target), target=target)
        if fault is not None:
            reason, hint = fault
            location = source_location(op)
            raise ModelError(reason, file=location, node=location_name(op.location), hint=hint)

    def candidates(
        self, op: Operation, storage: Storage, target: Target, by_lines: bool = False
    ) -> Iterator[Candidate]:
        """
        Ways to execute an instruction: first those of the first profitable kernel, the best guess first; then others.

        An instruction that computes some lines of an image, or will do so, `by_lines`, has only the ways that can.
        """
        rest: list[Candidate] = []
        by_lines = by_lines or "image_lines" in op.properties
        is_decided = False
        allowed = [kernel for kernel in self._kernels_for(op) if is_allowed(kernel, target, by_lines)]
        for kernel in allowed:
            if not executes(kernel, op):
                continue
            own = [Candidate(kernel, tiles) for tiles in kernel.candidates(op, storage, target)]
            if own and not is_decided and kernel.is_profitable(op, storage, target):
                is_decided = True
                if not kernel.AXES and isinstance(op, Instruction) and is_worth_parts(op, target):
                    yield from self._tiled(op, [kernel], storage, target)
                yield from own
            else:
                rest += own
        if is_decided:
            yield from rest
        elif (isinstance(op, DerivedInstruction) and op.bodies) or not all(map(has_static_shape, op.operands)):
            yield from self._tiled(op, allowed, storage, target)

    def _tiled(self, op: Operation, kernels: Sequence[Kernel], storage: Storage, target: Target) -> Iterator[Candidate]:
        """Ways to execute an instruction tile by tile, with the first of some kernels that can."""
        all_tiles = tiles_for(op)
        for tile in all_tiles:
            alone = self._without_stacks(tile, storage, target) if tile.staged else None
            first = alone.inner if isinstance(alone, TiledKernel) else alone
            for kernel in sorted(kernels, key=lambda kernel: kernel is not first):
                if executes(kernel, tile.plain) and kernel.is_profitable(tile.plain, storage, target):
                    by_tiles = self.kernels[kernel.name + SUFFIX]
                    by_tiles.tile_of(op, all_tiles)
                    found = [Candidate(by_tiles, tiles) for tiles in by_tiles.candidates(op, storage, target)]
                    yield from found
                    if found:
                        return

    @cached_property
    def kernels(self) -> dict[str, Any]:
        whole = super().kernels
        return {**whole, **{by_tiles.name: by_tiles for by_tiles in map(tiled, whole.values())}}

    def _kernels_for(self, op: Operation) -> Sequence[Kernel]:
        """The kernels that are candidates for an operator, or a whole instruction."""
        kind = kind_of(op)
        if kind not in self._by_kind:
            whole = [kernel for kernel in self.kernels.values() if not isinstance(kernel, TiledKernel)]
            self._by_kind[kind] = [kernel for kernel in whole if kernel.is_for(op)]
        return self._by_kind[kind]

    @cached_property
    def _by_kind(self) -> dict[type[Operation], Sequence[Kernel]]:
        """Operator → the kernels that are candidates for it."""
        return {}

    def _guess(self, op: Operation, storage: Storage, target: Target) -> Kernel | None:
        """The kernel that an instruction, as it is now, gets without measurements."""
        found = self._first(op, storage, target)
        return None if found is None else found.kernel

    def _first(self, op: Operation, storage: Storage, target: Target, by_lines: bool = False) -> Candidate | None:
        """The first of the `candidates`."""
        ways = self._by_lines if by_lines else self._ways
        return ways.once(op, lambda: next(self.candidates(op, storage, target, by_lines), None), storage, target)

    # Results for operators and instructions, cached by their form.

    @cached_property
    def _supported(self) -> ByForm[bool]:
        return ByForm()

    @cached_property
    def _fused(self) -> ByForm[bool]:
        return ByForm()

    @cached_property
    def _ways(self) -> ByForm[Candidate | None]:
        return ByForm()

    @cached_property
    def _by_lines(self) -> ByForm[Candidate | None]:
        return ByForm()

    @cached_property
    def _faults(self) -> ByForm[Fault | None]:
        return ByForm()
