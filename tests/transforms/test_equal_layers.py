"""Equal layers that are compiled once: the instructions are those of the model that is compiled as a whole."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from breadth import examples
from hypothesis import given, settings
from models import GraphBuilder
from onnx import TensorProto
from xdsl.dialects.builtin import ModuleOp

from glow_mlir import InferenceSession
from glow_mlir.backends.interface import get_backend
from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.pipelines import ALLOCATED, Pipeline, collapsing
from glow_mlir.errors import LayersDifferError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.ir import statistics
from glow_mlir.ir.context import new_context
from glow_mlir.ir.locations import location_names
from glow_mlir.ir.text import parse_module

WIDTH = 24
"""Weights of so many elements are no constants that are written into the text."""

LAYERS = 9

COLLAPSE = ["collapse-layers"]

Part = Callable[["Network", str, int], str]
"""Adds a part of layer `int` behind a value; returns its result."""


class Network(GraphBuilder):
    """A network of equal layers, with outputs of layers."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.shared: dict[str, str] = {}
        self.outputs: list[str] = []

    def numbers(self, *shape: int) -> str:
        """Random weights."""
        return self.weight((self.rng.standard_normal(shape) / WIDTH**0.5).astype(np.float32))

    def known(self, name: str, *shape: int) -> str:
        """Weights that all layers share."""
        if name not in self.shared:
            self.shared[name] = self.numbers(*shape)
        return self.shared[name]


def product(g: Network, x: str, layer: int) -> str:
    return g.node("MatMul", x, g.numbers(WIDTH, WIDTH))


def shared_product(g: Network, x: str, layer: int) -> str:
    return g.node("MatMul", x, g.known("product", WIDTH, WIDTH))


def bias(g: Network, x: str, layer: int) -> str:
    return g.node("Add", x, g.numbers(WIDTH))


def some_without_bias(g: Network, x: str, layer: int) -> str:
    """Biases of zeros in every second layer: code depends on the elements."""
    return g.node("Add", x, g.weight(np.zeros(WIDTH, np.float32))) if layer % 2 else bias(g, x, layer)


def scale(g: Network, x: str, layer: int) -> str:
    return g.node("Mul", g.numbers(WIDTH), x)


def factor(g: Network, x: str, layer: int) -> str:
    return g.node("Mul", x, g.weight(np.float32(0.5)))


def normalized(g: Network, x: str, layer: int) -> str:
    return g.node("LayerNormalization", x, g.numbers(WIDTH), g.numbers(WIDTH))


def activation(g: Network, x: str, layer: int) -> str:
    return g.node("Relu", x)


def gate(g: Network, x: str, layer: int) -> str:
    return g.node("Mul", x, g.node("Sigmoid", x))


def softmax(g: Network, x: str, layer: int) -> str:
    return g.node("Softmax", x, axis=-1)


def pairs(g: Network, x: str, layer: int) -> str:
    """The elements of each row in another order."""
    split = g.node("Reshape", x, g.weight(np.array([-1, 4, WIDTH // 4])))
    return g.node("Reshape", g.node("Transpose", split, perm=[0, 2, 1]), g.weight(np.array([-1, WIDTH])))


def slopes(g: Network, x: str, layer: int) -> str:
    """Slopes of elements in another order."""
    split = g.node("Transpose", g.node("Reshape", x, g.weight(np.array([-1, 4, WIDTH // 4]))), perm=[0, 2, 1])
    back = g.node("Transpose", g.node("PRelu", split, g.numbers(WIDTH // 4, 4)), perm=[0, 2, 1])
    return g.node("Reshape", back, g.weight(np.array([-1, WIDTH])))


def attended(g: Network, x: str, layer: int) -> str:
    """Attention of rows to rows, with a mask that all layers share."""
    query, key, value = (g.node("MatMul", x, g.numbers(WIDTH, WIDTH)) for _ in range(3))
    scores = g.node("MatMul", query, g.node("Transpose", key, perm=[1, 0]))
    masked = g.node("Add", g.node("Mul", scores, g.weight(np.float32(0.25))), g.known("mask", 3, 3))
    return g.node("MatMul", g.node("Softmax", masked, axis=-1), value)


def biased_rows(g: Network, x: str, layer: int) -> str:
    """Products of one matrix, with biases, that become one product."""
    first, second = (bias(g, product(g, x, layer), layer) for _ in range(2))
    return g.node("Mul", g.node("Sigmoid", first), second)


def narrow(g: Network, x: str, layer: int) -> str:
    """A product and a bias of numbers of half the bits."""
    matrix, vector = (g.weight(g.rng.standard_normal(shape).astype(np.float16)) for shape in ((WIDTH, WIDTH), (WIDTH,)))
    whole = g.node("Add", g.node("MatMul", g.node("Cast", x, to=TensorProto.FLOAT16), matrix), vector)
    return g.node("Cast", g.node("Tanh", whole), to=TensorProto.FLOAT)


def residual(part: Part) -> Part:
    def added(g: Network, x: str, layer: int) -> str:
        return g.node("Add", x, part(g, x, layer))

    return added


def recorded(g: Network, x: str, layer: int) -> str:
    g.outputs.append(x)
    return x


PARTS: tuple[Part, ...] = (
    *(product, shared_product, bias, some_without_bias, scale, factor, normalized, activation, gate, softmax, pairs),
    *(attended, recorded, residual(product), residual(attended), residual(scale)),
)


def network(parts: list[Part], layers: int = LAYERS, seed: int = 46) -> bytes:
    """The model of layers of those parts, between a product and another one."""
    g = Network(seed)
    x = g.node("Tanh", g.node("MatMul", "x", g.numbers(WIDTH, WIDTH)))
    for layer in range(layers):
        for part in parts:
            x = part(g, x, layer)
    outputs = dict.fromkeys([*g.outputs, g.node("MatMul", x, g.numbers(WIDTH, 5))])
    shapes = {
        name: [3, 5] if name.startswith("matmul") and name == list(outputs)[-1] else [3, WIDTH] for name in outputs
    }
    return g.model({"x": (TensorProto.FLOAT, [3, WIDTH])}, shapes).SerializeToString()


def two_networks(first: list[Part], second: list[Part]) -> bytes:
    """The model of layers of a form behind layers of another one, which read the result of the first ones, too."""
    g = Network(47)
    x = memory = g.node("Tanh", g.node("MatMul", "x", g.numbers(WIDTH, WIDTH)))
    for parts in (first, second):
        for layer in range(LAYERS):
            for part in parts:
                x = part(g, x, layer)
            x = g.node("Add", x, memory)
        memory = x = g.node("Tanh", g.node("MatMul", x, g.numbers(WIDTH, WIDTH)))
    outputs = {name: [3, WIDTH] for name in (*g.outputs, x)}
    return g.model({"x": (TensorProto.FLOAT, [3, WIDTH])}, outputs).SerializeToString()


def compiled(model: bytes, pipeline: Pipeline) -> tuple[str, list[str]]:
    """The instructions of a compiled model without the names of values, and its constants."""
    module = import_model(model, by_content=True)
    Compilation(module, pipeline=pipeline).run(ALLOCATED.name)
    text = str(module)
    lines = [line for line in text[text.index("glow_low.func") :].splitlines() if "glow_low.weight" not in line]
    constants = re.findall(r"= glow_low.weight @\S+ \{region = \"constants\".*(memref.*)|weights = (\S+)", text)
    return re.sub(r"%\w+", "%", "\n".join(lines)), sorted(map(str, constants))


def is_collapsed(model: bytes) -> bool:
    """Check that a collapsed compilation, if there is one, gives the instructions of a whole one."""
    pipeline = get_backend("cpu").pipeline("avx2")
    whole = compiled(model, pipeline)
    try:
        with statistics.counting() as counts:
            found = compiled(model, _collapsing())
    except LayersDifferError:
        return False
    assert found == whole
    return counts["layers copied"] > 0


@settings(max_examples=examples(60), deadline=None)
@given(parts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=6), layers=st.integers(6, 12))
def test_instructions_are_those_of_the_whole(parts: list[Part], layers: int) -> None:
    is_collapsed(network(parts, layers))


ALIKE: dict[str, list[Part]] = {
    "products": [product, bias, activation],
    "an encoder": [residual(attended), normalized, residual(product), normalized],
    "scales": [residual(product), scale],
    "factors that move into weights": [factor, product, bias, gate],
    "layouts": [product, pairs, activation],
    "products with biases that are merged": [biased_rows, residual(product)],
    "narrow weights": [narrow],
    "transposes around weights": [product, slopes],
    "outputs of layers": [product, recorded, softmax],
    "shared weights beside own ones": [shared_product, bias, activation],
}

APART: dict[str, list[Part]] = {
    "nothing but shared weights": [shared_product, activation],
    "biases of zeros in some": [product, some_without_bias, activation],
}


@pytest.mark.parametrize("parts", ALIKE.values(), ids=ALIKE)
def test_equal_layers_are_compiled_once(parts: list[Part]) -> None:
    assert is_collapsed(network(parts))


TWO_RUNS: dict[str, tuple[list[Part], list[Part]]] = {
    "other forms": ([residual(product), normalized], [residual(attended), normalized]),
    "outputs of layers": ([residual(attended), normalized, recorded], [residual(product), softmax, normalized]),
}


@pytest.mark.parametrize("runs", TWO_RUNS.values(), ids=TWO_RUNS)
def test_layers_of_two_forms_are_compiled_once_each(runs: tuple[list[Part], list[Part]]) -> None:
    assert is_collapsed(two_networks(*runs))


@pytest.mark.parametrize("parts", APART.values(), ids=APART)
def test_other_layers_are_not(parts: list[Part]) -> None:
    assert not is_collapsed(network(parts))


@pytest.mark.parametrize("parts", [*ALIKE.values(), *APART.values()], ids=[*ALIKE, *APART])
def test_results_are_those_of_the_whole(parts: list[Part]) -> None:
    model, x = network(parts), np.random.default_rng(0).standard_normal((3, WIDTH), np.float32)
    found, whole = (InferenceSession(model, disable=disable).run(None, {"x": x}) for disable in ([], COLLAPSE))
    for one, other in zip(found, whole, strict=True):
        np.testing.assert_array_equal(one, other)


STORED = "glow_high.placeholder @{} : T {{{}}}"


def layers_that_keep_their_results() -> ModuleOp:
    """Layers that read what they kept in the call before, and keep a product: all read before any of them computes."""
    storage = [STORED.format("x", "input"), STORED.format("y", "output")]
    code = ["%x0 = glow_high.get @x : T"]
    for n in range(LAYERS):
        numbers = np.random.default_rng(n).standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH
        storage += [STORED.format(f"s{n}", "state"), STORED.format(f"o{n}", "output")]
        storage.append(f"glow_high.constant @w{n} : W {{value = dense<{numbers.tolist()}> : W}}")
        code += [
            f"%r{n} = glow_high.relu %x{n} : T",
            f"%w{n} = glow_high.get @w{n} : W",
            f"%p{n} = glow_high.matmul %r{n}, %w{n} : T",
            f"%s{n} = glow_high.get @s{n} {{mutable}} : T",
            f"glow_high.save %p{n}, @s{n}",
            f"%x{n + 1} = glow_high.tanh %s{n} : T",
            f"glow_high.save %x{n + 1}, @o{n}",
        ]
    code += [f"%y = glow_high.neg %x{LAYERS} : T", "glow_high.save %y, @y"]
    bound = ", ".join(["@x", *(f"@s{n}, @o{n}" for n in range(LAYERS)), "@y"])
    text = "\n".join([*storage, f"glow_high.func @main({bound}) {{", *code, "}"])
    types = {": T": f": tensor<3x{WIDTH}xf32>", ": W": f": tensor<{WIDTH}x{WIDTH}xf32>"}
    return parse_module(re.sub(": [TW]", lambda found: types[found[0]], text), new_context())


def test_instructions_of_layers_that_are_apart_from_the_others_are_there() -> None:
    found, whole = (InferenceSession(layers_that_keep_their_results(), disable=disable) for disable in ([], COLLAPSE))
    for number in range(3):
        x = np.full((3, WIDTH), number + 1, np.float32)
        for one, other in zip(found.run(None, {"x": x}), whole.run(None, {"x": x}), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["collapse-layers", "expand-layers"])
@pytest.mark.parametrize(
    "options", [{}, {"precision": "bf16"}, {"weights": "int8"}, {"activation_percent": 50}, {"backend": "interpreter"}]
)
def test_either_pass_can_be_left_out(name: str, options: dict[str, Any]) -> None:
    model, x = network([product, bias, activation]), np.ones((3, WIDTH), np.float32)
    found = InferenceSession(model, disable=[name], **options).run(None, {"x": x})
    for one, other in zip(found, InferenceSession(model, **options).run(None, {"x": x}), strict=True):
        np.testing.assert_array_equal(one, other)


def test_nodes_of_copied_layers_keep_their_names() -> None:
    compilation = Compilation(import_model(network([product, bias, activation])), "cpu", pipeline=_collapsing())
    text = str(compilation.run(ALLOCATED.name))
    assert compilation.module.attributes.get("glow.layers") is None
    names = {f"matmul_{number}" for number in range(2, 2 + 3 * LAYERS, 3)}
    assert names <= {name for op in compilation.module.walk() for name in location_names(op.location)}, text


def _collapsing() -> Pipeline:
    return collapsing(get_backend("cpu").pipeline("avx2"))
