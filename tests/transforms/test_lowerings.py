"""A lowering preserves meaning: the interpreter gives the same before and after, but for rounding in between."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from single_operator import Operands, lower_operator, run_operator, single_operator
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, StringAttr, f32

from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.glow_high import normalization as norm
from glow_mlir.dialects.glow_high import recurrent
from glow_mlir.dialects.glow_high import reductions as red
from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.convolution import ConvTransposeOp
from glow_mlir.dialects.glow_high.fourier import DftOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp
from glow_mlir.dialects.glow_high.recurrent import GruOp, LstmOp, Recurrent, RnnOp
from glow_mlir.ir.registry import LOWERINGS

Case = tuple[type[HighOp], Callable[[np.random.Generator], Operands], dict[str, AttributeValue]]


def assert_preserved(operator: type[HighOp], operands: Operands, **properties: AttributeValue) -> None:
    module, op = single_operator(operator, operands, **properties)
    before = run_operator(module, operands)
    lower_operator(module, op)
    after = run_operator(module, operands)
    for wanted, actual in zip(before, after, strict=True):
        assert actual.dtype == wanted.dtype
        assert actual.shape == wanted.shape
        np.testing.assert_allclose(actual, wanted, rtol=2e-5, atol=2e-5)


def normal(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], Operands]:
    return lambda rng: [rng.standard_normal(shape, np.float32) for shape in shapes]


def positive(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], Operands]:
    return lambda rng: [rng.random(shape, np.float32) + np.float32(0.1) for shape in shapes]


def integers(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], Operands]:
    return lambda rng: [rng.integers(1, 9, shape).astype(np.int32) for shape in shapes]


def rounded(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], Operands]:
    """Few different values, so that there are several largest ones."""
    return lambda rng: [rng.integers(0, 3, shape).astype(np.float32) for shape in shapes]


IMAGE = (2, 4, 5, 6)
CASES: list[Case] = [
    (FullyConnectedOp, normal((3, 4), (4, 5), (5,)), {}),
    (DftOp, normal((2, 10, 3, 1)), {"axis": 1, "length": 13, "onesided": True}),
    (DftOp, normal((2, 150, 2)), {"axis": 1, "length": 150, "inverse": True}),
    (DftOp, normal((2, 136, 2)), {"axis": 1, "length": 134, "inverse": True, "onesided": True}),
    (DftOp, normal((1, 2 * 257, 1)), {"axis": 1, "length": 514, "onesided": True}),
    (DftOp, normal((1, 130, 2)), {"axis": 1, "length": 263, "inverse": True, "onesided": True}),
    (red.ReduceL1Op, normal(IMAGE), {"axes": (1, 3)}),
    (red.ReduceL2Op, normal(IMAGE), {"axes": (0,), "keepdims": False}),
    (red.ReduceL2Op, integers(IMAGE), {"axes": (1, 2, 3)}),
    (red.ReduceSumSquareOp, normal(IMAGE), {"axes": (-1,)}),
    (red.ReduceSumSquareOp, integers(IMAGE), {"axes": ()}),
    (red.ReduceLogSumOp, positive(IMAGE), {"axes": (1,), "keepdims": False}),
    (red.ReduceLogSumOp, integers(IMAGE), {"axes": (1,)}),
    (red.ReduceLogSumExpOp, normal(IMAGE), {"axes": (2, 3), "keepdims": False}),
    (red.ReduceLogSumExpOp, integers(IMAGE), {"axes": (2, 3)}),
    (AttentionOp, normal((2, 3, 8), (4, 8), (4, 5)), {}),
    (AttentionOp, normal((2, 3, 8), (2, 4, 8), (4, 5), (3, 1)), {"scale": 0.5}),
    (AttentionOp, normal((3, 8), (4, 8), (4, 5), (4,)), {"causal": True, "past": 1}),
    (norm.SoftmaxOp, normal(IMAGE), {"axis": 1}),
    (norm.LogSoftmaxOp, normal(IMAGE), {"axis": -1}),
    (norm.HardmaxOp, rounded(IMAGE), {"axis": 1}),
    (norm.HardmaxOp, normal(IMAGE), {"axis": 1}),
    (norm.HardmaxOp, normal((7,)), {"axis": 0}),
    (norm.BatchNormalizationOp, positive(IMAGE, (4,), (4,), (4,), (4,)), {"axis": 1}),
    (norm.InstanceNormalizationOp, normal(IMAGE, (4,), (4,)), {"axis": 1}),
    (norm.InstanceNormalizationOp, normal(IMAGE, (6,), (6,)), {}),
    (norm.GroupNormalizationOp, normal(IMAGE, (4,), (4,)), {"axis": 1, "groups": 2}),
    (norm.GroupNormalizationOp, normal(IMAGE, (6,), (6,)), {"groups": 3, "epsilon": 0.1}),
    (norm.LayerNormalizationOp, normal(IMAGE, (6,), (6,)), {}),
    (norm.LayerNormalizationOp, normal(IMAGE, (5, 1)), {"axis": 2, "epsilon": 0.01}),
    (norm.RmsNormalizationOp, normal(IMAGE, (4, 5, 6)), {"axis": 1}),
    (norm.LrnOp, normal(IMAGE), {"size": 3, "axis": 1, "alpha": 0.5}),
    (norm.LrnOp, normal(IMAGE), {"size": 4, "beta": 0.5, "bias": 2.0, "alpha": 0.3}),
    (norm.LrnOp, normal((2, 3)), {"size": 9, "axis": 1}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].name.partition(".")[2])
def test_lowering_preserves_meaning(case: Case) -> None:
    operator, make, properties = case
    assert_preserved(operator, make(np.random.default_rng(0)), **properties)


def test_log_sum_exp_of_infinities_is_no_nan() -> None:
    x = np.array([[np.inf, 1], [-np.inf, -np.inf], [-np.inf, 2], [80, 90]], np.float32)
    assert_preserved(red.ReduceLogSumExpOp, [x], axes=(1,))


def words(*names: str) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(name) for name in names])


def numbers(*values: float) -> DenseArrayBase:
    return DenseArrayBase.from_list(f32, list(values))


def layer_operands(
    rng: np.random.Generator, operator: type[Recurrent], directions: int, optional: set[str], batch_first: bool
) -> Operands:
    steps, batch, width, hidden = 5, 3, 4, 2
    gates = operator.RECURRENCE.GATES * hidden
    last = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
    shapes = {
        "input": (batch, steps, width) if batch_first else (steps, batch, width),
        "weights": (directions, gates, width),
        "recurrence": (directions, gates, hidden),
        "bias": (directions, 2 * gates),
        "sequence_lens": (batch,),
        "initial_h": last,
        "initial_c": last,
        "peepholes": (directions, 3 * hidden),
    }
    operands: list[np.ndarray | None] = []
    for name, _ in operator.get_irdl_definition().operands:
        if name == "sequence_lens":
            operands.append(np.array([5, 1, 3], np.int32) if name in optional else None)
        elif name in ("input", "weights", "recurrence") or name in optional:
            operands.append(rng.standard_normal(shapes[name], np.float32))
        else:
            operands.append(None)
    return operands


OPTIONAL = ("bias", "sequence_lens", "initial_h", "initial_c", "peepholes")


@settings(max_examples=examples(25))
@given(
    operator=st.sampled_from([LstmOp, GruOp, RnnOp]),
    direction=st.sampled_from(["forward", "reverse", "bidirectional"]),
    optional=st.sets(st.sampled_from(OPTIONAL)),
    batch_first=st.booleans(),
    variant=st.booleans(),
    clip=st.sampled_from([0.0, 0.5]),
)
def test_recurrent_layers_keep_their_meaning(
    operator: type[Recurrent], direction: str, optional: set[str], batch_first: bool, variant: bool, clip: float
) -> None:
    directions = 2 if direction == "bidirectional" else 1
    operands = layer_operands(np.random.default_rng(1), operator, directions, optional, batch_first)
    flag = {"glow_high.lstm": "input_forget", "glow_high.gru": "linear_before_reset"}.get(operator.name)
    properties: dict[str, AttributeValue] = {} if flag is None else {flag: variant}
    assert_preserved(operator, operands, direction=direction, batch_first=batch_first, clip=clip, **properties)


def test_recurrent_layers_keep_the_functions_of_each_direction() -> None:
    operands = layer_operands(np.random.default_rng(2), GruOp, 2, {"bias"}, False)
    names = words("hard_sigmoid", "tanh", "affine", "leaky_relu")
    alphas, betas = numbers(0.3, 0.0, 0.5, 0.1), numbers(0.4, 0.0, 0.25, 0.0)
    assert_preserved(GruOp, operands, direction="bidirectional", activations=names, alphas=alphas, betas=betas)


TRANSPOSED = [
    ((1, 4, 4, 16), (16, 4, 4, 3), {"strides": (2, 2), "pads": (1, 1, 1, 1)}),
    ((1, 4, 3), (3, 2, 1), {"strides": (20,)}),
    ((1, 4, 4, 4), (4, 3, 3, 1), {"strides": (2, 2)}),
    ((1, 1, 1, 4), (4, 3, 5, 2), {"strides": (1, 1), "pads": (1, 2, 0, 1)}),
    ((1, 3, 3, 2), (2, 3, 3, 2), {"strides": (6, 6), "dilations": (3, 1)}),
]
"""Shapes of image and filter, and properties: joined phases, filters shorter than the stride, uneven phases, …"""


@pytest.mark.parametrize(("image", "filter_", "properties"), TRANSPOSED)
def test_infinities_go_no_further_in_transposed_convolutions(
    image: tuple[int, ...], filter_: tuple[int, ...], properties: dict[str, tuple[int, ...]]
) -> None:
    rng = np.random.default_rng(4)
    operands = [rng.standard_normal(shape, np.float32) for shape in (image, filter_, filter_[-1:])]
    operands[0].flat[0], operands[0].flat[-1] = np.nan, np.inf
    assert_preserved(ConvTransposeOp, operands, **properties)


@pytest.mark.parametrize("stride", [8, 32, 64])
@pytest.mark.parametrize(("kernel", "dilation"), [(1, 1), (3, 1), (64, 1), (3, 3), (3, 8)])
def test_transposed_convolutions_become_few_operators(stride: int, kernel: int, dilation: int) -> None:
    shapes = (1, 4, 4, 2), (2, kernel, kernel, 16)
    operands = [np.ones(shape, np.float32) for shape in shapes]
    properties = {"strides": (stride, stride), "dilations": (dilation, dilation)}
    module, op = single_operator(ConvTransposeOp, operands, **properties)
    lower_operator(module, op)
    assert sum(1 for _ in module.walk()) < 120


@settings(max_examples=examples(80))
@given(data=st.data())
def test_transposed_convolutions_keep_their_meaning(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(data.draw(st.integers(low, high)) for _ in range(rank))

    group, inputs, outputs = data.draw(st.sampled_from([(1, 2, 3), (2, 4, 2), (3, 3, 1), (1, 2, 16)]))
    size, kernel, strides, extra = each(1, 4), each(1, 5), each(1, {1: 80, 2: 9, 3: 5}[rank]), each(0, 2)
    dilations = data.draw(st.sampled_from([(1,) * rank, each(1, 3)]))
    pads = (*each(0, 2), *each(0, 2))
    reach = [
        (size[axis] - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1 + extra[axis]
        for axis in range(rank)
    ]
    if any(reach[axis] <= pads[axis] + pads[axis + rank] for axis in range(rank)):
        return
    rng = np.random.default_rng(3)
    last = data.draw(st.booleans())
    shapes = (
        [(2, *size, inputs), (inputs, *kernel, outputs)] if last else [(2, inputs, *size), (inputs, outputs, *kernel)]
    )
    operands = [rng.standard_normal(shape, np.float32) for shape in [*shapes, (outputs * group,)]]
    assert_preserved(
        ConvTransposeOp,
        operands,
        strides=strides,
        pads=pads,
        dilations=dilations,
        output_padding=extra,
        group=group,
        layout="channels_last" if last else "channels_first",
    )


def test_every_lowering_of_these_families_is_tested() -> None:
    tested = {case[0] for case in CASES} | {LstmOp, GruOp, RnnOp, ConvTransposeOp}
    modules = {module.__name__ for module in (norm, red, recurrent)}
    assert {op for op in LOWERINGS.all() if getattr(op, "__module__", "") in modules} <= tested
