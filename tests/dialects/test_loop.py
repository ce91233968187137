"""Loops and windows that no text can hold: text names nothing that is defined elsewhere."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import f32
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.glow_low.loop import LoopOp, WindowOp
from glow_mlir.dialects.glow_low.memory import AllocOp, buffer_type


@pytest.mark.parametrize("inside", [True, False])
def test_a_window_is_inside_the_loop_that_moves_it(inside: bool):
    buffer = AllocOp.of(buffer_type((8, 4), f32)).result
    loop = LoopOp.of(2)
    window = WindowOp.of(buffer, [(loop.index, 8)], buffer_type((2, 4), f32))
    if inside:
        loop.block.add_op(window)
        window.verify()
        return
    with pytest.raises(VerifyException, match="a loop around it"):
        window.verify()
