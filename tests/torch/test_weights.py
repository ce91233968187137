"""Weights that are constants of a compilation: which writes to them calls see, and weights without memory."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from glow_mlir.errors import ExecutionError, GlowWarning  # noqa: E402
from glow_mlir.torch import report  # noqa: E402
from glow_mlir.torch.backend import glow  # noqa: E402
from glow_mlir.torch.graph_reports import forget_graphs  # noqa: E402

pytestmark = pytest.mark.extra


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Forget what was compiled."""
    torch._dynamo.reset()
    forget_graphs()
    torch.manual_seed(0)


def compiled(module: Any, **keywords: Any) -> Any:
    """A module compiled by this backend."""
    return torch.compile(module, backend=glow, **keywords)


def assert_equal(found: Tensor, expected: Tensor) -> None:
    """The same up to rounding."""
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_writes_that_pytorch_does_not_count() -> None:
    """Through `.data`, and through an array that shares the memory; with `constants=False`, to one element too."""
    layer, x = nn.Linear(64, 8).eval(), torch.randn(4, 64)
    with torch.no_grad():
        call = compiled(layer)
        assert_equal(call(x), layer(x))
        layer.weight.data.mul_(2)
        assert_equal(call(x), layer(x))
        layer.weight.data.mul_(2)
        assert_equal(call(x), layer(x))
        layer.bias.numpy()[...] = 3
        assert_equal(call(x), layer(x))
        assert report().graphs[0].reasons == ["1 weights changed"]
        call = compiled(layer, options={"constants": False})
        assert_equal(call(x), layer(x))
        layer.weight.data[3, 5] = 9
        assert_equal(call(x), layer(x))


class StridedWeights(nn.Module):
    """Weights in other layouts: with gaps, transposed, channels last, repeated, of less than a word."""

    def __init__(self) -> None:
        super().__init__()
        self.gapped = nn.Parameter(torch.randn(8, 16)[:, ::2])
        self.turned = nn.Parameter(torch.randn(6, 8).t())
        self.last = nn.Parameter(torch.randn(6, 1, 2, 2).to(memory_format=torch.channels_last))
        self.register_buffer("repeated", torch.randn(1, 6).expand(4, 6))
        self.register_buffer("empty", torch.zeros(0, 6))

    def forward(self, x: Tensor) -> Tensor:
        y = x @ self.gapped @ self.turned + self.repeated + self.empty.sum()
        return F.conv2d(y[:, :, None, None].expand(-1, -1, 3, 3), self.last, groups=6)


def test_uncounted_writes_to_weights_in_any_layout() -> None:
    """Through `.data`."""
    module, x = StridedWeights().eval(), torch.randn(4, 8)
    with torch.no_grad():
        call = compiled(module)
        assert_equal(call(x), module(x))
        for weight in (module.gapped, module.turned, module.last, module.repeated[:1]):
            weight.data.mul_(2)
            assert_equal(call(x), module(x))


def test_weights_without_memory() -> None:
    """Those of other devices are left to PyTorch; freed ones are an error, as in PyTorch."""
    with torch.no_grad():
        layer = nn.Linear(4000, 3, device="meta")
        with pytest.warns(GlowWarning, match="on the device 'meta'"):
            assert compiled(layer)(torch.empty(2, 4000, device="meta")).shape == (2, 3)
        torch._dynamo.reset()
        layer = nn.Linear(4000, 3)
        layer.weight.untyped_storage().resize_(0)
        with pytest.raises(ExecutionError, match=r"the memory of a weight of the shape \(3, 4000\) was freed"):
            compiled(layer)(torch.randn(2, 4000))
