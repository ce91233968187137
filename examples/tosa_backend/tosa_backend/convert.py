"""`convert-to-tosa`: functions of lowered `glow_high` as functions of TOSA."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.quantization import QuantizeOp
from glow_mlir.dialects.glow_high.storage import FunctionOp, GetOp, SaveOp
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.support.dataclass import dataclass
from tosa_backend import emitters as _emitters
from tosa_backend.builder import TosaBuilder
from tosa_backend.elements import held
from tosa_backend.ports import Port, Signature, dequantized_last, signature_of
from tosa_backend.rules import rule_of

assert _emitters


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
    signature = signature_of(function)
    block = Block(arg_types=[_type_of(port) for port in signature.inputs])
    b = TosaBuilder(function, block)
    results = _Conversion(b, signature).run(function)
    for op in reversed(list(block.ops)):
        if (
            not op.results[0].uses and op.results[0] not in results
        ):  # Constants that were wanted in another shape, and what feeds nothing.
            block.erase_op(op)
    block.add_op(func.ReturnOp(*results))
    types = [list(block.arg_types), [value.type for value in results]]
    return func.FuncOp(function.sym_name.data, (types[0], types[1]), Region(block))


def _type_of(port: Port) -> TensorType:
    return TensorType(held(port.element), port.shape)


class _Conversion:
    """One function on its way."""

    def __init__(self, b: TosaBuilder, signature: Signature) -> None:
        self.b = b
        self.signature = signature
        ports = zip(signature.inputs, b.block.args, strict=True)
        self._content: dict[str, SSAValue] = {port.symbol: argument for port, argument in ports}
        """Placeholder → what is in it."""
        self._coded = {port.symbol for port in signature.inputs if port.on_host is not None}
        self._given = {port.symbol for port in signature.outputs if port.on_host is not None}
        """Outputs that are codes here, and numbers for callers."""

    def run(self, function: FunctionOp) -> list[SSAValue]:
        """Write the operators in order, and give the results."""
        for op in function.block.ops:
            self.b.location = op.location
            if isinstance(op, GetOp):
                self._get(op)
            elif isinstance(op, SaveOp):
                self._save(op)
            elif isinstance(op, HighOp) and op.results[0] not in self.b.values:
                self._operator(op)
        results: list[SSAValue] = []
        for port in self.signature.outputs:
            value = self._content[port.symbol]
            # A tensor of a file is an argument, or one result.
            own = value in self.b.block.args or value in results
            results.append(self.b("identity", value) if own else value)
        return results

    def _get(self, op: GetOp) -> None:
        content = self._content.get(op.storage_name)
        if content is None:
            return  # A constant, which is written where it is read.
        if op.storage_name in self._coded:
            for use in op.result.uses:
                assert isinstance(use.operation, QuantizeOp)
                self.b.values[use.operation.result] = content
        else:
            self.b.values[op.result] = content

    def _save(self, op: SaveOp) -> None:
        coded = dequantized_last(op.input) if op.storage_name in self._given else None
        self._content[op.storage_name] = self.b.value(op.input if coded is None else coded.input)

    def _operator(self, op: HighOp) -> None:
        uses = list(op.results[0].uses)
        if uses and all(self._is_on_host(use.operation) for use in uses):
            return
        rule = rule_of(op)
        assert rule is not None, f"{op.name} is executed by no rule"
        self.b.values[op.results[0]] = rule.emit(op, self.b)

    def _is_on_host(self, op: Operation) -> bool:
        """Whether an operation saves numbers that the host makes of codes."""
        return isinstance(op, SaveOp) and op.storage_name in self._given
