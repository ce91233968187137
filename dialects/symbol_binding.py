"""Symbols whose number the program computes: the ops that bind them in both dialects, and where they may be used."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind

from glow_mlir.dialects.control_flow import verify_scalar
from glow_mlir.dialects.shapes import SHAPED, has_static_shape, require, sizes_of
from glow_mlir.dialects.sizes import SizesAttr
from glow_mlir.support.symbols import Sizes, Symbol, SymbolicSize, symbols_of
from glow_mlir.xdsl_patches.operations import LeanOperation

Kinds = type[Operation] | tuple[type[Operation], ...]
"""Classes of ops, as `isinstance` takes them."""


class BindingEffect(MemoryEffect):
    """An effect that keeps a binding in order: later ops depend on the number of the symbol."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        return {EffectInstance(MemoryEffectKind.WRITE)}


class SymbolBinding(LeanOperation, ABC):
    """
    An op that binds a symbol, its property `symbol`, to the only element of its operand, clamped to the symbol's range.

    A symbol is bound by a single op, or by the sizes of inputs. In a loop, it is bound again in each trip.
    """

    @property
    def bound(self) -> Symbol:
        """The symbol."""
        (size,) = self._sizes()
        assert isinstance(size, SymbolicSize)
        return size.symbols[0]

    def _sizes(self) -> Sizes:
        symbol = self.properties["symbol"]
        assert isinstance(symbol, SizesAttr)
        return symbol.data

    def verify_binding(self) -> None:
        """Check that one symbol is bound to one number."""
        verify_scalar(self.operands[0], i64, "what a symbol is bound to")
        sizes = self._sizes()
        is_one = (
            len(sizes) == 1 and isinstance(sizes[0], SymbolicSize) and sizes[0] == SymbolicSize.of(sizes[0].symbols[0])
        )
        require(is_one, f"one symbol is bound, not {', '.join(map(str, sizes))}")


def mentioned(values: Iterable[SSAValue], properties: Iterable[Attribute]) -> set[Symbol]:
    """The symbols in the sizes of tensors and buffers, and in properties."""
    shaped = (value for value in values if isinstance(value.type, SHAPED) and not has_static_shape(value))
    found = {symbol for value in shaped for symbol in symbols_of(sizes_of(value))}
    for value in properties:
        if isinstance(value, SizesAttr):
            found.update(symbols_of(value.data))
    return found


def used_symbols(op: Operation) -> set[Symbol]:
    """The symbols that an op needs: those in the sizes of what it reads, gives and writes, and in its properties."""
    if isinstance(op, SymbolBinding):
        return set()
    return mentioned((*op.operands, *op.results), op.properties.values())


def verify_bound(block: Block, known: dict[str, Symbol], kinds: Kinds) -> None:
    """
    Check that the ops of these kinds, in a block and in nested regions, use no symbol before it is bound.

    `known` has the symbols of inputs; all bound symbols are added to it. Raises `VerifyException`.
    """
    _verify_block(block, known, set(known), kinds)


def _verify_block(block: Block, known: dict[str, Symbol], visible: set[str], kinds: Kinds) -> None:
    for op in block.ops:
        if isinstance(op, SymbolBinding):
            symbol = op.bound
            require(symbol.name not in known, f"the symbol {symbol.name} is bound twice")
            known[symbol.name] = symbol
            visible.add(symbol.name)
        elif isinstance(op, kinds):
            for symbol in used_symbols(op):
                require(symbol.name in visible, f"{op.name} uses the symbol {symbol.name}, which is not bound before")
                require(known[symbol.name] == symbol, f"the symbol {symbol.name} has two ranges")
        for region in op.regions:
            for inner in region.blocks:
                _verify_block(inner, known, set(visible), kinds)
