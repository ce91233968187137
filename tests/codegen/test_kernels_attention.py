"""The kernel of attention, against the interpreter."""

from __future__ import annotations

from breadth import examples
from execute import check_all, runnable_targets, sample
from hypothesis import given, settings
from hypothesis import strategies as st
from product_variants import attention


@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_any_attention(data: st.DataObject):
    queries, keys = (data.draw(st.sampled_from([1, 2, 5, 16, 33, 66])) for _ in range(2))
    depth, width = (data.draw(st.sampled_from([1, 3, 8, 17, 32, 80])) for _ in range(2))
    rows, columns = (data.draw(st.sampled_from([1, size])) for size in (queries, keys))
    mask = [sample((rows, columns))] if data.draw(st.booleans()) else []
    target, scale = data.draw(st.sampled_from(runnable_targets())), data.draw(st.sampled_from([1.0, 0.125]))
    causal = data.draw(st.booleans())
    past = data.draw(st.integers(0, 40)) if causal else 0
    made = attention((queries, keys, depth, width), *mask, scale=scale, causal=causal, past=past)
    check_all([made], target)
