"""Networks of every kind, small, with example inputs: what `torch.compile` and `from_torch` are tried on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Network:
    """A module, and the arguments of a call."""

    module: nn.Module
    arguments: tuple[Any, ...]


def resnet18() -> Network:
    """Residual blocks."""
    from torchvision.models import resnet18 as build

    return Network(build(num_classes=10), (torch.randn(2, 3, 64, 64),))


def mobilenet_v3() -> Network:
    """Depthwise convolutions, squeeze and excitation, hard activations."""
    from torchvision.models import mobilenet_v3_small as build

    return Network(build(num_classes=10), (torch.randn(4, 3, 64, 64),))


def vit() -> Network:
    """A vision transformer."""
    from torchvision.models import VisionTransformer

    module = VisionTransformer(32, 8, 2, 4, 64, 128, num_classes=10)
    return Network(module, (torch.randn(2, 3, 32, 32),))


def swin() -> Network:
    """Attention in shifted windows."""
    from torchvision.models import SwinTransformer

    module = SwinTransformer([4, 4], 24, [2, 2], [3, 6], [4, 4], num_classes=10, stochastic_depth_prob=0.0)
    return Network(module, (torch.randn(2, 3, 64, 64),))


def bert() -> Network:
    """An encoder with a mask of padding."""
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=100,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=32,
    )
    mask = torch.ones(2, 12, dtype=torch.int64)
    mask[1, 8:] = 0
    return Network(BertForSequenceClassification(config), (torch.randint(0, 100, (2, 12)), mask))


class GrowingCache(nn.Module):
    """A decoder that is given keys and values of the past, and gives them with those of new tokens."""

    def __init__(self, width: int = 32, heads: int = 4, layers: int = 2, words: int = 50) -> None:
        super().__init__()
        self.heads = heads
        self.table = nn.Embedding(words, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.inputs = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.outputs = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens: Any, past: Any) -> Any:
        x, kept = self.table(tokens), []
        batch, length, width = x.shape
        for norm, inputs, outputs, (keys, values) in zip(self.norms, self.inputs, self.outputs, past, strict=True):
            q, k, v = inputs(norm(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
            kept.append((k, v))
            seen = torch.ones(length, k.shape[2], dtype=torch.bool).tril(keys.shape[2])
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
            x = x + outputs(mixed.transpose(1, 2).reshape(batch, length, width))
        return self.head(x), kept


def growing_cache() -> Network:
    """A decoder with a cache that grows."""
    past = [(torch.randn(2, 4, 5, 8), torch.randn(2, 4, 5, 8)) for _ in range(2)]
    return Network(GrowingCache(), (torch.randint(0, 50, (2, 3)), past))


def gpt2() -> Network:
    """A decoder of transformers."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=100,
        n_positions=32,
        n_embd=32,
        n_layer=2,
        n_head=4,
        use_cache=False,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    return Network(GPT2LMHeadModel(config), (torch.randint(0, 100, (2, 12)),))


class T5(nn.Module):
    """Encoder and decoder of transformers, by tokens alone."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import T5Config, T5ForConditionalGeneration

        config = T5Config(
            vocab_size=100,
            d_model=32,
            d_kv=8,
            d_ff=64,
            num_layers=2,
            num_heads=4,
            dropout_rate=0.0,
            use_cache=False,
        )
        self.model = T5ForConditionalGeneration(config)

    def forward(self, source: Any, target: Any) -> Any:
        return self.model(input_ids=source, decoder_input_ids=target).logits


def t5() -> Network:
    """Encoder, decoder, relative positions."""
    return Network(T5(), (torch.randint(0, 100, (2, 9)), torch.randint(0, 100, (2, 6))))


class UNet(nn.Module):
    """Down by pools, up by transposed convolutions and by interpolation, with skips."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.first, self.second = self._block(3, width), self._block(width, 2 * width)
        self.third = self._block(2 * width, 4 * width)
        self.up = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
        self.fourth, self.fifth = self._block(4 * width, 2 * width), self._block(3 * width, width)
        self.head = nn.Conv2d(width, 2, 1)

    @staticmethod
    def _block(before: int, after: int) -> nn.Sequential:
        layers = (nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(4, after), nn.SiLU())
        return nn.Sequential(*layers)

    def forward(self, x: Any) -> Any:
        one = self.first(x)
        two = self.second(F.max_pool2d(one, 2))
        three = self.third(F.avg_pool2d(two, 2))
        four = self.fourth(torch.cat([self.up(three), two], 1))
        wide = F.interpolate(four, scale_factor=2, mode="bilinear", align_corners=False)
        return self.head(self.fifth(torch.cat([wide, one], 1)))


def unet() -> Network:
    """An image for an image."""
    return Network(UNet(), (torch.randn(2, 3, 32, 32),))


class Tagger(nn.Module):
    """A recurrent network of both directions over words."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 16)
        self.layers = nn.LSTM(16, 24, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(48, 7)

    def forward(self, words: Any) -> Any:
        return self.head(self.layers(self.table(words))[0])


def tagger() -> Network:
    """An LSTM tagger."""
    return Network(Tagger(), (torch.randint(0, 50, (3, 9)),))


class GCN(nn.Module):
    """Two graph convolutions (Kipf and Welling 2017) by edges, as PyTorch Geometric has them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    @staticmethod
    def _propagate(x: Any, edges: Any) -> Any:
        source, target = edges
        degree = torch.zeros(x.shape[0]).scatter_add(0, target, torch.ones(target.shape[0])) + 1
        scale = degree.rsqrt()
        messages = (x * scale[:, None]).index_select(0, source)
        total = torch.zeros_like(x).index_add(0, target, messages) + x * scale[:, None]
        return total * scale[:, None]

    def forward(self, x: Any, edges: Any) -> Any:
        hidden = self._propagate(self.first(x), edges).relu()
        return self._propagate(self.second(hidden), edges).log_softmax(-1)


def gcn() -> Network:
    """A graph network."""
    return Network(GCN(), (torch.randn(12, 8), torch.randint(0, 12, (2, 30))))


def transformer_encoder() -> Network:
    """PyTorch's own encoder, whose evaluation takes a fast path."""
    layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True, activation="gelu")
    return Network(nn.TransformerEncoder(layer, 2), (torch.randn(2, 10, 32),))


NETWORKS: Mapping[str, Callable[[], Network]] = {
    item.__name__: item
    for item in (
        resnet18, mobilenet_v3, vit, swin, bert, growing_cache, gpt2, t5, unet, tagger, gcn, transformer_encoder
    )
}  # fmt: skip
"""Name → what builds the network."""
