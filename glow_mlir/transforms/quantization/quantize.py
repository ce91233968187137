"""`quantize`: quantize values by their profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.constants.deferred import Stored
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.interfaces import LinearForm
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, QuantizeOp
from glow_mlir.dialects.quant import parameters_of
from glow_mlir.dialects.shapes import element_of, size_along
from glow_mlir.errors import OptionError
from glow_mlir.ir import statistics
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.locations import location_names
from glow_mlir.ir.rewriting import erase_dead, high_functions
from glow_mlir.ir.traversal import own_operations
from glow_mlir.options.declaration import given_of, takes
from glow_mlir.options.quantization import BIASES, Quantization
from glow_mlir.quantization.calibration import calibrated
from glow_mlir.quantization.observed import graph_digest, observed_values, weights_digest
from glow_mlir.quantization.profile import Profile, read_profile
from glow_mlir.quantization.schemas import Uniform
from glow_mlir.quantization.weights import quantize_bias, quantize_weights
from glow_mlir.rewriting.kept_operators import kept_operators
from glow_mlir.rewriting.linear_operators import linear_operator
from glow_mlir.rewriting.quantization_plan import Plan, floats_of
from glow_mlir.support.dataclass import dataclass
from glow_mlir.transforms.quantization.equalize_channels import EqualizeChannelsPass
from glow_mlir.transforms.quantization.fold_quantization import Product, channel_line


@dataclass(frozen=True)
@takes(Quantization)
class QuantizePass(ModulePass):
    """
    Quantize profiled values, and dequantize them right behind (Glow's quantization procedure, paper §4.5).

    Each value between operators with a quantized form becomes `dequantize(quantize(value))`, weights become
    `dequantize(constant)`; the graph thus keeps its meaning until `fold-quantization` moves operators onto quantized
    values. Options are those of `Quantization`; `quantization_plan.py` selects the values.
    """

    name = "quantize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self._profile.is_equalized:
            EqualizeChannelsPass().apply(ctx, op)
        # Only here: profiles record the weights after equalization, which leaves plans unchanged.
        self._profile.check_weights(weights_digest(op), Path(self.options.profile))
        found = self.quantizing(op)
        if self.options.assert_all:
            _check_all([quantizing.plan for quantizing in found])
        for quantizing in found:
            quantizing.run()

    def quantizing(self, module: ModuleOp) -> list[Quantizing]:
        """
        The rewriting of each function; raises `GlowError` as `plans` does, and for `calibrations` of unknown values.
        """
        plans = self.plans(module)
        calibrations = _named_calibrations(observed_values(module), self.options.calibrations)
        return [Quantizing(plan, self.options, calibrations) for plan in plans]

    def plans(self, module: ModuleOp) -> list[Plan]:
        """
        The quantization plan of each function.

        Raises `GlowError` for a profile that cannot be read or belongs to another graph, and for unknown nodes to keep.
        """
        profile = self._profile
        profile.check_graph(graph_digest(module), Path(self.options.profile))
        ops = (inner for function in high_functions(module) for inner in own_operations(function))
        kept = kept_operators(ops, self.options.keep, "to keep in floats")
        observed = observed_values(module)
        known = {value: profile.histograms[name] for name, value in observed.items() if name in profile.histograms}
        storage = Storage(module)
        return [Plan(function, storage, known, kept) for function in high_functions(module)]

    @cached_property
    def _profile(self) -> Profile:
        """The content of the profile file."""
        return read_profile(Path(self.options.profile))

    @cached_property
    def options(self) -> Quantization:
        """The options as one validated value."""
        given = given_of(self, Quantization)
        if not given.get("profile"):
            raise OptionError("the pass 'quantize' needs a profile", hint='quantize{profile="model.profile.json"}')
        return Quantization(**given)


def _named_calibrations(observed: Mapping[str, SSAValue], chosen: Mapping[str, str]) -> dict[SSAValue, str]:
    """
    Value → its own calibration, from the last matching pattern; raises `OptionError` for a pattern without a match.
    """
    found: dict[SSAValue, str] = {}
    for pattern, calibration in chosen.items():
        fitting = [value for name, value in observed.items() if fnmatchcase(name, pattern)]
        if not fitting:
            raise OptionError(f"no value to calibrate is called '{pattern}'", hint="names as the profile has them")
        found |= dict.fromkeys(fitting, calibration)
    return found


def _check_all(plans: list[Plan]) -> None:
    """Raise `OptionError` with a list of the operators that stay in floats without being kept."""
    left = [op for plan in plans for op in floats_of(plan) if op not in plan.kept]
    if left:
        listed = ", ".join(f"{op.name.partition('.')[2]} ('{'+'.join(location_names(op.location))}')" for op in left)
        plural, what = ("operators", "them") if len(left) > 1 else ("operator", "it")
        hint = f"keep {what} in floats by name or kind"
        raise OptionError(f"{len(left)} {plural} cannot be quantized: {listed}", hint=hint)


@dataclass
class Quantizing:
    """The rewriting of one function by its plan."""

    plan: Plan
    options: Quantization
    calibrations: Mapping[SSAValue, str]
    """Value → its calibration, if it differs from the options."""
    _types: dict[SSAValue, Uniform] = field(default_factory=dict[SSAValue, Uniform], init=False)
    """First value of a group with one scale → the group's quantization parameters."""

    def run(self) -> None:
        """Quantize everything in the plan."""
        for value in self.plan.values:
            self._quantize(value)
            statistics.count("values quantized")
        for op in self.products():
            self._quantize_weights(op)
            statistics.count("weights quantized")
        erase_dead(self.plan.function)

    def products(self) -> list[Product]:
        """The products whose weights are quantized."""
        known = self.plan.storage.is_constant
        return [op for op in self.plan.operators if isinstance(op, Product) and known(op.operands[1])]

    def uniform(self, value: SSAValue) -> Uniform:
        """The quantization parameters shared by the value's group."""
        group = self.plan.group(value)
        if group[0] not in self._types:
            options, histogram = self.options, self.plan.histogram(group)
            own = (self.calibrations[member] for member in group if member in self.calibrations)
            calibration = next(own, options.calibration)
            self._types[group[0]] = calibrated(histogram, calibration, options.schema, options.bits)
        return self._types[group[0]]

    def _quantize(self, value: SSAValue) -> None:
        """Insert a quantization and a dequantization behind a value, and redirect its quantized uses."""
        producer = value.owner
        assert isinstance(producer, Operation)
        assert producer.next_op is not None
        emit = Emitter(producer.next_op, self.plan.storage, location=producer.location)
        readers = [use for use in value.uses if self.plan.reads_quantized(value, use)]
        result = emit(DequantizeOp, emit(QuantizeOp, value, to=self.uniform(value).type()))
        result.name_hint = value.name_hint
        for use in readers:
            use.operation.operands[use.index] = result

    def _quantize_weights(self, op: Product) -> None:
        """Replace the constant weights, and a constant bias, of a product by dequantized constants."""
        storage, options = self.plan.storage, self.options
        emit = Emitter(op, storage)
        weights = storage.value_of(op.operands[1])
        assert weights is not None
        hint = op.operands[1].name_hint or "weights"
        line = channel_line(op) if options.per_channel else ()
        found = quantize_weights(weights, line, options.schema, options.weight_bits)
        quantized, scales = emit.constant(found.quantized, hint), emit.constant(found.scales, f"{hint}_scale")
        op.operands[1] = emit(DequantizeOp, quantized, scales)
        bias = None if op.bias is None else storage.value_of(op.bias)
        if bias is not None:
            if options.bias_correction:
                bias = bias - self._mean_error(op, found.numbers().astype(np.float64) - weights)
            products = found.scales.reshape(-1).astype(np.float64) * _scale_of(op.operands[0])
            rounded = quantize_bias(bias, products, options.schema, BIASES[options.bias]).numbers()
            op.operands[2] = emit.constant(rounded, op.operands[2].name_hint or "bias")

    def _mean_error(self, op: Product, errors: np.ndarray) -> np.ndarray | float:
        """
        The mean error per output channel caused by errors of the weights, in f64.

        The bias correction of Nagel et al. (arXiv 1906.04721, §4.2), with the histogram's mean for all input channels,
        and without regard to padding. Results that read one channel each get none: the mean of that channel may be far
        from the overall mean.
        """
        linear = linear_operator(op)
        if linear is None or _reads_one_channel(linear.form):
            return 0.0
        mean = self.plan.mean(_rounded(op.operands[0]))
        return linear.answer(Stored(errors), np.full(size_along(op.operands[0], -1), mean))


def _reads_one_channel(form: LinearForm) -> bool:
    """Whether each output channel reads one input channel, as in a depthwise convolution."""
    return form.view[0] > 1 and form.view[-1] == 1


def _rounded(value: SSAValue) -> SSAValue:
    """The value in front of the quantization and dequantization."""
    assert isinstance(value.owner, DequantizeOp)
    quantized = value.owner.input.owner
    assert isinstance(quantized, QuantizeOp)
    return quantized.input


def _scale_of(value: SSAValue) -> float:
    """The scale of the quantized value behind a dequantization."""
    assert isinstance(value.owner, DequantizeOp)
    known = parameters_of(element_of(value.owner.input))
    assert known is not None
    return known[0]
