"""Constants that several executables read are in memory once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from garbage import collect_garbage
from onnx import TensorProto, helper, numpy_helper

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.runtime.cache import shared_memory
from glow_mlir.runtime.machine_code import MachineCode
from glow_mlir.runtime.shared_constants import IS_SUPPORTED, PAGE, SharedPages, share
from glow_mlir.runtime.specializations import SpecializationLimits

pytestmark = pytest.mark.skipif(not IS_SUPPORTED, reason="the system maps no pages a second time")

MAPS = Path("/proc/self/maps")
DEPTH = 160


def product() -> onnx.ModelProto:
    """y = x @ w, for any number of rows."""
    weights = np.random.default_rng(0).standard_normal((DEPTH, DEPTH)).astype(np.float32)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ("N", DEPTH)) for name in "xy")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "graph", [x], [y], [numpy_helper.from_array(weights, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def behind(address: int) -> tuple[str, ...]:
    """What is mapped at an address: device and inode, and the place in that."""
    for line in MAPS.read_text().splitlines():
        span, _, offset, device, inode, *_ = line.split()
        begin, end = (int(item, 16) for item in span.split("-"))
        if begin <= address < end:
            return device, inode, hex(int(offset, 16) + address - begin)
    raise AssertionError(f"nothing is mapped at {address:#x}")


@pytest.mark.parametrize("how", ["uncached", "cached", "warm"])
def test_specializations_have_packed_weights_once(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path))
    path, counts = tmp_path / "m.onnx", (32, 48)
    onnx.save(product(), path)
    feeds = [np.random.default_rng(count).standard_normal((count, DEPTH)).astype(np.float32) for count in counts]
    expected = [InferenceSession(path, dimensions={"N": len(x)}, cache=False).run(None, {"x": x})[0] for x in feeds]
    if how == "warm":
        first = InferenceSession(path)
        for x in feeds:
            first.run(None, {"x": x})
        del first
        collect_garbage()
    session = InferenceSession(path, cache=how != "uncached")
    for x, y in zip(feeds, expected, strict=True):
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], y)
    found = session.specializations
    assert all(not item.compile_seconds for item in found) == (how == "warm")
    codes = [item.executable for item in found]
    shared = [[part for part in code.memory if isinstance(part, SharedPages)] for code in codes]
    assert shared[0] == shared[1]
    (pages,) = shared[0]
    assert pages.nbytes > DEPTH * DEPTH * 4 - PAGE
    together = sum({key: size for code in codes for key, size in code.memory.items()}.values())
    assert together == sum(item.nbytes for item in found) - pages.nbytes
    if MAPS.exists():
        places = {behind(address_of(code)) for code in codes}
        assert places == {behind(pages.address)}
    # What is left works without what came first.
    session.run(None, {"x": feeds[0]})
    del session
    session = InferenceSession(path, cache=how != "uncached", limits=SpecializationLimits(number=1))
    for x, y in zip(feeds, expected, strict=True):
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], y)
    del found, codes, shared, pages
    collect_garbage()
    np.testing.assert_array_equal(session.run(None, {"x": feeds[1]})[0], expected[1])


def address_of(code: object) -> int:
    """The address of the only large constant."""
    assert isinstance(code, MachineCode)
    ((offset, _),) = code.manifest.large
    return code.constants.ctypes.data + offset


def test_regions_keep_their_contents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal ones are mapped once, whatever lies around them; different ones of one checksum are not mixed up."""
    regions = [shared_memory(5 * PAGE) for _ in range(3)]
    for number, region in enumerate(regions):
        region[:] = number
    for region, offset in zip(regions[:2], (PAGE, 2 * PAGE), strict=True):
        region[offset : offset + 2 * PAGE + 9] = 77
    before = [region.copy() for region in regions]
    monkeypatch.setattr("glow_mlir.runtime.shared_constants.zlib.crc32", len)
    extents = [(PAGE, 2 * PAGE + 9), (2 * PAGE, 2 * PAGE + 9), (PAGE, 2 * PAGE)]
    found = [share(region, [extent], in_file=False) for region, extent in zip(regions, extents, strict=True)]
    assert found[0] == found[1] != []
    assert found[2] == []
    for region, content in zip(regions, before, strict=True):
        np.testing.assert_array_equal(region, content)


def test_pages_are_given_back() -> None:
    region = shared_memory(2 * PAGE)
    region[:] = 5
    (pages,) = share(region, [(0, 2 * PAGE)], in_file=False)
    address = pages.address
    del pages
    if MAPS.exists():
        with pytest.raises(AssertionError, match="nothing is mapped"):
            behind(address)
