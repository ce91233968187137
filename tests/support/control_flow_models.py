"""ONNX models whose work is in branches and loops: an LSTM in three ways, Mandelbrot's set, greedy decoding."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import numpy_helper, parser

OPSET = 20


def _model(signature: str, body: str, weights: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """A model in the syntax of onnx's parser, with weights."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": {OPSET}]> graph {signature} {{ {body} }}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return model


CELL = """
    of_input = Gemm <transB = 1> ({row}, w, bias)
    of_state = Gemm <transB = 1> (h, r)
    gates = Add (of_input, of_state)
    i, o, f, c = Split <axis = -1, num_outputs = 4> (gates)
    in_gate = Sigmoid (i)
    out_gate = Sigmoid (o)
    forget = Sigmoid (f)
    new = Tanh (c)
    kept = Mul (forget, s)
    added = Mul (in_gate, new)
    next_s = Add (kept, added)
    limited = Tanh (next_s)
    next_h = Mul (out_gate, limited)
    out = Identity (next_h)
"""
"""A step of an LSTM with the state (h, s), as exporters write it."""

LSTM_BODIES = {
    "lstm": """
        direct, last_h, last_s = LSTM <hidden_size = {hidden}> (x, whole_w, whole_r, whole_bias)
        axis = Constant <value_ints = [1]> ()
        y = Squeeze (direct, axis)
    """,
    "scan": """
        last_h, last_s, y = Scan <
            num_scan_inputs = 1,
            body = step (float[{batch}, {hidden}] h, float[{batch}, {hidden}] s, float[{batch}, {width}] row)
            => (float[{batch}, {hidden}] next_h, float[{batch}, {hidden}] next_s, float[{batch}, {hidden}] out) {{
                {cell}
            }}
        > (zero, zero, x)
    """,
    "loop": """
        last_h, last_s, y = Loop <
            body = step (int64 number, bool go, float[{batch}, {hidden}] h, float[{batch}, {hidden}] s)
            => (bool goes_on, float[{batch}, {hidden}] next_h, float[{batch}, {hidden}] next_s,
                float[{batch}, {hidden}] out) {{
                row = Gather <axis = 0> (x, number)
                {cell}
                goes_on = Identity (go)
            }}
        > (steps, "", zero, zero)
    """,
}
"""The same layer as an operator, as a Scan over the steps, and as a Loop that reads each step by its number."""


def lstm(form: str, steps: int, batch: int, width: int, hidden: int) -> onnx.ModelProto:
    """An LSTM over `x` [steps, batch, width], whose result is [steps, batch, hidden], in one form of `LSTM_BODIES`."""
    rng = np.random.default_rng(0)
    shapes = {"w": (4 * hidden, width), "r": (4 * hidden, hidden), "bias": (4 * hidden,)}
    weights = {name: (rng.normal(size=shape) / np.sqrt(hidden)).astype(np.float32) for name, shape in shapes.items()}
    if form == "lstm":
        bias = np.concatenate([weights["bias"], np.zeros(4 * hidden, np.float32)])
        weights = {"whole_w": weights["w"][None], "whole_r": weights["r"][None], "whole_bias": bias[None]}
    else:
        weights |= {"zero": np.zeros((batch, hidden), np.float32), "steps": np.array(steps)}
    sizes = {"batch": batch, "width": width, "hidden": hidden}
    body = LSTM_BODIES[form].format(cell=CELL.format(row="row"), **sizes)
    signature = f"(float[{steps}, {batch}, {width}] x) => (float[{steps}, {batch}, {hidden}] y)"
    return _model(signature, body, weights)


def mandelbrot(side: int, trips: int) -> onnx.ModelProto:
    """How many of `trips` steps each point of a square stays near 0, as a Loop of elementwise operators."""
    line = np.linspace(-2, 2, side, dtype=np.float32)
    weights = {
        "re": np.ascontiguousarray(np.broadcast_to(line, (side, side))),
        "im": np.ascontiguousarray(np.broadcast_to(line[:, None], (side, side))),
        "zero": np.zeros((side, side), np.float32),
        "two": np.array(2, np.float32),
        "four": np.array(4, np.float32),
    }
    square = f"float[{side}, {side}]"
    return _model(
        f"(int64 n) => ({square} y)",
        f"""
        last_a, last_b, y = Loop (n, "", zero, zero, zero) <
            body = step (int64 number, bool go, {square} a, {square} b, {square} count)
            => (bool goes_on, {square} next_a, {square} next_b, {square} next_count) {{
                aa = Mul (a, a)
                bb = Mul (b, b)
                size = Add (aa, bb)
                is_near = Less (size, four)
                one = Cast <to = 1> (is_near)
                next_count = Add (count, one)
                difference = Sub (aa, bb)
                next_a = Add (difference, re)
                ab = Mul (a, b)
                twice = Mul (ab, two)
                next_b = Add (twice, im)
                goes_on = Identity (go)
            }}
        >
        """,
        weights,
    )


def greedy_decoder(most: int, vocabulary: int, width: int, end: int = 0) -> onnx.ModelProto:
    """
    Up to `most` tokens of a recurrent decoder behind token `first`: of the likeliest each, until it is `end`.

    The results are `tokens` [most], filled up with -1, and the number `count` of those that there are.
    """
    rng = np.random.default_rng(1)
    shapes = {"table": (vocabulary, width), "w": (width, width), "r": (width, width), "head": (width, vocabulary)}
    weights = {name: (rng.normal(size=shape) / np.sqrt(width)).astype(np.float32) for name, shape in shapes.items()}
    weights |= {
        "h0": np.zeros((1, width), np.float32),
        "no_tokens": np.full((most,), -1, np.int64),
        "none": np.array([0]),
        "one": np.array([1]),
        "most": np.array(most),
        "end": np.array([end]),
    }
    return _model(
        f"(int64[1] first) => (int64[{most}] tokens, int64[1] count)",
        f"""
        last_token, last_h, tokens, count = Loop (most, "", first, h0, no_tokens, none) <
            body = step (int64 number, bool go, int64[1] token, float[1, {width}] h, int64[{most}] sofar, int64[1] n)
            => (bool goes_on, int64[1] next_token, float[1, {width}] next_h, int64[{most}] all, int64[1] next_n) {{
                x = Gather <axis = 0> (table, token)
                of_input = MatMul (x, w)
                of_state = MatMul (h, r)
                sum = Add (of_input, of_state)
                next_h = Tanh (sum)
                logits = MatMul (next_h, head)
                next_token = ArgMax <axis = 1, keepdims = 0> (logits)
                all = ScatterElements (sofar, n, next_token)
                next_n = Add (n, one)
                is_end = Equal (next_token, end)
                goes_on_here = Not (is_end)
                shape = Constant <value_ints = [-1]> ()
                flat = Reshape (goes_on_here, shape)
                axis = Constant <value_ints = [0]> ()
                goes_on = Squeeze (flat, axis)
            }}
        >
        """,
        weights,
    )
