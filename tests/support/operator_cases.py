"""
A case of each operator, which drives its tests: text, instruction, ONNX, machine code with all that is around it.

`tests/test_operators.py` runs them; an operator without a row fails there. `kernel_cases` has those of kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from execute import Given, sample
from operator_case import BATCH, OperatorCase, Properties
from random_trees import RandomTrees, binned_operands, tree_operands
from xdsl.dialects.builtin import ArrayAttr, StringAttr, f32, i8, i32
from xdsl.ir import Region

from glow_mlir.dialects.affine_maps import maps_attribute
from glow_mlir.dialects.element_types import ui8
from glow_mlir.dialects.expressions import exp, reduce_max, reduce_sum
from glow_mlir.dialects.generic_form import generic_form, operand_tensors
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.index_notation import Signature
from glow_mlir.dialects.quant import uniform
from glow_mlir.ir.universe import GLOW_UNIVERSE
from glow_mlir.support.symbols import Size

OPERATORS: dict[str, type[HighOp]] = {
    operator.name.removeprefix("glow_high."): operator
    for operator in GLOW_UNIVERSE.all_dialects["glow_high"]().operations
    if issubclass(operator, HighOp) and operator.HAS_INSTRUCTION
}
"""The operators by name, but for those that a pass replaces by others."""


def whole(*shape: int, bound: int, dtype: str = "i8") -> np.ndarray:
    """Whole numbers from 0 on, less than `bound`."""
    return np.random.default_rng(0).integers(0, bound, shape).astype(dtype)


def close(*shape: int) -> np.ndarray:
    """Numbers near 0, with which no gate is always open or shut."""
    return (sample(shape) * 0.3).astype(np.float32)


def within(low: float, high: float, *shape: int) -> np.ndarray:
    """Numbers between two others."""
    return np.random.default_rng(len(shape)).uniform(low, high, shape).astype(np.float32)


BYTES = whole(BATCH, 2, 32, bound=128, dtype="i1")
"""Rows of bytes."""


def row(
    operator: str,
    *operands: Given,
    batch: dict[int, int] | None = None,
    constants: tuple[int, ...] = (),
    tolerance: float | None = None,
    properties: Properties | None = None,
    **more: Any,
) -> OperatorCase:
    """A case of an operator; its batch is the first axis of its first operand unless `batch` says otherwise."""
    batch = {0: 0} if batch is None else batch
    return OperatorCase(OPERATORS[operator], operands, batch, properties or more, constants, tolerance=tolerance)


LINE = sample((BATCH, 11))
CUBE = sample((BATCH, 4, 9))
IMAGE = sample((BATCH, 4, 5, 6))
SQUARE, OFFSETS = sample((BATCH, 4, 4, 3)), sample((BATCH, 3, 3, 8))
CHANNELS = [sample((6,), seed=seed) for seed in range(3)]
QUANTIZED = whole(BATCH, 11, bound=120, dtype="i1")
TRUTHS, OTHER_TRUTHS = sample((BATCH, 11)) > 0, sample((BATCH, 11), seed=1) > 0
WHOLE = sample((BATCH, 11), "i4"), sample((BATCH, 11), "i4", seed=1)
BOTH = {0: 0, 1: 0}
WINDOW: dict[str, Any] = {"kernel_shape": (2, 3), "strides": (2, 1), "pads": (0, 1, 1, 1)}
HEADS: dict[str, Any] = {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"}
PAGES = (
    sample((5, 2, 6, 16)),
    sample((5, 2, 16, 9), seed=1),
    np.array([[3, 0], [4, 1]]),
    np.array([1, 0, 1]),
    np.array([20, 3, -1]),
)
"""Pages of keys and of values, the table of two sequences, and sequences and positions of rows."""
REGIONS = np.array([[0, 0, 5, 5], [1, 1, 3, 4], [2, 0, 6, 6]], np.float32)
REGIONS_OF_IMAGES = np.concatenate([np.array([[0], [1], [0]], np.float32), REGIONS], axis=1)

UNARY = (
    "abs asin atan asinh ceil cos erf exp expm1 floor is_nan neg round sign sin sinh cosh tan tanh hard_swish mish "
    "relu sigmoid softplus softsign"
).split()
"""Operators on one number, whatever it is; an arc sine of more than 1 is no number."""

WITH_PROPERTIES: dict[str, dict[str, Any]] = {
    "celu": {"alpha": 0.5},
    "elu": {"alpha": 0.5},
    "gelu": {"approximate": "tanh"},
    "hard_sigmoid": {"alpha": 0.25, "beta": 0.75},
    "is_inf": {"negative": False},
    "leaky_relu": {"alpha": 0.125},
    "selu": {"alpha": 1.5, "gamma": 1.25},
    "shrink": {"bias": 0.25, "lambd": 0.75},
    "swish": {"alpha": 0.5},
    "thresholded_relu": {"alpha": 0.25},
}
"""Others, with properties that are not those by default."""

BINARY = "add sub div max min equal greater greater_or_equal less less_or_equal prelu".split()
REDUCTIONS = "l1 l2 max mean min prod sum sum_square".split()


def pools() -> list[OperatorCase]:
    """The operators on windows of pixels."""
    kinds = ("avg_pool", "lp_pool", "max_pool", "max_pool_with_indices")
    codes = whole(BATCH, 4, 5, 6, bound=99, dtype="u1")
    return [*(row(kind, IMAGE, **WINDOW) for kind in kinds), row("sum_pool", codes, **WINDOW)]


def recurrent(operator: str, gates: int, *states: np.ndarray) -> OperatorCase:
    """A recurrence of two steps, on constant weights."""
    operands = [close(2, BATCH, gates * 20), close(20, gates * 20), close(BATCH, 20), *states]
    batch = {0: 1, 2: 0, **{3 + place: 0 for place in range(len(states))}}
    return OperatorCase(OPERATORS[operator], operands, batch, {}, (1,))


def stages_of_rows(batch: Size) -> dict[str, Any]:
    """Rows less the largest element, weighed, and divided by the sum of that."""
    x, weights = operand_tensors(notation := Signature.parse("x[i, k, j], w[i, j] -> y[i, k, j]"), [f32, f32])
    weighed = exp(x - reduce_max(x, "j")) * weights
    form = generic_form(notation, weighed / reduce_sum(weighed * weighed, "j"), [f32, f32], [(batch, 4, 9), (batch, 9)])
    return {
        "maps": maps_attribute(form.maps),
        "iterators": ArrayAttr(map(StringAttr, form.kinds)),
        "body": Region(form.block),
    }


def layer(operator: str, gates: int) -> OperatorCase:
    """A recurrent layer of five units and three steps, with its products."""
    weights, recurrence = close(1, gates * 5, 4), close(1, gates * 5, 5)
    return row(operator, close(3, BATCH, 4), weights, recurrence, batch={0: 1}, constants=(1, 2))


BESIDE = row("relu", sample((BATCH, 4)))
"""What reads an input with the batch, where the operator itself has none."""

ELEMENTWISE: list[OperatorCase] = [
    *(row(kind, LINE) for kind in UNARY),
    *(row(kind, LINE, **properties) for kind, properties in WITH_PROPERTIES.items()),
    *(row(kind, LINE, sample((BATCH, 11), seed=1), batch=BOTH) for kind in BINARY),
    *(row(kind, within(0.2, 3, BATCH, 11)) for kind in ("log", "log1p", "sqrt", "reciprocal")),
    *(row(kind, within(-0.9, 0.9, BATCH, 11)) for kind in ("acos", "atanh")),
    row("acosh", within(1.1, 3, BATCH, 11)),
    row("mod", LINE, sample((BATCH, 11), seed=1), batch=BOTH, fmod=True),
    row("mul", LINE, sample((11,), seed=1)),
    row("pow", within(0.2, 3, BATCH, 11), sample((BATCH, 1), seed=1), batch=BOTH),
    *(row(kind, TRUTHS, OTHER_TRUTHS, batch=BOTH) for kind in ("and", "or", "xor")),
    *(row(kind, *WHOLE, batch=BOTH) for kind in ("bitwise_and", "bitwise_or", "bitwise_xor")),
    row("bitwise_not", WHOLE[0]),
    row("not", TRUTHS),
    row("bit_shift", whole(BATCH, 11, bound=200, dtype="u1"), whole(11, bound=7, dtype="u1"), direction="right"),
    row("bit_cast", LINE, to=i32),
    row("cast", LINE, to=i32),
    row("clip", LINE, np.array(-0.5, np.float32), np.array(0.75, np.float32)),
    row("where", TRUTHS, LINE, sample((11,), seed=1), batch=BOTH),
    row("quantize", LINE, np.array(0.05, np.float32), np.array(3, np.int8), constants=(1, 2), to=i8),
    row("dequantize", QUANTIZED, np.array(0.05, np.float32), np.array(3, np.int8), constants=(1, 2)),
    row("rescale", WHOLE[0], within(1, 5, 11), within(-2, 2, 11), constants=(1, 2), to=i8),
    row("integer_rescale", WHOLE[0], whole(11, bound=9, dtype="i4"), np.full(11, 3, np.int32), to=i8),
    row("storage_cast", whole(BATCH, 11, bound=99, dtype="u1"), to=uniform(ui8, f32, 0.5, 8)),
    row("philox", whole(BATCH, 11, bound=99, dtype="i8"), np.array(7), np.array(1 << 40), word=2, bits=24),
    row("lookup", sample((BATCH, 40), "i1"), whole(256, bound=100, dtype="i1"), constants=(1,)),
]

MOVEMENT: list[OperatorCase] = [
    OperatorCase(OPERATORS["concat"], [[LINE, sample((BATCH, 11), seed=1)]], {0: 0}, {"axis": 1}),
    row("expand", sample((BATCH, 1, 5)), properties=lambda batch: {"shape": (batch, 4, 5)}),
    row("pad", CUBE, pads=(0, 1, 2, 0, 0, 1), mode="reflect"),
    row("reshape", CUBE, properties=lambda batch: {"shape": (batch, 36)}),
    row("slice", CUBE, properties=lambda size: {"starts": (0, 3, 0), "ends": (size, 1, 7), "steps": (1, -1, 3)}),
    row("tile", LINE, repeats=(1, 3)),
    row("transpose", CUBE, permutation=(0, 2, 1)),
    row("dynamic_slice", CUBE, np.array(2), axis=1, size=2),
    row("dynamic_update_slice", CUBE, sample((BATCH, 2, 9), seed=1), np.array([1], np.int32), batch=BOTH, axis=1),
    row("gather", sample((9, 5)), whole(BATCH, 2, bound=9, dtype="i8"), batch={1: 0}, axis=0),
    row("gather_elements", LINE, whole(BATCH, 4, bound=11), batch=BOTH, axis=1),
    row("gather_nd", sample((4, 5, 6)), whole(BATCH, 3, 2, bound=4), batch={1: 0}),
    row("scatter_elements", LINE, np.tile([1, 7, 4], (BATCH, 1)), sample((BATCH, 3)), batch={0: 0, 1: 0, 2: 0}, axis=1),
    row(
        "scatter_nd", sample((9, 7)), whole(BATCH, 1, bound=9), sample((BATCH, 7)), batch={1: 0, 2: 0}, reduction="add"
    ),
    row("reverse_sequence", CUBE, whole(BATCH, bound=5), batch=BOTH, batch_axis=0, time_axis=1),
    OperatorCase(OPERATORS["splat"], [], {}, lambda batch: {"shape": (batch, 9), "value": 0.5}, beside=BESIDE),
    OperatorCase(OPERATORS["shape"], [], {}, lambda batch: {"sizes": (batch, 4)}, sized=True, beside=BESIDE),
    row("non_zero", TRUTHS),
    row("unique", whole(BATCH, 2, bound=2).astype(np.float32)),
    row(
        "non_max_suppression",
        np.abs(sample((BATCH, 6, 4))),
        np.abs(sample((BATCH, 2, 6))),
        np.array([2]),
        batch=BOTH,
        constants=(2,),
        limit=3,
    ),
    OperatorCase(
        OPERATORS["tf_idf_vectorizer"],
        [whole(BATCH, 9, bound=3), None, [np.array([[0, 2], [2, 0]])]],
        {0: 0},
        {"size": 3},
    ),
]

TREES: list[OperatorCase] = [
    row("tree_ensemble", sample((BATCH, 3)), *tree_operands(RandomTrees(0, targets=2)), size=2),
    row(
        "binned_tree_ensemble",
        sample((BATCH, 3)),
        *binned_operands(5, 3, ((0, 17), (2, 3), (1, 4)), size=2),
        size=2,
        relations=(3, 2),
        counts=(2, 1),
    ),
]

SUMS: list[OperatorCase] = [
    *(row(f"reduce_{kind}", CUBE, axes=(2,)) for kind in REDUCTIONS),
    *(row(f"reduce_{kind}", np.abs(CUBE), axes=(1, 2), keepdims=False) for kind in ("log_sum", "log_sum_exp")),
    row("arg_max", CUBE, axis=2),
    row("arg_min", CUBE, axis=1, keepdims=False),
    row("cum_sum", CUBE, axis=2),
    row("cum_prod", CUBE, axis=1, reverse=True),
    row("top_k", CUBE, axis=2, k=3),
    *(row(kind, CUBE) for kind in ("softmax", "log_softmax", "hardmax")),
    OperatorCase(OPERATORS["generic"], [[CUBE, sample((BATCH, 9), seed=1)]], {0: 0}, stages_of_rows),
    row("layer_normalization", CUBE, sample((9,)), sample((9,), seed=1), epsilon=0.125),
    row("rms_normalization", CUBE, sample((9,)), epsilon=0.125),
    row("instance_normalization", IMAGE, *CHANNELS[:2], epsilon=0.125),
    row("group_normalization", IMAGE, *CHANNELS[:2], groups=3, epsilon=0.125),
    row("batch_normalization", IMAGE, *CHANNELS, within(0.5, 2, 6), constants=(1, 2, 3, 4)),
    row("lrn", IMAGE, size=3),
    row("sparse_lengths_sum", sample((9, 20)), whole(16, bound=9), np.array([2, 0, 3], np.int32), batch={2: 0}),
]

PRODUCTS: list[OperatorCase] = [
    row("matmul", sample((BATCH, 5, 8)), sample((8, 10), seed=1), constants=(1,)),
    row("fully_connected", sample((BATCH, 8)), sample((8, 10), seed=1), sample((10,)), constants=(1, 2)),
    OperatorCase(
        OPERATORS["einsum"],
        [[sample((BATCH, 3, 4)), sample((BATCH, 4, 5))]],
        {0: 0},
        {"equation": "bij,bjk->bik"},
    ),
    row("conv", sample((BATCH, 5, 6, 4)), sample((6, 2, 2, 4), seed=1), sample((6,)), constants=(1, 2)),
    row("conv_transpose", IMAGE, sample((6, 2, 2, 4), seed=1), None, constants=(1,), strides=(2, 2)),
    row(
        "deform_conv",
        sample((BATCH, 4, 4, 3)),
        sample((6, 2, 2, 3), seed=1),
        sample((BATCH, 3, 3, 8)),
        batch={0: 0, 2: 0},
    ),
    row("deform_columns", sample((BATCH, 4, 4, 3)), sample((BATCH, 3, 3, 8)), batch=BOTH, kernel_shape=(2, 2)),
    row("attention", *(sample((BATCH, 2, 4, 8), seed=seed) for seed in range(3)), batch=dict.fromkeys(range(3), 0)),
    row(
        "linear_attention",
        *(sample((BATCH, 3, 8), seed=seed) for seed in range(3)),
        batch=dict.fromkeys(range(3), 0),
        **HEADS,
    ),
    row(
        "extend_cache",
        sample((BATCH, 2, 5, 3)),
        sample((BATCH, 2, 2, 3), seed=1),
        np.arange(BATCH) % 3 + 2,
        np.arange(BATCH) % 2 + 4,
        batch=dict.fromkeys(range(4), 0),
        length=6,
    ),
    row("paged_attention", sample((BATCH, 4, 6)), *PAGES, batch={0: 0, 4: 0, 5: 0}, scale=0.4),
    row("write_pages", PAGES[1], sample((BATCH, 2, 9)), *PAGES[2:], batch={1: 0, 3: 0, 4: 0}),
    row("det", sample((BATCH, 2, 3, 3))),
    row("dft", sample((BATCH, 6, 1)), axis=1, length=5, onesided=True),
    row(
        "blockwise_matmul",
        sample((BATCH, 2, 32)),
        whole(40, 16, bound=256, dtype="u1"),
        within(0.01, 0.1, 40, 1),
        constants=(1, 2),
        bits=4,
        block=32,
    ),
    row(
        "blockwise_matmul_integer",
        BYTES,
        None,
        within(0.01, 0.1, BATCH, 2, 1),
        BYTES.sum(axis=-1, keepdims=True, dtype=np.int32),
        whole(40, 16, bound=256, dtype="u1"),
        within(0.01, 0.1, 40, 1),
        batch={0: 0, 2: 0, 3: 0},
        constants=(4, 5),
        bits=4,
        block=32,
    ),
    OperatorCase(
        OPERATORS["blockwise_dequantize"],
        [whole(4, 16, bound=256, dtype="u1"), within(0.01, 0.1, 4, 1), None],
        {},
        {"bits": 4, "block": 32},
        beside=BESIDE,
    ),
    *(layer(kind, gates) for kind, gates in {"lstm": 4, "gru": 3, "rnn": 1}.items()),
    recurrent("lstm_recurrence", 4, close(BATCH, 20)),
    recurrent("gru_recurrence", 3),
    recurrent("rnn_recurrence", 1),
    recurrent("lstm_recurrence_with_sums", 4, close(BATCH, 20)),
    recurrent("gru_recurrence_with_sums", 3),
    recurrent("rnn_recurrence_with_sums", 1),
    row("predicate", CUBE, CUBE[..., 0] > 0, batch=BOTH),
    # All rows are looked at: what is not may differ.
    row(
        "grouped_matmul",
        sample((BATCH, 9)),
        sample((4, 40, 9), seed=1),
        np.array([2, 0, -2]),
        sample((4, 40), seed=2),
        batch={0: 0, 2: 0},
        constants=(1, 3),
        transpose_weights=True,
    ),
    row("predicated_matmul", CUBE, sample((9, 40), seed=1), np.ones(CUBE.shape[:2], bool), batch={0: 0, 2: 0}),
]

PIXELS: list[OperatorCase] = [
    *pools(),
    row("col2im", sample((BATCH, 12, 20)), image_shape=(5, 6), block_shape=(2, 2)),
    row("grid_sample", sample((BATCH, 4, 5, 3)), sample((BATCH, 3, 4, 2)), batch=BOTH),
    row("roi_align", sample((2, 8, 8, 5)), REGIONS, np.array([0, 1, 0]), batch={1: 0, 2: 0}, output_shape=(2, 3)),
    row("roi_pool", sample((2, 8, 8, 5)), REGIONS_OF_IMAGES, batch={1: 0}, output_shape=(2, 3)),
    row(
        "resize",
        sample((BATCH, 3, 4, 5)),
        properties=lambda batch: {"shape": (batch, 4, 6, 5), "scales": (1.0, 4 / 3, 1.5, 1.0), "mode": "linear"},
    ),
]

CASES: dict[str, OperatorCase] = {
    case.operator.name.removeprefix("glow_high."): case
    for case in (*ELEMENTWISE, *MOVEMENT, *TREES, *SUMS, *PRODUCTS, *PIXELS)
}
"""Operator → its case."""

WITHOUT_ONNX = frozenset(
    "bit_cast generic integer_rescale tf_idf_vectorizer cum_prod sparse_lengths_sum deform_columns linear_attention "
    "philox blockwise_matmul blockwise_matmul_integer blockwise_dequantize lstm_recurrence gru_recurrence "
    "rnn_recurrence predicate predicated_matmul grouped_matmul lstm_recurrence_with_sums gru_recurrence_with_sums "
    "rnn_recurrence_with_sums binned_tree_ensemble tree_ensemble extend_cache write_pages "
    "paged_attention dynamic_slice dynamic_update_slice".split()
)
"""Operators for which the export has no words."""

SIZED_BY_DATA = frozenset(["non_zero", "unique", "non_max_suppression"])
"""Operators whose results are padded in ONNX by as much as data says, which is not imported."""

REFERENCE_IS_WRONG = {
    "lrn": "it takes images for channels",
    "non_max_suppression": "it fails with an internal error",
    "roi_pool": "does not have it",
}
"""Operator → what ONNX's reference implementation does; onnxruntime alone checks it."""
