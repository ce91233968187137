"""How products are summed: one step of a micro-kernel along the depth, with the instructions of a target."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import bf16, i8
from xdsl.ir import Attribute, Operation, SSAValue

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32, i16, i32, i64, type_info, vector
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.kernels.products.tiles import Tile, tile_for
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
"""The factors made of the dot groups of an operand: vectors, one per multiply instruction."""


@dataclass(frozen=True)
class DotProduct:
    """
    Products of elements of the types `left` and `right`, one at a time: both are converted to the type of the
    `accumulators`.

    A *dot group* is some neighbours along the depth, loaded as one scalar: a step takes one of a row of the left
    operand and one of each column of a panel of the right operand. Element types have the signs of the operands.
    """

    left: Attribute
    right: Attribute
    accumulators: Attribute

    @property
    def group(self) -> int:
        """The number of elements of a dot group."""
        return 1

    def lanes(self, target: Target) -> int:
        """Return the number of accumulators of a vector."""
        return target.vector_width(self.accumulators)

    def tile(self, target: Target) -> Tile:
        """Return the tile in which a target computes them."""
        return tile_for(target, self.accumulators, self.lanes(target))

    @property
    def readable(self) -> str:
        """The part of function names that describes these products."""
        return str(self.accumulators) if self.left == self.accumulators else f"{self.left}.{self.right}"

    @property
    def singly(self) -> DotProduct:
        """The same products one at a time."""
        return DotProduct(self.left, self.right, self.accumulators)

    @property
    def memory(self) -> Attribute:
        """The type of an element of the left operand in memory."""
        return signless(self.left)

    @property
    def left_group(self) -> Attribute:
        """The type that a dot group of the left operand is loaded as."""
        return loaded_as(self.left)

    @property
    def right_group(self) -> Attribute:
        """The type of a dot group in a row of a panel, one for each column."""
        return loaded_as(self.right)

    @property
    def start(self) -> int:
        """
        The initial value of accumulators, as a multiple of the sum of a column. The first row of a panel stores its
        absolute value.
        """
        return 0

    def interleave(self, run: int) -> Interleave:
        """Return the form of panels for a depth of contiguous runs of one length."""
        return Interleave()

    def panel_rows(self, depth: Index, run: Index) -> Index:
        """Return the rows of dot groups of a panel for a depth of contiguous runs of one length."""
        return depth

    def dot_groups(self, run: Index) -> tuple[Index, int]:
        """Return the number of whole dot groups that are read of a run, and of the elements left."""
        return run, 0

    def last_group(self, run: Index) -> int | None:
        """
        Return the start of the last dot group of a run, if it overlaps the one before so as to be whole; else `None`.
        """
        return None

    def has_vectors_of(self, lanes: int) -> bool:
        """Whether there are vectors of `lanes` accumulators."""
        return True

    def read(self, b: Builder, address: Value, count: int | None = None) -> Value:
        """Load a dot group of the left operand, or its first `count` elements; the others are unspecified."""
        dot_group = address.load(self.left_group)
        return dot_group if is_half(self.left) else to_accumulators(b, dot_group, self.left, self.accumulators)

    def spread(self, b: Builder, dot_group: Value, lanes: int) -> Parts:
        """Broadcast a dot group of the left operand to `lanes` accumulators."""
        spread = b.splat(dot_group, lanes)
        # Converting a vector costs less than converting a scalar and moving it to a vector register.
        return (to_accumulators(b, spread, self.left, self.accumulators) if is_half(self.left) else spread,)

    def columns(self, b: Builder, address: Value, lanes: int) -> Parts:
        """Load a dot group of each of `lanes` columns of a panel, aligned to the whole vector."""
        type_ = vector(self.right_group, lanes)
        loaded = address.load(type_, align=lanes * type_info(type_).bytes_in_memory)
        return (to_accumulators(b, loaded, self.right, self.accumulators),)

    @property
    def widened(self) -> DotProduct | None:
        """The same products for panels of widened dot groups, if widening takes instructions; else `None`."""
        return None

    def multiply_add(self, b: Builder, left: Parts, right: Parts, total: Value) -> Value:
        """Add the products of the results of `spread` and `columns` to accumulators."""
        (x,), (y,) = left, right
        return b.fma(x, y, total) if is_float(self.accumulators) else total + x * y


@dataclass(frozen=True)
class DotInstruction:
    """
    An instruction that adds the products of a dot group to each lane: of bytes to i32, without rounding or saturation,
    or of bf16 to f32. A dot group has 32 bits, as a lane.

    It exists on targets with all `features`, in vectors of `widths` bits. `intrinsic` is the name of the LLVM
    intrinsic, with placeholders for the width or the types of accumulators and elements. The right bytes are signed.
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
        """The number of elements of a dot group."""
        return DOT_GROUP_BITS // bit_width(self.element)

    def lanes(self, target: Target) -> int:
        """Return the number of accumulators of a vector."""
        return max(1, target.vector_bits // DOT_GROUP_BITS)

    def columns(self, lanes: int) -> Attribute:
        """Return the type that the dot groups of `lanes` columns are loaded as."""
        return vector(i32, lanes)

    def spread(self, b: Builder, dot_group: Value, lanes: int, flipped: bool) -> Value:
        """Broadcast a dot group to each lane; if `flipped`, change the sign bits of its bytes."""
        dot_groups = b.splat(dot_group, lanes)
        return b.xor(dot_groups, _SIGN_BITS) if flipped else dot_groups

    def is_available(self, target: Target) -> bool:
        """Whether a target has it for its vectors."""
        return self.features <= target.enabled and target.vector_bits in self.widths

    def multiplies(self, left: Attribute, right: Attribute) -> bool:
        """Whether it multiplies elements of these types, if necessary shifted to the other signedness."""
        return signless(left) == self.element == right

    def start(self, left: Attribute) -> int:
        """Return the initial value of accumulators for a left type, as a multiple of the sum of the right elements."""
        if is_float(left) or is_unsigned(left) != self.is_left_signed:
            return 0
        return 128 if self.is_left_signed else -128

    def parts(self, b: Builder, dot_groups: Value, signed: bool) -> Parts:
        """Return the factors made of dot groups."""
        return (b.bitcast(dot_groups, self.element),)

    def emit(self, b: Builder, total: Value, left: Parts, right: Parts) -> Value:
        """Return the accumulators with the products added."""
        types = [_type_in_names(value) for value in (total, *left)]
        name = self.intrinsic.format(bits=DOT_GROUP_BITS * total.lanes, types=".".join(types))
        return b.intrinsic(name, (total, *left, *right), total.type)


@dataclass(frozen=True)
class WordInstruction(DotInstruction):
    """
    An instruction that adds two products of words, used for the even and the odd bytes: exact for any left signedness.
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
    """Such an instruction for one lane in a general-purpose register: Arm's DSP extension."""

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
    An instruction that adds all products of two vectors along the depth to one general-purpose register: Helium.

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
        # Flags: signed operands, products are added, elements in order.
        flags = [b.constant(0, i32)] * 3
        return b.intrinsic(self.intrinsic, (*flags, total, *left, *right), total.type)


def _type_in_names(value: Value) -> str:
    """Return the type of a vector as in the names of intrinsics."""
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
"""All dot-product instructions; an entry adds one."""


@dataclass(frozen=True)
class PairInstruction:
    """
    An instruction that adds pairs of products of unsigned and signed bytes to words, with saturation; another adds
    pairs of words. It exists on targets with a `feature`, in vectors of `width` bits.
    """

    feature: str
    width: int
    multiply: str
    widen: str

    def is_available(self, target: Target) -> bool:
        """Whether a target has it for its vectors."""
        return self.feature in target.enabled and target.vector_bits == self.width

    def most(self, left: int, right: int) -> int:
        """How many results can be added, of bytes up to these magnitudes, before a word overflows."""
        return 0x7FFF // (2 * left * right)


PAIR_INSTRUCTIONS: Sequence[PairInstruction] = (
    PairInstruction("avx512bw", 512, "llvm.x86.avx512.pmaddubs.w.512", "llvm.x86.avx512.pmaddw.d.512"),
    PairInstruction("avx2", 256, "llvm.x86.avx2.pmadd.ub.sw", "llvm.x86.avx2.pmadd.wd"),
    PairInstruction("ssse3", 128, "llvm.x86.ssse3.pmadd.ub.sw.128", "llvm.x86.sse2.pmadd.wd"),
)
"""Where no instruction adds products of bytes to i32, these take half as many steps as products of words."""


def pair_instruction(target: Target, left: int, right: int) -> PairInstruction | None:
    """The instruction for pairs of products of bytes up to these magnitudes, where it is the fastest one."""
    bytes_ = (one for one in DOT_INSTRUCTIONS if one.element == i8 and one.is_available(target))
    if not isinstance(next(bytes_, None), WordInstruction):
        return None
    found = (one for one in PAIR_INSTRUCTIONS if one.is_available(target))
    return next((one for one in found if one.most(left, right)), None)


_SIGN_BITS = 0x80808080
"""The bits whose change turns signed bytes into unsigned ones, 128 larger, and the reverse."""


@dataclass(frozen=True)
class DotGroupProduct(DotProduct):
    """
    Products of narrow elements, a dot group at a time, by an instruction.

    If the instruction reads left bytes with the other signedness, they are shifted by 128. The initial accumulators
    compensate for this.
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
        assert isinstance(depth, int), "dot groups need runs of known length"
        assert isinstance(run, int), "dot groups need runs of known length"
        return depth // max(1, run) * -(-run // self.group) + (self.start != 0)

    def dot_groups(self, run: Index) -> tuple[Index, int]:
        assert isinstance(run, int), "dot groups need runs of known length"
        whole, rest = divmod(run, self.group)
        return (whole, rest) if self.last_group(run) is None else (whole + 1, 0)

    def last_group(self, run: Index) -> int | None:
        assert isinstance(run, int), "dot groups need runs of known length"
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
    Such products in general-purpose registers, for panels whose dot groups are widened from four bytes to two words.
    """

    @property
    def right_group(self) -> Attribute:
        return i64

    def columns(self, b: Builder, address: Value, lanes: int) -> Parts:
        return tuple(address.at(part, i32).load(i32) for part in range(2))


def adds_bytes(dot: DotProduct, lanes: int) -> bool:
    """Whether an instruction adds the products of dot groups of bytes to each of `lanes` accumulators, in one step."""
    if not isinstance(dot, DotGroupProduct) or type(dot.instruction) is not DotInstruction:
        return False
    return dot.instruction.element == i8 and dot.has_vectors_of(lanes)


def multiplies(op: Operation, *factors: SSAValue) -> bool:
    """
    Whether kernels compute an operator's products: of integers and floats; of 16-bit floats if it returns accumulators.
    """
    elements = [element_of(factor) for factor in factors]
    accumulators = op.properties.get("to") is not None
    return all(
        is_integer(element) or (is_float(element) and (accumulators or not is_half(element))) for element in elements
    )


def dot_product(left: SSAValue, right: SSAValue, target: Target) -> DotProduct:
    """
    Return how a target computes products of the elements of two operands.

    Before `verify-selected` has checked it, a packed right operand may have any type: one that does not fit the left
    operand is treated as if it had the left type.
    """
    first, second = element_of(left), element_of(right)
    key = number_of(first), number_of(second), number_of(target)
    if key not in _DOT_PRODUCTS:
        if len(_DOT_PRODUCTS) >= MAX_KEPT:
            _DOT_PRODUCTS.clear()
        _DOT_PRODUCTS[key] = _dot_product(first, second, target)
    return _DOT_PRODUCTS[key]


_DOT_PRODUCTS: dict[tuple[int, int, int], DotProduct] = {}
"""Two element types and a target → how the target computes their products."""


def _dot_product(first: Attribute, second: Attribute, target: Target) -> DotProduct:
    """Return how a target computes products of elements of two types."""
    fits = is_integer(first) and is_integer(second) and byte_width(first) == byte_width(second) < 4
    signature = ProductSignature.of_elements(first, second if fits else first)
    types = signature.left, signature.right, signless(signature.accumulator)
    ways = [
        DotGroupProduct(*types, instruction)
        for instruction in DOT_INSTRUCTIONS
        if instruction.multiplies(signature.left, signature.right) and instruction.is_available(target)
    ]
    # Prefer one that needs no initial value among those that are as fast.
    alike = [way for way in ways if type(way.instruction) is type(ways[0].instruction)]
    return min(alike, key=lambda way: way.start != 0, default=DotProduct(*types))


def dot_group_product(right: Attribute, interleave: Interleave, target: Target) -> DotGroupProduct:
    """
    Return the products that read right elements of a type in an interleaved form, with any left operand.

    Raises `LookupError` if the target has none.
    """
    lefts = (right, i8, ui8)
    for instruction in DOT_INSTRUCTIONS:
        for left in lefts if is_integer(right) else (right,):
            signature = ProductSignature.of_elements(left, right)
            if instruction.multiplies(signature.left, signature.right) and instruction.is_available(target):
                found = DotGroupProduct(signature.left, signature.right, signless(signature.accumulator), instruction)
                if found.interleave(interleave.run) == interleave:
                    return found
    raise LookupError(f"{target.cpu} reads no {right} in the form {interleave}")


def multiply_adds(element: Attribute) -> DotProduct:
    """Return products of one type, accumulated in that type."""
    return DotProduct(element, element, element)


MULTIPLY_ADDS_F32 = multiply_adds(f32)
"""Products of f32, accumulated in f32."""
