"""
The types of a GGUF file's tensors: how many elements a block has, in how many bytes, and how they are unpacked.

A block of every quantized type is brought into one form: integers q with a scale, and for some types a minimum, of
each group of elements: q · scale + minimum, in f32. The formats are those of ggml, `ggml-common.h`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import named_dtype

Part = Callable[[], np.ndarray]
"""A part of blocks, computed when it is read."""


@dataclass(frozen=True)
class Unpacked:
    """
    Parts of blocks: integers [blocks, elements] of i8 or u8, scales and minima [blocks, groups].

    Scales and minima of two levels are bytes, and those of a block have a factor [blocks, 1].
    """

    integers: Part
    scales: Part
    minima: Part | None = None
    scale_factors: Part | None = None
    minimum_factors: Part | None = None
    nibbles: np.ndarray | None = None
    """
    For types of 4 bits, the bytes [blocks, groups of bytes, n] with the integers: all low halves are before high ones.
    """

    def pairs(self) -> np.ndarray:
        """Integers of 4 bits, unsigned, with neighbours in one byte: [blocks, bytes]."""
        assert self.nibbles is not None
        words = np.ascontiguousarray(self.nibbles).view(np.uint16)
        found = np.empty((*words.shape[:2], 2, words.shape[2] // 8), np.uint64)
        # Of each word, the low halves of both bytes become one byte, and the high halves another.
        for half, shift in enumerate((0, 4)):
            own = words >> np.uint16(shift) if shift else words
            first, second = own & np.uint16(15), own >> np.uint16(4)
            second &= np.uint16(240)
            first |= second
            found[:, :, half] = first.astype(np.uint8).view(np.uint64)
        return found.view(np.uint8).reshape(len(words), -1)

    def numbers(self) -> np.ndarray:
        """The numbers as f32 [blocks, elements], rounded as ggml's reference does: the product, then the sum."""
        scales = _multiplied(self.scales(), self.scale_factors)
        blocks, groups, _ = scales.shape
        found = scales * self.integers().astype(np.float32).reshape(blocks, groups, -1)
        if self.minima is not None:
            found += _multiplied(self.minima(), self.minimum_factors)
        return found.reshape(blocks, -1)


def _multiplied(values: np.ndarray, factors: Part | None) -> np.ndarray:
    """Parameters as f32 [blocks, groups, 1], times their factors if they have some."""
    found = values.astype(np.float32)
    return (found if factors is None else found * factors().astype(np.float32))[..., None]


Unpack = Callable[[np.ndarray], Unpacked]
"""Blocks [blocks, bytes] → their content."""


@dataclass(frozen=True)
class BlockType:
    """
    A type of tensors. A block of `elements` takes `nbytes`.

    Quantized types have groups of `group` elements that share a scale; their integers, plus `offset`, are unsigned with
    `bits` bits, or entries of a `table`. Types of plain numbers have a `dtype` instead.
    """

    name: str
    elements: int
    nbytes: int
    unpack: Unpack | None = None
    group: int = 32
    bits: int = 8
    offset: int = 128
    dtype: str = ""
    table: tuple[int, ...] = ()


def _halves(blocks: np.ndarray, begin: int) -> Part:
    """The f16 at a byte of each block, as [blocks, 1]."""
    return lambda: blocks[:, begin : begin + 2].view("<f2")


def _nibbles(packed: np.ndarray) -> np.ndarray:
    """The values of 4 bits of bytes [blocks, n], as [blocks, 2n]: all low ones, then all high ones."""
    return np.concatenate([packed & 15, packed >> 4], axis=1)


def _fifth_bits(blocks: np.ndarray, begin: int) -> np.ndarray:
    """The highest bits of 32 values of 5 bits, from four bytes, as 0 or 16."""
    return np.unpackbits(blocks[:, begin : begin + 4], axis=1, bitorder="little") << np.uint8(4)


def _signed(values: np.ndarray, offset: int) -> np.ndarray:
    """Unsigned bytes minus an offset, as i8."""
    return values.view(np.int8) - np.int8(offset)


def _q4_0(blocks: np.ndarray) -> Unpacked:
    return Unpacked(lambda: _signed(_nibbles(blocks[:, 2:]), 8), _halves(blocks, 0), nibbles=blocks[:, None, 2:])


def _q4_1(blocks: np.ndarray) -> Unpacked:
    return Unpacked(
        lambda: _nibbles(blocks[:, 4:]), _halves(blocks, 0), _halves(blocks, 2), nibbles=blocks[:, None, 4:]
    )


def _q5_0(blocks: np.ndarray) -> Unpacked:
    return Unpacked(lambda: _signed(_nibbles(blocks[:, 6:]) | _fifth_bits(blocks, 2), 16), _halves(blocks, 0))


def _q5_1(blocks: np.ndarray) -> Unpacked:
    return Unpacked(lambda: _nibbles(blocks[:, 8:]) | _fifth_bits(blocks, 4), _halves(blocks, 0), _halves(blocks, 2))


def _q8_0(blocks: np.ndarray) -> Unpacked:
    return Unpacked(lambda: np.ascontiguousarray(blocks[:, 2:]).view(np.int8), _halves(blocks, 0))


def _six_bits(packed: np.ndarray, which: int) -> np.ndarray:
    """The scales or, for 1, the minima of 6 bits, 8 each, from 12 bytes of a super-block of 4 or 5 bits."""
    own, high = packed[:, 4 * which : 4 * which + 4], packed[:, 8:]
    return np.concatenate([own & 63, (high >> 4 * which & 15) | ((own >> 2) & 48)], axis=1)


def _two_level(blocks: np.ndarray, load: Callable[[], np.ndarray], nibbles: np.ndarray | None = None) -> Unpacked:
    """A super-block of 8 groups, whose scales and minima are multiples of an f16 each."""

    scales, minima = (partial(_six_bits, blocks[:, 4:16], which) for which in (0, 1))
    minimum_factors = _halves(blocks, 2)
    return Unpacked(load, scales, minima, _halves(blocks, 0), lambda: -minimum_factors(), nibbles)


def _low_bits(packed: np.ndarray) -> np.ndarray:
    """The low four bits of a super-block's integers [blocks, 8, 32], from 128 bytes."""
    parts = packed.reshape(-1, 4, 1, 32)
    return np.concatenate([parts & 15, parts >> 4], axis=2).reshape(-1, 8, 32)


def _q4_k(blocks: np.ndarray) -> Unpacked:
    nibbles = blocks[:, 16:].reshape(-1, 4, 32)
    return _two_level(blocks, lambda: _low_bits(nibbles).reshape(-1, 256), nibbles)


def _q5_k(blocks: np.ndarray) -> Unpacked:
    def load() -> np.ndarray:
        high = blocks[:, 16:48].reshape(-1, 1, 32) >> np.arange(8, dtype=np.uint8).reshape(1, 8, 1)
        return (_low_bits(blocks[:, 48:]) | (high & 1) << 4).reshape(-1, 256)

    return _two_level(blocks, load)


def _q6_k(blocks: np.ndarray) -> Unpacked:
    def load() -> np.ndarray:
        packed = blocks[:, :128].reshape(-1, 2, 1, 64)
        low = np.concatenate([packed & 15, packed >> 4], axis=2).reshape(-1, 8, 32)
        high = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> np.arange(0, 8, 2, dtype=np.uint8).reshape(1, 1, 4, 1)
        return _signed((low | (high.reshape(-1, 8, 32) & 3) << 4).reshape(-1, 256), 32)

    return Unpacked(load, lambda: blocks[:, 192:208].view(np.int8), scale_factors=_halves(blocks, 208))


DOUBLED_E2M1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int8)
"""Twice the floats of 4 bits (OCP Microscaling Formats 1.0, E2M1)."""

NONLINEAR = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8)
"""The values of ggml's nonlinear quantization of 4 bits."""


def _looked_up(table: np.ndarray, packed: np.ndarray) -> np.ndarray:
    """The entries of a table of 16 for the low halves of bytes [blocks, n], then those for the high ones."""
    every = np.arange(256)
    return np.concatenate([np.take(table[half], packed) for half in (every & 15, every >> 4)], axis=1)


def _mxfp4(blocks: np.ndarray) -> Unpacked:
    def scales() -> np.ndarray:
        exponents = blocks[:, :1].astype(np.uint32)
        # Half of 2^(e - 127), since the values are doubled; the two smallest are subnormal.
        bits = np.where(exponents < 2, np.uint32(1 << 21) << exponents, (exponents - 1) << np.uint32(23))
        return bits.astype(np.uint32).view(np.float32)

    return Unpacked(lambda: _looked_up(DOUBLED_E2M1, blocks[:, 1:]), scales, nibbles=blocks[:, None, 1:])


def _iq4_nl(blocks: np.ndarray) -> Unpacked:
    return Unpacked(lambda: _looked_up(NONLINEAR, blocks[:, 2:]), _halves(blocks, 0), nibbles=blocks[:, None, 2:])


def _plain(name: str, dtype: str) -> BlockType:
    return BlockType(name, 1, named_dtype(dtype).itemsize, dtype=dtype)


BLOCK_TYPES: dict[int, BlockType] = {
    0: _plain("F32", "float32"),
    1: _plain("F16", "float16"),
    2: BlockType("Q4_0", 32, 18, _q4_0, bits=4, offset=8),
    3: BlockType("Q4_1", 32, 20, _q4_1, bits=4, offset=0),
    6: BlockType("Q5_0", 32, 22, _q5_0, bits=5, offset=16),
    7: BlockType("Q5_1", 32, 24, _q5_1, bits=5, offset=0),
    8: BlockType("Q8_0", 32, 34, _q8_0),
    12: BlockType("Q4_K", 256, 144, _q4_k, bits=4, offset=0),
    13: BlockType("Q5_K", 256, 176, _q5_k, bits=5, offset=0),
    14: BlockType("Q6_K", 256, 210, _q6_k, group=16, bits=6, offset=32),
    20: BlockType("IQ4_NL", 32, 18, _iq4_nl, bits=4, table=tuple(NONLINEAR.tolist())),
    30: _plain("BF16", "bfloat16"),
    39: BlockType("MXFP4", 32, 17, _mxfp4, bits=4, table=tuple(DOUBLED_E2M1.tolist())),
}
"""Number of a type in the file → the type."""

OTHER_TYPES: dict[int, str] = {
    9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
    21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M",
    34: "TQ1_0", 35: "TQ2_0", 40: "NVFP4",
}  # fmt: skip
"""Numbers of types that are refused → their names."""
