"""
Samples of operators of PyTorch's own database, run by the backend of `torch.compile` and by PyTorch itself.

Results, their types and sizes, and gradients are compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch._functorch.aot_autograd import aot_function
from torch._ops import OpOverload
from torch.utils import _pytree as pytree

from glow_mlir.errors import GlowWarning, UnsupportedError
from glow_mlir.torch.backend import compile_graph
from glow_mlir.torch.decompositions import decompositions, whole_resamplings
from glow_mlir.torch.graph_options import GraphOptions

BOOKKEEPING = frozenset(
    {
        "aten._scaled_dot_product_flash_attention_for_cpu.default",
        "aten._scaled_dot_product_flash_attention_for_cpu_backward.default",
        "aten._native_batch_norm_legit_functional.default",
        "aten.copy_.default",
    }
)
"""Operators of real graphs beside core ATen."""

IN_SINGLE_PRECISION = frozenset(
    {
        "grid_sampler_2d",
        "grid_sampler_3d",
        "nn.functional.conv_transpose1d",
        "nn.functional.conv_transpose2d",
        "nn.functional.conv_transpose3d",
        "nn.functional.grid_sample",
    }
)
"""
Operators that PyTorch computes in 16 bits throughout, where ours computes in f32 and rounds once.

Places of samples that are rounded to 8 bits lie elsewhere, and sums of products that are rounded one by one lose what
they cancel: so what PyTorch gives for f32 is what is expected.
"""


def is_core(target: Any) -> bool:
    """Whether a target of a node is of core ATen, or of real graphs."""
    is_operator = bool(isinstance(target, OpOverload))
    return not is_operator or torch.Tag.core in target.tags or str(target) in BOOKKEEPING or "backward" in str(target)


class OutsideError(Exception):
    """A graph has operators beside core ATen that are not supported."""


def draws(target: Any) -> bool:
    """Whether a target of a node draws random numbers."""
    return isinstance(target, OpOverload) and torch.Tag.nondeterministic_seeded in cast("Any", target).tags


def compiled(
    module: torch.fx.GraphModule, inputs: Sequence[Any], *, phase: str, options: dict[str, Any], drawn: set[str]
) -> Callable[[list[Any]], list[Any]]:
    """
    `compile_graph`, which says where a graph is beside core ATen, and tells of operators that draw numbers.

    A graph of which PyTorch would compute a part is not supported.
    """
    drawn |= {str(node.target) for node in module.graph.nodes if draws(node.target)}
    outside = sorted({str(node.target) for node in module.graph.nodes if not is_core(node.target)})
    run = compile_graph(module, inputs, phase=phase, options=GraphOptions(options, "error"))

    def call(given: list[Any]) -> list[Any]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", GlowWarning)
                return run(given)
        except (UnsupportedError, GlowWarning) as error:
            if outside:
                raise OutsideError(", ".join(outside)) from error
            raise UnsupportedError(getattr(error, "reason", str(error))) from error

    call._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
    return call


def tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors in nested containers."""
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


NARROW = (torch.bfloat16, torch.float16)
"""Float types of 16 bits."""


def flat_function(op: Any, sample: Any, is_wide: bool = False) -> tuple[Callable[..., Any], list[torch.Tensor]]:
    """
    A sample as a function of its tensors, and these.

    Places among its results are what lies there. One that `is_wide` is asked for f64 instead of 16 bits.
    """
    given, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    leaves: list[Any] = list(given)
    if is_wide:
        leaves = [torch.float64 if isinstance(leaf, torch.dtype) and leaf in NARROW else leaf for leaf in leaves]
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def function(*tensors: torch.Tensor) -> Any:
        given = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor
        first, rest, keywords = pytree.tree_unflatten(given, spec)
        return pytree.tree_leaves(op(first, *rest, **keywords))

    if op.name in PLACES:
        function = with_elements(function, *chosen_axis(op, sample))
    return function, [leaves[place] for place in places]


UNDEFINED = frozenset({"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"})
"""Operators of whose results types and sizes are defined alone."""

PLACES = {"sort": 0, "argsort": 0, "topk": 1, "kthvalue": 1, "median": 0, "nanmedian": 0, "mode": 0}
"""Operators that may choose any of equal elements: which argument, behind the operand, is the axis of their places."""


def chosen_axis(op: Any, sample: Any) -> tuple[int, bool]:
    """The axis along which the results of an operator are places, and whether it gives these alone."""
    place = PLACES[op.name]
    axis = sample.kwargs.get("dim", sample.args[place] if len(sample.args) > place else -1)
    return (-1 if isinstance(axis, bool) else axis), op.name == "argsort"


def with_elements(function: Callable[..., Any], axis: int, only_places: bool) -> Callable[..., Any]:
    """A function whose places are what lies there of its first operand."""

    def run(value: torch.Tensor, *others: torch.Tensor) -> Any:
        *found, places = function(value, *others)
        if not found and not only_places:
            return [places]
        if not value.ndim or not places.numel():
            return [*found, places]
        whole = places.unsqueeze(axis) if places.ndim < value.ndim else places
        return [*found, value.detach().gather(axis, whole)]

    return run


def exact_results(op: Any, sample: Any, gradients: bool) -> list[Any]:
    """What an operator gives for operands in f64, or the gradients of that."""
    function, tensors = flat_function(op, sample, is_wide=True)
    wide = [
        tensor.detach().double().requires_grad_(tensor.requires_grad) if tensor.is_floating_point() else tensor
        for tensor in tensors
    ]
    found = list(function(*wide))
    return gradients_of(found, wide) if gradients else found


def is_as_near(found: Sequence[Any], expected: Sequence[Any], exact: Callable[[], Sequence[Any]]) -> bool:
    """
    Whether results are as near to what f64 gives as those of PyTorch.

    Where it rounds between the steps of a sum and we do not, they differ by more than one rounding.
    """
    floats = (*NARROW, torch.float32)
    if not all(isinstance(item, torch.Tensor) and item.dtype in floats for item in (*found, *expected)):
        return False
    for one, other, truth in zip(found, expected, exact(), strict=True):
        if truth is None or one.shape != other.shape:
            return False
        errors = [(item.double() - truth.double()).abs().max().item() if item.numel() else 0 for item in (one, other)]
        if not errors[0] <= errors[1]:
            return False
    return True


def run_sample(op: Any, sample: Any, options: dict[str, Any], gradients: bool) -> str:
    """
    What is wrong with the results of a sample; empty where nothing is. Raises what the compilation raises.

    Of random numbers types and sizes are compared alone.
    """
    function, tensors = flat_function(op, sample)
    drawn: set[str] = set()
    compilers = {
        f"{word}_compiler": partial(compiled, phase=phase, options=options, drawn=drawn)
        for word, phase in (("fw", "forward"), ("bw", "backward"), ("inference", "inference"))
    }
    compiler = cast("Any", aot_function)(function, **compilers, decompositions=decompositions())
    own = [tensor.detach().clone().requires_grad_(tensor.requires_grad and gradients) for tensor in tensors]
    other = [tensor.detach().clone().requires_grad_(tensor.requires_grad and gradients) for tensor in tensors]
    expected = function(*own) if not is_rounded(op, own) else in_single_precision(function, own)
    with whole_resamplings():
        found = compiler(*other)
    has_values = not drawn and op.name not in UNDEFINED
    wrong = difference(found, expected, has_values=has_values)
    if wrong and not is_as_near(found, expected, partial(exact_results, op, sample, gradients=False)):
        return wrong
    if not gradients:
        return ""
    found, expected = gradients_of(found, other), gradients_of(expected, own)
    wrong = difference(found, expected, "gradient ", has_values)
    if wrong and is_as_near(found, expected, partial(exact_results, op, sample, gradients=True)):
        return ""
    return wrong


def is_rounded(op: Any, tensors: Sequence[torch.Tensor]) -> bool:
    """Whether PyTorch rounds in between what it computes of tensors."""
    return op.name in IN_SINGLE_PRECISION and any(tensor.dtype == torch.bfloat16 for tensor in tensors)


def in_single_precision(function: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> Any:
    """What a function gives for floats of 16 bits that are f32, rounded once."""
    given = [tensor.float() if tensor.dtype == torch.bfloat16 else tensor for tensor in tensors]
    return [item.bfloat16() if isinstance(item, torch.Tensor) else item for item in function(*given)]


def gradients_of(outputs: Iterable[Any], inputs: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    """The gradients of a sum of products with the outputs."""
    kept = [item for item in outputs if isinstance(item, torch.Tensor) and item.requires_grad]
    wanted = [item for item in inputs if item.requires_grad]
    if not kept or not wanted:
        return []
    cotangents = [torch.linspace(0.5, 1.5, item.numel(), dtype=item.dtype).reshape(item.shape) for item in kept]
    return list(torch.autograd.grad(kept, wanted, cotangents, allow_unused=True))


TOLERANCES = {torch.bfloat16: (3e-2, 2e-2), torch.float16: (2e-2, 2e-2), torch.float32: (2e-5, 1e-4)}
"""Element type → absolute and relative tolerance."""


def difference(found: Sequence[Any], expected: Sequence[Any], what: str = "", has_values: bool = True) -> str:
    """What differs between results, types and shapes among it; empty where nothing does."""
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        if not isinstance(other, torch.Tensor):
            if one != other and not (one is None and other is None):
                return f"{what}result {number} is {one}, not {other}"
            continue
        if one is None:
            if bool(other.count_nonzero()):
                return f"{what}result {number} is missing"
            continue
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return f"{what}result {number} is {one.dtype}{list(one.shape)}, not {other.dtype}{list(other.shape)}"
        if not has_values:
            continue
        absolute, relative = TOLERANCES.get(other.dtype, (1e-7, 1e-7))
        if not torch.allclose(one, other, atol=absolute, rtol=relative, equal_nan=True):
            gap = (one.double() - other.double()).abs().max().item() if one.numel() else 0
            return f"{what}result {number} differs by {gap:.3g}"
    return ""
