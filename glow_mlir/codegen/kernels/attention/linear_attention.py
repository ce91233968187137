"""The kernel of attention with a recurrent state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.access import computed, lanes_for, load, store
from glow_mlir.codegen.builder.nests import Index, linear, nest, vector_loop
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.math.scalar_math import MATH
from glow_mlir.codegen.selection.kernel import Buffer, Kernel, KernelCall, Operand
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.linear_attention import LinearAttentionOp
from glow_mlir.dialects.properties import number
from glow_mlir.dialects.shapes import element_of, shape_of
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


@kernel("linear-attention")
class LinearAttentionKernel(Kernel[LinearAttentionOp]):
    """
    Process all tokens for some columns of the state of one head at a time: one vector of each row.

    Columns do not depend on each other. A token changes a row, and reads it for its queries while it is in registers.
    Only `delta` rules go through the rows twice, since they first need the value that the state has for the key.
    """

    name = "linear-attention"
    AXES = ("heads",)

    def scratch(self, op: LinearAttentionOp, target: Target) -> Sequence[Buffer]:
        _, _, depth, width = op.sizes()
        type_ = computed(element_of(op.inputs()[0]))
        return [((max(1, depth), max(1, width)), type_), ((max(1, depth),), type_)]

    def private(self, op: LinearAttentionOp) -> Sequence[int]:
        return (0, 1)

    def cuts(self, op: LinearAttentionOp, target: Target) -> Mapping[str, int]:
        batch, heads, _, _ = shape_of(op.outputs()[1])
        return {"heads": batch * heads}

    def emit(self, call: KernelCall[LinearAttentionOp]) -> None:
        type_ = computed(call.one("query").element)
        moves = [operand.strides[-1] for operand in (call.one("value"), call.result, call.one("present_state"))]
        past = call.maybe("past_state")
        moves += [] if past is None else [past.strides[-1]]
        width = lanes_for(call.target, type_, moves, kernel_costs(call.target).independent_vectors)
        state = call.one("present_state")

        def head(position: list[Index]) -> None:
            def columns(first: Index, lanes: int) -> None:
                _Columns(call, type_, position, first, lanes).emit()

            vector_loop(call.b, state.shape[-1], width, columns)

        nest(call.b, state.shape[:2], head, call.share("heads"))


@dataclass(frozen=True)
class _Columns:
    """Emits the code for `lanes` columns, from `first` on, of the state at (batch, head) `position`."""

    call: KernelCall[LinearAttentionOp]
    type: Attribute
    position: Sequence[Index]
    first: Index
    lanes: int

    def emit(self) -> None:
        """Read the state, update it with each token, and write the final state."""
        b, past, state = self.call.b, self.call.maybe("past_state"), self.call.one("present_state")

        def start(row: Value) -> None:
            zeros = b.constant(0.0, vector(self.type, self.lanes))
            self._row(row).store(zeros if past is None else self._convert(self._of_state(past, row)))

        self._rows(start)
        with b.loop(0, self.call.result.shape[1]) as token:
            self._token(token)

        def finish(row: Value) -> None:
            value = b.cast(self._load_row(row), computed(state.element))
            store(b, state, self._state_offset(state, row), value)

        self._rows(finish)

    def _rows(self, body: Callable[[Value], None]) -> None:
        with self.call.b.loop(0, self.call.op.sizes()[2]) as row:
            body(row)

    def _row(self, row: Index) -> Value:
        return self.call.many("scratch")[0].pointer.at(row * self.lanes, self.type)

    def _load_row(self, row: Index) -> Value:
        return self._row(row).load(vector(self.type, self.lanes))

    def _state_offset(self, operand: Operand, row: Index) -> Index:
        return linear([*self.position, row, self.first], operand.strides)

    def _of_state(self, operand: Operand, row: Index) -> Value:
        return load(self.call.b, operand, self._state_offset(operand, row), 1, self.lanes)

    def _convert(self, value: Value) -> Value:
        return self.call.b.cast(value, self.type)

    def _at(self, operand: Operand, token: Index, position: Index, lanes: int = 1) -> Value:
        """Load elements of one token."""
        offset = linear([self.position[0], token, position], operand.strides)
        return self._convert(load(self.call.b, operand, offset, operand.strides[-1], lanes))

    def _token(self, token: Value) -> None:
        """Update the state with one token, and compute the results of its queries."""
        call, b, head = self.call, self.call.b, self.position[1]
        queries, heads, depth, width = self.call.op.sizes()
        decay = self._decay(token, heads, depth)
        key, beta = call.one("key"), call.maybe("beta")
        value = self._at(call.one("value"), token, head * width + self.first, self.lanes)
        if beta is not None:
            with b.loop(0, depth, carried=[b.constant(0.0, vector(self.type, self.lanes))]) as loop:
                row = decay(self._load_row(loop.index), loop.index)
                self._row(loop.index).store(row)
                loop.set(b.fma(row, self._at(key, token, head * depth + loop.index), loop.values[0]))
            seen = loop.results[0]
            factor = self._at(beta, token, 0 if beta.shape[-1] == 1 else head)
            value = (value - seen) * factor
        group = queries // heads
        zeros = [b.constant(0.0, vector(self.type, self.lanes)) for _ in range(group)]
        with b.loop(0, depth, carried=zeros) as loop:
            row = self._load_row(loop.index)
            row = row if beta is not None else decay(row, loop.index)
            row = b.fma(value, self._at(key, token, head * depth + loop.index), row)
            self._row(loop.index).store(row)
            read = [
                self._at(call.one("query"), token, (head * group + number_) * depth + loop.index)
                for number_ in range(group)
            ]
            loop.set(*(b.fma(row, q, total) for q, total in zip(read, loop.values, strict=True)))
        result = call.result
        for number_, total in enumerate(loop.results):
            position = (head * group + number_) * width + self.first
            offset = linear([self.position[0], token, position], result.strides)
            store(b, result, offset, total * float(number(self.call.op.scale)))

    def _decay(self, token: Index, heads: int, depth: int) -> Callable[[Value, Index], Value]:
        """Return a function that applies the decay of a token to a row of the state."""
        call, b, decay = self.call, self.call.b, self.call.maybe("decay")
        if decay is None:
            return lambda row, _: row
        head = self.position[1]
        if decay.shape[-1] == heads:
            factor = MATH["exp"](b, self._at(decay, token, head))
            return lambda row, _: row * factor
        factors = call.many("scratch")[1].pointer

        def power(i: Index, lanes: int) -> None:
            factors.at(i, self.type).store(MATH["exp"](b, self._at(decay, token, head * depth + i, lanes)))

        vector_loop(b, depth, lanes_for(call.target, self.type, decay.strides[-1:]), power, rest=1)
        return lambda row, i: row * factors.at(i, self.type).load(self.type)
