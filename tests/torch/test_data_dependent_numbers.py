"""Numbers and sizes that data or floats decide leave no operator to PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import Tensor  # noqa: E402

from glow_mlir.errors import GlowWarning  # noqa: E402
from glow_mlir.torch import report  # noqa: E402
from glow_mlir.torch.backend import glow  # noqa: E402
from glow_mlir.torch.graph_reports import forget_graphs  # noqa: E402

pytestmark = pytest.mark.extra


@pytest.fixture(autouse=True)
def with_captured_numbers() -> Generator[None]:
    """Dynamo does not break graphs at numbers and sizes that data decide."""
    torch._dynamo.reset()
    forget_graphs()
    torch.manual_seed(0)
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield


def check(function: Callable[..., Any], *calls: tuple[Any, ...], **keywords: Any) -> None:
    """The same results as PyTorch's, for several calls of one function, compiled by us alone."""
    compiled = torch.compile(function, backend=glow, **keywords)
    for arguments in calls:
        torch.testing.assert_close(compiled(*arguments), function(*arguments), atol=1e-5, rtol=1e-5)
    assert not report().eager


FROM_DATA: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "whole number": (lambda x: x * x.int().sum().item(), [(torch.ones(4),), (torch.full((4,), 3.0),)]),
    "size": (lambda n: torch.arange(n.item()) * 2, [(torch.tensor(5),), (torch.tensor(9),)]),
    "sizes of parts": (
        lambda x, n: [part * 2 for part in x.split(n.tolist())],
        [(torch.randn(6), torch.tensor([2, 4])), (torch.randn(6), torch.tensor([5, 1]))],
    ),
    "repetitions": (
        lambda x, n: x.repeat_interleave(n) * 2,
        [(torch.randn(3), torch.tensor([1, 2, 0])), (torch.randn(3), torch.tensor([4, 0, 3]))],
    ),
    "positions": (
        lambda x: (x.relu().nonzero() * 2, x.exp()),
        [(torch.randn(8),), (torch.ones(8),), (-torch.ones(8),)],
    ),
    "size of a size": (
        lambda x, n: torch.cat([x.relu()[x > 0], x.new_ones(n.item() + 1)]).cos(),
        [(torch.randn(8), torch.tensor(3)), (torch.randn(8), torch.tensor(6))],
    ),
    "strides from a size": (
        lambda x: torch.outer(x[x > 0], x[x < 0.5]),
        [(torch.randn(8),), (torch.ones(8),), (torch.zeros(8),)],
    ),
    "float": (lambda x: torch.where(x > x.mean().item(), x, 0 * x), [(torch.randn(8),), (torch.randn(8),)]),
}


@pytest.mark.parametrize("name", FROM_DATA)
def test_numbers_from_data(name: str) -> None:
    """Several values, compiled in one graph."""
    function, calls = FROM_DATA[name]
    check(function, *calls, fullgraph=True)
    assert len(report().graphs) == 1


def test_truth_values_and_floats_in_calls_of_pytorch() -> None:
    """Numbers that are no sizes are arguments of operators that PyTorch computes, also in backward."""

    def chosen(x: Tensor, flag: Tensor) -> Tensor:
        return torch.where(torch.tensor(flag.item()), x, -x)

    def raised(x: Tensor, power: Tensor) -> Tensor:
        return x.sum() ** power.item()

    cases = [(chosen, torch.tensor(True)), (chosen, torch.tensor(False)), (raised, torch.tensor(2.5))]
    for function, number in cases:
        found = []
        for call in (function, torch.compile(function, backend=glow)):
            x = torch.arange(1.0, 5.0, requires_grad=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", GlowWarning)
                call(x, number).sum().backward()
            found.append(x.grad)
        torch.testing.assert_close(*found)
    assert not report().failures


def test_negative_numbers_from_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch computes them."""
    monkeypatch.setenv("GLOW_FALLBACK", "")
    compiled = torch.compile(lambda x, n: x * n.item() + 1, backend=glow)
    x = torch.randn(4)
    compiled(x, torch.tensor(3))
    with pytest.warns(GlowWarning, match="is -3, not a size"):
        torch.testing.assert_close(compiled(x, torch.tensor(-3)), x * -3 + 1)


def test_branch_on_a_float_from_data() -> None:
    """Dynamo breaks the graph; its parts know of the float."""

    def call(x: Tensor) -> Tensor:
        wide = x.expand(3, 4)
        return torch.sin(wide) if torch.mean(x).item() > 0.5 else wide * 2

    check(call, (torch.rand(4),), (torch.rand(4) + 1,))


BY_FLOATS: dict[str, Callable[[Tensor], Tensor]] = {
    "nearest": lambda x: F.interpolate(x, scale_factor=1.5),
    "bilinear": lambda x: F.interpolate(x, scale_factor=(1.5, 0.7), mode="bilinear"),
    "rounded": lambda x: x + round(x.shape[-1] * 0.37),
    "quotient": lambda x: x.flatten()[: int(x.numel() / 7)] * 2,
    "root": lambda x: x.flatten()[: int(x.numel() ** 0.5)] * 2,
    "joined": lambda x: torch.cat([F.interpolate(x, scale_factor=1.5), F.interpolate(-x, scale_factor=1.5)]),
}


@pytest.mark.parametrize("name", BY_FLOATS)
def test_sizes_by_floats(name: str) -> None:
    """Three sizes, of one graph."""
    calls = [(torch.randn(1, 2, height, width),) for height, width in ((7, 9), (12, 5), (31, 30))]
    check(BY_FLOATS[name], *calls, dynamic=True)
    assert len(report().graphs) == 1


def test_tuples_in_arguments_of_pytorchs_operators() -> None:
    """Flex attention takes tuples of tensors and of numbers."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    q, k, v = (torch.randn(1, 2, 128, 16) for _ in range(3))
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 128, 128, device="cpu")

    def call(q: Tensor, k: Tensor, v: Tensor) -> Any:
        return flex_attention(q * 2, k, v, block_mask=mask) + 1

    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", GlowWarning)
        found = torch.compile(call, backend=glow, fullgraph=True)(q, k, v)
    expected = F.scaled_dot_product_attention(q * 2, k, v, is_causal=True) + 1
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
