"""Every method as a scikit-learn classifier: ``rf.Cuma().fit(X, y, sensitive_features=a)``."""

import warnings
from dataclasses import replace
from functools import cache
from inspect import Parameter, Signature, formatannotation, getdoc, signature
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import BaseModel
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from robust_fairness.auditing.read.columns import attribute
from robust_fairness.bench import one_call
from robust_fairness.bench.estimators import EstimatorParameters
from robust_fairness.bench.experiment.plugins import Named, validated
from robust_fairness.bench.listing import class_names
from robust_fairness.bench.methods._parameters import Declaration, ErmDeclaration, Information
from robust_fairness.bench.methods._reductions import (
    ExponentiatedGradientDeclaration,
    GridSearchDeclaration,
    ReductionParameters,
)
from robust_fairness.bench.networks import network_of
from robust_fairness.core import registry
from robust_fairness.core.arrays import as_rows, as_weights, require_same_rows, require_unmasked
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.frames import dense, is_indexed, naming_text, rows_of, sensitive_columns
from robust_fairness.core.numbers import CONSTANT
from robust_fairness.core.samples import REQUIRED_PARTS, Samples

SPLIT, DOMAIN = "split_0", "domain"
OUTSIDE = "ood_test"
FEWEST_ROWS = 2
BOUNDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
FAR = 1_000  # times its range, a feature is from 0 where float32 keeps four digits of the range
LARGEST_SEED = 2**31 - 1
COMMON = {"network": None, "random_state": 0, "validation_fraction": 0.2}
OF_PROTOCOL = ("epochs", "batch_size", "learning_rate", "weight_decay", "preprocessing")
# Methods that may fit estimators without torch.
DECLARED: dict[str, type[Declaration]] = {
    "erm": ErmDeclaration,
    "exponentiated_gradient": ExponentiatedGradientDeclaration,
    "grid_search": GridSearchDeclaration,
}
# Arguments of ``fit`` by what a method reads besides features and labels.
READ: dict[Information, tuple[str, str]] = {
    "groups": ("sensitive_features", "one label per row or a frame of several columns"),
    "domains": ("domain", "one label per row, such as a hospital or a year"),
    "target rows": ("X_target", "features of rows out of distribution, without labels"),
}


class FairClassifier(ClassifierMixin, BaseEstimator):
    """A network or an estimator for tables, trained by a method of this package.

    The constructor takes the hyperparameters of the method and:

    - ``network``: name of a network for tables, or of estimators such as ``boosted_trees``, or a
      name with its fields: ``{"name": "boosted_trees", "params": {"learning_rate": 0.05}}``; None
      for that of the method;
    - ``epochs``, ``batch_size``, ``learning_rate``, ``weight_decay`` and ``preprocessing``: of the
      training protocol; None for its default. One call fits an estimator: a name that it shares
      with the protocol, such as ``learning_rate``, is then its own parameter, with its own default;
    - ``random_state``: seed of the initial weights, batches and validation rows;
    - ``validation_fraction``: share of the rows that the training keeps apart.

    Attributes:
        classes_: the classes, sorted, ``[k]``.
        origin_: what is subtracted from the features ``[d]``, which are then float32: 0, or of
            features that are far from 0 for their range, such as seconds since 1970, the smallest.
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
        domain: Any = None,
        X_target: Any = None,
    ) -> "FairClassifier":
        """Train on numeric features ``[n, d]`` and classes ``[n]``.

        Warns if nearly all of these rows are predicted as one class.

        Args:
            X: features; missing ones (NaN) where the network is an estimator that takes them.
            y: classes.
            sensitive_features: one label per row, or a frame of several columns, for methods that
                read groups; they are not features.
            sample_weight: weights of the rows in the loss ``[n]``.
            domain: one label per row, for methods that read domains.
            X_target: features ``[m, d]`` of rows out of distribution, for methods that read them.

        Raises:
            InputError: the method needs an argument that is missing, or arrays do not fit one
                another.
        """
        plugin = declared(self.method)
        settings = self.get_params(deep=False)
        options = {name: settings[name] for name in plugin.Parameters.model_fields}
        given = {
            "sensitive_features": sensitive_features,
            "domain": domain,
            "X_target": X_target,
        }
        hparams = validated("method", self.method, plugin.Parameters, options)
        for information in hparams.sees:
            argument, meaning = READ[information]
            if given[argument] is None:
                raise InputError(f"method {self.method}: needs {argument} in fit: {meaning}")
        require_unmasked(
            type(self).__name__, {**given, "X": X, "y": y, "sample_weight": sample_weight}
        )
        with naming_text(type(self).__name__, X):
            features, labels = validate_data(
                self,
                dense(X),
                y,
                dtype="numeric",
                ensure_min_samples=FEWEST_ROWS,
                ensure_all_finite="allow-nan" if self._takes_missing() else True,
            )
        check_classification_targets(labels)
        self.origin_ = origin(features)
        arrays = {"X": X if is_indexed(X) else features, "y": y if is_indexed(y) else labels}
        attributes = pd.DataFrame(index=range(len(labels)))
        if sample_weight is not None:
            sample_weight = as_rows(sample_weight)
            arrays["sample_weight"] = sample_weight
        if sensitive_features is not None:
            frame = sensitive_columns(sensitive_features)
            arrays["sensitive_features"] = rows_of(sensitive_features, frame)
            attributes = _attributes(frame)
        sensitive = tuple(map(str, attributes))
        if domain is not None:
            arrays["domain"] = as_rows(domain)
            if DOMAIN in attributes:
                raise InputError(f"sensitive_features: column {DOMAIN}, allowed: another name")
            values = pd.Series(arrays["domain"]).reset_index(drop=True)
            attributes[DOMAIN] = attribute(values, DOMAIN, "category")
        require_same_rows(type(self).__name__, arrays)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < FEWEST_ROWS:
            raise ValueError(f"y has one class, {self.classes_[0]!r}; a classifier needs two")
        if plugin.binary_only and len(self.classes_) > FEWEST_ROWS:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}."
            )
        seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
        samples = self._samples(features, codes, attributes, sample_weight, seed)
        samples = replace(samples, sensitive=sensitive, domain=DOMAIN if domain is not None else "")
        if X_target is not None:
            samples = _with_target(samples, self._features(X_target))
        protocol = {name: settings[name] for name in OF_PROTOCOL if settings[name] is not None}
        x = samples.arrays["x"]
        if np.isnan(x).any():
            protocol["imputation"] = "none"
        self.trained_ = self._trained(samples, hparams, protocol, seed)
        self._warn_of_constant(x[: len(labels)])
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not declared(self.method).binary_only
        tags.input_tags.allow_nan = self._takes_missing()
        return tags

    def _estimator(self) -> EstimatorParameters | None:
        """The estimator that the method fits without torch, if it can."""
        if self.method not in DECLARED:
            return None
        fields = network_of(declared(self.method).default_network, self.network)
        of_runs = self.epochs or self.batch_size or self.learning_rate or self.weight_decay
        if fields.pop("name") != "estimator" or fields.get("categories") or of_runs:
            return None
        if self.warm_up_epochs or self.preprocessing not in (None, "none", "standardise"):
            return None
        estimator: EstimatorParameters = validated(
            "network", "estimator", EstimatorParameters, fields
        )
        return estimator

    def _trained(self, samples: Samples, hparams: Any, protocol: dict[str, Any], seed: int) -> Any:
        """The trained replica."""
        if (estimator := self._estimator()) and not getattr(hparams, "explicit", ()):
            return one_call.fitted(
                samples, SPLIT, estimator, method=self.method, seed=seed,
                standardise=self.preprocessing != "none",
                reduction=hparams if isinstance(hparams, ReductionParameters) else None,
            )  # fmt: skip
        from robust_fairness.bench.library import train

        method = {"name": self.method, **hparams.model_dump(exclude_unset=True)}
        return train(samples, method, network=self.network, seeds=[seed], **protocol)

    def _takes_missing(self) -> bool:
        """Whether the network takes missing features; training says what is wrong with another."""
        try:
            if estimator := self._estimator():
                return bool(get_tags(estimator.built()).input_tags.allow_nan)
            fields = network_of(declared(self.method).default_network, self.network)
            network = Named(kind="network", name=fields.pop("name"), options=fields)
            plugin = registry.find("network", network.name)
            return bool(plugin.takes_missing(network.parameters))
        except InputError:
            return False

    def _warn_of_constant(self, x: np.ndarray) -> None:
        """Warn if nearly all rows are predicted as one class, as the audit does."""
        predicted = self._probabilities(x).argmax(1)
        shares = np.bincount(predicted, minlength=len(self.classes_)) / len(x)
        most = int(shares.argmax())
        if shares[most] > CONSTANT:
            warnings.warn(
                f"{type(self).__name__}: {shares[most]:.1%} of the rows are predicted as class "
                f"{self.classes_[most]}. A constant predictor has no difference between groups; "
                "train longer, or change the learning rate or the weight of a penalty",
                stacklevel=3,
            )

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
            weights = as_weights(type(self).__name__, weights)
        order = np.random.default_rng(seed).permutation(rows)
        parts = np.full(rows, "train", dtype=object)
        parts[order[: max(1, round(self.validation_fraction * rows))]] = "val"
        return Samples(
            x=self._float32(x),
            y=codes.astype(np.int64),
            attributes=attributes,
            id=np.arange(rows),
            splits=pd.DataFrame({SPLIT: pd.Categorical(parts, [*REQUIRED_PARTS, OUTSIDE])}),
            classes=tuple(map(str, self.classes_)),
            sample_weight=weights,
        )

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of every class, float64 ``[n, k]``."""
        check_is_fitted(self)
        return self._probabilities(self._features(X))

    def _features(self, X: Any) -> np.ndarray:
        """Features of further rows, float32 ``[n, d]``."""
        finite = "allow-nan" if self._takes_missing() else True
        return self._float32(
            validate_data(self, dense(X), dtype="numeric", reset=False, ensure_all_finite=finite)
        )

    def _float32(self, features: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            converted = (features - self.origin_).astype(np.float32)
        if np.isinf(converted).any():
            raise InputError("X has values that float32 cannot represent; scale them")
        return converted

    def _probabilities(self, x: np.ndarray) -> np.ndarray:
        if isinstance(self.trained_, one_call.FittedOnce):
            return self.trained_.probabilities(x)
        import torch

        from robust_fairness.bench.training.prediction import Predictor

        samples = Samples.unlabelled(x, self.trained_.samples.classes)
        predict = Predictor(self.trained_.fitted, samples, torch.device("cpu"))
        (logits,) = predict(samples)
        return torch.from_numpy(logits).double().softmax(-1).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row ``[n]``."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]


def _attributes(frame: pd.DataFrame) -> pd.DataFrame:
    """Sensitive features as groups or numbers, by the rules for columns of own data."""
    columns = {name: attribute(frame[name], f"sensitive_features, {name}") for name in frame}
    return pd.DataFrame(columns).reset_index(drop=True)


def _with_target(samples: Samples, x: np.ndarray) -> Samples:
    """The samples with further rows out of distribution, whose labels are not known."""
    rows, more = len(samples), len(x)
    parts = [*samples.splits[SPLIT], *[OUTSIDE] * more]
    kinds = samples.splits[SPLIT].cat.categories
    weights = samples.sample_weight
    return replace(
        samples,
        x=np.concatenate([samples.x, x]),
        y=np.concatenate([samples.y, np.zeros(more, dtype=np.int64)]),
        attributes=samples.attributes.reindex(range(rows + more)),
        id=np.arange(rows + more),
        splits=pd.DataFrame({SPLIT: pd.Categorical(parts, kinds)}),
        sample_weight=None if weights is None else np.append(weights, [weights[0]] * more),
    )


def origin(features: np.ndarray) -> np.ndarray:
    """What to subtract from features so that float32 keeps their values apart, float64 ``[d]``.

    >>> origin(np.array([[1.0, 1_700_000_001], [2.0, 1_700_000_002]])).tolist()
    [0.0, 1700000001.0]
    """
    low, high = (of.reduce(features, axis=0).astype(np.float64) for of in (np.fmin, np.fmax))
    return np.where((high > low) & (np.abs(low) > FAR * (high - low)), low, 0.0)


def declared(method: str) -> type[Declaration]:
    """What is known of a method before it is trained."""
    if method in DECLARED:
        return DECLARED[method]
    plugin: type[Declaration] = registry.find("method", method)
    return plugin


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
    plugin = declared(method)
    fields = plugin.Parameters.model_fields
    hparams = {key: field.get_default(call_default_factory=True) for key, field in fields.items()}
    defaults = {**COMMON, **dict.fromkeys(OF_PROTOCOL), **hparams}

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
    if "sample_weight" not in plugin.reads:
        space["fit"] = _without_weights
    return type(name, (FairClassifier,), space)


def _without_weights(self: FairClassifier, X: Any, y: Any, **arguments: Any) -> FairClassifier:
    return FairClassifier.fit(self, X, y, **arguments)


# scikit-learn reads from the signature what ``fit`` takes
_signature = signature(FairClassifier.fit)
_without_weights.__doc__ = FairClassifier.fit.__doc__
_without_weights.__name__ = "fit"
_without_weights.__signature__ = _signature.replace(  # type: ignore[attr-defined]
    parameters=[item for item in _signature.parameters.values() if item.name != "sample_weight"]
)


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
