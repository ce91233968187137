"""Random numbers of compiled PyTorch: gradients are those of the numbers that were drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from glow_mlir.torch.backend import glow  # noqa: E402

pytestmark = pytest.mark.extra


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Forget what was compiled."""
    torch._dynamo.reset()


def noisy(x: Any) -> Any:
    """A product with numbers that are drawn."""
    return x * torch.rand_like(x)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "dropout": lambda x: F.dropout(x, 0.3),
    "dropout of channels": lambda x: F.dropout2d(x, 0.5),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "noise": noisy,
}
"""Functions that multiply by random numbers."""


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_of_the_same_numbers(name: str, backend: str) -> None:
    """Each element is multiplied by a number, which is its gradient."""
    run = torch.compile(FUNCTIONS[name], backend=glow, fullgraph=True, options={"backend": backend})
    x = torch.linspace(-2, 2, 512).reshape(2, 16, 4, 4).requires_grad_()
    for _ in range(2):
        found = run(x)
        (gradient,) = torch.autograd.grad(found.sum(), x)
        torch.testing.assert_close(found, x * gradient)
        assert 0 < (gradient != 0).sum()
        assert gradient.unique().numel() > 1


def test_numbers_are_drawn_anew() -> None:
    """In each call."""
    run = torch.compile(noisy, backend=glow, fullgraph=True)
    x = torch.ones(64)
    assert not torch.equal(run(x), run(x))
