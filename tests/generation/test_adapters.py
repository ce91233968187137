"""Requests with adapters of their own, beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adapter_files import random_pairs, write_peft
from small_generators import small_generator

from glow_mlir.errors import OptionError

pytestmark = pytest.mark.extra


def test_each_request_has_its_adapter(tmp_path: Path) -> None:
    for package in ("tokenizers", "jinja2"):
        pytest.importorskip(package)
    shapes = {f"model.layers.{layer}.self_attn.{name}_proj": (256, 256) for layer in range(2) for name in "qo"}
    folders = {str(seed): write_peft(tmp_path / str(seed), random_pairs(shapes, seed)) for seed in range(2)}
    generator, plain = small_generator(tmp_path, adapters=folders), small_generator(tmp_path)
    options: dict[str, Any] = {"max_tokens": 20, "temperature": 0, "ignore_end": True}
    prompt = "hello " * 40
    base = plain.generate(prompt, **options)
    alone = [generator.generate(prompt, adapter=name, salt="alone", **options) for name in (None, "0", "1")]
    assert len({tuple(each.tokens) for each in alone}) == 3
    assert alone[0].tokens == base.tokens
    running = [generator.stream(prompt, adapter=name, **options) for name in ("1", None, "0", "1")]
    together = [each.completion for each in running]
    assert [each.tokens for each in together] == [alone[number].tokens for number in (2, 0, 1, 2)]
    assert together[2].reused_tokens == 0
    sequences = [generator.sequence(adapter=name) for name in (None, "0", "1")]
    found = generator.append({each: generator.tokens_of("hello") for each in sequences})
    fresh = plain.sequence()
    np.testing.assert_array_equal(found[sequences[0]], fresh.append(plain.tokens_of("hello")))
    with generator.sequence(adapter="1") as sequence:
        np.testing.assert_array_equal(found[sequences[2]], sequence.append(generator.tokens_of("hello")))
    with pytest.raises(OptionError, match="there is no adapter 'other'") as error:
        generator.generate("hello", adapter="other")
    assert error.value.hint == "adapters are 0, 1"
