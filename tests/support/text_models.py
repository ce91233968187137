"""Networks for text, as exporters write them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from written_models import Case, Weight, written

WIDTH, HEADS = 24, 4
DEPTH = WIDTH // HEADS


def _layer(x: str, name: str, hidden: str) -> str:
    """Normalization, two products with an activation between them, and a sum; `hidden` makes `{name}g` of `{name}u`."""
    return f"""
        {name}n = LayerNormalization <axis = -1> ({x}, sn, bn)
        {name}u = MatMul ({name}n, wu)
        {hidden}
        {name}d = MatMul ({name}g, wd)
        {name} = Add ({x}, {name}d)"""


def gpt_step() -> Case:
    """A step of GPT-2 (Radford et al. 2019): keys and values of any number of tokens before, and a causal mask."""
    weights: dict[str, Weight] = {"btable": (40, WIDTH), "bplaces": (32, WIDTH), "sn": (WIDTH,), "bn": (WIDTH,)}
    weights |= {
        "wqkv": (WIDTH, 3 * WIDTH),
        "wo": (WIDTH, WIDTH),
        "wu": (WIDTH, 48),
        "wd": (48, WIDTH),
        "wh": (WIDTH, 40),
    }
    weights |= {"heads": np.array([0, 0, HEADS, DEPTH]), "joined": np.array([0, 0, WIDTH])}
    weights |= {f"i{n}": np.array([n]) for n in range(4)} | {"thirds": np.array([WIDTH] * 3)}
    weights |= {"lowest": np.array(-1e9, np.float32), "root": np.array(DEPTH**0.5, np.float32)}
    weights |= {"zero": np.array(0), "one": np.array(1), "causal": np.tril(np.ones((1, 1, 32, 32), bool))}
    past = f"float[batch, {HEADS}, past, {DEPTH}]"
    hidden = """
        cubed = Mul (yu, yu)  cubed3 = Mul (cubed, yu)  small = Mul (cubed3, c0)  inner = Add (yu, small)
        scaled = Mul (inner, c1)  th = Tanh (scaled)  th1 = Add (th, c2)  uh = Mul (yu, th1)  yg = Mul (uh, c3)"""
    constants = {"c0": 0.044715, "c1": (2 / np.pi) ** 0.5, "c2": 1, "c3": 0.5}
    return written(
        f"(int64[batch, new] ids, {past} keys, {past} values) => (float[batch, new, 40] logits,"
        f" float[batch, {HEADS}, all, {DEPTH}] next_keys, float[batch, {HEADS}, all, {DEPTH}] next_values)",
        f"""
        old = Shape <start = 2, end = 3> (keys)
        count = Shape <start = 1, end = 2> (ids)
        whole = Add (old, count)
        from = Squeeze (old, i0)
        to = Squeeze (whole, i0)
        numbers = Range (from, to, one)
        places = Gather (bplaces, numbers)
        tokens = Gather (btable, ids)
        x = Add (tokens, places)
        n = LayerNormalization <axis = -1> (x, sn, bn)
        qkv = MatMul (n, wqkv)
        q0, k0, v0 = Split <axis = -1> (qkv, thirds)
        q1 = Reshape (q0, heads)  q = Transpose <perm = [0, 2, 1, 3]> (q1)
        k1 = Reshape (k0, heads)  k2 = Transpose <perm = [0, 2, 1, 3]> (k1)
        v1 = Reshape (v0, heads)  v2 = Transpose <perm = [0, 2, 1, 3]> (v1)
        next_keys = Concat <axis = 2> (keys, k2)
        next_values = Concat <axis = 2> (values, v2)
        kt = Transpose <perm = [0, 1, 3, 2]> (next_keys)
        product = MatMul (q, kt)
        scores = Div (product, root)
        rows = Slice (causal, old, whole, i2)
        mask = Slice (rows, i0, whole, i3)
        hidden = Where (mask, scores, lowest)
        attention = Softmax <axis = -1> (hidden)
        seen = MatMul (attention, next_values)
        back = Transpose <perm = [0, 2, 1, 3]> (seen)
        flat = Reshape (back, joined)
        o = MatMul (flat, wo)
        x2 = Add (x, o)
        {_layer("x2", "y", hidden)}
        logits = MatMul (y, wh)
        """,
        weights | {name: np.array(value, np.float32) for name, value in constants.items()},
        sizes={"batch": 1, "new": 2, "past": 5},
    )


BUCKETS = """
    count = Shape <start = 1, end = 2> (ids)
    to = Squeeze (count, i0)
    numbers = Range (zero, to, one)
    row = Unsqueeze (numbers, i0)
    column = Unsqueeze (numbers, i1)
    distance = Sub (row, column)
    is_ahead = Greater (distance, zero)
    ahead = Cast <to = 7> (is_ahead)
    first = Mul (ahead, four)
    far = Abs (distance)
    is_near = Less (far, near)
    far_f = Cast <to = 1> (far)
    ratio = Div (far_f, near_f)
    positive = Max (ratio, tiny)
    logarithm = Log (positive)
    share = Div (logarithm, log)
    places = Mul (share, two)
    whole = Cast <to = 7> (places)
    large = Add (whole, near)
    limited = Min (large, most)
    bucket0 = Where (is_near, far, limited)
    bucket = Add (first, bucket0)
"""
"""The number of the bucket that the distance of each two words is in: those far apart share some."""


def relative_positions() -> Case:
    """The encoder of T5 (Raffel et al. 2019): distances in buckets by a logarithm, RMS norms, no scale of scores."""
    weights: dict[str, Weight] = {"btable": (40, WIDTH), "bdistance": (8, HEADS), "sn": (WIDTH,)}
    weights |= {f"w{name}": (WIDTH, WIDTH) for name in "qkvo"} | {"wu": (WIDTH, 48), "wd": (48, WIDTH)}
    weights |= {"heads": np.array([0, 0, HEADS, DEPTH]), "joined": np.array([0, 0, WIDTH])}
    weights |= {f"i{n}": np.array([n]) for n in (0, 1)} | {
        "last": np.array([-1]),
        "zero": np.array(0),
        "one": np.array(1),
    }
    weights |= {
        "two": np.array(2, np.float32),
        "tiny": np.array(1e-6, np.float32),
        "near": np.array(2),
        "most": np.array(3),
    }
    weights |= {"near_f": np.array(2, np.float32), "log": np.array(np.log(8), np.float32), "four": np.array(4)}
    norm = """
        {0}2 = Pow ({0}, two)  {0}m = ReduceMean <axes = [-1]> ({0}2)  {0}e = Add ({0}m, tiny)
        {0}r = Sqrt ({0}e)  {0}u = Div ({0}, {0}r)  {0}n = Mul (sn, {0}u)"""
    split = "{0}0 = MatMul (xn, w{0})  {0}1 = Reshape ({0}0, heads)  {0} = Transpose <perm = [0, 2, 1, 3]> ({0}1)"
    return written(
        f"(int64[batch, length] ids) => (float[batch, length, {WIDTH}] states)",
        f"""
        x = Gather (btable, ids)
        {norm.format("x")}
        {split.format("q")}
        {split.format("k")}
        {split.format("v")}
        {BUCKETS}
        offsets = Gather (bdistance, bucket)
        by_head = Transpose <perm = [2, 0, 1]> (offsets)
        bias = Unsqueeze (by_head, i0)
        kt = Transpose <perm = [0, 1, 3, 2]> (k)
        product = MatMul (q, kt)
        scores = Add (product, bias)
        attention = Softmax <axis = -1> (scores)
        seen = MatMul (attention, v)
        back = Transpose <perm = [0, 2, 1, 3]> (seen)
        flat = Reshape (back, joined)
        o = MatMul (flat, wo)
        y = Add (x, o)
        {norm.format("y")}
        up = MatMul (yn, wu)
        active = Relu (up)
        down = MatMul (active, wd)
        states = Add (y, down)
        """,
        weights,
        sizes={"batch": 2, "length": 9},
    )


def masked_encoder() -> Case:
    """BERT (Devlin et al. 2018) of opset 11: a mask by Cast, Sub and Mul, positions by Slice, a pooled first token."""
    weights: dict[str, Weight] = {"btable": (40, WIDTH), "bplaces": (16, WIDTH), "bkinds": (2, WIDTH)}
    weights |= {f"w{name}": (WIDTH, WIDTH) for name in "qkvop"} | {f"b{name}": (WIDTH,) for name in "qkvopn"}
    weights |= {"sn": (WIDTH,), "heads": np.array([0, 0, HEADS, DEPTH]), "joined": np.array([0, 0, WIDTH])}
    weights |= {"zero": np.array(0), "places": np.arange(16)[None], "i0": np.array([0]), "i1": np.array([1])}
    numbers = {"one_f": 1, "lowest": -10000, "root": DEPTH**0.5, "two": 2, "tiny": 1e-12}
    split = """
        {0}0 = MatMul (x, w{0})  {0}1 = Add ({0}0, b{0})
        {0}2 = Reshape ({0}1, heads)  {0} = Transpose <perm = {1}> ({0}2)"""
    norm = """
        {0}m = ReduceMean <axes = [-1]> ({0})  {0}c = Sub ({0}, {0}m)  {0}2 = Pow ({0}c, two)
        {0}v = ReduceMean <axes = [-1]> ({0}2)  {0}e = Add ({0}v, tiny)  {0}r = Sqrt ({0}e)
        {0}u = Div ({0}c, {0}r)  {0}s = Mul ({0}u, sn)  {1} = Add ({0}s, bn)"""
    return written(
        f"(int64[batch, length] ids, int64[batch, length] mask, int64[batch, length] kinds) =>"
        f" (float[batch, length, {WIDTH}] states, float[batch, {WIDTH}] pooled)",
        f"""
        outer = Unsqueeze <axes = [1]> (mask)
        wide = Unsqueeze <axes = [2]> (outer)
        mask_f = Cast <to = 1> (wide)
        turned = Sub (one_f, mask_f)
        offset = Mul (turned, lowest)
        shape = Shape (ids)
        length0 = Constant <value = int64 {{1}}> ()
        length1 = Gather <axis = 0> (shape, length0)
        length = Unsqueeze <axes = [0]> (length1)
        numbers = Slice (places, i0, length, i1)
        t = Gather (btable, ids)
        p = Gather (bplaces, numbers)
        k_ = Gather (bkinds, kinds)
        tk = Add (t, k_)
        e = Add (tk, p)
        {norm.format("e", "x")}
        {split.format("q", "[0, 2, 1, 3]")}
        {split.format("k", "[0, 2, 3, 1]")}
        {split.format("v", "[0, 2, 1, 3]")}
        product = MatMul (q, k)
        scores = Div (product, root)
        biased = Add (scores, offset)
        attention = Softmax <axis = -1> (biased)
        seen = MatMul (attention, v)
        back = Transpose <perm = [0, 2, 1, 3]> (seen)
        flat = Reshape (back, joined)
        o0 = MatMul (flat, wo)
        o1 = Add (o0, bo)
        y = Add (o1, x)
        {norm.format("y", "states")}
        first = Gather <axis = 1> (states, zero)
        pool0 = Gemm (first, wp, bp)
        pooled = Tanh (pool0)
        """,
        weights | {name: np.array(value, np.float32) for name, value in numbers.items()},
        opset=11,
        sizes={"batch": 2, "length": 7},
        inputs={
            "mask": np.array([[1] * 7, [1] * 4 + [0] * 3]),
            "kinds": np.array([[0] * 3 + [1] * 4] * 2),
        },
    )


ROTARY_ANGLES = """
    length = Shape <start = 1, end = 2> (ids)
    to = Squeeze (length, i0)
    numbers = Range (zero, to, one)
    place = Cast <to = 1> (numbers)
    column = Unsqueeze (place, i1)
    angles = Mul (column, rates)
    both = Concat <axis = -1> (angles, angles)
    cos = Cos (both)
    sin = Sin (both)
"""
"""Cosines and sines of the angles by which places are rotated."""

ROTARY_FUNCTIONS = """
    <domain: "local", opset_import: ["": 18]>
    norm <epsilon: float = 0.00001> (x, scale) => (y) {
        two = Constant <value_float = 2.0> ()
        squared = Pow (x, two)
        axis = Constant <value_ints = [-1]> ()
        mean = ReduceMean <keepdims = 1> (squared, axis)
        e = Constant <value_float: float = @epsilon> ()
        safe = Add (mean, e)
        root = Sqrt (safe)
        unit = Div (x, root)
        y = Mul (scale, unit)
    }
    <domain: "local", opset_import: ["": 18]>
    silu (x) => (y) { gate = Sigmoid (x)  y = Mul (x, gate) }
    <domain: "local", opset_import: ["": 18]>
    rotated (x, cos, sin) => (y) {
        left, right = Split <axis = -1, num_outputs = 2> (x)
        turned = Neg (right)
        halves = Concat <axis = -1> (turned, left)
        a = Mul (x, cos)
        b = Mul (halves, sin)
        y = Add (a, b)
    }
"""
"""The norm, the activation and the rotation of `rotary_decoder`, as functions of the model."""


def _rotary_weights() -> dict[str, Weight]:
    """The weights of `rotary_decoder`."""
    weights: dict[str, Weight] = {"btable": (40, WIDTH), "sn": (WIDTH,), "wq": (WIDTH, WIDTH), "wo": (WIDTH, WIDTH)}
    weights |= {
        "wk": (WIDTH, WIDTH // 2),
        "wv": (WIDTH, WIDTH // 2),
        "wg": (WIDTH, 48),
        "wu": (WIDTH, 48),
        "wd": (48, WIDTH),
    }
    weights |= {"rates": (10000.0 ** -(np.arange(3) / 3)).astype(np.float32)[None], "wanted": np.array([1, 1, 2, 1, 1])}
    weights |= {
        "heads": np.array([0, 0, -1, DEPTH]),
        "joined": np.array([0, 0, WIDTH]),
        "apart": np.array([0, HEADS, -1, DEPTH]),
    }
    weights |= {
        "root": np.array(DEPTH**-0.5, np.float32),
        "zero": np.array(0),
        "one": np.array(1),
        "upper": np.array(1),
    }
    weights |= {f"i{n}": np.array([n]) for n in (0, 1, 2)} | {"lowest": np.array([-np.inf], np.float32)}
    return weights


def rotary_decoder() -> Case:
    """A layer of Llama (Touvron et al. 2023): rotated halves, keys shared by heads, gated products, local functions."""
    split = "{0}0 = MatMul (xn, w{0})  {0}1 = Reshape ({0}0, heads)  {0} = Transpose <perm = [0, 2, 1, 3]> ({0}1)"
    shared = "{0}5 = Unsqueeze ({0}r, i2)  {0}6 = Tile ({0}5, wanted)  {0}7 = Reshape ({0}6, apart)"
    return written(
        f"(int64[batch, length] ids) => (float[batch, length, {WIDTH}] states)",
        f"""
        x = Gather (btable, ids)
        xn = local.norm <epsilon = 0.00001> (x, sn)
        {split.format("q")}
        {split.format("k")}
        {split.format("v")}
        {ROTARY_ANGLES}
        qr = local.rotated (q, cos, sin)
        kr = local.rotated (k, cos, sin)
        vr = Identity (v)
        {shared.format("k")}
        {shared.format("v")}
        square = Concat <axis = 0> (length, length)
        low = Expand (lowest, square)
        mask = Trilu <upper = 1> (low, upper)
        kt = Transpose <perm = [0, 1, 3, 2]> (k7)
        product = MatMul (qr, kt)
        scaled = Mul (product, root)
        scores = Add (scaled, mask)
        attention = Softmax <axis = -1> (scores)
        seen = MatMul (attention, v7)
        back = Transpose <perm = [0, 2, 1, 3]> (seen)
        flat = Reshape (back, joined)
        o = MatMul (flat, wo)
        y = Add (x, o)
        yn = local.norm (y, sn)
        g = MatMul (yn, wg)
        a = local.silu (g)
        u = MatMul (yn, wu)
        gated = Mul (a, u)
        d = MatMul (gated, wd)
        states = Add (y, d)
        """,
        _rotary_weights(),
        opset=18,
        sizes={"batch": 2, "length": 6},
        tail=ROTARY_FUNCTIONS,
    )


def tagger() -> Case:
    """A bidirectional LSTM and GRU over words, initial states as PyTorch makes them, and a tag for each word."""
    weights: dict[str, Weight] = {"btable": (40, 8), "wl": (2, 20, 8), "rl": (2, 20, 5), "bl": (2, 40)}
    weights |= {
        "wg": (2, 12, 10),
        "rg": (2, 12, 4),
        "bg": (2, 24),
        "wc": (8, 3),
        "bc": (3,),
        "joined": np.array([0, 0, -1]),
    }
    weights |= {"two": np.array([2]), "five": np.array([5]), "four": np.array([4]), "i0": np.array([0])}
    return written(
        "(int64[batch, words] ids) => (float[batch, words, 3] tags, float[2, batch, 4] last)",
        """
        embedded = Gather (btable, ids)
        x = Transpose <perm = [1, 0, 2]> (embedded)
        count = Shape <start = 1, end = 2> (x)
        shape_l = Concat <axis = 0> (two, count, five)
        zero_l = ConstantOfShape <value = float[1] {0}> (shape_l)
        h, hn, cn = LSTM <direction = "bidirectional", hidden_size = 5> (x, wl, rl, bl, "", zero_l, zero_l)
        by_step = Transpose <perm = [0, 2, 1, 3]> (h)
        flat = Reshape (by_step, joined)
        shape_g = Concat <axis = 0> (two, count, four)
        zero_g = ConstantOfShape (shape_g)
        g, last = GRU <direction = "bidirectional", hidden_size = 4, linear_before_reset = 1>
            (flat, wg, rg, bg, "", zero_g)
        by_step_g = Transpose <perm = [0, 2, 1, 3]> (g)
        flat_g = Reshape (by_step_g, joined)
        product = MatMul (flat_g, wc)
        logits = Add (product, bc)
        batch_first = Transpose <perm = [1, 0, 2]> (logits)
        tags = LogSoftmax <axis = -1> (batch_first)
        """,
        weights,
        opset=15,
        sizes={"batch": 2, "words": 6},
    )


TEXTS: dict[str, Callable[[], Case]] = {
    "gpt step": gpt_step,
    "relative positions": relative_positions,
    "masked encoder": masked_encoder,
    "rotary decoder": rotary_decoder,
    "tagger": tagger,
}
"""Networks for text, by name."""
