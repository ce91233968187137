"""StableHLO's text: what jaxlib writes is read, and what is written here, jaxlib reads."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from filecheck_runner import FILECHECK_ROOT
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.dialects.stablehlo.dialect import CHLO, STABLEHLO
from glow_mlir.dialects.stablehlo.forms import FORMS
from glow_mlir.dialects.stablehlo.rules import RULES
from glow_mlir.ir.context import new_context
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.text import module_text, parse_module

FILES = sorted((FILECHECK_ROOT / "dialects" / "stablehlo").glob("*[!d].mlir"))  # No invalid ones.
OPERATIONS = {operation.name for dialect in (STABLEHLO, CHLO) for operation in dialect.operations}


def parsed(text: str) -> ModuleOp:
    return parse_module(text, new_context())


def test_forms_and_rules_are_of_operations() -> None:
    assert not set(FORMS) - OPERATIONS
    assert not set(RULES) - OPERATIONS


def test_a_list_of_no_operands_may_keep_its_comma() -> None:
    texts = [
        f"func.func @f(%x: tensor<f32>) {{\n  %0 = stablehlo.dynamic_slice %x,{comma} sizes = [] "
        ": (tensor<f32>) -> tensor<f32>\n  return\n}"
        for comma in ("", " ,")
    ]
    assert module_text(parsed(texts[0])) == module_text(parsed(texts[1]))


def test_fields_may_stand_among_attributes() -> None:
    text = "func.func @f() {\n  %0 = stablehlo.iota dim = 0 {b, a = 1 : i32} : tensor<2xf32>\n  return\n}"
    (op,) = (op for op in parsed(text).walk() if op.name == "stablehlo.iota")
    assert [*op.attributes] == ["b", "a"]
    assert "iota dim = 0 {a = 1 : i32, b} :" in module_text(parsed(text))


@pytest.fixture
def jaxlib() -> Any:
    """A function that reads text by jaxlib, and writes it in the generic form if that is asked for."""
    pytest.importorskip("jaxlib.mlir.ir")
    context = import_module("glow_mlir.frontends.stablehlo.bytecode").new_mlir_context()
    ir = import_module("jaxlib.mlir.ir")

    def written(text: str, is_generic: bool = False, locations: bool = False) -> str:
        with context:
            operation = ir.Module.parse(text).operation
            return operation.get_asm(print_generic_op_form=is_generic, enable_debug_info=locations)

    return written


@pytest.mark.extra
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_jaxlib_reads_and_writes_the_same(path: Path, jaxlib: Any) -> None:
    text = path.read_text(encoding="utf-8")
    module = parsed(text)
    for form in (module_text(module), module_text(module, generic=True), module_text(module, locations=True)):
        assert jaxlib(form) == jaxlib(text)
    for is_generic in (False, True):
        assert parsed(jaxlib(text, is_generic, locations=True)).is_structurally_equivalent(module)


def programs() -> dict[str, Any]:
    jax = import_module("jax")
    numpy = import_module("jax.numpy")
    x, y = numpy.ones((4, 4)), numpy.ones((2, 8, 8, 3))

    def scan(w: Any) -> Any:
        return jax.lax.scan(lambda h, v: (numpy.tanh(h @ w + v), h), numpy.zeros((2, 4)), numpy.ones((6, 2, 4)))[
            0
        ].sum()

    def convolved(image: Any) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        kernel = numpy.ones((3, 3, 3, 4))
        return (jax.lax.conv_general_dilated(image, kernel, (2, 2), "SAME", dimension_numbers=numbers) ** 2).sum()

    return {
        "scan": (jax.grad(scan), x),
        "convolution": (jax.grad(convolved), y),
        "sort": (lambda v: jax.lax.sort((v, -v), num_keys=2), x),
        "cond": (lambda v: jax.lax.cond(v[0, 0] > 0, numpy.sin, numpy.cos, v), x),
        "solve": (lambda v: numpy.linalg.solve(v + numpy.eye(4), v), x),
        "random": (lambda v: jax.random.normal(jax.random.key(1), v.shape), x),
        "top_k": (lambda v: jax.lax.top_k(v, 2), x),
        "scatter": (lambda v: v.at[numpy.array([0, 2])].add(1.0), x),
        "pool": (lambda v: jax.lax.reduce_window(v, -numpy.inf, jax.lax.max, (2, 2), (2, 2), "VALID"), x),
    }


@pytest.mark.extra
def test_programs_of_jax_are_read_in_both_forms(jaxlib: Any) -> None:
    jax = pytest.importorskip("jax")
    for name, (function, example) in programs().items():
        operation = jax.jit(function).lower(example).compiler_ir("stablehlo").operation
        text = operation.get_asm(enable_debug_info=True)
        pretty, generic = parsed(text), parsed(jaxlib(text, is_generic=True, locations=True))
        assert pretty.is_structurally_equivalent(generic), name
        again = parsed(module_text(pretty, locations=True))
        assert again.is_structurally_equivalent(pretty), name
        assert [op.location for op in again.walk()] == [op.location for op in pretty.walk()], name
        names = {location_name(op.location) for op in pretty.walk()}
        assert any("jit(" in each for each in names), name
