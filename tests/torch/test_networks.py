"""Networks are one graph each, without operators that PyTorch computes; and all that forward saves is PyTorch's."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
pytest.importorskip("transformers")

from torch import fx, nn  # noqa: E402
from torch._dynamo.backends.common import aot_autograd  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402
from torch_networks import NETWORKS, Network  # noqa: E402

from glow_mlir.torch import report  # noqa: E402
from glow_mlir.torch.backend import compile_graph, glow  # noqa: E402
from glow_mlir.torch.decompositions import decompositions  # noqa: E402
from glow_mlir.torch.graph_options import GraphOptions  # noqa: E402
from glow_mlir.torch.graph_reports import forget_graphs  # noqa: E402
from glow_mlir.torch.partition import partition  # noqa: E402
from glow_mlir.torch.recurrent_layers import put_recurrences  # noqa: E402

pytestmark = pytest.mark.extra


def tensors_of(value: Any) -> list[Any]:
    """The tensors in what a network gives."""
    return [item for item in pytree.tree_leaves(value) if isinstance(item, torch.Tensor)]


def built(name: str) -> Network:
    """A network without dropout, of known weights."""
    torch._dynamo.reset()
    forget_graphs()
    torch.manual_seed(0)
    network = NETWORKS[name]()
    for module in network.module.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return network


def loss_of(outputs: Any) -> Any:
    """A loss with a gradient of its own for each element."""
    return sum((item * torch.linspace(0.5, 1.5, item.numel(), dtype=item.dtype).reshape(item.shape)).sum()
               for item in tensors_of(outputs) if item.is_floating_point())  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_inference_is_one_graph(name: str) -> None:
    network = built(name)
    module = network.module.eval()
    with torch.no_grad():
        found = torch.compile(module, backend=glow, fullgraph=True, dynamic=False)(*network.arguments)
        expected = module(*network.arguments)
    for one, other in zip(tensors_of(found), tensors_of(expected), strict=True):
        assert one.stride() == other.stride()
        torch.testing.assert_close(one, other, atol=2e-5, rtol=1e-4)
    assert len(report().graphs) == 1
    assert not report().eager


@pytest.mark.parametrize("name", NETWORKS)
def test_training_is_one_graph(name: str) -> None:
    """In f64, so that what differs is no rounding."""
    network = built(name)
    module = network.module.double()
    arguments = pytree.tree_map_only(
        torch.Tensor, lambda item: item.double() if item.is_floating_point() else item, network.arguments
    )
    other = copy.deepcopy(module)
    loss_of(torch.compile(module, backend=glow, fullgraph=True, dynamic=False)(*arguments)).backward()
    loss_of(other(*arguments)).backward()
    for (parameter, one), two in zip(module.named_parameters(), other.parameters(), strict=True):
        assert (one.grad is None) == (two.grad is None), parameter
        if one.grad is not None and two.grad is not None:
            scale = two.grad.abs().max().clamp(min=1e-6)
            assert ((one.grad - two.grad).abs().max() / scale).item() < 1e-6, parameter
            assert one.grad.stride() == two.grad.stride(), parameter
    assert len(report().graphs) == 2
    assert not report().eager


def checked(module: fx.GraphModule, inputs: Sequence[Any], *, phase: str, seen: list[str]) -> Callable[..., Any]:
    """A compiled graph, all of whose results are compared with those of PyTorch."""
    compiled = compile_graph(module, inputs, phase=phase, options=GraphOptions({}, "error"))

    def call(given: list[Any]) -> list[Any]:
        copies = [item.clone() if isinstance(item, torch.Tensor) else item for item in given]
        with torch.no_grad():
            expected = module(*copies)
        found = compiled(given)
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            if not isinstance(other, torch.Tensor):
                assert one == other
                continue
            seen.append(phase)
            what = f"{phase} result {number}"
            assert (one.dtype, one.shape, one.stride()) == (other.dtype, other.shape, other.stride()), what
            finite = other[other.isfinite()].double()
            scale = finite.abs().max().item() if finite.numel() else 1.0
            torch.testing.assert_close(one, other, atol=1e-6 * max(scale, 1.0), rtol=0, equal_nan=True, msg=what)
        return found

    cast("Any", call)._boxed_call = True
    return call


@pytest.mark.parametrize("name", NETWORKS)
def test_all_that_is_saved_is_that_of_pytorch(name: str) -> None:
    """Value, shape and strides of every result of forward and backward, in f64."""
    network = built(name)
    seen: list[str] = []
    compiler = aot_autograd(
        fw_compiler=partial(checked, phase="forward", seen=seen),
        bw_compiler=partial(checked, phase="backward", seen=seen),
        decompositions=cast("Any", decompositions()),
        partition_fn=partition,
    )

    def backend(module: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        put_recurrences(module)
        return compiler(module, inputs)

    arguments = pytree.tree_map_only(
        torch.Tensor, lambda item: item.double() if item.is_floating_point() else item, network.arguments
    )
    function = torch.compile(network.module.double(), backend=backend, fullgraph=True, dynamic=False)
    loss_of(function(*arguments)).backward()
    assert {"forward", "backward"} <= set(seen)
