"""
Textual modules: a `.mlir` file, and beside it the weight file (`model.weights`) with the bytes of its digests.

Reading gives every op without a location its position in the text, as MLIR does, so that errors can name the line long
after parsing. Writing is atomic. The weight store, and numpy with it, is imported only if there are weights.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from difflib import get_close_matches
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    AffineMapAttr,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    IntAttr,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue, TypeAttribute
from xdsl.parser import ParserState
from xdsl.printer import Printer
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRTokenKind, StringLiteral

from glow_mlir.dialects.target import TargetAttr
from glow_mlir.errors import GlowError, OptionError, OutOfMemoryError, ParseFailure, joined
from glow_mlir.ir.dense_text import DenseParser, HexLexer, print_long
from glow_mlir.ir.graph_regions import is_graph
from glow_mlir.ir.location_text import LocationParser
from glow_mlir.ir.locations import Lines, TextOffset, keep_positions, location_name, position_of, source_location
from glow_mlir.ir.value_names import value_name
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.file_kinds import NEAR, kind_of
from glow_mlir.support.files import is_node, replaced

WEIGHTS_SUFFIX = ".weights"


class StringLexer(HexLexer):
    """xDSL's lexer without its exponential backtracking on unterminated strings."""

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')


_TENSOR = re.compile(r"tensor<(?:[0-9?]+x)*[a-z]+[0-9]*>")
"""The type of a tensor without an encoding, of a builtin element type."""


class LocatingParser(DenseParser, LocationParser):
    """
    A parser of the output of xDSL's printer, with names of any letters, that gives every op without a location its
    position in the text.
    """

    def __init__(self, context: Context, text: str, name: str) -> None:
        super().__init__(context, "", name)
        self._parser_state = ParserState(StringLexer(Input(text, name)))
        self.file_positions: dict[Operation, TextOffset] = {}
        """Positions of operations with explicit locations."""
        self._begin = 0
        self._tensors: dict[str, TypeAttribute] = {}
        """Types of tensors, by their text: most are repeated."""
        self._file = StringAttr(name)
        self.lines = Lines(name, text)

    @property
    def is_at_end(self) -> bool:
        """Whether only comments are left."""
        return self._current_token.kind == MLIRTokenKind.EOF

    def parse_operation(self) -> Operation:
        begin = self._begin = self.pos
        op = super().parse_operation()
        # The default is this very object; an explicit `loc(unknown)` is another one, and stays.
        if op.location is UNKNOWN_LOC:
            op.location = self.location_at(begin)
        else:
            self.file_positions[op] = (self.lines, begin)
        return op

    def _get_op_by_name(self, name: str) -> type[Operation]:
        try:
            return super()._get_op_by_name(name)
        except ParseError as error:
            # xDSL points after the name, and thus at the next line if the name ends this one.
            at = self.lexer.input.content.index(name, self._begin)
            near = get_close_matches(name, _similar_operations(name, self.ctx), n=1)
            reason = f"{error.msg}; is it {near[0]}?" if near else error.msg
            self.raise_error(reason, at, at + len(name))

    def parse_optional_type(self) -> TypeAttribute | None:
        begin = self._current_token.span.start
        match = _TENSOR.match(self.lexer.input.content, begin)
        if match is None:
            return super().parse_optional_type()
        found = self._tensors.get(match.group())
        if found is None:
            found = super().parse_optional_type()
            if found is not None and self.pos >= match.end():
                self._tensors[match.group()] = found
            return found
        self._resume_from(match.end())
        return found

    def parse_optional_str_literal(self) -> str | None:
        # xDSL writes non-ASCII letters as their bytes, and reads these only as bytes.
        if self._current_token.kind != MLIRTokenKind.BYTES_LIT:
            return super().parse_optional_str_literal()
        try:
            text = StringLiteral.from_span(self._current_token.span).bytes_contents.decode()
        except UnicodeDecodeError:
            return None
        self.parse_bytes_literal()
        return text

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        super()._register_ssa_definition(name, values, span)
        # xDSL keeps `%a_1` of `%a_1_2`, which a second `%a` is printed as, and an empty name of `%_1`.
        hint = None if name.isdigit() else value_name(name)
        for value in values:
            value.name_hint = hint

    def location_at(self, position: int) -> FileLineColLoc:
        """The location of the character at `position`."""
        line, column = self.lines.at(position)
        return FileLineColLoc(self._file, IntAttr(line), IntAttr(column))


_UNCLEAR = {"in block definition": "expected an operation, a block or '}'"}
"""Messages of xDSL's parser without their subject → replacements, to which the token is appended."""


def _similar_operations(name: str, context: Context) -> list[str]:
    """The names of all operations in the dialect of a name; none if there is no such dialect."""
    dialect = context.get_optional_dialect(name.partition(".")[0])
    return [] if dialect is None else [op.name for op in dialect.operations]


@dataclass(eq=False, repr=False)
class ModulePrinter(Printer):
    """
    A printer that elides dense attributes of more than `limit` elements, and prints attributes with `aliases` by alias.
    """

    limit: int | None = None
    aliases: Mapping[Attribute, str] = field(default_factory=dict[Attribute, str])

    def print_op(self, op: Operation) -> None:
        # Functions of LLVM are isolated from above, which xDSL's definition omits.
        is_scope = op.name == "llvm.func"
        if is_scope:
            self.enter_scope()
        super().print_op(op)
        if is_scope:
            self.exit_scope()

    def print_attribute(self, attribute: Attribute) -> None:
        if (alias := self.aliases.get(attribute)) is not None:
            self.print_string(alias)
            return
        if self.limit is not None and isinstance(attribute, DenseIntOrFPElementsAttr):
            dense = cast("DenseIntOrFPElementsAttr[Any]", attribute)
            if len(dense) > self.limit:
                self.print_string("dense_resource<__elided__> : ")
                attribute = dense.get_type()
        if print_long(self, cast(Attribute, attribute)):
            return
        super().print_attribute(cast(Attribute, attribute))


ALIASED: Mapping[type[Attribute], str] = {AffineMapAttr: "#map", TargetAttr: "#target"}
"""Kind of attribute → prefix of the aliases of repeated ones."""

ALIASING = frozenset({"glow_high", "glow_low"})
"""The dialects whose text has aliases; other text is as xDSL prints it."""


def attribute_aliases(module: ModuleOp) -> dict[Attribute, str]:
    """Aliases for attributes that occur repeatedly in a module, by kind in order: `#map`, `#map1`, …"""
    counts: Counter[Attribute] = Counter()
    for op in module.walk():
        if op.dialect_name() not in ALIASING:
            continue
        for value in op.properties.values():
            items = cast("ArrayAttr[Attribute]", value).data if isinstance(value, ArrayAttr) else (value,)
            counts.update(item for item in items if type(item) in ALIASED)
    aliases: dict[Attribute, str] = {}
    numbers: Counter[str] = Counter()
    for attribute, count in counts.items():
        if count > 1:
            kind = ALIASED[type(attribute)]
            aliases[attribute] = f"{kind}{numbers[kind] or ''}"
            numbers[kind] += 1
    return aliases


def one_line(error: object) -> str:
    """The text of an error in one line."""
    return " ".join(str(error).split())


def parse_module(text: str, context: Context, name: str = "<text>", *, implicit_module: bool = True) -> ModuleOp:
    """
    Parse and verify a module; raises `ParseFailure` with the position in the text, `ModelError` for damaged weights.

    `name` is the file in the locations. Without `implicit_module`, the text must be one `builtin.module`.
    """
    module = parse_unverified(text, context, name, implicit_module=implicit_module)
    verify_module(module, name)
    _check_weights(module)
    return module


def parse_unverified(text: str, context: Context, name: str = "<text>", *, implicit_module: bool = True) -> ModuleOp:
    """Parse a module; raises `ParseFailure` for a syntax error, `OutOfMemoryError` for a constant that is too large."""
    try:
        parser = LocatingParser(context, text, name)
    except ParseError as error:
        raise _syntax_error(error) from error
    try:
        from glow_mlir.ir.anonymous_storage import bind_arguments

        module = ModuleOp([]) if implicit_module and parser.is_at_end else parser.parse_module(implicit_module)
        keep_positions(module, parser.file_positions)
        _refuse_nested(module)
        bind_arguments(module)
        keep_weights(module)
        return module
    except ParseFailure:
        raise
    except ParseError as error:
        raise _syntax_error(error) from error
    except RecursionError as error:
        file_position = position_of(parser.location_at(parser.pos))
        raise ParseFailure(
            "the text is nested too deep", file=file_position, hint="put fewer regions inside each other"
        ) from error
    except MemoryError as error:
        file_position = position_of(parser.location_at(parser.pos))
        line = text[: parser.pos].rpartition("\n")[2].rpartition(" : ")[2].strip()
        hint = "check the shape of the constant"
        raise OutOfMemoryError(
            f"there is too little memory for a value of '{line}'", file=file_position, hint=hint
        ) from error
    except Exception as error:
        # xDSL's parser lets through any exception of its attributes: a failure while parsing is about the text.
        reason = one_line(error) or type(error).__name__
        raise ParseFailure(reason, file=position_of(parser.location_at(parser.pos))) from error


def _refuse_nested(module: ModuleOp) -> None:
    """Raise `ParseFailure` for functions of ours in nested modules, which passes do not visit."""
    from glow_mlir.dialects.glow_high.storage import FunctionOp

    if [len(region.blocks) for region in module.regions] != [1]:
        raise ParseFailure("builtin.module: a module has one region of one block", file=source_location(module))
    for inner in module.body.block.ops:
        if isinstance(inner, ModuleOp) and any(isinstance(op, FunctionOp) for op in inner.walk()):
            reason = "builtin.module: functions of glow_high and glow_low stand in the outermost module alone"
            raise ParseFailure(reason, file=source_location(inner), hint="take the module around this one away")


def _syntax_error(error: ParseError) -> ParseFailure:
    """Convert an error of xDSL's parser: its position, and notes at the others."""
    got, reason = one_line(error.span.text), one_line(error.msg)
    if reason in _UNCLEAR:
        reason = f"{_UNCLEAR[reason]}, got {got!r}"
    refs = error.refs if isinstance(error, MultipleSpansParseError) else []
    what = error.ref_text or "" if isinstance(error, MultipleSpansParseError) else ""
    notes = [
        GlowError(one_line(text or what).rstrip(":") or "here", file=str(span.get_location())) for span, text in refs
    ]
    return ParseFailure(reason, file=str(error.span.get_location())).with_notes(notes)


def verify_module(module: ModuleOp, file: str = "") -> None:
    """
    Verify a module; raises `ParseFailure` at the invalid op, or else in `file`.

    The errors of all other invalid ops follow, except ops with an invalid op inside.
    """
    failure: Exception | None = None
    try:
        module.verify()
    except Exception as error:
        failure = error
    found = [*(_invalid_ops(module) if failure is not None else ()), *_too_early(module)]
    if failure is not None and not found:  # An op of one of its blocks.
        found = [ParseFailure(one_line(failure))]
    for error in found:
        error.file = error.file or file
    if found:
        raise joined(found) from failure


def _invalid_ops(module: ModuleOp) -> list[GlowError]:
    """The failures of the verifiers of single ops; innermost ops only."""
    found: list[GlowError] = []
    blamed: set[Operation] = set()
    for op in module.walk(region_first=True):
        try:
            if op not in blamed:
                op.verify_()  # First, since `verify` prints the whole module if this fails.
                op.verify(verify_nested_ops=False)
                continue
        except Exception as error:
            found.append(_error_at(op, one_line(error)))
        if (around := op.parent_op()) is not None:
            blamed.add(around)
    return found


def _error_at(op: Operation, reason: str) -> ParseFailure:
    """An error of the verifier."""
    return ParseFailure(f"{op.name}: {reason}", file=source_location(op), node=location_name(op.location))


def _too_early(module: ModuleOp) -> Iterator[GlowError]:
    """
    An error for each op that does not follow its operands, in their block or nested: xDSL does not check this.

    Graph regions have no order.
    """
    seen: set[Operation] = set()
    graphs = cache(is_graph)
    for op in module.walk():
        for value in op.operands:
            owner = value.owner
            block = owner.parent if isinstance(owner, Operation) else owner
            inner = None if block is None else _within(block.parent, op)
            # Dominance between the blocks of a function depends on its branches: LLVM checks that.
            same = block is not None and inner is not None and inner.parent is block
            early = same and isinstance(owner, Operation) and owner not in seen and not graphs(block)
            if inner is None or early:
                file_positions = [source_location(owner)] if isinstance(owner, Operation) else []
                notes = [
                    GlowError("it is defined here", file=file_position)
                    for file_position in file_positions
                    if file_position
                ]
                where = "used before its definition" if early else "defined outside of the regions around"
                yield _error_at(op, f"an operand is {where}").with_notes(notes)
                break
        seen.add(op)


def _within(region: Region | None, op: Operation) -> Operation | None:
    """The op of a region's own blocks that is or encloses an op; `None` if it is elsewhere."""
    around: Operation | None = op
    while around is not None and around.parent_region() is not region:
        around = around.parent_op()
    return around


def read_module(source: Path | str, context: Context, in_memory: bool = False) -> ModuleOp:
    """
    Read and verify a module from a file (a `Path`), with the weights beside it, or from text (a `str`).

    Weights are mapped unless read `in_memory`: their file must not change as long as the module is used. Raises
    `ParseFailure` for a file or text that is no module.
    """
    if isinstance(source, str):
        return parse_module(source, context)
    text = read_text(source)
    kept = read_weights_of(source, in_memory)
    module = parse_module(text, context, str(source))
    del kept  # The module keeps them now.
    return module


def _check_weights(module: ModuleOp) -> None:
    """
    Raise `ModelError` if the weights of a constant have another type, or were damaged in their file.

    Weights missing from the store are an error only when they are read.
    """
    stored = [(op, op.properties["weights"]) for op in module.body.block.ops if "weights" in op.properties]
    if not stored:
        return
    from glow_mlir.constants.weights import check_weights
    from glow_mlir.dialects.element_types import numpy_dtype
    from glow_mlir.dialects.glow_high.storage import ContentOp
    from glow_mlir.dialects.shapes import shape_of

    for op, digest in stored:
        if isinstance(op, ContentOp) and isinstance(digest, StringAttr):
            element, shape = op.tensor_type.element_type, shape_of(op.tensor_type)
            check_weights(digest.data, op.sym_name.data, numpy_dtype(element), shape)


def read_text(path: Path) -> str:
    """The text of a file; raises `ParseFailure` if it cannot be read."""
    try:
        return decoded(path.read_bytes(), str(path))
    except OSError as error:
        raise ParseFailure(f"cannot be read: {error.strerror}", file=str(path)) from error


def decoded(data: bytes, file: str) -> str:
    """
    Decode bytes as text, with any line ends, and with or without a byte order mark; raises `ParseFailure` for others.
    """
    kind = kind_of(data[:NEAR], file)
    if b"\0" not in data and not (kind and kind.is_text):
        try:
            text = data.decode("utf-8-sig")
            return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
        except UnicodeDecodeError:
            pass
    if kind is None:
        raise ParseFailure("is no text in UTF-8", file=file)
    raise ParseFailure(f"is not text of a module, but {kind.name}", file=file, hint=kind.hint)


def weights_path(path: Path) -> Path:
    """The path of the weight file of the module in `path`."""
    return path.with_suffix(WEIGHTS_SUFFIX)


def read_weights_of(path: Path, in_memory: bool = False) -> Sequence[str]:
    """
    Load the weight file beside the module file `path`, if there is one, mapped or `in_memory`.

    Raises `ModelError` for a damaged one.

    The digests returned keep the weights loaded until a module is parsed that refers to them.
    """
    if (weights := weights_path(path)).exists():
        from glow_mlir.constants.weights import read_weights

        return read_weights(weights, in_memory)
    return ()


def keep_weights(module: ModuleOp) -> None:
    """Let a parsed module keep the weights in the store that it refers to."""
    for op in module.body.block.ops:
        if isinstance(digest := op.properties.get("weights"), StringAttr):
            from glow_mlir.constants.weights import known_digest

            if (known := known_digest(digest.data)) is not None:
                op.properties["weights"] = StringAttr(known)


def digests(module: ModuleOp) -> Iterator[str]:
    """The digests of the weights that a module refers to."""
    for op in module.body.block.ops:
        if isinstance(digest := op.properties.get("weights"), StringAttr):
            yield digest.data


def module_text(
    module: ModuleOp,
    *,
    locations: bool = False,
    generic: bool = False,
    limit: int | None = None,
    context: Context | None = None,
) -> str:
    """
    The text of a module, ending in a newline.

    `locations` prints the location of every op, `generic` selects MLIR's generic form, and dense attributes with more
    than `limit` elements are elided. With the `context` it was parsed in, its dialect resources are printed too.
    """
    stream = StringIO()
    if not generic and not locations:
        from glow_mlir.ir.anonymous_storage import unbind_arguments

        module = unbind_arguments(module)
    aliases = {} if generic else attribute_aliases(module)
    printer = ModulePrinter(stream, print_generic_format=generic, print_debuginfo=locations, limit=limit)
    for attribute, alias in aliases.items():
        printer.print_string(f"{alias} = ")
        printer.print_attribute(attribute)
        printer.print_string("\n")
    printer.aliases = aliases
    printer.print_op(module)
    if context is not None:
        printer.print_metadata(context.loaded_dialects)
    printer.print_string("\n")
    return stream.getvalue()


def write_module(module: ModuleOp, path: Path, locations: bool = True) -> None:
    """Write a module to `path`, and the weights it refers to beside it, atomically."""
    write_text(module_text(module, locations=locations), path, digests(module))


def write_text(text: str, path: Path, used: Iterable[str] = ()) -> None:
    """
    Write text to `path`, after the weights `used` beside it, if there are any; each file atomically.

    A device or pipe gets only the text. Raises `OptionError` if that is impossible.
    """
    with replaced(path) as file:
        if (present := list(dict.fromkeys(used))) and not is_node(path):
            from glow_mlir.constants.weights import write_weights

            write_weights(weights_path(path), present)
        file.write(text.encode())


def make_folder(path: Path) -> None:
    """Create a folder and its parents if needed; raises `OptionError` if that is impossible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"cannot be made a folder: {error.strerror}", file=str(path)) from error
