"""
The structured builder: kernels are Python functions that emit operations through it.

Arithmetic and memory are of the `llvm` dialect, loops and branches `scf.for`, `scf.while` and `scf.if` around them.

    module = ModuleBuilder(target)
    with define_function(module, "scale", [Param(ptr, noalias=True), ptr, index_type]) as (b, (out, inp, n)):
        with b.loop(0, n) as i:
            out.at(i, f32).store(inp.at(i, f32).load(f32) * 2.0)

`ModuleBuilder` is in `modules.py`, `define_function` in `functions.py`; `Value`, with its operators, in `value.py`.
Loops and branches are context managers; a loop passes carried values to the next iteration explicitly.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, overload

from xdsl.dialects import scf
from xdsl.dialects.builtin import SymbolRefAttr, UnitAttr
from xdsl.dialects.llvm import CallingConventionAttr, CallOp, ReturnOp, TailCallKind, TailCallKindAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from glow_mlir.codegen.builder.atomics import Atomics
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import NO_FAST_MATH, i32, i32_array
from glow_mlir.codegen.builder.value import Index, Number, Value
from glow_mlir.dialects.early_return import ReturnIfOp
from glow_mlir.xdsl_patches.creation import append, created

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

_C = CallingConventionAttr("ccc")
_NO_TAIL = TailCallKindAttr(TailCallKind.NONE)


class Loop:
    """
    One loop that carries values.

    Inside, `index` is the induction variable, and `values` are those that the previous iteration passed to `set`, or
    the initial ones. After the loop, `results` are the values of the last `set`.
    """

    def __init__(self, index: Value, values: Sequence[Value]) -> None:
        self.index = index
        self.values = list(values)
        self.results: list[Value] = []
        self.next: list[Value] | None = None if values else []

    def set(self, *values: Value) -> None:
        """Pass on the values for the next iteration. Raises `ValueError` if their number is wrong."""
        if len(values) != len(self.values):
            raise ValueError(f"the loop carries {len(self.values)} values, not {len(values)}")
        self.next = list(values)

    def passed_on(self) -> list[Value]:
        """Return the values passed to `set`. Raises `ValueError` if it was not called."""
        if self.next is None:
            raise ValueError("a loop that carries values must pass them on with `set`")
        return self.next


class Builder(Atomics):
    """Builds one function: everything of `Atomics` and below, plus control flow and calls."""

    def __init__(self, module: ModuleBuilder, entry: Block) -> None:
        super().__init__(module.target, entry)
        self.module = module
        self._entry = entry
        self.scalars: Value | None = None
        """The address of the scalar parameters of the instruction, for functions that take them: two i32 for each."""

    # ---- loops

    @overload
    def loop(self, start: Index, stop: Index, step: Index = 1, *, role: str = "") -> AbstractContextManager[Value]: ...

    @overload
    def loop(
        self, start: Index, stop: Index, step: Index = 1, *, carried: Sequence[Value], role: str = ""
    ) -> AbstractContextManager[Loop]: ...

    def loop(
        self, start: Index, stop: Index, step: Index = 1, *, carried: Sequence[Value] | None = None, role: str = ""
    ) -> AbstractContextManager[Value | Loop]:
        """
        Run the block for `start`, `start + step`, … below `stop`; the step is positive.

        Yields the index, as wide as a pointer, or, when values are carried, a `Loop`. If Python knows that a loop runs
        once, or never, no loop is emitted. `role` is an attribute that says what the iterations are, such as
        `glow.threads`.
        """
        if carried is None:
            return self._indexed(start, stop, step, role)
        return self._carrying(start, stop, step, carried, role)

    @contextmanager
    def _indexed(self, start: Index, stop: Index, step: Index, role: str) -> Generator[Value]:
        with self._carrying(start, stop, step, (), role) as loop:
            yield loop.index

    @contextmanager
    def _carrying(self, start: Index, stop: Index, step: Index, carried: Sequence[Value], role: str) -> Generator[Loop]:
        if _runs_once(start, stop, step):
            loop = Loop(self.index(start), carried)
            yield loop
            loop.results = loop.passed_on()
            return
        bounds = [self.index(bound) for bound in (start, stop, step)]
        types = [value.type for value in carried]
        body = Block(arg_types=[self.index_type, *types])
        body.args[0].name_hint = "i"
        loop = Loop(Value(self, body.args[0]), self._values(body.args[1:]))
        with self.into(body):
            yield loop
            self.perform(scf.YieldOp, loop.passed_on())
        if _never_runs(start, stop):
            for op in reversed(list(body.ops)):
                body.erase_op(op, safe_erase=False)
            loop.results = list(carried)
            return
        loop.results = self._structured(scf.ForOp, [*bounds, *carried], types, body, role=role)

    def repeat(
        self,
        carried: Sequence[Value],
        body: Callable[..., Sequence[Value]],
        condition: Callable[..., Value],
    ) -> list[Value]:
        """
        Replace the carried values by `body(*values)` while `condition(*values)` holds; return the last ones.

        Both callbacks are called once, to build the code.
        """
        types = [value.type for value in carried]
        before, after = Block(arg_types=types), Block(arg_types=types)
        with self.into(before):
            values = self._values(before.args)
            self.perform(scf.ConditionOp, [condition(*values), *values])
        with self.into(after):
            self.perform(scf.YieldOp, body(*self._values(after.args)))
        return self._structured(scf.WhileOp, carried, types, before, after)

    # ---- branches

    @contextmanager
    def when(self, condition: Value | bool) -> Generator[None]:
        """Run the block only if the i1 `condition` holds; a Python bool has to be true."""
        if isinstance(condition, bool):
            assert condition, "a block that never runs is not emitted"
            yield
            return
        inside = Block()
        with self.into(inside):
            yield
            self.perform(scf.YieldOp, ())
        self._structured(scf.IfOp, [condition], (), inside, None)

    def either(
        self,
        condition: Value,
        then: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]],
    ) -> list[Value]:
        """
        Run one of two pieces of code and return the values it gives: equally many, of the same types, from both.

        Both callbacks are called once, to build the code.
        """
        blocks = Block(), Block()
        chosen: Sequence[Value] = ()
        for block, way in zip(blocks, (then, otherwise), strict=True):
            with self.into(block):
                chosen = way()
                self.perform(scf.YieldOp, chosen)
        return self._structured(scf.IfOp, [condition], [value.type for value in chosen], *blocks)

    # ---- functions

    def call(self, name: str, arguments: Sequence[Number]) -> Value | None:
        """
        Call a function of the module; Python numbers become constants of the parameter's type.

        Returns the result, or None if the function has none. Raises `KeyError` for an unknown name.
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
        append(self.block, op)
        return self.wrap(op) if op.results else None

    def scalar(self, number: int, type_: Attribute) -> Value:
        """Return the scalar parameter of that number, as f32 or i32; a whole f32 is available as both."""

        def load() -> Value:
            assert self.scalars is not None, "the function takes no scalar parameters"
            return self.scalars.at(2 * number + (type_ == i32), i32).load(type_)

        return self.once(("scalar", number, type_), load)

    def return_if(self, condition: Value, value: Value | None = None) -> None:
        """Return from the function if the i1 `condition` holds, even from inside loops and branches."""
        self.perform(ReturnIfOp, (condition,) if value is None else (condition, value))

    def give_back(self, value: Value | None = None) -> None:
        """Return from the function, at its end. Raises `ValueError` in a loop or branch: there, use `return_if`."""
        if self.block is not self._entry:
            raise ValueError("a function returns at its end: 'return_if' returns from a loop or branch")
        self.perform(ReturnOp, () if value is None else (value,))

    def finish(self) -> None:
        """Return from the function if it has not, and put the constants at its top."""
        if not isinstance(self._entry.last_op, ReturnOp):
            self.give_back()
        first = self._entry.first_op
        assert first is not None
        hoisted = list(self.at_top.ops)
        for op in hoisted:
            op.detach()
        self._entry.insert_ops_before([*self.constants, *hoisted], first)

    # ---- regions

    @contextmanager
    def into(self, block: Block) -> Generator[None]:
        """A context that appends to another block."""
        around, self.block = self.block, block
        yield
        self.block = around

    def _structured(
        self,
        kind: type[Operation],
        operands: Sequence[Value],
        types: Sequence[Attribute],
        *blocks: Block | None,
        role: str = "",
    ) -> list[Value]:
        """Append a loop or branch with these blocks, `None` for an empty region; return its results."""
        regions = [Region() if block is None else Region(block) for block in blocks]
        attributes = {role: UnitAttr()} if role else None
        op = created(kind, [operand.ssa for operand in operands], types, attributes=attributes, regions=regions)
        append(self.block, op)
        return self._values(op.results)

    def _values(self, values: Sequence[SSAValue]) -> list[Value]:
        return [Value(self, value) for value in values]


def _never_runs(start: Index, stop: Index) -> bool:
    """Whether Python knows that a loop never runs."""
    return isinstance(start, int) and isinstance(stop, int) and start >= stop


def _runs_once(start: Index, stop: Index, step: Index) -> bool:
    """Whether Python knows that a loop runs once."""
    return isinstance(start, int) and isinstance(stop, int) and isinstance(step, int) and start < stop <= start + step
