"""Random numbers for nodes of a model, as operators on the bits of a counter-based generator."""

from __future__ import annotations

from dataclasses import field
from hashlib import blake2b
from math import pi

import numpy as np
from xdsl.dialects.builtin import bf16, f16, f32, f64, i64
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.expressions import Tensor, cos, log, sqrt, where
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp
from glow_mlir.dialects.glow_high.random_numbers import PhiloxOp
from glow_mlir.dialects.sizes import largest
from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.builder.emission import positions
from glow_mlir.frontends.builder.formulas import Formulas, converted
from glow_mlir.frontends.builder.module_builder import RANDOM_CALLS, RANDOM_SEED
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes

_DIGITS: dict[Attribute, int] = {f16: 11, bf16: 8, f32: 24}
"""Element type → the bits of its significand."""

_HALVES = 27, 26
"""The bits of an f64 number taken from each of two words."""


@dataclass
class RandomNumbers:
    """
    The random numbers of a node, one for each element of `sizes`.

    They depend on the position of the element, the number of the call, and the `seed`; without one, on the module's
    seed and the node's name. Raises `UnsupportedError` in branches and loops, where the numbers would repeat.
    """

    node: NodeBuilder
    sizes: Sizes
    seed: float | None = None
    formulas: Formulas = field(init=False)
    _counter: tuple[SSAValue, SSAValue, SSAValue] = field(init=False)
    """Index, stream and key of the generator."""

    def __post_init__(self) -> None:
        builder = self.node.builder
        if builder.block is not builder.function.block:
            hint = "draw them outside of it"
            reason = f"{self.node.kind}: random numbers in a branch or loop"
            raise UnsupportedError(reason, node=self.node.name, hint=hint)
        self.formulas = Formulas(self.node)
        self._counter = self._index(), builder.random_state(RANDOM_CALLS), self._key()

    def _key(self) -> SSAValue:
        """The generator's key: the node's seed, or else the module's seed plus a number unique to this node."""
        node = self.node
        if self.seed is not None:
            return node.constant(np.array(self.seed, np.float64).view(np.int64))
        digest = blake2b(node.builder.random_label(node.name).encode(), digest_size=8).digest()
        own = node.constant(np.array(int.from_bytes(digest, "little", signed=True), np.int64))
        return node.emit(AddOp, node.builder.random_state(RANDOM_SEED), own)

    def _index(self) -> SSAValue:
        """An index for each element, computed from upper bounds of sizes, so that it is independent of actual sizes."""
        node, stride = self.node, 1
        total = node.splat(0, i64, (1,) * len(self.sizes))
        for axis, size in reversed([*enumerate(self.sizes)]):
            if size != 1:
                shape = tuple(size if other == axis else 1 for other in range(len(self.sizes)))
                along = node.emit(ReshapeOp, positions(size, i64, node), shape=shape)
                total = node.emit(AddOp, total, node.emit(MulOp, along, node.splat(stride, i64)))
            stride *= max(largest(size), 1)
        return total

    def _word(self, word: int, bits: int, element: Attribute) -> Tensor:
        """The highest bits of a word of the generator, as numbers of a type that represents them exactly."""
        found = self.node.emit(PhiloxOp, *self._counter, word=word, bits=bits)
        return converted(self.formulas.of(found), element)

    def fraction(self, element: Attribute, draw: int = 0) -> Tensor:
        """Uniform numbers in [0, 1); `draw` 0 and 1 are independent."""
        if element == f64:
            high, low = (self._word(2 * draw + position, bits, f64) for position, bits in enumerate(_HALVES))
            return (high * 2.0 ** _HALVES[1] + low) * 2.0 ** -sum(_HALVES)
        digits = _DIGITS[element]
        return self._word(draw, digits, element) * 2.0**-digits

    def uniform(self, element: Attribute, low: float, high: float) -> SSAValue:
        """Uniform numbers from `low` to `high`."""
        return self.formulas.value(self.fraction(element) * (high - low) + low)

    def normal(self, element: Attribute, mean: float, scale: float) -> SSAValue:
        """Normally distributed numbers with a mean and standard deviation (Box and Muller, 1958)."""
        wide = computed_in(element)
        radius = sqrt(log(1.0 - self.fraction(wide)) * -2.0)
        return self.formulas.value(converted(radius * cos(self.fraction(wide, 1) * (2 * pi)) * scale + mean, element))


def dropped_out(numbers: RandomNumbers, value: SSAValue, share: Tensor | float) -> tuple[SSAValue, Tensor]:
    """
    Set a share of the elements of `value` to 0, and scale the others to preserve the expectation.

    The second result is the mask of kept elements. A computed share has the type `computed_in`.
    """
    formulas = numbers.formulas
    x = formulas.of(value)
    kept = formulas.kept(numbers.fraction(computed_in(x.element)) >= share)
    scale = 1.0 / (1.0 - share)
    scaled = x * (converted(scale, x.element) if isinstance(scale, Tensor) else scale)
    return formulas.value(where(kept, scaled, 0.0)), kept


def computed_in(element: Attribute) -> Attribute:
    """The float type, f32 or f64, in which random numbers for an element type are drawn."""
    return f64 if element == f64 else f32
