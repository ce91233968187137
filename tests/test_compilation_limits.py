"""Compilations are bounded: in seconds, in operators that loops become, in bytes of constants that are made."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects.builtin import LocationAttr, ModuleOp, NameLoc, StringAttr, UnknownLoc

from glow_mlir import InferenceSession
from glow_mlir.dialects.glow_high.storage import ConstantOp
from glow_mlir.dialects.shapes import bytes_of
from glow_mlir.errors import OptionError, TimeLimitError, UnsupportedError
from glow_mlir.frontends.builder import constant_folding, limits
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.ir.context import new_context
from glow_mlir.ir.locations import location_names
from glow_mlir.ir.rewriting import fuse_locations
from glow_mlir.transforms.graph.fold_constants import FoldConstantsPass


def model(nodes: list[onnx.NodeProto], weights: dict[str, np.ndarray], result: str) -> bytes:
    """A model of one input `x` of four floats."""
    made = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opset = helper.make_opsetid("", 17)
    return helper.make_model(made, opset_imports=[opset], ir_version=10).SerializeToString()


def doublings(count: int) -> list[onnx.NodeProto]:
    """Nodes that double a constant `c`, the last of which gives `t`."""
    names = ["c", *(f"c{number}" for number in range(1, count)), "t"]
    return [helper.make_node("Concat", [one, one], [two], axis=0) for one, two in pairwise(names)]


CONSTANT = {"c": np.arange(16, dtype=np.float32)}


def test_constants_that_double_are_not_made() -> None:
    """Thirty doublings of 64 bytes would be 69 GB."""
    nodes = [*doublings(30), helper.make_node("ReduceSum", ["t"], ["s"], keepdims=0)]
    nodes.append(helper.make_node("Add", ["x", "s"], ["y"]))
    session = InferenceSession(model(nodes, CONSTANT, "y"), cache=False)
    assert session.machine_code.constants.nbytes < 1 << 22


def opposites(count: int) -> list[onnx.NodeProto]:
    """Nodes that double a constant `c` by its opposite, the last of which gives `t`."""
    names = ["c", *(f"c{number}" for number in range(1, count)), "t"]
    pairs = ((one, two, f"n{number}") for number, (one, two) in enumerate(pairwise(names)))
    return [
        node
        for one, two, negated in pairs
        for node in (
            helper.make_node("Neg", [one], [negated]),
            helper.make_node("Concat", [one, negated], [two], axis=0),
        )
    ]


def constant_bytes(module: ModuleOp) -> int:
    return sum(bytes_of(op.type) for op in module.body.block.ops if isinstance(op, ConstantOp))


def test_constants_that_double_do_not_grow_with_each_run() -> None:
    """Each run would make eight times what the run before has left."""
    nodes = [*opposites(14), helper.make_node("ReduceSum", ["t"], ["s"], keepdims=0)]
    module = import_model(model([*nodes, helper.make_node("Add", ["x", "s"], ["y"])], CONSTANT, "y"))
    held: list[int] = []
    for _ in range(4):
        FoldConstantsPass(limit=64, total=4096).apply(new_context(), module)
        held.append(constant_bytes(module))
    assert held[0] > 1024
    assert held == held[:1] * 4
    assert held[0] <= 64 + 4096


def expansions(are_read: bool) -> bytes:
    """The sums of 400 constants that are expanded to 16 KiB each, and multiplied by an input if they are to be read."""
    numbers = range(400)
    nodes: list[onnx.NodeProto] = []
    for number in numbers:
        nodes.append(helper.make_node("Expand", [f"c{number}", "shape"], [f"w{number}"]))
        nodes.append(helper.make_node("Mul", [f"w{number}", "x" if are_read else "two"], [f"m{number}"]))
        nodes.append(helper.make_node("ReduceSum", [f"m{number}"], [f"s{number}"], keepdims=0))
    nodes.append(helper.make_node("Sum", ["x", *(f"s{number}" for number in numbers)], ["y"]))
    weights = {f"c{number}": CONSTANT["c"][:4] + number for number in numbers}
    return model(nodes, weights | {"shape": np.array([1024, 4]), "two": np.full(1, 2, np.float32)}, "y")


def test_constants_are_bounded_by_what_a_model_has() -> None:
    """However many runs of the pass a compilation has, and however many of its constants are no larger than `limit`."""
    module = import_model(expansions(are_read=True))
    before = constant_bytes(module)
    for _ in range(3):
        FoldConstantsPass(total=1 << 20).apply(new_context(), module)
    assert 1 << 19 < constant_bytes(module) - before <= 1 << 20


def test_constants_that_are_used_up_do_not_count() -> None:
    """Each expansion is erased behind its sum, so that the next one has room."""
    module = import_model(expansions(are_read=False))
    before = constant_bytes(module)
    FoldConstantsPass(total=1 << 15).apply(new_context(), module)
    assert constant_bytes(module) < before
    assert not any(op.name == "glow_high.expand" for op in module.walk())


def test_values_that_fix_shapes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [*doublings(6), helper.make_node("ReduceMax", ["t"], ["m"], keepdims=1)]
    nodes += [
        helper.make_node("Cast", ["m"], ["n"], to=TensorProto.INT64),
        helper.make_node("ConstantOfShape", ["n"], ["o"]),
        helper.make_node("ReduceSum", ["o"], ["p"], keepdims=0),
        helper.make_node("Add", ["x", "p"], ["y"]),
    ]
    assert InferenceSession(model(nodes, CONSTANT, "y"), cache=False).get_outputs()[0].shape == [4]
    monkeypatch.setattr(constant_folding, "MAX_FOLDED", 1 << 10)
    with pytest.raises(UnsupportedError, match="takes 2048 bytes, more than 1024"):
        InferenceSession(model(nodes, CONSTANT, "y"), cache=False)


UNROLLED = """
<ir_version: 10, opset_import: ["" : 17]>
unrolled (float[4] x) => (float[m] y) {
  n = Constant <value_int = 8> ()
  go = Constant <value = bool {1}> ()
  y = Loop(n, go, x) <body = outer (int64 i, bool c, float[k] v) => (bool d, float[l] w) {
    d = Identity(c)
    u = Concat <axis = 0> (v, x)
    w = Loop(n, go, u) <body = inner (int64 j, bool e, float[o] r) => (bool f, float[p] s) {
      f = Identity(e)
      s = Concat <axis = 0> (r, x)
    }>
  }>
}
"""


def test_unrolled_loops_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    made = onnx.parser.parse_model(UNROLLED).SerializeToString()
    session = InferenceSession(made, cache=False)
    assert session.run(None, {"x": np.ones(4, np.float32)})[0].shape == (4 + 8 * 9 * 4,)
    monkeypatch.setattr(limits, "MAX_OPERATORS", 50)
    with pytest.raises(UnsupportedError, match="becomes more than 50 operators"):
        InferenceSession(made, cache=False)


def chain(length: int) -> bytes:
    values = [f"v{number}" for number in range(length)]
    nodes = [
        helper.make_node("Add" if number % 2 else "Mul", [one, f"c{number}"], [two])
        for number, (one, two) in enumerate(zip(["x", *values], values, strict=False))
    ]
    random = np.random.default_rng(0)
    weights = {f"c{number}": random.random(4, np.float32) for number in range(length)}
    return model(nodes, weights, values[-1])


def test_a_compilation_ends_when_its_time_is_up() -> None:
    made = chain(300)
    with pytest.raises(TimeLimitError, match=r"compilation took longer than its limit of 0\.01 seconds"):
        InferenceSession(made, cache=False, compile_time_limit=0.01)
    session = InferenceSession(made, cache=False, compile_time_limit=600)
    assert session.run(None, {"x": np.ones(4, np.float32)})[0].shape == (4,)
    with pytest.raises(OptionError, match="compile_time_limit=-1"):
        InferenceSession(made, cache=False, compile_time_limit=-1)


def test_time_of_a_call_counts_what_it_compiles() -> None:
    made = onnx.ModelProto.FromString(chain(300))
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    session = InferenceSession(made.SerializeToString(), cache=False, time_limit=0.01)
    with pytest.raises(TimeLimitError, match="the call took longer"):
        session.run(None, {"x": np.ones(4, np.float32)})


def test_locations_are_merged_without_comparing_all(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [NameLoc(StringAttr(f"node{number}"), UnknownLoc()) for number in range(400)]
    compared: list[object] = []
    equal = NameLoc.__eq__

    def counted(one: NameLoc, other: object) -> bool:
        compared.append(other)
        return equal(one, other)

    monkeypatch.setattr(NameLoc, "__eq__", counted)
    merged: LocationAttr = fuse_locations([*names, *names])
    assert len(location_names(merged)) == len(names)
    assert len(compared) < 10 * len(names)


def test_a_compilation_that_ended_leaves_nothing_in_the_cache() -> None:
    made = chain(301)
    with pytest.raises(TimeLimitError):
        InferenceSession(made, compile_time_limit=0.01)
    session = InferenceSession(made)
    assert session.compile_seconds
    assert session.run(None, {"x": np.ones(4, np.float32)})[0].shape == (4,)
