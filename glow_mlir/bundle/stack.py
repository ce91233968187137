"""How much stack code takes: the frame of each function, and the most along any chain of calls."""

from __future__ import annotations

import re
from collections.abc import Mapping

from glow_mlir.codegen.llvm.objects import stack_frames
from glow_mlir.dialects.target import Target

_DEFINED = re.compile(r"^define .*?@([\w.$-]+)\(.*?^\}", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"@([\w.$-]+)")
_ALLOCATED = re.compile(r"= alloca .*align (\d+)")


def stack_bound(text: str, target: Target) -> int:
    """
    The most bytes of stack that a call of any function of a module in LLVM IR takes.

    That is the sum of the frames along the deepest chain of calls, where LLVM says how large each is; the address of a
    return and what aligns a frame come on top. A function that another mentions may be called by it, as parts of
    instructions are through a parallel-for, whose own frame is not counted.
    """
    frames = stack_frames(text, target)
    bodies = {match[1]: match[0] for match in _DEFINED.finditer(text)}
    called = {
        name: [other for other in dict.fromkeys(_NAMED.findall(body)) if other in bodies and other != name]
        for name, body in bodies.items()
    }
    own = {name: frames.get(name, 0) + _further(body, target) for name, body in bodies.items()}
    known: dict[str, int] = {}
    return max((_deepest(name, own, called, known) for name in bodies), default=0)


def _further(body: str, target: Target) -> int:
    """What a call takes beside the frame that LLVM knows: its return address, and what a buffer's alignment skips."""
    address = target.pointer_bits // 8
    widest = max(map(int, _ALLOCATED.findall(body)), default=0)
    return address + (widest if widest > 2 * address else 0)


def _deepest(name: str, own: Mapping[str, int], called: Mapping[str, list[str]], known: dict[str, int]) -> int:
    """The stack of a function and of the deepest that it calls; machine code of ours has no recursion."""
    if name not in known:
        known[name] = own[name] + max((_deepest(other, own, called, known) for other in called[name]), default=0)
    return known[name]
