"""Random models of one product: of quantized values, of values of 16 bits, with weights of 4 bits, and transposed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from tflite_files import TensorCase
from tflite_random_tensors import Found, RandomTensors


class ProductCases(RandomTensors):
    """Products with random shapes and scales."""

    def families(self) -> list[Iterator[Found]]:
        """All of them."""
        found = [self.matrices()]
        for dtype in ("float32", "int8", "uint8", "int16"):
            found += [self.layers(dtype), self.transposed(dtype)]
        return [*found, self.narrow(), self.hybrid()]

    def out(self, shape: Sequence[int], dtype: str, size: float) -> TensorCase:
        """A result whose scale suits sums of a size."""
        if dtype == "float32":
            return TensorCase(shape)
        zero = 0 if dtype == "int16" else self.whole(np.iinfo(dtype).min + 90, np.iinfo(dtype).max - 90)
        return TensorCase(shape, dtype, scales=[float(np.float32(size / np.iinfo(dtype).max))], zeros=[zero])

    def weights(
        self, shape: Sequence[int], outputs: int, axis: int, left: TensorCase, bias: str = "", one: bool = False
    ) -> list[TensorCase]:
        """Weights and a bias for an operand."""
        if left.dtype == "float32":
            arrays = (self.random.standard_normal(size).astype(np.float32) for size in (shape, outputs))
            return [self.constant(array) for array in arrays]
        dtype = "uint8" if left.dtype == "uint8" else "int8"
        count = 1 if one or dtype == "uint8" else outputs
        scales = self.random.uniform(0.002, 0.02, count).astype(np.float32)
        limits = np.iinfo(dtype)
        values = self.random.integers(limits.min + 1, limits.max + 1, shape).astype(dtype)
        zeros = [int(self.random.integers(90, 160))] if dtype == "uint8" else [0] * count
        kind = bias or ("int64" if left.dtype == "int16" else "int32")
        added = self.random.integers(-3000, 3000, outputs).astype(kind)
        products = (np.float32(left.scales[0]) * scales).tolist()
        return [
            TensorCase(shape, dtype, values, scales.tolist(), zeros, axis),
            TensorCase((outputs,), kind, added, products, [0] * count),
        ]

    def size(self, left: TensorCase, weights: TensorCase, depth: int) -> float:
        """The size of sums."""
        if left.dtype == "float32":
            return 1.0
        return left.scales[0] * np.iinfo(left.dtype).max * max(weights.scales) * 127 * depth**0.5

    def layers(self, dtype: str) -> Iterator[Found]:
        """Convolutions and matrix products."""
        for one in (False, True):
            batch, channels, outputs = self.whole(1, 3), self.whole(1, 5), self.whole(1, 9)
            kernel, sizes = [self.whole(1, 4) for _ in range(2)], [self.whole(4, 8) for _ in range(2)]
            options = {0: ("b", 0), 1: ("i", 1), 2: ("i", 1), 3: ("b", self.whole(0, 2) * 3)}
            image = self.tensor((batch, *sizes, channels), dtype)
            shape = (outputs, *kernel, channels)
            weights = self.weights(shape, outputs, 0, image, one=one)
            out = self.out((batch, *sizes, outputs), dtype, self.size(image, weights[0], int(np.prod(shape[1:]))))
            yield "CONV_2D", [image, *weights, out], options
            weights = self.weights((1, *kernel, channels), channels, 3, image, one=one)
            out = self.out((batch, *sizes, channels), dtype, self.size(image, weights[0], int(np.prod(kernel))))
            options = {0: ("b", 0), 1: ("i", 1), 2: ("i", 1), 3: ("i", 1), 4: ("b", 0)}
            yield "DEPTHWISE_CONV_2D", [image, *weights, out], options
            for bias in ("", "int32") if dtype == "int16" else ("",):
                depth = self.whole(1, 40) if bias else self.whole(200, 600)
                matrix = self.tensor((5, depth), dtype)
                weights = self.weights((outputs, depth), outputs, 0, matrix, bias, one)
                out = self.out((5, outputs), dtype, self.size(matrix, weights[0], depth))
                yield (
                    "FULLY_CONNECTED",
                    [matrix, *weights, out],
                    {0: ("b", self.whole(0, 2)), 4: ("b", 2 if bias else 0)},
                )

    def transposed(self, dtype: str) -> Iterator[Found]:
        """Transposed convolutions."""
        for padding in (0, 1):
            batch, channels, outputs = self.whole(1, 3), self.whole(1, 5), self.whole(1, 6)
            kernel, strides = [self.whole(2, 4) for _ in range(2)], [self.whole(1, 3) for _ in range(2)]
            sizes = [self.whole(2, 6) for _ in range(2)]
            spatial = [
                size * stride if padding == 0 else (size - 1) * stride + width
                for size, stride, width in zip(sizes, strides, kernel, strict=True)
            ]
            image = self.tensor((batch, *sizes, channels), dtype)
            weights = self.weights((outputs, *kernel, channels), outputs, 0, image)
            result = (batch, *spatial, outputs)
            out = self.out(result, dtype, self.size(image, weights[0], channels * 2))
            options = {0: ("b", padding), 1: ("i", strides[1]), 2: ("i", strides[0]), 3: ("b", 0)}
            yield "TRANSPOSE_CONV", [self.constant(result), weights[0], image, weights[1], out], options
            yield "TRANSPOSE_CONV", [self.constant(result), weights[0], image, out], options

    def matrices(self) -> Iterator[Found]:
        """Products of matrices in batches."""
        for dtype in ("float32", "int8", "int16"):
            for flipped in (0, 1, 2, 3):
                batch, (rows, depth, columns) = self.whole(1, 4), self.shape(3)
                shapes = [(batch, rows, depth), (batch, depth, columns)]
                for side in (0, 1):
                    if flipped >> side & 1:
                        shapes[side] = (batch, *shapes[side][:0:-1])
                left, right = (self.tensor(shape, dtype) for shape in shapes)
                size = 1.0 if dtype == "float32" else left.scales[0] * right.scales[0] * np.iinfo(dtype).max ** 2
                options = {0: ("?", bool(flipped & 1)), 1: ("?", bool(flipped & 2))}
                yield "BATCH_MATMUL", [left, right, self.out((batch, rows, columns), dtype, size)], options

    def narrow(self) -> Iterator[Found]:
        """Weights of 4 bits."""
        depth, outputs = 2 * self.whole(3, 20), self.whole(1, 9)
        matrix = self.tensor((5, depth), "int8")
        _, bias = self.weights((outputs, depth), outputs, 0, matrix, one=True)
        packed = self.random.integers(0, 256, outputs * depth // 2).astype(np.uint8)
        weights = TensorCase((outputs, depth), "int4", packed, [0.05], [0])
        bias = TensorCase(
            (outputs,), "int32", bias.values, [float(np.float32(matrix.scales[0]) * np.float32(0.05))], [0]
        )
        out = self.out((5, outputs), "int8", matrix.scales[0] * 127 * 0.05 * 5 * depth**0.5)
        yield "FULLY_CONNECTED", [matrix, weights, bias, out], {0: ("b", 0)}
        kernel = (outputs, 3, 3, 2)
        image = self.tensor((1, 5, 5, 2), "int8")
        packed = self.random.integers(0, 256, outputs * 9).astype(np.uint8)
        scales = self.random.uniform(0.02, 0.1, outputs).astype(np.float32)
        weights = TensorCase(kernel, "int4", packed, scales.tolist(), [0] * outputs, 0)
        products = (np.float32(image.scales[0]) * scales).tolist()
        bias = TensorCase((outputs,), "int32", bias.values, products, [0] * outputs)
        out = self.out((1, 5, 5, outputs), "int8", image.scales[0] * 127 * 0.05 * 5 * 18**0.5)
        options = {0: ("b", 0), 1: ("i", 1), 2: ("i", 1), 3: ("b", 0)}
        yield "CONV_2D", [image, weights, bias, out], options

    def hybrid(self) -> Iterator[Found]:
        """Floats with weights of integers."""
        left = TensorCase((), "int8", scales=[1.0])
        for one in (False, True):
            depth, outputs, channels = self.whole(3, 40), self.whole(1, 9), self.whole(1, 5)
            bias = self.constant(self.random.standard_normal(outputs).astype(np.float32))
            weights, _ = self.weights((outputs, depth), outputs, 0, left, one=one)
            for asymmetric in (False, True):
                options = {0: ("b", self.whole(0, 2)), 3: ("?", asymmetric)}
                yield "FULLY_CONNECTED", [TensorCase((3, depth)), weights, bias, TensorCase((3, outputs))], options
            weights, _ = self.weights((outputs, 3, 2, channels), outputs, 0, left, one=one)
            options = {0: ("b", 0), 1: ("i", 1), 2: ("i", 1), 3: ("b", 0)}
            yield "CONV_2D", [TensorCase((2, 5, 6, channels)), weights, bias, TensorCase((2, 5, 6, outputs))], options
            if one:
                continue
            weights, _ = self.weights((1, 3, 2, channels), channels, 3, left)
            bias = self.constant(self.random.standard_normal(channels).astype(np.float32))
            options = {0: ("b", 0), 1: ("i", 1), 2: ("i", 1), 3: ("i", 1), 4: ("b", 0)}
            image = TensorCase((2, 5, 6, channels))
            yield "DEPTHWISE_CONV_2D", [image, weights, bias, image], options
