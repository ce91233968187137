"""
The structured builder: kernels are Python functions that emit operations of the `llvm` dialect through it.

    module = ModuleBuilder(target)
    with define_function(module, "scale", [Param(ptr, noalias=True), ptr, index_type]) as (b, (out, inp, n)):
        with b.loop(0, n) as i:
            out.at(i, f32).store(inp.at(i, f32).load(f32) * 2.0)

`ModuleBuilder` is in `modules.py`, `define_function` in `functions.py`; `Value`, with its operators, in `value.py`.
Loops and branches are context managers; what a loop carries from one iteration to the next is named.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, overload

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.llvm import BrOp, CallingConventionAttr, CallOp, CondBrOp, ReturnOp, TailCallKind, TailCallKindAttr
from xdsl.ir import Attribute, Block, Region

from glow_mlir.codegen.builder.atomics import Atomics
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import NO_FAST_MATH, i32, i32_array
from glow_mlir.codegen.builder.value import Index, Number, Value
from glow_mlir.support.op_creation import created

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

_C = CallingConventionAttr("ccc")
_NO_TAIL = TailCallKindAttr(TailCallKind.NONE)


class Loop:
    """
    One loop that carries values.

    Inside, `index` is the induction variable and `values` are what the last iteration passed to `set`, or the
    initial values; after the loop, `results` are what the last `set` passed.
    """

    def __init__(self, index: Value, values: Sequence[Value]) -> None:
        self.index = index
        self.values = list(values)
        self.results: list[Value] = []
        self.next: list[Value] | None = None if values else []

    def set(self, *values: Value) -> None:
        """Pass on the values for the next iteration. Raises `ValueError` when their number is wrong."""
        if len(values) != len(self.values):
            raise ValueError(f"the loop carries {len(self.values)} values, not {len(values)}")
        self.next = list(values)

    def passed_on(self) -> list[Value]:
        """Return what `set` got. Raises `ValueError` when it was not called."""
        if self.next is None:
            raise ValueError("a loop that carries values must pass them on with `set`")
        return self.next


class Builder(Atomics):
    """Builds one function: everything of `Atomics` and below, plus control flow and calls."""

    def __init__(self, module: ModuleBuilder, region: Region, entry: Block) -> None:
        super().__init__(module.target, entry)
        self.module = module
        self._region = region
        self.scalars: Value | None = None
        """The address of the scalar parameters of the instruction, for functions that take them: two i32 for each."""

    # ---- loops

    @overload
    def loop(self, start: Index, stop: Index, step: Index = 1) -> AbstractContextManager[Value]: ...

    @overload
    def loop(
        self, start: Index, stop: Index, step: Index = 1, *, carried: Sequence[Value]
    ) -> AbstractContextManager[Loop]: ...

    def loop(
        self, start: Index, stop: Index, step: Index = 1, *, carried: Sequence[Value] | None = None
    ) -> AbstractContextManager[Value | Loop]:
        """
        Run the block for `start`, `start + step`, … below `stop`; the step is positive.

        Yields the index, as wide as a pointer, or, when values are carried, a `Loop`. A loop that Python knows to run
        once leaves no loop behind.
        """
        return self._indexed(start, stop, step) if carried is None else self._carrying(start, stop, step, carried)

    @contextmanager
    def _indexed(self, start: Index, stop: Index, step: Index) -> Generator[Value]:
        with self._carrying(start, stop, step, ()) as loop:
            yield loop.index

    @contextmanager
    def _carrying(self, start: Index, stop: Index, step: Index, carried: Sequence[Value]) -> Generator[Loop]:
        trips = _known_trips(start, stop, step)
        if trips == 1:
            loop = Loop(self.index(start), carried)
            yield loop
            loop.results = loop.passed_on()
            return
        first, limit = self.index(start), self.index(stop)
        types = [value.type for value in carried]
        body, after = Block(arg_types=[self.index_type, *types]), Block(arg_types=types)
        if trips:
            self._jump(body, [first, *carried])
        else:
            self._branch(first < limit, body, [first, *carried], after, carried)
        self._enter(body)
        loop = Loop(Value(self, body.args[0]), [Value(self, argument) for argument in body.args[1:]])
        yield loop
        passed = loop.passed_on()
        following = loop.index + step
        self._branch(following < limit, body, [following, *passed], after, passed)
        self._enter(after)
        loop.results = [Value(self, argument) for argument in after.args]

    def repeat(
        self,
        carried: Sequence[Value],
        body: Callable[..., Sequence[Value]],
        condition: Callable[..., Value],
    ) -> list[Value]:
        """
        Replace the carried values by `body(*values)` as long as `condition(*values)` holds; returns the last
        ones.

        Both callbacks are called once, to build the code.
        """
        types = [value.type for value in carried]
        inside, after = Block(arg_types=types), Block(arg_types=types)
        self._branch(condition(*carried), inside, carried, after, carried)
        self._enter(inside)
        values = list(body(*(Value(self, argument) for argument in inside.args)))
        self._branch(condition(*values), inside, values, after, values)
        self._enter(after)
        return [Value(self, argument) for argument in after.args]

    # ---- branches

    @contextmanager
    def when(self, condition: Value) -> Generator[None]:
        """Run the block only where the i1 `condition` holds."""
        inside, after = Block(), Block()
        self._branch(condition, inside, (), after, ())
        self._enter(inside)
        yield
        self._close(after, ())

    def either(
        self,
        condition: Value,
        then: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]],
    ) -> list[Value]:
        """
        Run one of two pieces of code and return the values it gives, as many and of the same types from both.

        Both callbacks are called once, to build the code.
        """
        yes, no = Block(), Block()
        self._branch(condition, yes, (), no, ())
        self._enter(yes)
        chosen = then()
        after = Block(arg_types=[value.type for value in chosen])
        self._jump(after, chosen)
        self._enter(no)
        self._jump(after, otherwise())
        self._enter(after)
        return [Value(self, argument) for argument in after.args]

    # ---- functions

    def call(self, name: str, arguments: Sequence[Number]) -> Value | None:
        """
        Call a function of the module; numbers of Python become constants of the parameter's type.

        Returns the result, or None from a function that has none. Raises `KeyError` for an unknown name.
        """
        signature = self.module.signatures[name]
        if len(arguments) != len(signature.inputs):
            raise TypeError(f"'{name}' takes {len(signature.inputs)} arguments, not {len(arguments)}")
        operands = [self.as_value(a, type_) for a, type_ in zip(arguments, signature.inputs, strict=True)]
        if signature.takes_scalars:
            assert self.scalars is not None, f"'{name}' takes scalar parameters"
            operands.append(self.scalars)
        op = created(
            CallOp,
            [operand.ssa for operand in operands],
            () if signature.result is None else (signature.result,),
            {
                "callee": SymbolRefAttr(name),
                "CConv": _C,
                "TailCallKind": _NO_TAIL,
                "op_bundle_sizes": i32_array(),
                "operandSegmentSizes": i32_array(len(operands), 0),
                **NO_FAST_MATH,
            },
        )
        self.block.add_op(op)
        return self.wrap(op) if op.results else None

    def scalar(self, number: int, type_: Attribute) -> Value:
        """Return the scalar parameter of that number, of f32 or i32; one that is f32 and whole is both."""

        def load() -> Value:
            assert self.scalars is not None, "the function takes no scalar parameters"
            return self.scalars.at(2 * number + (type_ == i32), i32).load(type_)

        return self.once(("scalar", number, type_), load)

    def give_back(self, value: Value | None = None) -> None:
        """Return from the function."""
        self.perform(ReturnOp, () if value is None else (value,))

    def finish(self) -> None:
        """Return from the function if it has not, and put the constants at its top."""
        if not _ended(self.block):
            self.give_back()
        entry = self._region.blocks[0]
        first = entry.first_op
        assert first is not None
        hoisted = list(self.at_top.ops)
        for op in hoisted:
            op.detach()
        entry.insert_ops_before([*self.constants, *hoisted], first)

    # ---- blocks

    def _enter(self, block: Block) -> None:
        self._region.add_block(block)
        self.block = block

    def _jump(self, to: Block, values: Sequence[Value]) -> None:
        self.block.add_op(created(BrOp, [value.ssa for value in values], successors=(to,)))

    def _close(self, to: Block, values: Sequence[Value]) -> None:
        """Jump on, unless the block has returned already, and continue there."""
        if not _ended(self.block):
            self._jump(to, values)
        self._enter(to)

    def _branch(
        self, condition: Value, yes: Block, yes_values: Sequence[Value], no: Block, no_values: Sequence[Value]
    ) -> None:
        operands = [value.ssa for value in (condition, *yes_values, *no_values)]
        sizes = {"operandSegmentSizes": i32_array(1, len(yes_values), len(no_values))}
        self.block.add_op(created(CondBrOp, operands, properties=sizes, successors=(yes, no)))


def _ended(block: Block) -> bool:
    return isinstance(block.last_op, ReturnOp | BrOp | CondBrOp)


def _known_trips(start: Index, stop: Index, step: Index) -> int | None:
    """Return how often a loop runs, where Python knows it and it does run; None otherwise."""
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int) and start < stop:
        return -(-(stop - start) // step)
    return None
