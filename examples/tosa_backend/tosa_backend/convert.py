"""`convert-to-tosa`: functions of lowered `glow_high` as functions of TOSA."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.storage import FunctionOp, GetOp, SaveOp
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.support.dataclass import dataclass
from tosa_backend.builder import TosaBuilder
from tosa_backend.elements import held
from tosa_backend.ports import Borders, Port, borders_of
from tosa_backend.rules import rule_of


@dataclass(frozen=True)
class ConvertToTosaPass(ModulePass):
    """
    Put a function of TOSA in the place of each function of `glow_high`; storage goes into these.

    Arguments are inputs and state that is read, results outputs and state that is written, as `ports.py` has them.
    """

    name = "convert-to-tosa"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        converted = [converted_function(function) for function in high_functions(op)]
        block = op.body.block
        for old in reversed(list(block.ops)):
            block.erase_op(old)
        block.add_ops(converted)


def converted_function(function: FunctionOp) -> func.FuncOp:
    """A function of TOSA that computes what one of lowered `glow_high` does."""
    borders = borders_of(function)
    block = Block(arg_types=[_type_of(border.port) for border in borders.inputs])
    b = TosaBuilder(function, block)
    results = _Conversion(b, borders).run(function)
    for op in reversed(list(block.ops)):
        if not op.results[0].uses and op.results[0] not in results:  # Constants that were wanted in another shape.
            block.erase_op(op)
    block.add_op(func.ReturnOp(*results))
    types = [list(block.arg_types), [value.type for value in results]]
    return func.FuncOp(function.sym_name.data, (types[0], types[1]), Region(block))


def _type_of(port: Port) -> TensorType[Attribute]:
    return TensorType(held(port.element), port.shape)


class _Conversion:
    """One function on its way."""

    def __init__(self, b: TosaBuilder, borders: Borders) -> None:
        self.b = b
        self.borders = borders
        self._beyond = {border.port.symbol: border.beyond for border in (*borders.inputs, *borders.outputs)}
        """What the host computes in front of an input, or behind an output."""
        self._on_host = frozenset[Operation]().union(*self._beyond.values())
        self._content: dict[str, SSAValue] = {}
        """State → what is in it."""
        for border, argument in zip(borders.inputs, b.block.args, strict=True):
            self._content[border.port.symbol] = argument
            b.values.update(dict.fromkeys(border.values, argument))

    def run(self, function: FunctionOp) -> list[SSAValue]:
        """Write the operators in order, and give the results."""
        for op in function.block.ops:
            self.b.location = op.location
            if isinstance(op, GetOp):
                self._get(op)
            elif isinstance(op, SaveOp):
                self._save(op)
            elif isinstance(op, HighOp) and op.results[0] not in self.b.values and not self._is_on_host(op):
                rule = rule_of(op)
                assert rule is not None, f"{op.name} is executed by no rule"
                self.b.values[op.results[0]] = rule.emit(op, self.b)
        results: list[SSAValue] = []
        for border in self.borders.outputs:
            value = self.b.value(border.values[0])
            # A tensor of a file is an argument, or one result.
            own = value in self.b.block.args or value in results
            results.append(self.b("identity", value) if own else value)
        return results

    def _get(self, op: GetOp) -> None:
        """State that was written before is what it is now."""
        if op.result in self.b.values:
            self.b.values[op.result] = self._content[op.storage_name]

    def _save(self, op: SaveOp) -> None:
        if op.storage_name in self._content:
            self._content[op.storage_name] = self.b.value(op.input)

    def _is_on_host(self, op: Operation) -> bool:
        """Whether the host computes an operator for all that reads what it gives."""
        readers = [use.operation for result in op.results for use in result.uses]
        return op in self._on_host and all(
            op in self._beyond[reader.storage_name] if isinstance(reader, SaveOp) else reader in self._on_host
            for reader in readers
        )
