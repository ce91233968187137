"""Every candidate of an instruction computes what the instruction means, and is written on it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from candidates import candidates_of, instructions_of, stacked
from execute import Case, assert_same, compile_module, runnable_targets, sample
from machines import target_named
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from glow_mlir.backends.cpu.trial import Reel, Trial
from glow_mlir.backends.interface import get_backend
from glow_mlir.codegen.selection.kernel import tiles_of
from glow_mlir.codegen.selection.selected import fault_of
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.storage import PlaceholderOp
from glow_mlir.dialects.target import with_fields
from glow_mlir.driver.pipelines import STAGE
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import module_text


def conv(image: tuple[int, ...], filters: tuple[int, ...], constant: bool = True, **properties: Any) -> Case:
    """A convolution with a bias; the filter is scaled so that results are about one."""
    weights = (sample(filters) / np.sqrt(np.prod(filters[1:]))).astype(np.float32)
    operands = (sample(image), weights, sample(filters[:1]))
    return Case(ConvOp, *operands, constants=(1, 2) if constant else (), **properties)


def matmul(left: tuple[int, ...], right: tuple[int, ...], constant: bool = True, **properties: Any) -> Case:
    """A product with a bias."""
    columns = right[-2] if properties.get("transpose_right") else right[-1]
    operands = (sample(left), sample(right), sample((columns,)))
    return Case(MatMulOp, *operands, constants=(1, 2) if constant else (), **properties)


CASES = {
    "conv": (conv((2, 15, 13, 64), (64, 3, 3, 64)), {"conv", "conv-winograd"}),
    "conv-strides": (conv((1, 29, 23, 64), (64, 3, 3, 64), strides=[2, 2]), {"conv", "conv-winograd"}),
    "conv-padded": (conv((1, 14, 14, 64), (128, 3, 3, 64), pads=[1, 1, 1, 1]), {"conv", "conv-winograd"}),
    "conv-wide": (conv((1, 3, 120, 64), (64, 3, 3, 64)), {"conv", "conv-winograd"}),
    "conv-one-line": (conv((1, 130, 8), (24, 3, 8)), {"conv"}),
    "conv-groups": (conv((1, 12, 12, 32), (32, 3, 3, 8), group=4), {"conv"}),
    "depthwise": (conv((1, 12, 12, 32), (32, 3, 3, 1), group=32), {"conv-depthwise", "conv"}),
    "pointwise": (conv((2, 9, 23, 128), (128, 1, 1, 128)), {"conv", "conv-strassen"}),
    "pointwise-strides": (conv((1, 21, 25, 128), (256, 1, 1, 128), strides=[2, 2]), {"conv", "conv-strassen"}),
    "conv-at-run-time": (conv((1, 15, 13, 64), (64, 3, 3, 64), constant=False), {"conv", "conv-winograd"}),
    "matmul": (matmul((1, 203, 128), (128, 256)), {"matmul", "matmul-strassen"}),
    "matmul-few-rows": (matmul((1, 3, 128), (128, 256)), {"matmul", "matmul-strassen"}),
    "matmul-transposed": (
        matmul((2, 3, 50, 128), (256, 128), transpose_right=True),
        {"matmul", "matmul-strassen"},
    ),
    "matmul-batches": (matmul((2, 110, 64), (2, 64, 48), constant=False), {"matmul"}),
}


def isolated(case: Case, target: str) -> Trial:
    """The product or convolution of a case by itself."""
    module = stacked(case, target=target)
    (op,) = (op for op in instructions_of(module) if op.name in ("glow_low.conv", "glow_low.matmul"))
    return Trial(op, Storage(module))


def arrays_of(trial: Trial) -> dict[str, np.ndarray]:
    """What the trial's function is bound to, by name."""
    names = [op.sym_name.data for op in trial.module.body.block.ops if isinstance(op, PlaceholderOp)]
    return dict(zip(names, trial.buffers, strict=True))


NARROW = [target for target in runnable_targets() if target in ("avx2", "scalar")]
RUNS = [*((name, "host") for name in CASES), *itertools.product(("conv", "pointwise", "matmul"), NARROW)]


@pytest.mark.parametrize(("name", "target"), RUNS)
def test_every_candidate_computes_the_instruction(name: str, target: str) -> None:
    """Machine code and interpreter, with the kernel and tiles of each candidate, against the plain instruction."""
    case, kernels = CASES[name]
    trial = isolated(case, target)
    arrays = arrays_of(trial)
    expected = run_function(trial.module.clone(), arrays)
    found = candidates_of(next(iter(instructions_of(trial.module))), trial.module, target)
    machine = target_named(target)
    if machine.vector_bits >= 256:
        assert {candidate.kernel.name for candidate in found} == kernels
    assert len({(candidate.kernel.name, *candidate.tiles.items()) for candidate in found}) == len(found)
    interpreted: set[str] = set()
    bits: dict[tuple[str, ...], bytes] = {}
    for candidate in found:
        module = trial.module.clone()
        (op,) = instructions_of(module)
        candidate.write(op, Storage(module), machine)
        assert tiles_of(op) == candidate.tiles
        if (packing := str(op.properties.get("packing"))) not in interpreted:
            interpreted.add(packing)
            assert_same(expected, run_function(module.clone(), arrays), 1e-4)
        module.attributes[STAGE] = StringAttr("stacked")
        results = compile_module(module, target).run(arrays)
        assert_same(expected, results, 1e-4)
        written = b"".join(results[name].tobytes() for name in sorted(results))
        assert bits.setdefault(candidate.arithmetic, written) == written, f"{candidate} sums in another order"


@pytest.mark.parametrize("name", CASES)
def test_threads_have_the_same_choice_of_arithmetic(name: str) -> None:
    """A choice made for one thread can be kept for several, guesses are the same, and choices are legal."""
    trial = isolated(CASES[name][0], "host")
    (op,) = instructions_of(trial.module)
    alone = candidates_of(op, trial.module)
    for threads in (2, 3, 8):
        found = candidates_of(op, trial.module, threads=threads)
        assert found[0].arithmetic == alone[0].arithmetic
        assert {one.arithmetic for one in found} == {one.arithmetic for one in alone}


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("name", CASES)
def test_candidates_have_no_faults(name: str, threads: int) -> None:
    """The pass `verify-selected` agrees with what is written."""
    trial = isolated(CASES[name][0], "host")
    machine = with_fields(target_named("host"), {"threads": threads})
    (op,) = instructions_of(trial.module)
    for candidate in candidates_of(op, trial.module, threads=threads):
        module = trial.module.clone()
        (chosen,) = instructions_of(module)
        candidate.write(chosen, Storage(module), machine)
        assert fault_of(chosen, get_backend("cpu").kernels, machine) is None, candidate


def test_trials_run_in_this_process() -> None:
    """What is measured computes, while its constants are its own."""
    trial = isolated(CASES["conv"][0], "host")
    candidates = candidates_of(next(iter(instructions_of(trial.module))), trial.module)[:2]
    expected = run_function(trial.module.clone(), arrays_of(trial))
    for run in trial.runs(candidates, target_named("host"), 0):
        for _ in range(4):
            run()
            arrays = arrays_of(trial)
            assert_same(expected, {name: arrays[name] for name in expected}, 1e-4)
            for name in expected:
                arrays[name].fill(np.nan)


def test_trials_read_the_reel() -> None:
    """With a spread the results follow from other weights."""
    trial = isolated(CASES["matmul"][0], "host")
    candidates = candidates_of(next(iter(instructions_of(trial.module))), trial.module)[:1]
    found: list[dict[str, np.ndarray]] = []
    for spread in (0, 1 << 20):
        (run,) = trial.runs(candidates, target_named("host"), spread)
        run()
        found.append({name: array.copy() for name, array in arrays_of(trial).items()})
    assert any(not np.array_equal(found[0][name], found[1][name]) for name in found[0])
    assert all(np.isfinite(array).all() for array in found[1].values())


def test_weights_come_from_everywhere() -> None:
    """Pieces follow each other without overlap, aligned, and begin again at the start."""
    reel = Reel.of(1000)
    pieces = [reel.next(300) for _ in range(4)]
    starts = [piece.ctypes.data - reel.floats.ctypes.data for piece in pieces]
    assert starts == [0, 320, 640, 0]
    assert {piece.size for piece in pieces} == {300}
    assert np.isfinite(reel.floats.view(np.float32)).all()


def test_buffers_have_the_types_of_the_instruction() -> None:
    trial = isolated(CASES["matmul-batches"][0], "host")
    placeholders = [op for op in trial.module.body.block.ops if isinstance(op, PlaceholderOp)]
    for op, array in zip(placeholders, trial.buffers, strict=True):
        assert array.shape == op.tensor_type.get_shape()
        assert array.dtype == numpy_dtype(op.tensor_type.element_type)


def parsed(text: str) -> ModuleOp:
    module = Parser(new_context(), text).parse_module()
    module.verify()
    return module


def test_choice_is_printed_and_parsed() -> None:
    trial = isolated(CASES["pointwise"][0], "host")
    found = candidates_of(next(iter(instructions_of(trial.module))), trial.module)
    for candidate in found:
        module = trial.module.clone()
        candidate.write(next(iter(instructions_of(module))), Storage(module), target_named("host"))
        text = module_text(module)
        again = parsed(text)
        assert tiles_of(next(iter(instructions_of(again)))) == candidate.tiles
        assert module_text(again) == text


@pytest.mark.parametrize("wrong", ["-1", '"many"', "1.0 : f32"])
def test_tiles_are_whole_numbers(wrong: str) -> None:
    trial = isolated(CASES["matmul"][0], "host")
    module = trial.module.clone()
    op = next(iter(instructions_of(module)))
    candidates_of(op, module)[0].write(op, Storage(module), target_named("host"))
    text = module_text(module)
    assert "prefetch = " in text
    before, _, behind = text.partition("prefetch = ")
    with pytest.raises(VerifyException, match="'prefetch' in 'tiles' is a whole number from 0 on"):
        parsed(f"{before}prefetch = {wrong}{behind[behind.index('}') :]}")
