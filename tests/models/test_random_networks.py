"""Random networks of common blocks: the same numbers on every stage and as machine code, samples for themselves."""

from __future__ import annotations

import pytest
from network_cases import check_network


@pytest.mark.parametrize("seed", range(40))
def test_network(seed: int) -> None:
    check_network(seed)
