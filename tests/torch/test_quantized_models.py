"""Graphs with codes, as PyTorch's quantization in graphs (PT2E) writes them, compute what PyTorch computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
decomposed = pytest.importorskip("torch.ao.quantization.fx._decomposed")

from torch import Tensor, nn  # noqa: E402

from glow_mlir.torch import exported, from_torch  # noqa: E402

pytestmark = pytest.mark.extra


class Quantized(nn.Module):
    """A fully connected layer on codes of 8 bits, with a scale for each row of the weight."""

    scales: Tensor

    def __init__(self) -> None:
        super().__init__()
        weight = torch.randn(5, 16)
        self.register_buffer("scales", weight.abs().amax(1) / 127)
        self.register_buffer("zeros", torch.zeros(5, dtype=torch.int64))
        codes = (weight / self.scales[:, None]).round().clamp(-127, 127).to(torch.int8)
        self.register_buffer("codes", codes)

    def forward(self, x: Any) -> Any:
        ops = torch.ops.quantized_decomposed
        codes = ops.quantize_per_tensor(x, 0.02, 3, -128, 127, torch.int8)
        numbers = ops.dequantize_per_tensor(codes, 0.02, 3, -128, 127, torch.int8)
        weight = ops.dequantize_per_channel(self.codes, self.scales, self.zeros, 0, -127, 127, torch.int8)
        y = nn.functional.linear(numbers, weight)
        return ops.dequantize_per_tensor(
            ops.quantize_per_tensor(y, 0.05, 0, -100, 100, torch.int8), 0.05, 0, -100, 100, torch.int8
        )


def test_quantized_layer() -> None:
    torch.manual_seed(0)
    model, x = Quantized(), torch.randn(4, 16)
    session = from_torch(model, (x,))
    (found,) = session.run(None, {"x": x.numpy()})
    expected = model(x).numpy()
    # A number between two codes may become either.
    assert np.abs(found - expected).max() <= 0.05 + 1e-6
    assert (found != expected).mean() < 0.1


def test_codes_are_exact() -> None:
    class Codes(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.ops.quantized_decomposed.quantize_per_tensor(x, 0.5, 10, 0, 200, torch.uint8)

    x = torch.tensor([-100.0, -5.0, 0.0, 0.25, 0.75, 30.2, 200.0])
    (found,) = from_torch(Codes(), (x,)).run(None, {"x": x.numpy()})
    np.testing.assert_array_equal(found, Codes()(x).numpy())
    assert "quant.uniform" in str(exported(Codes(), (x,)).module({}))
