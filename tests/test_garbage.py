"""Nothing of a compilation is left soon behind it, and what others have set aside stays so."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from small_models import adding

LEFT = """
    import gc, sys, time
    import numpy as np
    from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
    from glow_mlir import InferenceSession
    {before}
    session = InferenceSession(sys.argv[1], cache=False)
    session.run(None, {{item.name: np.zeros(item.shape, np.float32) for item in session.get_inputs()}})
    time.sleep(1)
    kinds = (Operation, Block, Region, SSAValue)
    print(sum(isinstance(item, kinds) for item in gc.get_objects()), gc.get_freeze_count(), gc.isenabled())
"""


def left(path: Path, before: str = "") -> tuple[int, int, bool]:
    """How many objects of IR a process has a second behind a call; how many it has set aside; whether it collects."""
    code = textwrap.dedent(LEFT.format(before=before))
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True)
    objects, frozen, collects = done.stdout.split()
    return int(objects), int(frozen), collects == "True"


def model(folder: Path) -> Path:
    """A model on disk."""
    path = folder / "model.onnx"
    path.write_bytes(adding())
    return path


def test_nothing_is_left(tmp_path: Path) -> None:
    assert left(model(tmp_path)) == (0, 0, True)


def test_what_a_process_set_aside_stays_so(tmp_path: Path) -> None:
    _, frozen, collects = left(model(tmp_path), "gc.freeze()")
    assert frozen > 0
    assert collects


def test_a_process_without_collector_keeps_it_so(tmp_path: Path) -> None:
    objects, _, collects = left(model(tmp_path), "gc.disable()")
    assert objects > 0
    assert not collects
