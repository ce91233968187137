"""Random numbers: a counter-based generator, so that no number depends on another."""

from __future__ import annotations

from xdsl.ir import Attribute
from xdsl.irdl import operand_def

from glow_mlir.dialects.element_types import ui32, ui64
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.operand_types import I64
from glow_mlir.dialects.properties import int_prop, integer
from glow_mlir.dialects.scalar_builder import Scalar, ScalarBuilder
from glow_mlir.dialects.shapes import require
from glow_mlir.xdsl_patches.definitions import op_definition

ROUNDS = 10
"""The number of rounds that the authors recommend; it has a margin, since seven already pass their tests."""

MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
"""The multipliers of the first and the third word of the counter."""

WEYL = 0x9E3779B9, 0xBB67AE85
"""The increments of the key's words after each round: the golden ratio, and the square root of 3 minus 1."""

WORDS = 4
"""The number of 32-bit words for each counter."""

WIDTH = 32
"""The bits of a word."""

_Words = tuple[Scalar, Scalar]
"""Two words: low and high, or those of the key."""


@op_definition
class PhiloxOp(Elementwise):
    """
    Random bits: the highest `bits` of a `word`, 0 to 3, of Philox4x32-10 (Salmon et al., 2011), as ui32.

    `index` is the lower half of the counter and `stream` the upper one, `key` is the key; all are i64 and broadcast.
    Equal operands give equal bits; the words for different operands are statistically independent.

    ```mlir
    %bits = glow_high.philox %index, %stream, %key {bits = 24, word = 1} : tensor<4x8xui32>
    ```
    """

    name = "glow_high.philox"

    index = operand_def(I64)
    stream = operand_def(I64)
    key = operand_def(I64)
    word = int_prop(0)
    bits = int_prop(WIDTH)

    def check_elements(self) -> Attribute:
        require(0 <= integer(self.word) < WORDS, "there are words 0 to {}, not {}", WORDS - 1, integer(self.word))
        require(0 < integer(self.bits) <= WIDTH, "a word has 1 to {} bits, not {}", WIDTH, integer(self.bits))
        return ui32

    def scalar(self, b: ScalarBuilder, index: Scalar, stream: Scalar, key: Scalar) -> Scalar:
        counter, keys = (*_halves(b, index), *_halves(b, stream)), _halves(b, key)
        for number in range(ROUNDS):
            low, high = (_product(b, counter[2 * position], factor) for position, factor in enumerate(MULTIPLIERS))
            counter = (
                b.binary("xor", b.binary("xor", high[1], counter[1]), keys[0]),
                high[0],
                b.binary("xor", b.binary("xor", low[1], counter[3]), keys[1]),
                low[0],
            )
            if number < ROUNDS - 1:
                keys = (keys[0] + WEYL[0], keys[1] + WEYL[1])
        found, unwanted = counter[integer(self.word)], WIDTH - integer(self.bits)
        return b.binary("shift_right", found, unwanted) if unwanted else found


def _halves(b: ScalarBuilder, wide: Scalar) -> _Words:
    """The low and the high word of a number of 64 bits."""
    return b.convert(wide, ui32), b.convert(b.binary("shift_right", wide, WIDTH), ui32)


def _product(b: ScalarBuilder, word: Scalar, factor: int) -> _Words:
    """The low and the high word of a product of two words."""
    return _halves(b, b.convert(word, ui64) * factor)
