"""Construction of one node of a model: emit operators with its location, and query values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Operation, SSAValue

from glow_mlir.constants.storage import scalar_attribute
from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.element_types import is_float, numpy_dtype
from glow_mlir.dialects.glow_high.base import HighOp, Operand
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.sizes import BindSymbolOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.dialects.sizes import RunTimeSizeError
from glow_mlir.errors import InputValuesError, LargeInputError, TripValuesError, UnsupportedError
from glow_mlir.frontends.builder.limits import check_shape
from glow_mlir.frontends.builder.module_builder import ModuleBuilder
from glow_mlir.support.symbols import Size, Sizes, SymbolicSize


class NodeBuilder:
    """
    Build the operators for a node of a model.

    `kind` is its operator, `name` its name in errors, `results` are the names of its results.
    """

    def __init__(
        self, builder: ModuleBuilder, kind: str, name: str, location: LocationAttr, results: Sequence[str] = ()
    ) -> None:
        self.builder = builder
        self.kind = kind
        self.name = name
        self.location = location
        self.results = results

    # Operators

    def emit(self, operator: type[HighOp], *operands: Operand, **properties: AttributeValue | None) -> SSAValue:
        """Emit an operator and return its first result; raises `VerifyException` if operands do not fit."""
        return self.emit_all(operator, *operands, **properties)[0]

    def emit_all(
        self, operator: type[HighOp], *operands: Operand, **properties: AttributeValue | None
    ) -> tuple[SSAValue, ...]:
        """Emit an operator and return all its results; raises `VerifyException` if operands do not fit."""
        return tuple(self.builder.insert(operator.make(*operands, location=self.location, **properties)).results)

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """Convert a value to an element type, unless it already has it."""
        return value if element_of(value) == element else self.emit(CastOp, value, to=element)

    def __call__(self, operator: type[HighOp], *operands: Operand, **properties: AttributeValue | None) -> SSAValue:
        """The same as `emit`, which makes this an `OperatorEmitter`."""
        return self.emit(operator, *operands, **properties)

    def splat(self, value: float, like: SSAValue | Attribute, shape: Sizes = ()) -> SSAValue:
        """A splat of `value` in the element type of `like`, by default a scalar."""
        element = element_of(like) if isinstance(like, SSAValue) else like
        return self.emit(SplatOp, value=scalar_attribute(numpy_dtype(element).type(value), element), shape=shape)

    def insert(self, op: Operation) -> Operation:
        """Append an operation."""
        return self.builder.insert(op)

    def once(self, value: SSAValue, emit: Callable[[], SSAValue]) -> SSAValue:
        """The result of `emit`, reused if nodes of this kind have called it for an equal value in this block."""
        return self.builder.numbering.once((self.kind, self.builder.block), value, emit)

    def constant(
        self, array: np.ndarray | Sequence[int] | float, name: str = "", like: SSAValue | None = None
    ) -> SSAValue:
        """A constant; `like` gives a plain number its element type."""
        return self.builder.constant(array, name or self.name, self.location, like)

    def bind_symbol(self, count: SSAValue, most: int, least: int = 0, result: int = 0) -> Size:
        """
        The single element of `count`, from `least` to `most`, as a size: a number if it is known, else a symbol.

        The symbol is named after the result at position `result`, or else after the first result.
        """
        known = self.fold(count)
        if not most or known is not None:
            return 0 if known is None else int(known.item())
        names = [*self.results[result : result + 1], *self.results, self.kind]
        symbol = self.builder.new_symbol(f"{next(filter(None, names))}.count", least, most)
        self.builder.block.add_op(BindSymbolOp.to(symbol, count, self.location))
        return SymbolicSize.of(symbol)

    # Values

    def fold(self, value: SSAValue) -> np.ndarray | None:
        """The constant array of a value, or `None` if it depends on an input."""
        return self.builder.folding.of(value)

    def symbolic_value(self, value: SSAValue) -> np.ndarray | None:
        """A value that depends on shapes only, as an array of integers or sizes; `None` for any other."""
        return self.builder.symbolic_values.of(value)

    def required_array(self, value: SSAValue, role: str) -> np.ndarray:
        """
        The constant array of a value that determines shapes; `role` describes it in errors.

        If it depends on inputs, raises `InputValuesError` for inputs with few elements, whose values can be given to
        the import, and otherwise `UnsupportedError`.
        """
        array = self.fold(value)
        if array is None:
            raise self.builder.missing_value(value, f"{role} of {self.kind}", self.name)
        return array

    def required_integers(self, value: SSAValue, role: str) -> tuple[int, ...]:
        """Like `required_array`, as a tuple of integers."""
        return tuple(int(item) for item in self.required_array(value, role).reshape(-1))

    def required_sizes(self, value: SSAValue, role: str) -> Sizes:
        """Like `required_integers`, but the value may depend on symbolic sizes."""
        found = self.symbolic_value(value)
        if found is None:
            return self.required_integers(value, role)
        return tuple(item if isinstance(item, SymbolicSize) else int(item) for item in found.reshape(-1))

    def sizes_unless_computed(self, value: SSAValue, role: str) -> Sizes | None:
        """
        Like `required_sizes`; `None` for values that the program computes.

        These depend on sizes that depend on data, on inputs with too many elements to be given, or on floats.
        """
        try:
            return self.required_sizes(value, role)
        except (RunTimeSizeError, LargeInputError):
            return None
        except TripValuesError:
            if self.builder.computes_in_loops:
                return None
            raise
        except InputValuesError:
            if self.depends_on_floats(value):
                return None
            raise

    def depends_on_floats(self, value: SSAValue) -> bool:
        """Whether a value depends on floats, which are rarely the same in two calls."""
        return any(is_float(element_of(root)) for root in self.builder.dependences.roots(value))

    # Errors

    def check_size(self, *shape: int) -> None:
        """Raise `UnsupportedError` for the shape of an array that would be too large."""
        check_shape(shape)

    def unsupported(self, reason: str) -> UnsupportedError:
        """The error for an unsupported form of this node."""
        return UnsupportedError(f"{self.kind}: {reason}", node=self.name)
