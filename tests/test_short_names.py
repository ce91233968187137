"""Short names are ends of the long ones, in whole parts, and no two are alike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from glow_mlir.support.short_names import OMITTED, WIDTH, short_names

NAMES = st.lists(st.lists(st.sampled_from(["a", "b", "layer.0", "attention" * 3, ""]), min_size=1).map("/".join))


def test_prefix_of_all_is_left_out() -> None:
    assert short_names(["/model/conv1/Conv", "/model/conv2/Conv", "/model/fc/Gemm"]) == {
        "/model/conv1/Conv": "conv1/Conv",
        "/model/conv2/Conv": "conv2/Conv",
        "/model/fc/Gemm": "fc/Gemm",
    }
    assert short_names(["net.body.0.conv", "net.head.conv"]) == {
        "net.body.0.conv": "body.0.conv",
        "net.head.conv": "head.conv",
    }


def test_long_names_keep_what_tells_them_apart() -> None:
    names = [f"/bert/encoder/layer.{layer}/attention/self/query/MatMul" for layer in range(2)]
    found = short_names([*names, "/bert/pooler/dense/an_activation/Tanh"])
    assert list(found.values()) == [
        "layer.0/…/self/query/MatMul",
        "layer.1/…/self/query/MatMul",
        "dense/an_activation/Tanh",
    ]
    parts = ("query", "key")
    names = [f"/bert/layer.{layer}/{part}/an_attention/MatMul_of_all_heads" for layer in range(2) for part in parts]
    assert short_names(names) == {name: name.removeprefix("/bert/") for name in names}


def test_plain_names_stay() -> None:
    for names in ([], ["conv1"], ["/model/conv1/Conv"], ["conv1", "conv1_relu", ""], ["x" * 100, "y"]):
        assert short_names(names) == {name: name for name in names}
    assert short_names(["a/x", "x"]) == {"a/x": "a/x", "x": "x"}


@given(NAMES)
def test_no_two_are_alike(names: list[str]) -> None:
    found = short_names(names)
    assert set(found) == set(names)
    assert len(set(found.values())) == len(found)
    for name, short in found.items():
        begin, _, end = short.partition(f"/{OMITTED}")
        assert f"/{name}".endswith(f"/{short}") or (name.endswith(end) and f"/{begin}/" in f"/{name}")
        assert len(short) <= max(WIDTH, len(name))
