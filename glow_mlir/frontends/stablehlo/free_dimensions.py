"""The free dimensions of the arguments of a program, which are those without a size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from glow_mlir.support.symbols import size_from_label

Labels = tuple[int | str, ...]
"""The sizes of an argument: numbers, and labels of free dimensions."""

CHECK = "shape_assertion"
"""The target of the calls by which JAX checks sizes, whose messages say what they are."""

_SPECIFICATION = re.compile(r"[\w\].']\.shape = \(")

_NAME = re.compile(r"[A-Za-z_]\w*")


def labels_of(function: FuncOp, names: Sequence[str]) -> list[Labels]:
    """
    The sizes of the arguments of a function with these names.

    A free dimension has the name, or the expression of names, that JAX gave it, or else goes by argument and axis.
    """
    types = [argument.type for argument in function.body.block.args]
    free = [number for number, type_ in enumerate(types) if min(_sizes(type_), default=0) < 0]
    written = _written(function)
    if len(written) != len(free):
        written = []
    found: list[Labels] = []
    for number, (name, type_) in enumerate(zip(names, types, strict=True)):
        shape = _sizes(type_)
        texts = written[free.index(number)] if written and number in free else []
        if len(texts) != len(shape):
            texts = [""] * len(shape)
        sizes = enumerate(zip(shape, texts, strict=True))
        found.append(tuple(size if size >= 0 else _label(text) or f"{name}.{axis}" for axis, (size, text) in sizes))
    return found


def _sizes(type_: Attribute) -> tuple[int, ...]:
    """The sizes of a tensor, negative ones where they are not known."""
    return tuple(type_.get_shape()) if isinstance(type_, TensorType) else ()


def _label(text: str) -> str:
    """The text of a size, if it is an expression that sizes are read from."""
    names = dict.fromkeys(_NAME.findall(text), 1)
    return text if names and size_from_label(text, names) is not None else ""


def _written(function: FuncOp) -> list[list[str]]:
    """The texts of the sizes of all arguments that have a free one, from the message of a check."""
    for op in function.body.block.ops:
        message = op.attributes.get("error_message")
        if op.name == "stablehlo.custom_call" and isinstance(message, StringAttr):
            return list(_shapes(message.data.partition("Obtained dimension variables")[0]))
    return []


def _shapes(message: str) -> Iterator[list[str]]:
    """The texts in `args[0].shape = (batch, 2*heads)`, for each argument."""
    for match in _SPECIFICATION.finditer(message):
        depth, parts = 1, [""]
        for letter in message[match.end() :]:
            depth += (letter == "(") - (letter == ")")
            if not depth:
                break
            if letter == "," and depth == 1:
                parts.append("")
            else:
                parts[-1] += letter
        yield [part.strip() for part in parts if part.strip()]
