"""The completed `llvm` dialect: prints and parses as upstream's does."""

from __future__ import annotations

import re
import subprocess
from io import StringIO
from pathlib import Path

import pytest
from mlir_tools import find_mlir_tool
from xdsl.context import Context
from xdsl.dialects import llvm as xdsl_llvm
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser
from xdsl.printer import Printer

from glow_mlir.dialects.llvm import ADDED, LLVM

EXAMPLES = Path(__file__).with_name("llvm_dialect.mlir")


def parse(text: str) -> ModuleOp:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(LLVM)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def print_module(module: ModuleOp, generic: bool = False) -> str:
    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(module)
    return stream.getvalue()


def upstream(text: str, *arguments: str) -> str:
    tool = find_mlir_tool("mlir-opt")
    if tool is None:
        pytest.skip("no mlir-opt: GLOW_MLIR_OPT names none, and `make mlir-tools` has not been run")
    done = subprocess.run([tool, *arguments], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_operation_has_an_example():
    names = set(re.findall(r"llvm\.[\w.]+", EXAMPLES.read_text()))
    assert {op.name for op in ADDED} <= names


def test_nothing_of_xdsl_is_lost():
    assert {op.name for op in xdsl_llvm.LLVM.operations} <= {op.name for op in LLVM.operations}
    assert len({op.name for op in LLVM.operations}) == len(list(LLVM.operations))


@pytest.mark.parametrize("generic", [False, True])
def test_round_trip(generic: bool):
    once = parse(EXAMPLES.read_text())
    again = parse(print_module(once, generic))
    assert once.is_structurally_equivalent(again)


@pytest.mark.extra
@pytest.mark.parametrize("generic", [False, True])
def test_upstream_reads_what_we_print(generic: bool):
    text = EXAMPLES.read_text()
    assert upstream(print_module(parse(text), generic)) == upstream(text)


@pytest.mark.extra
@pytest.mark.parametrize("form", ["--mlir-print-local-scope", "--mlir-print-op-generic"])
def test_we_read_what_upstream_prints(form: str):
    text = EXAMPLES.read_text()
    assert parse(upstream(text, form)).is_structurally_equivalent(parse(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('%0 = "llvm.fptosi"(%v) : (vector<4xf32>) -> i32', "mixes vectors"),
        (
            '%0 = "llvm.select"(%m, %v, %v) : (vector<2xi1>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>',
            "mixes",
        ),
        (
            '%0 = "llvm.getelementptr"(%p) <{elem_type = f32, rawConstantIndices = array<i32: -2147483648>}> '
            ": (!llvm.ptr) -> !llvm.ptr",
            "marks 1 dynamic",
        ),
    ],
)
def test_verifiers(text: str, message: str):
    head = '%v, %m, %p = "test.op"() : () -> (vector<4xf32>, vector<2xi1>, !llvm.ptr)\n'
    context = Context(allow_unregistered=True)
    context.load_dialect(Builtin)
    context.load_dialect(LLVM)
    module = Parser(context, head + text).parse_module()
    with pytest.raises(Exception, match=message):
        module.verify()
