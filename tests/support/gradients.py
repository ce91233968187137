"""Gradients of single operators and of graphs, beside central differences in f64."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from breadth import is_drawn
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from glow_mlir.api.model_session import ModelSession
from glow_mlir.dialects.element_types import element_type
from glow_mlir.dialects.glow_high.gradient import GradientOp
from glow_mlir.dialects.glow_high.returns import ReturnOp
from glow_mlir.dialects.shapes import tensor
from glow_mlir.differentiation.differentiate import DifferentiatePass
from glow_mlir.frontends.builder.module_builder import ModuleBuilder, named_location
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.text import verify_module

Arrays = Mapping[str, np.ndarray]
Emit = Emitter
Graph = Callable[[Emit, dict[str, SSAValue]], SSAValue]
"""Emits operators on inputs, by name, and gives the value that is differentiated."""

STEP = 1e-5


def gradient_module(graph: Graph, inputs: Arrays, sources: Sequence[str]) -> ModuleOp:
    """A module with the outputs `y`, and for each source its gradient, in one function."""
    builder = ModuleBuilder()
    types = {name: tensor(value.shape, element_type(value.dtype)) for name, value in inputs.items()}
    values = builder.add_inputs(types, {})

    end = ReturnOp.create(location=named_location("graph"))
    builder.block.add_op(end)
    result = graph(Emitter(end, builder.storage), values)
    end.detach()
    end.erase()
    builder.add_output("y", result)
    chosen = [values[name] for name in sources]
    op = GradientOp.make(result, None, chosen, location=named_location("gradient"))
    builder.insert(op)
    for name, value in zip(sources, op.results, strict=True):
        builder.add_output(f"d{name}", value)
    return builder.finish("main")


def differentiated(module: ModuleOp) -> ModuleOp:
    """The module after the pass, which is valid."""
    DifferentiatePass().apply(new_context(), module)
    verify_module(module)
    return module


def central_differences(function: Callable[[Arrays], np.ndarray], inputs: Arrays, name: str) -> np.ndarray:
    """The derivatives of the sum of all elements that a function gives with regard to an input."""
    found = np.zeros(inputs[name].shape)
    for place in np.ndindex(found.shape):
        ends: list[np.ndarray] = []
        for sign in (1, -1):
            moved = inputs[name].copy()
            moved[place] += sign * STEP
            ends.append(function({**inputs, name: moved}).astype(np.float64))
        found[place] = (ends[0] - ends[1]).sum() / (2 * STEP)
    return found


def check_gradients(
    graph: Graph, inputs: Arrays, sources: Sequence[str] | None = None, rtol: float = 1e-5
) -> dict[str, np.ndarray]:
    """
    Compare gradients, of the interpreter and of machine code, with central differences of the interpreter.

    Gives what the interpreter computes: `y`, and the gradient of each source.

    Inputs of floats are f64. `sources` are by default all of them.
    """
    chosen = sources or [name for name, value in inputs.items() if value.dtype == np.float64]
    module, forward = (differentiated(gradient_module(graph, inputs, names)) for names in (chosen, ()))
    return check_module(module, forward, inputs, chosen, rtol)


def check_module(
    module: ModuleOp, forward: ModuleOp, inputs: Arrays, sources: Sequence[str], rtol: float = 1e-5
) -> dict[str, np.ndarray]:
    """
    Compare the outputs of a module that are gradients of `y` with central differences of a module without these.

    A short run takes machine code in a part of the tests.
    """
    found = [run_function(module, inputs)]
    if is_drawn(os.environ["PYTEST_CURRENT_TEST"].split(" ")[0]):
        found.append(run_machine_code(module.clone(), inputs))

    def y(values: Arrays) -> np.ndarray:
        return run_function(forward, values)["y"]

    for name in sources:
        expected = central_differences(y, inputs, name)
        for results in found:
            np.testing.assert_allclose(results[f"d{name}"], expected, rtol=rtol, atol=rtol, err_msg=f"d{name}")
    return found[0]


def run_machine_code(module: ModuleOp, inputs: Arrays) -> dict[str, np.ndarray]:
    """What the machine code of a module gives."""
    return ModelSession.of(module, cache=False).run(dict(inputs))
