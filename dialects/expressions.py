"""
The computation of an operator or kernel in index notation: elements of operands, operations on them, and folds.

```python
e = exp(x - reduce_fmax(x, "j"))
y = e / reduce_sum(e, "j")
```
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute

from glow_mlir.dialects.element_types import element_type, is_bool, is_float, is_unsigned, number_width
from glow_mlir.dialects.fold_kinds import *
from glow_mlir.dialects.folds import fold_of
from glow_mlir.dialects.scalar_functions import *
from glow_mlir.dialects.stages import index_type
from glow_mlir.errors import OptionError
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import named_dtype

Number = int | float


@dataclass(frozen=True, eq=False)
class Tensor:
    """
    An expression with a value for each index of some dimensions.

    Python operators and the functions of this module combine tensors: dimensions of the same name are matched, and a
    tensor without a dimension is broadcast along it.
    """

    element: Attribute
    dimensions: frozenset[str]
    word: str
    """The name of the operation, of the fold, or of the operand."""
    arguments: tuple[Tensor | Number, ...] = ()
    operand: int | None = None
    """The number of the operand."""
    along: frozenset[str] = frozenset()
    """The dimensions along which it folds its argument by the fold `word`."""
    counted: frozenset[str] = frozenset()
    """The dimensions whose indices it counts."""
    is_windowed: bool = False
    """Whether it is an operand whose windows may reach beyond its ends; folds skip elements outside."""

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The arguments that are values."""
        return tuple(argument for argument in self.arguments if isinstance(argument, Tensor))

    def __add__(self, other: Tensor | Number) -> Tensor:
        return binary("add", self, other)

    def __radd__(self, other: Number) -> Tensor:
        return binary("add", other, self)

    def __sub__(self, other: Tensor | Number) -> Tensor:
        return binary("sub", self, other)

    def __rsub__(self, other: Number) -> Tensor:
        return binary("sub", other, self)

    def __mul__(self, other: Tensor | Number) -> Tensor:
        return binary("mul", self, other)

    def __rmul__(self, other: Number) -> Tensor:
        return binary("mul", other, self)

    def __truediv__(self, other: Tensor | Number) -> Tensor:
        return binary("div", self, other)

    def __rtruediv__(self, other: Number) -> Tensor:
        return binary("div", other, self)

    def __mod__(self, other: Tensor | Number) -> Tensor:
        return binary("rem", self, other)

    def __rmod__(self, other: Number) -> Tensor:
        return binary("rem", other, self)

    def __pow__(self, other: Tensor | Number) -> Tensor:
        return binary("power", self, other)

    def __rpow__(self, other: Number) -> Tensor:
        return binary("power", other, self)

    def __and__(self, other: Tensor) -> Tensor:
        return binary("and", self, other)

    def __or__(self, other: Tensor) -> Tensor:
        return binary("or", self, other)

    def __xor__(self, other: Tensor) -> Tensor:
        return binary("xor", self, other)

    def __neg__(self) -> Tensor:
        return Tensor(_element("negate", (self,)), self.dimensions, "negate", (self,))

    def __abs__(self) -> Tensor:
        if is_float(self.element):
            return unary("abs", self)
        return self if is_unsigned(self.element) else maximum(self, -self)

    def __lt__(self, other: Tensor | Number) -> Tensor:
        return compare("lt", self, other)

    def __le__(self, other: Tensor | Number) -> Tensor:
        return compare("le", self, other)

    def __gt__(self, other: Tensor | Number) -> Tensor:
        return compare("gt", self, other)

    def __ge__(self, other: Tensor | Number) -> Tensor:
        return compare("ge", self, other)

    def __bool__(self) -> bool:
        raise OptionError("a kernel has no branches: its values are known when it runs", hint="use where(…)")

    def __eq__(self, other: object) -> bool:
        raise OptionError("kernels do not compare by '==' or '!='", hint="use equal(…) or not_equal(…)")

    __hash__ = object.__hash__


def _joined(arguments: Sequence[Tensor | Number]) -> frozenset[str]:
    """The dimensions of all arguments of an operation."""
    parts = (argument for argument in arguments if isinstance(argument, Tensor))
    return frozenset(name for part in parts for name in part.dimensions)


def _element(word: str, arguments: Sequence[Tensor | Number]) -> Attribute:
    """
    The common element type of the arguments of an operation.

    Raises `OptionError` if element types differ, if the operation does not take the type, and for numbers that are not
    of that type.
    """
    found = list(dict.fromkeys(part.element for part in arguments if isinstance(part, Tensor)))
    if not found:
        hint = 'cast(condition, "float32") is 1 or 0' if word == "where" else "compute numbers in Python"
        raise OptionError(f"{word} of numbers alone", hint=hint)
    if len(found) > 1:
        raise OptionError(f"{word} of {' and '.join(map(str, found))}", hint='convert one: cast(x, "float32")')
    if not _takes(word, found[0]):
        raise OptionError(f"{word} of {found[0]}", hint='convert it: cast(x, "float32"), cast(x, "int32")')
    for argument in arguments:
        if not isinstance(argument, Tensor) and not _is_number_of(found[0], argument):
            raise OptionError(f"{word} of {found[0]} and {argument!r}, which is none", hint='cast(x, "float32")')
    return found[0]


_BITWISE = frozenset({"and", "or", "xor"})
_OF_ANY = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "where"})
"""Operations that also take truth values; those on bits take them as well."""


def _takes(word: str, element: Attribute) -> bool:
    """Whether an operation takes an element type."""
    if word in _BITWISE:
        return not is_float(element)
    return is_float(element) if word == "fma" else word in _OF_ANY or not is_bool(element)


def _is_number_of(element: Attribute, number: Any) -> bool:
    """Whether an element type represents a Python number exactly, or is a float type that it is rounded to."""
    is_real = issubclass(type(number), Real)
    if is_float(element) or not is_real:
        return is_real
    count = 1 << number_width(element)
    first = 0 if is_unsigned(element) else -count // 2
    return float(number).is_integer() and first <= int(number) < first + count


def binary(word: str, x: Tensor | Number, y: Tensor | Number) -> Tensor:
    """An operation on two values, or on a value and a number."""
    return Tensor(_element(word, (x, y)), _joined((x, y)), word, (x, y))


def unary(word: str, x: Tensor) -> Tensor:
    """A function of a float; raises `OptionError` for a value of another type."""
    if not is_float(_element(word, (x,))):
        raise OptionError(f"{word} of {x.element}", hint=f'convert it: {word}(cast(x, "float32"))')
    return Tensor(x.element, x.dimensions, word, (x,))


def compare(word: str, x: Tensor | Number, y: Tensor | Number) -> Tensor:
    """A comparison, as truth values; false where either is NaN, except for `ne`."""
    _element(word, (x, y))
    return Tensor(i1, _joined((x, y)), word, (x, y))


def where(condition: Tensor, x: Tensor | Number, y: Tensor | Number) -> Tensor:
    """`x` where the condition holds, else `y`; raises `OptionError` if the condition is not a truth value."""
    if not isinstance(condition, Tensor) or not is_bool(condition.element):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError("a condition is a truth value of elements", hint="such as x > 0, or not_equal(x, 0)")
    return Tensor(_element("where", (x, y)), _joined((condition, x, y)), "select", (condition, x, y))


def maximum(x: Tensor, y: Tensor | Number) -> Tensor:
    """The larger of two; NaN if either is."""
    return binary("max", x, y)


def minimum(x: Tensor, y: Tensor | Number) -> Tensor:
    """The smaller of two; NaN if either is."""
    return binary("min", x, y)


def cast(x: Tensor, dtype: str) -> Tensor:
    """`x` converted to the element type of that numpy name; raises `OptionError` for an unknown name."""
    try:
        element = element_type(named_dtype(dtype))
    except (KeyError, TypeError, ValueError):
        raise OptionError(f"'{dtype}' is no element type", hint="such as float32, int8, bool") from None
    return converted(x, element)


def converted(x: Tensor, element: Attribute) -> Tensor:
    """`x` as another element type."""
    return x if x.element == element else Tensor(element, x.dimensions, "convert", (x,))


def fold(word: str, x: Tensor, along: str | Sequence[str]) -> Tensor:
    """`x` folded along the dimensions of these names, if any; raises `OptionError` for a dimension it does not have."""
    element, names = _element(word, (x,)), _names(x, along)
    if not names:
        return x
    return Tensor(element, x.dimensions - names, fold_of(word, element).word, (x,), along=names)


def position(x: Tensor, along: str, is_largest: bool = True, is_last: bool = False) -> Tensor:
    """The index of the first or last extreme along a dimension, in the type of `indices`; NaN wins; 0 if empty."""
    word = f"{'last' if is_last else 'first'}_{fold_of('max' if is_largest else 'min', x.element).word}"
    names = _names(x, along)
    return Tensor(index_type(x.element), x.dimensions - names, word, (x,), along=names)


def running(name: str, x: Tensor, along: str, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """
    The running fold `add` or `mul` along a dimension; floats are folded in f64 and rounded once.

    `exclusive` leaves out the element itself, `reverse` starts from the end.
    """
    word = f"{'before' if exclusive else 'running'}_{name}{'_back' if reverse else ''}"
    return Tensor(x.element, x.dimensions, word, (x,), along=_names(x, along))


def size_along(x: Tensor, along: str | Sequence[str], each: Number = 1) -> Tensor:
    """
    The number of elements of `x` along dimensions, in its element type; in windows, only elements inside the operand.

    Each of them counts as the number `each`.

    Raises `OptionError` for one that it does not have.
    """
    element, names = _element("size", (x,)), _names(x, along)
    if not (sources := windowed_operands(x)):
        size = Tensor(element, frozenset(), "size", counted=names)
        return size if each == 1 else size * each
    return fold("add", ones_of(sources, element, x.dimensions, each), sorted(names))


def ones_of(windows: Sequence[Tensor], element: Attribute, dimensions: Iterable[str] = (), each: Number = 1) -> Tensor:
    """1, or another number, where operands have all elements of their windows, over dimensions at least."""
    return Tensor(element, _joined(windows).union(dimensions), "one", (*windows, each))


def windowed_operands(x: Tensor) -> tuple[Tensor, ...]:
    """The operands whose windows the elements of a value come from."""
    found, waiting = dict[Tensor, None](), [x]
    while waiting:
        part = waiting.pop()
        if part not in found and not part.along:
            found[part] = None
            waiting += part.parts
    return tuple(part for part in found if part.is_windowed)


def indices(x: Tensor, along: str) -> Tensor:
    """
    The indices of `x` along a dimension, as i32, or as i64 if its elements have 64 bits.

    Raises `OptionError` for a dimension that it does not have.
    """
    return Tensor(index_type(x.element), _names(x, along), "index")


def _names(x: Tensor, along: str | Sequence[str]) -> frozenset[str]:
    """The dimensions of `x` that are listed."""
    listed = [along] if isinstance(along, str) or not isinstance(along, Iterable) else along  # pyright: ignore[reportUnnecessaryIsInstance]
    for name in listed:
        if name not in x.dimensions:
            have = ", ".join(sorted(x.dimensions)) or "none"
            raise OptionError(f"a fold along '{name}' of a value without it", hint=f"its dimensions are {have}")
    return frozenset(listed)


def reduce_mean(x: Tensor, along: str | Sequence[str]) -> Tensor:
    """The mean of floats along dimensions; raises `OptionError` for a value of another type."""
    if not is_float(_element("mean", (x,))):
        raise OptionError(f"a mean of {x.element}", hint='convert it: reduce_mean(cast(x, "float32"), …)')
    return fold("add", x, along) / size_along(x, along)


def equal(x: Tensor, y: Tensor | Number) -> Tensor:
    """Where two values are equal, as truth values; false where either is NaN."""
    return compare("eq", x, y)


def not_equal(x: Tensor, y: Tensor | Number) -> Tensor:
    """Where two values differ, as truth values; true where either is NaN."""
    return compare("ne", x, y)


def power(x: Tensor, y: Tensor | Number) -> Tensor:
    """`x` to the power `y`."""
    return binary("power", x, y)


def fma(x: Tensor, y: Tensor | Number, z: Tensor | Number) -> Tensor:
    """`x * y + z` of floats, rounded once."""
    return Tensor(_element("fma", (x, y, z)), _joined((x, y, z)), "fma", (x, y, z))
