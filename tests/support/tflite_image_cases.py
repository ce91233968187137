"""Random models of one operator on images and along axes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tflite_files import TensorCase
from tflite_random_tensors import Found, RandomTensors

LIMITS = "REDUCE_MAX REDUCE_MIN"
FOLDS = {
    "int8": f"{LIMITS} MEAN",
    "uint8": f"{LIMITS} MEAN SUM",
    "int16": f"{LIMITS} MEAN",
    "bool": "REDUCE_ANY REDUCE_ALL",
    **dict.fromkeys(("float32", "int32", "int64"), f"{LIMITS} MEAN SUM REDUCE_PROD"),
}
"""Type → the folds with a reference kernel of a meaning of its own."""

POSITIONS = ("ARG_MAX", "ARG_MIN")


class ImageCases(RandomTensors):
    """Images in other sizes, pools, normalizations and folds, in each of their types."""

    def families(self) -> list[Iterator[Found]]:
        """All of them."""
        return [self.sizes(), self.rows(), self.folds(), self.parts()]

    def sizes(self) -> Iterator[Found]:
        """Images in other sizes."""
        for dtype in ("float32", "int8", "uint8", "int16"):
            batch, depth = self.whole(1, 3), self.whole(1, 5)
            image = self.tensor((batch, self.whole(1, 8), self.whole(2, 8), depth), dtype)
            size = [self.whole(1, 12), self.whole(1, 12)]
            out = self.alike(image, (batch, *size, depth))
            for aligned, centers in ((False, False), (True, False), (False, True)):
                options = {2: ("?", aligned), 3: ("?", centers)}
                yield "RESIZE_BILINEAR", [image, self.constant(size), out], options
                options = {0: ("?", aligned), 1: ("?", centers)}
                yield "RESIZE_NEAREST_NEIGHBOR", [image, self.constant(size), out], options
        pooled = TensorCase((1, 3, 3, 2))
        windows = {1: ("i", 2), 2: ("i", 2), 3: ("i", 3), 4: ("i", 2), 5: ("b", 0)}
        yield "L2_POOL_2D", [TensorCase((1, 6, 5, 2)), pooled], {0: ("b", 0)} | windows
        for kind in ("MAX_POOL_2D", "AVERAGE_POOL_2D"):
            image = self.tensor((1, 6, 5, 2), "int16")
            yield kind, [image, self.alike(image, (1, 3, 3, 2))], {0: ("b", 0)} | windows

    def rows(self) -> Iterator[Found]:
        """Normalizations and running sums."""
        shape = self.shape(3)
        value = TensorCase(shape)
        yield "L2_NORMALIZATION", [value, value], {0: ("b", 0)}
        for dtype in ("int8", "uint8"):
            own = self.tensor(shape, dtype)
            out = TensorCase(shape, dtype, scales=[1 / 128], zeros=[0 if dtype == "int8" else 128])
            yield "L2_NORMALIZATION", [own, out], {0: ("b", 0)}
        yield "LOG_SOFTMAX", [value, value], {}
        for own, out in (
            ("int8", "int8"),
            ("uint8", "uint8"),
            ("int8", "int16"),
            ("uint8", "int16"),
            ("int16", "int16"),
        ):
            scale, zero = 1 / 256, np.iinfo(out).min
            if out == "int16":
                scale, zero = (1 / 32768, 0) if own == "int16" else (1 / 65536, -32768)
            beta = float(np.float32(self.random.uniform(0.5, 2)))
            operand = self.tensor((3, self.whole(1, 30)), own)
            if own == "int16":
                operand = TensorCase(operand.shape, own, scales=[operand.scales[0] / 100], zeros=[0])
            yield "SOFTMAX", [operand, TensorCase(operand.shape, out, scales=[scale], zeros=[zero])], {0: ("f", beta)}
        numbers = {0: ("i", self.whole(1, 3)), 1: ("f", 1.5), 2: ("f", 0.3), 3: ("f", 0.75)}
        yield "LOCAL_RESPONSE_NORMALIZATION", [TensorCase((1, 2, 2, 7))] * 2, numbers
        for dtype in ("float32", "int32", "int64"):
            own = TensorCase(shape, dtype, bounds=(-99, 99))
            for exclusive, reverse in ((False, False), (True, False), (False, True), (True, True)):
                options = {0: ("?", exclusive), 1: ("?", reverse)}
                yield "CUMSUM", [own, self.constant(np.array(self.whole(-3, 3), np.int32)), own], options

    def folds(self) -> Iterator[Found]:
        """Folds of quantized values, integers and truth values."""
        for dtype in ("int8", "uint8", "int16", "int32", "int64", "bool", "float32"):
            shape = self.shape(4)
            axes, keeps = sorted({self.whole(0, 4) for _ in range(2)}), bool(self.whole(0, 2))
            kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
            folded = kept if keeps else [size for axis, size in enumerate(shape) if axis not in axes]
            is_wide = dtype.endswith(("32", "64"))
            own = TensorCase(shape, dtype, bounds=(-5, 5)) if is_wide else self.tensor(shape, dtype)
            summed = self.tensor(folded, dtype)
            if summed.scales:
                summed = TensorCase(folded, dtype, scales=[summed.scales[0] * 20], zeros=summed.zeros)
            results = {"SUM": summed, "MEAN": self.tensor(folded, dtype)}
            for kind in FOLDS[dtype].split():
                out = results.get(kind, self.alike(own, folded))
                yield kind, [own, self.constant(axes), out], {0: ("?", keeps)}
            for kind in POSITIONS if dtype in ("float32", "int8", "uint8", "int32", "bool") else ():
                axis = self.whole(0, 4)
                out = TensorCase((*shape[:axis], *shape[axis + 1 :]), "int32")
                yield kind, [own, self.constant(np.array(axis, np.int32)), out], {0: ("b", 2)}

    def parts(self) -> Iterator[Found]:
        """Parts one behind the other."""
        for dtype in ("float32", "int8", "uint8", "int16", "int32", "int64", "bool"):
            shape = tuple(size + 1 for size in self.shape(3))
            axis, sizes = self.whole(-3, 3), [self.whole(1, 4) for _ in range(3)]
            own = axis % 3
            parts = [self.tensor((*shape[:own], size, *shape[own + 1 :]), dtype) for size in sizes]
            if dtype in ("int8", "int16"):
                parts = [self.alike(parts[0], part.shape) for part in parts]
            total = (*shape[:own], sum(sizes), *shape[own + 1 :])
            out = self.tensor(total, dtype) if dtype == "uint8" else self.alike(parts[0], total)
            yield "CONCATENATION", [*parts, out], {0: ("i", axis), 1: ("b", 0)}
            value = self.tensor(shape, dtype)
            yield "RESHAPE", [value, self.constant([-1]), self.alike(value, (int(np.prod(shape)),))], {}
            order = self.random.permutation(3).tolist()
            if dtype != "bool":
                moved = self.alike(value, tuple(shape[item] for item in order))
                yield "TRANSPOSE", [value, self.constant(order), moved], {}
            one = TensorCase((1, *shape))
            yield "SQUEEZE", [self.alike(value, one.shape), value], None
            yield "EXPAND_DIMS", [value, self.constant(np.array(0, np.int32)), self.alike(value, one.shape)], None
            begin = [self.whole(0, size) for size in shape]
            kept = [self.whole(1, size - first + 1) for first, size in zip(begin, shape, strict=True)]
            yield "SLICE", [value, self.constant(begin), self.constant(kept), self.alike(value, kept)], None
