"""Every method as a scikit-learn classifier: ``rf.Cuma().fit(X, y, sensitive_features=a)``."""

import warnings
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
from robust_fairness.experiment.plugins import Named
from robust_fairness.library.listing import class_names
from robust_fairness.library.training import Trained, network_of, train
from robust_fairness.samples import OOD_PARTS, REQUIRED_PARTS, Samples
from robust_fairness.training.prediction import Predictor

SPLIT = "split_0"
DOMAIN = "domain"
ARGUMENTS = {
    "groups": "sensitive_features",
    "domains": "domains, one label per row",
    "target rows": "X_target, features of the rows that it adapts to",
}
FEWEST_ROWS = 2
BOUNDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
LARGEST_SEED = 2**31 - 1
COMMON = {"network": None, "random_state": 0, "validation_fraction": 0.2}
OF_PROTOCOL = ("epochs", "batch_size", "learning_rate", "weight_decay", "preprocessing")


class FairClassifier(ClassifierMixin, BaseEstimator):
    """A network or an estimator for tables, trained by a method of this package.

    The constructor takes the hyperparameters of the method, ``epochs``, ``batch_size``,
    ``learning_rate``, ``weight_decay`` and ``preprocessing``, and:

    - ``network``: name of a network for tables, or of estimators such as ``boosted_trees``, or a
      name with parameters: ``{"name": "mlp", "hidden": 64}``;
    - ``random_state``: seed of the initial weights, batches and validation rows;
    - ``validation_fraction``: share of the rows that the training keeps apart.

    What is None has the default of its part: of the estimator where it has a parameter of that
    name, such as the learning rate of boosted trees, else of the training protocol.

    Attributes:
        classes_: the classes, sorted, ``[k]``.
        trained_: the trained replica.
    """

    method: ClassVar[str]

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        domains: Any = None,
        X_target: Any = None,
    ) -> "FairClassifier":
        """Train on numeric features ``[n, d]`` and classes ``[n]``.

        Args:
            X: features; NaN where the network takes missing values, as boosted trees do.
            y: classes.
            sensitive_features: one label per row or a frame of several columns, for methods that
                read groups; they are no features.
            sample_weight: weights of the rows ``[n]``, for methods whose loss has them.
            domains: one label per row, for methods that read domains, such as hospitals.
            X_target: features of rows of another distribution without labels ``[m, d]``, for
                methods that read their inputs.

        Raises:
            InputError: the method needs an argument that is missing, or arrays do not fit one
                another.
        """
        parameters = self._parameters()
        needed = {
            "groups": sensitive_features is not None, "domains": domains is not None,
            "target rows": X_target is not None,
        }  # fmt: skip
        for information in parameters.sees:
            if not needed.get(information, True):
                raise InputError(f"method {self.method}: needs {ARGUMENTS[information]}")
        missing: Any = "allow-nan" if self._takes_missing() else True
        features, labels = validate_data(
            self, X, y, dtype="numeric", ensure_min_samples=FEWEST_ROWS,
            ensure_all_finite=missing,
        )  # fmt: skip
        check_classification_targets(labels)
        attributes = pd.DataFrame(index=range(len(labels)))
        given = {"X": _with_index(X, features), "y": _with_index(y, labels)}
        if sensitive_features is not None:
            given["sensitive_features"] = sensitive_columns(sensitive_features)
            attributes = _attributes(given["sensitive_features"])
        if domains is not None:
            given["domains"] = pd.DataFrame({DOMAIN: np.asarray(domains)})
            attributes[DOMAIN] = pd.Categorical(np.asarray(domains).astype(str))
        require_same_rows(type(self).__name__, given)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < FEWEST_ROWS:
            raise ValueError(f"y has one class, {self.classes_[0]!r}; a classifier needs two")
        seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
        target = None
        if X_target is not None:
            target = validate_data(
                self, X_target, dtype="numeric", reset=False, ensure_all_finite=missing
            )
        samples = self._samples(features, codes, attributes, sample_weight, seed, target)
        parameters = self.get_params(deep=False).items()
        settings = {
            name: value
            for name, value in parameters
            if name not in COMMON and not (name in OF_PROTOCOL and value is None)
        }
        self.trained_: Trained = train(
            samples, self.method, network=self.network, seeds=[seed], **settings
        )
        decided = self.predict(X)
        if len(np.unique(decided)) < FEWEST_ROWS:
            warnings.warn(
                f"{type(self).__name__} predicts {decided[0]!r} for every row: its gaps are 0 "
                "because it has learned nothing",
                UserWarning,
                stacklevel=2,
            )
        return self

    def _parameters(self) -> Any:
        """The hyperparameters of the method."""
        parameters = registry.find("method", self.method).Parameters
        values = {name: getattr(self, name) for name in parameters.model_fields}
        return parameters.model_validate(values)

    def _takes_missing(self) -> bool:
        network = Named.model_validate({"kind": "network", **network_of(self.network)})
        return bool(registry.find("network", network.name).takes_missing(network.parameters))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not registry.find("method", self.method).binary
        tags.input_tags.allow_nan = self._takes_missing()
        return tags

    def _samples(
        self,
        x: np.ndarray,
        codes: np.ndarray,
        attributes: pd.DataFrame,
        weights: Any,
        seed: int,
        target: np.ndarray | None,
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
        if target is not None:  # rows without labels, of which methods read the inputs
            x, more = np.concatenate([x, target]), len(target)
            codes = np.append(codes, np.zeros(more, codes.dtype))
            parts = np.append(parts, np.full(more, OOD_PARTS[-1], dtype=object))
            attributes = attributes.reindex(range(rows + more))
            weights = None if weights is None else np.append(weights, np.ones(more))
        return Samples(
            x=_float32(x),
            y=codes.astype(np.int64),
            attributes=attributes,
            id=np.arange(len(codes)),
            splits=pd.DataFrame({SPLIT: pd.Categorical(parts, [*REQUIRED_PARTS, *OOD_PARTS])}),
            classes=tuple(map(str, self.classes_)),
            sensitive=tuple(str(name) for name in attributes if name != DOMAIN),
            domain=DOMAIN if DOMAIN in attributes else "",
            sample_weight=weights,
        )

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of every class, float64 ``[n, k]``."""
        check_is_fitted(self)
        missing: Any = "allow-nan" if self._takes_missing() else True
        X = validate_data(self, X, dtype="numeric", reset=False, ensure_all_finite=missing)
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
    if np.isinf(converted).any():
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
    protocol = dict.fromkeys(OF_PROTOCOL)  # None: the default of the part that has the field
    plugin = registry.find("method", method)
    fields = plugin.Parameters.model_fields
    hparams = {key: field.get_default(call_default_factory=True) for key, field in fields.items()}
    defaults = {**COMMON, "network": plugin.table_network, **protocol, **hparams}

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
