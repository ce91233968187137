"""Ways to execute an instruction: a kernel with its tiles, and how the choice is written on the instruction."""

from __future__ import annotations

from xdsl.dialects.builtin import DictionaryAttr, StringAttr

from glow_mlir.codegen.selection.kernel import Kernel, Tiles, add_scratch
from glow_mlir.codegen.selection.pack_operands import pack_operand, packable
from glow_mlir.codegen.selection.partitions import partition
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import buffer_type, byte_size
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Candidate:
    """One way to execute an instruction: a kernel with its tiles."""

    kernel: Kernel
    tiles: Tiles

    def __str__(self) -> str:
        tiles = ",".join(f"{name}={size}" for name, size in self.tiles.items())
        return f"{self.kernel.name}{{{tiles}}}"

    @property
    def arithmetic(self) -> tuple[str, ...]:
        """The key of candidates whose results have the same bits."""
        return (self.kernel.name, *(f"{name}={self.tiles.get(name, 0)}" for name in self.kernel.SUMMING))

    def scratch_bytes(self, op: Instruction, storage: Storage, target: Target) -> int:
        """The bytes of scratch that the choice needs, for one worker, once its operands are packed."""
        trial = op.clone()
        try:
            self._name(trial)
            packed: dict[str, DictionaryAttr] = {}
            for name, form in self.kernel.packed(trial, target).items():
                assert isinstance(op, DerivedInstruction)
                if packable(op, name, storage, form) is not None:
                    packed[name] = form.described()
            if packed:
                trial.properties["packing"] = DictionaryAttr(packed)
            return sum(byte_size(buffer_type(*buffer)) for buffer in self.kernel.scratch(trial, target))
        finally:
            trial.drop_all_references()

    def _name(self, op: Instruction) -> None:
        """Write kernel and tiles on an instruction."""
        op.properties["kernel"] = StringAttr(self.kernel.name)
        if self.tiles:
            op.properties["tiles"] = DictionaryAttr({name: to_attribute(size) for name, size in self.tiles.items()})

    def write(self, op: Instruction, storage: Storage, target: Target) -> None:
        """Write the choice on an instruction, with the packing, scratch operands and partition that follow from it."""
        self._name(op)
        for name, form in self.kernel.packed(op, target).items():
            assert isinstance(op, DerivedInstruction)
            pack_operand(op, name, storage, form)
        for shape, element in self.kernel.scratch(op, target):
            assert isinstance(op, DerivedInstruction)
            add_scratch(op, shape, element)
        if target.policy.threads > 1:
            partition(op, self.kernel, target)
