"""One structured function of the `llvm` dialect as a function of OpenCL C."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.dialects.llvm import ConstantOp, FuncOp, LLVMVoidType, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from glow_mlir.codegen.llvm.text import EmissionError
from glow_mlir.codegen.opencl_c.lane_rules import LANE_RULES, splat_scalar
from glow_mlir.codegen.opencl_c.literals import element_literal, numbers_of
from glow_mlir.codegen.opencl_c.memory_rules import MEMORY_RULES, NOTHING, STATEMENTS, bytes_of, call, integer
from glow_mlir.codegen.opencl_c.rules import BY_INTRINSIC, EXPRESSIONS, Rule, signed
from glow_mlir.codegen.opencl_c.scope import Pieces, is_mask, is_pointer, is_vector, lanes_of, picked, resized_mask
from glow_mlir.codegen.opencl_c.spaces import GLOBAL, PRIVATE, spaces_of
from glow_mlir.codegen.opencl_c.types import element_name, info, of_lanes, piece_sizes, signed_name
from glow_mlir.dialects.early_return import ReturnIfOp
from glow_mlir.ir.traversal import own_operations

RULES = {**EXPRESSIONS, **LANE_RULES, **MEMORY_RULES}

MASK_BITS = 32
"""The width of mask lanes that loops and branches pass on."""

_UNDEFINED = frozenset({"llvm.mlir.zero", "llvm.mlir.undef", "llvm.mlir.poison"})
"""Operations whose value is zero, or undefined."""

_WORD = re.compile(r"\w+")


class Program(Protocol):
    """The parts of a program that functions share."""

    def access_type(self, name: str, align: int) -> str:
        """The type of accesses to memory with that alignment."""
        ...

    def table(self, name: str) -> str:
        """The name of a table."""
        ...

    def variant(self, name: str, spaces: Sequence[str]) -> str:
        """The name of a function for pointers in those address spaces."""
        ...


class FunctionText:
    """A function that is being written, for arguments that point into given address spaces."""

    def __init__(self, program: Program, op: FuncOp, spaces: Sequence[str]) -> None:
        self.op = op
        self.spaces = dict(spaces_of(op.body, spaces))
        self.mask_bits: dict[SSAValue, int] = {}
        self._program = program
        self._pieces: dict[SSAValue, Pieces] = {}
        self._lines: list[str] = []
        self._depth = 1
        self._top: list[str] = []
        self._count = 0
        for argument in op.body.block.args:
            self._name(argument)

    # ---- for rules

    def pieces(self, value: SSAValue) -> Pieces:
        """A value as text."""
        return self._pieces[value]

    def line(self, text: str) -> None:
        """Write a statement."""
        self._lines.append("  " * self._depth + text)

    def access_type(self, name: str, align: int) -> str:
        """The type of accesses to memory with that alignment."""
        return self._program.access_type(name, align)

    def callee(self, name: str, spaces: Sequence[str]) -> str:
        """The name of a function for pointers in those address spaces."""
        return self._program.variant(name, spaces)

    def table(self, name: str) -> str:
        """The name of a table of the module."""
        return self._program.table(name)

    def fresh(self) -> str:
        """A name that is not in use."""
        self._count += 1
        return f"v{self._count}"

    # ---- the function

    @property
    def result(self) -> str:
        """The type of the result."""
        output = self.op.function_type.output
        return "void" if isinstance(output, LLVMVoidType) else of_lanes(*self._type_of(output))

    def body(self, first: Sequence[str] = ()) -> str:
        """The statements in braces, after those in `first`."""
        self._write(self.op.body.block)
        return "\n".join(["{", *first, *self._top, *self._lines, "}", ""])

    def parameters(self) -> list[tuple[str, str, SSAValue]]:
        """Type and name of each piece of an argument, and the argument."""
        return [
            (type_, name, argument)
            for argument in self.op.body.block.args
            for type_, name in zip(self._types(argument), self._pieces[argument], strict=True)
        ]

    def _name(self, value: SSAValue) -> None:
        """Declare names for a value that loops, branches or callers set."""
        if is_mask(value):
            self.mask_bits[value] = MASK_BITS
        self._pieces[value] = self._named(value)

    def _named(self, value: SSAValue) -> Pieces:
        """Names for the pieces of a value."""
        count, name = len(piece_sizes(lanes_of(value))), self.fresh()
        return [name] if count == 1 else [f"{name}_{number}" for number in range(count)]

    def _types(self, value: SSAValue) -> list[str]:
        """The type of each piece of a value."""
        if is_pointer(value):
            return [f"{self.spaces.get(value, GLOBAL)} uchar *"]
        if is_mask(value):
            name = signed_name(self.mask_bits[value])
        else:
            name = element_name(info(value.type).element)
        return [of_lanes(name, size) for size in piece_sizes(lanes_of(value))]

    def _type_of(self, type_: Attribute) -> tuple[str, int]:
        found = info(type_)
        if len(piece_sizes(found.lanes)) > 1 or found.is_pointer:
            raise EmissionError(f"the result '{type_}' of a function is not translated")
        return element_name(found.element), found.lanes

    # ---- control flow

    def _write(self, block: Block) -> None:
        """Write the operations of a block; the owner of a region writes its end."""
        for op in own_operations(block):
            rule = _CONTROL.get(type(op))
            if rule is not None:
                rule(self, op)
            else:
                self._operation(op)

    @contextmanager
    def _braces(self, head: str) -> Generator[None]:
        self.line(f"{head} {{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    def for_loop(self, op: Operation) -> None:
        """Write a loop whose carried values are variables, declared before the loop, which become its results."""
        (body,) = (region.block for region in op.regions)
        first, limit, step, *carried = op.operands
        index, *arguments = body.args
        self._declare(arguments, carried)
        self._alias(op.results, arguments)
        self._name(index)
        (type_,), bits = self._types(index), info(index.type).bits
        (name,), (begin,), (end,), (by,) = (self._pieces[value] for value in (index, first, limit, step))
        goes_on = f"{signed(name, bits, 1)} < {signed(end, bits, 1)}"
        with self._braces(f"ROLLED for ({type_} {name} = {begin}; {goes_on}; {name} += {by})"):
            self._write(body)
            self._set(arguments, _yielded(body))

    def while_loop(self, op: Operation) -> None:
        """
        Write a loop that ends when its condition does not hold; the values that the condition passes on are the
        results.
        """
        before, body = (region.block for region in op.regions)
        self._declare(before.args, op.operands)
        condition, *passed = _yielded(before)
        for result, value in zip(op.results, passed, strict=True):
            if value in before.args:
                self._alias([result], [value])
            else:
                self._declare([result], None)
        self._alias(body.args, op.results)
        with self._braces("ROLLED for (;;)"):
            self._write(before)
            self._set(op.results, passed)
            self.line(f"if (!({self._pieces[condition][0]})) break;")
            self._write(body)
            self._set(before.args, _yielded(body))

    def branch(self, op: Operation) -> None:
        """Write a branch of two ways, which set the results; a way without statements is left out."""
        self._declare(op.results, None)
        (condition,) = self._pieces[op.operands[0]]
        ways = [region.block for region in op.regions if region.blocks]
        texts = [self._way(op, way) for way in ways]
        if not texts[0]:
            condition, texts = f"!({condition})", texts[1:]
        for head, lines in zip((f"if ({condition}) {{", "} else {"), filter(None, texts), strict=False):
            self.line(head)
            self._lines += lines
        if any(texts):
            self.line("}")

    def _way(self, op: Operation, way: Block) -> list[str]:
        """The statements of one way of a branch."""
        around, self._lines = self._lines, []
        self._depth += 1
        self._write(way)
        self._set(op.results, _yielded(way))
        self._depth -= 1
        found, self._lines = self._lines, around
        return found

    def early_return(self, op: Operation) -> None:
        """Write a return if a condition holds."""
        condition, *values = (self._pieces[operand][0] for operand in op.operands)
        self.line(f"if ({condition}) return{''.join(f' {value}' for value in values)};")

    def last_return(self, op: Operation) -> None:
        """Write the return at the end of the function."""
        texts = [text for operand in op.operands for text in self._pieces[operand]]
        self.line(f"return {texts[0]};" if texts else "return;")

    def nothing(self, op: Operation) -> None:
        """Write nothing: the owner of a region reads the values at its end."""

    def _declare(self, values: Sequence[SSAValue], initial: Sequence[SSAValue] | None) -> None:
        """Declare variables for values that change, initialized with others if these are given."""
        for number, value in enumerate(values):
            self._name(value)
            texts = None if initial is None else self._as_set(initial[number])
            for piece, (type_, name) in enumerate(zip(self._types(value), self._pieces[value], strict=True)):
                self.line(f"{type_} {name};" if texts is None else f"{type_} {name} = {texts[piece]};")

    def _alias(self, values: Sequence[SSAValue], others: Sequence[SSAValue]) -> None:
        """Let values use the variables of others."""
        for value, other in zip(values, others, strict=True):
            self._pieces[value] = self._pieces[other]
            if is_mask(value):
                self.mask_bits[value] = self.mask_bits[other]

    def _as_set(self, value: SSAValue) -> Pieces:
        """A value in the form of its variables."""
        return resized_mask(self, value, MASK_BITS) if is_mask(value) else self._pieces[value]

    def _set(self, targets: Sequence[SSAValue], values: Sequence[SSAValue]) -> None:
        """Assign to variables, all at the same time."""
        moves: list[tuple[str, str, str]] = []
        for target, value in zip(targets, values, strict=True):
            moves += zip(self._types(target), self._pieces[target], self._as_set(value), strict=True)
        moves = [move for move in moves if move[1] != move[2]]
        written = {name for _, name, _ in moves}
        for number, (type_, name, text) in enumerate(moves):
            if written.intersection(_WORD.findall(text)) and len(moves) > 1:
                kept = self.fresh()
                self.line(f"{type_} {kept} = {text};")
                moves[number] = (type_, name, kept)
        for _, name, text in moves:
            self.line(f"{name} = {text};")

    # ---- operations

    def _operation(self, op: Operation) -> None:
        if op.name in NOTHING:
            return
        if op.name in STATEMENTS:
            STATEMENTS[op.name](self, op)
            return
        if op.name == "llvm.call":
            self._call(op)
            return
        result = op.results[0]
        if result.first_use is None or _is_part_of_splat(op):
            return
        if op.name == "llvm.alloca":
            self._alloca(op, result)
        elif isinstance(op, ConstantOp):
            self._constant(op, result)
        elif op.name in _UNDEFINED:
            self._zero(result)
        else:
            self._define(result, self._rule_of(op)(self, op))

    def _rule_of(self, op: Operation) -> Rule:
        if op.name == "llvm.call_intrinsic":
            intrinsic = op.properties["intrin"]
            assert isinstance(intrinsic, StringAttr)
            found = next((rule for name, rule in BY_INTRINSIC.items() if _is_intrinsic(intrinsic.data, name)), None)
            if found is None:
                raise EmissionError(f"the intrinsic '{intrinsic.data}' is not translated")
            return found
        found = RULES.get(op.name)
        if found is None:
            raise EmissionError(f"the operation '{op.name}' is not translated to OpenCL C")
        return found

    def _define(self, value: SSAValue, texts: Pieces) -> None:
        """Declare a variable for each piece of a value."""
        self._pieces[value] = self._named(value)
        for type_, name, text in zip(self._types(value), self._pieces[value], texts, strict=True):
            self.line(f"{type_} {name} = {text};")

    def _call(self, op: Operation) -> None:
        text = call(self, op)
        if op.results:
            self._define(op.results[0], [text])
        else:
            self.line(f"{text};")

    def _alloca(self, op: Operation, result: SSAValue) -> None:
        """Declare a buffer that lives as long as the call."""
        count = op.operands[0].owner
        if not isinstance(count, ConstantOp) or not isinstance(count.value, IntegerAttr):
            raise EmissionError("a buffer whose size is no constant is not translated")
        element = op.properties["elem_type"]
        lanes = 1 if is_pointer(result) and not info(element).is_vector else info(element).lanes
        nbytes = count.value.value.data * bytes_of(element) * lanes
        name = self.fresh()
        self._top.append(f"  uchar {name}[{nbytes}] __attribute__((aligned({integer(op, 'alignment') or 16})));")
        self._pieces[result] = [f"({PRIVATE} uchar *){name}"]

    def _constant(self, op: ConstantOp, result: SSAValue) -> None:
        """Write a number where it is used; a vector of several numbers gets a variable."""
        found = info(result.type)
        texts = [element_literal(number, found.element) for number in numbers_of(op.value, found.lanes)]
        if is_mask(result):
            self.mask_bits[result] = MASK_BITS
            texts = ["-1" if text == "true" else "0" for text in texts]
            name = signed_name(MASK_BITS)
        else:
            name = element_name(found.element)
        if not is_vector(result):
            self._pieces[result] = texts
        elif len(set(texts)) == 1:
            self._pieces[result] = [f"(({of_lanes(name, size)})({texts[0]}))" for size in piece_sizes(found.lanes)]
        else:
            self._define(result, picked(texts, name, "0"))

    def _zero(self, result: SSAValue) -> None:
        if is_pointer(result):
            self._pieces[result] = [f"(({self.spaces.get(result, GLOBAL)} uchar *)0)"]
            return
        if is_mask(result):
            self.mask_bits[result] = MASK_BITS
        self._pieces[result] = [f"(({type_})(0))" for type_ in self._types(result)]


_CONTROL: Mapping[type[Operation], Callable[[FunctionText, Operation], None]] = {
    scf.ForOp: FunctionText.for_loop,
    scf.WhileOp: FunctionText.while_loop,
    scf.IfOp: FunctionText.branch,
    scf.YieldOp: FunctionText.nothing,
    scf.ConditionOp: FunctionText.nothing,
    ReturnIfOp: FunctionText.early_return,
    ReturnOp: FunctionText.last_return,
}
"""Operation of control flow → the method that writes it."""


def _yielded(block: Block) -> Sequence[SSAValue]:
    """The operands of a block's terminator."""
    end = block.last_op
    assert end is not None
    return end.operands


def _is_intrinsic(name: str, base: str) -> bool:
    return name == base or name.startswith(f"{base}.")


def _is_part_of_splat(op: Operation) -> bool:
    """Whether a lane is inserted only to be broadcast to all lanes."""
    if op.name != "llvm.insertelement":
        return False
    users = [use.operation for use in op.results[0].uses]
    return all(user.name == "llvm.shufflevector" and splat_scalar(user) is not None for user in users)
