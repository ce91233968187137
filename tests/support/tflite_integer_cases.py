"""Random models of one operator on quantized values, and on integers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tflite_files import TensorCase
from tflite_random_tensors import Found, RandomTensors


class IntegerCases(RandomTensors):
    """Elementwise operators with random shapes and scales in each of their types but f32."""

    def families(self) -> list[Iterator[Found]]:
        """All of them."""
        return [self.limits(), self.slopes(), self.tables(), self.comparisons(), self.pairs(), self.plain()]

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
            for kind, size, point in (("LOGISTIC", sizes[0], zero), ("TANH", sizes[1], zero + (dtype != "int16") * 128)):
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
                large = TensorCase(shape, dtype, scales=[0.3], zeros=[zero + 128])
                yield "DIV", [far, divisor, large], {0: ("b", self.whole(0, 2))}

    def plain(self) -> Iterator[Found]:
        """Operators on integers and truth values that are not quantized."""
        for dtype in ("int32", "int64", "float32", "int16", "int8"):
            shape = self.shape(3)
            own = TensorCase(shape, dtype, bounds=(-100, 100))
            other = TensorCase(shape[-1:], dtype, bounds=(1, 9))
            if dtype in ("int32", "int64", "float32"):
                for kind in ("ADD", "SUB", "MUL"):
                    yield kind, [own, other, own], {0: ("b", 0)}
                for kind in ("MAXIMUM", "MINIMUM", "FLOOR_MOD"):
                    yield kind, [own, other, own], {}
                yield "NEG", [own, own], {}
            if dtype in ("int32", "float32"):
                yield "ADD_N", [own, own, own, own], {}
                yield "DIV", [own, other, own], {0: ("b", 0)}
                yield "SQUARED_DIFFERENCE", [own, other, own], {}
                yield "ABS", [own, own], {}
            if dtype != "int64":
                yield "FLOOR_DIV", [own, other, own], {}
            if dtype == "int32":
                yield "POW", [TensorCase(shape, dtype, bounds=(-9, 9)), TensorCase(shape, dtype, bounds=(0, 5)), own], {}
            if dtype.startswith("int") and dtype != "int64":
                yield "BITWISE_XOR", [own, own, own], {}
                yield "RIGHT_SHIFT", [own, TensorCase(shape, dtype, bounds=(0, 7)), own], {}
        shape = self.shape(3)
        for kind in ("LOGICAL_AND", "LOGICAL_OR"):
            yield kind, [TensorCase(shape, "bool")] * 3, {} if kind == "NONE" else None
        yield "LOGICAL_NOT", [TensorCase(shape, "bool")] * 2, None
        for approximate in (False, True):
            yield "GELU", [TensorCase(shape)] * 2, {0: ("?", approximate)}
        for kind in ("CEIL", "ROUND", "SIGN", "ELU", "RELU_0_TO_1"):
            yield kind, [TensorCase(shape)] * 2, None
        yield "LEAKY_RELU", [TensorCase(shape)] * 2, {0: ("f", 0.3)}
        yield "PRELU", [TensorCase(shape), TensorCase(shape[-1:]), TensorCase(shape)], None
