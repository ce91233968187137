"""
Named patterns: local rewrites, the walks that apply them, and passes as lists of walks.

A pattern has xDSL's interface, `match_and_rewrite(op, rewriter)`, and is named after its class: `MergeTransposes` is
`merge-transposes`. It declares its root operators, so that a walk visits no others.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from inspect import signature
from types import MethodType
from typing import ClassVar, TypeVar, get_args

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.storage import FuncOp, FunctionOp
from glow_mlir.dialects.sizes import RunTimeSizeError
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import erase_dead, functions
from glow_mlir.ir.traversal import all_operations
from glow_mlir.support.cancellation import check_cancellation
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.identity import is_kind

Kinds = tuple[type[Operation], ...]
Root = TypeVar("Root", bound=Operation)
Self_ = TypeVar("Self_", bound=RewritePattern)


def name_of(kind: type[RewritePattern]) -> str:
    """The name of a pattern: its class name in lower case with hyphens."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()


class Pattern(RewritePattern):
    """A local rewrite; its method `match_and_rewrite` is decorated with `rooted`, or its `roots` are overridden."""

    name: str
    """The name under which it is counted, logged and run alone: that of its class, unless it has a field `name`."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in cls.__annotations__:
            cls.name = name_of(cls)

    @property
    def roots(self) -> Kinds:
        """The kinds of root operators, subclasses included."""
        return getattr(type(self).match_and_rewrite, "roots")

    @abstractmethod
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        """Rewrite around `op` if the pattern matches there; otherwise change nothing."""


def rooted(
    function: Callable[[Self_, Root, Rewriter], None],
) -> Callable[[Self_, Operation, PatternRewriter], None]:
    """Read the root operators of a pattern from the annotation of `op`, and match only these."""
    kind = list(signature(function, eval_str=True).parameters.values())[1].annotation
    roots: Kinds = get_args(kind) or (kind,)

    def match_and_rewrite(self: Self_, op: Operation, rewriter: PatternRewriter) -> None:
        if is_kind(type(op), roots):
            assert isinstance(rewriter, Rewriter)
            function(self, op, rewriter)  # pyright: ignore[reportArgumentType]

    setattr(match_and_rewrite, "roots", roots)
    setattr(match_and_rewrite, "at_root", function)
    return match_and_rewrite


Match = Callable[[Operation, Rewriter], None]


class _ByKind(dict[type[Operation], tuple[tuple[Pattern, Match], ...]]):
    """Kind of operator → the patterns rooted there, in order, each with its matcher."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        super().__init__()
        self._patterns = patterns

    def __missing__(self, kind: type[Operation]) -> tuple[tuple[Pattern, Match], ...]:
        self[kind] = tuple((pattern, _at_root(pattern)) for pattern in self._patterns if is_kind(kind, pattern.roots))
        return self[kind]


def _at_root(pattern: Pattern) -> Match:
    """The matcher of a pattern for an operator known to be a root."""
    function = getattr(type(pattern).match_and_rewrite, "at_root", None)
    return pattern.match_and_rewrite if function is None else MethodType(function, pattern)


@dataclass(frozen=True)
class Walk:
    """
    A walk over the operations of a function, forward or `backward`, that tries patterns at each.

    Operations in branches and loops are visited as well, those in scalar bodies are not. Patterns are tried in order as
    long as the operator exists. A pattern that needs a number for a run-time size does not match. If the walk is
    `recursive`, new operators are visited right away; otherwise no operator is visited twice, and the walk is linear. A
    `repeated` walk restarts until nothing changes.
    """

    patterns: tuple[Pattern, ...]
    backward: bool = False
    recursive: bool = False
    repeated: bool = False

    @cached_property
    def _by_kind(self) -> _ByKind:
        return _ByKind(self.patterns)

    def run(self, function: FunctionOp, storage: Storage) -> bool:
        """Walk over a function; returns whether anything changed."""
        by_kind = self._by_kind
        ops = all_operations(function)
        pending = [op for op in ops if by_kind[type(op)]]
        if not pending:
            return False
        if not self.backward:
            pending.reverse()
        rewriter = Rewriter(function, storage, map(type, ops))
        is_changed = False
        while pending:
            check_cancellation()
            op = pending.pop()
            for pattern, match in by_kind[type(op)]:
                if op.parent is None:
                    break
                rewriter.begin(op)
                try:
                    match(op, rewriter)
                except RunTimeSizeError:
                    _give_up(rewriter)
                if rewriter.has_done_action:
                    is_changed = True
                    _note(pattern, rewriter)
                    if self.recursive:
                        pending += rewriter.created
        return is_changed


def _give_up(rewriter: Rewriter) -> None:
    """Discard the emitted operators of a pattern that met a run-time size; re-raises the error if it did more."""
    if rewriter.changed or rewriter.erased:
        raise
    rewriter.discard()


class PatternPass(ModulePass):
    """A pass defined by patterns: `WALKS`, or `walks` if they depend on options."""

    WALKS: ClassVar[tuple[Walk, ...]] = ()
    SPELLED: ClassVar[Mapping[str, str]] = {}
    """Field → name of the option in text, if it differs."""

    def walks(self) -> tuple[Walk, ...]:
        """The walks over each function, in order."""
        return self.WALKS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_walks(op, self.walks())


def run_walks(module: ModuleOp, walks: Iterable[Walk]) -> None:
    """Run walks over each function of a module, and erase unused operators of `glow_high`."""
    storage = Storage(module)
    for function in functions(module):
        for walk in walks:
            is_pending = True
            while is_pending:
                is_changed = walk.run(function, storage)
                if is_changed and isinstance(function, FuncOp):
                    erase_dead(function)
                is_pending = is_changed and walk.repeated


# ---- which pattern did what ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Application:
    """An application of a pattern, and its effects."""

    pattern: str
    created: Sequence[Operation]
    changed: Sequence[Operation]
    erased: Sequence[Operation]


_NOTED: ContextVar[list[Application] | None] = ContextVar("noted", default=None)


def _note(pattern: Pattern, rewriter: Rewriter) -> None:
    """Count a pattern application, and notify followers."""
    statistics.count(pattern.name)
    noted = _NOTED.get()
    if noted is not None:
        noted.append(Application(pattern.name, rewriter.created, rewriter.changed, rewriter.erased))


@contextmanager
def following() -> Generator[list[Application]]:
    """Collect the applications of patterns inside the `with` statement, in order."""
    noted: list[Application] = []
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)
