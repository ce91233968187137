"""Functions of JAX as StableHLO programs, with the arrays that they close over beside the text."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from glow_mlir.errors import GlowError, ModelError, OptionError
from glow_mlir.frontends.stablehlo.model import StablehloModel
from glow_mlir.jax.constants import MAX_PRINTED, left_out
from glow_mlir.jax.program import operations_of
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.distinct_names import apart


@dataclass(frozen=True)
class Lowered:
    """A function as a program, and how its arguments and results become lists of arrays."""

    model: StablehloModel
    text: str
    """The program in generic form; constants of more than `MAX_PRINTED` elements are left out."""
    arguments: Any
    """The tree of the arguments of a call: positional ones, and those by name."""
    names: Sequence[str]
    """The names of the leaves of the arguments."""
    types: Sequence[Any]
    """The shape and the element type of each leaf of the arguments."""
    results: Any
    """The tree of the results."""
    elements: Sequence[Any]
    """The element type of each leaf of the results: that of keys, for keys of random numbers."""
    static: Mapping[str, Any]
    """The arguments that the program is compiled for."""


def lowered(
    function: Callable[..., Any],
    examples: Sequence[Any],
    params: Any,
    keywords: Mapping[str, Any],
    static_argnames: Sequence[str],
) -> Lowered:
    """The program of a function for arguments like `examples`; raises `ModelError` for what JAX cannot trace."""
    leading = () if params is None else (params,)
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(params)):
        raise OptionError("params has shapes in place of arrays", hint="give what has no values yet as an example")
    static = {name: keywords[name] for name in static_argnames if name in keywords}
    rest = {name: value for name, value in keywords.items() if name not in static}
    given = functools.partial(function, **static) if static else function
    try:
        traced = jax.jit(_plain(given), keep_unused=True).lower(*leading, *examples, **rest)
        module = traced.compiler_ir(dialect="stablehlo")
    except GlowError:
        raise
    except Exception as error:
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise ModelError(f"JAX cannot trace the function: {first}", hint="jax.jit(function) shows where") from error
    operation: Any = module.operation
    source = operation.get_asm(print_generic_op_form=True, large_elements_limit=MAX_PRINTED)
    positional, named = traced.args_info
    count = len(jax.tree.leaves(params)) if leading else 0
    paths = jax.tree_util.tree_flatten_with_path((positional, named))[0]
    types = [_type(info) for _, info in paths]
    constants = dict(enumerate(map(host_array, jax.tree.leaves(params)))) if leading else {}
    names = _names(function, [path for path, _ in paths])
    results = jax.tree_util.tree_flatten_with_path(traced.out_info)[0]
    outputs = [_output(path) for path, _ in results]
    model = StablehloModel(
        source.encode(), constants, resources=left_out(operation), inputs=tuple(names), outputs=tuple(apart(outputs))
    )
    model.keep_program(operations_of(operation))
    tree = jax.tree.structure((positional[len(leading) :], named))
    elements = [info.dtype for _, info in results]
    return Lowered(model, source, tree, names[count:], types[count:], traced.out_tree, elements, static)


def _type(info: Any) -> jax.ShapeDtypeStruct:
    """The shape and the element type of a leaf: those of its data, for a key of random numbers."""
    type_ = jax.ShapeDtypeStruct(info.shape, info.dtype)
    return jax.eval_shape(jax.random.key_data, type_) if is_key(info.dtype) else type_


def is_key(element: Any) -> bool:
    """Whether an element type is that of keys of random numbers."""
    return jax.dtypes.issubdtype(element, jax.dtypes.prng_key)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that `jax.jit` takes, whatever `function` is."""

    @functools.wraps(function, assigned=(), updated=())
    def called(*positional: Any, **named: Any) -> Any:
        return function(*positional, **named)

    return called


def host_array(value: Any) -> np.ndarray:
    """The array of a leaf, without a copy where it is in this process; that of a key of random numbers is its data."""
    if isinstance(value, jax.Array) and is_key(value.dtype):
        value = jax.random.key_data(value)
    if isinstance(value, jax.Array):
        return np.asarray(value)
    return np.asarray(value, jax.dtypes.canonicalize_dtype(np.result_type(value)))


def _names(function: Callable[..., Any], paths: Sequence[Any]) -> list[str]:
    """The names of the leaves of arguments: `x`, `x['mask']`; `argument0` where a function tells no names."""
    positional, rest = _positional(function)
    found: list[str] = []
    for path in paths:
        group, first, *inner = path
        if getattr(group, "idx", 0) == 1:
            own = first.key
        elif (position := getattr(first, "idx", 0)) < len(positional):
            own = positional[position]
        else:
            own = f"{rest}[{position - len(positional)}]" if rest else f"argument{position}"
        found.append(f"{own}{jax.tree_util.keystr(tuple(inner))}")
    return apart(found)


def _positional(function: Callable[..., Any]) -> tuple[list[str], str]:
    """The names of the arguments that a function takes by position, and of that which takes all others."""
    try:
        parameters = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return [], ""
    single = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    rest = [item.name for item in parameters if item.kind == inspect.Parameter.VAR_POSITIONAL]
    return [item.name for item in parameters if item.kind in single], "".join(rest)


def _output(path: Any) -> str:
    return f"result{jax.tree_util.keystr(path)}"
