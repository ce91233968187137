"""How products are summed: what a micro-kernel does with one step along the depth, by the instructions of a machine."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import bf16, i8
from xdsl.ir import Attribute, Operation, SSAValue

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32, i16, i32, i64, type_info, vector
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.kernels.tiles import Tile, tile_for
from glow_mlir.codegen.math.half import is_half, loaded_as, to_accumulators
from glow_mlir.constants.layouts import Interleave
from glow_mlir.constants.sub_byte_values import DOT_GROUP_BITS
from glow_mlir.dialects.element_types import bit_width, byte_width, is_float, is_integer, is_unsigned, signless, ui8
from glow_mlir.dialects.product_types import ProductSignature
from glow_mlir.dialects.shapes import element_of
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.identity import MAX_KEPT, number_of

Parts = Sequence[Value]
"""What is multiplied of the dot groups of an operand: vectors, one for each instruction that it takes."""


@dataclass(frozen=True)
class DotProduct:
    """
    Products of elements of the types `left` and `right`, one at a time: both are converted to the type of the
    `accumulators`.

    A *dot group* is what a step takes of a row of the left operand, and of a column of a panel of the right one: some
    neighbours along the depth, as one scalar. Element types have the signs of the operands.
    """

    left: Attribute
    right: Attribute
    accumulators: Attribute

    @property
    def group(self) -> int:
        """How many neighbours along the depth a dot group has."""
        return 1

    def lanes(self, target: Target) -> int:
        """How many accumulators a vector has."""
        return target.vector_width(self.accumulators)

    def tile(self, target: Target) -> Tile:
        """The tile in which a machine computes them."""
        return tile_for(target, self.accumulators, self.lanes(target))

    @property
    def readable(self) -> str:
        """What functions that compute so are called by."""
        return str(self.accumulators) if self.left == self.accumulators else f"{self.left}.{self.right}"

    @property
    def singly(self) -> DotProduct:
        """The same products one at a time."""
        return DotProduct(self.left, self.right, self.accumulators)

    @property
    def memory(self) -> Attribute:
        """The type in which memory has an element of the left operand."""
        return signless(self.left)

    @property
    def left_group(self) -> Attribute:
        """The type in which a dot group of the left operand is read."""
        return loaded_as(self.left)

    @property
    def right_group(self) -> Attribute:
        """The type of which a row of a panel has one for each column."""
        return loaded_as(self.right)

    @property
    def start(self) -> int:
        """
        What accumulators begin with, as a multiple of the sum of a column; the first row of a panel has it without its
        sign.
        """
        return 0

    def interleave(self, run: int) -> Interleave:
        """The form of panels for a depth that is made of contiguous runs of one length."""
        return Interleave()

    def panel_rows(self, depth: Index, run: Index) -> Index:
        """How many rows of dot groups a panel has for a depth that is made of contiguous runs of one length."""
        return depth

    def dot_groups(self, run: Index) -> tuple[Index, int]:
        """How many whole dot groups are read of a run, and how many elements are left."""
        return run, 0

    def last_group(self, run: Index) -> int | None:
        """
        Where in a run its last dot group begins, if that has elements in common with the one before, so that it is
        whole.
        """
        return None

    def has_vectors_of(self, lanes: int) -> bool:
        """Whether there are vectors of so many accumulators."""
        return True

    def read(self, b: Builder, address: Value, count: int | None = None) -> Value:
        """A dot group of the left operand, or the first elements of one; what is not there stands for any number."""
        dot_group = address.load(self.left_group)
        return dot_group if is_half(self.left) else to_accumulators(b, dot_group, self.left, self.accumulators)

    def spread(self, b: Builder, dot_group: Value, lanes: int) -> Parts:
        """A dot group of the left operand for each of `lanes` accumulators."""
        spread = b.splat(dot_group, lanes)
        # One conversion of a vector costs less than that of a scalar and its way there.
        return (to_accumulators(b, spread, self.left, self.accumulators) if is_half(self.left) else spread,)

    def columns(self, b: Builder, address: Value, lanes: int) -> Parts:
        """A dot group of each of `lanes` columns of a panel, aligned to a whole vector of them."""
        type_ = vector(self.right_group, lanes)
        loaded = address.load(type_, align=lanes * type_info(type_).bytes_in_memory)
        return (to_accumulators(b, loaded, self.right, self.accumulators),)

    @property
    def widened(self) -> DotProduct | None:
        """The same products of panels that hold the parts of dot groups, where it takes instructions to make these."""
        return None

    def multiply_add(self, b: Builder, left: Parts, right: Parts, total: Value) -> Value:
        """Sums with the products of what `spread` and `columns` gave added."""
        (x,), (y,) = left, right
        return b.fma(x, y, total) if is_float(self.accumulators) else total + x * y


@dataclass(frozen=True)
class DotInstruction:
    """
    An instruction that adds the products of a dot group to each lane: of bytes to i32, without rounding or saturation,
    or of bf16 to f32. A dot group has as many bits as a lane, 32.

    It is there with all of some `features`, in vectors of some `widths` in bits, as an LLVM intrinsic whose name has
    the types of accumulators and elements, or the width, in its place. The right bytes are signed.
    """

    name: str
    features: frozenset[str]
    widths: Sequence[int]
    intrinsic: str
    is_left_signed: bool = False
    element: Attribute = i8

    @property
    def dot_group(self) -> Attribute:
        """The type of a dot group."""
        return i32

    @property
    def group(self) -> int:
        """How many elements a dot group has."""
        return DOT_GROUP_BITS // bit_width(self.element)

    def lanes(self, target: Target) -> int:
        """How many accumulators a vector has."""
        return max(1, target.vector_bits // DOT_GROUP_BITS)

    def columns(self, lanes: int) -> Attribute:
        """The type in which the dot groups of some columns are read."""
        return vector(i32, lanes)

    def spread(self, b: Builder, dot_group: Value, lanes: int, flipped: bool) -> Value:
        """A dot group for each lane, with the sign of its bytes changed where it is `flipped`."""
        dot_groups = b.splat(dot_group, lanes)
        return b.xor(dot_groups, _SIGN_BITS) if flipped else dot_groups

    def is_there(self, target: Target) -> bool:
        """Whether a machine has it in its vectors."""
        return self.features <= target.enabled and target.vector_bits in self.widths

    def multiplies(self, left: Attribute, right: Attribute) -> bool:
        """Whether it multiplies elements of these types, if need be shifted to the other sign."""
        return signless(left) == self.element == right

    def start(self, left: Attribute) -> int:
        """What accumulators begin with for left elements of a type, as a multiple of the sums of the right ones."""
        if is_float(left) or is_unsigned(left) != self.is_left_signed:
            return 0
        return 128 if self.is_left_signed else -128

    def parts(self, b: Builder, dot_groups: Value, signed: bool) -> Parts:
        """What is multiplied of some dot groups."""
        return (b.bitcast(dot_groups, self.element),)

    def emit(self, b: Builder, total: Value, left: Parts, right: Parts) -> Value:
        """The accumulators with products added."""
        types = [_type_in_names(value) for value in (total, *left)]
        name = self.intrinsic.format(bits=DOT_GROUP_BITS * total.lanes, types=".".join(types))
        return b.intrinsic(name, (total, *left, *right), total.type)


@dataclass(frozen=True)
class WordInstruction(DotInstruction):
    """
    An instruction that adds two products of words, for the bytes of even and odd places: exact, and of any left sign.
    """

    def start(self, left: Attribute) -> int:
        return 0

    def parts(self, b: Builder, dot_groups: Value, signed: bool) -> Parts:
        words = b.bitcast(dot_groups, i16)
        if signed:
            return b.ashr(b.shl(words, 8), 8), b.ashr(words, 8)
        return words & 0xFF, b.lshr(words, 8)

    def emit(self, b: Builder, total: Value, left: Parts, right: Parts) -> Value:
        for x, y in zip(left, right, strict=True):
            total = total + b.intrinsic(self.intrinsic, (x, y), total.type)
        return total


@dataclass(frozen=True)
class ScalarWordInstruction(WordInstruction):
    """Such an instruction for one lane, in a register of the core: Arm's DSP extension."""

    def parts(self, b: Builder, dot_groups: Value, signed: bool) -> Parts:
        widen = f"llvm.arm.{'s' if signed else 'u'}xtb16"
        odd = b.intrinsic("llvm.fshr.i32", (dot_groups, dot_groups, b.constant(8, i32)), i32)
        return tuple(b.intrinsic(widen, (part,), i32) for part in (dot_groups, odd))

    def emit(self, b: Builder, total: Value, left: Parts, right: Parts) -> Value:
        for x, y in zip(left, right, strict=True):
            total = b.intrinsic(self.intrinsic, (x, y, total), total.type)
        return total


@dataclass(frozen=True)
class ReducingInstruction(DotInstruction):
    """
    An instruction that adds all products of two vectors along the depth to one sum, in a register of the core: Helium.

    A dot group is a vector of 16 bytes.
    """

    @property
    def dot_group(self) -> Attribute:
        return vector(i8, self.group)

    @property
    def group(self) -> int:
        return 16

    def lanes(self, target: Target) -> int:
        return 1

    def columns(self, lanes: int) -> Attribute:
        return self.dot_group

    def spread(self, b: Builder, dot_group: Value, lanes: int, flipped: bool) -> Value:
        return b.xor(dot_group, -128) if flipped else dot_group

    def parts(self, b: Builder, dot_groups: Value, signed: bool) -> Parts:
        return (dot_groups,)

    def emit(self, b: Builder, total: Value, left: Parts, right: Parts) -> Value:
        # Operands have signs, products are added, elements are in their order.
        flags = [b.constant(0, i32)] * 3
        return b.intrinsic(self.intrinsic, (*flags, total, *left, *right), total.type)


def _type_in_names(value: Value) -> str:
    """The type of a vector as the names of intrinsics have it."""
    kind = "bf" if value.info.element == bf16 else "f" if value.info.is_float else "i"
    return f"v{value.lanes}{kind}{value.info.bits}"


_X86, _ARM = "llvm.x86.avx512.vpdpbusd.{bits}", "llvm.aarch64.neon.{name}.{{types}}"

DOT_INSTRUCTIONS: Sequence[DotInstruction] = (
    DotInstruction("vpdpbusd", frozenset({"avx512vnni", "avx512vl"}), (128, 256, 512), _X86),
    DotInstruction("vpdpbusd", frozenset({"avxvnni"}), (128, 256), _X86),
    DotInstruction("sdot", frozenset({"dotprod"}), (64, 128), _ARM.format(name="sdot"), is_left_signed=True),
    DotInstruction("usdot", frozenset({"i8mm"}), (64, 128), _ARM.format(name="usdot")),
    WordInstruction("pmaddwd", frozenset({"avx512bw"}), (512,), "llvm.x86.avx512.pmaddw.d.512"),
    WordInstruction("pmaddwd", frozenset({"avx2"}), (256,), "llvm.x86.avx2.pmadd.wd"),
    WordInstruction("pmaddwd", frozenset({"sse2"}), (128,), "llvm.x86.sse2.pmadd.wd"),
    WordInstruction("i32x4.dot", frozenset({"simd128"}), (128,), "llvm.wasm.dot"),
    ScalarWordInstruction("smlad", frozenset({"dsp"}), (0,), "llvm.arm.smlad"),
    ReducingInstruction("vmladava", frozenset({"mve.fp"}), (128,), "llvm.arm.mve.vmldava.v16i8", is_left_signed=True),
    DotInstruction(
        "vdpbf16ps",
        frozenset({"avx512bf16", "avx512vl"}),
        (128, 256, 512),
        "llvm.x86.avx512bf16.dpbf16ps.{bits}",
        element=bf16,
    ),
    DotInstruction("bfdot", frozenset({"bf16"}), (64, 128), _ARM.format(name="bfdot"), element=bf16),
)
"""The instructions that there are on some machine; an entry adds one."""

_SIGN_BITS = 0x80808080
"""The bits that make signed bytes unsigned ones, 128 larger, and the reverse."""


@dataclass(frozen=True)
class DotGroupProduct(DotProduct):
    """
    Products of narrow elements, those of a dot group at a time, by an instruction.

    Where that reads left bytes with the other sign, they are shifted by 128, for which the accumulators make up at
    their start.
    """

    instruction: DotInstruction

    @property
    def group(self) -> int:
        return self.instruction.group

    def lanes(self, target: Target) -> int:
        return self.instruction.lanes(target)

    @property
    def readable(self) -> str:
        return f"{self.instruction.name}.{self.left}.{self.right}"

    @property
    def left_group(self) -> Attribute:
        return self.instruction.dot_group

    @property
    def right_group(self) -> Attribute:
        return self.instruction.dot_group

    @property
    def start(self) -> int:
        return self.instruction.start(self.left)

    def interleave(self, run: int) -> Interleave:
        return Interleave(self.group, run, abs(self.start))

    def panel_rows(self, depth: Index, run: Index) -> Index:
        assert isinstance(depth, int), "cells are of runs of known length"
        assert isinstance(run, int), "cells are of runs of known length"
        return depth // max(1, run) * -(-run // self.group) + (self.start != 0)

    def dot_groups(self, run: Index) -> tuple[Index, int]:
        assert isinstance(run, int), "cells are of runs of known length"
        whole, rest = divmod(run, self.group)
        return (whole, rest) if self.last_group(run) is None else (whole + 1, 0)

    def last_group(self, run: Index) -> int | None:
        assert isinstance(run, int), "cells are of runs of known length"
        return run - self.group if self.interleave(run).shared(run) else None

    def has_vectors_of(self, lanes: int) -> bool:
        return DOT_GROUP_BITS * lanes in self.instruction.widths

    def read(self, b: Builder, address: Value, count: int | None = None) -> Value:
        if count is None:
            return address.load(self.left_group, align=1)
        if type_info(self.left_group).is_vector:
            mask = b.mask(count, self.group, bit_width(self.left))
            return b.load_masked(address, self.left_group, mask, align=1)
        parts = {8: ((0, i8),), 16: ((0, i16),), 24: ((0, i16), (2, i8))}[count * bit_width(self.left)]
        loaded = [b.cast(address.at(at, i8).load(type_, align=1), i32, signed=False) << 8 * at for at, type_ in parts]
        return loaded[0] if len(loaded) == 1 else loaded[0] | loaded[1]

    def spread(self, b: Builder, dot_group: Value, lanes: int) -> Parts:
        dot_groups = self.instruction.spread(b, dot_group, lanes, flipped=self.start != 0)
        return self.instruction.parts(b, dot_groups, signed=not is_unsigned(self.left))

    @property
    def widened(self) -> DotProduct | None:
        if not isinstance(self.instruction, ScalarWordInstruction):
            return None
        return WidenedProduct(self.left, self.right, self.accumulators, self.instruction)

    def columns(self, b: Builder, address: Value, lanes: int) -> Parts:
        type_ = self.instruction.columns(lanes)
        size = type_info(type_).lanes * type_info(type_).bytes_in_memory
        return self.instruction.parts(b, address.load(type_, align=size), signed=True)

    def multiply_add(self, b: Builder, left: Parts, right: Parts, total: Value) -> Value:
        return self.instruction.emit(b, total, left, right)


@dataclass(frozen=True)
class WidenedProduct(DotGroupProduct):
    """
    Such products in registers of the core, of panels whose dot groups are two words for the two parts of four bytes.
    """

    @property
    def right_group(self) -> Attribute:
        return i64

    def columns(self, b: Builder, address: Value, lanes: int) -> Parts:
        return tuple(address.at(part, i32).load(i32) for part in range(2))


def multiplies(op: Operation, *factors: SSAValue) -> bool:
    """
    Whether there are the products of an operator: of integers and floats, those of 16 bits where it gives accumulators.
    """
    elements = [element_of(factor) for factor in factors]
    accumulators = op.properties.get("to") is not None
    return all(
        is_integer(element) or (is_float(element) and (accumulators or not is_half(element))) for element in elements
    )


def dot_product(left: SSAValue, right: SSAValue, target: Target) -> DotProduct:
    """
    How a machine computes products of the elements of two operands.

    A packed right operand may have any type before `verify-selected` has compared it: one that does not fit the left
    operand counts as of its type.
    """
    first, second = element_of(left), element_of(right)
    key = number_of(first), number_of(second), number_of(target)
    if key not in _DOT_PRODUCTS:
        if len(_DOT_PRODUCTS) >= MAX_KEPT:
            _DOT_PRODUCTS.clear()
        _DOT_PRODUCTS[key] = _dot_product(first, second, target)
    return _DOT_PRODUCTS[key]


_DOT_PRODUCTS: dict[tuple[int, int, int], DotProduct] = {}
"""Two element types and a target → how it computes products of them."""


def _dot_product(first: Attribute, second: Attribute, target: Target) -> DotProduct:
    """How a machine computes products of elements of two types."""
    fits = is_integer(first) and is_integer(second) and byte_width(first) == byte_width(second) < 4
    signature = ProductSignature.of_elements(first, second if fits else first)
    types = signature.left, signature.right, signless(signature.accumulator)
    ways = [
        DotGroupProduct(*types, instruction)
        for instruction in DOT_INSTRUCTIONS
        if instruction.multiplies(signature.left, signature.right) and instruction.is_there(target)
    ]
    # One that needs no start, where there is one as fast.
    alike = [way for way in ways if type(way.instruction) is type(ways[0].instruction)]
    return min(alike, key=lambda way: way.start != 0, default=DotProduct(*types))


def dot_group_product(right: Attribute, interleave: Interleave, target: Target) -> DotGroupProduct:
    """
    Products that read right elements of a type in an interleaved form, with some left operand.

    Raises `LookupError` where a machine has none.
    """
    lefts = (right, i8, ui8)
    for instruction in DOT_INSTRUCTIONS:
        for left in lefts if is_integer(right) else (right,):
            signature = ProductSignature.of_elements(left, right)
            if instruction.multiplies(signature.left, signature.right) and instruction.is_there(target):
                found = DotGroupProduct(signature.left, signature.right, signless(signature.accumulator), instruction)
                if found.interleave(interleave.run) == interleave:
                    return found
    raise LookupError(f"{target.cpu} reads no {right} in the form {interleave}")


def multiply_adds(element: Attribute) -> DotProduct:
    """Products of one type, summed in it."""
    return DotProduct(element, element, element)


MULTIPLY_ADDS_F32 = multiply_adds(f32)
"""Products of f32."""
