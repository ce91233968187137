"""Random models of one TensorFlow Lite operator, for a comparison with its reference kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from tflite_arrangement_cases import ArrangementCases
from tflite_files import TensorCase
from tflite_image_cases import ImageCases
from tflite_integer_cases import IntegerCases
from tflite_product_cases import ProductCases
from tflite_random_tensors import INTEGERS, Found, RandomTensors, SingleOperator, single_operator
from tflite_recurrent_cases import RecurrentCases

ACTIVATIONS = (0, 1, 2, 3)
"""None, ReLU, a range of -1 to 1, ReLU6."""


class _Cases(RandomTensors):
    """Operators with random shapes, scales and options."""

    def functions(self) -> Iterator[Found]:
        words = "ABS COS EXP FLOOR LOG LOGISTIC NEG SIN SQRT TANH SQUARE RSQRT RELU RELU6 RELU_N1_TO_1 HARD_SWISH"
        for kind in words.split():
            shape = self.shape(3)
            yield kind, [TensorCase(shape), TensorCase(shape)], None
        for kind, scale, zero in (("LOGISTIC", 1 / 256, -128), ("TANH", 1 / 128, 0), ("EXP", 0.05, 3)):
            shape = (1, 256)
            out = TensorCase(shape, "int8", scales=[scale], zeros=[zero])
            yield kind, [self.tensor(shape, "int8"), out], None

    def pairs(self) -> Iterator[Found]:
        for kind in "MAXIMUM MINIMUM POW".split():
            shape = self.shape(3)
            yield kind, [TensorCase(shape)] * 3, {}
        for kind in "LESS LESS_EQUAL GREATER GREATER_EQUAL EQUAL NOT_EQUAL".split():
            shape = self.shape(3)
            yield kind, [TensorCase(shape), TensorCase(shape), TensorCase(shape, "bool")], None
        for kind in "ADD SUB MUL DIV".split():
            for activation in ACTIVATIONS:
                shape, options = self.shape(3), {0: ("b", activation)}
                yield kind, [TensorCase(shape), TensorCase(shape[-1:]), TensorCase(shape)], options
                of_integers = (*INTEGERS, "int16") if activation < 2 else INTEGERS
                for dtype in of_integers if kind != "DIV" else ():
                    yield kind, [self.tensor(shape, dtype) for _ in range(3)], options

    def images(self, dtype: str) -> Iterator[Found]:
        batch, channels, padding = self.whole(1, 3), self.whole(1, 9), self.whole(0, 2)
        sizes = [self.whole(3, 9) for _ in range(2)]
        strides, kernel = ([self.whole(1, 3 + more) for _ in range(2)] for more in (0, 1))
        valid = [(size - width) // stride + 1 for size, width, stride in zip(sizes, kernel, strides, strict=True)]
        same = [-(-size // stride) for size, stride in zip(sizes, strides, strict=True)]
        spatial = valid if padding else same
        activation = self.whole(0, 2) * 3
        options = {0: ("b", padding), 1: ("i", strides[1]), 2: ("i", strides[0])}
        image = self.tensor((batch, *sizes, channels), dtype)
        pooled = TensorCase((batch, *spatial, channels), dtype, scales=image.scales, zeros=image.zeros)
        windows = {3: ("i", kernel[1]), 4: ("i", kernel[0]), 5: ("b", activation)}
        for kind in ("MAX_POOL_2D", "AVERAGE_POOL_2D"):
            yield kind, [image, pooled], options | windows
        if dtype == "uint8":
            return
        outputs, multiplier = self.whole(1, 9), self.whole(1, 3)
        weights = self._weights((outputs, *kernel, channels), outputs, 0, image)
        out = self.tensor((batch, *spatial, outputs), dtype)
        yield "CONV_2D", [image, *weights, out], options | {3: ("b", activation)}
        each = channels * multiplier
        weights = self._weights((1, *kernel, each), each, 3, image)
        own = {3: ("i", multiplier), 4: ("b", activation)}
        yield "DEPTHWISE_CONV_2D", [image, *weights, self.tensor((batch, *spatial, each), dtype)], options | own

    def _weights(self, shape: Sequence[int], outputs: int, axis: int, left: TensorCase) -> list[TensorCase]:
        """Weights and a bias, of floats or of int8 with scales for each index of an axis."""
        if left.dtype == "float32":
            arrays = (self.random.standard_normal(size).astype(np.float32) for size in (shape, outputs))
            return [self.constant(array) for array in arrays]
        scales = self.random.uniform(0.002, 0.02, outputs).astype(np.float32)
        values = self.random.integers(-127, 128, shape).astype(np.int8)
        bias = self.random.integers(-3000, 3000, outputs).astype(np.int32)
        products = (np.float32(left.scales[0]) * scales).tolist()
        zeros = [0] * outputs
        return [
            TensorCase(shape, "int8", values, scales.tolist(), zeros, axis),
            TensorCase((outputs,), "int32", bias, products, zeros),
        ]

    def rows(self, dtype: str) -> Iterator[Found]:
        shape = self.shape(4)
        axes = sorted({self.whole(0, 4) for _ in range(2)})
        folded = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
        operand, along = self.tensor(shape, dtype), self.constant(np.array(axes, np.int32))
        options = {0: ("?", True)}
        yield "MEAN", [operand, along, self.tensor(folded, dtype)], options
        alike = TensorCase(folded, dtype, scales=operand.scales, zeros=operand.zeros)
        for kind in ("REDUCE_MAX", "REDUCE_MIN", *(("SUM",) if dtype == "float32" else ())):
            yield kind, [operand, along, alike], options
        if dtype == "uint8":
            return
        depth, outputs = self.whole(1, 40), self.whole(1, 9)
        matrix = self.tensor((5, depth), dtype)
        weights, bias = self._weights((outputs, depth), outputs, 0, matrix)
        yield "FULLY_CONNECTED", [matrix, weights, bias, self.tensor((5, outputs), dtype)], {0: ("b", 0)}
        out = TensorCase((3, 7)) if dtype == "float32" else TensorCase((3, 7), dtype, scales=[1 / 256], zeros=[-128])
        yield "SOFTMAX", [self.tensor((3, 7), dtype), out], {0: ("f", 1.0)}

    def scales(self) -> Iterator[Found]:
        shape = self.shape(3)
        for dtype in INTEGERS:
            yield "DEQUANTIZE", [self.tensor(shape, dtype), TensorCase(shape)], {}
            yield "QUANTIZE", [TensorCase(shape), self.tensor(shape, dtype)], {}
        for source, target in (("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("int16", "int8")):
            yield "QUANTIZE", [self.tensor(shape, source), self.tensor(shape, target)], {}

    def parts(self) -> Iterator[Found]:
        """Slices, choices of rows, folds along no axis, and permutations with negative axes."""
        whole, masks = TensorCase((8, 6)), {number: ("i", 0) for number in range(5)}
        numbers = [self.constant(np.array(item, np.int32)) for item in ((-4, 1), (3, 4), (1, 2))]
        shrunk, relative = {0: ("i", 1), 4: ("i", 1)}, {5: ("?", True)}
        yield "STRIDED_SLICE", [whole, *numbers, TensorCase((2,))], masks | shrunk
        yield "STRIDED_SLICE", [whole, *numbers, TensorCase((3, 2))], masks | relative
        row = TensorCase((4, 4, 3))
        yield "SELECT", [TensorCase((4,), "bool"), row, row, row], None
        none = self.constant(np.zeros(0, np.int32))
        for kind in ("MEAN", "SUM", "REDUCE_MAX"):
            yield kind, [row, none, row], {0: ("?", True)}
        yield "TRANSPOSE", [row, self.constant(np.array((-1, 0, 1), np.int32)), TensorCase((3, 4, 4))], {}

    def shifts(self) -> Iterator[Found]:
        """Sums of 16 bits whose scales are powers of 2, and functions of large numbers."""
        for kind in ("ADD", "SUB"):
            for powers in ((12, 11, 11), (8, 13, 8), (9, 9, 9)):
                tensors = [TensorCase((30, 20), "int16", scales=[2.0**-power], zeros=[0]) for power in powers]
                yield kind, tensors, {0: ("b", self.whole(0, 2))}
        large = TensorCase((1, 256), "int8", scales=[10.0], zeros=[0])
        for kind in ("LOGISTIC", "EXP"):
            yield kind, [large, TensorCase((1, 256), "int8", scales=[1 / 256], zeros=[-128])], None


def single_operators(seed: int) -> Iterator[SingleOperator]:
    """One model of each operator in each of its types, with random shapes, scales and options."""
    cases = _Cases(seed)
    families = [cases.functions(), cases.pairs(), cases.scales(), cases.parts(), cases.shifts()]
    families += [found for dtype in ("float32", *INTEGERS) for found in (cases.images(dtype), cases.rows(dtype))]
    for kind in (ArrangementCases, IntegerCases, ImageCases, ProductCases, RecurrentCases):
        families += kind(seed).families()
    for family in families:
        for found in family:
            yield single_operator(found)
