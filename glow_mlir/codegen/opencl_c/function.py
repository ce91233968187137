"""One function of the `llvm` dialect as a function of OpenCL C."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.dialects.llvm import ConstantOp, FuncOp, LLVMVoidType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from glow_mlir.codegen.llvm.text import EmissionError
from glow_mlir.codegen.opencl_c.lane_rules import LANE_RULES, splat_scalar
from glow_mlir.codegen.opencl_c.literals import element_literal, numbers_of
from glow_mlir.codegen.opencl_c.memory_rules import MEMORY_RULES, NOTHING, STATEMENTS, bytes_of, call, integer
from glow_mlir.codegen.opencl_c.rules import BY_INTRINSIC, EXPRESSIONS, Rule
from glow_mlir.codegen.opencl_c.scope import Pieces, is_mask, is_pointer, is_vector, lanes_of, picked, resized_mask
from glow_mlir.codegen.opencl_c.spaces import GLOBAL, PRIVATE, spaces_of
from glow_mlir.codegen.opencl_c.structure import Branch, Edge, Latch, Loop, Node, Return, Straight, structured
from glow_mlir.codegen.opencl_c.types import element_name, info, of_lanes, piece_sizes, signed_name

RULES = {**EXPRESSIONS, **LANE_RULES, **MEMORY_RULES}

MASK_BITS = 32
"""How wide the lanes of truth values are that blocks pass on."""

_UNDEFINED = frozenset({"llvm.mlir.zero", "llvm.mlir.undef", "llvm.mlir.poison"})
"""Operations whose value is zero, or may be."""

_WORD = re.compile(r"\w+")

Path = tuple[int, ...]
"""The braces around a block, by number, the outermost first."""


class Program(Protocol):
    """What functions share."""

    def access_type(self, name: str, align: int) -> str:
        """The type of what lies in memory at an alignment."""
        ...

    def table(self, name: str) -> str:
        """The name of a table."""
        ...

    def variant(self, name: str, spaces: Sequence[str]) -> str:
        """The name of a function for pointers in those address spaces."""
        ...


class FunctionText:
    """A function that is being written, for arguments that point into some address spaces."""

    def __init__(self, program: Program, op: FuncOp, spaces: Sequence[str]) -> None:
        self.op = op
        self.spaces = dict(spaces_of(op.body, spaces))
        self.mask_bits: dict[SSAValue, int] = {}
        self._program = program
        self._pieces: dict[SSAValue, Pieces] = {}
        self._lines: list[str] = []
        self._depth = 1
        self._top: list[str] = []
        self._declared: set[SSAValue] = set()
        """Values that are declared before they are defined."""
        self._count = 0
        self._nodes = structured(op.body)
        self._paths: dict[Block, Path] = {}
        self._find_paths(self._nodes, ())
        self._name_arguments()

    # ---- what rules ask

    def pieces(self, value: SSAValue) -> Pieces:
        """A value as text."""
        return self._pieces[value]

    def line(self, text: str) -> None:
        """Write a statement."""
        self._lines.append("  " * self._depth + text)

    def access_type(self, name: str, align: int) -> str:
        """The type of what lies in memory at an alignment."""
        return self._program.access_type(name, align)

    def callee(self, name: str, spaces: Sequence[str]) -> str:
        """The name of a function for pointers in those address spaces."""
        return self._program.variant(name, spaces)

    def table(self, name: str) -> str:
        """The name of a table of the module."""
        return self._program.table(name)

    def fresh(self) -> str:
        """A name that nothing has."""
        self._count += 1
        return f"v{self._count}"

    # ---- the function

    @property
    def result(self) -> str:
        """What it returns."""
        output = self.op.function_type.output
        return "void" if isinstance(output, LLVMVoidType) else of_lanes(*self._type_of(output))

    def body(self, first: Sequence[str] = ()) -> str:
        """The statements, between braces, some given ones first."""
        self._write(self._nodes)
        return "\n".join(["{", *first, *self._top, *self._lines, "}", ""])

    def parameters(self) -> list[tuple[str, str, SSAValue]]:
        """Type and name of each piece of an argument, and the argument."""
        return [
            (type_, name, argument)
            for argument in self.op.body.blocks[0].args
            for type_, name in zip(self._types(argument), self._pieces[argument], strict=True)
        ]

    def _name_arguments(self) -> None:
        for number, block in enumerate(self.op.body.blocks):
            for argument in block.args:
                if is_mask(argument):
                    self.mask_bits[argument] = MASK_BITS
                self._pieces[argument] = self._named(argument)
                if number:
                    self._declare_at_top(argument)

    def _named(self, value: SSAValue) -> Pieces:
        """Names for the pieces of a value."""
        count, name = len(piece_sizes(lanes_of(value))), self.fresh()
        return [name] if count == 1 else [f"{name}_{number}" for number in range(count)]

    def _declare_at_top(self, value: SSAValue) -> None:
        for type_, name in zip(self._types(value), self._pieces[value], strict=True):
            self._top.append(f"  {type_} {name};")

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

    def _find_paths(self, nodes: Sequence[Node], path: Path) -> None:
        """Note in which braces each block is."""
        for node in nodes:
            match node:
                case Straight(block):
                    self._paths[block] = path
                case Branch(_, yes, no):
                    for inner in (yes, no):
                        self._count += 1
                        self._find_paths(inner, (*path, self._count))
                case Loop(body):
                    self._count += 1
                    self._find_paths(body, (*path, self._count))
                case _:
                    pass

    def _write(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            match node:
                case Straight(block):
                    for op in self._own(block):
                        self._operation(op)
                case Edge():
                    self._pass_on(node)
                case Return(op):
                    self._return(op)
                case Branch():
                    self._branch(node)
                case Loop(body):
                    self._loop(body)
                case Latch():
                    ends = self._ends(node)
                    if isinstance(node.condition, BlockArgument):  # Which is another one when it is passed on.
                        kept = self.fresh()
                        self.line(f"bool {kept} = {ends};")
                        ends = kept
                    self._latch(node)
                    self.line(f"if ({ends}) break;")

    def _own(self, block: Block) -> Iterator[Operation]:
        """The operations of a block but the last."""
        return (op for op in block.ops if op is not block.last_op)

    def _indented(self, nodes: Sequence[Node]) -> None:
        self._depth += 1
        self._write(nodes)
        self._depth -= 1

    def _branch(self, node: Branch) -> None:
        (condition,) = self._pieces[node.condition]
        begin = len(self._lines)
        self.line(f"if ({condition}) {{")
        self._indented(node.yes)
        if len(self._lines) == begin + 1:
            self._lines[-1] = "  " * self._depth + f"if (!({condition})) {{"
            self._indented(node.no)
        else:
            before = len(self._lines)
            self.line("} else {")
            self._indented(node.no)
            if len(self._lines) == before + 1:
                self._lines.pop()
        self.line("}")

    def _loop(self, body: Sequence[Node]) -> None:
        """
        A loop whose last word is the choice of another trip, where it can be.

        What compilers are told of a loop stands at its last jump, and is lost where they move that.
        """
        *others, last = body
        if not isinstance(last, Latch) or isinstance(last.condition, BlockArgument):
            self.line("ROLLED for (;;) {")
            self._indented(body)
            self.line("}")
            return
        self._declare_before(last.condition)
        self.line("ROLLED do {")
        self._indented(others)
        self._depth += 1
        self._latch(last)
        self._depth -= 1
        (condition,) = self._pieces[last.condition]
        self.line(f"}} while ({condition if last.again else f'!({condition})'});")

    def _declare_before(self, value: SSAValue) -> None:
        """Declare a truth value in front of the braces that define it."""
        if value not in self._pieces:
            self._pieces[value] = [self.fresh()]
            self._declared.add(value)
            self.line(f"bool {self._pieces[value][0]};")

    def _latch(self, node: Latch) -> None:
        """Pass on what the next trip needs, and what comes behind the loop, where it is not used before the last."""
        self._pass_on(node.out, node.next)

    def _ends(self, node: Latch) -> str:
        (condition,) = self._pieces[node.condition]
        return f"!({condition})" if node.again else condition

    def _return(self, op: Operation) -> None:
        texts = [text for operand in op.operands for text in self._pieces[operand]]
        self.line(f"return {texts[0]};" if texts else "return;")

    def _pass_on(self, *edges: Edge) -> None:
        """Assign the arguments of blocks, all at once."""
        moves: list[tuple[str, str, str]] = []
        for edge in edges:
            for argument, value in zip(edge.target.args, edge.values, strict=True):
                texts = resized_mask(self, value, MASK_BITS) if is_mask(value) else self._pieces[value]
                moves += zip(self._types(argument), self._pieces[argument], texts, strict=True)
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
        """A variable for each piece of a value, declared where it is, or at the top if others need it outside."""
        if value in self._declared:
            self.line(f"{self._pieces[value][0]} = {texts[0]};")
            return
        self._pieces[value] = self._named(value)
        is_local = self._is_local(value)
        if not is_local:
            self._declare_at_top(value)
        for type_, name, text in zip(self._types(value), self._pieces[value], texts, strict=True):
            self.line(f"{type_ if is_local else ''}{' ' * is_local}{name} = {text};")

    def _is_local(self, value: SSAValue) -> bool:
        """Whether a value is used inside the braces alone that it is defined in."""
        block = value.owner.parent_block() if isinstance(value.owner, Operation) else value.owner
        assert block is not None
        path = self._paths[block]
        users = (use.operation.parent_block() for use in value.uses)
        return all(user is not None and self._paths[user][: len(path)] == path for user in users)

    def _call(self, op: Operation) -> None:
        text = call(self, op)
        if op.results:
            self._define(op.results[0], [text])
        else:
            self.line(f"{text};")

    def _alloca(self, op: Operation, result: SSAValue) -> None:
        """A buffer that lives as long as the call."""
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
        """A number where it is used; a vector of several has a variable."""
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


def _is_intrinsic(name: str, base: str) -> bool:
    return name == base or name.startswith(f"{base}.")


def _is_part_of_splat(op: Operation) -> bool:
    """Whether a lane is inserted for nothing but to be spread over all lanes."""
    if op.name != "llvm.insertelement":
        return False
    users = [use.operation for use in op.results[0].uses]
    return all(user.name == "llvm.shufflevector" and splat_scalar(user) is not None for user in users)
