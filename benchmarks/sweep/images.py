"""Templates of operators on images: convolutions, windows, sampling."""

from __future__ import annotations

from typing import Any

from sweep.drawing import FLOATS, Draw, draws
from sweep.points import ONNXRUNTIME, Application, Operand, given, weight


def _filters(draw: Draw, rank: int, least: int = 1) -> list[int]:
    return [draw.pick(1, 3, 3, 5, 7) if least == 1 else draw.pick(2, 3, 5) for _ in range(rank)]


def _extent(draw: Draw, rank: int, channels: int, cost: float) -> list[int]:
    """Sizes of an image of one, two or three axes, that together have as many elements as the span says."""
    elements = draw.shape(1, cost)[0] / channels
    side = max(9, round(elements ** (1 / rank)))
    return [max(9, side + draw.pick(-2, -1, 0, 1, 3)) for _ in range(rank)]


@draws(("f32", "f32", "f32", "f16"), "Conv")
@draws(("f32",), "FusedConv", domain=ONNXRUNTIME)
def convolution(draw: Draw, operator: str, dtype: str) -> Application:
    """Dense, in groups and depthwise; one, two or three axes; odd channels, dilations, strides and pads."""
    rank = 2 if operator == "FusedConv" else draw.pick(1, 2, 2, 2, 3)
    groups, depth, filters = draw.pick(
        (1, draw.size(3, 64), draw.size(3, 64)),
        (draw.size(3, 80), 1, 1),
        (draw.pick(2, 4), draw.size(2, 9), draw.size(2, 9)),
    )
    kernel = _filters(draw, rank)
    dilations, strides = [draw.pick(1, 1, 2, 3) for _ in kernel], [draw.pick(1, 1, 2) for _ in kernel]
    pads = [draw.pick(0, size * step // 2) for size, step in zip(kernel, dilations, strict=True)] * 2
    extent = [size + 14 for size in _extent(draw, rank, groups * depth, 8)]
    shape = (draw.pick(1, 1, 2), groups * depth, *extent)
    weights = weight((groups * filters, depth, *kernel), dtype, "from -0.1 0.1")
    bias = [weight((groups * filters,), dtype)] if draw.chance() else []
    more: dict[str, Any] = {"group": groups, "strides": strides, "dilations": dilations, "pads": pads}
    if operator == "FusedConv":
        more["activation"] = draw.pick("Relu", "Sigmoid", "Tanh")
    domain = ONNXRUNTIME if operator == "FusedConv" else ""
    return Application(operator, [Operand(shape, dtype), weights, *bias], more, domain=domain)


@draws(("f32", "f32", "f16"), "ConvTranspose")
def transposed_convolution(draw: Draw, operator: str, dtype: str) -> Application:
    rank = draw.pick(1, 2, 2)
    groups, depth, filters = draw.pick((1, draw.size(3, 48), draw.size(3, 48)), (draw.size(3, 20), 1, 1))
    kernel = [draw.pick(2, 3, 4, 5)] * rank
    strides = [draw.pick(1, 2)] * rank
    shape = (draw.pick(1, 2), groups * depth, *_extent(draw, rank, groups * depth, 32))
    weights = weight((groups * depth, filters, *kernel), dtype, "from -0.1 0.1")
    return Application(operator, [Operand(shape, dtype), weights], {"group": groups, "strides": strides})


@draws(("f32",), "ConvTransposeWithDynamicPads", domain=ONNXRUNTIME)
def transposed_with_pads(draw: Draw, operator: str, dtype: str) -> Application:
    depth, filters, side = draw.size(3, 20), draw.size(3, 20), draw.size(9, 40)
    operands = [Operand((1, depth, side, side), dtype), weight((depth, filters, 3, 3), dtype)]
    return Application(operator, [*operands, given([1, 1, 1, 1])], {"strides": [2, 2]}, domain=ONNXRUNTIME)


@draws(("f32", "f16", "f32"), "AveragePool", "LpPool")
@draws(("f32", "i8", "u8", "f64", "f16", "f32"), "MaxPool")
def pool(draw: Draw, operator: str, dtype: str) -> Application:
    rank = draw.pick(1, 2, 2, 3)
    kernel = [draw.pick(2, 3, 5, 9) for _ in range(rank)]
    strides = [draw.pick(1, 2, 3)] * rank
    channels = draw.size(1, 40)
    shape = (draw.pick(1, 2), channels, *(size + 18 for size in _extent(draw, rank, channels, 4)))
    pads = [draw.pick(0, size // 2) for size in kernel] * 2
    more: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "pads": pads, "ceil_mode": draw.pick(0, 1)}
    if operator == "AveragePool":
        more["count_include_pad"] = draw.pick(0, 1)
    if draw.chance(0.3):
        more |= {"dilations": [2] * rank, "ceil_mode": 0}
    return Application(operator, [Operand(shape, dtype)], more, 2 if operator == "MaxPool" and draw.chance(0.2) else 1)


@draws(("f32",), "MaxpoolWithMask", domain=ONNXRUNTIME)
def pool_with_mask(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(4, cost=4)
    shape = (1, shape[1], shape[2] + 9, shape[3] + 9)
    operands = [Operand(shape, dtype), Operand(shape, "i32", "share 0.5")]
    return Application(operator, operands, {"kernel_shape": [3, 3], "strides": [2, 2]}, domain=ONNXRUNTIME)


@draws(("u8", "i8"), "NhwcMaxPool", domain=ONNXRUNTIME)
def pool_of_codes(draw: Draw, operator: str, dtype: str) -> Application:
    side = draw.size(12, 90)
    more = {"kernel_shape": [draw.pick(2, 3, 5)] * 2, "strides": [draw.pick(1, 2)] * 2}
    return Application(operator, [Operand((1, side, side + 1, draw.size(3, 70)), dtype, "codes")], more, 1, ONNXRUNTIME)


@draws(FLOATS, "GlobalAveragePool", "GlobalMaxPool")
@draws(("f32",), "GlobalLpPool")
def global_pool(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [Operand(draw.shape(draw.pick(3, 4, 5)), "f32" if dtype == "f64" else dtype)])


@draws(("f32", "f64"), "MaxUnpool")
def unpool(draw: Draw, operator: str, dtype: str) -> Application:
    channels, side = draw.size(2, 40), draw.size(9, 60)
    shape = (1, channels, side, side)
    count = 4 * channels * side * side
    indices = Operand((1, 1, 1, channels * side * side), "i64", f"distinct {count}")
    indices = Operand(shape, "i64", "", False, indices.array(draw.random).reshape(-1).tolist())
    return Application(operator, [Operand(shape, dtype), indices], {"kernel_shape": [2, 2], "strides": [2, 2]})


@draws(("f32", "f64", "f32"), "RoiAlign")
@draws(("f32",), "MaxRoiPool")
@draws(("f32",), "CropAndResize", domain=ONNXRUNTIME)
def regions(draw: Draw, operator: str, dtype: str) -> Application:
    channels, side, count = draw.size(3, 80), draw.size(14, 60), draw.size(3, 60)
    image = Operand((1, channels, side, side), dtype)
    if operator == "MaxRoiPool":
        corners = Operand((count, 4), "f32", f"boxes {side}").array(draw.random)
        rows = [number for row in corners for number in (0.0, *(round(float(value), 2) for value in row))]
        boxes = Operand((count, 5), dtype, "", False, rows)
        return Application(operator, [image, boxes], {"pooled_shape": [7, 7], "spatial_scale": 1.0})
    first = Operand((count,), "i64" if operator == "RoiAlign" else "i32", "from 0 1")
    if operator == "CropAndResize":
        return Application(
            operator, [image, Operand((count, 4), dtype, "boxes 1"), first, given([7, 7], "i32")], domain=ONNXRUNTIME
        )
    more = {"output_height": 7, "output_width": 7, "sampling_ratio": draw.pick(0, 2), "mode": draw.pick("avg", "max")}
    return Application(operator, [image, Operand((count, 4), dtype, f"boxes {side}"), first], more)


@draws(("f32", "u8", "f32", "f16", "i8"), "Resize")
def resize(draw: Draw, operator: str, dtype: str) -> Application:
    """Up and down, all modes; antialiased where it goes down."""
    channels, height, width = draw.size(1, 32), draw.size(14, 120), draw.size(14, 120)
    scale = draw.pick(0.5, 0.4375, 2.0, 1.7, 3.0)
    sizes = [1, channels, max(1, round(height * scale)), max(1, round(width * scale))]
    mode = draw.pick("nearest", "linear", "cubic")
    places = draw.pick("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")
    more: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": places}
    if mode == "nearest":
        more["nearest_mode"] = draw.pick("floor", "round_prefer_floor")
    elif scale < 1 and draw.chance():
        more |= {"antialias": 1, "coordinate_transformation_mode": "half_pixel"}
    return Application(operator, [Operand((1, channels, height, width), dtype), None, None, given(sizes)], more)


@draws(("f32", "u8", "i32"), "Upsample")
def upsample(draw: Draw, operator: str, dtype: str) -> Application:
    shape = (1, draw.size(1, 32), draw.size(9, 80), draw.size(9, 80))
    scales = given([1, 1, 2, draw.pick(2, 3)], "f32")
    return Application(operator, [Operand(shape, dtype), scales], {"mode": draw.pick("nearest", "linear")})


@draws(("f32", "f64", "f32"), "GridSample")
def grid_sample(draw: Draw, operator: str, dtype: str) -> Application:
    channels, side, rows = draw.size(1, 32), draw.size(14, 60), draw.size(9, 60)
    more = {"mode": draw.pick("linear", "nearest", "cubic"), "padding_mode": draw.pick("zeros", "border", "reflection")}
    more |= {"align_corners": draw.pick(0, 1)}
    operands = [Operand((1, channels, side, side), dtype), Operand((1, rows, rows + 1, 2), dtype, "from -1.1 1.1")]
    return Application(operator, operands, more)


@draws(("f32",), "GridSample", domain=ONNXRUNTIME)
def grid_sample_of_onnxruntime(draw: Draw, operator: str, dtype: str) -> Application:
    found = grid_sample(draw, operator, dtype)
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(found.attributes["mode"], "nearest")
    return Application(operator, found.operands, {**found.attributes, "mode": mode}, domain=ONNXRUNTIME)


@draws(("f32", "f64"), "AffineGrid")
def affine_grid(draw: Draw, operator: str, dtype: str) -> Application:
    sizes = [draw.pick(1, 3), 3, draw.size(14, 90), draw.size(14, 90)]
    return Application(operator, [Operand((sizes[0], 2, 3), dtype), given(sizes)], {"align_corners": draw.pick(0, 1)})


@draws(("f32", "f64", "u8", "i8", "f16"), "DepthToSpace", "SpaceToDepth")
def blocks(draw: Draw, operator: str, dtype: str) -> Application:
    size, depth, height, width = draw.pick(2, 3), draw.size(1, 16), draw.size(5, 50), draw.size(5, 50)
    if operator == "SpaceToDepth":
        return Application(operator, [Operand((1, depth, height * size, width * size), dtype)], {"blocksize": size})
    more = {"blocksize": size, "mode": draw.pick("DCR", "CRD")}
    return Application(operator, [Operand((1, depth * size * size, height, width), dtype)], more)


@draws(("f32",), "Col2Im")
def columns(draw: Draw, operator: str, dtype: str) -> Application:
    channels, side, kernel = draw.size(1, 20), draw.size(9, 50), draw.pick(2, 3, 5)
    count = (side - kernel + 1) ** 2
    image, block = given([side, side]), given([kernel, kernel])
    return Application(operator, [Operand((1, channels * kernel * kernel, count), dtype), image, block])


@draws(("f32", "f64"), "DeformConv")
def deformed(draw: Draw, operator: str, dtype: str) -> Application:
    depth, filters, side = draw.size(3, 24), draw.size(3, 24), draw.size(9, 32)
    offsets = Operand((1, 18, side, side), dtype, "from -1 1")
    weights = weight((filters, depth, 3, 3), dtype)
    return Application(operator, [Operand((1, depth, side, side), dtype), weights, offsets], {"pads": [1, 1, 1, 1]})
