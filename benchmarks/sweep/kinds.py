"""The kinds of models that were slow once, each with several sizes and element types: points that are not drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from onnx import TensorProto, helper

from sweep.points import Application, Operand, Point, given, point_of, weight

node = helper.make_node


def kinds() -> Iterator[Point]:
    """All of them."""
    for family in (wide, thin, filters, windows, banded, sorts, integers, calls):
        yield from family()


def _one(kind: str, words: str, application: Application) -> Point:
    point = application.point(f"{kind}: {words}", 7)
    return Point(point.name, point.operator, kind, point.graph, point.operands, point.seed)


def _many(kind: str, words: str, operator: str, nodes: Sequence[Any], operands: dict[str, Operand]) -> Point:
    return point_of(f"{kind}: {words}", operator, nodes, operands, ["y"], kind, 7)


def wide() -> Iterator[Point]:
    """Constants that are stored narrow, and read wide."""
    last = node("MatMul", ["x", "v"], ["y"])
    for rows, depth, columns in ((1, 2048, 2048), (1, 1000, 1501), (32, 768, 3072), (7, 1024, 1023)):
        x, size = Operand((rows, depth)), f"{rows}x{depth}x{columns}"
        codes = weight((depth, columns), "i8", "codes")
        step, steps = given(0.01, "f32"), weight((columns,), "f32", "from 0.01 0.02")
        zero, zeros = given(0, "i8"), weight((columns,), "i8", "from 0 1")
        half = weight((depth, columns), "f16", "from -0.1 0.1")
        read, unread = (
            node(f"{way}Linear", [a, "s", "z"], [b], axis=1)
            for way, a, b in (("Dequantize", "w", "v"), ("Quantize", "u", "w"))
        )
        cast = node("Cast", ["w"], ["c"], to=TensorProto.FLOAT)
        yield _many("wide", f"Cast f16 {size}", "MatMul", [node("Cast", ["w"], ["v"], to=1), last], {"x": x, "w": half})
        yield _many("wide", f"Dequantize {size}", "MatMul", [read, last], {"x": x, "w": codes, "s": step, "z": zero})
        yield _many(
            "wide", f"Dequantize axis {size}", "MatMul", [read, last], {"x": x, "w": codes, "s": steps, "z": zeros}
        )
        table = {"x": x, "u": weight((depth, columns), fill="from -1 1"), "s": step, "z": zero}
        yield _many("wide", f"Quantize Dequantize {size}", "MatMul", [unread, read, last], table)
        product = [cast, node("Mul", ["c", "s"], ["v"]), last]
        yield _many("wide", f"Cast Mul {size}", "MatMul", product, {"x": x, "w": codes, "s": step})
        tiled = [node("Tile", ["w", "n"], ["v"]), last]
        yield _many(
            "wide", f"Tile {size}", "MatMul", tiled, {"x": x, "w": weight((depth, columns)), "n": given([1, 1])}
        )
    for rows, width in ((100000, 64), (30011, 130)):
        for count in (8, 200):
            chosen = [node("Cast", ["w"], ["v"], to=TensorProto.FLOAT), node("Gather", ["v", "x"], ["y"])]
            operands = {"x": Operand((count,), "i64", f"from 0 {rows}"), "w": weight((rows, width), "f16")}
            yield _many("wide", f"Gather of Cast {rows}x{width}, {count} rows", "Gather", chosen, operands)
    for channels, side in ((512, 7), (250, 15)):
        nodes = [node("Cast", ["w"], ["v"], to=TensorProto.FLOAT), node("Conv", ["x", "v"], ["y"], pads=[1] * 4)]
        operands = {
            "x": Operand((1, channels, side, side)),
            "w": weight((channels, channels, 3, 3), "f16", "from -0.1 0.1"),
        }
        yield _many("wide", f"Cast f16 Conv {channels} @{side}", "Conv", nodes, operands)


def thin() -> Iterator[Point]:
    """Few rows, or one column, by a matrix that is no constant."""
    for rows in (1, 2, 3, 5, 8):
        for depth, columns in ((2048, 2048), (777, 1001), (64, 5000), (3000, 33)):
            operands = [Operand((rows, depth)), Operand((depth, columns))]
            yield _one("thin", f"{rows}x{depth}x{columns}", Application("MatMul", operands))
    for rows, depth in ((2048, 2048), (1001, 777), (5000, 64)):
        yield _one("thin", f"{rows}x{depth}x1", Application("MatMul", [Operand((rows, depth)), Operand((depth, 1))]))
        operands = [Operand((1, rows)), Operand((depth, rows))]
        yield _one("thin", f"1x{rows}x{depth} transposed", Application("Gemm", operands, {"transB": 1}))
    for batch, rows in ((12, 1), (5, 3)):
        operands = [Operand((batch, rows, 300)), Operand((batch, 300, 250))]
        yield _one("thin", f"{batch} of {rows}x300x250", Application("MatMul", operands))


def filters() -> Iterator[Point]:
    """Convolutions with large filters, few or odd channels, one axis, and transposed ones."""
    depthwise = ((64, 9, 9, 28), (32, 31, 31, 40), (32, 51, 5, 56), (5, 13, 11, 61), (17, 15, 15, 33))
    for channels, height, width, side in depthwise:
        for more in ({}, {"strides": [2, 2]}, {"dilations": [2, 2]}):
            pads = [
                (height - 1) // 2 * (2 if "dilations" in more else 1),
                (width - 1) // 2 * (2 if "dilations" in more else 1),
            ] * 2
            operands = [Operand((1, channels, side, side)), weight((channels, 1, height, width))]
            words = f"depthwise {height}x{width} of {channels} @{side} {' '.join(more)}".strip()
            yield _one("filters", words, Application("Conv", operands, {"group": channels, "pads": pads, **more}))
    for channels, times, step in ((64, 1, 6), (32, 2, 1), (33, 2, 3), (17, 3, 1)):
        operands = [Operand((1, channels, 56, 55)), weight((channels * times, 1, 3, 3))]
        more = {"group": channels, "pads": [step] * 4, "dilations": [step] * 2}
        yield _one(
            "filters",
            f"depthwise 3x3 of {channels}, {times} each, dilation {step}",
            Application("Conv", operands, more),
        )
    for groups, depth, outputs, side in ((32, 2, 2, 56), (16, 4, 4, 30), (8, 8, 8, 31), (5, 3, 7, 40), (12, 8, 16, 17)):
        operands = [Operand((1, groups * depth, side, side)), weight((groups * outputs, depth, 3, 3))]
        words = f"{groups} groups of {depth} to {outputs} @{side}"
        yield _one("filters", words, Application("Conv", operands, {"group": groups, "pads": [1] * 4}))
    for inputs, outputs, kernel, side in (
        (3, 5, 3, 100),
        (5, 17, 3, 60),
        (17, 3, 5, 50),
        (3, 17, 7, 90),
        (1, 1, 5, 200),
        (17, 17, 1, 70),
    ):
        operands = [Operand((1, inputs, side, side)), weight((outputs, inputs, kernel, kernel))]
        yield _one(
            "filters",
            f"{kernel}x{kernel} {inputs} to {outputs} @{side}",
            Application("Conv", operands, {"pads": [kernel // 2] * 4}),
        )
    for inputs, outputs, kernel, size in ((1, 16, 9, 4000), (64, 64, 3, 500), (33, 17, 5, 701), (80, 256, 7, 100)):
        operands = [Operand((1, inputs, size)), weight((outputs, inputs, kernel))]
        yield _one(
            "filters",
            f"{kernel} {inputs} to {outputs} @{size}",
            Application("Conv", operands, {"pads": [kernel // 2] * 2}),
        )
    for inputs, outputs, kernel, stride, side in (
        (32, 16, 2, 2, 28),
        (17, 5, 2, 2, 41),
        (32, 16, 4, 2, 28),
        (8, 8, 3, 1, 50),
    ):
        operands = [Operand((1, inputs, side, side)), weight((inputs, outputs, kernel, kernel))]
        words = f"transposed {kernel}x{kernel}/{stride} {inputs} to {outputs} @{side}"
        yield _one("filters", words, Application("ConvTranspose", operands, {"strides": [stride] * 2}))
    for channels, side in ((64, 256), (3, 301), (31, 100)):
        row = weight((channels,))
        operands = [Operand((1, channels, side, side)), row, row]
        yield _one("filters", f"instances {channels} @{side}", Application("InstanceNormalization", operands))


def windows() -> Iterator[Point]:
    """Wide windows at stride one."""
    for operator in ("MaxPool", "AveragePool"):
        for size, channels, side in ((5, 16, 56), (7, 16, 56), (11, 8, 64), (25, 8, 64), (31, 4, 80), (3, 17, 91)):
            more: dict[str, Any] = {"kernel_shape": [size] * 2, "pads": [size // 2] * 4}
            words = f"{operator} {size}x{size} of {channels} @{side}"
            yield _one("windows", words, Application(operator, [Operand((1, channels, side, side))], more))
        more = {"kernel_shape": [21], "pads": [10, 10]}
        yield _one("windows", f"{operator} 21", Application(operator, [Operand((1, 30, 2000))], more))
        more = {"kernel_shape": [5] * 3, "pads": [2] * 6}
        yield _one("windows", f"{operator} 5x5x5", Application(operator, [Operand((1, 3, 30, 31, 29))], more))
    for dtype in ("u8", "i8", "f64"):
        more = {"kernel_shape": [13, 13], "pads": [6] * 4}
        yield _one("windows", f"MaxPool 13x13 {dtype}", Application("MaxPool", [Operand((1, 8, 60, 60), dtype)], more))


def banded() -> Iterator[Point]:
    """Images scaled down, antialiased."""
    for before, after in ((512, 224), (300, 224), (640, 100), (97, 41)):
        for mode in ("linear", "cubic"):
            operands = [Operand((1, 3, before, before + 7)), None, None, given([1, 3, after, after])]
            more = {"mode": mode, "antialias": 1}
            yield _one("banded", f"{mode} {before} to {after}", Application("Resize", operands, more))


def sorts() -> Iterator[Point]:
    """Top elements, sorted ones, distinct ones, boxes that are kept."""
    rows = ((128, 1000, 50), (1, 20000, 20000), (1, 200000, 200000), (1, 50000, 100))
    logits = tuple((1, size, k) for size in (32000, 128256, 256000) for k in (1, 40, 50))
    for count, size, k in (*rows, *logits, (7, 1001, 1001)):
        for dtype in ("f32", "f16", "i32", "i64", "u8") if count == 128 or k == size == 20000 else ("f32",):
            fill = "codes" if dtype == "u8" else "from 0 1000000" if dtype in ("i32", "i64") else "normal"
            operands = [Operand((count, size), dtype, fill), given([k])]
            yield _one("sorts", f"{k} of {count}x{size} {dtype}", Application("TopK", operands, results=2))
    for size, dtype, fill in ((20000, "f32", "normal"), (20000, "i64", "from 0 1000000"), (20000, "i64", "from 0 100")):
        yield _one("sorts", f"unique {size} {dtype} {fill}", Application("Unique", [Operand((size,), dtype, fill)]))
    for boxes, classes in ((1000, 1), (3000, 1), (500, 20)):
        operands = [Operand((1, boxes, 4), "f32", "boxes 1"), Operand((1, classes, boxes), "f32", "from 0 1")]
        limits = [given([100]), given([0.5], "f32"), given([0.1], "f32")]
        yield _one("sorts", f"boxes {boxes} of {classes}", Application("NonMaxSuppression", [*operands, *limits]))


def integers() -> Iterator[Point]:
    """Codes that are made in each call."""
    for rows, depth, columns in ((32, 768, 768), (1, 768, 768), (7, 300, 1001), (128, 384, 384)):
        nodes = [
            node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
            node("MatMulInteger", ["q", "w", "z"], ["i"]),
            *(
                node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
                node("Mul", ["s", "t"], ["p"]),
                node("Mul", ["f", "p"], ["y"]),
            ),
        ]
        operands = {"x": Operand((rows, depth)), "w": weight((depth, columns), "i8", "codes"), "t": given(0.01, "f32")}
        yield _many("integers", f"MatMulInteger {rows}x{depth}x{columns}", "MatMulInteger", nodes, operands)
    for inputs, outputs, kernel, side in ((64, 64, 3, 28), (17, 33, 1, 41), (3, 32, 3, 112)):
        nodes = [
            node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
            node("ConvInteger", ["q", "w", "z"], ["i"], pads=[kernel // 2] * 4),
            *(node("Cast", ["i"], ["f"], to=TensorProto.FLOAT), node("Mul", ["f", "s"], ["y"])),
        ]
        operands = {
            "x": Operand((1, inputs, side, side)),
            "w": weight((outputs, inputs, kernel, kernel), "u8", "codes"),
        }
        yield _many(
            "integers", f"ConvInteger {kernel}x{kernel} {inputs} to {outputs} @{side}", "ConvInteger", nodes, operands
        )


def calls() -> Iterator[Point]:
    """A first axis that is free."""
    row = weight((500,))
    cases = {
        "Mul": [Operand((256, 500), free=True), row],
        "Softmax": [Operand((256, 501), free=True)],
        "Transpose": [Operand((64, 60, 90), free=True)],
        "InstanceNormalization": [Operand((4, 16, 50, 50), free=True), weight((16,)), weight((16,))],
        "Conv": [Operand((4, 16, 40, 40), free=True), weight((16, 16, 3, 3))],
        "Gemm": [Operand((64, 256), free=True), weight((256, 256))],
        "Relu": [Operand((3, 50), free=True)],
    }
    for operator, operands in cases.items():
        more = {"perm": [0, 2, 1]} if operator == "Transpose" else {}
        yield _one("calls", f"free {operator}", Application(operator, operands, more))
        fixed = [Operand(operand.shape, operand.dtype, operand.fill, operand.constant) for operand in operands]
        yield _one("calls", f"fixed {operator}", Application(operator, fixed, more))
