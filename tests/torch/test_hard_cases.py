"""What could go wrong without an error: weights, views, strides and operators that are not what they look like."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from glow_mlir.errors import GlowWarning  # noqa: E402
from glow_mlir.torch.backend import glow  # noqa: E402

pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("ignore::glow_mlir.errors.GlowWarning")]


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Forget what was compiled."""
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(function: Any, **keywords: Any) -> Any:
    return torch.compile(function, backend=glow, **keywords)


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    f"{kind.__name__}-{word}": (lambda kind, word: lambda parameters: kind(parameters, lr=0.1, **{word: True}))(
        kind, word
    )
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)
    for word in ("fused", "foreach")
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_is_noticed(name: str) -> None:
    model, x = nn.Linear(4, 3), torch.randn(2, 4)
    function, optimizer = compiled(model), OPTIMIZERS[name](model.parameters())
    for _ in range(3):
        with torch.no_grad():
            torch.testing.assert_close(function(x), model(x))
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()


def test_a_new_weight_at_an_old_address() -> None:
    model, x = nn.Linear(512, 512, bias=False), torch.randn(2, 512)
    function = compiled(model)
    with torch.no_grad():
        for _ in range(4):
            torch.testing.assert_close(function(x), model(x), atol=1e-4, rtol=1e-4)
            del model.weight
            model.weight = nn.Linear(512, 512, bias=False).weight


def test_weights_with_gaps() -> None:
    class Module(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(64, 128)[:, ::2])

        def forward(self, x: Any) -> Any:
            return x @ self.weight

    model, x = Module(), torch.randn(3, 64)
    function = compiled(model)
    with torch.no_grad():
        for _ in range(4):
            torch.testing.assert_close(function(x), model(x), atol=1e-4, rtol=1e-4)
            model.weight.mul_(1.5)


def test_two_instances_in_two_threads() -> None:
    models = [nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)) for _ in range(2)]
    functions, x = [compiled(model) for model in models], torch.randn(3, 8)
    wrong: list[int] = []

    def work(number: int) -> None:
        with torch.no_grad():
            expected = models[number](x)
            for _ in range(100):
                if not torch.allclose(functions[number](x), expected, atol=1e-5):
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("dynamic", [None, True])
def test_views_from_places_that_follow_from_sizes(dynamic: bool | None) -> None:
    def function(x: Any) -> Any:
        return x[x.shape[0] // 2 :], x + 1

    run = compiled(function, dynamic=dynamic)
    for count in (8, 12, 20):
        x = torch.randn(count)
        for one, other in zip(run(x), function(x), strict=True):
            torch.testing.assert_close(one, other)


def test_inputs_that_share_memory_when_traced() -> None:
    def function(x: Any, y: Any) -> Any:
        return x[1:], y * 2

    run, whole = compiled(function), torch.randn(8)
    run(whole[:4], whole[4:])
    x, y = torch.randn(4), torch.randn(4)
    for one, other in zip(run(x, y), function(x, y), strict=True):
        torch.testing.assert_close(one, other)


def test_negative_views() -> None:
    def function(x: Any) -> Any:
        return x * 2 + 1

    x = torch._neg_view(torch.tensor([1.0, 2.0, 3.0]))
    torch.testing.assert_close(compiled(function)(x), function(x))


@pytest.mark.parametrize("dynamic", [None, True])
def test_unsupported_operators_of_any_size(dynamic: bool | None) -> None:
    def function(x: Any) -> Any:
        return torch.linalg.svd(x.sin())[1] * 2

    run = compiled(function, dynamic=dynamic)
    for count in (3, 4, 5):
        x = torch.randn(count, count)
        torch.testing.assert_close(run(x), function(x))


def test_checkpointed_dropout() -> None:
    from torch.utils import checkpoint

    layer = nn.Linear(8, 8)

    def dropped(x: Any) -> Any:
        return F.dropout(layer(x).relu(), 0.5)

    def function(x: Any) -> Any:
        return checkpoint.checkpoint(dropped, x, use_reentrant=False).sum()

    for count in (4, 6):
        x = torch.randn(count, 8, requires_grad=True)
        compiled(function)(x).backward()
        assert x.grad is not None
        assert x.grad.isfinite().all()


COMPLEX: dict[str, Callable[[Any], Any]] = {
    "literal": lambda x: (x * 1j).abs() + 1,
    "full": lambda x: torch.full((2,), 1 + 2j).abs() + x,
    "input": lambda x: torch.complex(x, x).abs() * 2,
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers_are_left_to_pytorch(name: str) -> None:
    x = torch.tensor([1.0, 2.0])
    torch.testing.assert_close(compiled(COMPLEX[name])(x), COMPLEX[name](x))


def test_a_complex_argument() -> None:
    def function(x: Any) -> Any:
        return x.abs() + 1

    x = torch.tensor([3 + 4j])
    torch.testing.assert_close(compiled(function)(x), function(x))


def test_side_effects_happen() -> None:
    log: list[float] = []

    @torch.library.custom_op("glow_tests::note", mutates_args=())
    def note(x: Tensor) -> None:
        log.append(float(x.sum()))

    @note.register_fake
    def _(x: Tensor) -> None:
        return None

    def function(x: Any) -> Any:
        torch.ops.glow_tests.note(x)
        return x + 1

    torch.library._register_effectful_op("glow_tests::note", torch._higher_order_ops.effects._EffectType.ORDERED)
    compiled(function)(torch.ones(3))
    assert log == [3.0]


def test_strides_that_an_operator_does_not_keep() -> None:
    @torch.library.custom_op("glow_tests::turned", mutates_args=())
    def turned(x: Tensor) -> Tensor:
        return x.t().contiguous().t()

    @turned.register_fake
    def _(x: Tensor) -> Tensor:
        return torch.empty_like(x)

    def function(x: Any) -> Any:
        return turned(x * 2) + 1

    x = torch.randn(3, 4)
    torch.testing.assert_close(compiled(function)(x), x * 2 + 1)


def test_truth_values_of_sizes() -> None:
    def function(x: Any) -> Any:
        return x * 2, x.shape[0] > 3

    run = compiled(function)
    for count in (2, 5, 7):
        assert run(torch.ones(count))[1] == (count > 3)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_in_halves(kind: Any) -> None:
    model, x = kind(5, 7), torch.randn(4, 3, 5)
    with torch.no_grad():
        expected = model(x)[0]
        with torch.autocast("cpu", torch.bfloat16):
            torch.testing.assert_close(compiled(model)(x)[0].float(), expected, atol=3e-2, rtol=3e-2)
    half = kind(5, 7).bfloat16()
    compiled(half)(x.bfloat16())[0].float().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in half.parameters())


def test_queries_that_see_no_key() -> None:
    seen = torch.ones(4, 4, dtype=torch.bool)
    seen[1] = False
    own = [torch.randn(1, 2, 4, 8, requires_grad=True) for _ in range(3)]
    other = [item.detach().clone().requires_grad_() for item in own]

    def function(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)

    compiled(function)(*own).sin().sum().backward()
    function(*other).sin().sum().backward()
    for one, two in zip(own, other, strict=True):
        torch.testing.assert_close(one.grad, two.grad, atol=1e-5, rtol=1e-4)


def test_another_default_device() -> None:
    def function(x: Any) -> Any:
        return x * 2

    run, x = compiled(function), torch.ones(3)
    run(x)
    with warnings.catch_warnings(), torch.device("meta"):
        warnings.simplefilter("ignore")
        torch.testing.assert_close(run(x), x * 2)


def test_places_that_count_from_the_beginning_of_memory() -> None:
    def function(x: Any) -> Any:
        return x.as_strided((2,), (1,), 4) + 0

    run, whole = compiled(function), torch.randn(12)
    for begin in (2, 3):
        torch.testing.assert_close(run(whole[begin : begin + 6]), function(whole[begin : begin + 6]))


def test_cubes_at_borders() -> None:
    """PyTorch moves each of the elements around a place into the image, ONNX the place: PyTorch computes it."""

    def sampled(x: Any, grid: Any) -> Any:
        return F.grid_sample(torch.relu(x), grid, mode="bicubic", padding_mode="border", align_corners=False)

    x, grid = torch.randn(1, 2, 5, 5), torch.rand(1, 4, 4, 2) * 4 - 2
    with pytest.warns(GlowWarning, match="grid_sampler_2d"):
        found = torch.compile(sampled, backend="glow")(x, grid)
    torch.testing.assert_close(found, sampled(x, grid))
