"""Operators of other shapes, element types and properties compute as machine code what the interpreter does."""

from __future__ import annotations

import pytest
from element_variants import ELEMENTS
from execute import check_all, runnable_targets
from image_variants import IMAGES
from product_variants import PRODUCTS

FAMILIES = {**ELEMENTS, **IMAGES, **PRODUCTS}
EACH = pytest.mark.parametrize("name", FAMILIES)


@EACH
def test_variants(name: str) -> None:
    check_all([*FAMILIES[name].cases()], tolerance=FAMILIES[name].tolerance)


@pytest.mark.long
@EACH
@pytest.mark.parametrize("target", runnable_targets())
def test_variants_on_targets(name: str, target: str) -> None:
    check_all([*FAMILIES[name].cases()], target, FAMILIES[name].tolerance)
