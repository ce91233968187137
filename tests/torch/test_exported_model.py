"""Modules of PyTorch as sessions, files, bundles and training sessions."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

import glow_mlir  # noqa: E402
from glow_mlir.api.bundles import bundle_of  # noqa: E402
from glow_mlir.api.compile_options import CompileOptions  # noqa: E402
from glow_mlir.errors import GlowWarning, InputError, ModelError, OptionError, UnsupportedError  # noqa: E402
from glow_mlir.torch import exported, from_torch  # noqa: E402

pytestmark = pytest.mark.extra


class Classifier(nn.Module):
    """Two layers, whose outputs have names."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        hidden = torch.relu(self.first(x))
        return {"logits": self.second(hidden), "hidden": hidden}


class Counter(nn.Module):
    """Counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return x * self.calls


@pytest.fixture
def classifier() -> Classifier:
    torch.manual_seed(0)
    return Classifier().eval()


X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6)


def test_session(classifier: Classifier) -> None:
    session = from_torch(classifier, (torch.zeros(2, 6),))
    assert [item.name for item in session.get_outputs()] == ["logits", "hidden"]
    found = session.run(None, {"x": X})
    expected = classifier(torch.from_numpy(X))
    np.testing.assert_allclose(found[0], expected["logits"].detach().numpy(), atol=1e-6)


def test_dynamic_shapes(classifier: Classifier) -> None:
    shapes = {"x": {0: torch.export.Dim("batch", max=64)}}
    session = from_torch(classifier, (torch.zeros(2, 6),), dynamic_shapes=shapes)
    assert session.get_inputs()[0].shape == ["batch", 6]
    for batch in (1, 3, 7):
        x = np.random.default_rng(0).standard_normal((batch, 6), np.float32)
        expected = classifier(torch.from_numpy(x))["logits"].detach().numpy()
        np.testing.assert_allclose(session.run(["logits"], {"x": x})[0], expected, atol=1e-6)


def test_state() -> None:
    session = from_torch(Counter(), (torch.zeros(3),))
    ones = np.ones(3, np.float32)
    assert [session.run(None, {"x": ones})[0][0] for _ in range(3)] == [1, 2, 3]


def assert_same_steps(
    session: Any,
    module: nn.Module,
    name: str,
    x: Any,
    targets: Any,
    scores: Callable[[Any], Any] = lambda found: found,
) -> None:
    """Steps of a session have the losses of PyTorch's; `scores` are in what the module gives for the input `name`."""
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=session.learning_rate)
    for _ in range(4):
        loss = session.step({name: x.numpy(), "targets": targets.numpy()})
        optimizer.zero_grad()
        expected = nn.functional.cross_entropy(scores(module(x)), targets)
        expected.backward()
        optimizer.step()
        assert abs(loss - expected.item()) < 1e-5


def test_training(classifier: Classifier) -> None:
    """Parameters have PyTorch's names, and a step is PyTorch's."""
    session = glow_mlir.TrainingSession(
        exported(classifier, (torch.zeros(2, 6),)), loss={"logits": "cross_entropy"}, optimizer="sgd"
    )
    assert set(session.parameters) == {name for name, _ in classifier.named_parameters()}
    assert_same_steps(
        session, classifier, "x", torch.from_numpy(X), torch.tensor([0, 2]), lambda found: found["logits"]
    )


class Pooled(nn.Module):
    """Parameters that begin equal, one of a single element, a buffer, and operators of several results."""

    def __init__(self) -> None:
        super().__init__()
        begin = [nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU()]
        self.layers = nn.Sequential(*begin, nn.MaxPool2d(2), nn.BatchNorm2d(3), nn.Flatten())
        self.norms = nn.ModuleList(nn.LayerNorm(48) for _ in range(2))
        self.scale = nn.Parameter(torch.ones(1))
        self.head = nn.Linear(48, 3)
        self.register_buffer("shift", torch.full((48,), 0.5))

    def forward(self, x: Any) -> Any:
        x = self.norms[0](self.layers(x)) + self.shift
        return self.head(torch.tanh(self.norms[1](x)) * self.scale)


def test_training_of_equal_parameters() -> None:
    """Parameters that begin equal are apart, buffers stay what they are, and a step is PyTorch's."""
    module, images = Pooled(), torch.randn(4, 3, 8, 8)
    session = glow_mlir.TrainingSession(exported(module.eval(), (images,)), loss="cross_entropy", optimizer="sgd")
    assert set(session.parameters) == {name for name, _ in module.named_parameters()}
    assert_same_steps(session, module.train(), "x", images, torch.tensor([0, 2, 1, 1]))
    state = session.get_state()
    for name, parameter in module.named_parameters():
        np.testing.assert_allclose(state[name], parameter.detach().numpy(), atol=1e-5)


class Tied(nn.Module):
    """A table that is the weight of the last layer too, and a bias that is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, 8)
        self.layer = nn.Linear(8, 8)
        self.layer.bias.requires_grad_(False)
        self.head = nn.Linear(8, 20, bias=False)
        self.head.weight = self.table.weight

    def forward(self, words: Any) -> Any:
        return self.head(torch.tanh(self.layer(self.table(words))).mean(1))


def test_training_of_tied_and_frozen_parameters() -> None:
    """What is tied is one parameter under its first name; what requires no gradient stays what it is."""
    module, words, targets = Tied(), torch.randint(0, 20, (4, 5)), torch.randint(0, 20, (4,))
    session = glow_mlir.TrainingSession(exported(module, (words,)), loss="cross_entropy", optimizer="sgd")
    assert session.parameters == ("table.weight", "layer.weight")
    assert_same_steps(session, module, "words", words, targets)


class Stopped(nn.Module):
    """A layer to which no gradient comes."""

    def __init__(self, by_mode: bool) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 4)
        self.by_mode = by_mode

    def forward(self, x: Any) -> Any:
        if not self.by_mode:
            return self.second(self.first(x).detach())
        with torch.no_grad():
            hidden = self.first(x)
        return self.second(hidden)


@pytest.mark.parametrize("by_mode", [False, True])
def test_gradients_that_end_are_refused(by_mode: bool) -> None:
    """A session would train what stands in front of them; it infers all the same."""
    module, x = Stopped(by_mode), torch.randn(2, 6)
    model = pickle.loads(pickle.dumps(exported(module, (x,))))
    with pytest.raises(UnsupportedError, match=r"gradients end at .*torch\.compile"):
        glow_mlir.TrainingSession(model, loss="cross_entropy")
    (found,) = glow_mlir.InferenceSession(model).run(None, {"x": x.numpy()})
    np.testing.assert_allclose(found, module(x).detach().numpy(), atol=1e-5)


def test_rows_without_gradients_are_told() -> None:
    module = nn.Sequential(nn.Embedding(5, 4, padding_idx=0), nn.Flatten(), nn.Linear(12, 3))
    with pytest.warns(GlowWarning, match="all rows of '0.weight' are trained"):
        glow_mlir.TrainingSession(exported(module, (torch.tensor([[1, 0, 2]]),)), loss="cross_entropy")


class Named(nn.Module):
    """Buffers that are called as nodes of the graph are."""

    mean: Any
    add: Any
    mul: Any
    relu: Any
    cat: Any

    def __init__(self) -> None:
        super().__init__()
        for name in ("mean", "add", "mul", "relu", "cat"):
            self.register_buffer(name, torch.arange(1.0, 5.0))

    def forward(self, x: Any) -> Any:
        y = torch.relu(x - x.mean(0) + self.mean * self.mul) + self.relu
        return torch.cat([y + self.add, y * self.cat])


def test_names_of_buffers_and_nodes() -> None:
    module, x = Named(), torch.randn(3, 4)
    (found,) = from_torch(module, (x,)).run(None, {"x": x.numpy()})
    np.testing.assert_allclose(found, module(x).numpy(), atol=1e-5)


class Shadowing(nn.Module):
    """An argument that is called as a parameter is."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, weight: Any) -> Any:
        return weight + self.weight


def test_an_argument_called_as_a_parameter() -> None:
    with pytest.raises(ModelError, match="both called 'weight'"):
        exported(Shadowing(), (torch.ones(3),))


def test_a_model_is_what_the_module_was() -> None:
    """What changes in the module later is no part of it."""
    module, x = nn.Linear(3, 2), torch.randn(4, 3)
    model: Any = exported(module, (x,))
    expected = module(x).detach().numpy()
    with torch.no_grad():
        module.weight.add_(1.0)
    for _ in range(2):
        (found,) = glow_mlir.InferenceSession(model).run(None, {"input": x.numpy()})
        np.testing.assert_allclose(found, expected, atol=1e-5)


class Sized(nn.Module):
    """A result that is a size."""

    def forward(self, x: Any) -> Any:
        return x + 1, x.shape[1]


def test_a_size_as_a_result() -> None:
    session = from_torch(Sized(), (torch.zeros(2, 3),), dynamic_shapes={"x": {1: torch.export.Dim("n", max=50)}})
    for count in (3, 7):
        found, size = session.run(None, {"x": np.zeros((2, count), np.float32)})
        assert found.shape == (2, count)
        assert size == count


class Branching(nn.Module):
    """Another computation for few rows."""

    def forward(self, x: Any) -> Any:
        return x * 2 if x.shape[0] > 3 else x * 100


def test_bounds_of_sizes_are_checked() -> None:
    """A model that was exported for some sizes is another one for others."""
    rows = torch.export.Dim("rows", min=4, max=20)
    session = from_torch(Branching(), (torch.zeros(5, 2),), dynamic_shapes={"x": {0: rows}})
    for count in (4, 20):
        x = np.ones((count, 2), np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], 2 * x)
    for count in (3, 21):
        with pytest.raises(InputError, match=f"'rows' is {count} in input 'x' .*from 4 to 20"):
            session.run(None, {"x": np.ones((count, 2), np.float32)})


class Doubled(nn.Module):
    """Two arguments, of which one has twice as many columns."""

    def forward(self, x: Any, y: Any) -> Any:
        return x.repeat(1, 2) + y


def test_sizes_that_follow_from_others_are_checked() -> None:
    n = torch.export.Dim("n", min=2, max=50)
    example, sizes = (torch.zeros(2, 6), torch.zeros(2, 12)), {"x": {1: n}, "y": {1: 2 * n}}
    session = from_torch(Doubled(), example, dynamic_shapes=sizes)
    x = np.ones((2, 7), np.float32)
    assert session.run(None, {"x": x, "y": np.ones((2, 14), np.float32)})[0].shape == (2, 14)
    with pytest.raises(InputError, match=r"is 1 in input 'y', and 14 by the other sizes"):
        session.run(None, {"x": x, "y": np.ones((2, 1), np.float32)})


def test_a_module_is_no_model() -> None:
    for session in (glow_mlir.InferenceSession, glow_mlir.TrainingSession):
        with pytest.raises(OptionError, match=r"type 'Linear' .*torch\.exported"):
            session(cast("Any", nn.Linear(2, 2)))


def test_a_module_in_training_is_no_model_of_a_session() -> None:
    with pytest.raises(UnsupportedError, match=r"changes 'layers\.1\.num_batches_tracked'.*eval"):
        glow_mlir.TrainingSession(exported(Pooled(), (torch.randn(4, 3, 8, 8),)), loss="cross_entropy")


def test_bundle(classifier: Classifier) -> None:
    model = exported(classifier, (torch.zeros(2, 6),))
    bundle = bundle_of({"": model}, "classifier", CompileOptions("cpu"))
    assert bundle.name == "classifier"
    assert len(bundle.artifact.constants) >= 4 * (6 * 8 + 8 * 3)


def test_cached_session_needs_no_compiler(classifier: Classifier, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path))
    first = from_torch(classifier, (torch.zeros(2, 6),))
    again = from_torch(classifier, (torch.zeros(2, 6),))
    assert first.compile_seconds
    assert not again.compile_seconds


def test_what_cannot_be_exported() -> None:
    class Branch(nn.Module):
        def forward(self, x: Any) -> Any:
            return x + 1 if x.sum() > 0 else x

    with pytest.raises(ModelError, match="PyTorch cannot export the module"):
        from_torch(Branch(), (torch.zeros(2),))


def test_unknown_dimension(classifier: Classifier) -> None:
    with pytest.raises(OptionError, match="no free dimension 'length'"):
        from_torch(classifier, (torch.zeros(2, 6),), dimensions={"length": 3})


RESULTS: list[Callable[[Any, Any], Any]] = [
    lambda x, w: (x * 2, x * 2),
    lambda x, w: (x, x + 1),
    lambda x, w: x,
    lambda x, w: (x * 2, 3, None),
    lambda x, w: (x * 2, w),
]


@pytest.mark.parametrize("results", RESULTS)
def test_results_of_any_kind(results: Callable[[Any, Any], Any]) -> None:
    """One value as several outputs, inputs and parameters as outputs, numbers, and nothing."""

    class Module(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(3))

        def forward(self, x: Any) -> Any:
            return results(x, self.w)

    x = torch.randn(3)
    found = from_torch(Module(), (x,)).run(None, {"x": x.numpy()})
    expected = results(x, torch.ones(3))
    listed = cast("tuple[Any, ...]", expected if isinstance(expected, tuple) else (expected,))
    for one, other in zip(found, [item for item in listed if item is not None], strict=True):
        np.testing.assert_allclose(one, other.numpy() if isinstance(other, torch.Tensor) else other, atol=1e-6)


def test_buffers_become_inputs_and_each_other() -> None:
    class Swapping(nn.Module):
        a: Tensor
        b: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("a", torch.zeros(2))
            self.register_buffer("b", torch.ones(2))

        def forward(self, x: Any) -> Any:
            before = self.a.clone()
            self.a.copy_(self.b)
            self.b.copy_(x)
            return before + self.a

    session = from_torch(Swapping(), (torch.zeros(2),))
    x = np.full(2, 5, np.float32)
    assert [session.run(None, {"x": x})[0][0] for _ in range(3)] == [1, 6, 10]


def test_dimensions_go_by_the_names_of_arguments() -> None:
    class Two(nn.Module):
        def forward(self, x: Any, scale: float, y: Any) -> Any:
            return x.sum() * scale + y.sum()

    alpha, beta = torch.export.Dim("alpha", max=9), torch.export.Dim("beta", max=9)
    shapes = {"y": {0: beta}, "scale": None, "x": {0: alpha}}
    session = from_torch(Two(), (torch.zeros(3), 2.0, torch.zeros(4)), dynamic_shapes=shapes)
    assert [item.shape for item in session.get_inputs()] == [["alpha"], ["beta"]]
