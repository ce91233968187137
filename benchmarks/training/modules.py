"""Modules of PyTorch to train: a small convolutional network, ResNet-20, an LSTM, a decoder, a recommender."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

# Any: torch is an extra, so that its annotations may not be there.
torch: Any = import_module("torch")
nn: Any = import_module("torch.nn")
functional: Any = import_module("torch.nn.functional")

EPSILON = 2.0**-17
"""Of normalizations: an attribute of ONNX, which is an f32, says it exactly, as it does not say 1e-5."""


def digits_network() -> Any:
    """Two convolutions, a pool and a linear layer: images of 8×8 to ten classes."""
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 16, 10)),
    )


class Block(nn.Module):
    """Two convolutions with normalizations of the batch, and a sum with their operand (He et al., 2016)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            *(nn.BatchNorm2d(outputs, EPSILON), nn.ReLU()),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs, EPSILON),
        )
        self.beside = nn.Sequential()
        if stride != 1:
            self.beside = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs, EPSILON)
            )

    def forward(self, x: Any) -> Any:
        """Images of `inputs` channels to images of `outputs` channels, `stride` times smaller."""
        return functional.relu(self.inner(x) + self.beside(x))


def residual_network() -> Any:
    """ResNet-20 (He et al., 2016, section 4.2): images of one channel to ten classes."""
    widths = (16, 32, 64)
    blocks: list[Any] = []
    for number, width in enumerate(widths):
        first = number > 0
        blocks += [Block(widths[number - 1] if first else width, width, 2 if first else 1)]
        blocks += [Block(width, width, 1) for _ in range(2)]
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16, EPSILON), nn.ReLU()),
        *blocks,
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)),
    )


class CharacterLSTM(nn.Module):
    """Characters of a text, [batch, time], to the scores of the next ones, [batch, time, vocabulary]."""

    def __init__(self, vocabulary: int, width: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.recurrent = nn.LSTM(width, width, batch_first=True)
        self.scores = nn.Linear(width, vocabulary)

    def forward(self, characters: Any) -> Any:
        """The scores behind each character."""
        return self.scores(self.recurrent(self.embedding(characters))[0])


class Layer(nn.Module):
    """Causal attention and a perceptron, each behind a normalization and beside a residual (Radford et al., 2019)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_perceptron = nn.LayerNorm(width, EPSILON), nn.LayerNorm(width, EPSILON)
        self.projections, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        """Tokens, [batch, time, width], to tokens."""
        x = x + self.joined(self.attended(self.before_attention(x)))
        return x + self.perceptron(self.before_perceptron(x))

    def attended(self, x: Any) -> Any:
        """The sum of the values that each token sees, its own and those before it, head by head."""
        batch, time, width = x.shape
        parts = self.projections(x).view(batch, time, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = parts[0], parts[1], parts[2]
        weights = query @ key.transpose(-2, -1) / math.sqrt(width // self.heads)
        hidden = torch.triu(torch.full((time, time), -torch.inf, dtype=x.dtype), 1)
        weights = torch.softmax(weights + hidden, -1)
        return (weights @ value).transpose(1, 2).reshape(batch, time, width)


class Decoder(nn.Module):
    """A decoder like GPT-2, of the same inputs and results as `CharacterLSTM`."""

    def __init__(self, vocabulary: int, time: int, width: int = 64, layers: int = 4, heads: int = 4) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Parameter(torch.randn(time, width) * 0.02)
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
        self.last, self.scores = nn.LayerNorm(width, EPSILON), nn.Linear(width, vocabulary, bias=False)

    def forward(self, characters: Any) -> Any:
        """The scores behind each character."""
        return self.scores(self.last(self.layers(self.tokens(characters) + self.places)))


class Recommender(nn.Module):
    """Users and items, [batch] of numbers each, to the score of their liking: a matrix factorization with offsets."""

    def __init__(self, users: int, items: int, width: int = 16) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(users, width), nn.Embedding(items, width)
        self.user_offsets, self.item_offsets = nn.Embedding(users, 1), nn.Embedding(items, 1)
        for table in (self.users, self.items, self.user_offsets, self.item_offsets):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, user: Any, item: Any) -> Any:
        """The logarithm of the odds that a user likes an item."""
        offsets = self.user_offsets(user) + self.item_offsets(item)
        return (self.users(user) * self.items(item)).sum(-1) + offsets.squeeze(-1)
