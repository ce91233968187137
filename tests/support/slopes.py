"""Gradients of whole modules by all that floats lead into, beside differences along random directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from gradients import Arrays, differentiated
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from glow_mlir.api.model_session import ModelSession
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp
from glow_mlir.dialects.glow_high.gradient import GradientOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.dialects.glow_high.storage import GetOp, PlaceholderOp
from glow_mlir.dialects.shapes import element_of, shape_of
from glow_mlir.frontends.builder.emission import over_all
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.training.step import StepBuilder

STEP = 1e-5
"""How far apart the ends of a difference are from the middle."""

TOTAL = "total"
"""The output that is differentiated."""


@dataclass(frozen=True)
class Sloped:
    """A scalar of f64 that a module computes, and its gradients."""

    forward: ModuleOp
    """Gives the scalar alone."""
    backward: ModuleOp
    """Gives the gradients besides, `slope.NAME`."""
    sources: Sequence[str]
    """The inputs and the state by which there are gradients."""
    weights: Sequence[np.ndarray]
    """What the elements of each output are multiplied by."""

    def gradients(self, inputs: Arrays) -> dict[str, np.ndarray]:
        """Those of the interpreter, by source."""
        return self._by_source(run_function(self.backward, inputs))

    def compiled_gradients(self, inputs: Arrays) -> dict[str, np.ndarray]:
        """Those of machine code, whose state is what it begins with."""
        session = ModelSession.of(self.backward.clone(), cache=False)
        return self._by_source(session.run({argument.name: inputs[argument.name] for argument in session.first.inputs}))

    def _by_source(self, results: Arrays) -> dict[str, np.ndarray]:
        return {name: results[f"slope.{name}"] for name in self.sources}


def sloped(module: ModuleOp, seed: int, order: int = 1) -> Sloped:
    """
    The sum of all float outputs of a module's function, each element times a random number, and its gradients.

    With order 2 it is the sum of the gradients of that sum, likewise, whose gradients are differentiated twice.
    """
    forward, backward = (_Total(module.clone(), seed, order) for _ in range(2))
    backward.add_gradients()
    finished = differentiated(forward.finished()), differentiated(backward.finished())
    return Sloped(*finished, list(backward.sources), backward.weights)


class _Total:
    """A module whose only output is a scalar of what its outputs were."""

    def __init__(self, module: ModuleOp, seed: int, order: int) -> None:
        (function,) = high_functions(module)
        self._builder, self._rng = StepBuilder(module, function), np.random.default_rng(seed)
        self.weights: list[np.ndarray] = []
        saves = self._builder.outputs()
        self.sources = {name: value for name, value in self._read().items() if is_float(element_of(value))}
        self._total = self._weighed([save.input for save in saves.values()])
        for _ in range(order - 1):
            self._total = self._weighed(self._slopes())
        for save in saves.values():
            self._builder.forget_output(save)
        self._builder.output(TOTAL, self._total)

    def add_gradients(self) -> None:
        """Give the gradients besides."""
        for name, value in zip(self.sources, self._slopes(), strict=True):
            self._builder.output(f"slope.{name}", value)

    def finished(self) -> ModuleOp:
        """The module."""
        self._builder.finish()
        return self._builder.module

    def _slopes(self) -> Sequence[SSAValue]:
        return self._builder.emit.all(GradientOp, self._total, None, list(self.sources.values()))

    def _read(self) -> dict[str, SSAValue]:
        """The inputs and the state that the function reads."""
        found: dict[str, SSAValue] = {}
        for op in self._builder.function.block.ops:
            if isinstance(op, GetOp) and isinstance(self._builder.storage.by_name[op.storage_name], PlaceholderOp):
                found[op.storage_name] = op.results[0]
        return found

    def _weighed(self, values: Sequence[SSAValue]) -> SSAValue:
        """The sum of all elements of floats, each times a number from -1 to 1."""
        emit, total = self._builder.emit, None
        for value in values:
            if is_float(element_of(value)):
                self.weights.append(self._rng.uniform(-1, 1, shape_of(value)))
                product = emit(MulOp, value, emit.constant(self.weights[-1], "weights"))
                part = over_all(ReduceSumOp, product, emit)
                total = part if total is None else emit(AddOp, total, part)
        assert total is not None
        return total


def check_slopes(case: Sloped, inputs: Arrays, seed: int) -> bool:
    """
    Compare gradients, in the interpreter and as machine code, with differences along a random direction.

    Gives whether there was something to compare: not at a corner or a jump, nor where there are numbers no more.
    """
    found = case.gradients(inputs)
    total = float(run_function(case.forward, inputs)[TOTAL])
    if not all(np.isfinite(value).all() for value in (*found.values(), total)):
        return False
    rng = np.random.default_rng(seed)
    direction = {name: rng.standard_normal(value.shape) for name, value in found.items()}

    def along(distance: float) -> float:
        moved = {name: inputs[name] + distance * direction[name] for name in found}
        return float(run_function(case.forward, {**inputs, **moved})[TOTAL])

    products = [value * direction[name] for name, value in found.items()]
    scale = sum(float(np.abs(product).sum()) for product in products) + abs(total) + 1e-3
    if not _agrees(sum(float(product.sum()) for product in products), along, scale):
        return False
    assert_same(case.compiled_gradients(inputs), found)
    return True


def assert_same(found: Arrays, expected: Arrays) -> None:
    """Fail where gradients differ by more than rounding does; some are mathematically 0."""
    scales = {name: float(np.abs(value).max(initial=0)) for name, value in expected.items()}
    largest = max(scales.values(), default=0.0)
    for name, value in expected.items():
        atol = 1e-9 * scales[name] + 1e-13 * largest
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=atol, err_msg=name)


def _agrees(slope: float, along: Callable[[float], float], scale: float) -> bool:
    """Compare a slope with differences of a function at 0; false at a corner, where sides differ at any distance."""
    middle = along(0.0)
    sides = [[(along(sign * step) - middle) / (sign * step) for sign in (1, -1)] for step in (STEP, STEP / 2)]
    if not np.isfinite(sides).all():
        return False
    (far, near), bends = [sum(pair) / 2 for pair in sides], [abs(pair[0] - pair[1]) for pair in sides]
    if bends[1] > max(0.75 * bends[0], 1e-6 * scale):
        return False
    tolerance = 1e-6 * scale + 4 * abs(far - near)
    assert abs(slope - near) <= tolerance, f"the slope is {slope!r}, differences give {near!r} and {far!r}"
    return True
