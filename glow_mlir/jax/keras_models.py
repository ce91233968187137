"""Models of Keras as functions of JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from glow_mlir.errors import OptionError
from glow_mlir.support.optional_packages import imported


def function_of(
    model: Any, examples: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[Callable[..., Any], Any, Sequence[Any]]:
    """
    A model or layer in the mode of inference as a function of its variables and inputs, its variables, and examples.

    `examples` and `keywords` are arguments of a call. Without them, inputs are those that the model declares; sizes
    that it leaves open are 1. Raises `OptionError` for one that declares none.
    """
    declared: Any = getattr(model, "inputs", None)
    if not (examples or keywords or declared):
        kind = "model" if hasattr(model, "layers") else "layer"
        raise OptionError(f"the {kind} declares no inputs", hint="give from_keras inputs such as those of a call")
    if examples or keywords:
        inputs = tuple(examples)
    else:
        # A model that was never called has a list of its inputs, and not the tree of them.
        tree: Any = getattr(model, "input", declared)
        inputs = (jax.tree.map(_example, tree[0] if isinstance(tree, list) and len(tree) == 1 else tree),)  # pyright: ignore
    # A functional model takes a list of its inputs; calls of one that is compiled for them apart have them apart.
    is_apart = len(inputs) > 1 and isinstance(declared, list) and len(inputs) == len(declared)  # pyright: ignore

    def given(inputs: Sequence[Any]) -> Sequence[Any]:
        return [list(inputs)] if is_apart else inputs

    if not model.built:
        model(*given(inputs), **keywords)
    variables = model.variables
    scope = imported("keras", "jax", "models of Keras need the package keras").StatelessScope

    def function(values: Any, *inputs: Any, **named: Any) -> Any:
        with scope(state_mapping=list(zip(variables, values, strict=True))):
            return model(*given(inputs), **named, training=False)

    return function, [item.value for item in variables], inputs


def _example(item: Any) -> jax.ShapeDtypeStruct:
    """The shape of an input that a model declares."""
    return jax.ShapeDtypeStruct([1 if size is None else size for size in item.shape], item.dtype)
