"""
What an operator or a kernel computes, in index notation: elements of operands, operations on them, and folds.

```python
e = exp(x - reduce_fmax(x, "j"))
y = e / reduce_sum(e, "j")
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute

from glow_mlir.dialects.element_types import element_type, is_float, is_unsigned
from glow_mlir.errors import OptionError
from glow_mlir.support.dtypes import named_dtype

Number = int | float


@dataclass(frozen=True, eq=False)
class Tensor:
    """
    A value for each index of some dimensions, in an expression.

    Operators and the functions of this module make others of it: values meet where their dimensions have one
    name, and a value without a dimension is the same along it.
    """

    element: Attribute
    dimensions: frozenset[str]
    word: str
    """What it is: an operation, or what `folds` or `operands` tell."""
    arguments: tuple[Tensor | Number, ...] = ()
    operand: int | None = None
    """Which operand it is."""
    along: frozenset[str] = frozenset()
    """The dimensions along which it folds its argument, as `word` says."""
    counted: frozenset[str] = frozenset()
    """The dimensions of which it is the number of indices."""

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

    def __pow__(self, other: Tensor | Number) -> Tensor:
        return binary("power", self, other)

    def __and__(self, other: Tensor) -> Tensor:
        return binary("and", self, other)

    def __or__(self, other: Tensor) -> Tensor:
        return binary("or", self, other)

    def __xor__(self, other: Tensor) -> Tensor:
        return binary("xor", self, other)

    def __neg__(self) -> Tensor:
        return self._like("negate", self)

    def __abs__(self) -> Tensor:
        return maximum(self, -self) if not is_float(self.element) else unary("abs", self)

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

    def _like(self, word: str, *arguments: Tensor | Number) -> Tensor:
        return Tensor(self.element, _joined(arguments), word, arguments)


def _joined(arguments: Sequence[Tensor | Number]) -> frozenset[str]:
    """The dimensions of values that meet."""
    parts = (argument for argument in arguments if isinstance(argument, Tensor))
    return frozenset(name for part in parts for name in part.dimensions)


def _element(word: str, arguments: Sequence[Tensor | Number]) -> Attribute:
    """The element type that values have which meet; raises `OptionError` where they have several."""
    found = list(dict.fromkeys(part.element for part in arguments if isinstance(part, Tensor)))
    if not found:
        raise OptionError(f"{word} of numbers alone", hint="compute numbers in Python")
    if len(found) > 1:
        raise OptionError(f"{word} of {' and '.join(map(str, found))}", hint='convert one: cast(x, "float32")')
    return found[0]


def binary(word: str, x: Tensor | Number, y: Tensor | Number) -> Tensor:
    """An operation on two values, or on a value and a number."""
    return Tensor(_element(word, (x, y)), _joined((x, y)), word, (x, y))


def unary(word: str, x: Tensor) -> Tensor:
    """A function of a float; raises `OptionError` for a value of another type."""
    if not is_float(x.element):
        raise OptionError(f"{word} of {x.element}", hint=f'convert it: {word}(cast(x, "float32"))')
    return Tensor(x.element, x.dimensions, word, (x,))


def compare(word: str, x: Tensor | Number, y: Tensor | Number) -> Tensor:
    """A comparison, as truth values; false where either is NaN, but of `ne`."""
    _element(word, (x, y))
    return Tensor(i1, _joined((x, y)), word, (x, y))


def where(condition: Tensor, x: Tensor | Number, y: Tensor | Number) -> Tensor:
    """`x` where the condition holds, else `y`."""
    return Tensor(_element("where", (x, y)), _joined((condition, x, y)), "select", (condition, x, y))


def maximum(x: Tensor, y: Tensor | Number) -> Tensor:
    """The larger of two; NaN if either is."""
    return binary("max", x, y)


def minimum(x: Tensor, y: Tensor | Number) -> Tensor:
    """The smaller of two; NaN if either is."""
    return binary("min", x, y)


def cast(x: Tensor, dtype: str) -> Tensor:
    """`x` as another element type, by the name that numpy has for it; raises `OptionError` for an unknown one."""
    try:
        element = element_type(named_dtype(dtype))
    except (KeyError, TypeError, ValueError):
        raise OptionError(f"'{dtype}' is no element type", hint="such as float32, int8, bool") from None
    return x if x.element == element else Tensor(element, x.dimensions, "convert", (x,))


def fold(word: str, x: Tensor, along: str | Sequence[str]) -> Tensor:
    """`x` folded along dimensions of these names, if any; raises `OptionError` for one that it does not have."""
    names = frozenset([along] if isinstance(along, str) else along)
    for name in sorted(names - x.dimensions):
        have = ", ".join(sorted(x.dimensions)) or "none"
        raise OptionError(f"a fold along '{name}' of a value without it", hint=f"its dimensions are {have}")
    if not names:
        return x
    return Tensor(x.element, x.dimensions - names, _combining(word, x.element), (x,), along=names)


def size_along(x: Tensor, along: str | Sequence[str]) -> Tensor:
    """How many elements `x` has along dimensions, as a number of its element type."""
    names = frozenset([along] if isinstance(along, str) else along)
    return Tensor(x.element, frozenset(), "size", counted=names)


def reduce_mean(x: Tensor, along: str | Sequence[str]) -> Tensor:
    """The mean of floats along dimensions; raises `OptionError` for a value of another type."""
    if not is_float(x.element):
        raise OptionError(f"a mean of {x.element}", hint='convert it: reduce_mean(cast(x, "float32"), …)')
    return fold("add", x, along) / size_along(x, along)


def _combining(word: str, element: Attribute) -> str:
    """The combining kind, in MLIR's words, of a fold of an element type."""
    if word in ("maxnum", "minnum"):
        return f"{word}f" if is_float(element) else _combining(word.removesuffix("num"), element)
    if word not in ("max", "min"):
        return word
    if is_float(element):
        return f"{word}imumf"
    return f"{word}ui" if is_unsigned(element) else f"{word}si"


def _function(name: str) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        return unary(name, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The function `{name}` of a float, as the operator of `glow_high` of that name."
    return function


acos, acosh, asin, asinh, atan, atanh = map(_function, ("acos", "acosh", "asin", "asinh", "atan", "atanh"))
cos, cosh, sin, sinh, tan, tanh = map(_function, ("cos", "cosh", "sin", "sinh", "tan", "tanh"))
erf, exp, expm1, log, log1p, sqrt = map(_function, ("erf", "exp", "expm1", "log", "log1p", "sqrt"))
ceil, floor, round_even, trunc = map(_function, ("ceil", "floor", "round_even", "trunc"))


def equal(x: Tensor, y: Tensor | Number) -> Tensor:
    """Where two values are equal, as truth values; false where either is NaN."""
    return compare("eq", x, y)


def not_equal(x: Tensor, y: Tensor | Number) -> Tensor:
    """Where two values differ, as truth values; true where either is NaN."""
    return compare("ne", x, y)


def power(x: Tensor, y: Tensor | Number) -> Tensor:
    """`x` to the power `y`."""
    return binary("power", x, y)


def reduce_sum(x: Tensor, along: str | Sequence[str]) -> Tensor:
    """The sum along dimensions, of f16 and bf16 in f32."""
    return fold("add", x, along)


def reduce_prod(x: Tensor, along: str | Sequence[str]) -> Tensor:
    """The product along dimensions."""
    return fold("mul", x, along)


def reduce_max(x: Tensor, along: str | Sequence[str]) -> Tensor:
    """The largest element along dimensions; NaN if one is."""
    return fold("max", x, along)


def reduce_min(x: Tensor, along: str | Sequence[str]) -> Tensor:
    """The smallest element along dimensions; NaN if one is."""
    return fold("min", x, along)


def reduce_fmax(x: Tensor, along: str | Sequence[str]) -> Tensor:
    """The largest element along dimensions that is a number; minus infinity if none is."""
    return fold("maxnum", x, along)


def reduce_fmin(x: Tensor, along: str | Sequence[str]) -> Tensor:
    """The smallest element along dimensions that is a number; infinity if none is."""
    return fold("minnum", x, along)


def fma(x: Tensor, y: Tensor | Number, z: Tensor | Number) -> Tensor:
    """`x * y + z` of floats, rounded once."""
    return Tensor(_element("fma", (x, y, z)), _joined((x, y, z)), "fma", (x, y, z))
