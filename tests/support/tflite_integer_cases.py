"""Random models of one operator on quantized values, and on integers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tflite_files import TensorCase
from tflite_random_tensors import Found, RandomTensors

PLAIN = {
    "int32": "ADD SUB MUL MAXIMUM MINIMUM FLOOR_MOD NEG ADD_N DIV SQUARED_DIFFERENCE ABS FLOOR_DIV POW BITWISE_XOR "
    "RIGHT_SHIFT",
    "int64": "ADD SUB MUL MAXIMUM MINIMUM FLOOR_MOD NEG",
    "float32": "ADD SUB MUL MAXIMUM MINIMUM FLOOR_MOD NEG ADD_N DIV SQUARED_DIFFERENCE ABS FLOOR_DIV",
    "int16": "FLOOR_DIV BITWISE_XOR RIGHT_SHIFT",
    "int8": "FLOOR_DIV BITWISE_XOR RIGHT_SHIFT",
}
"""Type → operators on pairs of such numbers."""


class IntegerCases(RandomTensors):
    """Elementwise operators with random shapes and scales in each of their types but f32."""

    def families(self) -> list[Iterator[Found]]:
        """All of them."""
        return [
            self.limits(),
            self.slopes(),
            self.tables(),
            self.comparisons(),
            self.pairs(),
            self.plain(),
            self.functions(),
        ]

    def limits(self) -> Iterator[Found]:
        """Limits, and sizes without sign."""
        for dtype in ("int8", "uint8", "int16"):
            shape = self.shape(3)
            for kind in ("RELU", "RELU6", *(("RELU_N1_TO_1", "RELU_0_TO_1") if dtype != "int16" else ())):
                yield kind, [self.tensor(shape, dtype), self.tensor(shape, dtype)], None
            if dtype != "uint8":
                yield "ABS", [self.tensor(shape, dtype), self.tensor(shape, dtype)], {}

    def slopes(self) -> Iterator[Found]:
        """Slopes below 0."""
        for dtype in ("int8", "uint8", "int16"):
            shape = self.shape(3)
            own, out = self.tensor(shape, dtype), self.tensor(shape, dtype)
            yield "LEAKY_RELU", [own, out], {0: ("f", float(np.float32(self.random.uniform(0, 1.5))))}
            if dtype != "int16":
                yield "PRELU", [own, self.tensor(shape[-1:], dtype), out], None

    def tables(self) -> Iterator[Found]:
        """Functions by tables."""
        for dtype in ("int8", "uint8", "int16"):
            shape = (2, 300)
            zero = 0 if dtype == "int16" else np.iinfo(dtype).min
            scale = self.random.uniform(1e-4, 3e-3) if dtype == "int16" else self.random.uniform(0.01, 0.2)
            own = TensorCase(shape, dtype, scales=[float(np.float32(scale))], zeros=[zero])
            signed = self.alike(own, shape)
            signed = TensorCase(shape, dtype, scales=own.scales, zeros=[0 if dtype == "int16" else zero + 100])
            positive = TensorCase(shape, dtype, scales=own.scales, zeros=own.zeros, bounds=(zero + 1, zero + 255))
            sizes = (32768.0, 32768.0) if dtype == "int16" else (256.0, 128.0)
            for kind, size, point in (
                ("LOGISTIC", sizes[0], zero),
                ("TANH", sizes[1], zero + (dtype != "int16") * 128),
            ):
                out = TensorCase(shape, dtype, scales=[1 / size], zeros=[point])
                yield kind, [signed, out], None
            power = TensorCase(shape, "int16", scales=[2.0 ** -self.whole(11, 13)], zeros=[0])
            if dtype == "int16":
                out = TensorCase(shape, "int16", scales=[1 / 32768], zeros=[0])
                yield "TANH", [power, out], None
            for approximate in (False, True):
                yield "GELU", [signed, self.tensor(shape, dtype)], {0: ("?", approximate)}
            if dtype == "uint8":
                continue
            yield "EXP", [signed, self.tensor(shape, dtype)], None
            for kind in ("LOG", "SQRT", "RSQRT"):
                yield kind, [positive, self.tensor(shape, dtype)], None
            yield "NEG", [signed, signed], {}
            if dtype == "int8":
                yield "ELU", [signed, self.tensor(shape, dtype)], None
        for dtype in ("int8", "uint8"):
            own = self.tensor((2, 300), dtype)
            yield "HARD_SWISH", [own, self.tensor((2, 300), dtype)], {}

    def comparisons(self) -> Iterator[Found]:
        """Comparisons of values of several scales."""
        for kind in "LESS LESS_EQUAL GREATER GREATER_EQUAL EQUAL NOT_EQUAL".split():
            shape = self.shape(3)
            for dtype in ("int8", "uint8", "int32", "int64"):
                tensors = [self.tensor(shape, dtype), self.tensor(shape[-1:], dtype), TensorCase(shape, "bool")]
                if dtype.startswith("int") and len(dtype) == 5:
                    tensors[:2] = [TensorCase(item.shape, dtype, bounds=(-3, 3)) for item in tensors[:2]]
                yield kind, tensors, None
            if kind in ("EQUAL", "NOT_EQUAL"):
                yield kind, [TensorCase(shape, "bool")] * 3, None

    def pairs(self) -> Iterator[Found]:
        """Operators on pairs of quantized values."""
        for dtype in ("int8", "uint8", "int16"):
            shape = self.shape(3)
            own, other, out = (self.tensor(item, dtype) for item in (shape, shape[-1:], shape))
            for kind in ("MAXIMUM", "MINIMUM"):
                yield kind, [own, self.alike(own, shape[-1:]), own], {}
            if dtype == "int8":
                yield "SQUARED_DIFFERENCE", [own, other, out], {}
            if dtype != "int16":
                zero = np.iinfo(dtype).min
                divisor = TensorCase(shape, dtype, scales=other.scales, zeros=[zero], bounds=(zero + 1, zero + 255))
                far = TensorCase(shape, dtype, scales=own.scales, zeros=[zero], bounds=(zero + 64, zero + 255))
                limit = 2 * own.scales[0] / other.scales[0]  # The reference is undefined for shifts of 32 bits.
                large = TensorCase(shape, dtype, scales=[float(np.float32(min(0.3, limit)))], zeros=[zero + 128])
                yield "DIV", [far, divisor, large], {0: ("b", self.whole(0, 2))}

    def plain(self) -> Iterator[Found]:
        """Operators on pairs of integers that are not quantized."""
        for dtype, words in PLAIN.items():
            shape = self.shape(3)
            own, power = TensorCase(shape, dtype, bounds=(-100, 100)), TensorCase(shape, dtype, bounds=(0, 5))
            other = TensorCase(shape[-1:], dtype, bounds=(1, 9))
            operands = {
                "ADD_N": [own, own, own],
                "POW": [TensorCase(shape, dtype, bounds=(-9, 9)), power],
                "RIGHT_SHIFT": [own, power],
                "NEG": [own],
                "ABS": [own],
            }
            for kind in words.split():
                options = {0: ("b", 0)} if kind in ("ADD", "SUB", "MUL", "DIV") else {}
                yield kind, [*operands.get(kind, [own, other]), own], options

    def functions(self) -> Iterator[Found]:
        """Functions of floats and truth values."""
        shape = self.shape(3)
        for kind in ("LOGICAL_AND", "LOGICAL_OR"):
            yield kind, [TensorCase(shape, "bool")] * 3, None
        yield "LOGICAL_NOT", [TensorCase(shape, "bool")] * 2, None
        for approximate in (False, True):
            yield "GELU", [TensorCase(shape)] * 2, {0: ("?", approximate)}
        for kind in ("CEIL", "ROUND", "SIGN", "ELU", "RELU_0_TO_1"):
            yield kind, [TensorCase(shape)] * 2, None
        yield "LEAKY_RELU", [TensorCase(shape)] * 2, {0: ("f", 0.3)}
        yield "PRELU", [TensorCase(shape), TensorCase(shape[-1:]), TensorCase(shape)], None
