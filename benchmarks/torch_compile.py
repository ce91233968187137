"""
`torch.compile(backend="glow")` against PyTorch itself and its own compiler, in turns.

`python benchmarks/torch_compile.py [--threads N] [--rounds N] [--training] [NAME…]` prints, for each network, the
milliseconds of CPU time that a call takes, the seconds that the first one took, and the better of the others over ours.
"""

from __future__ import annotations

import argparse
import copy
import math
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch import nn

Network = tuple[nn.Module, tuple[Any, ...]]

IMAGE = (1, 3, 224, 224)


def _vision(name: str, **keywords: Any) -> Callable[[], Network]:
    def build() -> Network:
        import torchvision

        return getattr(torchvision.models, name)(**keywords), (torch.randn(IMAGE),)

    return build


def _vit_small() -> Network:
    from torchvision.models import VisionTransformer

    network: Any = VisionTransformer(224, 16, 12, 6, 384, 1536)
    nn.init.normal_(network.heads.head.weight, std=0.02)  # It begins as zeros, which would hide errors.
    return network, (torch.randn(IMAGE),)


def _bert() -> Network:
    from transformers import BertConfig, BertModel

    config = BertConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024)
    return BertModel(config), (torch.randint(0, 1000, (8, 128)),)


def _gpt2() -> Network:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=1000, n_embd=256, n_layer=4, n_head=4, use_cache=False)
    return GPT2LMHeadModel(config), (torch.randint(0, 1000, (8, 128)),)


class Recurrent(nn.Module):
    """Words, a recurrent network, and a class for each word."""

    def __init__(self, kind: Callable[..., nn.Module], **keywords: Any) -> None:
        super().__init__()
        self.table = nn.Embedding(1000, 256)
        self.layers = kind(256, 256, batch_first=True, **keywords)
        self.head = nn.Linear(512 if keywords.get("bidirectional") else 256, 20)

    def forward(self, words: Any) -> Any:
        return self.head(self.layers(self.table(words))[0])


def _lstm_tagger() -> Network:
    return Recurrent(nn.LSTM, num_layers=2, bidirectional=True), (torch.randint(0, 1000, (8, 64)),)


def _gru() -> Network:
    return Recurrent(nn.GRU), (torch.randint(0, 1000, (1, 100)),)


NETWORKS: Mapping[str, Callable[[], Network]] = {
    "resnet18": _vision("resnet18"),
    "resnet50": _vision("resnet50"),
    "mobilenet_v3_large": _vision("mobilenet_v3_large"),
    "efficientnet_b0": _vision("efficientnet_b0"),
    "vit_small": _vit_small,
    "swin_t": _vision("swin_t"),
    "bert_4x256": _bert,
    "gpt2_4x256": _gpt2,
    "lstm_tagger": _lstm_tagger,
    "gru": _gru,
}
"""Name → what builds the network; named before anything was measured."""


def contenders(module: nn.Module, training: bool) -> dict[str, Callable[..., Any]]:
    """Name → the module as each of them runs it, each with weights of its own."""
    import torch._inductor.config

    torch._inductor.config.freezing = not training
    own = {name: module if name == "eager" else copy.deepcopy(module) for name in ("eager", "inductor", "glow")}
    return {
        "eager": own["eager"],
        "inductor": torch.compile(own["inductor"], dynamic=False),
        "glow": torch.compile(own["glow"], backend="glow", dynamic=False),
    }


def tensor_of(outputs: Any) -> torch.Tensor:
    """The first tensor that a network gives."""
    if isinstance(outputs, torch.Tensor):
        return outputs
    if isinstance(outputs, Mapping):
        outputs = list(cast("Mapping[str, Any]", outputs).values())
    return tensor_of(outputs[0])


def step(call: Callable[..., Any], arguments: tuple[Any, ...], training: bool) -> torch.Tensor:
    """One call, with its backward pass in training."""
    if not training:
        with torch.no_grad():
            return tensor_of(call(*arguments))
    found = tensor_of(call(*arguments))
    found.float().square().mean().backward()
    return found.detach()


def measure(name: str, threads: int, rounds: int, training: bool) -> float:
    """Print a line for a network; gives the better of the others over ours."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    module, arguments = NETWORKS[name]()
    module.train(training)
    for inner in module.modules():
        if isinstance(inner, nn.Dropout):
            inner.p = 0.0
    clock = time.process_time if threads == 1 else time.perf_counter
    first: dict[str, float] = {}
    results: dict[str, torch.Tensor] = {}
    calls = contenders(module, training)
    for contender, call in calls.items():
        begin = time.perf_counter()
        results[contender] = step(call, arguments, training)
        first[contender] = time.perf_counter() - begin
    times: dict[str, list[float]] = {contender: [] for contender in calls}
    for _ in range(rounds):
        for contender, call in calls.items():
            step(call, arguments, training)
            begin = clock()
            step(call, arguments, training)
            times[contender].append(clock() - begin)
    best = {contender: min(found) * 1e3 for contender, found in times.items()}
    ratio = min(best["eager"], best["inductor"]) / best["glow"]
    error = (results["glow"] - results["eager"]).abs().max() / results["eager"].abs().max()
    listed = ", ".join(f"{contender} {milliseconds:.2f}" for contender, milliseconds in best.items())
    compiled = f"first call: inductor {first['inductor']:.1f} s, glow {first['glow']:.1f} s"
    print(f"{name}: {listed} ms, ratio {ratio:.2f}, {compiled}, error {error.item():.1e}", flush=True)
    return ratio


def main() -> int:
    """Measure the networks that are asked for, by default all."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*NETWORKS, []])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--training", action="store_true")
    arguments = parser.parse_args()
    names = arguments.names or list(NETWORKS)
    ratios = [measure(name, arguments.threads, arguments.rounds, arguments.training) for name in names]
    print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, least {min(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
