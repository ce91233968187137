"""Random graphs of `glow_high` for property tests: shared subexpressions, constants, state, several ranks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from hostile_names import hostile_name
from hypothesis import strategies as st
from xdsl.dialects.builtin import AnyFloat, LocationAttr, ModuleOp, NameLoc, NoneAttr, StringAttr, f32, i32
from xdsl.ir import Operation, SSAValue

from glow_mlir.constants.storage import Storage, constant_op, scalar_attribute
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high import data_movement as data
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high import elementwise_math as unary
from glow_mlir.dialects.glow_high.activations import EluOp, ReluOp, SigmoidOp, SoftplusOp, TanhOp
from glow_mlir.dialects.glow_high.base import HighOp, Operand
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.normalization import BatchNormalizationOp, HardmaxOp, LogSoftmaxOp, SoftmaxOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, MaxPoolOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp, ReduceMeanOp, ReduceMinOp, ReduceSumOp
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp, PlaceholderOp, SaveOp, SplatOp
from glow_mlir.dialects.shapes import Shape, rank_of, shape_of, size_of, tensor
from glow_mlir.ir.text import module_text
from glow_mlir.ir.value_names import value_name

Draw = Callable[[st.SearchStrategy[Any]], Any]

MAX_SIZE = 600
"""Elements of the largest tensor; larger results are thrown away again."""


class Graph:
    """A module with the function `main`, and arrays for its inputs and state."""

    def __init__(self, module: ModuleOp, inputs: dict[str, np.ndarray]) -> None:
        self.module = module
        self.inputs = inputs

    def __repr__(self) -> str:
        return f"Graph of\n{module_text(self.module)}"


@dataclass(repr=False)
class GraphBuilder:
    """A graph under construction: its tensors so far, all of one element type."""

    draw: Draw
    rng: np.random.Generator
    storage: Storage = field(default_factory=lambda: Storage(ModuleOp([])))
    function: FuncOp = field(default_factory=lambda: FuncOp.named("main", []))
    bindings: list[str] = field(default_factory=list[str])
    inputs: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    values: list[SSAValue] = field(default_factory=list[SSAValue])
    count: int = 0
    element: AnyFloat = f32

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type of arrays."""
        return numpy_dtype(self.element)

    def location(self) -> LocationAttr:
        """A new name, as if each op came from a node of a model."""
        self.count += 1
        return NameLoc(StringAttr(hostile_name(self.count)), NoneAttr())

    def add(self, op: Operation) -> SSAValue:
        """Append an op; its first result."""
        self.function.block.add_op(op)
        for result in op.results:
            result.name_hint = value_name(hostile_name(self.count))
        return op.results[0]

    def __call__(self, operator: type[HighOp], *operands: Operand, **properties: Any) -> SSAValue:
        """Append an operator; its first result."""
        return self.add(operator.make(*operands, location=self.location(), **properties))

    def shape(self, ranks: Sequence[int] = (1, 2, 3, 4)) -> Shape:
        """A small shape."""
        rank = self.draw(st.sampled_from(list(ranks)))
        return tuple(self.draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank)))

    def array(self, shape: Shape) -> np.ndarray:
        """Random elements between -2 and 2."""
        return self.rng.uniform(-2, 2, shape).astype(self.dtype)

    def constant(self, shape: Shape, least: float = 0.0) -> SSAValue:
        """A constant of the module, whose elements are at least so far from zero."""
        array = self.array(shape)
        array += np.where(array < 0, -least, least).astype(self.dtype)
        return self.add(constant_op(self.storage, array, "c", self.location()))

    def splat(self, value: float) -> SSAValue:
        """A number without axes."""
        return self(SplatOp, value=scalar_attribute(self.dtype.type(value), self.element), shape=())

    def known(self, array: np.ndarray) -> SSAValue:
        """A constant of the module with that value."""
        return self.add(constant_op(self.storage, array, "k", self.location()))

    def placeholder(self, shape: Shape, role: str) -> PlaceholderOp:
        """A new input, output or state."""
        name = f"{role}{hostile_name(len(self.bindings))}"
        op = PlaceholderOp.bound(name, tensor(shape, self.element), role, self.location())
        self.storage.add(op)
        self.bindings.append(name)
        if role != "output":
            self.inputs[name] = self.array(shape)
        return op

    def read(self, placeholder: PlaceholderOp) -> SSAValue:
        """Read a placeholder."""
        return self.add(GetOp.of(placeholder, self.location()))

    def save(self, value: SSAValue, placeholder: PlaceholderOp) -> None:
        """Write a placeholder."""
        self.function.block.add_op(SaveOp.to(value, placeholder.sym_name.data, self.location()))

    def pick(self, ranks: Sequence[int] = (0, 1, 2, 3, 4)) -> SSAValue:
        """One of the tensors so far, the last ones rather than the first; reshaped where none has such a rank."""
        fitting = [value for value in self.values if rank_of(value) in ranks]
        if fitting:
            return self.draw(st.sampled_from(fitting[-6:]))
        value = self.draw(st.sampled_from(self.values))
        return self(data.ReshapeOp, value, shape=(*[1] * (min(ranks) - 1), size_of(value)))

    def broadcasting(self, value: SSAValue) -> SSAValue:
        """Something that broadcasts with `value`: another tensor, a constant or a splat."""
        shape = shape_of(value)
        others = [other for other in self.values if broadcasts(shape_of(other), shape)]
        kind = self.draw(st.sampled_from(["tensor", "tensor", "constant", "splat"]))
        if kind == "tensor" and others:
            return self.draw(st.sampled_from(others))
        if kind == "splat":
            return self.splat(self.draw(st.sampled_from([0.0, 0.5, 1.0, -1.5])))
        kept = [size if self.draw(st.booleans()) else 1 for size in shape]
        return self.constant(tuple(kept[self.draw(st.integers(0, len(kept))) :]))


def broadcasts(one: Shape, other: Shape) -> bool:
    """Whether two shapes broadcast to one."""
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(one), reversed(other), strict=False))


UNARY = (unary.NegOp, unary.AbsOp, TanhOp, unary.FloorOp, ReluOp, SigmoidOp, SoftplusOp, EluOp)
BINARY = (binary.AddOp, binary.SubOp, binary.MulOp, binary.MaxOp, binary.MinOp)


def step_unary(g: GraphBuilder) -> SSAValue:
    """A function of each element."""
    return g(g.draw(st.sampled_from(UNARY)), g.pick())


def step_binary(g: GraphBuilder) -> SSAValue:
    """A function of two elements, with broadcasting, in either order."""
    value = g.pick()
    operands = [value, g.broadcasting(value)]
    if g.draw(st.booleans()):
        operands.reverse()
    return g(g.draw(st.sampled_from(BINARY)), *operands)


def step_where(g: GraphBuilder) -> SSAValue:
    """A choice by a comparison: truth values on the way."""
    value = g.pick()
    other = g.broadcasting(value)
    return g(binary.WhereOp, g(binary.GreaterOp, value, other), value, other)


def step_integers(g: GraphBuilder) -> SSAValue:
    """Integers on the way: small enough for every operation."""
    scaled = g(binary.MulOp, g(TanhOp, g.pick()), g.splat(20.0))
    integer = g(unary.CastOp, scaled, to=i32)
    return g(unary.CastOp, g(binary.AddOp, integer, g(unary.NegOp, integer)), to=g.element)


def step_matmul(g: GraphBuilder) -> SSAValue:
    """A product with a constant, or with the transposed tensor."""
    value = g.pick((2, 3))
    if g.draw(st.booleans()):
        return g(MatMulOp, value, g.constant((shape_of(value)[-1], g.draw(st.integers(1, 4)))))
    return g(MatMulOp, value, value, transpose_right=True)


def step_conv(g: GraphBuilder) -> SSAValue:
    """A convolution with a constant filter, over one or two axes."""
    value = g.pick((3, 4))
    shape = shape_of(value)
    spatial, channels = len(shape) - 2, shape[-1]
    outputs = g.draw(st.integers(1, 4))
    kernel = [g.draw(st.integers(1, 2)) for _ in range(spatial)]
    bias = g.constant((outputs,)) if g.draw(st.booleans()) else None
    return g(ConvOp, value, g.constant((outputs, *kernel, channels)), bias, pads=[1] * (2 * spatial))


def step_linear_conv(g: GraphBuilder) -> SSAValue:
    """A convolution, and sums and products with a constant a channel behind it."""
    value = step_conv(g)
    for _ in range(g.draw(st.integers(1, 2))):
        operands = [value, g.constant((shape_of(value)[-1],))]
        if g.draw(st.booleans()):
            operands.reverse()
        value = g(g.draw(st.sampled_from([binary.AddOp, binary.SubOp, binary.MulOp])), *operands)
    return value


def step_pool(g: GraphBuilder) -> SSAValue:
    """A pool over one or two axes."""
    value = g.pick((3, 4))
    spatial = rank_of(value) - 2
    operator = g.draw(st.sampled_from([MaxPoolOp, AvgPoolOp]))
    return g(operator, value, kernel_shape=[2] * spatial, strides=[1] * spatial, pads=[1] * (2 * spatial))


def step_transpose(g: GraphBuilder) -> SSAValue:
    """Any permutation of the axes."""
    value = g.pick((1, 2, 3, 4))
    return g(data.TransposeOp, value, permutation=g.draw(st.permutations(range(rank_of(value)))))


def step_sandwich(g: GraphBuilder) -> SSAValue:
    """Operators between a transpose and its inverse."""
    value = g.pick((2, 3, 4))
    permutation = g.draw(st.permutations(range(rank_of(value))))
    value = g(data.TransposeOp, value, permutation=permutation)
    for _ in range(g.draw(st.integers(1, 2))):
        operands = [value, g.constant(shape_of(value)[g.draw(st.integers(0, rank_of(value))) :])]
        value = g(g.draw(st.sampled_from(BINARY)), *operands)
    return g(data.TransposeOp, value, permutation=[int(axis) for axis in np.argsort(permutation)])


def step_reshape(g: GraphBuilder) -> SSAValue:
    """The same elements under a shape with merged or swapped sizes."""
    value = g.pick()
    shape = g.draw(st.permutations(shape_of(value)))
    cut = g.draw(st.integers(0, len(shape)))
    return g(data.ReshapeOp, value, shape=[math.prod(shape[:cut]), *shape[cut:]])


def step_concat(g: GraphBuilder) -> SSAValue:
    """A tensor behind itself, another of its shape, or a constant."""
    value = g.pick((1, 2, 3, 4))
    same = [other for other in g.values if shape_of(other) == shape_of(value)]
    other = g.constant(shape_of(value)) if g.draw(st.booleans()) else g.draw(st.sampled_from(same or [value]))
    return g(data.ConcatOp, [value, other], axis=g.draw(st.integers(0, rank_of(value) - 1)))


def step_slice(g: GraphBuilder) -> SSAValue:
    """All but the first elements along one axis."""
    value = g.pick((1, 2, 3, 4))
    shape = shape_of(value)
    starts = [g.draw(st.integers(0, size - 1)) for size in shape]
    return g(data.SliceOp, value, starts=starts, ends=shape)


def step_pad(g: GraphBuilder) -> SSAValue:
    """Zeros around a tensor."""
    value = g.pick((1, 2, 3))
    return g(data.PadOp, value, g.splat(0.0), pads=[1] * (2 * rank_of(value)))


def step_padded_summands(g: GraphBuilder) -> SSAValue:
    """A sum, in any order, of a tensor, other values of its shape, and slices of it in their places among zeros."""
    value = g.pick((1, 2, 3))
    axis: int = g.draw(st.integers(0, rank_of(value) - 1))
    size = shape_of(value)[axis]
    bounds: list[int] = sorted(g.draw(st.lists(st.integers(0, size), min_size=2, max_size=4)))
    terms = [value, g(unary.AbsOp, value), g(TanhOp, value)][: g.draw(st.integers(1, 3))]
    for start, end in itertools.pairwise(bounds):
        if start == end:
            continue
        ends = [end if number == axis else other for number, other in enumerate(shape_of(value))]
        starts = [start if number == axis else 0 for number in range(rank_of(value))]
        source = g(data.SliceOp, value, starts=starts, ends=ends)
        pads = [0] * (2 * rank_of(value))
        pads[axis], pads[rank_of(value) + axis] = start, size - end
        terms.append(g(data.PadOp, source, g.splat(0.0) if g.draw(st.booleans()) else None, pads=pads))
    return reduce(lambda one, other: g(binary.AddOp, one, other), g.draw(st.permutations(terms)))


def step_expand(g: GraphBuilder) -> SSAValue:
    """A tensor repeated along a new axis."""
    value = g.pick((0, 1, 2, 3))
    return g(data.ExpandOp, value, shape=(g.draw(st.integers(1, 3)), *shape_of(value)))


def step_reduce(g: GraphBuilder) -> SSAValue:
    """A reduction along one axis."""
    value = g.pick((1, 2, 3, 4))
    operator = g.draw(st.sampled_from([ReduceSumOp, ReduceMeanOp, ReduceMaxOp]))
    return g(operator, value, axes=[g.draw(st.integers(0, rank_of(value) - 1))], keepdims=g.draw(st.booleans()))


def step_normalize(g: GraphBuilder) -> SSAValue:
    """A distribution along one axis."""
    value = g.pick((1, 2, 3, 4))
    operator = g.draw(st.sampled_from([SoftmaxOp, LogSoftmaxOp, HardmaxOp]))
    return g(operator, value, axis=g.draw(st.integers(0, rank_of(value) - 1)))


def step_batch_norm(g: GraphBuilder) -> SSAValue:
    """A batch normalization with constants, over the last or the second axis."""
    value = g.pick((2, 3, 4))
    axis: int = g.draw(st.sampled_from([1, rank_of(value) - 1]))
    channels = (shape_of(value)[axis],)
    scale, offset, mean = (g.constant(channels) for _ in range(3))
    variance = g(unary.AbsOp, g.constant(channels))
    return g(BatchNormalizationOp, value, scale, offset, mean, variance, axis=axis)


def step_arithmetic(g: GraphBuilder) -> SSAValue:
    """A chain of sums, products, quotients and negations with constants, one of which is sometimes read besides."""
    value = g.pick((1, 2, 3, 4))
    for _ in range(g.draw(st.integers(2, 4))):
        operator = g.draw(st.sampled_from([binary.AddOp, binary.SubOp, binary.MulOp, binary.DivOp, unary.NegOp]))
        if operator is unary.NegOp:
            value = g(operator, value)
            continue
        kept = [size if g.draw(st.booleans()) else 1 for size in shape_of(value)]
        operands = [value, g.constant(tuple(kept[g.draw(st.integers(0, len(kept))) :]), least=0.5)]
        if operator is not binary.DivOp and g.draw(st.booleans()):
            operands.reverse()
        value = g(operator, *operands)
        if not g.draw(st.integers(0, 4)):
            g.values.append(value)
    return value


def step_linear_matmul(g: GraphBuilder) -> SSAValue:
    """A product with constant weights between sums and products with constants a channel."""

    def around(value: SSAValue) -> SSAValue:
        operator = g.draw(st.sampled_from([binary.AddOp, binary.SubOp, binary.MulOp]))
        return g(operator, value, g.constant((shape_of(value)[-1],)))

    value = around(g.pick((2, 3)))
    bias = g.constant((3,)) if g.draw(st.booleans()) else None
    return around(g(MatMulOp, value, g.constant((shape_of(value)[-1], 3)), bias))


def step_activation(g: GraphBuilder) -> SSAValue:
    """An activation function in arithmetic, whose parts are sometimes read besides."""

    x = g.pick()
    kind = g.draw(st.sampled_from(["sigmoid", "swish", "leaky", "gelu"]))
    if kind == "swish":
        return g(binary.MulOp, g(SigmoidOp, x), x)
    if kind == "leaky":
        return g(binary.MaxOp, x, g(binary.MulOp, g.splat(0.25), x))
    if kind == "gelu":
        inner = g(binary.AddOp, g(unary.ErfOp, g(binary.DivOp, x, g.splat(math.sqrt(2)))), g.splat(1.0))
        return g(binary.MulOp, g(binary.MulOp, x, inner), g.splat(0.5))
    bounded = g(TanhOp, x)
    power = g(unary.ExpOp, g(unary.NegOp, bounded))
    total = g(binary.AddOp, g.splat(1.0), power)
    if g.draw(st.booleans()):
        g.values.append(power)
    return g(unary.ReciprocalOp, total)


def step_exponentials(g: GraphBuilder) -> SSAValue:
    """Exponentials over their sum, or the logarithm of that."""
    x = g.pick((1, 2, 3, 4))
    axes = [g.draw(st.integers(0, rank_of(x) - 1))]
    shifted = g(binary.SubOp, x, g(ReduceMaxOp, x, axes=axes))
    power = g(unary.ExpOp, shifted)
    total = g(ReduceSumOp, power, axes=axes)
    if g.draw(st.booleans()):
        return g(binary.SubOp, shifted, g(unary.LogOp, total))
    return g(binary.DivOp, power, total)


def step_attention(g: GraphBuilder) -> SSAValue:
    """Attention in parts: scaled or not, masked or causal or neither."""
    query = g.pick((2, 3))
    rows, depth = shape_of(query)[-2:]
    keys = g.draw(st.integers(1, 4))
    scores = g(MatMulOp, query, g.constant((keys, depth)), transpose_right=True)
    if g.draw(st.booleans()):
        scores = g(binary.MulOp, scores, g.splat(0.5))
    mask = g.draw(st.sampled_from(["none", "causal", "row", "choice"]))
    seen = np.tri(rows, keys, g.draw(st.integers(0, 2)), dtype=bool)
    if mask == "causal":
        scores = g(binary.AddOp, scores, g.known(np.where(seen, 0, -np.inf).astype(g.dtype)))
    elif mask == "row":
        scores = g(binary.AddOp, g.constant((keys,)), scores)
    elif mask == "choice":
        scores = g(binary.WhereOp, g.known(seen), scores, g.splat(-1e38))
    return g(MatMulOp, g(SoftmaxOp, scores), g.constant((keys, 3)))


def step_standardize(g: GraphBuilder) -> SSAValue:
    """Differences from the mean over the root of their mean square, or values over the root of theirs."""
    x = g.pick((1, 2, 3, 4))
    axes = list(range(g.draw(st.integers(0, rank_of(x) - 1)), rank_of(x)))
    centred = g(binary.SubOp, x, g(ReduceMeanOp, x, axes=axes)) if g.draw(st.booleans()) else x
    variance = g(ReduceMeanOp, g(binary.MulOp, centred, centred), axes=axes)
    deviation = g(unary.SqrtOp, g(binary.AddOp, variance, g.splat(0.5)))
    value = g(binary.DivOp, centred, deviation)
    for operator in (binary.MulOp, binary.AddOp):
        value = g(operator, value, g.constant(shape_of(x)[axes[0] :])) if g.draw(st.booleans()) else value
    return value


def step_range(g: GraphBuilder) -> SSAValue:
    """Values less the smallest one, over the largest one and a half."""
    x = g.pick()
    axes = list(range(rank_of(x)))
    least, most = (g(operator, x, axes=axes, keepdims=False) for operator in (ReduceMinOp, ReduceMaxOp))
    return g(binary.DivOp, g(binary.SubOp, x, least), g(binary.AddOp, g(unary.AbsOp, most), g.splat(0.5)))


def step_power(g: GraphBuilder) -> SSAValue:
    """A power of something positive."""
    base = g(binary.AddOp, g(unary.AbsOp, g(TanhOp, g.pick())), g.splat(0.5))
    exponent: float = g.draw(st.sampled_from([-2.0, -1.0, -0.75, -0.5, 0.25, 0.5, 0.75, 1.3, 1.5, 2.0, 3.0, 4.0]))
    return g(binary.PowOp, base, g.splat(exponent))


def step_projections(g: GraphBuilder) -> SSAValue:
    """Products of one matrix with several constant ones, with and without bias."""
    value = g.pick((2, 3))
    products: list[SSAValue] = []
    for _ in range(g.draw(st.integers(2, 3))):
        bias = g.constant((2,)) if g.draw(st.booleans()) else None
        products.append(g(MatMulOp, value, g.constant((shape_of(value)[-1], 2)), bias))
    g.values += products[1:]
    return products[0]


def step_rows(g: GraphBuilder) -> SSAValue:
    """Rows of a matrix, or products of such, times one constant matrix."""
    matrix = g.pick((2,))
    rows, columns = shape_of(matrix)
    weights = g.constant((columns, columns))
    bias = g.constant((columns,)) if g.draw(st.booleans()) else None
    products: list[SSAValue] = []
    for _ in range(g.draw(st.integers(2, 4))):
        row = g.draw(st.integers(0, rows - 1))
        part = g(data.SliceOp, matrix, starts=[row, 0], ends=[row + 1, columns])
        if products and g.draw(st.booleans()):
            part = g(binary.AddOp, part, g.draw(st.sampled_from(products)))
        if g.draw(st.booleans()):
            part = g(TanhOp, part)
        products.append(g(MatMulOp, part, weights, bias))
    g.values += products[1:]
    return products[0]


def step_small_conv(g: GraphBuilder) -> SSAValue:
    """A convolution whose window is the image, or exceeds it on all sides."""
    value = g.pick((3, 4))
    *spatial, channels = shape_of(value)[1:]
    reach = g.draw(st.integers(0, 2))
    dilation = g.draw(st.integers(1, 2)) if reach else 1
    kernel = [2 * reach + 1 for _ in spatial] if reach else spatial
    properties = {"pads": [reach * dilation] * (2 * len(spatial)), "dilations": [dilation] * len(spatial)}
    bias = g.constant((2,)) if g.draw(st.booleans()) else None
    return g(ConvOp, value, g.constant((2, *kernel, channels)), bias, **properties)


def step_conv_of_volumes(g: GraphBuilder) -> SSAValue:
    """A convolution along three axes, of some of which the filter has one tap, or one wide enough to be flattened."""
    channels, size = g.draw(st.sampled_from([(2, 2), (16, 32)])), g.draw(st.integers(1, 3))
    depth, outputs = channels
    value = g.constant((g.draw(st.integers(1, 2)), size, 3, 2, depth))
    kernel = g.draw(st.sampled_from([(1, 3, 3), (2, 3, 3), (3, 1, 1), (1, 1, 1), (1, 2, 1), (3, 3, 3)]))
    reach = [length // 2 for length in kernel]
    strides = [g.draw(st.integers(1, 2)), 1, 1]
    return g(ConvOp, value, g.constant((outputs, *kernel, depth)), None, pads=[*reach, *reach], strides=strides)


def step_twice(g: GraphBuilder) -> SSAValue:
    """The same sum or maximum twice, with exchanged operands, or with two constants of one value."""
    value = g.pick()
    operator = g.draw(st.sampled_from([binary.AddOp, binary.MaxOp, binary.MulOp]))
    array = g.array(shape_of(value)) if g.draw(st.booleans()) else np.ones(shape_of(value), g.dtype)
    others = [g.add(constant_op(g.storage, array, "c", g.location())) for _ in range(2)]
    g.values.append(g(operator, value, others[0]))
    return g(operator, others[1], value)


Step = Callable[[GraphBuilder], SSAValue]

STEPS: tuple[Step, ...] = (
    step_unary,
    step_binary,
    step_binary,
    step_where,
    step_integers,
    step_matmul,
    step_conv,
    step_linear_conv,
    step_pool,
    step_transpose,
    step_sandwich,
    step_reshape,
    step_concat,
    step_slice,
    step_pad,
    step_expand,
    step_reduce,
    step_normalize,
    step_batch_norm,
    step_arithmetic,
    step_linear_matmul,
    step_activation,
    step_exponentials,
    step_attention,
    step_standardize,
    step_power,
    step_range,
    step_projections,
    step_small_conv,
    step_twice,
)
"""What a graph is made of; what stands here twice is drawn twice as often."""


JUMPING: tuple[Step, ...] = (step_where, step_integers)
"""Steps where a small change of an operand may change the result a lot."""


def step_smooth(g: GraphBuilder) -> SSAValue:
    """A function of each element, or of two, without jumps."""
    if g.draw(st.booleans()):
        return step_binary(g)
    return g(g.draw(st.sampled_from([o for o in UNARY if o is not unary.FloorOp])), g.pick())


@st.composite
def graphs(
    draw: Draw,
    favourites: Sequence[Step] = (),
    max_steps: int = 10,
    steps: Sequence[Step] = STEPS,
    element: AnyFloat = f32,
    has_state: bool | None = None,
) -> Graph:
    """
    A graph of 5 to about 30 operators, with an output for each result that nothing else uses, sometimes with state.

    It is made of `steps`; every other one is one of `favourites`, if there are any.
    """
    g = GraphBuilder(draw, np.random.default_rng(draw(st.integers(0, 1 << 16))), element=element)
    g.values += [g.read(g.placeholder(g.shape(), "input")) for _ in range(draw(st.integers(1, 2)))]
    has_state = draw(st.booleans()) if has_state is None else has_state
    state = g.placeholder(g.shape(), "state") if has_state else None
    if state is not None:
        g.values.append(g.read(state))
    for number in range(draw(st.integers(4, max_steps))):
        value = draw(st.sampled_from(favourites if favourites and number % 2 else steps))(g)
        if size_of(value) <= MAX_SIZE and rank_of(value) <= 4:
            g.values.append(value)
        if state is not None and draw(st.integers(0, 3)) == 0:
            change_state(g, state)
    unused = [value for value in g.values if not value.uses]
    for value in [*unused, *draw(st.lists(st.sampled_from(g.values), min_size=1, max_size=2))]:
        g.save(value, g.placeholder(shape_of(value), "output"))
    g.function.properties.update(FuncOp.named("main", g.bindings).properties)
    g.storage.module.body.block.add_op(g.function)
    g.storage.module.verify()
    return Graph(g.storage.module, g.inputs)


def change_state(g: GraphBuilder, state: PlaceholderOp) -> None:
    """Write a tensor to the state, often one computed from it, and sometimes read it again."""
    shape = state.tensor_type.get_shape()
    value = g.draw(st.sampled_from([value for value in g.values if shape_of(value) == shape]))
    if g.draw(st.booleans()):
        value = g(binary.AddOp, value, g.constant(shape))
        g.values.append(value)
    g.save(value, state)
    if g.draw(st.booleans()):
        g.values.append(g.read(state))
