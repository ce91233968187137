"""
Structured functions of the `llvm` dialect as OpenCL C.

The kernels of this compiler emit structured functions for any target. This package writes them as OpenCL C 1.2: each
value is a variable, `scf.for`, `scf.while` and `scf.if` become `for` and `if`, and vectors are OpenCL's.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.llvm import FuncOp, GlobalOp, LLVMArrayType

from glow_mlir.codegen.llvm.text import EmissionError
from glow_mlir.codegen.opencl_c.function import FunctionText
from glow_mlir.codegen.opencl_c.literals import element_literal, numbers_of
from glow_mlir.codegen.opencl_c.memory_rules import bytes_of, integer
from glow_mlir.codegen.opencl_c.scope import is_pointer
from glow_mlir.codegen.opencl_c.spaces import GLOBAL
from glow_mlir.codegen.opencl_c.types import element_name
from glow_mlir.support.kernel_names import kernel_name

PREAMBLE = """\
#pragma OPENCL FP_CONTRACT ON
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef __clang__
#define CONVERT(type, value) __builtin_convertvector(value, type)
#define ACCESS(align) __attribute__((aligned(align), may_alias))
#define SHARED __attribute__((noinline)) static
#define ROLLED _Pragma("clang loop unroll(disable) vectorize(disable) interleave(disable)")
#else
#define CONVERT(type, value) convert_##type(value)
#define ACCESS(align) __attribute__((aligned(align)))
#define SHARED static
#define ROLLED
#endif
typedef __global uchar *buffer_pointer ACCESS(8);"""
"""
The beginning of all programs. For compilers based on clang it says that vectors are converted as a whole, that memory
has no types, and that functions and loops stay as they are, because kernels have already unrolled and vectorized them.
"""


def print_program(module: ModuleOp, functions: Sequence[str]) -> str:
    """
    OpenCL C for structured functions of a module that are launched, and for the functions that these call.

    A kernel, named by `kernel_name`, takes a buffer and an offset in bytes for each pointer, and the other arguments
    but the last: the number of the part, which is the number of the work-group. A work-group has one item. Raises
    `EmissionError` for anything that is not translated.
    """
    program = _Program(module)
    for name in functions:
        program.kernel(name)
    return program.text()


class _Program:
    """The program that is being written: types of accesses, tables, and functions, each after those that it calls."""

    def __init__(self, module: ModuleOp) -> None:
        self._functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
        self._globals = {op.sym_name.data: op for op in module.ops if isinstance(op, GlobalOp)}
        self._accesses: dict[str, str] = {}
        self._tables: dict[str, str] = {}
        self._variants: dict[tuple[str, tuple[str, ...]], str] = {}
        self._texts: list[str] = []
        self._names: set[str] = set()

    def access_type(self, name: str, align: int) -> str:
        """The type of accesses to memory with that alignment."""
        alias = f"{name}_at_{align}"
        self._accesses[alias] = f"typedef {name} {alias} ACCESS({align});"
        return alias

    def table(self, name: str) -> str:
        """The name of a table."""
        found = kernel_name(name)
        if name not in self._tables:
            self._tables[name] = _table_text(self._globals[name], found)
        return found

    def variant(self, name: str, spaces: Sequence[str]) -> str:
        """The name of a function for pointers in those address spaces."""
        key = name, tuple(spaces)
        if key not in self._variants:
            suffix = "" if set(spaces) <= {GLOBAL} else "_" + "".join(space[2] for space in spaces)
            own = self._variants[key] = self._own_name(kernel_name(name) + suffix)
            function = self._function(self._functions[name], spaces)
            parameters = ", ".join(f"{type_} {text}" for type_, text, _ in function.parameters())
            self._add(f"SHARED {function.result} {own}({parameters or 'void'})", function)
        return self._variants[key]

    def kernel(self, name: str) -> None:
        """Write a function that is launched."""
        op = self._functions[name]
        function = self._function(op, [GLOBAL] * sum(map(is_pointer, op.body.blocks[0].args)))
        parameters: list[str] = []
        *given, (part_type, part, _) = function.parameters()
        first = [f"  {part_type} {part} = get_group_id(0);"]
        for type_, text, argument in given:
            if is_pointer(argument):
                parameters += [f"{type_} {text}_buffer", f"ulong {text}_offset"]
                first.append(f"  {type_} {text} = {text}_buffer + {text}_offset;")
            else:
                parameters.append(f"{type_} {text}")
        head = "__kernel __attribute__((reqd_work_group_size(1, 1, 1)))"
        self._add(f"{head} void {self._own_name(kernel_name(name))}({', '.join(parameters)})", function, first)

    def text(self) -> str:
        """The whole program."""
        return "\n".join([PREAMBLE, *self._accesses.values(), "", *self._tables.values(), "", *self._texts])

    def _function(self, op: FuncOp, spaces: Sequence[str]) -> FunctionText:
        with _in_function(op):
            return FunctionText(self, op, spaces)

    def _add(self, head: str, function: FunctionText, first: Sequence[str] = ()) -> None:
        with _in_function(function.op):
            self._texts.append(f"{head} {function.body(first)}")

    def _own_name(self, name: str) -> str:
        if name in self._names:
            raise EmissionError(f"two functions are called '{name}'")
        self._names.add(name)
        return name


@contextmanager
def _in_function(op: FuncOp) -> Generator[None]:
    """A context that adds the name of the function to the reason of an `EmissionError`."""
    try:
        yield
    except EmissionError as error:
        name = f"'@{op.sym_name.data}'"
        raise error if name in error.reason else EmissionError(f"function {name}: {error.reason}") from error


def _table_text(op: GlobalOp, name: str) -> str:
    """A table as an array of constants."""
    type_ = op.global_type
    if not isinstance(type_, LLVMArrayType) or op.value is None:
        raise EmissionError(f"the global '@{op.sym_name.data}' is no table")
    count = type_.size.data
    numbers = ", ".join(element_literal(number, type_.type) for number in numbers_of(op.value, count))
    align = integer(op, "alignment") or bytes_of(type_.type)
    return f"__constant {element_name(type_.type)} {name}[{count}] __attribute__((aligned({align}))) = {{{numbers}}};"
