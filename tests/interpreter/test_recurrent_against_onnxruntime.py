"""Recurrent layers compute what onnxruntime computes; ONNX's reference lacks most of their attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from single_node import SingleNode, assert_equal

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
FUNCTIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
LENGTHS = np.array([4, 1, 3], np.int32)


def layer(kind: str, present: set[str], directions: int, seed: int = 0) -> list[np.ndarray | None]:
    steps, batch, width, hidden = 4, 3, 5, 2
    rng = np.random.default_rng(seed)
    gates = GATES[kind] * hidden
    shapes = {
        "X": (steps, batch, width),
        "W": (directions, gates, width),
        "R": (directions, gates, hidden),
        "B": (directions, 2 * gates),
        "sequence_lens": (batch,),
        "initial_h": (directions, batch, hidden),
        "initial_c": (directions, batch, hidden),
        "P": (directions, 3 * hidden),
    }
    names = list(shapes) if kind == "LSTM" else list(shapes)[:6]
    operands: list[np.ndarray | None] = []
    for name in names:
        if name == "sequence_lens":
            operands.append(LENGTHS if name in present else None)
        else:
            wanted = name in {"X", "W", "R"} | present
            operands.append(rng.standard_normal(shapes[name], np.float32) if wanted else None)
    return operands


def check(kind: str, operands: list[np.ndarray | None], attributes: dict[str, Any]) -> None:
    attributes = {"hidden_size": 2, **attributes}
    node = SingleNode(kind, operands, 14, attributes, outputs=3 if kind == "LSTM" else 2)
    assert_equal(node.by_us(), node.by_onnxruntime(), rtol=1e-4, atol=1e-5)


@settings(max_examples=examples(40))
@given(
    kind=st.sampled_from(sorted(GATES)),
    direction=st.sampled_from(["forward", "reverse", "bidirectional"]),
    present=st.sets(st.sampled_from(["B", "sequence_lens", "initial_h", "initial_c", "P"])),
    variant=st.booleans(),
    clip=st.sampled_from([None, 0.3]),
)
def test_layers(kind: str, direction: str, present: set[str], variant: bool, clip: float | None) -> None:
    directions = 2 if direction == "bidirectional" else 1
    attributes: dict[str, Any] = {"direction": direction}
    if clip is not None:
        attributes["clip"] = clip
    if kind == "GRU":
        attributes["linear_before_reset"] = int(variant)
    if kind == "LSTM":
        attributes["input_forget"] = int(variant)
    check(kind, layer(kind, present, directions), attributes)


ALPHAS = {
    "Affine": 0.5,
    "Elu": 0.9,
    "HardSigmoid": 0.3,
    "LeakyRelu": 0.1,
    "ScaledTanh": 0.7,
    "ThresholdedRelu": 0.2,
}
BETAS = {"Affine": 0.1, "HardSigmoid": 0.4, "ScaledTanh": 0.8}
NAMES = ["Affine", "Elu", "HardSigmoid", "LeakyRelu", "Relu", "ScaledTanh", "Sigmoid", "Softplus", "Softsign", "Tanh"]


@pytest.mark.parametrize("kind", sorted(GATES))
@pytest.mark.parametrize("name", [*NAMES, "ThresholdedRelu"])
def test_gate_functions(kind: str, name: str) -> None:
    count = FUNCTIONS[kind]
    attributes: dict[str, Any] = {"activations": [name] * count}
    for attribute, values in (("activation_alpha", ALPHAS), ("activation_beta", BETAS)):
        if name in values:
            attributes[attribute] = [values[name]] * count
    # Small numbers, for onnxruntime's Softplus overflows.
    small = [None if operand is None else operand * np.float32(0.3) for operand in layer(kind, {"B"}, 1)]
    check(kind, small, attributes)


def test_parameters_go_to_the_functions_that_have_them() -> None:
    attributes = {
        "direction": "bidirectional",
        "activations": ["Tanh", "LeakyRelu", "HardSigmoid", "Elu"],
        "activation_alpha": [0.2, 0.3, 0.5],
        "activation_beta": [0.6],
    }
    check("GRU", layer("GRU", {"B"}, 2), attributes)
