"""
Pipelines of scikit-learn, XGBoost, LightGBM and CatBoost, fitted to small data and written as ONNX models.

Each is a function that gives the model, what is given to it, and what the library itself answers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx

from glow_mlir.support.dataclass import dataclass

# The libraries have no annotations that say what these calls give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingImports=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false, reportUnknownParameterType=false

ROWS = 37
"""How many rows models are asked about."""


@dataclass(frozen=True)
class Fitted:
    """A fitted model as ONNX, rows, and what its library says of these."""

    model: onnx.ModelProto
    given: Mapping[str, np.ndarray]
    labels: np.ndarray | None
    """The classes; `None` where there are none."""
    scores: np.ndarray | None
    """Probabilities, or the predicted numbers."""


@cache
def iris() -> tuple[np.ndarray, np.ndarray]:
    """Four features of 150 flowers, and which of three kinds each is."""
    from sklearn.datasets import load_iris

    rows, kinds = cast("Any", load_iris)(return_X_y=True)
    return rows.astype(np.float32), kinds


@cache
def diabetes() -> tuple[np.ndarray, np.ndarray]:
    """Ten features of 442 people, and a number that is to be predicted."""
    from sklearn.datasets import load_diabetes

    rows, numbers = cast("Any", load_diabetes)(return_X_y=True)
    return rows.astype(np.float32), numbers


def kinds_as_strings() -> np.ndarray:
    """The kinds of flowers by their names."""
    return np.array(["setosa", "versicolor", "virginica"])[iris()[1]]


@cache
def categories() -> np.ndarray:
    """Two columns of strings for the flowers."""
    rng = np.random.default_rng(0)
    colors = np.array(["red", "green", "blue", "dark red"], object)
    return np.stack([rng.choice(colors, 150), rng.choice(np.array(["s", "m", "l"], object), 150)], axis=1)


@cache
def texts() -> np.ndarray:
    """A few words for each flower."""
    rng = np.random.default_rng(1)
    words = ["cat", "dog", "Fish", "bird", "the", "an"]
    found = np.empty(150, object)
    found[:] = [" ".join(rng.choice(words, rng.integers(1, 9))) for _ in range(150)]
    return found


def _converted(model: Any, rows: np.ndarray, zipmap: bool | None) -> onnx.ModelProto:
    """A fitted model of scikit-learn, or one that is registered with it, as ONNX."""
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    kind = StringTensorType if rows.dtype == object else FloatTensorType
    shape = [None, *rows.shape[1:]]
    options = None if zipmap is None else {id(model): {"zipmap": zipmap}}
    opsets = {"": 21, "ai.onnx.ml": 3}
    return cast("Any", to_onnx)(model, initial_types=[("X", kind(shape))], options=options, target_opset=opsets)


def fitted(model: Any, rows: np.ndarray, wanted: np.ndarray | None, zipmap: bool | None = None) -> Fitted:
    """A model, fitted, with what its library says of the first rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows) if wanted is None else model.fit(rows, wanted)
        proto = _converted(model, rows, zipmap)
        asked = rows[:ROWS]
        is_classifier = hasattr(model, "classes_")
        labels = model.predict(asked) if is_classifier else None
        if is_classifier:
            scores = model.predict_proba(asked) if hasattr(model, "predict_proba") else None
        else:
            scores = model.predict(asked) if hasattr(model, "predict") else None
    return Fitted(proto, {"X": asked}, labels, None if scores is None else np.asarray(scores))


def classifiers() -> dict[str, Callable[[], Any]]:
    """Classifiers of rows of floats."""
    from sklearn import (
        calibration,
        discriminant_analysis,
        ensemble,
        linear_model,
        multiclass,
        naive_bayes,
        neighbors,
        neural_network,
        svm,
        tree,
    )
    from sklearn.pipeline import make_pipeline

    logistic = partial(linear_model.LogisticRegression, max_iter=500)
    return {
        "logistic regression": logistic,
        "linear discriminant analysis": discriminant_analysis.LinearDiscriminantAnalysis,
        "quadratic discriminant analysis": discriminant_analysis.QuadraticDiscriminantAnalysis,
        "Gaussian naive Bayes": naive_bayes.GaussianNB,
        "multinomial naive Bayes": naive_bayes.MultinomialNB,
        "Bernoulli naive Bayes": naive_bayes.BernoulliNB,
        "complement naive Bayes": naive_bayes.ComplementNB,
        "decision tree": lambda: tree.DecisionTreeClassifier(random_state=0),
        "random forest": lambda: ensemble.RandomForestClassifier(20, random_state=0),
        "extra trees": lambda: ensemble.ExtraTreesClassifier(20, random_state=0),
        "gradient boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=10, random_state=0),
        "AdaBoost": lambda: ensemble.AdaBoostClassifier(n_estimators=10, random_state=0),
        "bagging": lambda: ensemble.BaggingClassifier(random_state=0),
        "stacking": lambda: ensemble.StackingClassifier(
            [("a", logistic()), ("b", tree.DecisionTreeClassifier(max_depth=2, random_state=0))]
        ),
        "nearest neighbors": lambda: neighbors.KNeighborsClassifier(3),
        "support vectors": svm.SVC,
        "support vectors of a polynomial": lambda: svm.SVC(kernel="poly"),
        "nu support vectors": svm.NuSVC,
        "linear support vectors": svm.LinearSVC,
        "perceptron of layers": lambda: neural_network.MLPClassifier((20,), max_iter=50, random_state=0),
        "stochastic gradient descent": lambda: linear_model.SGDClassifier(loss="log_loss", random_state=0),
        "perceptron": linear_model.Perceptron,
        "ridge classifier": linear_model.RidgeClassifier,
        "one against the rest": lambda: multiclass.OneVsRestClassifier(logistic()),
        "calibrated": lambda: calibration.CalibratedClassifierCV(logistic()),
        **{name: partial(_chained, make_pipeline, make, logistic) for name, make in _preparations().items()},
    }


def _preparations() -> dict[str, Callable[[], Any]]:
    """What prepares features for a classifier behind it."""
    from sklearn import decomposition, feature_selection, preprocessing
    from sklearn.pipeline import make_union

    return {
        "standard scaler": preprocessing.StandardScaler,
        "normalizer": lambda: preprocessing.Normalizer("l1"),
        "binarizer": lambda: preprocessing.Binarizer(threshold=2.0),
        "power transformer": preprocessing.PowerTransformer,
        "quantile transformer": lambda: preprocessing.QuantileTransformer(n_quantiles=20),
        "bins": lambda: preprocessing.KBinsDiscretizer(
            4, encode="onehot-dense", quantile_method="averaged_inverted_cdf"
        ),
        "PCA": lambda: decomposition.PCA(2),
        "truncated SVD": lambda: decomposition.TruncatedSVD(2),
        "best features": lambda: feature_selection.SelectKBest(k=2),
        "union": lambda: make_union(decomposition.PCA(2), preprocessing.StandardScaler()),
    }


def _chained(make_pipeline: Callable[..., Any], first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    return make_pipeline(first(), second())


def regressors() -> dict[str, Callable[[], Any]]:
    """Regressors of rows of floats."""
    from sklearn import ensemble, linear_model, neighbors, preprocessing, svm, tree
    from sklearn.pipeline import make_pipeline

    return {
        "linear regression": linear_model.LinearRegression,
        "ridge": linear_model.Ridge,
        "lasso": lambda: linear_model.Lasso(alpha=0.01),
        "elastic net": lambda: linear_model.ElasticNet(alpha=0.01),
        "Poisson": lambda: linear_model.PoissonRegressor(max_iter=300),
        "support vector regression": svm.SVR,
        "random forest of numbers": lambda: ensemble.RandomForestRegressor(20, random_state=0),
        "gradient boosting of numbers": lambda: ensemble.GradientBoostingRegressor(n_estimators=20, random_state=0),
        "extra trees of numbers": lambda: ensemble.ExtraTreesRegressor(10, random_state=0),
        "AdaBoost of numbers": lambda: ensemble.AdaBoostRegressor(n_estimators=5, random_state=0),
        "nearest neighbors of numbers": lambda: neighbors.KNeighborsRegressor(3),
        "decision tree of numbers": lambda: tree.DecisionTreeRegressor(max_depth=5, random_state=0),
        "scalers": lambda: make_pipeline(
            preprocessing.MinMaxScaler(),
            preprocessing.MaxAbsScaler(),
            preprocessing.RobustScaler(),
            linear_model.Ridge(),
        ),
        "polynomial features": lambda: make_pipeline(preprocessing.PolynomialFeatures(2), linear_model.Ridge()),
    }


def of_strings() -> dict[str, tuple[Callable[[], Any], np.ndarray]]:
    """Classifiers of columns of strings, and of texts."""
    from sklearn import ensemble, feature_extraction, linear_model, naive_bayes, preprocessing
    from sklearn.pipeline import make_pipeline

    text = feature_extraction.text
    return {
        "one-hot strings": (
            lambda: make_pipeline(
                preprocessing.OneHotEncoder(handle_unknown="ignore"), linear_model.LogisticRegression()
            ),
            categories(),
        ),
        "ordinal strings": (
            lambda: make_pipeline(
                preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
                ensemble.RandomForestClassifier(5, random_state=0),
            ),
            categories(),
        ),
        "tf-idf": (lambda: make_pipeline(text.TfidfVectorizer(), linear_model.LogisticRegression()), texts()),
        "pairs of words": (
            lambda: make_pipeline(text.CountVectorizer(ngram_range=(1, 2)), naive_bayes.MultinomialNB()),
            texts(),
        ),
        "letters": (
            lambda: make_pipeline(text.CountVectorizer(analyzer="char"), linear_model.LogisticRegression()),
            texts(),
        ),
    }


def boosted() -> dict[str, Callable[[], Fitted]]:
    """Ensembles of libraries that boost trees."""
    import lightgbm
    import xgboost

    _register()
    rows, kinds = iris()
    two, (people, numbers) = (kinds == 1).astype(int), diabetes()
    tree = {"n_estimators": 10, "max_depth": 3}
    light: dict[str, Any] = {"n_estimators": 10, "verbose": -1}
    return {
        "XGBoost": lambda: fitted(xgboost.XGBClassifier(**tree), rows, kinds),
        "XGBoost of two classes": lambda: fitted(xgboost.XGBClassifier(**tree), rows, two, False),
        "XGBoost of numbers": lambda: fitted(xgboost.XGBRegressor(**tree), people, numbers),
        "LightGBM": lambda: fitted(lightgbm.LGBMClassifier(**light), rows, kinds),
        "LightGBM of two classes": lambda: fitted(lightgbm.LGBMClassifier(**light), rows, two, False),
        "LightGBM of numbers": lambda: fitted(lightgbm.LGBMRegressor(**light), people, numbers),
        "LightGBM of strings": lambda: fitted(lightgbm.LGBMClassifier(**light), rows, kinds_as_strings()),
        "CatBoost": lambda: _catboost("CatBoostClassifier", rows, kinds),
        "CatBoost of two classes": lambda: _catboost("CatBoostClassifier", rows, two),
        "CatBoost of strings": lambda: _catboost("CatBoostClassifier", rows, kinds_as_strings()),
        "CatBoost of numbers": lambda: _catboost("CatBoostRegressor", people, numbers),
    }


@cache
def _register() -> None:
    """Tell skl2onnx how models of other libraries are written."""
    import lightgbm
    import xgboost
    from onnxmltools.convert.lightgbm.operator_converters.LightGbm import convert_lightgbm
    from onnxmltools.convert.xgboost.operator_converters.XGBoost import convert_xgboost
    from skl2onnx import update_registered_converter
    from skl2onnx.common.shape_calculator import (
        calculate_linear_classifier_output_shapes as of_classes,
    )
    from skl2onnx.common.shape_calculator import (
        calculate_linear_regressor_output_shapes as of_numbers,
    )

    options = {"nocl": [True, False], "zipmap": [True, False, "columns"]}
    for model, alias, shapes, convert in (
        (xgboost.XGBClassifier, "XGBoostClassifier", of_classes, convert_xgboost),
        (xgboost.XGBRegressor, "XGBoostRegressor", of_numbers, convert_xgboost),
        (lightgbm.LGBMClassifier, "LightGbmClassifier", of_classes, convert_lightgbm),
        (lightgbm.LGBMRegressor, "LightGbmRegressor", of_numbers, convert_lightgbm),
    ):
        update_registered_converter(model, alias, shapes, convert, options=options if shapes is of_classes else None)


def _catboost(kind: str, rows: np.ndarray, wanted: np.ndarray) -> Fitted:
    """A model of CatBoost, which writes ONNX itself."""
    import tempfile

    import catboost

    with tempfile.TemporaryDirectory() as folder:
        model = getattr(catboost, kind)(iterations=10, verbose=0, train_dir=folder, random_seed=0)
        model.fit(rows, wanted)
        path = Path(folder, "model.onnx")
        model.save_model(str(path), format="onnx")
        proto = onnx.load(path)
    asked = rows[:ROWS]
    labels = model.predict(asked).ravel() if kind.endswith("Classifier") else None
    scores = model.predict(asked) if labels is None else model.predict_proba(asked)
    return Fitted(proto, {proto.graph.input[0].name: asked}, labels, scores)


def names(groups: Sequence[Callable[[], Mapping[str, Any]]]) -> list[str]:
    """The names of what some groups have; nothing of a library that is not there."""
    found: list[str] = []
    for group in groups:
        try:
            found += list(group())
        except ImportError:
            continue
    return found
