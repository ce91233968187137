"""What the kernels of the CPU backend do beyond their operator, by themselves or by tiles: a cell for each ability."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from unittest import mock

import numpy as np
from candidates import instructions_of
from cut import however_small
from execute import SYMBOLS, Program, sample
from kernel_cases import ABILITIES, CASES, REFUSED, SIZES, THREADS
from operator_case import BATCH, OperatorCase
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.utils.exceptions import VerifyException

from glow_mlir.backends.interface import get_backend
from glow_mlir.codegen import kernel_backend
from glow_mlir.codegen.kernels.products.pack import PackKernel
from glow_mlir.codegen.kernels.tiled import SUFFIX, TiledKernel, tile_of, tiles_for
from glow_mlir.codegen.selection.acceptance import executes
from glow_mlir.codegen.selection.kernel import Kernel
from glow_mlir.codegen.selection.partitions import partitions_of
from glow_mlir.dialects.element_types import numpy_dtype, signless
from glow_mlir.dialects.glow_high.storage import PlaceholderOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.body import YieldOp
from glow_mlir.dialects.glow_low.derive import BODIES, DerivedInstruction
from glow_mlir.dialects.glow_low.memory import WeightOp
from glow_mlir.dialects.scalar_builder import ScalarBuilder
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of, tensor
from glow_mlir.dialects.sizes import shape_at
from glow_mlir.dialects.target import Target
from glow_mlir.driver.compiler import Compilation
from glow_mlir.errors import GlowError
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.text import verify_module

ITSELF, BY_TILES, AS_ONE = HOW = "itself", "by tiles", "as one tile"

COUNT = 3
"""For how many threads cells are compiled that are cut."""

ADDENDS = {body: f"{body}_addend" for body in BODIES}
"""Body → the input that it adds."""


@cache
def kernels() -> Mapping[str, Kernel]:
    """The kernels of glow-mlir itself that are asked for whole instructions of operators, by name."""
    return {
        name: item
        for name, item in get_backend("cpu").kernels.items()
        if not isinstance(item, TiledKernel | PackKernel) and type(item).__module__.startswith("glow_mlir.")
    }


@dataclass(frozen=True)
class Cell:
    """
    One ability of a kernel, or several at once, in a module at the stage `stacked`.

    `how` says whether the kernel has them `itself` or `by tiles`; it is empty where the cell is `refused`, for what the
    compiler says.
    """

    kernel: str
    abilities: tuple[str, ...]
    target: str
    how: str = ""
    refused: str = ""
    module: ModuleOp | None = None

    @property
    def case(self) -> OperatorCase:
        """What the kernel is selected for."""
        return CASES[self.kernel]

    @property
    def is_sized(self) -> bool:
        """Whether the batch is known at run time only."""
        return SIZES in self.abilities or self.case.sized

    @property
    def threads(self) -> int:
        """For how many threads the cell is compiled."""
        return COUNT if THREADS in self.abilities else 1

    def inputs(self, batch: int = BATCH) -> dict[str, np.ndarray]:
        """What the inputs of the module are, by name, for so many elements along the batch."""
        arrays = self.case.inputs(batch)
        assert self.module is not None
        for op in self.module.body.block.ops:
            if isinstance(op, PlaceholderOp) and op.sym_name.data in ADDENDS.values():
                type_ = op.tensor_type
                shape = shape_at(sizes_of(type_), {"batch": batch})
                name = op.sym_name.data
                arrays[name] = sample(shape, numpy_dtype(type_.element_type).name, seed=len(name))
        return arrays


def reason(name: str, ability: str) -> str:
    """Why a kernel is said to lack an ability; empty where it is said to have it."""
    return REFUSED.get(name, {}).get(ability, "")


@cache
def _stacked(name: str, sized: bool, target: str, threads: int) -> ModuleOp:
    module = CASES[name].module(sized)
    with however_small():
        Compilation(module, target=target, fields={"threads": threads}).run(until="stacked")
    return module


def stacked(name: str, sized: bool, target: str, threads: int = 1) -> tuple[ModuleOp, Instruction]:
    """A module with the case of a kernel at the stage `stacked`, and the instruction that is for the kernel."""
    module = _stacked(name, sized, target, threads).clone()
    return module, instruction(name, module)


def instruction(name: str, module: ModuleOp) -> Instruction:
    """The instruction of a module that is for a kernel: that of its operator, or what became of it."""
    found = list(instructions_of(module))
    operator = CASES[name].operator.name.split(".")[1]
    return next((op for op in found if op.name.split(".")[1] == operator), found[0])


@cache
def rivals(name: str, target: str) -> frozenset[str]:
    """The other kernels that execute the case of a kernel; raises `AssertionError` where it is not the one chosen."""
    module, op = stacked(name, CASES[name].sized, target)
    others = frozenset(other for other, kernel in kernels().items() if other != name and executes(kernel, op))
    Compilation(module).run(until="selected")
    assert chosen(op) == name, f"the case of {name} is executed by {chosen(op)}"
    return others


@contextmanager
def alone(name: str, target: str) -> Generator[None]:
    """Let nothing but a kernel, and its tiles, execute its case."""
    others, is_allowed = rivals(name, target), kernel_backend.is_allowed

    def allowed(kernel: Kernel, machine: Target, by_lines: bool) -> bool:
        return kernel.name not in others and is_allowed(kernel, machine, by_lines)

    with mock.patch.object(kernel_backend, "is_allowed", allowed):
        yield


def chosen(op: Instruction) -> str:
    """The name of the kernel of a selected instruction."""
    return getattr(op.properties.get("kernel"), "data", "")


def cell(name: str, abilities: Sequence[str], target: str) -> Cell:
    """A cell of the matrix, selected but not compiled."""
    found = Cell(name, tuple(abilities), target)
    try:
        module, chosen_by, is_cut = _selected(found)
    except (GlowError, VerifyException) as error:
        return replace(found, refused=str(error))
    hows = {name: ITSELF, name + SUFFIX: BY_TILES if is_cut else AS_ONE}
    if chosen_by not in hows:
        return replace(found, refused=f"'{chosen_by}' executes it")
    return replace(found, how=hows[chosen_by], module=module)


def _selected(found: Cell) -> tuple[ModuleOp, str, bool]:
    """The module of a cell in front of selection, the kernel of its instruction, and whether that has several tiles."""
    module, op = stacked(found.kernel, found.is_sized, found.target, found.threads)
    bodies = [body for body in BODIES if body in found.abilities]
    for body in bodies:
        attach(body, module, op)
    before = module.clone()
    with alone(found.kernel, found.target), however_small():
        Compilation(module, fields={"threads": found.threads}).run(until="selected")
    if THREADS in found.abilities and not partitions_of(op):
        raise VerifyException(f"'{chosen(op)}' is not cut")
    assert all(getattr(op, body) is not None for body in bodies), "selection took a body away"
    tile = tile_of(tiles_for(op), kernels()[found.kernel])
    return before, chosen(op), tile is not None and tile.axes.count > 0


def attach(body: str, module: ModuleOp, op: Instruction) -> None:
    """
    Give an instruction a body that adds a new input of the same shape to each element.

    Raises `VerifyException` where it cannot have one.
    """
    if not isinstance(op, DerivedInstruction):
        raise VerifyException(f"{op.name} has no bodies")
    values = op.outputs() if body == "epilogue" else op.inputs()
    if not values:
        raise VerifyException(f"{op.name} has no operand for the {body}")
    value = values[0]
    block, maps = addition(element_of(value)), [AffineMap.identity(rank_of(value))]
    addend = declared(ADDENDS[body], module, value)
    if body == "epilogue":
        op.attach_epilogue(value, [], [addend], maps, block)
    else:
        op.attach_prologue(value, [addend], maps, block)
    verify_module(module)


def declared(name: str, module: ModuleOp, like: SSAValue) -> SSAValue:
    """A new input with the sizes and elements of a buffer."""
    (function,) = low_functions(module)
    placeholder = PlaceholderOp.bound(name, tensor(sizes_of(like), element_of(like)), "input")
    module.body.block.insert_op_before(placeholder, function)
    function.bindings = ArrayAttr([*function.bindings.data, SymbolRefAttr(name)])
    weight = WeightOp.of(placeholder)
    first = function.block.first_op
    assert first is not None
    function.block.insert_op_before(weight, first)
    return weight.result


def addition(element: Attribute) -> Block:
    """A body that adds two elements, or that says whether one of two truth values holds."""
    block = Block(arg_types=[signless(element)] * 2)
    builder = ScalarBuilder(lambda op: block.add_op(op) or op)
    left, right = (builder.wrap(argument, element) for argument in block.args)
    total = left | right if numpy_dtype(element) == np.bool_ else left + right
    block.add_op(YieldOp.create(operands=[total.value]))
    return block


def laid_out(
    given: Mapping[str, np.ndarray], shapes: Mapping[str, tuple[int, ...]], batch: int
) -> dict[str, np.ndarray]:
    """Arrays in room of these shapes, for the largest sizes, and the value of the symbol."""
    found: dict[str, np.ndarray] = {}
    for name, array in given.items():
        room = np.full(shapes[name], 77, array.dtype)
        room[(..., *map(slice, array.shape))] = array
        found[name] = room
    return {**found, SYMBOLS: np.array([batch])}


def shapes_of(program: Program) -> dict[str, tuple[int, ...]]:
    """The shapes that inputs and outputs are laid out for, by name."""
    return {name: shape for name, shape, _, _ in program.bindings}


def matrix(target: str) -> dict[tuple[str, str], Cell]:
    """All cells, by kernel and ability."""
    return {(name, ability): cell(name, (ability,), target) for name in CASES for ability in ABILITIES}
