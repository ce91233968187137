"""`torch.compile(backend="glow")` computes what PyTorch computes, in whatever way it is called."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
from garbage import collect_garbage

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from glow_mlir.errors import GlowWarning, OptionError  # noqa: E402
from glow_mlir.torch import report  # noqa: E402
from glow_mlir.torch.backend import glow  # noqa: E402
from glow_mlir.torch.graph_reports import forget_graphs  # noqa: E402
from glow_mlir.torch.weights import WeightedCall  # noqa: E402

pytestmark = pytest.mark.extra


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Forget what was compiled, and begin with known random numbers."""
    torch._dynamo.reset()
    forget_graphs()
    torch.manual_seed(0)


def compiled(function: Any, **keywords: Any) -> Any:
    """A function or module, compiled in one graph."""
    return torch.compile(function, backend=glow, fullgraph=True, **keywords)


def network() -> Any:
    """Convolution, normalization, and a classifier."""
    layers = (nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5))
    return nn.Sequential(*layers)


IMAGES = (2, 3, 8, 8)


def assert_equal(one: Any, other: Any, tolerance: float = 1e-5) -> None:
    """Values, types, shapes and strides are the same."""
    assert (one.dtype, one.shape, one.stride()) == (other.dtype, other.shape, other.stride())
    torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


def test_entry_point() -> None:
    """PyTorch finds the backend by its name."""
    assert "glow" in torch._dynamo.list_backends()


def test_inference() -> None:
    """In evaluation, with gradients off."""
    model = network().eval()
    x = torch.randn(IMAGES)
    with torch.no_grad():
        assert_equal(compiled(model)(x), model(x))
    assert [graph.phase for graph in report().graphs] == ["inference"]


def test_inference_mode() -> None:
    """In `inference_mode`, on tensors without version counters as well."""
    model = network().eval()
    function = compiled(model)
    with torch.inference_mode():
        x = torch.randn(IMAGES)
        assert_equal(function(x), model(x))
        made_here = network().eval()
        assert_equal(compiled(made_here)(x), made_here(x))
        next(made_here.parameters()).add_(1)
        assert_equal(compiled(made_here)(x), made_here(x))


def test_training() -> None:
    """Gradients and running statistics."""
    model = network()
    other = copy.deepcopy(model)
    x = torch.randn(IMAGES)
    compiled(model)(x).square().sum().backward()
    other(x).square().sum().backward()
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert_equal(one.grad, two.grad, 1e-4)
    for one, two in zip(model.buffers(), other.buffers(), strict=True):
        assert_equal(one, two)
    assert [graph.phase for graph in report().graphs] == ["forward", "backward"]


def test_training_steps() -> None:
    """Parameters that an optimizer changes are read anew in each step."""
    model, other = (nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)) for _ in range(2))
    other.load_state_dict(model.state_dict())
    function, x = compiled(model), torch.randn(4, 6)
    for network_, call in ((model, function), (other, other)):
        optimizer = torch.optim.Adam(network_.parameters(), lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            call(x).square().sum().backward()
            optimizer.step()
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert_equal(one, two, 1e-4)


def test_changed_weights() -> None:
    """A weight that has changed is never stale, and constants come back when weights rest."""
    model = network().eval()
    function, x = compiled(model), torch.randn(IMAGES)
    with torch.no_grad():
        for number in range(30):
            if number in (2, 4):
                model[number % 4 * 2].weight.mul_(1.5)
            assert_equal(function(x), model(x))
    (graph,) = report().graphs
    assert graph.compilations == 3
    assert graph.reasons == ["1 weights changed", "weights rested for 8 calls"]


class Layer(nn.Module):
    """A layer of a program's own: PyTorch 2.13 does not trace containers that are compiled in place."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        return self.linear(x).relu()


def test_instances_share_a_graph() -> None:
    """Equal layers that are compiled one by one have weights of their own, packed once; a change is seen in its own."""
    layers: list[Any] = [Layer().eval() for _ in range(3)]
    other, x = copy.deepcopy(layers), torch.randn(4, 6)
    for layer in layers:
        layer.compile(backend="glow", dynamic=False)
    with torch.no_grad():
        for number in range(6):
            if number == 4:
                layers[1].linear.weight.mul_(1.5)
                other[1].linear.weight.mul_(1.5)
            for layer, same in zip(layers, other, strict=True):
                assert_equal(layer(x), same(x))
    (graph,) = report().graphs
    assert graph.reasons == ["another instance"] * 2


def test_a_compilation_that_fails_leaves_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """What interrupts the compilation behind a change is raised, and the next call compiles."""
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    function = compiled(model)
    with torch.no_grad():
        function(x)
        model.weight.mul_(2.0)
        with monkeypatch.context() as patch:
            patch.setattr(WeightedCall, "_use_state", Mock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                function(x)
        assert_equal(function(x), model(x))


def test_instances_that_are_gone_make_room() -> None:
    """A layer that takes the place of another takes its code over."""
    x = torch.randn(4, 6)
    with torch.no_grad():
        for _ in range(4):
            layer = nn.Linear(6, 6)
            function = compiled(layer)
            assert_equal(function(x), layer(x))
            del function, layer
            collect_garbage()
    assert report().graphs[0].reasons.count("another instance") <= 1


def test_loaded_state() -> None:
    """`load_state_dict`, and parameters that are replaced."""
    model = network().eval()
    function, x = compiled(model), torch.randn(IMAGES)
    with torch.no_grad():
        function(x)
        model.load_state_dict(network().state_dict())
        assert_equal(function(x), model(x))
        model[4].weight = nn.Parameter(torch.randn(5, 8 * 36))
        assert_equal(function(x), model(x))


def test_autocast() -> None:
    """bf16 by autocast is computed in bf16, as PyTorch casts."""
    model = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 8))
    x = torch.randn(4, 32)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        assert_equal(compiled(model)(x), model(x), 2e-2)


def test_threads() -> None:
    """Several threads call at once."""
    model = network().eval()
    function = compiled(model)
    inputs = [torch.randn(IMAGES) for _ in range(8)]
    results: list[Any] = [None] * len(inputs)

    def call(number: int) -> None:
        with torch.no_grad():
            results[number] = function(inputs[number])

    workers = [threading.Thread(target=call, args=(number,)) for number in range(len(inputs))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    with torch.no_grad():
        for x, found in zip(inputs, results, strict=True):
            assert_equal(found, model(x))


def test_deepcopy() -> None:
    """A copy of a compiled module has weights of its own."""
    model = torch.compile(network().eval(), backend=glow)
    x = torch.randn(IMAGES)
    with torch.no_grad():
        first = model(x)
        other = copy.deepcopy(model)
        for parameter in other.parameters():
            parameter.zero_()
        assert not other(x).any()
        assert_equal(model(x), first)


def test_hooks() -> None:
    """Hooks of modules, of tensors and of saved tensors run."""
    model = network()
    seen: list[str] = []
    packed: list[Any] = []

    def forward(*_: Any) -> None:
        seen.append("forward")

    def gradient(_: Any) -> None:
        seen.append("gradient")

    def pack(tensor: Any) -> Any:
        packed.append(tensor)
        return tensor

    def unpack(tensor: Any) -> Any:
        return tensor

    model[2].register_forward_hook(forward)
    model[4].weight.register_hook(gradient)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        torch.compile(model, backend=glow)(torch.randn(IMAGES)).sum().backward()
    assert seen[0] == "forward"
    assert "gradient" in seen
    assert packed


def test_tied_weights() -> None:
    """One parameter in two places gets the sum of both gradients."""

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(10, 6)
            self.head = nn.Linear(6, 10, bias=False)
            self.head.weight = self.table.weight

        def forward(self, tokens: Any) -> Any:
            return self.head(self.table(tokens))

    model = Tied()
    other, tokens = copy.deepcopy(model), torch.randint(0, 10, (2, 5))
    compiled(model)(tokens).square().sum().backward()
    other(tokens).square().sum().backward()
    assert_equal(model.table.weight.grad, other.table.weight.grad, 1e-4)
    model.eval()
    with torch.no_grad():
        assert_equal(compiled(model)(tokens), model(tokens))
        model.table.weight.add_(1)
        assert_equal(compiled(model)(tokens), model(tokens))


def test_changing_buffers() -> None:
    """Buffers that a call changes, in place and by parts."""

    class Counter(nn.Module):
        count: Tensor
        cache: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(()))
            self.register_buffer("cache", torch.zeros(4, 3))

        def forward(self, x: Any, place: Any) -> Any:
            self.count += 1
            self.cache.index_copy_(0, place, x)
            return self.cache.sum(0) * self.count

    model = Counter()
    other, function = copy.deepcopy(model), compiled(model)
    for number in range(4):
        x, place = torch.randn(1, 3), torch.tensor([number])
        with torch.no_grad():
            assert_equal(function(x, place), other(x, place))
    assert_equal(model.cache, other.cache)
    assert model.count == 4


def test_changed_input() -> None:
    """An argument that is changed in place, and one that is returned."""

    def function(x: Any, y: Any) -> Any:
        x.mul_(2)
        return x, y.t(), x + 1

    x, y = torch.randn(3, 4), torch.randn(3, 4)
    own = x.clone()
    results, wanted = compiled(function)(x, y), function(own, y)
    assert results[0] is x
    assert results[1].data_ptr() == y.data_ptr()
    assert_equal(x, own)
    for one, two in zip(results, wanted, strict=True):
        assert_equal(one, two)


def test_changed_view() -> None:
    """An argument with gaps that is changed in place, and what lies in them."""

    def function(x: Any) -> Any:
        x.add_(1)
        return x.sum()

    whole, other = torch.zeros(4, 6), torch.zeros(4, 6)
    assert_equal(compiled(function)(whole[:, ::2]), function(other[:, ::2]))
    assert_equal(whole, other)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda x: x[:, 1:5],
    "step": lambda x: x[::2],
    "transposed": lambda x: x.t(),
    "expanded": lambda x: x[:, :1].expand(6, 8),
    "diagonal": lambda x: x.diagonal(),
    "offset": lambda x: x[2],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str) -> None:
    """Inputs that are views, with and without gaps."""
    x = VIEWS[name](torch.randn(6, 8))

    def function(x: Any) -> Any:
        return (x * 2).sin(), x.sum(-1)

    for one, two in zip(compiled(function)(x), function(x), strict=True):
        torch.testing.assert_close(one, two)


def test_channels_last() -> None:
    """Memory formats of inputs and results are PyTorch's."""
    model = network()[:3].eval().to(memory_format=torch.channels_last)
    x = torch.randn(IMAGES).to(memory_format=torch.channels_last)
    with torch.no_grad():
        assert_equal(compiled(model)(x), model(x))


def test_zero_size() -> None:
    """Tensors without elements."""

    def function(x: Any) -> Any:
        return x.relu(), x.sum(), torch.cat([x, x])

    x = torch.randn(0, 4)
    for one, two in zip(compiled(function)(x), function(x), strict=True):
        assert_equal(one, two)


def test_complex_is_told() -> None:
    """What needs complex numbers PyTorch computes, and the report says so."""

    def function(x: Any) -> Any:
        return torch.fft.fft(x.sin()).abs() + 1

    x = torch.randn(8)
    with pytest.warns(GlowWarning, match="complex numbers are not supported"):
        torch.testing.assert_close(compiled(function)(x), function(x))
    assert any("complex" in reason for reason in report().eager.values())


def test_unsupported_operators_are_told() -> None:
    """The line of an operator that PyTorch computes is reported, and the rest is compiled."""

    def function(x: Any) -> Any:
        return torch.linalg.svd(x.sin())[1] * 2 + x.sum()

    x = torch.randn(4, 4)
    with pytest.warns(GlowWarning, match="_linalg_svd"):
        torch.testing.assert_close(compiled(function)(x), function(x))
    ((place, reason),) = report().eager.items()
    assert "test_backend.py" in place
    assert "not supported" in reason
    assert "_linalg_svd" in str(report())


def test_dynamic_shapes() -> None:
    """One graph and one compilation serve sizes of a range."""
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    function = compiled(model, dynamic=True)
    with torch.no_grad():
        for batch in (2, 5, 9, 3):
            x = torch.randn(batch, 8)
            assert_equal(function(x), model(x))
    assert len(report().graphs) == 1


def test_dynamic_training() -> None:
    """Gradients where sizes differ from call to call."""
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    other, function = copy.deepcopy(model), compiled(model, dynamic=True)
    for batch in (2, 5, 3):
        x = torch.randn(batch, 8)
        function(x).square().sum().backward()
        other(x).square().sum().backward()
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert_equal(one.grad, two.grad, 1e-4)


DECIDED: dict[str, Callable[[Any], Any]] = {
    "nonzero": lambda x: torch.nonzero(x > 0),
    "mask": lambda x: x[x > 0] * 2,
    "masked_select": lambda x: x.masked_select(x > 0).sum(),
    "unique": lambda x: torch.unique(x.round(), return_counts=True),
    "index_put": lambda x: torch.index_put(x, (x > 0,), x[x > 0] + 1),
}


@pytest.mark.parametrize("name", DECIDED)
@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_sizes_that_data_decides(name: str) -> None:
    """Results with as many elements as data says come from the graph, from operands of one size and of several."""
    function = compiled(DECIDED[name])
    for sizes in ((4, 4), (4, 4), (5, 3), (7, 3)):
        x = torch.randn(sizes)
        found, expected = function(x), DECIDED[name](x)
        pairs = [(found, expected)] if isinstance(found, torch.Tensor) else list(zip(found, expected, strict=True))
        for one, other in pairs:
            assert_equal(one, other)
    assert not report().eager


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_gradient_where_a_mask_holds() -> None:
    """The gradients of elements that a mask takes are where it holds."""
    x, other = (torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_() for _ in range(2))

    def total(value: Tensor) -> Tensor:
        return value[value > 0].square().sum()

    compiled(total)(x).backward()
    total(other).backward()
    assert_equal(x.grad, other.grad)


@pytest.mark.parametrize("axis", [0, 2])
def test_normalized_weights(axis: int) -> None:
    """Weights that are directions and magnitudes: gradients of both, and nothing is left to PyTorch."""
    layer = nn.utils.parametrizations.weight_norm(nn.Conv1d(3, 4, 3), dim=axis)
    x = torch.randn(2, 3, 8)
    found = torch.autograd.grad(compiled(layer)(x).sin().sum(), list(layer.parameters()))
    expected = torch.autograd.grad(layer(x).sin().sum(), list(layer.parameters()))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
    assert not report().eager


@pytest.mark.parametrize("dynamic", [False, True])
def test_products_of_groups(dynamic: bool) -> None:
    """Rows and matrices of groups, and the gradients of both, in the type that PyTorch traces."""

    def products(x: Any, matrices: Any, ends: Any) -> Any:
        return F.grouped_mm(x.sin(), matrices, offs=ends)

    function = compiled(products, dynamic=dynamic)
    matrices = torch.randn(4, 16, 8, dtype=torch.bfloat16, requires_grad=True)
    for ends in ([3, 3, 7, 12], [0, 16, 20, 20]):
        offsets = torch.tensor(ends, dtype=torch.int32)
        x = torch.randn(ends[-1], 16, dtype=torch.bfloat16, requires_grad=True)
        found, expected = function(x, matrices, offsets), products(x, matrices, offsets)
        assert_equal(found, expected, 0.05)
        one, two = (torch.autograd.grad(value, [x, matrices], torch.ones_like(value)) for value in (found, expected))
        for own, other in zip(one, two, strict=True):
            torch.testing.assert_close(own, other, atol=0.05, rtol=0.05)
    assert not report().eager


def test_random_numbers_follow_the_seed() -> None:
    """Dropout is drawn anew in each call, and again after the same seed; its gradient has the same mask."""

    def function(x: Any) -> Any:
        return F.dropout(x, 0.5, True)

    drop, x = compiled(function), torch.ones(1000, requires_grad=True)
    torch.manual_seed(1)
    first, second = drop(x), drop(x)
    torch.manual_seed(1)
    again = drop(x)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert 0.4 < (first == 0).float().mean() < 0.6
    (gradient,) = torch.autograd.grad(first.sum(), x)
    assert torch.equal(gradient, first.detach())


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers(kind: Any) -> None:
    """Layers of both directions are whole operators, in inference and training."""
    model = kind(5, 7, num_layers=2, bidirectional=True, batch_first=True)
    other, x = copy.deepcopy(model), torch.randn(4, 3, 5)
    compiled(model)(x)[0].square().sum().backward()
    other(x)[0].square().sum().backward()
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert_equal(one.grad, two.grad, 1e-4)
    with torch.no_grad():
        torch.testing.assert_close(compiled(model)(x), model(x))


def test_options() -> None:
    """Options are keywords of a session; others are refused in a line."""
    model = network().eval()
    x = torch.randn(IMAGES)
    with torch.no_grad():
        assert_equal(compiled(model, options={"precision": "bf16", "threads": 2})(x), model(x), 5e-2)
    with pytest.raises(OptionError, match="a session has no keyword 'speed'"):
        glow(torch.fx.symbolic_trace(model), [x], options={"speed": 11})


def test_narrow_gradients_at_a_threshold() -> None:
    """The threshold is not rounded to the type of the elements."""
    gradients = []
    for call in (lambda x: F.threshold(x, 0.3, 0.0), compiled(lambda x: F.threshold(x, 0.3, 0.0))):
        x = torch.tensor([0.2, 0.3, 0.4], dtype=torch.bfloat16, requires_grad=True)
        call(x).sum().backward()
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients)


def test_rows_of_the_maxima_of_empty_bags() -> None:
    """They are 0."""

    def call(table: Tensor) -> Any:
        return torch._embedding_bag(table, torch.tensor([3, 2, 3]), torch.tensor([0, 0, 3, 3]), False, 2)

    table = torch.randn(4, 5)
    torch.testing.assert_close(compiled(call)(table), call(table))


def test_gradients_at_nan() -> None:
    """They are not hidden."""
    for function in (
        F.relu,
        lambda x: F.threshold(x, 0.5, 0.0),
        lambda x: F.smooth_l1_loss(x, torch.zeros(6), reduction="none"),
        lambda x: F.smooth_l1_loss(x, torch.zeros(6), beta=0.5),
        lambda x: F.lp_pool1d(x[None], 1.5, 2),
    ):
        torch._dynamo.reset()
        gradients = []
        for call in (function, compiled(function)):
            x = torch.tensor([1.0, float("nan"), float("inf"), -float("inf"), 0.0, -2.0], requires_grad=True)
            y = call(x)
            y.backward(torch.arange(1.0, 1 + y.numel()).reshape(y.shape))
            gradients.append(x.grad)
        torch.testing.assert_close(*gradients, equal_nan=True)
