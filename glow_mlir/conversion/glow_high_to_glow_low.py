"""`glow-high-to-glow-low`: from operators on tensors to instructions on addresses (Glow's IRGen)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.analysis.samples import samples_of
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.glow_high.base import HighOp, operand_groups
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.samples import Samples
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp, SaveOp, StorageOp
from glow_mlir.dialects.glow_low.dialect import INSTRUCTIONS
from glow_mlir.dialects.glow_low.memory import AllocOp, CopyOp, DeallocOp, ViewOp, WeightOp, buffer_type, root_of
from glow_mlir.dialects.glow_low.memory import FuncOp as LowFuncOp
from glow_mlir.dialects.shapes import element_of, shape_of
from glow_mlir.errors import UnsupportedOperatorsError
from glow_mlir.ir.locations import described
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.traversal import own_operations, subtree
from glow_mlir.ir.value_names import value_name


@dataclass(frozen=True)
class GlowHighToGlowLowPass(ModulePass):
    """
    Turn each function of `glow_high` into one of `glow_low`: a buffer for each tensor, an instruction for each
    operator.

    Weights are declared first; allocations live until the end of the function. A reshape is a view, a save a copy; so
    is a read of state whose value is still used when the state has changed. Instructions whose algorithms may combine
    rows say which of them are of one sample (`samples`).
    """

    name = "glow-high-to-glow-low"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        block = op.body.block
        for function in high_functions(op):
            block.insert_op_before(FunctionConversion(function, storage).run(), function)
            block.erase_op(function)


@dataclass
class FunctionConversion:
    """The conversion of one function: which buffer each tensor became."""

    source: FuncOp
    storage: Storage
    buffers: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    weights: dict[str, WeightOp] = field(default_factory=dict[str, WeightOp])
    declarations: list[Operation] = field(default_factory=list[Operation])
    program: list[Operation] = field(default_factory=list[Operation])
    samples: Mapping[SSAValue, Samples] = field(default_factory=dict[SSAValue, Samples])

    def run(self) -> LowFuncOp:
        """The converted function."""
        source = self.source
        self.samples = samples_of(source, self.storage)
        target = LowFuncOp.named(source.sym_name.data, source.binding_names, source.location, source.assigned)
        for op in own_operations(source):
            if isinstance(op, GetOp):
                self._get(op)
            elif isinstance(op, SaveOp):
                self._save(op)
            elif isinstance(op, ReshapeOp):
                self._view(op)
            elif isinstance(op, HighOp):
                self._instruction(op)
            else:
                raise UnsupportedOperatorsError([(op.name, described(op.location))], by="the conversion to glow_low")
        allocations = [op for op in self.program if isinstance(op, AllocOp)]
        frees = [DeallocOp.of(op.result, location=op.location) for op in allocations]
        target.block.add_ops([*self.declarations, *self.program, *frees])
        return target

    def weight(self, name: str, user: Operation) -> SSAValue:
        """The buffer of storage `name`, declared once."""
        if name not in self.weights:
            op = self.storage.by_name[name]
            assert isinstance(op, StorageOp)
            self.weights[name] = WeightOp.of(op, op.location)
            hint = user.results[0].name_hint if user.results else None
            self.weights[name].result.name_hint = hint or value_name(name)
            self.declarations.append(self.weights[name])
        return self.weights[name].result

    def _get(self, op: GetOp) -> None:
        buffer = self.weight(op.storage_name, op)
        if is_overwritten(op):
            allocation = AllocOp.of(buffer_type(shape_of(op.result), element_of(op.result)), op.location)
            self.program += [allocation, CopyOp.of(allocation.result, buffer, location=op.location)]
            buffer = allocation.result
            buffer.name_hint = op.result.name_hint
        self.buffers[op.result] = buffer

    def _save(self, op: SaveOp) -> None:
        target, source = self.weight(op.storage_name, op), self.buffers[op.input]
        if root_of(source) is not target:  # State that is saved as it was read is where it belongs.
            self.program.append(CopyOp.of(target, source, location=op.location))

    def _view(self, op: ReshapeOp) -> None:
        type_ = buffer_type(shape_of(op.result), element_of(op.result))
        view = ViewOp.of(self.buffers[op.input], type_, op.location)
        self._keep(op.result, view.result)
        self.program.append(view)

    def _instruction(self, op: HighOp) -> None:
        results: list[SSAValue] = []
        for result in op.results:
            allocation = AllocOp.of(buffer_type(shape_of(result), element_of(result)), op.location)
            self._keep(result, allocation.result)
            self.program.append(allocation)
            results.append(allocation.result)
        inputs = [[self.buffers[value] for value in group if value is not None] for _, group in operand_groups(op)]
        properties = {name: value for name, value in op.properties.items() if name != "operandSegmentSizes"}
        if op.COMBINES_ROWS:
            rows = len(shape_of(op.results[0])) - 1
            properties["samples"] = to_attribute(self.samples[op.results[0]].runs(rows))
        instruction = INSTRUCTIONS[type(op)].of(*results, *inputs, properties=properties, location=op.location)
        self.program.append(instruction)

    def _keep(self, tensor: SSAValue, buffer: SSAValue) -> None:
        buffer.name_hint = tensor.name_hint
        self.buffers[tensor] = buffer


def is_overwritten(read: GetOp) -> bool:
    """Whether the value of a read is used, itself or reshaped, after a save to its storage."""
    if read.mutable is None:
        return False
    aliases: set[SSAValue] = {read.result}
    saved = False
    op = read.next_op
    while op is not None:
        if any(value in aliases for inner in subtree(op) for value in inner.operands):
            if saved:
                return True
            if isinstance(op, ReshapeOp):
                aliases.add(op.result)
        saved |= isinstance(op, SaveOp) and op.storage_name == read.storage_name
        op = op.next_op
    return False
