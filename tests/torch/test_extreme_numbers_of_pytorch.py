"""Values and gradients at NaN, infinities, zeros of both signs and denormals are those of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, ReductionOpInfo, UnaryUfuncInfo  # noqa: E402

from glow_mlir.torch.backend import glow  # noqa: E402
from glow_mlir.torch.graph_reports import forget_graphs  # noqa: E402

pytestmark = [
    pytest.mark.extra,
    pytest.mark.long,
    # Some operators of the database are PyTorch's alone; `test_operator_database` lists them.
    pytest.mark.filterwarnings("ignore::glow_mlir.errors.GlowWarning"),
]

NUMBERS = (1.0, math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-40, -1e-40, -2.0, 3e38, 0.5, -0.5)

ROWS = (
    (1.0, 2.0, 3.0, -4.0),
    (1.0, math.nan, 3.0, 2.0),
    (math.inf, 1.0, 2.0, 3.0),
    (math.inf, -math.inf, 1.0, 2.0),
    (-math.inf, 1.0, 0.0, -0.0),
    (0.0, -0.0, 0.0, 0.0),
    (-math.inf,) * 4,
)
"""Rows for reductions; sums beyond the largest float depend on the order of addition and are left out."""

POLES = "PyTorch gives NaN at infinity, where the function is 0, and noise at its poles"

OF_PYTORCH_ALONE: Mapping[str, str] = {
    "byte": "floats beyond the range of an integer type saturate here",
    "char": "floats beyond the range of an integer type saturate here",
    "short": "floats beyond the range of an integer type saturate here",
    "int": "floats beyond the range of an integer type saturate here",
    "long": "floats beyond the range of an integer type saturate here",
    "chalf": "complex numbers",
    "cfloat": "complex numbers",
    "cdouble": "complex numbers",
    "complex": "complex numbers",
    "polar": "complex numbers",
    "nn.functional.softshrink": "PyTorch decomposes its gradient, which hides NaN, before any table of ours is asked",
    "polygamma.polygamma_n_0": POLES,
    "polygamma.polygamma_n_1": POLES,
    "polygamma.polygamma_n_2": POLES,
    "polygamma.polygamma_n_3": POLES,
    "polygamma.polygamma_n_4": POLES,
    "special.polygamma.special_polygamma_n_0": POLES,
    "digamma": POLES,
    "mvlgamma.mvlgamma_p_1": "x + 0 is x here, also for -0",
    "fmod": "remainders by denormals are exact here",
    "remainder": "remainders by denormals are exact here",
    "__rmod__": "remainders by denormals are exact here",
    "hash_tensor": "PyTorch computes it",
    "jiterator_unary": "only for GPUs",
    "jiterator_binary": "only for GPUs",
    "jiterator_binary_return_by_ref": "only for GPUs",
    "std": "variances beyond the range of floats: PyTorch keeps them in f64",
    "std.unbiased": "variances beyond the range of floats: PyTorch keeps them in f64",
    "var": "variances beyond the range of floats: PyTorch keeps them in f64",
    "var.unbiased": "variances beyond the range of floats: PyTorch keeps them in f64",
    "i0": "the gradient at -0 is -0, as the function is even",
    "special.i0e": "the gradient at -0 is -0, as the function is even",
    "special.i1": "an odd function gives -0 at -0",
    "special.i1e": "an odd function gives -0 at -0",
    "special.modified_bessel_i1": "an odd function gives -0 at -0",
}
"""Operators that are not compared → why."""


def operators(kind: type[Any]) -> dict[str, Callable[..., Any]]:
    """The operators of PyTorch's own database that take floats, by name, with keywords of their samples."""
    found: dict[str, Callable[..., Any]] = {}
    for op in op_db:
        name = f"{op.name}.{op.variant_test_name}".removesuffix(".")
        if isinstance(op, kind) and op.supports_dtype(torch.float32, "cpu") and name not in OF_PYTORCH_ALONE:
            keywords = op.sample_kwargs("cpu", torch.float32, torch.ones(1))[0] if kind is UnaryUfuncInfo else {}
            found[name] = lambda *given, op=op, keywords=keywords: op.op(*given, **keywords)
    return found


def run(
    call: Callable[..., Any], inputs: Sequence[Tensor], with_gradients: bool
) -> tuple[list[Any], list[Tensor | None]]:
    """Results of a call, and gradients of its inputs."""
    given = [value.clone().requires_grad_(with_gradients) for value in inputs]
    found = call(*given)
    results = [found] if isinstance(found, Tensor) else list(found)
    scaled = [value for value in results if value.requires_grad]
    if not scaled:
        return [value.detach() for value in results], []
    factors = [torch.arange(1.0, 1 + value.numel()).reshape(value.shape).to(value.dtype) for value in scaled]
    gradients = torch.autograd.grad(scaled, given, factors, allow_unused=True)
    return [value.detach() for value in results], list(gradients)


def differences(name: str, function: Callable[..., Any], inputs: Sequence[Tensor]) -> list[str]:
    """How the compiled function differs from PyTorch, with the operands."""
    torch._dynamo.reset()
    forget_graphs()
    with_gradients = True
    try:
        expected = run(function, inputs, with_gradients)
    except RuntimeError as error:
        if "is not implemented" not in str(error):
            raise
        with_gradients = False
        expected = run(function, inputs, with_gradients)
    found = run(torch.compile(function, backend=glow), inputs, with_gradients)
    told: list[str] = []
    for what, ours, theirs in zip(("value", "gradient"), found, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            if one is None or other is None:
                told += [f"{name}: {what} {one} instead of {other}"] * (one is not other)
                continue
            same = torch.isclose(one.double(), other.double(), rtol=2e-5, atol=1e-6, equal_nan=True)
            at = [value[~same].tolist() for value in inputs if value.shape == one.shape]
            if not same.all():
                told.append(f"{name}: {what} {one[~same].tolist()} instead of {other[~same].tolist()} at {at}")
    return told


def test_unary_operators() -> None:
    """Of one tensor."""
    values = torch.tensor(NUMBERS)
    assert [
        line for name, call in operators(UnaryUfuncInfo).items() for line in differences(name, call, [values])
    ] == []


def test_binary_operators() -> None:
    """Of all pairs of numbers."""
    one = torch.tensor(NUMBERS)[:, None].repeat(1, len(NUMBERS))
    pairs = [one, one.T.contiguous()]
    assert [line for name, call in operators(BinaryUfuncInfo).items() for line in differences(name, call, pairs)] == []


def test_reductions() -> None:
    """Of rows of four numbers."""
    rows = torch.tensor(ROWS)
    calls = {name: (lambda x, call=call: call(x, 1)) for name, call in operators(ReductionOpInfo).items()}
    assert [line for name, call in calls.items() for line in differences(name, call, [rows])] == []
