"""The stack usage of code: the frame of each function, and the maximum along any chain of calls."""

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
    The maximum stack usage in bytes of a call of any function in a module of LLVM IR.

    That is the sum of the frames along the deepest chain of calls, with frame sizes from LLVM, plus return addresses
    and frame alignment. A function that another one mentions is assumed to be called by it, like the tasks of a
    parallel-for, whose own frame is not counted.
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
    """The stack of a call beyond LLVM's frame: the return address, and padding for the alignment of buffers."""
    address = target.pointer_bits // 8
    widest = max(map(int, _ALLOCATED.findall(body)), default=0)
    return address + (widest if widest > 2 * address else 0)


def _deepest(name: str, own: Mapping[str, int], called: Mapping[str, list[str]], known: dict[str, int]) -> int:
    """The stack of a function and its deepest callee; our machine code is not recursive."""
    if name not in known:
        known[name] = own[name] + max((_deepest(other, own, called, known) for other in called[name]), default=0)
    return known[name]
