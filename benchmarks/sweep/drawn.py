"""The points of a sweep, drawn by a seed: for each operator some of each element type, which onnxruntime runs."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from sweep import control, elementwise, images, movement, products, quantized
from sweep.drawing import TEMPLATES, Draw, Template
from sweep.engines import OnnxRuntimeError, reference
from sweep.points import Point

__all__ = ["EACH", "LARGE_FAMILIES", "MODULES", "drawn_points", "name_of", "undrawn"]

MODULES = (control, elementwise, images, movement, products, quantized)
"""The modules whose templates the table has."""

EACH = 6
"""Points of an operator; the last one of each six is small, so that its time is that of a call."""

LARGE_FAMILIES: Mapping[str, int] = {
    **{"Conv": 24, "MatMul": 20, "MaxPool": 12, "AveragePool": 12, "Resize": 15, "ConvTranspose": 12},
    **{"Gemm": 12, "TopK": 21, "QLinearConv": 10, "Einsum": 12, "Transpose": 12, "GridSample": 9},
    **{"Unique": 8, "NonMaxSuppression": 8, "Concat": 8, "Gather": 8, "Attention": 9, "Cast": 16},
}
"""Operator of which more is drawn, since it has more kinds → how many points."""

SMALL = (4, 300)
"""From how many elements to how many a small point's operands have."""

MAX_ELEMENTS = 2**23
"""Points with more elements are drawn again."""

TRIES = 12
"""How many drawings of a point onnxruntime may refuse."""

NOT_DRAWN: Mapping[str, str] = {
    **dict.fromkeys(["MemcpyFromHost", "MemcpyToHost"], "copies to a device, which onnxruntime adds itself"),
    **dict.fromkeys(
        ["BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"], "takes a whole decoder as an attribute"
    ),
    "SparseToDenseMatMul": "takes a sparse tensor as an input",
    **dict.fromkeys(
        [
            *("Affine", "Crop", "DynamicSlice", "ImageScaler", "ParametricSoftplus", "Scale", "ScaledTanh"),
        ],
        "has a kernel and no definition: onnxruntime refuses models with it",
    ),
}
"""Operator that has no template → why."""


def name_of(domain: str, operator: str) -> str:
    """An operator's name in tables."""
    return f"{domain}.{operator}" if domain else operator


def drawn_points(seed: int) -> Iterator[Point]:
    """The points in turns: the first of each operator, then the second of each, and so on."""
    counts = {key: LARGE_FAMILIES.get(key[1], EACH) for key in sorted(TEMPLATES)}
    for index in range(max(counts.values())):
        for key, count in counts.items():
            if index < count and (point := _drawn(seed, key, index)) is not None:
                yield point


def _drawn(seed: int, key: tuple[str, str], index: int) -> Point | None:
    """The point of that number, or `None` where onnxruntime refuses all drawings."""
    template, types = TEMPLATES[key]
    domain, operator = key
    for attempt in range(TRIES):
        mark = zlib.crc32(f"{seed} {domain} {operator} {index} {attempt}".encode())
        point = _attempt(template, mark, key, types[(index + attempt // 4) % len(types)], index)
        if sum(math.prod(operand.shape) for operand in point.operands.values()) > MAX_ELEMENTS:
            continue
        try:
            reference(point)
        except OnnxRuntimeError:
            continue
        return point
    return None


def _attempt(template: Template, mark: int, key: tuple[str, str], dtype: str, index: int) -> Point:
    draw = Draw(mark, SMALL) if index % EACH == EACH - 1 else Draw(mark)
    return template(draw, key[1], dtype).point(f"{name_of(*key)} {index}", mark)


def undrawn() -> dict[str, str]:
    """Operators of onnxruntime's CPU provider that have no template, and why."""
    state: Any = import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    kernels: set[tuple[str, str]] = {
        (kernel.domain, kernel.op_name)
        for kernel in state.get_all_opkernel_def()
        if kernel.provider == "CPUExecutionProvider" and kernel.domain in ("", "com.microsoft")
    }
    return {name_of(*key): NOT_DRAWN.get(key[1], "has no template yet") for key in sorted(kernels - TEMPLATES.keys())}
