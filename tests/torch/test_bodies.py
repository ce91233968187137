"""The bodies of conditions and loops are compiled; PyTorch calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402
from torch._higher_order_ops.scan import scan  # noqa: E402
from torch._higher_order_ops.while_loop import while_loop  # noqa: E402

from glow_mlir.torch import report  # noqa: E402
from glow_mlir.torch.backend import glow  # noqa: E402
from glow_mlir.torch.graph_reports import forget_graphs  # noqa: E402

pytestmark = [
    pytest.mark.extra,
    pytest.mark.filterwarnings("ignore:.*torch.ops.higher_order"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor"),
]


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Forget what was compiled."""
    torch._dynamo.reset()
    forget_graphs()
    torch.manual_seed(0)


def condition(x: Tensor, w: Tensor) -> Any:
    """One of two branches."""
    return torch.cond(x.sum() > 0, lambda x: x.sin() @ w + 1, lambda x: (x.cos() * 2) @ w, (x * 2,)) + 1


def loop(x: Tensor, w: Tensor) -> Any:
    """A loop with a counter, whose condition returns a tensor."""
    return while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, (y @ w).tanh()), (torch.tensor(0), x))


def recurrence(x: Tensor, w: Tensor) -> Any:
    """A loop over rows."""
    return scan(lambda c, a: ((c @ w + a).tanh(), c * 2), torch.zeros(8), x)


@pytest.mark.parametrize("function", [condition, loop, recurrence])
def test_bodies_are_compiled(function: Callable[..., Any]) -> None:
    """Equal results; the graphs of bodies ran, and nothing failed."""
    x, w = torch.randn(4, 8), torch.randn(8, 8)
    compiled = torch.compile(function, backend=glow, fullgraph=True)
    with torch.no_grad():
        for value in (x, -x, x + 1):
            torch.testing.assert_close(compiled(value, w), function(value, w), atol=1e-4, rtol=1e-4)
    bodies = [graph for graph in report().graphs if graph.phase == "body"]
    assert sum(graph.calls for graph in bodies) >= 3
    assert not report().failures
    assert all(operator.startswith("torch.ops.higher_order") for operator in report().eager)


def test_gradients() -> None:
    """Through a condition."""
    w, gradients = torch.randn(8, 8), []
    for call in (condition, torch.compile(condition, backend=glow)):
        x = torch.arange(32.0).reshape(4, 8).div(32).requires_grad_()
        call(x, w).square().sum().backward()
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients)


def test_spans_of_the_profiler() -> None:
    """Each call of a graph is a span with its number and phase."""
    compiled = torch.compile(lambda x: x.sin() + 1, backend=glow)
    compiled(torch.ones(3))
    with torch.profiler.profile() as profile:
        compiled(torch.ones(3))
    assert [event.key for event in profile.key_averages() if event.key.startswith("glow")] == [
        "glow: graph 0, inference"
    ]
