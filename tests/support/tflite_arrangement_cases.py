"""Random models of one operator that moves elements, or reads and writes them at indices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tflite_files import TensorCase
from tflite_random_tensors import Found, RandomTensors

MOVED = ("float32", "int8", "uint8", "int16", "int32", "int64")


class ArrangementCases(RandomTensors):
    """Operators with random shapes and options in each of their types."""

    def families(self) -> list[Iterator[Found]]:
        """All of them."""
        return [
            self.packs(),
            self.blocks(),
            self.repetitions(),
            self.indices(),
            self.creations(),
            self.casts(),
            self.choices(),
        ]

    def packs(self) -> Iterator[Found]:
        """Packs and parts along a new axis."""
        for dtype in MOVED:
            shape, axis = self.shape(3), self.whole(-3, 3)
            part = self.tensor(shape, dtype)
            own, count = axis % 4 if axis >= 0 else axis + 4, self.whole(1, 4)
            whole = self.alike(part, (*shape[:own], count, *shape[own:]))
            yield "PACK", [*[part] * count, whole], {0: ("i", count), 1: ("i", axis)}
            if dtype != "int64":
                yield "UNPACK", [whole, *[part] * count], {0: ("i", count), 1: ("i", axis)}, count

    def blocks(self) -> Iterator[Found]:
        """Blocks of pixels as channels or as batch."""
        for dtype in MOVED:
            block, (batch, high, wide, depth) = self.whole(1, 4), self.shape(4)
            pixels = self.tensor((batch, high * block, wide * block, depth), dtype)
            channels = self.alike(pixels, (batch, high, wide, depth * block**2))
            options = {0: ("i", block)}
            if dtype != "int16":
                yield "SPACE_TO_DEPTH", [pixels, channels], options
                yield "DEPTH_TO_SPACE", [channels, pixels], options
            sizes, cut = [self.whole(1, 4) for _ in range(2)], [[self.whole(0, 2), self.whole(0, 2)] for _ in range(2)]
            high, wide = high + 2, wide + 2
            shape = [high * sizes[0] - sum(cut[0]), wide * sizes[1] - sum(cut[1])]
            small = self.tensor((batch, *shape, depth), dtype)
            large = self.alike(small, (batch * sizes[0] * sizes[1], high, wide, depth))
            known = [self.constant(sizes), self.constant(np.array(cut, np.int32))]
            yield "SPACE_TO_BATCH_ND", [small, *known, large], {}
            yield "BATCH_TO_SPACE_ND", [large, *known, small], {}

    def repetitions(self) -> Iterator[Found]:
        """Mirrors, repetitions and borders."""
        for dtype in (*MOVED, "bool"):
            shape = tuple(size + 1 for size in self.shape(3))
            value = self.tensor(shape, dtype)
            axes = sorted({self.whole(0, 3), self.whole(0, 3)})
            if axes == list(range(axes[0], axes[-1] + 1)):
                yield "REVERSE_V2", [value, self.constant(axes), value], {}
            counts = [self.whole(1, 4) for _ in range(3)]
            tiled = tuple(size * count for size, count in zip(shape, counts, strict=True))
            if dtype not in ("int16",):
                yield "TILE", [value, self.constant(counts), self.alike(value, tiled)], {}
            one = tuple(1 if self.whole(0, 2) else size for size in shape[1:])
            own = self.alike(value, one)
            yield "BROADCAST_TO", [own, self.constant(shape), value], {}
            if dtype == "bool":
                continue
            widths = np.array([[self.whole(0, size), self.whole(0, size)] for size in shape], np.int32)
            padded = self.alike(value, tuple((widths.sum(1) + shape).tolist()))
            if dtype != "int16":
                for mode in (0, 1):
                    yield "MIRROR_PAD", [value, self.constant(widths), padded], {0: ("b", mode)}
            if dtype in ("float32", "int8", "uint8", "int16", "int32"):
                yield "PAD", [value, self.constant(widths), padded], {}
            if dtype in ("float32", "int32", "int64", "uint8", "int16"):
                lengths = TensorCase((shape[0],), "int32", bounds=(1, shape[2]))
                yield "REVERSE_SEQUENCE", [value, lengths, value], {0: ("i", 2), 1: ("i", 0)}

    def indices(self) -> Iterator[Found]:
        """Reads and writes at indices."""
        for dtype in (*MOVED, "bool"):
            shape, rows = self.shape(3), self.shape(2)
            value, axis = self.tensor(shape, dtype), self.whole(-3, 3)
            own = axis % 3
            at = TensorCase(rows, self.random.choice(["int32", "int64"]), bounds=(0, shape[own] - 1))
            found = (*shape[:own], *rows, *shape[own + 1 :])
            yield "GATHER", [value, at, self.alike(value, found)], {0: ("i", axis)}
            at = TensorCase((shape[0], rows[0]), "int32", bounds=(0, shape[2] - 1))
            options = {0: ("i", 2), 1: ("i", 1)}
            yield "GATHER", [value, at, self.alike(value, (*shape[:2], rows[0]))], options
            depth = self.whole(1, 4)
            at = TensorCase((*rows, depth), "int32", bounds=(0, min(shape[:depth]) - 1))
            yield "GATHER_ND", [value, at, self.alike(value, (*rows, *shape[depth:]))], {}
            update = tuple(self.whole(1, size + 1) for size in shape)
            start = TensorCase((3,), "int32", bounds=(-2, 7))
            yield "DYNAMIC_UPDATE_SLICE", [value, self.alike(value, update), start, value], {}
            if dtype in ("float32", "int32", "int64", "int8", "uint8"):
                yield "SCATTER_ND", [at, self.alike(value, (*rows, *shape[depth:])), self.constant(shape), value], {}
            if dtype in ("float32", "int32", "int64", "int8", "uint8", "bool"):
                on, off = (TensorCase((), dtype) for _ in range(2))
                at, axis = TensorCase(rows, "int32", bounds=(-1, 5)), self.whole(-1, 2)
                own = axis % 3
                hot = TensorCase((*rows[:own], 4, *rows[own:]), dtype)
                yield "ONE_HOT", [at, self.constant(np.array(4, np.int32)), on, off, hot], {0: ("i", axis)}
            if dtype in ("float32", "int32", "int64", "int8", "uint8", "int16"):
                count = self.whole(1, shape[2] + 1)
                kept = [self.alike(value, (*shape[:2], count)), TensorCase((*shape[:2], count), "int32")]
                yield "TOPK_V2", [value, self.constant(np.array(count, np.int32)), *kept], {}, 2
            if dtype in ("float32", "int8", "uint8"):
                at = TensorCase((rows[0],), "int32", bounds=(0, shape[0] - 1))
                yield "EMBEDDING_LOOKUP", [at, value, self.alike(value, (rows[0], *shape[1:]))], None

    def creations(self) -> Iterator[Found]:
        """Shapes, and tensors of one number."""
        for dtype in ("float32", "int32", "int64", "int8", "int16", "bool"):
            shape = self.shape(3)
            value = self.tensor(shape, dtype)
            yield "FILL", [self.constant(shape), self.alike(value, ()), value], {}
            yield "SHAPE", [value, TensorCase((3,), "int32")], {0: ("b", 2)}
            yield "RANK", [value, TensorCase((), "int32")], {}
            if dtype in ("float32", "int32", "int64"):
                yield "ZEROS_LIKE", [value, value], {}
        for dtype in ("int32", "int64"):
            vectors = [TensorCase((3,), dtype, bounds=(1, 5)), TensorCase((1,), dtype, bounds=(1, 1))]
            self.random.shuffle(vectors)
            yield "BROADCAST_ARGS", [*vectors, TensorCase((3,), dtype)], None

    def casts(self) -> Iterator[Found]:
        """Numbers as those of other types."""
        kinds = ("float32", "int32", "int64", "int8", "uint8", "int16", "bool", "uint32", "float16")
        for source in kinds:
            for target in kinds:
                if source != target:
                    shape = self.shape(2)
                    bounds = (0, 100) if source.startswith("float") else None
                    yield "CAST", [TensorCase(shape, source, bounds=bounds), TensorCase(shape, target)], {}

    def choices(self) -> Iterator[Found]:
        """Splits, choices, borders of a value, numbers in a row, and bits of other types."""
        for dtype in ("float32", "int8", "uint8", "int16", "int32", "int64"):
            shape = self.shape(2)
            part, zero = self.tensor(shape, dtype), self.constant(np.array(0, np.int32))
            whole = self.alike(part, (2 * shape[0], shape[1]))
            if dtype != "int64":
                yield "SPLIT", [zero, whole, part, part], {0: ("i", 2)}, 2
            other = self.alike(part, (shape[0] + 3, shape[1]))
            sizes = self.constant([shape[0], 3 + shape[0]])
            both = self.alike(part, (2 * shape[0] + 3, shape[1]))
            yield "SPLIT_V", [both, sizes, zero, part, other], {0: ("i", 2)}, 2
            yield "SELECT_V2", [TensorCase(shape[-1:], "bool"), part, self.alike(part, (1,)), part], None
            widths = self.constant(np.array([[1, 0], [2, 1]], np.int32))
            padded = self.alike(part, (shape[0] + 1, shape[1] + 3))
            if dtype != "int16":
                yield "PADV2", [part, widths, self.alike(part, ()), padded], {}
        for dtype in ("float32", "int32", "int64"):
            bounds = [self.constant(np.array(number, dtype)) for number in (2, 11, 3)]
            yield "RANGE", [*bounds, TensorCase((3,), dtype)], None
        for source, target in (("float32", "int32"), ("int32", "uint32"), ("int16", "uint16"), ("uint8", "int8")):
            yield "BITCAST", [TensorCase((3, 4), source), TensorCase((3, 4), target)], {}
