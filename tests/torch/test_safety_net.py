"""A failure to compile ends no program: PyTorch computes, a warning and the report name the reason."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from glow_mlir.api.model_session import ModelSession  # noqa: E402
from glow_mlir.driver.pass_runner import PassRun  # noqa: E402
from glow_mlir.errors import CancelledError, ExecutionError, GlowError, GlowWarning, OptionError  # noqa: E402
from glow_mlir.frontends.torch import importer  # noqa: E402
from glow_mlir.torch import backend, compiled_graph, partition, report  # noqa: E402
from glow_mlir.torch.backend import glow  # noqa: E402
from glow_mlir.torch.graph_reports import forget_graphs  # noqa: E402

pytestmark = pytest.mark.extra


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Forget what was compiled; the default of users, and an empty folder for reproducers."""
    torch._dynamo.reset()
    forget_graphs()
    torch.manual_seed(0)
    monkeypatch.setenv("GLOW_FALLBACK", "")
    monkeypatch.chdir(tmp_path)


class InjectedError(Exception):
    """What fails here on purpose."""


def network() -> Any:
    """Convolution, normalization, dropout-free attention-like products, and a classifier."""
    layers = (nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5))
    return nn.Sequential(*layers, nn.LayerNorm(5), nn.Softmax(-1))


def gradients_of(call: Callable[[Tensor], Tensor], module: Any, x: Tensor) -> list[Tensor]:
    """The result of a training step, and the gradients of the parameters."""
    module.zero_grad()
    found = call(x)
    found.square().sum().backward()
    return [found.detach(), *(parameter.grad.clone() for parameter in module.parameters())]


def check_training_and_inference() -> None:
    """Both give the results of PyTorch, with warnings of the backend."""
    module = network()
    x = torch.randn(2, 3, 8, 8)
    compiled = torch.compile(module, backend=glow, options={"cache": False})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GlowWarning)
        found = gradients_of(compiled, module, x)
        expected = gradients_of(module, module, x)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
        module.eval()
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), module(x), atol=1e-5, rtol=1e-4)


def passes_of_a_compilation() -> list[str]:
    """The names of the passes that run for the network, in order."""
    names: dict[str, None] = {}
    apply = PassRun._apply

    def recorded(self: PassRun, item: Any) -> None:
        names[item.name] = None
        apply(self, item)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PassRun, "_apply", recorded)
        check_training_and_inference()
    return list(names)


def check_with_failing_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure of one pass, always when it runs."""
    apply = PassRun._apply

    def failing(self: PassRun, item: Any) -> None:
        if item.name == name:
            raise InjectedError(name)
        apply(self, item)

    torch._dynamo.reset()
    forget_graphs()
    with monkeypatch.context() as patch:
        patch.setattr(PassRun, "_apply", failing)
        check_training_and_inference()
    assert any(name in reason for reason in report().failures.values()), name


def test_a_failing_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first pass and one in the middle of the pipeline."""
    names = passes_of_a_compilation()
    check_with_failing_pass(names[0], monkeypatch)
    check_with_failing_pass(names[len(names) // 2], monkeypatch)


@pytest.mark.long
def test_each_failing_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pass of the pipeline in turn."""
    for name in passes_of_a_compilation():
        check_with_failing_pass(name, monkeypatch)


def targets_of_the_network() -> list[str]:
    """The operators that are imported for the network."""
    asked: dict[str, None] = {}
    importer_of = importer.importer_of

    def recorded(target: str) -> Any:
        asked[target] = None
        return importer_of(target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importer, "importer_of", recorded)
        check_training_and_inference()
    return [target for target in asked if importer_of(target) is not None]


def check_with_failing_importer(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the operator itself is left to PyTorch."""
    importer_of = importer.importer_of

    def failing(*_: Any, **__: Any) -> Any:
        raise InjectedError("here")

    torch._dynamo.reset()
    forget_graphs()
    with monkeypatch.context() as patch:
        patch.setattr(importer, "importer_of", lambda name: failing if name == target else importer_of(name))
        check_training_and_inference()
    assert {operator.split(" ")[0] for operator in report().eager} == {target}
    assert all("InjectedError: here" in reason for reason in report().eager.values())


def test_a_failing_importer(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator of forward and backward."""
    check_with_failing_importer("aten.convolution_backward.default", monkeypatch)


@pytest.mark.long
def test_each_failing_importer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every operator of the network in turn."""
    for target in targets_of_the_network():
        check_with_failing_importer(target, monkeypatch)


FRONT_END: dict[str, tuple[Any, str]] = {
    "capture": (compiled_graph, "captured"),
    "session": (ModelSession, "of"),
    "trace": (backend, "put_recurrences"),
    "weights": (compiled_graph, "Weights"),
    "changes": (compiled_graph, "without_changes"),
    "partition": (partition, "_take_again"),
}
"""Part of the front end → its module or class, and the name of the function."""


@pytest.mark.parametrize("part", FRONT_END)
def test_each_failing_part_of_the_front_end(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a graph fails before the passes."""

    def failing(*_: Any, **__: Any) -> Any:
        raise InjectedError(part)

    monkeypatch.setattr(*FRONT_END[part], failing)
    check_training_and_inference()
    if part != "partition":
        assert report().failures
    assert all(reason == f"InjectedError: {part}" for reason in report().failures.values())


def test_a_segment_that_fails_is_left_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other segments are compiled."""
    compile_ = compiled_graph.compiled_call

    def failing(graph: Any, *given: Any) -> Any:
        if [node.target for node in graph.nodes] == ["aten.cos.default"]:
            raise InjectedError("cos")
        return compile_(graph, *given)

    monkeypatch.setattr(compiled_graph, "compiled_call", failing)

    @torch.compile(backend=glow)
    def call(x: Tensor) -> Tensor:
        return torch.linalg.svd(x.cos())[1].sin()

    x = torch.randn(3, 3)
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always", GlowWarning)
        torch.testing.assert_close(call(x), torch.linalg.svd(x.cos())[1].sin())
        call(x)
    (failure,) = report().failures.items()
    assert failure[0].startswith("a part of 1 operator (")
    assert failure[1] == "InjectedError: cos"
    told = [str(item.message) for item in caught if "compiling it failed" in str(item.message)]
    assert len(told) == 1
    assert "options={'fallback': 'error'}" in told[0]
    assert "compiling it failed: InjectedError: cos" in str(report())


def test_a_later_compilation_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code for changed weights is compiled in a later call."""
    layer = nn.Linear(4, 3)
    compiled = torch.compile(layer, backend=glow)
    x = torch.randn(2, 4)
    with torch.no_grad():
        compiled(x)
        layer.weight.mul_(2)

        def failing(*_: Any, **__: Any) -> Any:
            raise InjectedError("late")

        monkeypatch.setattr("glow_mlir.torch.compiled_graph.compiled_call", failing)
        with pytest.warns(GlowWarning, match="InjectedError: late"):
            torch.testing.assert_close(compiled(x), layer(x))
        torch.testing.assert_close(compiled(x), layer(x))


def test_errors_if_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """`fallback="error"` raises them, as an option and as the default of the environment."""
    check: Callable[..., Any] = torch.compile(nn.Linear(4, 3), backend=glow, options={"fallback": "error"})
    apply = PassRun._apply

    def failing(self: PassRun, item: Any) -> None:
        if item.name == "canonicalize":
            raise InjectedError("here")
        apply(self, item)

    monkeypatch.setattr(PassRun, "_apply", failing)
    with pytest.raises(GlowError, match="InjectedError"):
        check(torch.ones(2, 4))
    torch._dynamo.reset()
    monkeypatch.setenv("GLOW_FALLBACK", "error")
    with pytest.raises(GlowError, match="InjectedError"):
        torch.compile(nn.Linear(4, 3), backend=glow)(torch.ones(2, 4))
    with pytest.raises(OptionError, match="fallback='eager' is invalid"):
        glow(torch.fx.symbolic_trace(nn.Identity()), [], options={"fallback": "eager"})


@pytest.mark.parametrize("error", [CancelledError("ended"), MemoryError(), KeyboardInterrupt()])
def test_what_is_no_failure_passes(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancellation, lack of memory and Ctrl-C."""

    def failing(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr("glow_mlir.torch.compiled_graph.compiled_call", failing)
    with pytest.raises(type(error)):
        torch.compile(nn.Linear(4, 3), backend=glow)(torch.ones(2, 4))
    assert not report().failures


def test_errors_of_data_are_no_failures() -> None:
    """An index out of range is raised, not computed by PyTorch."""
    compiled = torch.compile(lambda table, at: F.embedding(at, table), backend=glow, dynamic=True)
    for kind in (ExecutionError, IndexError, RuntimeError):
        with pytest.raises(kind, match="an index is out of range"):
            compiled(torch.randn(4, 3), torch.tensor([1, 9]))
    classes = torch.compile(lambda at: F.one_hot(at, 4), backend=glow)
    with pytest.warns(GlowWarning, match="_assert_async"), pytest.raises(RuntimeError, match="Class values"):
        classes(torch.tensor([9]))
    assert not report().failures


def test_errors_of_operators_that_pytorch_computes() -> None:
    """They are raised as they are; later calls are compiled."""
    compiled = torch.compile(lambda x: torch.linalg.cholesky(x + 0) * 2, backend=glow)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GlowWarning)
        compiled(torch.eye(3))
    with pytest.raises(torch.linalg.LinAlgError, match="not positive-definite"):
        compiled(-torch.eye(3))
    torch.testing.assert_close(compiled(4 * torch.eye(3)), 4 * torch.eye(3))
    assert not report().failures


def test_wrong_values_of_options() -> None:
    """They are raised, not left to PyTorch."""
    for options, told in (({"precision": "bf17"}, "no precision 'bf17'"), ({"backend": "gpu9"}, "no backend 'gpu9'")):
        torch._dynamo.reset()
        with pytest.raises(OptionError, match=told):
            torch.compile(nn.Linear(4, 3), backend=glow, options=options)(torch.ones(2, 4))


def test_constants_in_parts_that_pytorch_computes() -> None:
    """Complex ones, and those of a part that fails."""

    def call(x: Tensor) -> Tensor:
        return (x * torch.tensor([1 + 2j, 3, 4, 5j])).abs() + torch.tensor([1.0, 2, 3, 4])

    x = torch.randn(3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GlowWarning)
        torch.testing.assert_close(torch.compile(call, backend=glow)(x), call(x))
    assert not report().failures
    assert not any("constant" in operator for operator in report().eager)


def test_modes_and_options_of_inductor() -> None:
    """They are read as the nearest of ours, or ignored, with a warning."""
    x = torch.ones(2, 4)
    for keywords, told in (
        ({"mode": "max-autotune"}, r"options=\{tune=True\}"),
        ({"mode": "reduce-overhead"}, "has no effect"),
        ({"options": {"epilogue_fusion": True, "max_autotune": True}}, "epilogue_fusion, max_autotune"),
    ):
        torch._dynamo.reset()
        layer = nn.Linear(4, 3)
        with pytest.warns(GlowWarning, match=told):
            found = torch.compile(layer, backend="glow", **keywords)(x)
        torch.testing.assert_close(found, layer(x))
