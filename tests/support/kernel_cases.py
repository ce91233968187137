"""
A case of each kernel of the CPU backend, as small as it is selected for, and why it lacks the abilities that it lacks.

`tests/codegen/test_abilities.py` runs them; docs/abilities.md is made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from execute import Case, Given, module_of, sample
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.dialects.glow_high import convolution, data_movement, indexing, pooling, recurrence, reductions
from glow_mlir.dialects.glow_high.activations import ReluOp
from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.blockwise import BlockwiseMatMulOp
from glow_mlir.dialects.glow_high.elementwise_math import ExpOp
from glow_mlir.dialects.glow_high.embedding import SparseLengthsSumOp
from glow_mlir.dialects.glow_high.linear import DetOp, MatMulOp
from glow_mlir.dialects.glow_high.linear_attention import LinearAttentionOp
from glow_mlir.dialects.glow_high.ngrams import TfIdfVectorizerOp
from glow_mlir.dialects.glow_high.normalization import LayerNormalizationOp, SoftmaxOp
from glow_mlir.dialects.glow_high.quantization import LookupOp
from glow_mlir.dialects.glow_high.resize import ResizeOp
from glow_mlir.dialects.glow_high.sampling import DeformColumnsOp, GridSampleOp, RoiAlignOp
from glow_mlir.dialects.glow_high.selection import NonMaxSuppressionOp, NonZeroOp, UniqueOp
from glow_mlir.dialects.glow_high.sizes import ShapeOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.support.symbols import Size, Symbol, SymbolicSize

BATCH = 3
"""The batch of a case."""

LARGEST = 7
"""The largest batch, where it is known at run time only."""

SYMBOL = SymbolicSize.of(Symbol("batch", 1, LARGEST))

Properties = Mapping[str, Any] | Callable[[Size], Mapping[str, Any]]


@dataclass(frozen=True)
class KernelCase:
    """
    An operator for which a kernel is selected.

    `batch` has positions of operands → which of their axes is the batch. `properties` may depend on its size. Some
    kernels are there for sizes alone that are known at run time only, `sized`.
    """

    operator: type[HighOp]
    operands: Sequence[Given]
    batch: Mapping[int, int]
    properties: Properties = field(default_factory=dict[str, Any])
    constants: Sequence[int] = ()
    sized: bool = False
    beside: KernelCase | None = None
    tolerance: float | None = None

    def cases(self, batch: int = BATCH, size: Size | None = None) -> list[Case]:
        """The operator on so many elements along the batch, and what is beside it."""
        properties = self.properties(batch if size is None else size) if callable(self.properties) else self.properties
        operands = [_along(given, self.batch.get(place), batch) for place, given in enumerate(self.operands)]
        symbolic = {} if size is None else {place: (axis, size) for place, axis in self.batch.items()}
        own = Case(self.operator, *operands, constants=self.constants, symbolic=symbolic, **properties)
        return [own, *(self.beside.cases(batch, size) if self.beside is not None else ())]

    def module(self, sized: bool) -> ModuleOp:
        """A module with the operator, whose batch is a number or a symbol."""
        module, _ = module_of(*self.cases(size=SYMBOL if sized else None))
        return module

    def inputs(self, batch: int = BATCH) -> dict[str, np.ndarray]:
        """What the inputs of the module are, by name, for so many elements along the batch."""
        _, arrays = module_of(*self.cases(batch))
        return arrays


def _along(given: Given, axis: int | None, batch: int) -> Given:
    """An operand with so many elements along an axis, which repeat where there are more than it has."""
    if axis is None or given is None:
        return given
    if isinstance(given, np.ndarray):
        return np.take(given, np.arange(batch) % given.shape[axis], axis)
    return [np.take(part, np.arange(batch) % part.shape[axis], axis) for part in given]


def whole(*shape: int, bound: int, dtype: str = "i8") -> np.ndarray:
    """Whole numbers from 0 on, less than `bound`."""
    return np.random.default_rng(0).integers(0, bound, shape).astype(dtype)


def close(*shape: int) -> np.ndarray:
    """Numbers near 0, with which no gate is always open or shut."""
    return (sample(shape) * 0.3).astype(np.float32)


def conv(image: tuple[int, ...], filters: tuple[int, ...], tolerance: float | None = None, **more: Any) -> KernelCase:
    """A convolution with constant filters and a bias."""
    weights = (sample(filters, seed=1) * np.prod(filters[1:]) ** -0.5).astype(np.float32)
    operands = sample((BATCH, *image)), weights, sample(filters[:1], seed=2)
    return KernelCase(convolution.ConvOp, operands, {0: 0}, more, (1, 2), tolerance=tolerance)


def pool(operator: type[pooling.Pool], dtype: str = "f4") -> KernelCase:
    """A pool over two by two pixels."""
    return KernelCase(operator, [sample((BATCH, 4, 5, 6), dtype)], {0: 0}, {"kernel_shape": (2, 2)})


def recurrent(operator: type[recurrence.Recurrence], gates: int, *states: np.ndarray) -> KernelCase:
    """A recurrence of two steps, on constant weights."""
    operands = [close(2, BATCH, gates * 20), close(20, gates * 20), close(BATCH, 20), *states]
    return KernelCase(operator, operands, {0: 1, 2: 0, **{3 + place: 0 for place in range(len(states))}}, {}, (1,))


def blockwise() -> KernelCase:
    """A product with codes of four bits."""
    codes, scales = whole(40, 16, bound=256, dtype="u1"), np.abs(sample((40, 1), seed=1)) / 16
    operands = sample((BATCH, 2, 32)), codes, scales.astype(np.float32), None, None
    return KernelCase(BlockwiseMatMulOp, operands, {0: 0}, {"bits": 4, "block": 32}, (1, 2, 3, 4))


def product(batch: tuple[int, ...], rows: int, depth: int, columns: int, tolerance: float | None = None) -> KernelCase:
    """Batches of rows times a constant matrix."""
    operands = sample((*batch, rows, depth)), sample((depth, columns), seed=1)
    return KernelCase(MatMulOp, operands, {0: 0}, {}, (1,), tolerance=tolerance)


HEADS = {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"}
REGIONS = np.array([[0, 0, 5, 5], [1, 1, 3, 4], [2, 0, 6, 6]], np.float32)

BESIDE = KernelCase(ReluOp, [sample((BATCH, 4))], {0: 0})
"""What reads an input with the batch, where the operator itself has none."""

CASES: dict[str, KernelCase] = {
    "stack": KernelCase(ExpOp, [sample((BATCH, 40))], {0: 0}),
    "copy": KernelCase(data_movement.TransposeOp, [sample((BATCH, 5, 7))], {0: 0}, {"permutation": (0, 2, 1)}),
    "fill": KernelCase(SplatOp, [], {}, lambda batch: {"shape": (batch, 90), "value": 0.5}, beside=BESIDE),
    "conv-depthwise": conv((6, 7, 8), (8, 3, 3, 1), group=8),
    "conv-winograd": conv((8, 8, 32), (32, 3, 3, 32), 2e-5),
    "conv-strassen": conv((9, 11, 256), (128, 1, 1, 256), 5e-5),
    "conv": conv((5, 6, 4), (6, 2, 2, 4)),
    "matmul-strassen": product((BATCH,), 64, 256, 256, 5e-5),
    "matmul": product((BATCH,), 5, 8, 40),
    "attention": KernelCase(
        AttentionOp, [sample((BATCH, 2, 4, 8), seed=seed) for seed in range(3)], dict.fromkeys(range(3), 0)
    ),
    "linear-attention": KernelCase(
        LinearAttentionOp, [sample((BATCH, 3, 8), seed=seed) for seed in range(3)], dict.fromkeys(range(3), 0), HEADS
    ),
    "determinant": KernelCase(DetOp, [sample((BATCH, 2, 3, 3))], {0: 0}),
    "reduce": KernelCase(reductions.ReduceSumOp, [sample((BATCH, 4, 9))], {0: 0}, {"axes": (2,)}),
    "position": KernelCase(reductions.ArgMaxOp, [sample((BATCH, 4, 9))], {0: 0}, {"axis": 2}),
    "running": KernelCase(reductions.CumSumOp, [sample((BATCH, 4, 9))], {0: 0}, {"axis": 2}),
    "softmax": KernelCase(SoftmaxOp, [sample((BATCH, 4, 9))], {0: 0}),
    "layer-normalization": KernelCase(
        LayerNormalizationOp, [sample((BATCH, 4, 9)), sample((9,)), sample((9,), seed=1)], {0: 0}
    ),
    "max-pool": pool(pooling.MaxPoolOp),
    "avg-pool": pool(pooling.AvgPoolOp),
    "lp-pool": pool(pooling.LpPoolOp),
    "sum-pool": pool(pooling.SumPoolOp, "u1"),
    "top-k": KernelCase(reductions.TopKOp, [sample((BATCH, 4, 9))], {0: 0}, {"axis": 2, "k": 3}),
    "max-pool-with-indices": pool(pooling.MaxPoolWithIndicesOp),
    "slice": KernelCase(
        data_movement.SliceOp,
        [sample((BATCH, 90))],
        {0: 0},
        lambda batch: {"starts": (0, 88), "ends": (batch, 1), "steps": (1, -2)},
    ),
    "concat": KernelCase(
        data_movement.ConcatOp, [[sample((BATCH, 5)), sample((BATCH, 5), seed=1)]], {0: 0}, {"axis": 0}, sized=True
    ),
    "expand": KernelCase(
        data_movement.ExpandOp, [sample((BATCH, 1, 5))], {0: 0}, lambda batch: {"shape": (batch, 4, 5)}, sized=True
    ),
    "tile": KernelCase(data_movement.TileOp, [sample((BATCH, 20))], {0: 0}, {"repeats": (1, 3)}),
    "pad": KernelCase(
        data_movement.PadOp, [sample((BATCH, 4, 5))], {0: 0}, {"pads": (0, 1, 2, 0, 0, 1), "mode": "reflect"}
    ),
    "gather": KernelCase(indexing.GatherOp, [sample((9, 5)), whole(BATCH, 2, bound=9)], {1: 0}, {"axis": 0}),
    "gather-elements": KernelCase(
        indexing.GatherElementsOp, [sample((BATCH, 9)), whole(BATCH, 4, bound=9)], {0: 0, 1: 0}, {"axis": 1}
    ),
    "gather-nd": KernelCase(indexing.GatherNDOp, [sample((4, 5, 6)), whole(BATCH, 3, 2, bound=4)], {1: 0}),
    "scatter-elements": KernelCase(
        indexing.ScatterElementsOp,
        [sample((BATCH, 9)), np.tile(np.array([1, 7, 4]), (BATCH, 1)), sample((BATCH, 3))],
        {0: 0, 1: 0, 2: 0},
        {"axis": 1},
    ),
    "scatter-nd": KernelCase(
        indexing.ScatterNDOp,
        [sample((9, 70)), whole(BATCH, 1, bound=9), sample((BATCH, 70))],
        {1: 0, 2: 0},
        {"reduction": "add"},
    ),
    "reverse-sequence": KernelCase(
        indexing.ReverseSequenceOp,
        [sample((BATCH, 5, 4)), whole(BATCH, bound=6)],
        {0: 0, 1: 0},
        {"batch_axis": 0, "time_axis": 1},
    ),
    "resize": KernelCase(
        ResizeOp,
        [sample((BATCH, 3, 4, 5))],
        {0: 0},
        lambda batch: {"shape": (batch, 4, 6, 5), "scales": (1.0, 4 / 3, 1.5, 1.0), "mode": "linear"},
    ),
    "grid-sample": KernelCase(GridSampleOp, [sample((BATCH, 4, 5, 3)), sample((BATCH, 3, 4, 2))], {0: 0, 1: 0}),
    "deform-columns": KernelCase(
        DeformColumnsOp, [sample((BATCH, 4, 4, 3)), sample((BATCH, 3, 3, 8))], {0: 0, 1: 0}, {"kernel_shape": (2, 2)}
    ),
    "roi-align": KernelCase(
        RoiAlignOp, [sample((2, 8, 8, 5)), REGIONS, np.array([0, 1, 0])], {1: 0, 2: 0}, {"output_shape": (2, 3)}
    ),
    "col2im": KernelCase(
        convolution.Col2ImOp, [sample((BATCH, 12, 20))], {0: 0}, {"image_shape": (5, 6), "block_shape": (2, 2)}
    ),
    "ngrams": KernelCase(
        TfIdfVectorizerOp, [whole(BATCH, 9, bound=3), None, [np.array([[0, 2], [2, 0]])]], {0: 0}, {"size": 3}
    ),
    "sparse-lengths-sum": KernelCase(
        SparseLengthsSumOp, [sample((9, 20)), whole(16, bound=9), np.array([2, 0, 3], np.int32)], {2: 0}
    ),
    "non-zero": KernelCase(NonZeroOp, [sample((BATCH, 5)) > 0], {0: 0}),
    "unique": KernelCase(UniqueOp, [whole(BATCH, 2, bound=2).astype(np.float32)], {0: 0}),
    "non-max-suppression": KernelCase(
        NonMaxSuppressionOp, [np.abs(sample((BATCH, 6, 4))), np.abs(sample((BATCH, 2, 6)))], {0: 0, 1: 0}, {"limit": 3}
    ),
    "lstm-recurrence": recurrent(recurrence.LstmRecurrenceOp, 4, close(BATCH, 20)),
    "gru-recurrence": recurrent(recurrence.GruRecurrenceOp, 3),
    "rnn-recurrence": recurrent(recurrence.RnnRecurrenceOp, 1),
    "lookup": KernelCase(LookupOp, [sample((BATCH, 40), "i1"), whole(256, bound=100, dtype="i1")], {0: 0}),
    "blockwise-matmul": blockwise(),
    "shape": KernelCase(ShapeOp, [], {}, lambda batch: {"sizes": (batch, 4)}, sized=True, beside=BESIDE),
    "reshape": KernelCase(
        data_movement.ReshapeOp, [sample((2, BATCH, 40))], {0: 1}, lambda batch: {"shape": (2 * batch, 40)}, sized=True
    ),
}
"""Kernel → a case that it is selected for."""

BODILESS = "with a body it is a stack"
NOTHING = "it reads no elements"
SUMS = "blocks of rows, which are numbers, decide how sums are taken"
IN_TURN = "what comes before decides where an element goes"
FEW = "it computes as many numbers as there are axes"

EPILOGUE, PROLOGUE, SIZES, THREADS = ABILITIES = ("epilogue", "prologue", "run-time sizes", "threads")
"""Names of the abilities: bodies behind and in front of the operator, sizes, parts for threads."""

REFUSED: dict[str, dict[str, str]] = {
    "stack": {EPILOGUE: BODILESS, PROLOGUE: BODILESS},
    "copy": {EPILOGUE: BODILESS, PROLOGUE: BODILESS},
    "fill": {PROLOGUE: NOTHING},
    "conv-strassen": {SIZES: SUMS},
    "matmul-strassen": {PROLOGUE: SUMS, SIZES: SUMS},
    "non-zero": {THREADS: IN_TURN},
    "unique": {THREADS: IN_TURN},
    "non-max-suppression": {THREADS: IN_TURN},
    "shape": {PROLOGUE: NOTHING, THREADS: FEW},
}
"""Kernel → ability → why neither the kernel nor its tiles have it; a test fails where they do."""
