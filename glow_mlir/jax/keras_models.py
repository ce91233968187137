"""Models of Keras as functions of JAX."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax

from glow_mlir.errors import OptionError


def function_of(model: Any, examples: Sequence[Any]) -> tuple[Callable[..., Any], Any, Sequence[Any]]:
    """
    A model in the mode of inference as a function of its variables and inputs, those variables, and inputs to trace it.

    Without `examples`, inputs are those that the model declares; sizes that it leaves open are 1.
    """
    if not examples and not model.built:
        raise OptionError("the model is not built yet", hint="give from_keras inputs such as those of a call")
    inputs = tuple(examples) or (jax.tree.map(_example, _declared(model)),)
    if not model.built:
        model(*inputs)
    variables = (
        [item.value for item in model.trainable_variables],
        [item.value for item in model.non_trainable_variables],
    )

    mode = {"training": False} if "training" in inspect.signature(model.call).parameters else {}

    def function(variables: Any, *inputs: Any) -> Any:
        trained, others = variables
        is_listed = len(inputs) > 1 and isinstance(getattr(model, "inputs", None), list)
        given = (list(inputs),) if is_listed else inputs
        return model.stateless_call(trained, others, *given, **mode)[0]

    return function, variables, inputs


def _declared(model: Any) -> Any:
    """What a model says that it takes: one input, or a list or a mapping of them."""
    found = getattr(model, "input", None)
    if found is not None:
        return found
    return model.inputs[0] if len(model.inputs) == 1 else model.inputs


def _example(item: Any) -> jax.ShapeDtypeStruct:
    """The shape of an input that a model declares."""
    return jax.ShapeDtypeStruct([1 if size is None else size for size in item.shape], item.dtype)
