"""Fitted pipelines of scikit-learn, XGBoost, LightGBM and CatBoost answer as their libraries do."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from fitted_pipelines import (
    Fitted,
    boosted,
    classifiers,
    diabetes,
    fitted,
    iris,
    kinds_as_strings,
    names,
    of_strings,
    regressors,
)

from glow_mlir import InferenceSession

pytestmark = [
    pytest.mark.extra,
    # Some files declare other shapes of outputs than their nodes give.
    pytest.mark.filterwarnings("ignore::glow_mlir.errors.GlowWarning"),
]

TOLERANCE = 1e-5

WITHOUT_PROBABILITIES = {"linear support vectors", "ridge classifier", "perceptron"}
"""Classifiers that skl2onnx writes without maps, whatever is said of these."""


WRITTEN_WRONGLY = {"linear discriminant analysis"}
"""Classifiers whose files say other probabilities of two classes than scikit-learn does, in onnxruntime as well."""


@pytest.fixture(autouse=True)
def _libraries() -> None:
    for package in ("sklearn", "skl2onnx"):
        pytest.importorskip(package)


def assert_answers(found: Fitted, is_mapped: bool | None = None) -> None:
    """Fail where a model gives other labels than its library, or scores beyond the tolerance."""
    session = InferenceSession(found.model, cache=False)
    results = cast("list[Any]", session.run(None, dict(found.given)))
    if found.labels is not None:
        np.testing.assert_array_equal(np.asarray(results[0]).ravel(), found.labels)
        assert np.asarray(results[0]).dtype.kind == ("O" if found.labels.dtype.kind in "OU" else "i")
    if found.scores is None:
        return
    scores = results[-1]
    if is_mapped is not None:
        assert isinstance(scores, list) == is_mapped
    if isinstance(scores, list):
        assert session.get_outputs()[1].type.startswith("seq(map(")
        scores = np.array([list(cast("dict[Any, float]", row).values()) for row in cast("list[Any]", scores)])
    scale = max(1.0, float(np.abs(found.scores).max()))
    wanted = found.scores.reshape(scores.shape)
    np.testing.assert_allclose(scores, wanted, atol=TOLERANCE * scale, rtol=TOLERANCE)


@pytest.mark.parametrize("zipmap", [True, False])
@pytest.mark.parametrize("name", names([classifiers]))
def test_classifier(name: str, zipmap: bool) -> None:
    if name in WITHOUT_PROBABILITIES and not zipmap:
        pytest.skip("there are no maps to leave out")
    rows, _ = iris()
    found = fitted(classifiers()[name](), rows, kinds_as_strings(), None if zipmap else False)
    assert_answers(found, None if name in WITHOUT_PROBABILITIES else zipmap)


@pytest.mark.parametrize("name", [name for name in names([classifiers]) if name not in WRITTEN_WRONGLY])
def test_classifier_of_two_classes(name: str) -> None:
    rows, kinds = iris()
    assert_answers(fitted(classifiers()[name](), rows, (kinds == 1).astype(int)))


@pytest.mark.parametrize("name", names([regressors]))
def test_regressor(name: str) -> None:
    rows, numbers = diabetes()
    assert_answers(fitted(regressors()[name](), rows, numbers))


@pytest.mark.parametrize("zipmap", [True, False])
@pytest.mark.parametrize("name", names([of_strings]))
def test_strings(name: str, zipmap: bool) -> None:
    make, rows = of_strings()[name]
    assert_answers(fitted(make(), rows, kinds_as_strings(), None if zipmap else False), zipmap)


@pytest.mark.parametrize("name", names([boosted]))
def test_boosted(name: str) -> None:
    assert_answers(boosted()[name]())
