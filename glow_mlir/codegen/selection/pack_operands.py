"""
Operands in the forms that kernels read: packed constants, packed state with the function that packs it, and buffers
that are packed before a loop.
"""

from __future__ import annotations

from itertools import takewhile

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, SymbolRefAttr, UnitAttr
from xdsl.ir import Block, Operation, SSAValue

from glow_mlir.analysis.accesses import is_written
from glow_mlir.codegen.selection.kernel import operands_of
from glow_mlir.codegen.selection.pack_before_loops import packed_before_loop
from glow_mlir.codegen.selection.packed_form import PackedForm
from glow_mlir.constants.deferred import Packed
from glow_mlir.constants.storage import Storage, deferred_constant
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.storage import ConstantOp, ContentOp, PlaceholderOp
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import (
    FuncOp,
    ViewOp,
    WeightOp,
    buffer_type,
    is_contiguous,
    offset_of,
    root_of,
)
from glow_mlir.dialects.glow_low.packing import PackOp
from glow_mlir.dialects.shapes import Shape, element_of, has_static_shape, shape_of, size_of, tensor
from glow_mlir.ir.traversal import function_of, own_operations


def pack_operand(op: DerivedInstruction, name: str, storage: Storage, form: PackedForm) -> bool:
    """
    Replace an operand by its packed form, and record that in `packing`; false for one that is packed in each call.

    A constant is packed by the compiler. State that the function does not change is packed by a function that is added
    to the module, if the operand is all of the state, in its order. A loop-invariant operand is packed before the loop.
    Operands that are packed alike share the packed form.
    """
    (value,), source = operands_of(op, name), packable(op, name, storage, form)
    if source is not None:
        packed = _packed_storage(op, source, shape_of(value), storage, form)
    else:
        packed = packed_before_loop(op, value, form)
    if packed is None:
        return False
    packed.name_hint = value.name_hint
    op.set_operands({name: [packed]})
    entries = dict(op.packing.data) if op.packing is not None else {}
    op.packing = DictionaryAttr({**entries, name: form.described()})
    return True


def _packed_storage(
    op: DerivedInstruction, source: ContentOp, shape: Shape, storage: Storage, form: PackedForm
) -> SSAValue:
    """A constant or state of that shape in a packed form, declared in the function of `op`."""
    function = function_of(op)
    # State is packed by code for one machine.
    target = str(function.assigned) if isinstance(source, PlaceholderOp) else ""
    layout = form.layout
    key = (source.sym_name.data, layout.form, shape, tuple(sorted(layout.numbers.items())), target)
    symbol = storage.packed.get(key)
    if symbol is None:
        words = "_".join(str(number) for number in layout.numbers.values())
        wish = f"{source.sym_name.data}.{layout.form}_{words}_{'x'.join(map(str, shape))}"
        make = _packed_constant if isinstance(source, ConstantOp) else _packed_state
        symbol = storage.packed[key] = make(op, source, shape, storage, form, wish)
    if isinstance(source, PlaceholderOp) and symbol not in function.binding_names:
        function.bindings = ArrayAttr([*function.bindings.data, SymbolRefAttr(symbol)])
    return declare_weight(op, storage, symbol)


def packable(op: DerivedInstruction, name: str, storage: Storage, form: PackedForm) -> ContentOp | None:
    """The constant or state behind an operand that `pack_operand` packs; None if there is none."""
    (value,) = operands_of(op, name)
    return whole_storage(value, storage)


def _packed_constant(
    op: Operation, constant: ContentOp, shape: Shape, storage: Storage, form: PackedForm, wish: str
) -> str:
    """Add a constant that is another one packed; returns its name."""
    operand = deferred_constant(constant).reshaped(shape)
    made = Packed(operand, form.layout, numpy_dtype(form.element))
    return storage.add_constant(wish, made, constant.location).sym_name.data


def _packed_state(op: Operation, state: ContentOp, shape: Shape, storage: Storage, form: PackedForm, wish: str) -> str:
    """
    Add packed state, and a function that makes it for the machine of the function of `op`; returns the name of the
    state.
    """
    symbol = storage.unique_name(wish)
    function = FuncOp.named(
        storage.unique_function(f"pack_{symbol}"),
        (state.sym_name.data, symbol),
        state.location,
        function_of(op).assigned,
    )
    name = function.sym_name.data
    packed = PlaceholderOp.packed(symbol, tensor(form.layout.shape, form.element), name, state.location)
    storage.add(packed)
    source, target = WeightOp.of(state, state.location), WeightOp.of(packed, state.location)
    target.mutable = UnitAttr()
    source.result.name_hint, target.result.name_hint = "plain", "packed"
    function.block.add_ops([source, target])
    plain = source.result
    if shape_of(plain) != form.layout.plain:
        view = ViewOp.of(plain, buffer_type(form.layout.plain, element_of(plain)), function.location)
        function.block.add_op(view)
        plain = view.result
    layout = {"layout": form.described()}
    function.block.add_op(PackOp.of(target.result, plain, properties=layout, location=state.location))
    storage.module.body.block.add_op(function)
    return symbol


def whole_constant(value: SSAValue, storage: Storage) -> ConstantOp | None:
    """The constant that a buffer holds as a whole, in its order; `None` if there is none."""
    found = _whole(value, storage)
    return found if isinstance(found, ConstantOp) else None


def whole_storage(value: SSAValue, storage: Storage) -> ContentOp | None:
    """
    The constant, or the state that the function does not change, that a buffer holds as a whole, in its order; else
    `None`.
    """
    found = _whole(value, storage)
    if isinstance(found, PlaceholderOp) and (found.state is None or is_written(root_of(value))):
        return None
    return found


def _whole(value: SSAValue, storage: Storage) -> ContentOp | None:
    """The storage that a buffer holds as a whole, in its order; `None` if there is none."""
    weight = root_of(value).owner
    if not isinstance(weight, WeightOp) or not _is_whole(value, weight.result):
        return None
    found = storage.by_name[weight.storage_name]
    return found if isinstance(found, ContentOp) else None


def _is_whole(value: SSAValue, root: SSAValue) -> bool:
    """Whether a buffer has all elements of the storage behind it, in their order."""
    if not has_static_shape(value):
        return False
    same = size_of(value.type) == size_of(root.type) and offset_of(value) == offset_of(root) == 0
    return same and is_contiguous(value) and is_contiguous(root)


def declare_weight(op: Operation, storage: Storage, symbol: str) -> SSAValue:
    """The declaration of storage `symbol` at the start of the function of `op`; it is created if it is missing."""
    block = function_of(op).block
    if block not in storage.declared:
        storage.declared[block] = {weight.storage_name: weight for weight in _hoisted_weights(block)}
    known = storage.declared[block].get(symbol)
    if known is not None and known.parent is block:
        return known.result
    declared = WeightOp.of(storage.by_name[symbol], op.location)
    assert block.first_op is not None
    block.insert_op_before(declared, block.first_op)
    storage.declared[block][symbol] = declared
    return declared.result


def _hoisted_weights(block: Block) -> list[WeightOp]:
    """The declarations of a block; those after an instruction are moved to its start."""
    weights = [op for op in own_operations(block) if isinstance(op, WeightOp)]
    leading = set(takewhile(lambda op: isinstance(op, WeightOp), own_operations(block)))
    for weight in weights:
        if weight not in leading and block.first_op is not None:
            weight.detach()
            block.insert_op_before(weight, block.first_op)
    return weights
