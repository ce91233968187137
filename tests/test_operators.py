"""What holds of every operator, by its row in `operator_cases`."""

from __future__ import annotations

import pytest
from abilities import COUNT, laid_out, shapes_of
from cut import backwards, by_hand, however_small
from emulators import machine_for
from execute import assert_same, compile_module, runnable_targets
from onnx import checker
from operator_case import BATCH, LARGEST, OperatorCase
from operator_cases import CASES, OPERATORS, REFERENCE_IS_WRONG, SIZED_BY_DATA, WITHOUT_ONNX
from other_runtimes import by_onnxruntime, by_reference
from validation import assert_text_round_trips

from glow_mlir.conversion.glow_high_to_glow_low import GlowHighToGlowLowPass
from glow_mlir.driver.compiler import Compilation
from glow_mlir.errors import UnsupportedOperatorsError
from glow_mlir.frontends.onnx.export.exporter import exported_model
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import verify_module

EACH = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def test_every_operator_has_a_row() -> None:
    assert CASES.keys() == OPERATORS.keys()
    assert WITHOUT_ONNX | REFERENCE_IS_WRONG.keys() | SIZED_BY_DATA <= CASES.keys()


@EACH
@pytest.mark.parametrize("sized", [False, True], ids=["numbers", "symbols"])
def test_text(case: OperatorCase, sized: bool) -> None:
    """Operator and instruction are printed and parsed, in both forms; what is lowered is valid, and means the same."""
    module = case.module(sized)
    assert_text_round_trips(module)
    lowered = module.clone()
    GlowHighToGlowLowPass().apply(new_context(), lowered)
    verify_module(lowered)
    instruction = case.operator.name.replace("glow_high", "glow_low")
    assert case.operator.IS_VIEW or instruction in {op.name for op in lowered.walk()}
    assert_text_round_trips(lowered)
    assert_same(run_function(module, case.inputs()), run_function(lowered, case.inputs()), 0.0)


@EACH
def test_onnx(case: OperatorCase) -> None:
    """The operator in ONNX's words is valid, and means the same to the reference, to onnxruntime, and to us again."""
    name = case.operator.name.removeprefix("glow_high.")
    module, inputs = case.module(sized=False), case.inputs()
    if name in WITHOUT_ONNX:
        with pytest.raises(UnsupportedOperatorsError):
            exported_model(module)
        return
    model = exported_model(module)
    checker.check_model(model, full_check=True)
    expected = run_function(module, inputs)
    if name not in REFERENCE_IS_WRONG:
        assert_same(expected, by_reference(model, inputs), 1e-4)
    assert_same(expected, by_onnxruntime(model, inputs), 1e-4)
    if name not in SIZED_BY_DATA:
        assert_same(expected, run_function(import_model(model), inputs), 1e-5)


@EACH
@pytest.mark.parametrize("target", runnable_targets())
def test_machine_code(case: OperatorCase, target: str) -> None:
    """The operator alone, of fixed sizes."""
    module, inputs = case.module(sized=False), case.inputs()
    expected = run_function(module.clone(), inputs)
    assert_same(expected, compile_module(module, target).run(inputs), case.tolerance)


@pytest.mark.extra
@EACH
@pytest.mark.parametrize("target", ["neon", "rvv-128", "wasm32", "cortex-m4", "cortex-m55"])
def test_machine_code_for_other_processors(case: OperatorCase, target: str) -> None:
    """The same on processors that are emulated."""
    machine = machine_for(target)
    module, inputs = case.module(sized=False), case.inputs()
    expected = run_function(module.clone(), inputs)
    ran = machine.run(Compilation(module, target=target).artifact(), inputs)
    assert ran.status == 0
    assert_same(expected, ran.outputs, case.tolerance)


@EACH
def test_machine_code_among_others(case: OperatorCase) -> None:
    """With operators in front and behind that are fused with it, a batch known at run time only, and threads."""
    module = case.module(sized=True, neighbours=True)
    with however_small():
        program = compile_module(module.clone(), threads=COUNT, verify_each=False)
    shapes = shapes_of(program)
    for batch in (1, BATCH, LARGEST):
        inputs = case.inputs(batch, neighbours=True)
        expected = run_function(module, inputs)
        results, _ = by_hand(program, COUNT, laid_out(inputs, shapes, batch), backwards)
        found = {name: results[name][(..., *map(slice, wanted.shape))] for name, wanted in expected.items()}
        assert_same(expected, found, case.tolerance)
