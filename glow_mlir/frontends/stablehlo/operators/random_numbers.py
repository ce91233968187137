"""Random numbers: the generators of bits of XLA, and draws from the random state of a session."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import f64, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import byte_width, is_float, number_width, ui32, ui64
from glow_mlir.dialects.expressions import Tensor, converted, cos, floor, log, sqrt
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, BitwiseOrOp, BitwiseXorOp, LessOp, WhereOp
from glow_mlir.dialects.glow_high.random_numbers import WORDS, PhiloxOp
from glow_mlir.dialects.shapes import element_of, shape_of
from glow_mlir.frontends.builder.bit_casts import of_bits
from glow_mlir.frontends.builder.emission import positions
from glow_mlir.frontends.builder.random_numbers import RandomNumbers, computed_in
from glow_mlir.frontends.stablehlo.node import StablehloNode, Value, stablehlo_operator
from glow_mlir.frontends.stablehlo.operators.bits import shifted

WORD = 32
"""The bits of a word of both generators."""

Words = tuple[SSAValue, SSAValue]
"""The low and the high word of integers of 64 bits."""

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""The rotations of the four rounds of threefry between two additions of the key, in turns."""

PARITY = 0x1BD11BDA
"""What the words of a key are joined with to its third word."""

GROUPS = 5
"""The number of times that four rounds are made."""


def words_of(node: StablehloNode, value: SSAValue) -> Words:
    """Both words of unsigned integers of 64 bits."""
    return node.cast(value, ui32), node.cast(shifted(node, value, WORD), ui32)


def joined_words(node: StablehloNode, words: Words) -> SSAValue:
    """Unsigned integers of 64 bits from both words."""
    low, high = (node.cast(word, ui64) for word in words)
    return node.emit(BitwiseOrOp, low, shifted(node, high, WORD, "left"))


def threefry(node: StablehloNode, counter: Words, key: Words) -> Words:
    """Threefry 2x32 with 20 rounds (Salmon et al., 2011)."""
    third = node.emit(BitwiseXorOp, node.emit(BitwiseXorOp, *key), node.splat(PARITY, ui32))
    keys = (*key, third)
    left, right = (node.emit(AddOp, *pair) for pair in zip(counter, key, strict=True))
    for group in range(GROUPS):
        for rotation in ROTATIONS[group % 2]:
            left = node.emit(AddOp, left, right)
            low, high = shifted(node, right, rotation, "left"), shifted(node, right, WORD - rotation)
            right = node.emit(BitwiseXorOp, node.emit(BitwiseOrOp, low, high), left)
        left = node.emit(AddOp, left, keys[(group + 1) % 3])
        number = node.splat(group + 1, ui32)
        right = node.emit(AddOp, right, node.emit(AddOp, keys[(group + 2) % 3], number))
    return left, right


def element(node: StablehloNode, state: SSAValue, at: int) -> SSAValue:
    """One element of a vector, as a vector."""
    return node.emit(SliceOp, state, starts=[at], ends=[at + 1], steps=[1])


def counters(node: StablehloNode, start: SSAValue, count: int) -> SSAValue:
    """`count` numbers from a start on, which is a vector of one element of ui64."""
    return node.emit(AddOp, node.cast(positions(count, i64, node), ui64), start)


def by_threefry(node: StablehloNode, state: SSAValue, shape: Sequence[int], width: int) -> tuple[SSAValue, SSAValue]:
    """The next state, a key and a counter, and bits of `width`, 32 or 64."""
    key, start = words_of(node, element(node, state, 0)), element(node, state, 1)
    halves = Halves(shape) if width == WORD else None
    count = math.prod(shape if halves is None else halves.half)
    words = threefry(node, words_of(node, counters(node, start, count)), key)
    found = node.reshaped(joined_words(node, words), tuple(shape)) if halves is None else halves.joined(node, words)
    following = node.emit(AddOp, start, node.splat(count, ui64))
    return node.emit(ConcatOp, [element(node, state, 0), following], axis=0), found


class Halves:
    """
    A shape split in two along a dimension: the first one of even size, or else the largest one, rounded up.

    The two words for each counter are neighbours along it.
    """

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)
        even = [axis for axis, size in enumerate(shape) if size % 2 == 0]
        largest = max(range(len(shape)), key=lambda axis: (shape[axis], -axis), default=0)
        self.axis = even[0] if even else largest
        self.half = tuple(-(-size // 2) if axis == self.axis else size for axis, size in enumerate(shape))

    def joined(self, node: StablehloNode, words: Words) -> SSAValue:
        """The words in the shape."""
        after = self.axis + 1
        apart = (*self.half[:after], 1, *self.half[after:])
        if not self.shape:
            return node.reshaped(words[0], ())
        both = node.emit(ConcatOp, [node.reshaped(word, apart) for word in words], axis=after)
        whole = tuple(2 * size if axis == self.axis else size for axis, size in enumerate(self.half))
        found = node.reshaped(both, whole)
        if whole == self.shape:
            return found
        ones, zeros = [1] * len(whole), [0] * len(whole)
        return node.emit(SliceOp, found, starts=zeros, ends=self.shape, steps=ones)


def by_philox(node: StablehloNode, state: SSAValue, shape: Sequence[int], width: int) -> tuple[SSAValue, SSAValue]:
    """
    The next state, a key and a counter of one or two elements, and bits of `width`, 32 or 64.

    The key is the upper element of a counter of one element, as in XLA.
    """
    count = math.prod(shape)
    blocks = -(-count * (width // WORD) // WORDS)
    low = counters(node, element(node, state, 1), blocks)
    parts = shape_of(state)[0]
    high = element(node, state, parts - 1 if parts > 2 else 0)
    highs = _carried(node, low, counters(node, node.splat(0, ui64, (1,)), blocks), high)
    key = of_bits(node, element(node, state, 0), i64)
    operands = [of_bits(node, value, i64) for value in (low, highs)]
    words = [node.emit(PhiloxOp, *operands, key, word=word) for word in range(WORDS)]
    if width != WORD:
        words = [joined_words(node, (words[at], words[at + 1])) for at in range(0, WORDS, 2)]
    rows = node.emit(ConcatOp, [node.reshaped(word, (blocks, 1)) for word in words], axis=1)
    flat = node.reshaped(rows, (blocks * len(words),))
    if count != blocks * len(words):
        flat = node.emit(SliceOp, flat, starts=[0], ends=[count], steps=[1])
    step = node.splat(blocks, ui64, (1,))
    following = node.emit(AddOp, element(node, state, 1), step)
    state_parts = [element(node, state, 0), following]
    if parts > 2:
        state_parts.append(_carried(node, following, step, high))
    return node.emit(ConcatOp, state_parts, axis=0), node.reshaped(flat, tuple(shape))


def _carried(node: StablehloNode, total: SSAValue, added: SSAValue, high: SSAValue) -> SSAValue:
    """The upper half of sums of 128 bits, given the lower one and what was added to it."""
    carry = node.emit(WhereOp, node.emit(LessOp, total, added), node.splat(1, ui64), node.splat(0, ui64))
    return node.emit(AddOp, carry, high)


GENERATORS: Mapping[str, Callable[[StablehloNode, SSAValue, Sequence[int], int], tuple[SSAValue, SSAValue]]] = {
    "DEFAULT": by_philox,
    "PHILOX": by_philox,
    "THREE_FRY": by_threefry,
}
"""Algorithm → its generator; the default one is that of XLA for CPUs."""


@stablehlo_operator("rng_bit_generator")
def rng_bit_generator(node: StablehloNode) -> Sequence[Value]:
    """Random bits, and the next state, to the bit as XLA for CPUs gives them."""
    state, wanted = node.input(), node.element(1)
    if element_of(state) != ui64 or not 2 <= shape_of(state)[0] <= 3:
        raise node.unsupported(f"with a state of {state.type} is not supported")
    width = max(number_width(wanted), WORD)
    algorithm = node.text("rng_algorithm")
    following, bits = GENERATORS[algorithm](node, state, node.static_shape(1), width)
    return [following, of_bits(node, bits, wanted)]


@stablehlo_operator("rng")
def rng(node: StablehloNode) -> SSAValue:
    """Random numbers from the random state of a session: uniform ones between two limits, or normal ones."""
    low, high = node.inputs(0, 2)
    wanted, shape = element_of(low), node.required_sizes(node.input(2), "shape")
    numbers = RandomNumbers(node, shape)
    kind = node.text("rng_distribution")
    formulas = numbers.formulas
    if kind == "NORMAL":
        wide = computed_in(wanted)
        radius = sqrt(log(1.0 - numbers.fraction(wide)) * -2.0)
        draw = radius * cos(numbers.fraction(wide, 1) * (2 * math.pi))
        mean, deviation = (formulas.of(node.cast(value, wide)) for value in (low, high))
        return formulas.value(converted(draw * deviation + mean, wanted))
    return formulas.value(_uniform(numbers, formulas.of(low), formulas.of(high)))


def _uniform(numbers: RandomNumbers, low: Tensor, high: Tensor) -> Tensor:
    """Uniform numbers from `low` on, below `high`."""
    element_ = low.element
    if is_float(element_) and byte_width(element_) >= byte_width(ui32):
        return numbers.fraction(element_) * (high - low) + low
    wide = numbers.fraction(f64) * (converted(high, f64) - converted(low, f64)) + converted(low, f64)
    return converted(wide if is_float(element_) else floor(wide), element_)
