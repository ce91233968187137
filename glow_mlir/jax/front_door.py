"""Entry points for functions of JAX and models of Keras; they raise an error if JAX is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from glow_mlir.errors import OptionError
from glow_mlir.support.optional_packages import imported

if TYPE_CHECKING:
    from glow_mlir.frontends.stablehlo.model import StablehloModel
    from glow_mlir.jax.compiled_function import CompiledFunction

NOTHING: Mapping[str, Any] = {}


def _require_jax() -> None:
    """Raise `OptionError` where JAX is not installed."""
    imported("jax", "jax", "functions of JAX need the package jax")


def from_jax(
    function: Callable[..., Any],
    *examples: Any,
    params: Any = None,
    keywords: Mapping[str, Any] = NOTHING,
    static_argnames: str | Sequence[str] = (),
    donate_argnames: str | Sequence[str] = (),
    **options: Any,
) -> CompiledFunction:
    """
    Compile a function of JAX for arguments like `examples`: what `jax.jit` does, by this compiler.

    ```python
    predict = glow_mlir.from_jax(model.apply, images, params=variables, threads=2)
    logits = predict(images)
    ```

    `examples` are positional arguments, `keywords` those by name: pytrees of arrays, or of `jax.ShapeDtypeStruct`.
    `params`, if given, is the first argument of the function; its arrays become constants of the program, and calls
    leave it out. Arguments called `static_argnames` are Python values that the program is compiled for. Arrays of those
    called `donate_argnames` are given up by each call, as caches are: results take their memory where they can. A
    jitted function keeps its own static and donated arguments. `options` are those of `InferenceSession`. Raises
    `ModelError` for what JAX cannot trace, `InputError` for arguments that are no arrays, `OptionError` where JAX is
    missing, and `GlowError` for what is not supported.
    """
    _require_jax()
    from glow_mlir.jax.compiled_function import CompiledFunction
    from glow_mlir.jax.lowering import lowered

    return CompiledFunction(lowered(function, examples, params, keywords, static_argnames, donate_argnames), options)


def exported(
    function: Callable[..., Any],
    *examples: Any,
    params: Any = None,
    keywords: Mapping[str, Any] = NOTHING,
    static_argnames: str | Sequence[str] = (),
) -> StablehloModel:
    """
    Convert a function of JAX to a model for `InferenceSession` and bundles; see `from_jax`.

    Inputs and outputs have the names of the arguments' leaves, such as `x['mask']`.
    """
    _require_jax()
    from glow_mlir.jax.lowering import lowered

    return lowered(function, examples, params, keywords, static_argnames).model


def from_keras(model: Any, *examples: Any, keywords: Mapping[str, Any] = NOTHING, **options: Any) -> CompiledFunction:
    """
    Compile a model or layer of Keras 3 whose backend is JAX, in the mode of inference; calls take what it takes.

    Without `examples`, and `keywords` such as `mask`, the inputs are those that the model declares, with a batch of 1.
    Several declared inputs may be a list, or given one by one. `options` are those of `InferenceSession`. Raises
    `OptionError` where Keras has another backend, and for a model without inputs.
    """
    _require_jax()
    from glow_mlir.jax.keras_models import function_of

    keras = imported("keras", "jax", "models of Keras need the package keras")
    if keras.backend.backend() != "jax":
        reason = f"Keras computes with {keras.backend.backend()}"
        raise OptionError(reason, hint="set the environment variable KERAS_BACKEND=jax before Keras is imported")
    function, variables, inputs = function_of(model, examples, keywords)
    return from_jax(function, *inputs, params=variables, keywords=keywords, **options)
