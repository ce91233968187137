"""Functions of JAX as StableHLO programs, with the arrays that they close over beside the text."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, cast

import jax
import numpy as np
from jax.core import Tracer

from glow_mlir.errors import GlowError, InputError, ModelError, OptionError
from glow_mlir.frontends.stablehlo.model import StablehloModel
from glow_mlir.jax.arguments import Parameters, Split, is_bound, jit_of
from glow_mlir.jax.constants import MAX_PRINTED, left_out
from glow_mlir.jax.program import operations_of
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.distinct_names import apart

_EXPORT: Any = import_module("jax.export")
_EXTENSIONS: Any = import_module("jax.extend.core")

MIN_WORDS = 3
"""The number of words from which the message of an error tells without its class what is wrong."""


@dataclass(frozen=True)
class Lowered:
    """A function as a program, and how its arguments and results become lists of arrays."""

    model: StablehloModel
    text: str
    """The program in generic form; constants of more than `MAX_PRINTED` elements are left out."""
    leading: int
    """The number of arguments that are constants."""
    parameters: Parameters
    arguments: Any
    """The tree of the arguments of a call: positional ones, and those by name."""
    names: Sequence[str]
    """The name of each leaf of the arguments."""
    types: Sequence[jax.ShapeDtypeStruct]
    """The shape and the element type of each leaf of the arguments."""
    donated: frozenset[int]
    """The numbers of the leaves of arguments whose memory results may take."""
    results: Any
    """The tree of the results."""
    result_types: Sequence[Any]
    """The shape and the element type of each leaf of the results."""
    static: Mapping[str, Any]
    """The arguments that the program is compiled for."""


def lowered(
    function: Callable[..., Any],
    examples: Sequence[Any],
    params: Any,
    keywords: Mapping[str, Any],
    static_argnames: str | Sequence[str],
    donate_argnames: str | Sequence[str] = (),
) -> Lowered:
    """
    The program of a function for arguments like `examples`.

    Raises `ModelError` for what JAX cannot trace, `InputError` for arguments that are no arrays, and `OptionError`.
    """
    if isinstance(function, _EXPORT.Exported):
        function = getattr(function, "call")
    if not callable(function):
        raise OptionError(f"a '{type(function).__name__}' is no function", hint="from_jax(model.apply, x)")
    static, donated = _listed(static_argnames), _listed(donate_argnames)
    parameters = Parameters.of(function, static, donated)
    leading = () if params is None else (params,)
    split = parameters.split((*leading, *examples), keywords)
    paths = _with_paths((split.positional, split.named))
    names = _names(parameters, [path for path, _ in paths])
    for name, (_, leaf) in zip(names, paths, strict=True):
        _check_example(name, leaf)
    count = len(jax.tree.leaves(params))
    constants = dict(zip(range(count), map(_constant, names, jax.tree.leaves(params)), strict=False))
    traced, module = _traced(function, split, parameters, donated)
    infos = jax.tree.leaves(traced.args_info)
    types = [_type(info) for info in infos]
    outputs = _with_paths(traced.out_info)
    operation: Any = module.operation
    source = operation.get_asm(print_generic_op_form=True, large_elements_limit=MAX_PRINTED)
    model = StablehloModel(
        source.encode(),
        constants,
        resources=left_out(operation),
        inputs=tuple(names),
        outputs=tuple(apart([_output(path) for path, _ in outputs])),
    )
    model.keep_program(operations_of(operation))
    return Lowered(
        model=model,
        text=source,
        leading=len(leading),
        parameters=parameters,
        arguments=jax.tree.structure((split.positional[len(leading) :], split.named)),
        names=names[count:],
        types=types[count:],
        donated=frozenset(number for number, info in enumerate(infos[count:]) if info.donated),
        results=traced.out_tree,
        result_types=[info for _, info in outputs],
        static=split.static,
    )


def _with_paths(tree: Any) -> list[tuple[Any, Any]]:
    """The leaves of a tree, each with the path to it."""
    return cast("list[tuple[Any, Any]]", jax.tree_util.tree_flatten_with_path(tree)[0])


def _listed(names: str | Sequence[str]) -> Sequence[str]:
    """Names, of which one may be given alone, as `jax.jit` has it."""
    return [names] if isinstance(names, str) else names


def _traced(function: Any, split: Split, parameters: Parameters, donated: Sequence[str]) -> tuple[Any, Any]:
    """A function as JAX traces it, and its program; a jitted one keeps its own static and donated arguments."""
    jitted = jit_of(function)
    is_unchanged = not donated and Parameters.of(function).static == parameters.static
    is_as_jitted = is_unchanged and hasattr(function, "trace") and not is_bound(function)
    if jitted is not None and not is_as_jitted:
        function, donated = function.__wrapped__, [*donated, *jitted.donate_argnames]
    positional, named = split.whole
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Some donated buffers were not usable")
            if is_as_jitted:
                traced = function.trace(*positional, **named)
                flat: Any = jax.jit(_EXTENSIONS.jaxpr_as_fun(traced.jaxpr), keep_unused=True)
                return traced, flat.lower(*_types(traced)).compiler_ir(dialect="stablehlo")
            own: Any = jax.jit(
                _plain(function),
                keep_unused=True,
                static_argnames=tuple(parameters.static),
                donate_argnames=tuple(dict.fromkeys(donated)),
            )
            traced = own.trace(*positional, **named)
            return traced, traced.lower().compiler_ir(dialect="stablehlo")
    except GlowError:
        raise
    except Exception as error:
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        reason = f"{type(error).__name__} {first}" if len(first.split()) < MIN_WORDS else first
        raise ModelError(f"JAX cannot trace the function: {reason}", hint="jax.jit(function) shows where") from error


def _types(traced: Any) -> list[jax.ShapeDtypeStruct]:
    """The shape and the element type of each argument of a traced function."""
    return [
        jax.ShapeDtypeStruct(value.shape, value.dtype, weak_type=value.weak_type) for value in traced.jaxpr.in_avals
    ]


def _check_example(name: str, value: Any) -> None:
    """Raise `InputError` for an example that is no array."""
    if isinstance(value, bool | int | float | complex):
        return
    dtype = getattr(value, "dtype", None)
    if dtype is None or not hasattr(value, "shape"):
        hint = "static_argnames names arguments that the function is compiled for"
        raise InputError(f"argument '{name}' is a '{type(value).__name__}', not an array", hint=hint)
    if isinstance(value, Tracer):
        raise InputError(f"argument '{name}' is traced by JAX", hint="call from_jax outside of jit, grad and vmap")
    if isinstance(value, jax.Array) and value.is_deleted():
        raise InputError(f"argument '{name}' was deleted, or donated to another call")
    is_number = jax.numpy.issubdtype(dtype, np.number) or jax.numpy.issubdtype(dtype, np.bool_)
    if not ((is_number and np.dtype(dtype).isnative) or jax.numpy.issubdtype(dtype, jax.dtypes.extended)):
        raise InputError(f"argument '{name}' is of {np.dtype(dtype).str}, which JAX does not have")


def _constant(name: str, value: Any) -> np.ndarray:
    """The array of a leaf of the parameters; raises `InputError` for one without values."""
    if isinstance(value, jax.ShapeDtypeStruct):
        hint = "give params the arrays, or give the shapes as the first example"
        raise InputError(f"'{name}' of the parameters has a shape and no values", hint=hint)
    return host_array(value)


def _type(info: Any) -> jax.ShapeDtypeStruct:
    """The shape and the element type of a leaf: those of its data, for a key of random numbers."""
    type_ = jax.ShapeDtypeStruct(info.shape, info.dtype)
    return jax.eval_shape(jax.random.key_data, type_) if is_key(info.dtype) else type_


def is_key(dtype: Any) -> bool:
    """Whether an element type is that of keys of random numbers."""
    return jax.numpy.issubdtype(dtype, jax.dtypes.prng_key)


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


def _names(parameters: Parameters, paths: Sequence[Any]) -> list[str]:
    """The names of the leaves of arguments: `x`, `x['mask']`; `argument0` where a function tells no names."""
    known: list[str] = []
    rest = ""
    for item in parameters.dynamic():
        if item.kind is item.VAR_POSITIONAL:
            rest = item.name
        if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD):
            known.append(item.name)
    found: list[str] = []
    for path in paths:
        group, first, inner = path[0], path[1], path[2:]
        if group.idx == 1:
            name = str(first.key)
        else:
            position: int = first.idx
            name = known[position] if position < len(known) else _unnamed(position, rest, len(known))
        found.append(f"{name}{jax.tree_util.keystr(inner)}")
    return apart(found)


def _unnamed(position: int, rest: str, count: int) -> str:
    """The name of an argument behind the `count` that have one: an item of the parameter `rest`, if there is one."""
    return f"{rest}[{position - count}]" if rest else f"argument{position}"


def _output(path: Any) -> str:
    return f"result{jax.tree_util.keystr(path)}"
