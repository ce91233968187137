"""Networks for sound, points and graphs, as exporters write them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from written_models import Case, Weight, written


def speech_front_end() -> Case:
    """Samples to a logarithmic mel spectrogram by STFT and MelWeightMatrix, normalized, and a convolutional encoder."""
    weights: dict[str, Weight] = {"w1": (12, 16, 3), "b1": (12,), "w2": (12, 12, 3), "b2": (12,), "wc": (12, 6)}
    weights |= {"step": np.array(32), "length": np.array(64), "bands": np.array(16), "rate": np.array(8000)}
    weights |= {"low": np.array(20, np.float32), "high": np.array(3800, np.float32), "last": np.array([-1])}
    weights |= {"tiny": np.array(1e-5, np.float32), "floor": np.array(1e-10, np.float32)}
    return written(
        "(float[batch, 640, 1] samples) => (float[batch, 10, 6] states)",
        """
        window = HannWindow (length)
        spectrum = STFT (samples, step, window, length)
        squared = Mul (spectrum, spectrum)
        power = ReduceSum <keepdims = 0> (squared, last)
        filters = MelWeightMatrix (bands, length, rate, low, high)
        energy = MatMul (power, filters)
        safe = Max (energy, floor)
        mel = Log (safe)
        mean = ReduceMean <axes = [1]> (mel)
        centred = Sub (mel, mean)
        again = Mul (centred, centred)
        variance = ReduceMean <axes = [1]> (again)
        safe2 = Add (variance, tiny)
        deviation = Sqrt (safe2)
        unit = Div (centred, deviation)
        x = Transpose <perm = [0, 2, 1]> (unit)
        c1 = Conv <pads = [1, 1]> (x, w1, b1)
        a1 = Relu (c1)
        c2 = Conv <pads = [1, 1], strides = [2]> (a1, w2, b2)
        a2 = Relu (c2)
        rows = Transpose <perm = [0, 2, 1]> (a2)
        states = MatMul (rows, wc)
        """,
        weights,
        sizes={"batch": 2},
    )


def speech_separation() -> Case:
    """Conv-TasNet (Luo, Mesgarani 2019): a learned basis, dilated depthwise convolutions, masks, and the way back."""
    weights: dict[str, Weight] = {
        "basis": (12, 1, 8),
        "back": (12, 1, 8),
        "wm": (24, 12, 1),
        "apart": np.array([0, 2, 12, -1]),
    }
    weights |= {
        "one": np.array([1]),
        "flat": np.array([-1, 12, 39]),
        "sources": np.array([-1, 2, 160]),
        "groups": np.array([0, 1, -1]),
    }
    weights |= {
        "sg": np.ones(1, np.float32),
        "bg": np.zeros(1, np.float32),
        "slope1": np.full((16, 1), 0.2, np.float32),
    }
    weights |= {"slope": np.array([0.25], np.float32), "sc": (16, 1), "bc": (16, 1)}
    blocks = ""
    for n, dilation in enumerate((1, 2, 4)):
        weights |= {f"wi{n}": (16, 12, 1), f"wd{n}": (16, 1, 3), f"wo{n}": (12, 16, 1)}
        blocks += f"""
            a{n} = Conv (x{n}, wi{n})
            p{n} = PRelu (a{n}, slope)
            shape{n} = Shape (p{n})
            r{n} = Reshape (p{n}, groups)
            i{n} = InstanceNormalization (r{n}, sg, bg)
            g{n} = Reshape (i{n}, shape{n})
            m{n} = Mul (g{n}, sc)
            n{n} = Add (m{n}, bc)
            d{n} = Conv <group = 16, dilations = [{dilation}], pads = [{dilation}, {dilation}]> (n{n}, wd{n})
            q{n} = PRelu (d{n}, slope1)
            o{n} = Conv (q{n}, wo{n})
            x{n + 1} = Add (x{n}, o{n})"""
    return written(
        "(float[batch, 1, 160] mixture) => (float[batch, 2, 160] sources_out)",
        f"""
        c = Conv <strides = [4]> (mixture, basis)
        x0 = Relu (c)
        {blocks}
        m = Conv (x3, wm)
        mask = Sigmoid (m)
        masks = Reshape (mask, apart)
        w1 = Unsqueeze (x0, one)
        masked = Mul (masks, w1)
        all = Reshape (masked, flat)
        signal = ConvTranspose <strides = [4]> (all, back)
        sources_out = Reshape (signal, sources)
        """,
        weights,
        opset=14,
        sizes={"batch": 1},
    )


def keyword_spotter() -> Case:
    """A depthwise separable CNN on spectrograms (Zhang et al. 2017), its average pool as wide as the image is."""
    weights: dict[str, Weight] = {
        "w1": (8, 1, 10, 4),
        "wd": (8, 1, 3, 3),
        "wp": (10, 8, 1, 1),
        "wc": (12, 10),
        "bc": (12,),
    }
    weights |= {
        "sn": (10,),
        "bn": (10,),
        "bm": (10,),
        "sv": (10,),
        "low": np.array(0, np.float32),
        "six": np.array(6, np.float32),
    }
    return written(
        "(float[batch, 1, 30, 20] spectrum) => (float[batch, 12] probabilities)",
        """
        c1 = Conv <strides = [2, 2], pads = [5, 1, 4, 2]> (spectrum, w1)
        a1 = Clip (c1, low, six)
        d = Conv <group = 8, pads = [1, 1, 1, 1]> (a1, wd)
        p = Conv (d, wp)
        n = BatchNormalization (p, sn, bn, bm, sv)
        a2 = Clip (n, low)
        mean = AveragePool <kernel_shape = [15, 10]> (a2)
        shape = Shape (mean)
        first = Constant <value_ints = [0]> ()
        count = Gather <axis = 0> (shape, first)
        rest = Constant <value_ints = [-1]> ()
        wanted = Concat <axis = 0> (count, rest)
        flat = Reshape (mean, wanted)
        logits = Gemm <transB = 1> (flat, wc, bc)
        probabilities = Softmax <axis = 1> (logits)
        """,
        weights,
        opset=12,
        sizes={"batch": 2},
    )


def point_cloud() -> Case:
    """An edge convolution on the nearest neighbours of points (DGCNN, Wang et al. 2018)."""
    weights: dict[str, Weight] = {"w1": (8, 6, 1, 1), "w2": (10, 8, 1), "wc": (10, 4), "k": np.array([4])}
    weights |= {
        "minus2": np.array(-2, np.float32),
        "first": (np.arange(2) * 12).reshape(2, 1, 1),
        "all": np.array([-1]),
    }
    weights |= {"points": np.array([-1, 3]), "near": np.array([2, 12, 4, 3]), "itself": np.array([2, 12, 1, 3])}
    weights |= {"repeats": np.array([1, 1, 4, 1])}
    return written(
        "(float[2, 3, 12] points_in) => (float[2, 4] logits)",
        """
        turned = Transpose <perm = [0, 2, 1]> (points_in)
        product = MatMul (turned, points_in)
        inner = Mul (product, minus2)
        squared = Mul (points_in, points_in)
        norms = ReduceSumSquare <axes = [1], keepdims = 1> (points_in)
        sides = Transpose <perm = [0, 2, 1]> (norms)
        half = Add (inner, norms)
        distances = Add (half, sides)
        nearest, places = TopK <axis = -1, largest = 0, sorted = 1> (distances, k)
        numbers = Add (places, first)
        flat_numbers = Reshape (numbers, all)
        flat = Reshape (turned, points)
        taken = Gather <axis = 0> (flat, flat_numbers)
        neighbours = Reshape (taken, near)
        centre = Reshape (flat, itself)
        centres = Tile (centre, repeats)
        edges = Sub (neighbours, centres)
        features = Concat <axis = 3> (edges, centres)
        image = Transpose <perm = [0, 3, 1, 2]> (features)
        c1 = Conv (image, w1)
        a1 = LeakyRelu <alpha = 0.2> (c1)
        best = ReduceMax <axes = [-1], keepdims = 0> (a1)
        c2 = Conv (best, w2)
        whole = ReduceMax <axes = [2], keepdims = 0> (c2)
        logits = MatMul (whole, wc)
        """,
        weights,
    )


def graph_attention() -> Case:
    """Attention along the edges of a graph (Veličković et al. 2017): sums and maxima of the edges of each node."""
    weights: dict[str, Weight] = {
        "w1": (8, 6),
        "ws": (6, 1),
        "wt": (6, 1),
        "wc": (6, 3),
        "i0": np.array(0),
        "i1": np.array(1),
    }
    weights |= {"last": np.array([-1]), "lowest": np.full(7, -1e9, np.float32), "none": np.zeros(7, np.float32)}
    weights |= {"empty": np.zeros((7, 6), np.float32), "tiny": np.array(1e-9, np.float32)}
    edges = np.array([[0, 1, 2, 3, 4, 5, 0, 2, 6, 1], [1, 2, 3, 4, 5, 0, 3, 5, 6, 1]])
    return written(
        "(float[7, 8] x, int64[2, edges] edge) => (float[7, 3] logits)",
        """
        source = Gather <axis = 0> (edge, i0)
        target = Gather <axis = 0> (edge, i1)
        h = MatMul (x, w1)
        from = Gather <axis = 0> (h, source)
        to = Gather <axis = 0> (h, target)
        of_source = MatMul (from, ws)
        of_target = MatMul (to, wt)
        sum = Add (of_source, of_target)
        active = LeakyRelu <alpha = 0.2> (sum)
        scores = Squeeze (active, last)
        most = ScatterElements <axis = 0, reduction = "max"> (lowest, target, scores)
        most_here = Gather (most, target)
        less = Sub (scores, most_here)
        e = Exp (less)
        total = ScatterElements <axis = 0, reduction = "add"> (none, target, e)
        total_here = Gather (total, target)
        safe = Add (total_here, tiny)
        share = Div (e, safe)
        column = Unsqueeze (share, last)
        sent = Mul (from, column)
        place = Unsqueeze (target, last)
        received = ScatterND <reduction = "add"> (empty, place, sent)
        state = Elu (received)
        logits = MatMul (state, wc)
        """,
        weights,
        opset=18,
        inputs={"edge": edges},
    )


SIGNALS: dict[str, Callable[[], Case]] = {
    "speech front end": speech_front_end,
    "speech separation": speech_separation,
    "keyword spotter": keyword_spotter,
    "point cloud": point_cloud,
    "graph attention": graph_attention,
}
"""Networks for sound, points and graphs, by name."""
