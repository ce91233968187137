"""Networks for images, as exporters write them: segmentation, detection, classification, generation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from written_models import Case, Weight, written


def unet() -> Case:
    """U-Net (Ronneberger et al. 2015) for images of any size: one step up transposed, one bilinear to a skip's size."""
    weights: dict[str, Weight] = {"w1": (8, 3, 3, 3), "w2": (12, 8, 3, 3), "w3": (16, 12, 3, 3), "up": (16, 12, 2, 2)}
    weights |= {"w4": (8, 24, 3, 3), "w5": (6, 16, 3, 3), "w6": (2, 6, 1, 1)}
    weights |= {f"{kind}{n}": (size,) for n, size in ((1, 8), (2, 12)) for kind in ("s", "bias", "bm", "sv")}
    weights |= {"two": np.array([2]), "four": np.array([4]), "none": np.zeros(0, np.float32)}
    return written(
        "(float[batch, 3, h, w] image) => (float[batch, 2, h, w] mask)",
        """
        c1 = Conv <pads = [1, 1, 1, 1]> (image, w1)
        n1 = BatchNormalization (c1, s1, bias1, bm1, sv1)
        a1 = Relu (n1)
        p1 = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (a1)
        c2 = Conv <pads = [1, 1, 1, 1]> (p1, w2)
        n2 = BatchNormalization (c2, s2, bias2, bm2, sv2)
        a2 = Relu (n2)
        p2 = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (a2)
        c3 = Conv <pads = [1, 1, 1, 1]> (p2, w3)
        a3 = LeakyRelu <alpha = 0.1> (c3)
        u2 = ConvTranspose <strides = [2, 2]> (a3, up)
        j2 = Concat <axis = 1> (u2, a2)
        c4 = Conv <pads = [1, 1, 1, 1]> (j2, w4)
        a4 = Relu (c4)
        whole = Shape (a1)
        plane = Slice (whole, two, four)
        here = Shape (a4)
        zero = Constant <value_ints = [0]> ()
        channels = Slice (here, zero, two)
        size = Concat <axis = 0> (channels, plane)
        u1 = Resize <mode = "linear", coordinate_transformation_mode = "align_corners"> (a4, none, none, size)
        j1 = Concat <axis = 1> (u1, a1)
        c5 = Conv <pads = [1, 1, 1, 1]> (j1, w5)
        a5 = Relu (c5)
        c6 = Conv (a5, w6)
        mask = Sigmoid (c6)
        """,
        weights,
        sizes={"batch": 2, "h": 12, "w": 20},
    )


def super_resolution() -> Case:
    """ESPCN (Shi et al. 2016): pixels from channels by Reshape and Transpose, as of old, and by DepthToSpace."""
    return written(
        "(float[batch, 1, h, w] image) => (float[batch, 1, h3, w3] old, float[batch, 1, h3, w3] new)",
        """
        c1 = Conv <pads = [2, 2, 2, 2]> (image, w1, b1)
        a1 = Relu (c1)
        c2 = Conv <pads = [1, 1, 1, 1]> (a1, w2, b2)
        shape = Shape (c2)
        zero = Constant <value_int = 0> ()
        two = Constant <value_int = 2> ()
        three = Constant <value_int = 3> ()
        n = Gather <axis = 0> (shape, zero)
        h = Gather <axis = 0> (shape, two)
        w = Gather <axis = 0> (shape, three)
        axis = Constant <value_ints = [0]> ()
        n1 = Unsqueeze (n, axis)
        h1 = Unsqueeze (h, axis)
        w1d = Unsqueeze (w, axis)
        one = Constant <value_ints = [1]> ()
        r = Constant <value_ints = [3]> ()
        apart = Concat <axis = 0> (n1, one, r, r, h1, w1d)
        blocks = Reshape (c2, apart)
        moved = Transpose <perm = [0, 1, 4, 2, 5, 3]> (blocks)
        tall = Mul (h, three)
        wide = Mul (w, three)
        tall1 = Unsqueeze (tall, axis)
        wide1 = Unsqueeze (wide, axis)
        together = Concat <axis = 0> (n1, one, tall1, wide1)
        old = Reshape (moved, together)
        new = DepthToSpace <blocksize = 3, mode = "CRD"> (c2)
        """,
        {"w1": (12, 1, 5, 5), "b1": (12,), "w2": (9, 12, 3, 3), "b2": (9,)},
        opset=13,
        sizes={"batch": 2, "h": 7, "w": 10},
    )


def detector() -> Case:
    """A head in the manner of YOLOv3 (Redmon, Farhadi 2018): boxes from anchors, and the ten of the best scores."""
    cells = np.stack(np.meshgrid(np.arange(6), np.arange(5)), -1).reshape(1, 1, 5, 6, 2).astype(np.float32)
    weights: dict[str, Weight] = {"w1": (12, 3, 3, 3), "w2": (12, 48, 1, 1), "bw3": (27, 12, 1, 1)}
    weights |= {"cells": cells, "anchors": np.array([10, 13, 16, 30, 33, 23], np.float32).reshape(1, 3, 1, 1, 2)}
    weights |= {"stride": np.array(8, np.float32), "apart": np.array([1, 3, 9, 5, 6]), "flat": np.array([1, -1, 4])}
    weights |= {
        "classes": np.array([1, -1, 4]),
        "k": np.array([10]),
        "last": np.array([-1]),
        "as_box": np.array([1, 1, 4]),
    }
    return written(
        "(float[1, 3, 40, 48] image) => (float[1, 10] best, float[1, 10, 4] found, int64[1, 10] kinds)",
        """
        c1 = Conv <strides = [8, 8], pads = [1, 1, 1, 1]> (image, w1)
        g1 = Sigmoid (c1)
        a1 = Mul (c1, g1)
        m1 = MaxPool <kernel_shape = [5, 5], pads = [2, 2, 2, 2]> (a1)
        m2 = MaxPool <kernel_shape = [5, 5], pads = [2, 2, 2, 2]> (m1)
        m3 = MaxPool <kernel_shape = [5, 5], pads = [2, 2, 2, 2]> (m2)
        joined = Concat <axis = 1> (a1, m1, m2, m3)
        c2 = Conv (joined, w2)
        c3 = Conv (c2, bw3, b3)
        by_anchor = Reshape (c3, apart)
        t = Transpose <perm = [0, 1, 3, 4, 2]> (by_anchor)
        xy, wh, objectness, scores = Split <axis = 4> (t, parts)
        xy01 = Sigmoid (xy)
        centre = Add (xy01, cells)
        at = Mul (centre, stride)
        factor = Exp (wh)
        size = Mul (factor, anchors)
        boxes5 = Concat <axis = -1> (at, size)
        boxes = Reshape (boxes5, flat)
        is_there = Sigmoid (objectness)
        likely = Sigmoid (scores)
        all5 = Mul (is_there, likely)
        all = Reshape (all5, classes)
        score = ReduceMax <axes = [2], keepdims = 0> (all)
        kind = ArgMax <axis = 2, keepdims = 0> (all)
        best, where = TopK <axis = 1> (score, k)
        column = Unsqueeze (where, last)
        index = Expand (column, as_box)
        found = GatherElements <axis = 1> (boxes, index)
        kinds = GatherElements <axis = 1> (kind, where)
        """,
        weights | {"parts": np.array([2, 2, 1, 4]), "b3": np.linspace(-2, 2, 27, dtype=np.float32) % 1.7},
    )


def suppressing_detector() -> Case:
    """A head in the manner of SSD (Liu et al. 2016) with NonMaxSuppression inside: as many boxes as there are."""
    centres = np.stack(np.meshgrid(np.arange(8), np.arange(6)), -1).reshape(1, 48, 2).astype(np.float32)
    weights: dict[str, Weight] = {"w1": (10, 3, 4, 4), "bw2": (4, 10, 1, 1), "w3": (3, 10, 1, 1), "centres": centres}
    weights |= {
        "rows4": np.array([1, 48, 4]),
        "by_class": np.array([1, 3, 48]),
        "all": np.array([-1]),
        "i0": np.array([0]),
    }
    weights |= {"most": np.array([4]), "overlap": np.array([0.3], np.float32), "least": np.array([0.55], np.float32)}
    weights |= {"one": np.array(1), "two": np.array(2), "count": np.array(48), "half": np.array(0.5, np.float32)}
    return written(
        "(float[1, 3, 24, 32] image) => (float[found, 4] boxes, float[found] best, int64[found] kinds)",
        """
        c1 = Conv <strides = [4, 4]> (image, w1)
        a1 = Relu (c1)
        d = Conv (a1, bw2)
        dt = Transpose <perm = [0, 2, 3, 1]> (d)
        deltas = Reshape (dt, rows4)
        s = Conv (a1, w3)
        likely = Sigmoid (s)
        scores = Reshape (likely, by_class)
        xy, wh = Split <axis = 2> (deltas)
        at = Add (xy, centres)
        size = Exp (wh)
        reach = Mul (size, half)
        low = Sub (at, reach)
        high = Add (at, reach)
        corners = Concat <axis = 2> (low, high)
        rows = NonMaxSuppression (corners, scores, most, overlap, least)
        kinds = Gather <axis = 1> (rows, one)
        numbers = Gather <axis = 1> (rows, two)
        flat = Squeeze (corners, i0)
        boxes = Gather <axis = 0> (flat, numbers)
        before = Mul (kinds, count)
        places = Add (before, numbers)
        every = Reshape (scores, all)
        best = Gather (every, places)
        """,
        weights,
    )


def old_classifier(opset: int = 4) -> Case:
    """
    A CNN as PyTorch 0.2 and Caffe2 wrote them: values are numbers, weights are inputs as well (IR version 3).

    Of opset 4, forms are those of opset 1; of opset 7, the first that onnxruntime knows.
    """
    rng = np.random.default_rng(3)
    shapes = {"1": (8, 3, 3, 3), "2": (8,), "3": (8,), "4": (8,), "5": (8,), "6": (8, 5), "7": (5,)}
    weights = {name: rng.uniform(0.1, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    is_old = opset < 7
    consumed: dict[str, Any] = {"consumed_inputs": [0]} if is_old else {}
    tested: dict[str, Any] = {"is_test": 1} if is_old else {}
    shape: dict[str, Any] = {"shape": [0, -1]} if is_old else {}
    statistics: dict[str, Any] = {"consumed_inputs": [0, 0, 0, 1, 1]} if is_old else {}
    broadcast: dict[str, Any] = {"broadcast": 1} if is_old else {}
    if not is_old:
        weights["8"] = np.array([0, -1])
    nodes = [
        helper.make_node("Conv", ["0", "1"], ["10"], kernel_shape=[3, 3], pads=[1] * 4, dilations=[1, 1], group=1),
        helper.make_node(
            "BatchNormalization",
            ["10", "2", "3", "4", "5"],
            ["11"],
            spatial=1,
            **tested,
            **statistics,
        ),
        helper.make_node("Relu", ["11"], ["12"], **consumed),
        helper.make_node("AveragePool", ["12"], ["13"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
        helper.make_node("Dropout", ["13"], ["14", "15"][: 1 + is_old], ratio=0.5, **tested, **consumed),
        helper.make_node("GlobalMaxPool", ["14"], ["16"]),
        helper.make_node("Reshape", ["16", "8"][: 2 - is_old], ["17"], **shape, **consumed),
        helper.make_node("Gemm", ["17", "6", "7"], ["18"], alpha=1.0, beta=1.0, **broadcast),
        helper.make_node("Softmax", ["18"], ["19"]),
    ]
    values = [helper.make_tensor_value_info("0", TensorProto.FLOAT, [2, 3, 9, 9])]
    values += [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in weights.items()
    ]
    result = helper.make_tensor_value_info("19", TensorProto.FLOAT, [2, 5])
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "torch-jit-export", values, [result], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)
    reference = old_classifier(7).model if is_old else None
    return Case(model, {"0": rng.standard_normal((2, 3, 9, 9)).astype(np.float32)}, reference)


def first_classifier() -> Case:
    """The same classifier in the forms of opset 7."""
    return old_classifier(7)


def convnext() -> Case:
    """A block of ConvNeXt (Liu et al. 2022): depthwise 7x7, channels last in the middle, a scale for each channel."""
    weights: dict[str, Weight] = {"w1": (16, 3, 4, 4), "w7": (16, 1, 7, 7), "sn": (16,), "bn": (16,), "scale": (16,)}
    weights |= {
        "wu": (16, 64),
        "bu": (64,),
        "wd": (64, 16),
        "bd": (16,),
        "wc": (16, 5),
        "tiny": np.array(1e-6, np.float32),
    }
    weights |= {"two": np.array(2, np.float32), "s3": (16, 1, 1)}
    return written(
        "(float[1, 3, 32, 32] image) => (float[1, 5] logits)",
        """
        stem = Conv <strides = [4, 4]> (image, w1)
        mean = ReduceMean <axes = [1], keepdims = 1> (stem)
        centred = Sub (stem, mean)
        squared = Pow (centred, two)
        variance = ReduceMean <axes = [1], keepdims = 1> (squared)
        safe = Add (variance, tiny)
        deviation = Sqrt (safe)
        unit = Div (centred, deviation)
        x = Mul (s3, unit)
        depth = Conv <group = 16, pads = [3, 3, 3, 3], kernel_shape = [7, 7]> (x, w7)
        last = Transpose <perm = [0, 2, 3, 1]> (depth)
        n = LayerNormalization <axis = -1, epsilon = 0.000001> (last, sn, bn)
        up0 = MatMul (n, wu)
        up = Add (up0, bu)
        erf_in = Div (up, root2)
        e = Erf (erf_in)
        e1 = Add (e, one)
        ue = Mul (up, e1)
        g = Mul (ue, half)
        down0 = MatMul (g, wd)
        down = Add (down0, bd)
        scaled = Mul (scale, down)
        front = Transpose <perm = [0, 3, 1, 2]> (scaled)
        y = Add (x, front)
        pooled = ReduceMean <axes = [-2, -1], keepdims = 0> (y)
        logits = MatMul (pooled, wc)
        """,
        weights | {f: np.array(v, np.float32) for f, v in (("half", 0.5), ("one", 1), ("root2", 2**0.5))},
    )


def efficientnet() -> Case:
    """A block of EfficientNet (Tan, Le 2019) as tf2onnx writes it: channels last, Swish, squeeze and excitation."""
    weights: dict[str, Weight] = {"w1": (8, 3, 3, 3), "we": (24, 8, 1, 1), "wd": (24, 1, 5, 5), "wp": (8, 24, 1, 1)}
    weights |= {"wr": (6, 24, 1, 1), "br": (6,), "wx": (24, 6, 1, 1), "bx": (24,), "wc": (8, 5), "bc": (5,)}
    weights |= {
        f"{kind}{n}": (size,) for n, size in ((1, 8), (2, 24), (3, 24), (4, 8)) for kind in ("s", "b", "bm", "sv")
    }

    def swish(x: str) -> str:
        return f"{x}_gate = Sigmoid ({x})  {x}_a = Mul ({x}, {x}_gate)"

    return written(
        "(float[batch, 16, 16, 3] image) => (float[batch, 5] probabilities)",
        f"""
        first = Transpose <perm = [0, 3, 1, 2]> (image)
        c1 = Conv <auto_pad = "SAME_UPPER", strides = [2, 2]> (first, w1)
        n1 = BatchNormalization (c1, s1, b1, bm1, sv1)
        {swish("n1")}
        c2 = Conv <auto_pad = "VALID"> (n1_a, we)
        n2 = BatchNormalization (c2, s2, b2, bm2, sv2)
        {swish("n2")}
        c3 = Conv <auto_pad = "SAME_LOWER", group = 24> (n2_a, wd)
        n3 = BatchNormalization (c3, s3, b3, bm3, sv3)
        {swish("n3")}
        pooled = GlobalAveragePool (n3_a)
        r = Conv (pooled, wr, br)
        {swish("r")}
        x = Conv (r_a, wx, bx)
        gate = Sigmoid (x)
        excited = Mul (gate, n3_a)
        c4 = Conv (excited, wp)
        n4 = BatchNormalization (c4, s4, b4, bm4, sv4)
        sum = Add (n4, n1_a)
        last = Transpose <perm = [0, 2, 3, 1]> (sum)
        flat = ReduceMean <axes = [1, 2], keepdims = 0> (last)
        dense = MatMul (flat, wc)
        logits = Add (dense, bc)
        probabilities = Softmax <axis = -1> (logits)
        """,
        weights,
        opset=13,
        sizes={"batch": 2},
    )


def generator() -> Case:
    """The generator of a DCGAN (Radford et al. 2015), with instance normalization."""
    weights: dict[str, Weight] = {"wf": (128, 10), "bf": (128,), "w1": (8, 6, 4, 4), "w2": (6, 3, 4, 4), "b2": (3,)}
    weights |= {"sn": (6,), "bn": (6,), "shape": np.array([-1, 8, 4, 4])}
    return written(
        "(float[batch, 10] z) => (float[batch, 3, 16, 16] image)",
        """
        f = Gemm <transB = 1> (z, wf, bf)
        cube = Reshape (f, shape)
        a0 = Relu (cube)
        u1 = ConvTranspose <strides = [2, 2], pads = [1, 1, 1, 1]> (a0, w1)
        n1 = InstanceNormalization (u1, sn, bn)
        a1 = LeakyRelu <alpha = 0.2> (n1)
        u2 = ConvTranspose <strides = [2, 2], pads = [1, 1, 1, 1], kernel_shape = [4, 4]> (a1, w2, b2)
        image = Tanh (u2)
        """,
        weights,
        sizes={"batch": 2},
    )


def style_transfer() -> Case:
    """Fast style transfer (Johnson et al. 2016) as PyTorch's example of opset 9: reflected borders, Upsample."""
    weights: dict[str, Weight] = {"w1": (6, 3, 5, 5), "w2": (8, 6, 3, 3), "w3": (6, 8, 3, 3), "w4": (3, 6, 3, 3)}
    weights |= {f"{kind}{n}": (size,) for n, size in ((1, 6), (2, 8), (3, 6)) for kind in "sb"}
    return written(
        "(float[1, 3, h, w] content) => (float[1, 3, h, w] styled)",
        """
        p1 = Pad <mode = "reflect", pads = [0, 0, 2, 2, 0, 0, 2, 2]> (content)
        c1 = Conv (p1, w1)
        n1 = InstanceNormalization (c1, s1, b1)
        a1 = Relu (n1)
        p2 = Pad <mode = "reflect", pads = [0, 0, 1, 1, 0, 0, 1, 1]> (a1)
        c2 = Conv <strides = [2, 2]> (p2, w2)
        n2 = InstanceNormalization (c2, s2, b2)
        a2 = Relu (n2)
        factors = Constant <value = float[4] {1, 1, 2, 2}> ()
        u = Upsample <mode = "nearest"> (a2, factors)
        p3 = Pad <mode = "edge", pads = [0, 0, 1, 1, 0, 0, 1, 1]> (u)
        c3 = Conv (p3, w3)
        n3 = InstanceNormalization (c3, s3, b3)
        a3 = Relu (n3)
        p4 = Pad <mode = "constant", pads = [0, 0, 1, 1, 0, 0, 1, 1], value = 0.0> (a3)
        styled = Conv (p4, w4)
        """,
        weights,
        opset=9,
        sizes={"h": 12, "w": 16},
    )


def volume_classifier() -> Case:
    """A CNN for volumes: three spatial axes, a grouped convolution along two of them, a step up and a trilinear one."""
    weights: dict[str, Weight] = {
        "w1": (6, 2, 3, 3, 3),
        "w2": (6, 3, 1, 3, 3),
        "up": (6, 4, 2, 2, 2),
        "wc": (4, 3),
        "bc": (3,),
    }
    weights |= {"sn": (6,), "bn": (6,), "bm": (6,), "sv": (6,), "factors": np.array([1, 1, 2, 2, 2], np.float32)}
    return written(
        "(float[1, 2, 4, 8, 8] volume) => (float[1, 3] logits)",
        """
        c1 = Conv <pads = [1, 1, 1, 1, 1, 1]> (volume, w1)
        n1 = BatchNormalization (c1, sn, bn, bm, sv)
        a1 = Relu (n1)
        p1 = MaxPool <kernel_shape = [2, 2, 2], strides = [2, 2, 2]> (a1)
        c2 = Conv <group = 2, strides = [1, 2, 2], pads = [0, 1, 1, 0, 1, 1]> (p1, w2)
        a2 = Elu (c2)
        u = ConvTranspose <strides = [2, 2, 2]> (a2, up)
        r = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (u, "", factors)
        pooled = GlobalAveragePool (r)
        flat = Flatten (pooled)
        logits = Gemm (flat, wc, bc)
        """,
        weights,
        opset=13,
    )


def quantized_classifier() -> Case:
    """A CNN in codes of 8 bits, with scales for each channel of its filters, as quantizers write it (QDQ)."""
    rng = np.random.default_rng(7)

    def codes(*shape: int) -> np.ndarray:
        return rng.integers(-127, 128, shape).astype(np.int8)

    weights: dict[str, Weight] = {"w1": codes(8, 3, 3, 3), "w2": codes(8, 1, 3, 3), "w3": codes(8, 5)}
    weights |= {
        "step1": rng.uniform(0.001, 0.003, 8).astype(np.float32),
        "step2": rng.uniform(0.002, 0.004, 8).astype(np.float32),
    }
    weights |= {"zeros": np.zeros(8, np.int8), "step3": np.array(0.004, np.float32), "zero": np.array(0, np.int8)}
    weights |= {"sx": np.array(0.021, np.float32), "zx": np.array(117, np.uint8), "sa": np.array(0.0137, np.float32)}
    weights |= {"za": np.array(0, np.uint8), "b": rng.integers(-900, 900, 8).astype(np.int32)}
    weights["sbias"] = np.float32(0.021) * np.asarray(weights["step1"])

    def coded(x: str, scale: str, zero: str) -> str:
        return f"{x}_q = QuantizeLinear ({x}, {scale}, {zero})  {x}_d = DequantizeLinear ({x}_q, {scale}, {zero})"

    return written(
        "(float[1, 3, 10, 10] image) => (float[1, 5] probabilities)",
        f"""
        {coded("image", "sx", "zx")}
        f1 = DequantizeLinear <axis = 0> (w1, step1, zeros)
        bias = DequantizeLinear <axis = 0> (b, sbias)
        c1 = Conv <pads = [1, 1, 1, 1]> (image_d, f1, bias)
        a1 = Relu (c1)
        {coded("a1", "sa", "za")}
        f2 = DequantizeLinear <axis = 0> (w2, step2, zeros)
        c2 = Conv <group = 8, pads = [1, 1, 1, 1]> (a1_d, f2)
        {coded("c2", "sx", "zx")}
        sum = Add (c2_d, a1_d)
        {coded("sum", "sx", "zx")}
        p = GlobalAveragePool (sum_d)
        {coded("p", "sx", "zx")}
        flat = Flatten (p_d)
        f3 = DequantizeLinear (w3, step3, zero)
        logits = MatMul (flat, f3)
        probabilities = Softmax <axis = -1> (logits)
        """,
        weights,
        opset=13,
    )


VISION: dict[str, Callable[[], Case]] = {
    "unet": unet,
    "super-resolution": super_resolution,
    "detector": detector,
    "detector with suppression": suppressing_detector,
    "classifier of opset 4": old_classifier,
    "classifier of opset 7": first_classifier,
    "convnext": convnext,
    "efficientnet": efficientnet,
    "generator": generator,
    "style transfer": style_transfer,
    "volumes": volume_classifier,
    "quantized": quantized_classifier,
}
"""Networks for images, by name."""
