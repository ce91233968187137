"""From a module of the `llvm` dialect to LLVM IR text: one linear walk, the same text for the same module."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.llvm import (
    UNNAMED_ADDR_KEYWORD_BY_KEY,
    CallingConventionAttr,
    ConstantOp,
    FuncOp,
    GlobalOp,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from glow_mlir.codegen.llvm.attributes import (
    ENUM_ATTRIBUTES,
    STRING_ATTRIBUTES,
    function_attributes,
    parameter_text,
    quoted,
)
from glow_mlir.codegen.llvm.instructions import RULES
from glow_mlir.codegen.llvm.text import EmissionError, TypeText, constant_text

MODULE_HEADERS = {"llvm.target_triple": "target triple", "llvm.data_layout": "target datalayout"}
VISIBILITIES = {0: "", 1: " hidden", 2: " protected"}

KERNEL_CONVENTIONS = {"nvvm.kernel": "ptx_kernel", "rocdl.kernel": "amdgpu_kernel", "spir.kernel": "spir_kernel"}
"""Attribute of a function that the host of a device launches → its calling convention."""

_FUNCTION_GROUP = frozenset({*ENUM_ATTRIBUTES, *STRING_ATTRIBUTES, "passthrough"})
_FUNCTION_HEAD = frozenset(
    """sym_name function_type CConv linkage visibility_ sym_visibility arg_attrs res_attrs unnamed_addr
    section alignment dso_local""".split()
)
_GLOBAL_KNOWN = frozenset(
    """global_type constant sym_name linkage dso_local thread_local_ visibility_ value alignment addr_space
    unnamed_addr section""".split()
)


class _Module:
    """The state that the functions of a module share: types as text, attribute groups, metadata."""

    def __init__(self) -> None:
        self.types = TypeText()
        self.groups: dict[str, int] = {}
        self.nodes: dict[str, int] = {}

    def group(self, attributes: str) -> str:
        """Return the reference to an attribute group, with a leading space."""
        return f" #{self.groups.setdefault(attributes, len(self.groups))}" if attributes else ""

    def metadata(self, content: str) -> str:
        """Return the name of the metadata node with this content."""
        return f"!{self.nodes.setdefault(content, len(self.nodes))}"


class _Function:
    """The body of one function: names of values and blocks, incoming values of phis, then the lines."""

    def __init__(self, op: FuncOp, module: _Module) -> None:
        self.op = op
        self.module = module
        self.type = module.types
        self.metadata = module.metadata
        self.names: dict[SSAValue, str] = {}
        self._labels: dict[Block, str] = {}
        self._incoming: defaultdict[Block, list[tuple[str, list[SSAValue]]]] = defaultdict(list)
        self._split: dict[tuple[Operation, int], str] = {}
        self._where = f"function '@{op.sym_name.data}'"

    def label(self, block: Block) -> str:
        """Return the label of a block."""
        return self._labels[block]

    def edge(self, op: Operation, index: int) -> str:
        """Return the label that successor `index` of the terminator `op` jumps to."""
        return self._split.get((op, index)) or self._labels[op.successors[index]]

    def lines(self) -> list[str]:
        """
        Return the lines of the body.

        Raises `EmissionError` naming function, operation and attribute for anything without translation.
        """
        blocks = list(self.op.body.blocks)
        self._name_all(blocks)
        lines: list[str] = []
        for index, block in enumerate(blocks):
            lines.append(f"{self._labels[block]}:")
            if index:
                lines.extend(self._phis(block))
            for op in block.ops:
                if op.name not in _LITERALS:
                    lines.append("  " + self._instruction(op))
        for (op, index), label in self._split.items():
            lines += [f"{label}:", f"  br label %{self._labels[op.successors[index]]}"]
        return lines

    def _name_all(self, blocks: list[Block]) -> None:
        """Name blocks and values, and collect all jumps with the values that they pass, before any line is written."""
        names = self.names
        for index, block in enumerate(blocks):
            self._labels[block] = f"b{index}"
        for block in blocks:
            for argument in block.args:
                names[argument] = f"%v{len(names)}"
            for op in block.ops:
                if (literal := _LITERALS.get(op.name)) is not None:
                    names[op.results[0]] = literal(op, self.type, self._where)
                elif op.results:
                    names[op.results[0]] = f"%v{len(names)}"
            if (terminator := block.last_op) is not None:
                self._note_edges(block, terminator)

    def _note_edges(self, block: Block, terminator: Operation) -> None:
        passed = _passed_values(terminator)
        both_same = len(passed) == 2 and terminator.successors[0] is terminator.successors[1]
        for index, (successor, values) in enumerate(zip(terminator.successors, passed, strict=True)):
            source = self._labels[block]
            if both_same and index == 1 and values != passed[0]:
                # A phi has one value per predecessor, so the second edge gets a separate block.
                source = self._split[terminator, index] = f"{source}.edge"
            self._incoming[successor].append((source, values))

    def _phis(self, block: Block) -> list[str]:
        lines: list[str] = []
        for index, argument in enumerate(block.args):
            pairs = (f"[ {self.names[values[index]]}, %{source} ]" for source, values in self._incoming[block])
            lines.append(f"  {self.names[argument]} = phi {self.type(argument.type)} {', '.join(pairs)}")
        return lines

    def _instruction(self, op: Operation) -> str:
        rule = RULES.get(op.name)
        if rule is None:
            raise EmissionError(f"{self._where}: the operation '{op.name}' is not translated")
        if op.attributes or not rule.properties.issuperset(op.properties):
            _reject(op, rule.properties, self._where)
        try:
            return rule.emit(self, op)
        except KeyError as missing:
            raise EmissionError(f"{self._where}: '{op.name}' lacks {missing}") from missing


def _reject(op: Operation, known: frozenset[str], where: str) -> None:
    """Raise `EmissionError` for the attributes of `op` that are not in `known`."""
    extra = {**{name: op.properties[name] for name in op.properties if name not in known}, **op.attributes}
    listed = ", ".join(f"{name} = {value}" for name, value in extra.items())
    raise EmissionError(f"{where}: '{op.name}' has attributes that are not translated: {listed}")


def _passed_values(terminator: Operation) -> list[list[SSAValue]]:
    """Return, for each successor of a terminator, the values it passes to the arguments of that block."""
    operands = list(terminator.operands)
    if len(terminator.successors) == 2:
        taken = len(terminator.successors[0].args)
        return [operands[1 : 1 + taken], operands[1 + taken :]]
    return [operands for _ in terminator.successors]


def _constant(op: Operation, types: TypeText, where: str) -> str:
    assert isinstance(op, ConstantOp)
    try:
        return constant_text(op.value, op.result.type, types)
    except EmissionError as error:
        raise EmissionError(f"{where}: {error}") from error


def _address_of(op: Operation, _types: TypeText, where: str) -> str:
    symbol = op.properties.get("global_name")
    if not isinstance(symbol, SymbolRefAttr):
        raise EmissionError(f"{where}: '{op.name}' lacks 'global_name'")
    return f"@{symbol.string_value()}"


_LITERALS: dict[str, Callable[[Operation, TypeText, str], str]] = {
    "llvm.mlir.constant": _constant,
    "llvm.mlir.addressof": _address_of,
    "llvm.mlir.zero": lambda _op, _types, _where: "zeroinitializer",
    "llvm.mlir.undef": lambda _op, _types, _where: "undef",
    "llvm.mlir.poison": lambda _op, _types, _where: "poison",
}
"""Operations that make no instruction: their value is written where it is used."""


def _attributes_of(op: Operation) -> Mapping[str, Attribute]:
    """
    Return properties and attributes together: the parser of custom syntax puts some of the former in the
    latter.
    """
    return {**op.attributes, **op.properties}


def _flag(value: Attribute | None) -> int:
    return value.value.data if isinstance(value, IntegerAttr) else 0


def _linkage(op: FuncOp | GlobalOp) -> str:
    name = op.linkage.linkage.data
    return "" if name == "external" else f" {name}"


def _tail(attributes: Mapping[str, Attribute], separator: str) -> str:
    """Return section and alignment of a function or global."""
    text = ""
    if isinstance(section := attributes.get("section"), StringAttr):
        text += f"{separator} section {quoted(section.data)}"
    if alignment := _flag(attributes.get("alignment")):
        text += f"{separator} align {alignment}"
    return text


def _unnamed(attributes: Mapping[str, Attribute]) -> str:
    keyword = UNNAMED_ADDR_KEYWORD_BY_KEY.get(_flag(attributes.get("unnamed_addr")))
    return f" {keyword}" if keyword else ""


def _parameters(op: FuncOp, body: _Function, types: TypeText, where: str) -> str:
    """Return the parameter list of a function; a declaration has types only."""
    attributes = op.arg_attrs
    arguments = op.body.blocks[0].args if op.body.blocks else ()
    words: list[str] = []
    for index, type_ in enumerate(op.function_type.inputs):
        extra = parameter_text(attributes.data[index], types, where) if attributes is not None else ""
        name = f" {body.names[arguments[index]]}" if arguments else ""
        words.append(f"{types(type_)}{extra}{name}")
    return ", ".join([*words, "..."] if op.function_type.is_variadic else words)


def _function(op: FuncOp, module: _Module) -> list[str]:
    """Return the lines of one function, definition or declaration."""
    where = f"function '@{op.sym_name.data}'"
    attributes = _attributes_of(op)
    if extra := sorted(attributes.keys() - _FUNCTION_HEAD - _FUNCTION_GROUP - KERNEL_CONVENTIONS.keys()):
        raise EmissionError(f"{where}: the attribute '{extra[0]} = {attributes[extra[0]]}' is not translated")
    body = _Function(op, module)
    lines = body.lines()
    convention = op.CConv.cconv_name if isinstance(op.properties.get("CConv"), CallingConventionAttr) else "ccc"
    convention = next((KERNEL_CONVENTIONS[name] for name in attributes if name in KERNEL_CONVENTIONS), convention)
    convention = "" if convention == "ccc" else f" {convention}"
    result = "".join(parameter_text(result, module.types, where) for result in op.res_attrs or ())
    group = function_attributes({name: attributes[name] for name in attributes if name in _FUNCTION_GROUP}, where)
    head = (
        f"{'define' if lines else 'declare'}{_linkage(op)}{' dso_local' if 'dso_local' in attributes else ''}"
        f"{VISIBILITIES[_flag(attributes.get('visibility_'))]}{convention}"
        f"{result} {module.types(op.function_type.output)} @{op.sym_name.data}"
        f"({_parameters(op, body, module.types, where)}){_unnamed(attributes)}{module.group(group)}"
        f"{_tail(attributes, '')}"
    )
    return [f"{head} {{", *lines, "}", ""] if lines else [head, ""]


def _global(op: GlobalOp, module: _Module) -> list[str]:
    """Return the line of one global."""
    where = f"global '@{op.sym_name.data}'"
    attributes = _attributes_of(op)
    if extra := sorted(attributes.keys() - _GLOBAL_KNOWN):
        raise EmissionError(f"{where}: the attribute '{extra[0]} = {attributes[extra[0]]}' is not translated")
    if op.body.blocks:
        raise EmissionError(f"{where}: an initializer region is not translated")
    linkage = _linkage(op)
    space = op.addr_space.value.data
    words = [
        linkage or (" external" if op.value is None else ""),
        " dso_local" if op.dso_local else "",
        VISIBILITIES[_flag(op.visibility_)],
        " thread_local" if op.thread_local_ else "",
        _unnamed(attributes),
        f" addrspace({space})" if space else "",
        " constant " if op.constant else " global ",
        module.types(op.global_type),
    ]
    return [f"@{op.sym_name.data} ={''.join(words)}{_value(op, module, where)}{_tail(attributes, ',')}", ""]


def _value(op: GlobalOp, module: _Module, where: str) -> str:
    """
    Return the value of a global, with a leading space: nothing for a declaration, `undef` for a definition without one.

    Raises `EmissionError` for a common global without a value, because LLVM requires zero there.
    """
    if op.value is not None:
        return f" {constant_text(op.value, op.global_type, module.types)}"
    match op.linkage.linkage.data:
        case "external" | "extern_weak":
            return ""
        case "common":
            raise EmissionError(f"{where}: linkage 'common' needs a value")
        case _:
            return " undef"


def emit_module(module: ModuleOp) -> str:
    """
    Return the LLVM IR text of a module that holds functions and globals of the `llvm` dialect.

    The text depends on the module alone: attributes and flags are sorted, names follow the order of the
    operations. Raises `EmissionError` naming operation and attribute for anything that is not translated:
    nothing is dropped.
    """
    state = _Module()
    lines: list[str] = []
    for name, value in sorted(module.attributes.items()):
        if name not in MODULE_HEADERS or not isinstance(value, StringAttr):
            raise EmissionError(f"module: the attribute '{name} = {value}' is not translated")
        lines.append(f"{MODULE_HEADERS[name]} = {quoted(value.data)}")
    lines.append("")
    for op in module.ops:
        match op:
            case FuncOp():
                lines.extend(_function(op, state))
            case GlobalOp():
                lines.extend(_global(op, state))
            case _:
                raise EmissionError(f"module: the operation '{op.name}' is not translated at the top level")
    lines.extend(f"attributes #{number} = {{ {content} }}" for content, number in state.groups.items())
    lines.extend(f"!{number} = !{{{content}}}" for content, number in state.nodes.items())
    return "\n".join(lines) + "\n"
