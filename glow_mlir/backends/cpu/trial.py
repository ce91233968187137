"""Programs of one instruction, to measure with which kernel and tiles it is the fastest."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp, i64
from xdsl.ir import Attribute, SSAValue

from glow_mlir.codegen.build import build_artifact
from glow_mlir.codegen.candidate import Candidate
from glow_mlir.codegen.glow_low_to_llvm import signature
from glow_mlir.codegen.target import Target
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.storage import ConstantOp, PlaceholderOp, StorageOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import FuncOp, ViewOp, WeightOp, root_of
from glow_mlir.dialects.shapes import element_of, shape_of, tensor
from glow_mlir.pipelines import ALLOCATED, pass_specs, passes_of
from glow_mlir.runtime.executable import Executable, aligned
from glow_mlir.storage import Storage

ENTRY = "main"


@dataclass(frozen=True)
class Trial:
    """
    An instruction by itself: the constants that it reads, and buffers of its own for everything else.

    Views stay views of as large a buffer, and operands that share a buffer share one.
    """

    op: Instruction
    storage: Storage

    @cached_property
    def module(self) -> ModuleOp:
        """A module whose only function runs the instruction, before a kernel is selected."""
        roots = list(dict.fromkeys(root_of(value) for value in self.op.operands))
        stored = [self._stored(root, f"buffer{index}") for index, root in enumerate(roots)]
        bound = [item.sym_name.data for item in stored if isinstance(item, PlaceholderOp)]
        function = FuncOp.named(ENTRY, bound)
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

    def _stored(self, root: SSAValue, name: str) -> StorageOp:
        """The constant behind a buffer, or a new placeholder."""
        known = constant_behind(root, self.storage)
        if known is not None:
            return known.clone()
        return PlaceholderOp.bound(name, tensor(shape_of(root), element_of(root)), "state")

    @cached_property
    def buffers(self) -> list[np.ndarray]:
        """What the function is bound to: random floats, and zeros of other types, which are valid as places too."""
        random = np.random.default_rng(0)
        arrays: list[np.ndarray] = []
        for op in self.module.body.block.ops:
            if isinstance(op, PlaceholderOp):
                shape, dtype = op.tensor_type.get_shape(), numpy_dtype(op.tensor_type.element_type)
                size = int(np.prod(shape, dtype=np.int64))
                array = aligned(size * dtype.itemsize).view(dtype).reshape(shape)
                array[...] = random.standard_normal(shape, np.float32) if dtype.kind == "f" else 0
                arrays.append(array)
        return arrays

    def executable(self, candidate: Candidate, target: Target, name: str) -> Executable:
        """The machine code of the instruction with a kernel and its tiles, for the target of that name."""
        module, context = self.module.clone(), Context()
        (function,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
        (op,) = (op for op in function.block.ops if isinstance(op, Instruction))
        candidate.write(op, Storage(module), target)
        if "parts" in op.properties:
            function.attributes["threads"] = IntegerAttr(target.threads, i64)
        for item in (*passes_of(pass_specs(["remove-unused-storage"])), *ALLOCATED.passes()):
            item.apply(context, module)
        return Executable(build_artifact(module, context, name), target.threads)

    def runs(self, candidates: Sequence[Candidate], target: Target, name: str, spread: int) -> list[Callable[[], None]]:
        """
        Functions that run the instruction once, with each of the candidates.

        Constants are read from other places each time, which are `spread` bytes altogether: in a network as large they
        have left the cache since the last inference.
        """
        programs = [self.executable(candidate, target, name) for candidate in candidates]
        total = sum(program.constants.nbytes for program in programs)
        copies = max(1, -(-spread // total)) if total else 1
        return [self._run(program, copies) for program in programs]

    def _run(self, program: Executable, copies: int) -> Callable[[], None]:
        places = [program.constants, *(_copied(program.constants) for _ in range(copies - 1))]
        turns = itertools.cycle(places)

        def run() -> None:
            program.constants = next(turns)
            program.call(self.buffers)

        return run


def _copied(array: np.ndarray) -> np.ndarray:
    copy = aligned(array.nbytes)
    copy[...] = array
    return copy


def identity(op: Instruction, storage: Storage) -> str:
    """
    What instructions have in common that take the same time: types, properties, bodies, which operands share a buffer,
    and which are constants.
    """
    roots = list(dict.fromkeys(root_of(value) for value in op.operands))
    shared = [str(roots.index(root_of(value))) for value in op.operands]
    constant = [str(index) for index, root in enumerate(roots) if constant_behind(root, storage) is not None]
    return f"{op.name} {signature(op)} buffers {' '.join(shared)} constants {' '.join(constant)}"


def constant_behind(root: SSAValue, storage: Storage) -> ConstantOp | None:
    """The constant that a buffer without views declares, or `None`."""
    owner = root.owner
    known = storage.by_name[owner.storage_name] if isinstance(owner, WeightOp) else None
    return known if isinstance(known, ConstantOp) else None
