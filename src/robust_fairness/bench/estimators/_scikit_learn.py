"""Estimators of scikit-learn and of compatible packages: by name, and stored without pickle."""

import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, signature
from io import BytesIO
from os import environ
from pathlib import PurePath
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np
import pandas as pd
from pydantic import model_validator
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from threadpoolctl import threadpool_limits

from robust_fairness.core.errors import InputError, first_line, unknown_name
from robust_fairness.core.registry import PluginParameters
from robust_fairness.core.scikit_learn import weight_argument

# Packages that estimators are imported from. A name is imported, so that further ones are named by
# the environment only, never by a file of a run.
PACKAGES = ("sklearn", "lightgbm", "xgboost", "robust_fairness")
FURTHER_PACKAGES = "ROBUST_FAIRNESS_ESTIMATORS"
LOGGER = logging.getLogger(__name__)
SCHEMA = "schema.json"  # of an archive of skops
# Types of fitted estimators that skops does not trust of itself.
TRUSTED = frozenset((
    "collections.OrderedDict",
    "functools.partial",  # of a function that has to be trusted itself
    "lightgbm.basic.Booster",
    "lightgbm.sklearn.LGBMClassifier",
    "lightgbm.sklearn.LGBMRegressor",
    "robust_fairness.bench.estimators.k_means.KMeansClassifier",
    "sklearn._loss.loss.HalfTweedieLossIdentity",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels.ConstantKernel",
    "sklearn.gaussian_process.kernels.Product",
    "sklearn.gaussian_process.kernels.RBF",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.tree._tree.Tree",
    "sklearn.utils.validation.check_array",
    "xgboost.core.Booster",
    "xgboost.sklearn.XGBClassifier",
    "xgboost.sklearn.XGBRegressor",
))  # fmt: skip

Rows = np.ndarray | pd.DataFrame  # a table where columns are given as categories
Predict = Callable[[Rows], np.ndarray]


def packages() -> tuple[str, ...]:
    """Packages that estimators may come from."""
    return (*PACKAGES, *environ.get(FURTHER_PACKAGES, "").split())


def package_of(name: str) -> str:
    """The package of a module, class or type by its full name."""
    return name.partition(".")[0]


def estimator_class(name: str) -> type[BaseEstimator]:
    """The class of an estimator, imported from one of the allowed packages.

    Raises:
        InputError: its package is not allowed or not installed, or has no such estimator.
    """
    if package_of(name) not in packages():
        raise InputError(
            f"estimator {name!r}: allowed: an estimator of {', '.join(packages())}, or of the "
            f"packages in {FURTHER_PACKAGES}"
        )
    module, _, class_name = name.rpartition(".")
    try:
        result = getattr(import_module(module), class_name, None)
    except ImportError as error:
        raise InputError(
            f"estimator {name!r}: {first_line(error)}; LightGBM and XGBoost are installed by "
            "robust-fairness[trees]"
        ) from None
    if not (isinstance(result, type) and issubclass(result, BaseEstimator)):
        raise InputError(f"estimator {name!r}: no estimator of scikit-learn's interface")
    return result


def built(name: str, params: Mapping[str, Any]) -> BaseEstimator:
    """An unfitted estimator; ``{estimator: ..., params: ...}`` in ``params`` is one as well.

    A parameter of an inner estimator has scikit-learn's name, such as ``model__max_depth``.
    """
    result = estimator_class(name)
    outer = {key: value for key, value in params.items() if "__" not in key}
    inner = {key: value for key, value in params.items() if "__" in key}
    accepted = signature(result).parameters
    if not any(item.kind == Parameter.VAR_KEYWORD for item in accepted.values()):
        _require_known(name, outer, accepted)
    try:
        estimator = result(**{key: _resolved(value) for key, value in outer.items()})
    except TypeError as error:
        raise InputError(f"estimator {name}: {first_line(error)}") from None
    _require_known(name, inner, estimator.get_params())
    return estimator.set_params(**{key: _resolved(value) for key, value in inner.items()})


def _require_known(name: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for key in given:
        if key not in known:
            raise unknown_name(f"parameter of {name}", key, known)


def _resolved(value: Any) -> Any:
    """A value of configuration with its estimators built, such as the steps of a pipeline."""
    if isinstance(value, Mapping):
        if "estimator" in value and not value.keys() - {"estimator", "params"}:
            return built(str(value["estimator"]), value.get("params") or {})
        return {key: _resolved(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_resolved(item) for item in value]
    return value


class EstimatorParameters(PluginParameters):
    """The class of the estimator by its full name, and the arguments of its constructor.

    Estimators within it, such as the steps of a pipeline, are written likewise:
    ``{estimator: sklearn.preprocessing.StandardScaler, params: {}}``. Trials change
    parameters of the estimator by their own names.

    ``categories``: whether a categorical column is one column of pandas' type ``category``
    instead of an indicator for each category. HistGradientBoosting and LightGBM take them,
    XGBoost with ``enable_categorical``. Needs preprocessing ``standardise`` or ``none``.
    """

    estimator: str = "sklearn.ensemble.HistGradientBoostingClassifier"
    params: dict[str, Any] = {}
    categories: bool = False

    @model_validator(mode="after")
    def _usable(self) -> "EstimatorParameters":
        result = self.built()
        if decides(result) and not hasattr(result, "decision_function"):
            raise InputError(
                f"estimator {self.estimator}: has neither predict_proba nor decision_function"
            )
        if not (is_classifier(result) or is_regressor(result)):
            raise InputError(f"estimator {self.estimator}: allowed: a classifier or a regressor")
        return self

    def built(self) -> BaseEstimator:
        """The unfitted estimator."""
        return built(self.estimator, self.params)

    @property
    def searched(self) -> set[str]:
        return {*super().searched, *self.built().get_params()}

    def changed(self, name: str, value: Any) -> Any:
        if name in type(self).model_fields:
            return super().changed(name, value)
        return super().changed("params", {**self.params, name: value})


@contextmanager
def calling(what: str, threads: int) -> Iterator[None]:
    """Limit threads, log warnings, and say of errors whose they are."""
    with warnings.catch_warnings(record=True) as noted, threadpool_limits(threads):
        warnings.simplefilter("default")
        for category in (DeprecationWarning, FutureWarning):  # for developers of packages
            warnings.simplefilter("ignore", category)
        try:
            yield
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"{what}: {first_line(error)}") from error
    for line in dict.fromkeys(str(item.message) for item in noted):
        LOGGER.warning("%s: %s", what, line)


def prepared(estimator: BaseEstimator, seed: int, threads: int) -> BaseEstimator:
    """The estimator with a seed where ``random_state`` is not given, and that many threads."""
    changes: dict[str, int] = {}
    for key, value in estimator.get_params().items():
        subset = key.rpartition("__")[2]
        if subset == "random_state" and value is None:
            changes[key] = seed
        elif subset == "n_jobs":
            changes[key] = threads
    return estimator.set_params(**changes)


def decides(estimator: BaseEstimator) -> bool:
    """Whether a classifier has decision values instead of probabilities."""
    return is_classifier(estimator) and not hasattr(estimator, "predict_proba")


@dataclass(frozen=True)
class Mixture:
    """Fitted classifiers of two classes, one of which decides on a row at random.

    Attributes:
        members: the fitted classifiers.
        share: probability of each member.
        always: probability that class 1 is decided without any of them.
    """

    members: Sequence[Any]
    share: Sequence[float]
    always: float = 0.0


def prediction_of(model: BaseEstimator | Mixture) -> Predict:
    """Probabilities or decision values ``[n, class]`` of a fitted classifier, or outcomes ``[n]``.

    The decision values of two classes are minus and plus half of the only one.
    """
    if isinstance(model, Mixture):
        members = [prediction_of(member) for member in model.members]
        return mixture_of(members, model.share, model.always)
    if not decides(model):
        return model.predict_proba if is_classifier(model) else model.predict

    def decisions(rows: Rows) -> np.ndarray:
        values = model.decision_function(rows)
        return values if values.ndim > 1 else np.stack([-values, values], axis=1) / 2

    return decisions


class Oracle:
    """An unfitted classifier as reductions fit it: weights have mean 1, ties are class 0."""

    def __init__(self, machine: BaseEstimator, rows: Callable[[np.ndarray], Rows]) -> None:
        self.machine, self.rows = machine, rows

    def fit(self, x: np.ndarray, y: Any, sample_weight: Any) -> "Oracle":
        weight = np.asarray(sample_weight, dtype=np.float64)
        weights = {weight_argument(self.machine): weight / weight.mean()}
        self.machine.fit(self.rows(x), np.asarray(y), **weights)
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        """The likelier class, 0 or 1, ``[n]``."""
        return prediction_of(self.machine)(self.rows(x)).argmax(1)


def with_categories(x: np.ndarray, columns: np.ndarray) -> pd.DataFrame:
    """Features ``[m, d]`` as a table with one column for all features of the same number ``[d]``.

    Several features are the indicators of categories, whatever their scale: the largest one names
    the category.
    """
    result = {}
    for number in range(columns.max() + 1):
        subset = x[:, columns == number]
        is_category = subset.shape[1] > 1
        result[str(number)] = (
            pd.Categorical.from_codes(subset.argmax(1), pd.RangeIndex(subset.shape[1]))
            if is_category
            else subset[:, 0]
        )
    return pd.DataFrame(result)


def mixture_of(members: Sequence[Predict], share: Sequence[float], always: float) -> Predict:
    """Probabilities of the decision ``[n, 2]`` of a ``Mixture``."""

    def predict(rows: Rows) -> np.ndarray:
        positive = np.full(len(rows), always)
        for probability, part in zip(members, share, strict=True):
            positive += part * probability(rows).argmax(1)
        positive = positive.clip(0, 1)
        return np.stack([1 - positive, positive], axis=1)

    return predict


def stored(name: str, estimator: BaseEstimator) -> bytes:
    """The content of a fitted estimator, by its full name: in the format of its package.

    XGBoost has its JSON, LightGBM its text; all others that of skops.
    """
    if package_of(name) == "xgboost":
        return bytes(estimator.get_booster().save_raw("json"))
    if package_of(name) == "lightgbm":
        return estimator.booster_.model_to_string().encode()
    from skops.io import dumps

    return without_addresses(dumps(estimator))


def restored(name: str, content: bytes, unfitted: BaseEstimator) -> Predict:
    """What ``prediction_of`` the fitted estimator returns, from its content."""
    if package_of(name) == "xgboost":
        unfitted.load_model(bytearray(content))
        return prediction_of(unfitted)
    if package_of(name) == "lightgbm":
        return _of_booster(content.decode(), unfitted)
    return prediction_of(_from_skops(content, name))


def _of_booster(text: str, unfitted: BaseEstimator) -> Predict:
    from lightgbm import Booster

    booster: Any = Booster(model_str=text)
    if not is_classifier(unfitted) or booster.num_model_per_iteration() > 1:
        return booster.predict
    return lambda rows: np.stack([1 - (positive := booster.predict(rows)), positive], axis=1)


def _from_skops(content: bytes, name: str) -> BaseEstimator:
    """The estimator in an archive of skops, which creates objects of trusted types only."""
    from skops.io import get_untrusted_types, loads
    from skops.io.exceptions import UntrustedTypesFoundException

    trusted, further = set(TRUSTED), packages()[len(PACKAGES) :]
    if further:
        result = get_untrusted_types(data=content)
        trusted |= {name for name in result if package_of(name) in further}
    try:
        return loads(content, trusted=sorted(trusted))
    except UntrustedTypesFoundException as error:
        raise InputError(f"estimator {name.rpartition('.')[2]}: {error}") from None


def without_addresses(content: bytes) -> bytes:
    """An archive of skops in which equal estimators are equal bytes.

    skops numbers objects and names the files of arrays by addresses in memory, and notes the time.
    Here they are numbered in the order of the schema.
    """
    with ZipFile(BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    numbers: dict[int, int] = {}
    files: dict[str, str] = {}

    def numbered(node: Any) -> Any:
        if isinstance(node, list):
            return [numbered(part) for part in node]
        if not isinstance(node, dict):
            return node
        made: dict[str, Any] = {}
        for key, value in node.items():
            if key == "__id__":
                made[key] = numbers.setdefault(value, len(numbers))
            elif key == "file" and value in members:
                made[key] = files.setdefault(value, f"{len(files)}{PurePath(value).suffix}")
            else:
                made[key] = numbered(value)
        return made

    schema = numbered(json.loads(members.pop(SCHEMA)))
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, new in files.items():
            archive.writestr(ZipInfo(new), members[name])
        archive.writestr(ZipInfo(SCHEMA), json.dumps(schema))
    return buffer.getvalue()
