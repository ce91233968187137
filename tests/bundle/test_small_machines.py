"""Limits of memory, and code that is made small: what is compiled for them is right, or refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from checkout import ROOT
from embedded_models import compiled, inputs_of, network
from emulators import machine_for
from models import GraphBuilder, he
from onnx import TensorProto

from glow_mlir.api.bundles import bundle_of
from glow_mlir.api.compile_options import CompileOptions
from glow_mlir.bundle.compile import code_bytes
from glow_mlir.bundle.report import MemoryReport
from glow_mlir.errors import OutOfMemoryError


def arena(target: str) -> int:
    """The bytes of activations of MobileNetV2 in codes, once it is right on a machine."""
    program, inputs = compiled("mobilenet", "int8", target), inputs_of("mobilenet")
    ran = machine_for("cortex-m4").run(program.artifact, inputs)
    for name, wanted in program.interpreted(inputs).items():
        np.testing.assert_array_equal(ran.outputs[name], wanted)
    (entry,) = program.artifact.manifest.entries
    return entry.activations


@pytest.mark.extra
def test_half_the_arena_is_enough() -> None:
    """Layers that need more are computed by lines, several together; the limit counts inputs and outputs too."""
    plain, bound = arena("cortex-m4,l2_bytes=0"), 110_656
    assert arena(f"cortex-m4,l2_bytes=0,ram_bytes={bound + plain // 2}") <= plain // 2


def convolutions() -> onnx.ModelProto:
    """Three convolutions that a Cortex-M4 computes in Winograd's domain where it computes all lines at once."""
    g, x = GraphBuilder(0), "image"
    for channels in (4, 16, 16):
        x = g.node("Conv", x, g.weight(he(g.rng, (16, channels, 3, 3), channels * 9)), pads=[1] * 4)
    scores = g.node("GlobalAveragePool", x)
    return g.model({"image": (TensorProto.FLOAT, [1, 4, 24, 24])}, {scores: [1, 16, 1, 1]}, opset=13)


def test_lines_matter_more_than_the_fastest_kernel_and_leave_room_for_the_stack() -> None:
    def report(limit: int) -> MemoryReport:
        return bundle_of(
            {"": convolutions()}, "a", CompileOptions("cpu", target="cortex-m4", fields={"ram_bytes": limit})
        ).report

    plain = report(0)
    assert report(plain.ram - plain.stack // 2).activations < plain.activations
    assert report(plain.ram * 3 // 4).ram <= plain.ram * 3 // 4


@pytest.mark.parametrize("kilobytes", [16, 30])
def test_kernels_without_scratch_are_taken_where_that_of_others_has_no_room(kilobytes: int) -> None:
    """Filters that are packed when they are written take none, though they would if they were packed in each call."""
    options = CompileOptions("cpu", target="cortex-m4", dimensions={"N": 1}, fields={"ram_bytes": kilobytes * 1024})
    assert bundle_of({"": ROOT / "examples" / "digits.onnx"}, "digits", options).report.ram <= kilobytes * 1024


def test_entries_leave_room_for_the_inputs_and_outputs_of_all() -> None:
    """The convolutions need few, and have to make room for the other entry, as both regions are those of all."""
    g = GraphBuilder(0)
    y = g.node("Relu", "x")
    relu = g.model({"x": (TensorProto.FLOAT, [4000])}, {y: [4000]}, opset=13)
    models = {"one": convolutions(), "other": relu}

    def report(limit: int) -> MemoryReport:
        return bundle_of(models, "a", CompileOptions("cpu", target="cortex-m4", fields={"ram_bytes": limit})).report

    limit = report(0).ram * 3 // 4
    assert report(limit).ram <= limit


def test_size_mode_has_less_code() -> None:
    sizes: list[int] = []
    for options in ("", ",optimize=size"):
        program, inputs = compiled("digits", "int8", f"cortex-m4{options}"), inputs_of("digits")
        ran = machine_for("cortex-m4").run(program.artifact, inputs)
        for name, wanted in program.interpreted(inputs).items():
            np.testing.assert_array_equal(ran.outputs[name], wanted)
        sizes.append(code_bytes(program.artifact.code[0]))
    assert sizes[1] < 0.75 * sizes[0]


def test_the_report_says_what_size_mode_saves() -> None:
    """Filters in Winograd's domain are larger; the number is that by which the constants differ."""

    def report(target: str) -> MemoryReport:
        return bundle_of({"": convolutions()}, "a", CompileOptions("cpu", target=target)).report

    fast, small = report("cortex-m4"), report("cortex-m4,optimize=size")
    saved = fast.constants - small.constants
    assert saved > fast.flash // 10
    assert f"--optimize size saves {saved:,} of flash" in fast.text()
    assert fast.data()["flash"]["constants_expanded"] == saved
    assert "--optimize size" not in small.text()


def long_names() -> onnx.ModelProto:
    """Those convolutions, in nodes whose names begin and end alike."""
    model = convolutions()
    for number, node in enumerate(model.graph.node):
        node.name = f"/network/features/block_of_many_layers/stage_{number}/branch/inner/convolution"
    return model


def test_long_names_are_cut_to_what_tells_them_apart_where_a_limit_is_not_met() -> None:
    with pytest.raises(OutOfMemoryError) as caught:
        bundle_of({"": long_names()}, "a", CompileOptions("cpu", target="cortex-m4", fields={"ram_bytes": 1000}))
    assert "/network/features" not in str(caught.value)
    assert "node 'stage_" in str(caught.value)


def test_long_names_are_cut_to_what_tells_them_apart() -> None:
    bundle = bundle_of({"": long_names()}, "a", CompileOptions("cpu", target="cortex-m4"))
    text = bundle.report.text()
    assert "/network/features" not in text
    assert "stage_1" in text
    assert not any("/network/features" in name for name in bundle.largest)
    buffers = bundle.report.data()["entries"]["run"]["buffers"]
    assert any("/network/features/block_of_many_layers/stage_1/" in name for b in buffers for name in b["nodes"])


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        (
            {"flash_bytes": 40_000},
            r"code of .* and constants of 42,.* take .* more than the limit of 40,000 \(hint: .*'",
        ),
        ({"ram_bytes": 36_560}, r"and a stack of .* take .* more than the limit of 36,560"),
        ({"ram_bytes": 10_000}, r"node '.*': @.* takes .* more than its limit of 10,000"),
    ],
)
def test_limits_that_cannot_be_met_are_refused(limits: dict[str, int], error: str) -> None:
    options = CompileOptions("cpu", target="cortex-m4", fields=limits)
    with pytest.raises(OutOfMemoryError, match=error):
        bundle_of({"": network("digits")}, "digits", options)
