"""
Derivation of instructions: a `glow_high` operator gives its `glow_low` instruction (Glow's auto-IRGen).

Results become @out operands, operands @in operands, properties stay; methods that state the operator's meaning
(`infer_types`, `scalar`, …) are shared, so the instruction verifies and computes as its operator does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from types import FunctionType
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    OptionalDef,
    VariadicDef,
    base,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    var_operand_def,
    var_region_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.affine_maps import affine_maps, maps_attribute, verify_maps
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.base import (
    HighOp,
    decoded_spans,
    is_variadic,
    operand_groups,
    segments_of,
    verify_operands,
    with_operand_accessors,
)
from glow_mlir.dialects.glow_high.interfaces import Workload
from glow_mlir.dialects.glow_low.base import BUFFER, Instruction, Qualifier, parse_operands, print_operands
from glow_mlir.dialects.glow_low.body import Body, elements, verify_body, verify_targets
from glow_mlir.dialects.glow_low.memory import buffer_type
from glow_mlir.dialects.glow_low.packing import verify_form
from glow_mlir.dialects.properties import integer, ints
from glow_mlir.dialects.shapes import Shape, element_of, rank_of, require, shape_of, sizes_of
from glow_mlir.xdsl_patches.definitions import op_definition
from glow_mlir.xdsl_patches.operations import cloned_region, operands_of

FURTHER_OPERANDS = {
    "prologue_sources": Qualifier.IN,
    "epilogue_targets": Qualifier.OUT,
    "epilogue_sources": Qualifier.IN,
    "scratch": Qualifier.SCRATCH,
}
"""Operands that any instruction may have in addition to those of its operator, in order."""

BODIES = ("prologue", "epilogue")
"""The bodies that an instruction may have, in the order of its regions."""


def _further_operands(body: str) -> list[str]:
    """Names of the extra operands of a body."""
    return [name for name in (f"{body}_targets", f"{body}_sources") if name in DerivedInstruction.BODY_OPERANDS]


@cache
def _operand_indices(
    kind: type[DerivedInstruction], count: int, segments: bytes | None, names: frozenset[str]
) -> tuple[int, ...]:
    """The indices of the operands of an instruction that have one of these names."""
    spans = decoded_spans(kind, count, segments)
    return tuple(index for span in spans if span.name in names for index in range(span.start, span.stop))


class DerivedInstruction(Instruction, Workload):
    """
    An instruction that was derived from the operator class `OPERATOR`.

    It may have two bodies. The **epilogue** is applied to each element of the first result before it is stored: it
    takes the element and those of `epilogue_sources`, and yields what is stored to @out and to `epilogue_targets`. The
    **prologue** is applied to each element of the first operand when it is read: it takes the element and those of
    `prologue_sources`. `epilogue_maps` (targets, then sources) and `prologue_maps` map the index space of the result,
    and of the first operand, to the further operands.

    ```mlir
    glow_low.conv @out %y, @in %x, @in %filter epilogue(@in %bias) [affine_map<(d0, d1, d2, d3) -> (d3)>] {
    ^bb0(%sum: f32, %b: f32):
      %0 = arith.addf %sum, %b : f32
      glow_low.yield %0 : f32
    }
    ```
    """

    OPERATOR: ClassVar[type[HighOp]]
    OPERATOR_INPUTS: ClassVar[frozenset[str]]
    """Names of the operator's operands."""
    OPERATOR_RESULTS: ClassVar[frozenset[str]]
    """Names of the operator's results."""
    OWN_REGIONS: ClassVar[int] = 0
    """How many regions the operator has itself."""
    FIRST_INPUT: ClassVar[str]
    """Name of the operand that a prologue concerns."""
    FIRST_RESULT: ClassVar[str]
    """Name of the result that an epilogue concerns."""
    BODY_OPERANDS: ClassVar[frozenset[str]] = frozenset({"prologue_sources", "epilogue_targets", "epilogue_sources"})
    BODY_PROPERTIES: ClassVar[frozenset[str]] = frozenset({"prologue_maps", "epilogue_maps"})

    kernel = opt_prop_def(StringAttr)
    """Name of the kernel that a backend selected."""
    partitions = opt_prop_def(DictionaryAttr)
    """Axis of the kernel → the number of tasks into which the instruction is partitioned along it."""
    tiles = opt_prop_def(DictionaryAttr)
    """The choices for the kernel, name → number: sizes of tiles and blocks, or 1 and 0 for true and false."""
    packing = opt_prop_def(DictionaryAttr)
    """Operand name → how its elements are packed, for operands that are not in their plain layout."""
    image_lines = opt_prop_def(base(IntegerAttr))
    """The number of lines of the whole images if the result has only some: it rounds as if it had all of them."""
    samples = opt_prop_def(base(IntegerAttr))
    """
    The number of runs of equal length into which the rows of the result split, in order over all axes but the last;
    each run belongs to one sample of the model's batch. If absent, each row may belong to a different sample.
    """
    prologue_maps = opt_prop_def(base(ArrayAttr))
    epilogue_maps = opt_prop_def(base(ArrayAttr))
    bodies = var_region_def("single_block")
    """The prologue, if `prologue_maps` is present, then the epilogue."""

    def inputs(self) -> tuple[SSAValue, ...]:
        """The buffers that the operator itself reads."""
        return self._named(self.OPERATOR_INPUTS)

    def outputs(self) -> tuple[SSAValue, ...]:
        """The buffers of the operator's results."""
        return self._named(self.OPERATOR_RESULTS)

    def input_names(self) -> Sequence[str]:
        return [name for name, _, _ in self.named_uses() if name in self.OPERATOR_INPUTS]

    def output_names(self) -> Sequence[str]:
        return [name for name, _, _ in self.named_uses() if name in self.OPERATOR_RESULTS]

    def _named(self, names: frozenset[str]) -> tuple[SSAValue, ...]:
        operands = operands_of(self)
        return tuple(
            [operands[index] for index in _operand_indices(type(self), len(operands), segments_of(self), names)]
        )

    @property
    def prologue(self) -> Body | None:
        """The body that is applied to the first operand, or `None`."""
        if self.prologue_maps is None:
            return None
        return Body(self.bodies[0].block, affine_maps(self.prologue_maps), (), self._group("prologue_sources"))

    @property
    def epilogue(self) -> Body | None:
        """The body that is applied to the result, or `None`."""
        if self.epilogue_maps is None:
            return None
        targets, sources = self._group("epilogue_targets"), self._group("epilogue_sources")
        return Body(self.bodies[-1].block, affine_maps(self.epilogue_maps), targets, sources)

    @property
    def own_regions(self) -> Sequence[Region]:
        """The regions of the operator itself, which come before the bodies."""
        return self.regions[: self.OWN_REGIONS]

    @property
    def present_bodies(self) -> Sequence[str]:
        """The names of the present bodies, in the order of the regions."""
        return [name for name in BODIES if self.properties.get(f"{name}_maps") is not None]

    def plain_shape(self, name: str) -> Shape:
        """The shape of an operand, before packing if it is packed."""
        entry = self.packing.data.get(name) if self.packing is not None else None
        return ints(entry.data["shape"]) if isinstance(entry, DictionaryAttr) else shape_of(getattr(self, name))

    def inferred_types(self) -> Sequence[TensorType[Attribute]]:
        """The types of the operator's own results, before the epilogue; raises the errors of its type rules."""
        return cast(Any, self.OPERATOR).infer_types(self.unpacked())

    def unpacked(self) -> DerivedInstruction:
        """A detached instruction on unpacked buffers, for type inference."""
        if self.packing is None:
            return self
        types = [
            buffer_type(self.plain_shape(name), self._plain_element(value)) if name in self.packing.data else value.type
            for name, _, value in self.named_uses()
        ]
        regions = [cloned_region(region) for region in self.own_regions]
        return self.create(operands=Block(arg_types=types).args, properties=self.properties, regions=regions)

    def _plain_element(self, packed: SSAValue) -> Attribute:
        """
        The element type of an operand before packing: that of the first operand for floats, which may be wider now.
        """
        first, own = element_of(self.inputs()[0]), element_of(packed)
        return first if is_float(first) and is_float(own) else own

    def _group(self, name: str) -> tuple[SSAValue, ...]:
        return tuple([value for operand, _, value in self.named_uses() if operand == name])

    def attach_epilogue(
        self,
        result: SSAValue,
        targets: Sequence[SSAValue],
        sources: Sequence[SSAValue],
        maps: Sequence[AffineMap],
        block: Block,
    ) -> None:
        """
        Store the values that `block` yields to `result`, the first one, and `targets`; it must have no epilogue yet.
        """
        self.set_operands({self.FIRST_RESULT: [result], "epilogue_targets": targets, "epilogue_sources": sources})
        self.epilogue_maps = maps_attribute(maps)
        self.add_region(Region(block))

    def detach_epilogue(self, result: SSAValue) -> Block:
        """Undo `attach_epilogue`: store the result itself to `result`; return the body."""
        self.set_operands({self.FIRST_RESULT: [result], "epilogue_targets": [], "epilogue_sources": []})
        self.epilogue_maps = None
        return self.detach_region(len(self.regions) - 1).detach_block(0)

    def attach_prologue(
        self, first: SSAValue, sources: Sequence[SSAValue], maps: Sequence[AffineMap], block: Block
    ) -> None:
        """
        Read the values that `block` yields for elements of `first` as first operand; it must have no prologue yet.
        """
        _, *others = self._group(self.FIRST_INPUT)
        self.set_operands({self.FIRST_INPUT: [first, *others], "prologue_sources": sources})
        self.prologue_maps = maps_attribute(maps)
        epilogue = [self.detach_region(self.bodies[0])] if self.bodies else []
        self.add_region(Region(block))
        for region in epilogue:
            self.add_region(region)

    def detach_prologue(self, first: SSAValue) -> Block:
        """Undo `attach_prologue`: read the elements of `first` themselves; return the body."""
        _, *others = self._group(self.FIRST_INPUT)
        self.set_operands({self.FIRST_INPUT: [first, *others], "prologue_sources": []})
        self.prologue_maps = None
        return self.detach_region(self.bodies[0]).detach_block(0)

    def print_bodies(self, printer: Printer) -> None:
        groups = dict(operand_groups(self))
        for region in self.own_regions:
            printer.print_string(" ")
            printer.print_region(region)
        for name, region in zip(self.present_bodies, self.bodies, strict=True):
            printer.print_string(f" {name}")
            further = [(key, groups[key]) for key in _further_operands(name) if groups.get(key)]
            if further:
                printer.print_string("(")
                print_operands(printer, self.QUALIFIERS, further, start="")
                printer.print_string(") ")
                printer.print_attribute(self.properties[f"{name}_maps"])
            printer.print_string(" ")
            printer.print_region(region)

    @classmethod
    def parse_bodies(cls, parser: Parser) -> tuple[list[Region], dict[str, list[SSAValue]], dict[str, Attribute]]:
        regions = [parser.parse_region() for _ in range(cls.OWN_REGIONS)]
        groups: dict[str, list[SSAValue]] = {}
        maps: dict[str, Attribute] = {}
        definitions = dict(cls.get_irdl_definition().operands)
        for name in BODIES:
            if parser.parse_optional_keyword(name) is None:
                continue
            maps[f"{name}_maps"] = ArrayAttr[Attribute]([])
            if parser.parse_optional_punctuation("("):
                further = [(key, definitions[key]) for key in _further_operands(name)]
                groups |= parse_operands(parser, cls, further)
                parser.parse_punctuation(")")
                maps[f"{name}_maps"] = parser.parse_attribute()
            regions.append(parser.parse_region())
        return regions, groups, maps

    def verify_(self) -> None:
        count = sum(self.properties.get(name) is not None for name in self.BODY_PROPERTIES)
        require(count == len(self.bodies), f"{len(self.bodies)} bodies need as many lists of maps, got {count}")
        if self.tiles is not None:
            for name, size in self.tiles.data.items():
                numeral = isinstance(size, IntegerAttr) and size.value.data >= 0
                require(numeral, f"'{name}' in 'tiles' is a whole number from 0 on, not {size}")
        if self.image_lines is not None:
            lines, shape = integer(self.image_lines), shape_of(self.outputs()[0])
            require(len(shape) > 1 and lines >= shape[1], f"{shape} are not some lines of images of {lines}")
        if self.samples is not None:
            rows = math.prod(shape_of(self.outputs()[0])[:-1])
            splits = integer(self.samples) > 0 and rows % integer(self.samples) == 0
            require(splits, f"{rows} rows do not split into {integer(self.samples)} samples")
        if self.packing is not None:
            _verify_packing(self, self.packing)
        plain = self.unpacked()
        verify_operands(plain, self.OPERATOR)
        expected = plain.inferred_types()
        epilogue = self.epilogue
        stored = [element_of(value) for value in self.outputs()]
        if epilogue is not None:
            inner = expected[0].element_type
            _verify_epilogue(epilogue, self.outputs()[0], inner)
            stored = [inner, *stored[1:]]
        if (prologue := self.prologue) is not None:
            first = self.inputs()[0]
            verify_maps(prologue.sources, prologue.maps, rank_of(first))
            verify_body(prologue.block, [element_of(first), *elements(prologue.sources)], [element_of(first)])
        for value, element, type_ in zip(self.outputs(), stored, expected, strict=True):
            if sizes_of(value) != sizes_of(type_) or element != type_.element_type:
                raise VerifyException(f"@out has type {value.type}, but {type_} follows from the operands")


def _verify_packing(op: DerivedInstruction, packing: DictionaryAttr) -> None:
    """Check that `packing` names operands, and has the form, the unpacked shape and the numbers of each."""
    definitions = op.OPERATOR.get_irdl_definition().operands
    single = {name for name, declared in definitions if not is_variadic(declared) and getattr(op, name) is not None}
    for name, entry in packing.data.items():
        require(name in single, f"there is no operand '{name}' for 'packing'")
        verify_form(name, entry)


def _verify_epilogue(epilogue: Body, result: SSAValue, inner: Attribute) -> None:
    """Check the epilogue of an instruction that stores to `result`, and computes elements of type `inner`."""
    shape = sizes_of(result)
    sizes = verify_maps((*epilogue.targets, *epilogue.sources), epilogue.maps, len(shape))
    for dimension, size in sizes.items():
        require(size == shape[dimension], f"dimension d{dimension} is {shape[dimension]} and {size} long")
    verify_targets(epilogue.targets, epilogue.maps[: len(epilogue.targets)], shape)
    verify_body(epilogue.block, [inner, *elements(epilogue.sources)], [*elements([result, *epilogue.targets])])


def _shared_members(operator: type[HighOp]) -> dict[str, Any]:
    """Methods, class constants and properties that define the operator's meaning, not its role in a graph."""
    own = {*vars(DerivedInstruction), *vars(Instruction), *HighOp.OF_GRAPHS}
    members: dict[str, Any] = {}
    for ancestor in reversed(operator.mro()):
        if not issubclass(ancestor, HighOp) or ancestor is HighOp:
            continue
        for name, member in vars(ancestor).items():
            is_shared = isinstance(member, FunctionType | staticmethod) or name.isupper()
            if is_shared and name not in own and not name.startswith("__"):
                members[name] = member
    return members


def _check_names(operator: type[HighOp]) -> None:
    """Raise `TypeError` if an operand, result or property has the name of a member of every instruction."""
    definition = operator.get_irdl_definition()
    for name in (*dict(definition.operands), *dict(definition.results), *definition.properties):
        if name in FURTHER_OPERANDS or hasattr(DerivedInstruction, name):
            raise TypeError(f"{operator.name}: '{name}' belongs to every instruction")


def derive_instruction(operator: type[HighOp], dialect: str = "glow_low") -> type[DerivedInstruction]:
    """The instruction of `operator`, named like it in `dialect`."""
    _check_names(operator)
    definition = operator.get_irdl_definition()
    namespace: dict[str, Any] = {}
    qualifiers: dict[str, Qualifier] = {}
    for name, _ in definition.results:
        namespace[name] = operand_def(BUFFER)
        qualifiers[name] = Qualifier.OUT
    for name, declared in definition.operands:
        variadic = isinstance(declared, VariadicDef)
        optional = isinstance(declared, OptionalDef)
        namespace[name] = (opt_operand_def if optional else var_operand_def if variadic else operand_def)(BUFFER)
        qualifiers[name] = Qualifier.IN
    namespace |= {name: var_operand_def(BUFFER) for name in FURTHER_OPERANDS}
    results, inputs = [name for name, _ in definition.results], [name for name, _ in definition.operands]
    qualifiers |= FURTHER_OPERANDS
    for name, declared in definition.properties.items():
        if name == "operandSegmentSizes":
            continue
        if isinstance(declared, OptionalDef):
            namespace[name] = opt_prop_def(declared.constr)
        else:
            namespace[name] = prop_def(declared.constr, default_value=declared.default_value)
    namespace |= {name: region_def("single_block") for name, _ in definition.regions}
    namespace |= {
        "name": f"{dialect}.{operator.name.split('.', 1)[1]}",
        "__doc__": operator.__doc__,
        "__annotations__": {},
        "__module__": operator.__module__,
    }
    kind = type(f"{operator.__name__}Instruction", (DerivedInstruction,), namespace)
    instruction = with_operand_accessors(op_definition(kind))
    if definition.options:
        with_operand_accessors(operator)
    constants = {
        "OPERATOR": operator,
        "OPERATOR_INPUTS": frozenset(inputs),
        "OWN_REGIONS": len(definition.regions),
        "OPERATOR_RESULTS": frozenset(results),
        "FIRST_INPUT": inputs[0] if inputs else "",
        "FIRST_RESULT": results[0] if results else "",
        "QUALIFIERS": qualifiers,
        "INPLACE": operator.INPLACE,
    }
    for name, member in {**_shared_members(operator), **constants}.items():
        setattr(instruction, name, member)
    return instruction
