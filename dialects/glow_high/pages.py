"""
Keys and values of sequences in pages, blocks of memory that tables assign to sequences (Kwon et al. 2023).

A sequence of n tokens takes the first pages of its row of a table, and the last of these may be partly filled. A page
may belong to several sequences that begin alike.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType, f32, i8
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, result_def

from glow_mlir.dialects.element_types import byte_width, is_float
from glow_mlir.dialects.glow_high.access import AccessMap
from glow_mlir.dialects.glow_high.base import SEGMENTS, HighOp
from glow_mlir.dialects.glow_high.indexing import OUT_OF_RANGE
from glow_mlir.dialects.glow_high.interfaces import Arithmetic
from glow_mlir.dialects.operand_types import F32, INDICES, NUMBERS, TENSOR
from glow_mlir.dialects.properties import flag, flag_prop, float_prop, int_prop, integer, number
from glow_mlir.dialects.shapes import element_of, largest_shape, require, require_equal, sizes_of, tensor
from glow_mlir.dialects.sizes import static
from glow_mlir.support.symbols import Size
from glow_mlir.xdsl_patches.definitions import op_definition


def check_pages(pages: SSAValue) -> None:
    """Raise `VerifyException` unless pages have elements of a type for caches, and sizes that are numbers."""
    element = element_of(pages)
    is_known = element == i8 or (is_float(element) and byte_width(element) <= 4)
    require(is_known, f"pages are of f16, bf16, f32 or i8, not {element}")
    static(sizes_of(pages))


def check_scales(name: str, scales: SSAValue | None, pages: SSAValue, block: int) -> None:
    """Raise `VerifyException` unless there are scales for pages of i8, one a token and head, and for no others."""
    is_quantized = element_of(pages) == i8
    require((scales is not None) == is_quantized, f"{name} have scales if they are of i8, and only then")
    if scales is not None:
        count, heads, *_ = sizes_of(pages)
        require_equal(sizes_of(scales), (count, heads, 1, block), f"scales of {name} are one a token and head")


def check_rows(rows: Size, sequences: SSAValue, positions: SSAValue) -> None:
    """Raise `VerifyException` unless each of so many rows has a sequence and a position."""
    for name, operand in (("sequence", sequences), ("position", positions)):
        (count,) = sizes_of(operand)
        require_equal(count, rows, f"there must be a {name} for each of {rows} rows, not {count}")


@op_definition
class WritePagesOp(HighOp):
    """
    `pages` with each of `rows` [R, H, D] written at its position of its sequence, rounded to the type of the pages.

    `pages` is [P, H, block, D], or, if `transposed`, [P, H, D, block], of f16, bf16, f32 or i8, as `rows` are then.
    `table` [S, M] has the pages of each sequence in order, `sequences` [R] the sequence of each row, and `positions`
    [R] its index there: row r is written to slot `positions[r]` % block of page `table[sequences[r], positions[r]` /
    block]. A row at a negative position is padding, and is written nowhere. If several rows have one place, the last
    wins. The operator fails for other indices out of range, and negative ones do not count from the back.

    ```mlir
    %k = glow_high.write_pages %keys, %rows, %table, %sequences, %positions {transposed = true} : tensor<64x5x64x16xf16>
    ```
    """

    name = "glow_high.write_pages"
    INPLACE: ClassVar[tuple[tuple[str, str], ...]] = (("result", "pages"),)
    FAILURE: ClassVar[str] = OUT_OF_RANGE

    pages = operand_def(NUMBERS.of_rank(4))
    rows = operand_def(NUMBERS.of_rank(3))
    table = operand_def(INDICES.of_rank(2))
    sequences = operand_def(INDICES.of_rank(1))
    positions = operand_def(INDICES.of_rank(1))
    transposed = flag_prop()
    result = result_def(TENSOR)

    def access_map(self) -> AccessMap:
        page = "*p, h, d, *t" if flag(self.transposed) else "*p, h, *t, d"
        return self.accessed(f"pages[{page}], rows[*r, h, d], sequences[*r], positions[*r] -> result[{page}]")

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        check_pages(self.pages)
        element, wanted = element_of(self.rows), i8 if element_of(self.pages) == i8 else f32
        require(element == wanted, f"rows for these pages are of {wanted}, not {element}")
        pages, (count, *row) = sizes_of(self.pages), sizes_of(self.rows)
        transposed = flag(self.transposed)
        _, heads, block, depth = (*pages[:2], *pages[:1:-1]) if transposed else pages
        require_equal(tuple(row), (heads, depth), f"rows are {tuple(row)}, and those of pages {(heads, depth)}")
        require(block != 0, "pages must have room for a row")
        check_rows(count, self.sequences, self.positions)
        return (tensor(pages, element_of(self.pages)),)


@op_definition
class PagedAttentionOp(HighOp):
    """
    Scaled dot-product attention of each row to the tokens of its sequence, whose keys and values lie in pages.

    `query` is [R, Q, D], `keys` [P, H, D, block], `values` [P, H, block, E], the result [R, Q, E]. Keys and values of
    i8 are multiplied by `key_scales` and `value_scales` [P, H, 1, block]. H divides Q, and neighbouring heads of
    queries share one of keys. `table`, `sequences` and `positions` are those of `write_pages`. A row sees the tokens up
    to its own position, with `window` only the last `window` of these. With `lengths` [S], the numbers of tokens of the
    sequences, it sees those behind it as well, with `window` those less than `window` away; it must be one of them.
    Scores are `scale` * q·k, with `softcap` c the tanh of that / c, times c. `sinks` [Q] are further scores without
    values. Rows at negative positions are padding, and their results 0.

    The result of a row depends on nothing but that row, its keys and values, and its position, to the last bit: not on
    the other rows, their order, the numbers of pages, or threads.

    ```mlir
    %y = glow_high.paged_attention %q, %k, %v, %table, %sequences, %positions {scale = 0.125} : tensor<8x20x64xf32>
    ```
    """

    name = "glow_high.paged_attention"
    FAILURE: ClassVar[str] = OUT_OF_RANGE

    query = operand_def(F32.of_rank(3))
    keys = operand_def(NUMBERS.of_rank(4))
    values = operand_def(NUMBERS.of_rank(4))
    table = operand_def(INDICES.of_rank(2))
    sequences = operand_def(INDICES.of_rank(1))
    positions = operand_def(INDICES.of_rank(1))
    sinks = opt_operand_def(F32.of_rank(1))
    lengths = opt_operand_def(INDICES.of_rank(1))
    key_scales = opt_operand_def(F32.of_rank(4))
    value_scales = opt_operand_def(F32.of_rank(4))
    scale = float_prop(1.0)
    window = int_prop(0)
    softcap = float_prop(0.0)
    result = result_def(TENSOR)

    irdl_options = SEGMENTS

    def access_map(self) -> AccessMap:
        return self.accessed(
            "query[r, *q, *d], keys[*p, *h, *d, *t], values[*p, *h, *t, e], table[*s, *m], sequences[r], positions[r],"
            " sinks[*q], lengths[*s], key_scales[*p, *h, *u, *t], value_scales[*p, *h, *u, *t] -> result[; r, *q, e]"
        )

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        check_pages(self.keys)
        check_pages(self.values)
        (rows, heads, depth), (count, groups, deep, block) = sizes_of(self.query), static(sizes_of(self.keys))
        *others, width = static(sizes_of(self.values))
        heads, depth = static((heads, depth))
        require(deep == depth, f"queries have {depth} elements, keys {deep}")
        require([count, groups, block] == others, f"pages of keys are {(count, groups, block)}, of values {(*others,)}")
        require(block > 0, "pages must have room for a token")
        require(groups > 0 and heads % groups == 0, f"{heads} heads of queries do not share {groups} of keys")
        check_scales("keys", self.key_scales, self.keys, block)
        check_scales("values", self.value_scales, self.values, block)
        check_rows(rows, self.sequences, self.positions)
        require(integer(self.window) >= 0, "window must not be negative")
        require(number(self.softcap) >= 0, "softcap must not be negative")
        if self.sinks is not None:
            require_equal(sizes_of(self.sinks), (heads,), f"there must be a sink for each of {heads} heads")
        if self.lengths is not None:
            (count,), sequences = sizes_of(self.lengths), sizes_of(self.table)[0]
            require_equal(count, sequences, f"there must be a length for each of {sequences} sequences, not {count}")
        return (tensor((rows, heads, width), f32),)

    def tokens(self) -> int:
        """The largest number of tokens that a row may see."""
        most = largest_shape(self.table)[1] * largest_shape(self.keys)[3]
        window = integer(self.window)
        if self.lengths is not None:
            window = max(0, 2 * window - 1)
        return min(most, window) if window else most

    def arithmetic(self) -> Arithmetic:
        rows, heads, width = largest_shape(self.outputs()[0])
        scores = rows * heads * self.tokens()
        return Arithmetic(scores * (width + largest_shape(self.query)[2]), functions=scores)
