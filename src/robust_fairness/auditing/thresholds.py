"""``rf.Thresholds``: a classifier repaired, with a promise on new rows."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy import special
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils import (
    Tags,
    _safe_indexing,
    check_random_state,
    column_or_1d,
    get_tags,
    indexable,
)
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    validate_data,
)

from robust_fairness.auditing.repair._needed import growth_needed
from robust_fairness.auditing.repair._rows import Rows, drawn, groups_by_text, rates_of_both
from robust_fairness.auditing.repair.group_thresholds import GroupThresholds, Mixtures
from robust_fairness.core.arrays import (
    as_rows,
    as_weights,
    require_same_rows,
    require_unmasked,
)
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.frames import (
    as_pandas,
    is_indexed,
    naming_text,
    rows_of,
    sensitive_columns,
)
from robust_fairness.core.numbers import CONSTANT
from robust_fairness.core.registry import find, names
from robust_fairness.core.scikit_learn import is_fitted, weight_argument
from robust_fairness.numbers.estimate import FEWEST_ROWS, POWER, Estimate
from robust_fairness.numbers.groups import Groups, everyone

TRAIN, FIT, HELD_OUT = range(3)  # parts of the rows


class Scores(ClassifierMixin, BaseEstimator):
    """A classifier whose features are its scores: predictions without a model."""

    def fit(self, X: Any, y: Any) -> "Scores":
        """Note the classes."""
        self.classes_ = np.unique(y)
        self.decision_function(X)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the second class, float64 ``[n]``."""
        scores = np.asarray(X, dtype=np.float64)
        scores = scores.reshape(len(scores), -1)
        if scores.shape[1] not in (1, 2):
            raise InputError(
                f"scores of {scores.shape[1]} columns, allowed: scores of the positive class, "
                "probabilities of both classes, or an estimator"
            )
        if not np.isfinite(scores).all():
            raise InputError("scores: NaN or infinity, allowed: finite numbers")
        return scores[:, -1]

    def predict(self, X: Any) -> np.ndarray:
        """The second class from a score of 0.5 on ``[n]``."""
        return self.classes_[(self.decision_function(X) >= 0.5).astype(int)]  # noqa: PLR2004


class Thresholds(ClassifierMixin, BaseEstimator):
    """Thresholds by group, or one mixture for all, so that rates differ by a tolerance at most.

    ``predict`` decides by a threshold of the row's group, drawn where the most accurate rule is a
    mixture of several (``repair.group_thresholds``; Hardt, Price and Srebro 2016, Cruz and
    Hardt 2024). ``predict_proba`` has the probability of the decision, not of the class.

    Rows have three parts: those that the estimator is trained on, those that the rule is fitted on,
    and those held out, on which the promise is tested once (the scheme of Thomas et al.,
    "Preventing undesirable behavior of intelligent machines", Science 2019). The promise is that
    no difference exceeds the tolerance among further rows of the same kind. It is made if every
    difference is within the tolerance by two one-sided tests (Schuirmann 1987); since all of them
    must be, none is corrected for the others (Berger 1982). Otherwise ``fit`` raises an error with
    the number of rows that would do.

    Args:
        estimator: a classifier, trained on a part of the rows unless it is fitted; None if ``X``
            are scores. A clone of a fitted one is not fitted, ``FrozenEstimator(model)`` is.
        constraint: ``equalized_odds``, ``demographic_parity``, ``true_positive_rate_parity``,
            ``false_positive_rate_parity``, or one of a plug-in.
        tolerance: the largest difference of rates between two groups on further rows.
        common: whether all groups have the same mixture of thresholds. ``predict`` then needs no
            groups, and accuracy is lower. It is the same linear program with one set of weights.
        confidence: of the promise; None holds no rows out and promises nothing.
        sensitive_columns: names of columns of ``X`` that are the sensitive features, if they are
            not passed. The estimator does not see them unless it was fitted with them.
        train_size: share of the rows that train an estimator that is not fitted.
        test_size: share of the other rows that are held out.
        random_state: of the parts of the rows.

    Attributes:
        classes_: the classes ``[2]``, the positive one last.
        groups_: values of every group.
        thresholds_: thresholds of every group, ascending, a single entry if ``common``.
        shares_: the probability with which each of them is drawn.
        bound_: what the largest difference is at most, at ``confidence``; None without a test.
        held_out_rows_: number of rows that tested it.
        estimator_: the fitted estimator.

    >>> rng = np.random.default_rng(0)
    >>> sex, y = rng.choice(["f", "m"], 20_000), rng.integers(0, 2, 20_000)
    >>> score = y + (sex == "m") + rng.normal(size=20_000)
    >>> model = Thresholds(constraint="demographic_parity", tolerance=0.1, random_state=0)
    >>> model = model.fit(score, y, sensitive_features=sex)
    >>> [of.round(1).tolist() for of in model.thresholds_], round(model.bound_, 2)
    ([[0.6], [1.6]], 0.03)
    >>> model.predict([1.0, 1.0], sensitive_features=["f", "m"])
    array([1, 0])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        constraint: Any = "equalized_odds",
        tolerance: Any = 0.05,
        common: Any = False,
        confidence: Any = 0.95,
        sensitive_columns: Any = None,
        train_size: Any = 0.5,
        test_size: Any = 0.5,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.constraint = constraint
        self.tolerance = tolerance
        self.common = common
        self.confidence = confidence
        self.sensitive_columns = sensitive_columns
        self.train_size = train_size
        self.test_size = test_size
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> "Thresholds":
        """Fit the rule, and the estimator unless it is fitted, and test the promise.

        Args:
            X: rows as the estimator takes them; without an estimator scores of the positive class
                ``[n]`` or probabilities of both ``[n, 2]``.
            y: classes ``[n]``, two of them; the second in order is the positive one.
            sensitive_features: one label per row, or a frame whose combinations are the groups;
                None where ``sensitive_columns`` names columns of ``X``.
            sample_weight: weights ``[n]`` of the estimator, the repair and the test.

        Raises:
            InputError: the promise is not shown by these rows, a group lacks rows of a class, or
                arrays do not fit one another.
        """
        self._require_settings()
        place = type(self).__name__
        given = {"X": X, "y": y, "sample_weight": sample_weight}
        given["sensitive_features"] = sensitive_features
        require_unmasked(place, given)
        X, y = indexable(X, y)
        if _num_samples(X) < 2:
            raise ValueError(f"n_samples={_num_samples(X)}, allowed: two or more")
        require_same_rows(place, {name: rows for name, rows in given.items() if is_indexed(rows)})
        validate_data(self, X, skip_check_array=True)
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        X, groups = self._rows(X, sensitive_features, "fit")
        weight = self._weights(sample_weight, labels)
        with naming_text(place, X):
            inner = self.estimator if self.estimator is not None else Scores().fit(X, labels)
        fitted = is_fitted(inner)
        self.classes_ = np.asarray(inner.classes_) if fitted else np.unique(labels)
        self._require_two(labels)
        rows = Rows(X, (labels == self.classes_[1]).astype(np.int64), groups, weight)
        self._require_cells(rows, 1 + (not fitted) + (self.confidence is not None))
        parts = self._parts(rows, fitted)
        if not fitted:
            train = np.flatnonzero(parts == TRAIN)
            weights = {} if sample_weight is None else {self._weight_argument(): weight[train]}
            # a step is named by its argument
            with naming_text(place, X), config_context(enable_metadata_routing=False):
                inner = clone(inner).fit(_safe_indexing(X, train), labels[train], **weights)
        self.estimator_ = inner if isinstance(inner, FrozenEstimator) else FrozenEstimator(inner)
        self.groups_ = [list(values) for values in groups.values]
        fit_on, held_out = (rows.take(np.flatnonzero(parts == part)) for part in (FIT, HELD_OUT))
        self._require_cells(fit_on, 1, " among those that the rule is fitted on")
        if self.confidence is not None and not len(held_out.y):
            raise InputError(f"{place}: no rows are held out of {len(labels):,}, more are needed")
        self._learn(fit_on, len(held_out.y))
        self.held_out_rows_ = len(held_out.y)
        self.bound_: float | None = None
        self.report_: list[tuple[str, str, float, float]] = []
        if self.confidence is not None:
            self._test(held_out, rows.take(np.flatnonzero(parts != TRAIN)), len(labels))
            decided = self.estimator_.predict(held_out.X) == self.classes_[1]
            self.report_ = rates_of_both(held_out, decided.astype(float), self._positive(held_out))
        return self

    def predict(
        self, X: Any, *, sensitive_features: Any = None, random_state: Any = None
    ) -> np.ndarray:
        """Classes ``[n]``, drawn anew at every call unless ``random_state`` is given.

        Raises:
            InputError: a group has no rows in ``fit``, or groups are needed and not given.
        """
        positive = self.predict_proba(X, sensitive_features=sensitive_features)[:, 1]
        random = check_random_state(random_state).random_sample(len(positive))
        return self.classes_[(random < positive).astype(int)]

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Probability of deciding each class, float64 ``[n, 2]``."""
        check_is_fitted(self)
        (X,) = indexable(X)
        X, groups = self._rows(X, sensitive_features, "predict")
        codes = np.zeros_like(groups.codes) if self.common else self._codes(groups)
        positive = self._decided(self._score(X), codes)
        return np.stack([1 - positive, positive], axis=1)

    def report(self) -> pd.DataFrame:
        """What the held-out rows say: ``metric``, ``group`` ("" for all), ``before``, ``after``.

        Empty without held-out rows.
        """
        check_is_fitted(self)
        return pd.DataFrame(self.report_, columns=["metric", "group", "before", "after"])

    def _decided(self, score: np.ndarray, codes: np.ndarray) -> np.ndarray:
        known = [("",)] if self.common else [tuple(values) for values in self.groups_]
        parts = zip(self.thresholds_, self.shares_, strict=True)
        return Mixtures(dict(zip(known, parts, strict=True)))(score, Groups(codes, tuple(known)))

    @property
    def _rule(self) -> type[GroupThresholds]:
        rule = find("postprocessing", self.constraint)
        if not issubclass(rule, GroupThresholds):
            allowed = ", ".join(names("postprocessing"))
            raise InputError(f"constraint {self.constraint}: no thresholds, allowed: {allowed}")
        return rule

    def _strata(self, rows: Rows) -> np.ndarray:
        by_class = None not in self._rule.among
        return rows.groups.index + (rows.y * len(rows.groups.values) if by_class else 0)

    def _learn(self, rows: Rows, held_out: int) -> None:
        self._fit_rule(rows, self.tolerance)
        if self.confidence is None or self.tolerance == 1:
            return
        differences = self._differences(rows)
        margins = self._margins(differences) * np.sqrt(len(rows.y) / held_out)
        margin = np.nanmax(margins, initial=0.0)
        self._fit_rule(rows, max(0.0, self.tolerance - float(margin)))
        share = float(np.average(self._positive(rows), weights=rows.weight))
        if max(share, 1 - share) > CONSTANT:
            warnings.warn(
                f"Thresholds: {max(share, 1 - share):.1%} of the rows are decided as class "
                f"{self.classes_[int(share > 1 - share)]}. A constant decision has no difference "
                "between groups; allow a larger tolerance, or give more rows",
                stacklevel=3,
            )

    def _fit_rule(self, rows: Rows, tolerance: float) -> None:
        rule = self._rule(self._rule.Parameters(tolerance=tolerance, common=self.common))
        fitted = rule.fit(rows.y, self._score(rows.X), rows.groups, rows.weight)
        keys = [()] if self.common else [tuple(values) for values in self.groups_]
        self.thresholds_ = [fitted.of_group[key][0] for key in keys]
        self.shares_ = [fitted.of_group[key][1] for key in keys]

    def _positive(self, rows: Rows) -> np.ndarray:
        codes = rows.groups.index
        return self._decided(self._score(rows.X), np.zeros_like(codes) if self.common else codes)

    def _differences(self, rows: Rows) -> Estimate:
        rule = self._rule(self._rule.Parameters())
        return rule.differences(self._positive(rows), rows.y, rows.groups, rows.weight)

    def _test(self, rows: Rows, decided: Rows, total: int) -> None:
        """Test the promise; raise with the number of rows that would show it if it is not shown.

        ``rows`` are held out of those that are ``decided`` and not trained on.
        """
        differences, level = self._differences(rows), 1 - self.confidence
        bounds = differences.bound(level)
        self.bound_ = float(np.minimum(bounds, 1.0).max())
        if self.bound_ <= self.tolerance:
            return
        if np.isnan(self.bound_):
            counts = np.bincount(self._strata(rows), rows.weight > 0)
            least = int(np.where(counts > 0, counts, np.inf).argmin()) % len(rows.groups.values)
            why = (
                f": group {rows.groups.names[least]} has fewer than {FEWEST_ROWS} of the "
                f"{len(rows.y):,} held-out rows to test it on"
            )
        else:
            why = (
                f" by {len(rows.y):,} held-out rows, which allow up to {self.bound_:.3f} at "
                f"{self.confidence:.0%}"
            )
        needed = total * growth_needed(
            decided, self._positive(decided), self._rule.among, len(rows.y) / len(decided.y),
            self.tolerance, self.confidence,
        )  # fmt: skip
        size = 10 ** (int(np.floor(np.log10(needed))) - 1)  # two digits, never less
        promised = f"{self.constraint}{' by a common mixture' if self.common else ''}"
        raise InputError(
            f"{type(self).__name__}: {promised} within {self.tolerance:g} is not shown{why}; about "
            f"{int(np.ceil(needed / size) * size):,} rows in fit would show it, here {total:,}"
        )

    def _margins(self, differences: Estimate) -> np.ndarray:
        """How far within the tolerance differences must be, all to be shown with a power of 80 %.

        A difference varies by the rows that it is fitted to and by as many that test it.
        """
        limits = len(self._rule.among) * (len(self.groups_) - 1)
        quantile = special.ndtri(1 - (1 - POWER) / limits)
        error = np.sqrt(2) * differences.error * quantile
        return np.asarray(differences.critical(1 - self.confidence) + error)

    def _weights(self, sample_weight: Any, labels: np.ndarray) -> np.ndarray:
        """Weights of rows, float64 ``[n]``; 1 if none are given."""
        if sample_weight is None:
            return np.ones(len(labels))
        weight = _check_sample_weight(
            as_rows(sample_weight), labels, dtype=np.float64,
            ensure_non_negative=True, allow_all_zero_weights=False,
        )  # fmt: skip
        return as_weights(type(self).__name__, weight)

    def _require_settings(self) -> None:
        """Check what the constructor took, which checks nothing, as in scikit-learn."""
        if self.estimator is not None and not is_classifier(self.estimator):
            name = type(self.estimator).__name__
            raise InputError(f"{type(self).__name__}: estimator {name}, allowed: a classifier")
        shares = {"tolerance": (self.tolerance, 0, 1), "train_size": (self.train_size, 0, 1)}
        shares["test_size"] = (self.test_size, 0, 1)
        for name, (value, low, high) in shares.items():
            if not low <= value <= high or (name != "tolerance" and value in (low, high)):
                ends = "0 to 1" if name == "tolerance" else "between 0 and 1"
                raise InputError(f"{name}: {value}, allowed: {ends}")
        if self.confidence is not None and not self.tolerance:
            raise InputError(
                "tolerance: 0, which no number of rows shows, allowed: above 0, or confidence None"
            )
        if self.confidence is not None and not 0.5 <= self.confidence < 1:  # noqa: PLR2004
            raise InputError(
                f"confidence: {self.confidence}, allowed: from 0.5 to below 1, or None for no test"
            )

    def _require_two(self, labels: np.ndarray) -> None:
        seen = np.unique(labels)
        if len(self.classes_) > 2:
            kind = type_of_target(labels)
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {seen[0]!r}; a classifier needs two classes")
        for label in seen:
            if label not in self.classes_:
                allowed = ", ".join(map(str, self.classes_))
                raise InputError(f"y: class {label}, allowed: those of the estimator, {allowed}")

    def _require_cells(self, rows: Rows, fewest: int, among: str = "") -> None:
        """Every group needs rows of both classes that have a weight, one for each part."""
        for label in (0, 1):
            used = (rows.y == label) & (rows.weight > 0)
            counts = np.bincount(rows.groups.codes[used], minlength=len(rows.groups.values))
            least = int(counts.argmin())
            if counts[least] < fewest:
                raise InputError(
                    f"{type(self).__name__}: group {rows.groups.names[least]} has {counts[least]} "
                    f"rows of class {self.classes_[label]}{among}, at least {fewest} are needed"
                )

    def _parts(self, rows: Rows, fitted: bool) -> np.ndarray:
        """The part of every row, drawn within the strata that rates are taken in."""
        random = check_random_state(self.random_state)
        cells = rows.groups.index + rows.y * len(rows.groups.values)
        result = np.full(len(rows.y), FIT)
        if not fitted:
            result[drawn(cells, self.train_size, random)] = TRAIN
        if self.confidence is not None:
            rest = np.flatnonzero(result == FIT)
            strata = self._strata(rows)[rest]
            result[rest[drawn(strata, self.test_size, random)]] = HELD_OUT
        return result

    def _weight_argument(self) -> str:
        argument = weight_argument(self.estimator)
        if not argument:
            raise InputError(
                f"{type(self).__name__}: {type(self.estimator).__name__} takes no sample_weight, "
                "allowed: one that does, or a fitted one"
            )
        return argument

    def _rows(self, X: Any, given: Any, where: str) -> tuple[Any, Groups]:
        """Rows as the estimator takes them, and their groups."""
        columns = list(self.sensitive_columns or ())
        if columns:
            X = as_pandas(X)
            for name in columns:
                if name not in X:
                    raise unknown_name("column of X", name, map(str, X.columns))
        if given is None and columns:
            given = X[columns]
        if columns:
            seen = getattr(self.estimator, "feature_names_in_", None)
            X = X.drop(columns=columns) if seen is None else X[list(seen)]
        if given is None:
            if where == "predict" and self.common:
                return X, everyone(_num_samples(X))
            raise InputError(
                f"{type(self).__name__}: needs sensitive_features in {where}: one label per row or "
                "a frame of several columns; or sensitive_columns, names of columns of X"
            )
        frame = sensitive_columns(given)
        known = X if is_indexed(X) else range(_num_samples(X))
        same = {"X": known, "sensitive_features": rows_of(given, frame)}
        require_same_rows(type(self).__name__, same)
        groups = groups_by_text(frame)
        if where == "fit" and len(groups.values) < 2:
            raise InputError(
                f"{type(self).__name__}: sensitive_features has one group, "
                f"{groups.names[0]}, allowed: two or more"
            )
        return X, groups

    def _score(self, X: Any) -> np.ndarray:
        """Scores of class 1 by the estimator before the repair, float64 ``[n]``."""
        if hasattr(self.estimator_, "predict_proba"):
            return np.asarray(self.estimator_.predict_proba(X), np.float64)[:, 1]
        return np.asarray(self.estimator_.decision_function(X), np.float64)

    def _codes(self, groups: Groups) -> np.ndarray:
        """Position of every row's group among those fitted, int64 ``[n]``."""
        place = {tuple(values): code for code, values in enumerate(self.groups_)}
        table = np.array([place.get(values, -1) for values in groups.values])
        if (table < 0).any():
            unknown = [groups.names[code] for code in np.flatnonzero(table < 0)]
            known = Groups(np.empty(0), tuple(place)).names
            raise InputError(
                f"{type(self).__name__}: group {', '.join(unknown)} has no rows in fit, allowed: "
                f"{', '.join(known)}"
            )
        return table[groups.index]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        if self.estimator is not None:
            tags.input_tags = get_tags(self.estimator).input_tags
        else:
            tags.input_tags.one_d_array = True
        return tags
