"""Programs of a single instruction, to measure the fastest kernel and tiles for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from io import StringIO
from typing import cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType, f32
from xdsl.ir import Attribute, SSAValue
from xdsl.printer import Printer

from glow_mlir.codegen.build import build_artifact
from glow_mlir.codegen.glow_low_to_scf import GlowLowToScfPass
from glow_mlir.codegen.scf_to_llvm import ScfToLlvmPass
from glow_mlir.codegen.selection.candidate import Candidate
from glow_mlir.codegen.selection.pack_operands import whole_storage
from glow_mlir.constants.storage import Storage
from glow_mlir.constants.weights import add_weights
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.storage import ConstantOp, ContentOp, PlaceholderOp, StorageOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import FuncOp, ViewOp, WeightOp, root_of
from glow_mlir.dialects.shapes import element_of, shape_of, tensor
from glow_mlir.dialects.target import Target, TargetAttr
from glow_mlir.driver.pipelines import ALLOCATED, pass_specs, passes_of
from glow_mlir.ir.traversal import function_of, operations
from glow_mlir.runtime.aligned_memory import aligned
from glow_mlir.runtime.machine_code import MachineCode, MachineEntry
from glow_mlir.support.dataclass import dataclass

ENTRY = "main"


@dataclass(frozen=True)
class Trial:
    """
    A single instruction with the constants that it reads, and separate buffers for everything else. State that may be
    packed is a constant here, because it takes the same time.

    Views remain views of buffers of the same size, and operands that share a buffer still share one.
    """

    op: Instruction
    storage: Storage

    @cached_property
    def module(self) -> ModuleOp:
        """A module whose only function runs the instruction, before a kernel is selected."""
        roots = list(dict.fromkeys(root_of(value) for value in self.op.operands))
        written = {root_of(value) for qualifier, value in self.op.uses() if qualifier.writes}
        stored = [
            self._stored(root, f"buffer{index}", "state" if root in written else "input")
            for index, root in enumerate(roots)
        ]
        bound = [item.sym_name.data for item in stored if isinstance(item, PlaceholderOp)]
        function = FuncOp.named(ENTRY, bound, target=function_of(self.op).assigned)
        declared = [WeightOp.of(item) for item in stored]
        function.block.add_ops(declared)
        values: dict[SSAValue, SSAValue] = dict(zip(roots, (op.result for op in declared), strict=True))
        for value in dict.fromkeys(self.op.operands):
            if value not in values:
                view = ViewOp.of(values[root_of(value)], cast("MemRefType[Attribute]", value.type))
                function.block.add_op(view)
                values[value] = view.result
        function.block.add_op(self.op.clone(value_mapper=values))
        return ModuleOp([*stored, function])

    def _stored(self, root: SSAValue, name: str, role: str) -> StorageOp:
        """The constant of a buffer, a constant in place of state, or a new placeholder."""
        known, type_ = packable_behind(root, self.storage), tensor(shape_of(root), element_of(root))
        if isinstance(known, ConstantOp):
            return known.clone()
        if known is not None:
            return ConstantOp.of(name, type_, add_weights(_sample(type_)))
        return PlaceholderOp.bound(name, type_, role)

    @cached_property
    def buffers(self) -> list[np.ndarray]:
        """The arguments of the function: random floats, and zeros of other types, which are also valid indices."""
        return [_sample(op.tensor_type) for op in self.module.body.block.ops if isinstance(op, PlaceholderOp)]

    def executable(self, candidate: Candidate, target: Target) -> MachineEntry:
        """The machine code of the instruction with a kernel and its tiles, for a target that this machine can run."""
        module, context = self.module.clone(), Context()
        (function,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
        (op,) = (op for op in operations(function) if isinstance(op, Instruction))
        function.assigned = TargetAttr(target)
        candidate.write(op, Storage(module), target)
        for item in (*passes_of(pass_specs(["remove-unused-storage"])), *ALLOCATED.passes()):
            item.apply(context, module)
        code = MachineCode(
            build_artifact(module, context, passes=(GlowLowToScfPass(), ScfToLlvmPass())), target.policy.threads
        )
        return code.load(function.sym_name.data)

    def runs(self, candidates: Sequence[Candidate], target: Target, spread: int) -> list[Callable[[], None]]:
        """
        Functions that run the instruction once, one for each candidate.

        With a `spread`, float constants are replaced by random floats, read at another offset each time within that
        many bytes: in a network with as many weights, they would have left the cache since the last inference.
        """
        programs = [self.executable(candidate, target) for candidate in candidates]
        most = max(program.constants.nbytes for program in programs)
        reel = Reel.of(spread + most) if spread and self._has_floats_alone else None
        return [self._run(program, reel) for program in programs]

    @property
    def _has_floats_alone(self) -> bool:
        """Whether all constants are f32, so that their values do not affect the time."""
        constants = [op for op in self.module.body.block.ops if isinstance(op, ConstantOp)]
        return all(op.tensor_type.element_type == f32 for op in constants)

    def _run(self, program: MachineEntry, reel: Reel | None) -> Callable[[], None]:
        def run() -> None:
            if reel is not None:
                program.use_constants(reel.next(program.constants.nbytes))
            program.call(self.buffers)

        return run


def _sample(type_: TensorType[Attribute]) -> np.ndarray:
    """An aligned array of a type: random floats, or zeros of other types."""
    shape, dtype = shape_of(type_), numpy_dtype(type_.element_type)
    size = int(np.prod(shape, dtype=np.int64))
    array = aligned(size * dtype.itemsize).view(dtype).reshape(shape)
    array[...] = np.random.default_rng(size).standard_normal(shape, np.float32) if dtype.kind == "f" else 0
    return array


@dataclass
class Reel:
    """Random floats that are read piece by piece, cyclically."""

    floats: np.ndarray
    position: int = 0

    @staticmethod
    def of(size: int) -> Reel:
        """A reel of that many bytes."""
        array = aligned(size)
        some = np.random.default_rng(0).standard_normal(1 << 16, np.float32).view(np.uint8)
        array[...] = np.resize(some, size)
        return Reel(array)

    def next(self, size: int) -> np.ndarray:
        """The next `size` bytes, aligned to 64."""
        if self.position + size > self.floats.size:
            self.position = 0
        start, self.position = self.position, self.position + -(-size // 64) * 64
        return self.floats[start : start + size]


def identity(op: Instruction, storage: Storage) -> str:
    """
    A text that is equal for instructions that take the same time: types, properties, bodies, shared buffers, and which
    operands are constants, or packable state.
    """
    roots = list(dict.fromkeys(root_of(value) for value in op.operands))
    shared = [str(roots.index(root_of(value))) for value in op.operands]
    constant = [str(index) for index, root in enumerate(roots) if packable_behind(root, storage) is not None]
    return f"{op.name} {_text(op)} buffers {' '.join(shared)} constants {' '.join(constant)}"


def _text(op: Instruction) -> str:
    """Types of operands, properties and bodies, as text that is the same in all processes."""
    stream = StringIO()
    printer = Printer(stream)
    for name, _, value in op.named_uses():
        stream.write(f"{name}:")
        printer.print_attribute(value.type)
    for name, attribute in sorted(op.properties.items()):
        stream.write(f" {name}=")
        printer.print_attribute(attribute)
    for region in op.regions:
        printer.print_region(region)
    return stream.getvalue()


def packable_behind(root: SSAValue, storage: Storage) -> ContentOp | None:
    """The constant behind a buffer without views, or the state that its function does not change; else `None`."""
    return whole_storage(root, storage) if isinstance(root.owner, WeightOp) else None
