"""
Steps of training: `torch.compile(backend="glow")` and a `TrainingSession` against PyTorch itself and its own compiler.

`python benchmarks/torch_training.py [--threads N] [--rounds N] [NAME…]` prints, for each network, the milliseconds of
CPU time that a step takes (forward, loss, backward, and stochastic gradient descent with momentum), the better of the
others over ours, and a step of the session over ours.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from glow_mlir import TrainingSession
from glow_mlir.errors import GlowError
from glow_mlir.torch import exported
from glow_mlir.training import SGD, CrossEntropy
from training.modules import Layer

RATE, MOMENTUM, CLASSES = 0.01, 0.9, 10

Network = tuple[nn.Module, torch.Tensor]
Step = Callable[[], float]


class Encoder(nn.Module):
    """Words, four layers of a transformer of width 256, and a class for each sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(1000, 256)
        layer = nn.TransformerEncoderLayer(256, 4, 1024, 0.0, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(256, CLASSES)

    def forward(self, words: Any) -> Any:
        return self.head(self.layers(self.table(words)).mean(1))


class Decoder(nn.Module):
    """Words, four layers of GPT-2 of width 256, and the scores of a class for each sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.places = nn.Embedding(1000, 256), nn.Parameter(torch.randn(128, 256) * 0.02)
        self.layers = nn.Sequential(*(DecoderLayer(256, 4) for _ in range(4)))
        self.last, self.head = nn.LayerNorm(256), nn.Linear(256, CLASSES)

    def forward(self, words: Any) -> Any:
        return self.head(self.last(self.layers(self.table(words) + self.places)).mean(1))


class DecoderLayer(Layer):
    """A layer whose attention is an operator of PyTorch's."""

    def attended(self, x: Any) -> Any:
        """The sum of the values that each word sees, head by head."""
        batch, time, width = x.shape
        parts = self.projections(x).view(batch, time, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        found = nn.functional.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
        return found.transpose(1, 2).reshape(batch, time, width)


class Recurrent(nn.Module):
    """Words, a long short-term memory, and a class for each sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(1000, 128)
        self.layer = nn.LSTM(128, 256, batch_first=True)
        self.head = nn.Linear(256, CLASSES)

    def forward(self, words: Any) -> Any:
        return self.head(self.layer(self.table(words))[0][:, -1])


def _vision(name: str, **keywords: Any) -> Callable[[], Network]:
    def build() -> Network:
        import torchvision

        return getattr(torchvision.models, name)(num_classes=CLASSES, **keywords), torch.randn(16, 3, 64, 64)

    return build


def _perceptron() -> Network:
    layers = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, CLASSES)]
    return nn.Sequential(*layers), torch.randn(64, 784)


NETWORKS: Mapping[str, Callable[[], Network]] = {
    "resnet18": _vision("resnet18"),
    "mobilenet_v2": _vision("mobilenet_v2", dropout=0.0),
    "encoder": lambda: (Encoder(), torch.randint(0, 1000, (8, 128))),
    "encoder_bf16": lambda: (Encoder(), torch.randint(0, 1000, (8, 128))),
    "gpt": lambda: (Decoder(), torch.randint(0, 1000, (8, 128))),
    "lstm": lambda: (Recurrent(), torch.randint(0, 1000, (16, 64))),
    "perceptron": _perceptron,
}
"""Name → what builds the network, and its input."""

AUTOCAST = {"encoder_bf16": torch.bfloat16}
"""Name of a network that computes with narrower floats under `torch.autocast` → their type."""


def step_of(
    module: nn.Module, call: Callable[..., Any], x: torch.Tensor, targets: torch.Tensor, narrow: torch.dtype | None
) -> Step:
    """A step in PyTorch of a module, which `call` runs, under autocast to `narrow` where that is given."""
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE, momentum=MOMENTUM)

    def step() -> float:
        optimizer.zero_grad()
        with torch.autocast("cpu", narrow, enabled=narrow is not None):
            loss = nn.functional.cross_entropy(call(x), targets)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def session_step(module: nn.Module, x: torch.Tensor, targets: torch.Tensor) -> Step | None:
    """The same step of a `TrainingSession`; `None` where that does not take the module, which is told."""
    try:
        session = TrainingSession(
            exported(module.eval(), (x,)),
            loss=CrossEntropy(),
            optimizer=SGD(RATE, momentum=MOMENTUM),
            threads=torch.get_num_threads(),
        )
    except GlowError as error:
        print(f"no session: {error}", file=sys.stderr)
        return None
    names = [argument.name for argument in session.inputs]
    batch = dict(zip(names, (x.numpy(), targets.numpy()), strict=True))
    return lambda: session.step(batch)


def contenders(
    module: nn.Module, x: torch.Tensor, targets: torch.Tensor, narrow: torch.dtype | None
) -> dict[str, Step]:
    """Name → a step of the module, each with parameters of its own; sessions know no autocast."""
    own = {name: copy.deepcopy(module) for name in ("eager", "inductor", "glow")}
    calls: dict[str, Callable[..., Any]] = {
        "eager": own["eager"],
        "inductor": torch.compile(own["inductor"], dynamic=False),
        "glow": torch.compile(own["glow"], backend="glow", dynamic=False),
    }
    steps = {name: step_of(own[name], call, x, targets, narrow) for name, call in calls.items()}
    session = None if narrow else session_step(copy.deepcopy(module), x, targets)
    return steps if session is None else {**steps, "session": session}


def measure(name: str, threads: int, rounds: int) -> None:
    """Print a line for a network."""
    torch.manual_seed(0)
    module, x = NETWORKS[name]()
    steps = contenders(module.train(), x, torch.randint(0, CLASSES, (len(x),)), AUTOCAST.get(name))
    losses = {contender: [step() for _ in range(3)][-1] for contender, step in steps.items()}
    clock = time.process_time if threads == 1 else time.perf_counter
    times: dict[str, list[float]] = {contender: [] for contender in steps}
    for _ in range(rounds):
        for contender, step in steps.items():
            begin = clock()
            step()
            times[contender].append(clock() - begin)
    best = {contender: min(found) * 1e3 for contender, found in times.items()}
    listed = ", ".join(f"{contender} {milliseconds:.2f}" for contender, milliseconds in best.items())
    ratios = [f"ratio {min(best['eager'], best['inductor']) / best['glow']:.2f}"]
    if "session" in best:
        ratios.append(f"session / glow {best['session'] / best['glow']:.2f}")
    apart = max(abs(loss - losses["eager"]) for loss in losses.values())
    print(f"{name}: {listed} ms, {', '.join(ratios)}, losses of the third step {apart:.1e} apart", flush=True)


def main() -> int:
    """Measure the networks that are asked for, by default all."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*NETWORKS, []])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for name in arguments.names or NETWORKS:
        measure(name, arguments.threads, arguments.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
