"""Every method as a scikit-learn classifier: ``rf.Cuma().fit(X, y, sensitive_features=a)``."""

from functools import cache
from inspect import Parameter, Signature, formatannotation, getdoc
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from pydantic import BaseModel
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from robust_fairness.core import registry
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.frames import require_same_rows, sensitive_columns
from robust_fairness.datasets.raw.columns import attribute
from robust_fairness.experiment.experiment import Protocol
from robust_fairness.library.listing import class_names
from robust_fairness.library.training import Trained, train
from robust_fairness.methods.base import GroupMethodParameters
from robust_fairness.samples import REQUIRED_PARTS, Samples
from robust_fairness.training.prediction import Predictor

SPLIT = "split_0"
FEWEST_ROWS = 2
BOUNDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
LARGEST_SEED = 2**31 - 1
COMMON = {"network": "mlp", "random_state": 0, "validation_fraction": 0.2}
OF_PROTOCOL = ("epochs", "batch_size", "learning_rate", "weight_decay", "preprocessing")


class FairClassifier(ClassifierMixin, BaseEstimator):
    """A network or an estimator for tables, trained by a method of this package.

    The constructor takes the hyperparameters of the method, ``epochs``, ``batch_size``,
    ``learning_rate``, ``weight_decay`` and ``preprocessing`` of the training protocol, and:

    - ``network``: name of a network for tables, or of estimators such as ``boosted_trees``;
    - ``random_state``: seed of the initial weights, batches and validation rows;
    - ``validation_fraction``: share of the rows that the training keeps apart.

    Attributes:
        classes_: the classes, sorted, ``[k]``.
        trained_: the trained replica.
    """

    method: ClassVar[str]

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> "FairClassifier":
        """Train on numeric features ``[n, d]`` and classes ``[n]``.

        ``sensitive_features``, one label per row or a frame of several columns, are needed by
        methods that read groups; they are not features.

        Raises:
            InputError: the method needs groups and has none, or arrays do not fit one another.
        """
        parameters = registry.find("method", self.method).Parameters
        if sensitive_features is None and issubclass(parameters, GroupMethodParameters):
            raise InputError(f"method {self.method}: needs sensitive_features")
        features, labels = validate_data(
            self, X, y, dtype="numeric", ensure_min_samples=FEWEST_ROWS
        )
        check_classification_targets(labels)
        attributes = pd.DataFrame(index=range(len(labels)))
        given = {"X": _with_index(X, features), "y": _with_index(y, labels)}
        if sensitive_features is not None:
            given["sensitive_features"] = sensitive_columns(sensitive_features)
            attributes = _attributes(given["sensitive_features"])
        require_same_rows(type(self).__name__, given)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < FEWEST_ROWS:
            raise ValueError(f"y has one class, {self.classes_[0]!r}; a classifier needs two")
        seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
        samples = self._samples(features, codes, attributes, sample_weight, seed)
        settings = {
            name: value for name, value in self.get_params(deep=False).items() if name not in COMMON
        }
        self.trained_: Trained = train(
            samples, self.method, network=self.network, seeds=[seed], **settings
        )
        return self

    def _samples(
        self, x: np.ndarray, codes: np.ndarray, attributes: pd.DataFrame, weights: Any, seed: int
    ) -> Samples:
        if not 0 <= self.validation_fraction < 1:
            raise InputError(
                f"validation_fraction: {self.validation_fraction:g}, allowed: from 0 to below 1"
            )
        rows = len(codes)
        if weights is not None:
            weights = _check_sample_weight(
                weights, x, dtype=np.float64, ensure_non_negative=True, allow_all_zero_weights=False
            )
        order = np.random.default_rng(seed).permutation(rows)
        parts = np.full(rows, "train", dtype=object)
        parts[order[: max(1, round(self.validation_fraction * rows))]] = "val"
        return Samples(
            x=_float32(x),
            y=codes.astype(np.int64),
            attributes=attributes,
            id=np.arange(rows),
            splits=pd.DataFrame({SPLIT: pd.Categorical(parts, list(REQUIRED_PARTS))}),
            classes=tuple(map(str, self.classes_)),
            sensitive=tuple(map(str, attributes)),
            sample_weight=weights,
        )

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of every class, float64 ``[n, k]``."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype="numeric", reset=False)
        rows = len(X)
        samples = Samples(
            x=_float32(X),
            y=np.zeros(rows, dtype=np.int64),
            attributes=pd.DataFrame(index=range(rows)),
            id=np.arange(rows),
            splits=pd.DataFrame(index=range(rows)),
            classes=self.trained_.samples.classes,
        )
        predict = Predictor(self.trained_.fitted, samples, torch.device("cpu"))
        (logits,) = predict(samples)
        return torch.from_numpy(logits).double().softmax(-1).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row ``[n]``."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]


def _with_index(values: Any, checked: np.ndarray) -> Any:
    """What was given if it is of pandas, which has an index, else the checked array."""
    return values if isinstance(values, pd.Series | pd.DataFrame) else checked


def _attributes(frame: pd.DataFrame) -> pd.DataFrame:
    """Sensitive features as groups or numbers, by the rules for columns of own data."""
    columns = {name: attribute(frame[name], f"sensitive_features, {name}") for name in frame}
    return pd.DataFrame(columns).reset_index(drop=True)


def _float32(features: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        converted = features.astype(np.float32)
    if not np.isfinite(converted).all():
        raise InputError("X has values that float32 cannot represent; scale them")
    return converted


def __getattr__(name: str) -> type[FairClassifier]:
    """The class of a method, by which copies in other processes find it."""
    return estimator_class(name)


@cache
def estimator_class(name: str) -> type[FairClassifier]:
    """The classifier of a method, by the name of the class: ``GroupDro`` of ``group_dro``.

    Raises:
        AttributeError: no method has such a class.
    """
    methods = class_names()
    if name not in methods:
        raise AttributeError(str(unknown_name("estimator", name, methods)))
    method = methods[name]
    protocol = {field: Protocol.model_fields[field].default for field in OF_PROTOCOL}
    plugin = registry.find("method", method)
    fields = plugin.Parameters.model_fields
    hparams = {key: field.get_default(call_default_factory=True) for key, field in fields.items()}
    network = {"network": "estimator"} if plugin.estimators == "only" else {}
    defaults = {**COMMON, **network, **protocol, **hparams}

    def initialise(self: FairClassifier, **parameters: Any) -> None:
        for parameter in parameters:
            if parameter not in defaults:
                raise TypeError(str(unknown_name(f"parameter of {name}", parameter, defaults)))
        for parameter, default in defaults.items():
            setattr(self, parameter, parameters.get(parameter, default))

    # scikit-learn reads the parameters of a class from this signature
    keyword = Parameter.KEYWORD_ONLY
    initialise.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
        + [Parameter(key, keyword, default=value) for key, value in defaults.items()]
    )
    parts = [getdoc(plugin), getdoc(FairClassifier), _documented(plugin.Parameters)]
    text = "\n\n".join(filter(None, parts))
    space = {"__init__": initialise, "__doc__": text, "__module__": __name__, "method": method}
    return type(name, (FairClassifier,), space)


def _documented(parameters: type[BaseModel]) -> str:
    """The hyperparameters of a method: types, bounds, defaults and what they mean."""
    lines = [getdoc(parameters) or "", "", "Args:"]
    for name, field in parameters.model_fields.items():
        bounds = [
            f"{sign} {getattr(bound, key)}"
            for bound in field.metadata
            for key, sign in BOUNDS.items()
            if hasattr(bound, key)
        ]
        kind = " ".join([formatannotation(field.annotation), " and ".join(bounds)]).strip()
        default = field.get_default(call_default_factory=True)
        meaning = f" {field.description}." if field.description else ""
        lines.append(f"    {name}:{meaning} {kind}, default {default!r}.")
    return "\n".join(lines) if parameters.model_fields else ""
