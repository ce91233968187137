"""Instructions that are counted in traces of QEMU are those that were executed."""

from __future__ import annotations

import pytest
from embedded_models import compiled, inputs_of
from emulators import MACHINES, Qemu, machine_for
from traced import executed_instructions, traced

LOG = """\
----------------
IN: call_model
0x00210150:  94000000  bl       #0x210160

Trace 0: 0x7f00 [81009331/0000000000210150/00000001/00000200] call_model
----------------
IN: main
0x00210160:  48 81 ec 00 01 00 00     subq     $0x100, %rsp
0x00210167:  48 b8 01 02 03 04 05 06  movabsq  $0x807060504030201, %rax
0x0021016f:  07 08
0x00210171:  0f 05                    syscall

Trace 0: 0x7f01 [0/0000000000210160/00000001/00000200] main
----------------
IN: kernel
0x00210170:  01 d8                    addl     %ebx, %eax
0x00210172:  c3                       retq

Trace 0: 0x7f02 [0/0000000000210170/00000001/00000200] kernel
Trace 0: 0x7f02 [0/0000000000210170/00000001/00000200] kernel
Stopped execution of TB chain before 0x7f02 [0000000000210170] kernel
Trace 0: 0x7f02 [0/0000000000210170/00000001/00000200] kernel
Trace 0: 0x7f00 [81009331/0000000000210150/00000001/00000200] call_model
Trace 0: 0x7f02 [0/0000000000210170/00000001/00000200] kernel
"""


def test_blocks_count_from_the_call_to_the_return() -> None:
    assert executed_instructions(LOG.splitlines()) == {"main": 3, "kernel": 4}


@pytest.mark.extra
def test_counts_by_a_trace_and_by_a_clock_are_the_same() -> None:
    board = MACHINES["cortex-m4"][0]
    assert isinstance(board, Qemu)
    if board.missing():
        pytest.skip(f"traces are those of QEMU, and it is not here: {board.missing()}")
    artifact, inputs = compiled("encoder", "float", "cortex-m4").artifact, inputs_of("encoder")
    by_clock, by_trace = (machine.run(artifact, inputs).instructions for machine in (board, traced(board)))
    assert by_clock
    assert by_trace
    assert abs(by_clock - by_trace) <= board.instructions_per_tick


@pytest.mark.extra
def test_boards_count_alike_whatever_their_clock() -> None:
    artifact, inputs = compiled("encoder", "float", "cortex-m4").artifact, inputs_of("encoder")
    counts = [machine_for(target).run(artifact, inputs).instructions for target in ("cortex-m7", "cortex-m55")]
    assert all(counts)
    assert abs((counts[0] or 0) - (counts[1] or 0)) <= 40
