"""Quantization-aware training: forward passes of training round what the pass `quantize` rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import IntegerType, ModuleOp, f32, i32
from xdsl.ir import Attribute, Operation, SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    BitwiseAndOp,
    DivOp,
    GreaterOp,
    MaxOp,
    MulOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import AbsOp, BitCastOp
from glow_mlir.dialects.glow_high.normalization import BatchNormalizationOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, QuantizeOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp
from glow_mlir.dialects.shapes import element_of, rank_of, size_of
from glow_mlir.differentiation.contributions import reshaped
from glow_mlir.errors import OptionError
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.locations import location_names
from glow_mlir.ir.traversal import own_operations
from glow_mlir.options.declaration import parameters
from glow_mlir.options.quantization import BIASES, Quantization
from glow_mlir.quantization.profile import read_profile
from glow_mlir.quantization.schemas import NO_SCALE, POWER_OF_TWO
from glow_mlir.support.dataclass import dataclass
from glow_mlir.transforms.quantization.fold_quantization import Product, channel_line
from glow_mlir.transforms.quantization.quantize import QuantizePass

Nodes = frozenset[str]
"""The nodes that an operator comes from."""

_FRACTION = 23
"""The number of mantissa bits of an f32."""


@dataclass(frozen=True)
class Rounded:
    """A quantized value: the nodes that compute it, or its input; its number of elements; and its quantized type."""

    nodes: Nodes
    is_input: bool
    size: int
    quantized_type: Attribute

    def fits(self, op: Operation) -> SSAValue | None:
        """The result of an operator of the imported graph that may be this value."""
        if isinstance(op, GetOp) != self.is_input or not self.nodes & nodes_of(op):
            return None
        results = (value for value in op.results if element_of(value) == f32 and size_of(value) == self.size)
        return next(results, None)


@dataclass(frozen=True)
class RoundedProduct:
    """A product with quantized weights: its nodes, and the scale of the quantized values that multiply the weights."""

    nodes: Nodes
    left_scale: float


@dataclass(frozen=True)
class Rounding:
    """
    The rounding done by the pass `quantize` in a graph, by nodes of the model.

    Training uses the imported graph, while `quantize` rounds in an optimized one, in which locations name the nodes.
    """

    options: Quantization
    values: Sequence[Rounded]
    products: Sequence[RoundedProduct]
    readers: Nodes
    """The nodes that compute with quantized values."""

    @staticmethod
    def planned(module: ModuleOp, options: Quantization) -> Rounding:
        """
        The rounding that `quantize` would do in a graph.

        Raises `OptionError` for options for which training cannot predict it, and the errors of the pass.
        """
        _check(options)
        values: list[Rounded] = []
        products: list[RoundedProduct] = []
        readers: set[str] = set()
        for quantizing in QuantizePass(**parameters(options)).quantizing(module):
            for value in quantizing.plan.values:
                op = value.owner
                assert isinstance(op, Operation)
                is_input = isinstance(op, GetOp)
                values.append(Rounded(nodes_of(op), is_input, size_of(value), quantizing.uniform(value).type()))
            for op in quantizing.plan.operators:
                readers |= nodes_of(op)
            for op in quantizing.products():
                products.append(RoundedProduct(nodes_of(op), quantizing.uniform(op.operands[0]).scale))
        return Rounding(options, values, products, frozenset(readers))

    def round(self, function: FuncOp, storage: Storage) -> None:
        """
        Add the rounding to a function of the imported graph.

        Raises `OptionError` if it has no counterpart of something that `quantize` rounds.
        """
        ops = [(op, nodes_of(op)) for op in own_operations(function)]
        for product in self.products:
            self._check_factors(product.nodes, ops)
            found = [op for op, nodes in ops if nodes & product.nodes and isinstance(op, Product)]
            if not found:
                raise _unknown("the weights", product.nodes)
            for op in found:
                self._round_weights(op, product.left_scale, storage)
        for rounded in self.values:
            fitting = [value for op, _ in ops if (value := rounded.fits(op)) is not None]
            if not fitting:
                raise _unknown("a result", rounded.nodes)
            self._round_value(fitting[-1], rounded.quantized_type, storage)

    def _check_factors(self, product: Nodes, ops: Sequence[tuple[Operation, Nodes]]) -> None:
        """Raise `OptionError` if weights absorb factors of channels without scales of their own."""
        if self.options.per_channel and self.options.schema != POWER_OF_TWO:
            return
        for op, nodes in ops:
            if nodes & product and isinstance(op, BatchNormalizationOp | MulOp | DivOp):
                reason = f"weights take in the factors of {_names_of(nodes)}, and have other quantized values then"
                raise OptionError(reason, hint=f"per_channel=True, and a schema other than {POWER_OF_TWO}")

    def _round_value(self, value: SSAValue, quantized_type: Attribute, storage: Storage) -> None:
        """Let users that would read the quantized value read its dequantized numbers."""
        op = value.owner
        assert isinstance(op, Operation)
        assert op.next_op is not None
        is_all = not isinstance(op, GetOp) and bool(nodes_of(op) & self.readers)
        readers = [use for use in value.uses if is_all or nodes_of(use.operation) & self.readers]
        emit = Emitter(op.next_op, storage, location=op.location)
        result = emit(DequantizeOp, emit(QuantizeOp, value, to=quantized_type))
        for use in readers:
            use.operation.operands[use.index] = result

    def _round_weights(self, op: Product, left_scale: float, storage: Storage) -> None:
        """Let a product read weights and bias as rounded by `quantize_weights` and `quantize_bias`."""
        emit, weights, bits = Emitter(op, storage), op.operands[1], self.options.weight_bits
        line = channel_line(op) if self.options.per_channel else (1,) * rank_of(weights)
        scale = self._scale(weights, [axis for axis, size in enumerate(line) if size == 1], bits, emit)
        usable = emit.splat(float(np.finfo(np.float32).tiny), f32)
        scale = emit(WhereOp, emit(GreaterOp, scale, usable), scale, emit.splat(NO_SCALE, f32))
        op.operands[1] = _rounded(weights, scale, bits, emit)
        if op.bias is not None:
            bits = BIASES[self.options.bias]
            products = reshaped(emit(MulOp, scale, emit.splat(left_scale, f32)), (math.prod(line),), emit)
            least = self._scale(op.bias, range(rank_of(op.bias)), bits, emit)
            op.operands[2] = _rounded(op.bias, emit(MaxOp, products, least), bits, emit)

    def _scale(self, value: SSAValue, axes: Sequence[int], bits: int, emit: Emitter) -> SSAValue:
        """The scale, along axes, that maps the largest magnitude to the largest quantized value of `bits` bits."""
        largest = emit(ReduceMaxOp, emit(AbsOp, value), axes=axes, keepdims=True)
        scale = emit(DivOp, largest, emit.splat((1 << bits - 1) - 1, f32))
        return _next_power_of_two(scale, emit) if self.options.schema == POWER_OF_TWO else scale


def _rounded(value: SSAValue, scale: SSAValue, bits: int, emit: Emitter) -> SSAValue:
    """The dequantized numbers of a value, for a scale computed by the graph."""
    return emit(DequantizeOp, emit(QuantizeOp, value, scale, to=IntegerType(max(bits, 8))), scale)


def nodes_of(op: Operation) -> Nodes:
    """The nodes of an operator, or the input that it reads."""
    return frozenset(location_names(op.location))


def _next_power_of_two(scale: SSAValue, emit: Emitter) -> SSAValue:
    """The least power of two not smaller than an f32 scale, by its bits."""
    bits = emit(AddOp, emit(BitCastOp, scale, to=i32), emit.splat((1 << _FRACTION) - 1, i32))
    return emit(BitCastOp, emit(BitwiseAndOp, bits, emit.splat(-1 << _FRACTION, i32)), to=f32)


def _check(options: Quantization) -> None:
    """Raise `OptionError` for actions of `quantize` that training does not reproduce."""
    if options.bias_correction:
        reason = "bias correction takes out what training has learned to live with"
        raise OptionError(reason, hint="Quantization(…, bias_correction=False), also where the model is quantized")
    if read_profile(Path(options.profile)).is_equalized:
        reason = f"'{options.profile}' is the profile of a model whose channels are equalized"
        raise OptionError(reason, hint="glow-profile without --equalize-channels")


def _unknown(what: str, nodes: Nodes) -> OptionError:
    hint = f"keep=['{min(nodes, default='')}'] leaves it in floats"
    return OptionError(f"{what} of {_names_of(nodes)} cannot be rounded in training", hint=hint)


def _names_of(nodes: Nodes) -> str:
    return ", ".join(f"'{node}'" for node in sorted(nodes))
