"""Operators of torchvision's library."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
operators = pytest.importorskip("torchvision.ops")

from glow_mlir.torch import report  # noqa: E402
from glow_mlir.torch.backend import glow  # noqa: E402
from glow_mlir.torch.graph_reports import forget_graphs  # noqa: E402

pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("ignore::glow_mlir.errors.GlowWarning")]

REGIONS = ((0, 1.0, 2.0, 9.0, 8.0), (1, 0.0, 0.0, 15.0, 11.0), (1, 3.5, 2.25, 3.5, 2.5), (0, -3.0, 5.0, 30.0, 40.0))
"""The number of an image and two corners each: inside, all of it, almost a point, and beyond the edge."""


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("samples", [-1, 2])
@pytest.mark.parametrize("aligned", [False, True])
def test_regions_of_images(aligned: bool, samples: int, dynamic: bool) -> None:
    """Cells of regions, and the gradient of images, PyTorch's where regions differ by their samples."""
    torch._dynamo.reset()
    forget_graphs()
    torch.manual_seed(0)

    def function(x: Any, regions: Any) -> Any:
        return operators.roi_align(x.sin(), regions, (3, 2), 0.5, samples, aligned)

    images, regions = torch.randn(2, 4, 8, 10, requires_grad=True), torch.tensor(REGIONS)
    run = torch.compile(function, backend=glow, fullgraph=True, dynamic=dynamic)
    for count in (4, 3):
        found, expected = (each(images, regions[:count]) for each in (run, function))
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        one, two = (torch.autograd.grad(value.cos().sum(), images)[0] for value in (found, expected))
        torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-5)
    left = [operator.split(" ")[0] for operator in report().eager]
    assert left == ([] if samples > 0 else ["torchvision._roi_align_backward.default"])
