"""A plug-in of pytest that replaces the functions of ``fairlearn.metrics`` by ours.

With it fairlearn's own tests of metrics run against ours: ``pytest -p fairlearn_adapter``, see
``test_fairlearn.py``. Functions are mapped by name. What this package has no function for, gaps to
the overall value and the mean of two rates, is computed here from our values by group and overall;
what cannot be computed so raises ``NotOffered``.
"""

from collections.abc import Callable
from typing import Any

import fairlearn.metrics
import numpy as np

import robust_fairness as rf

RATES = ("true_positive_rate", "true_negative_rate", "false_positive_rate", "false_negative_rate")
BASE = (*RATES, "selection_rate")
NOTIONS = {
    "demographic_parity": ("selection_rate",),
    "equal_opportunity": ("true_positive_rate",),
    "equalized_odds": ("true_positive_rate", "false_positive_rate"),
}
# Names of scikit-learn's functions here, and whether theirs are 1 less ours.
QUANTITIES = {
    **{name: (name, False) for name in BASE},
    "accuracy_score": ("accuracy", False),
    "zero_one_loss": ("accuracy", True),
    "balanced_accuracy_score": ("balanced_accuracy", False),
    "precision_score": ("precision", False),
    "recall_score": ("true_positive_rate", False),
    "roc_auc_score": ("roc_auc", False),
    "mean_absolute_error": ("mean_absolute_error", False),
    "mean_squared_error": ("mean_squared_error", False),
    "r2_score": ("unexplained_variance", True),
    "log_loss": ("log_loss", False),
}
WORST = {"group_min": np.min, "group_max": np.max}


class NotOffered(Exception):
    """This package has no such function."""


def quantity(name: str) -> Callable[..., float]:
    """Ours of that name, with fairlearn's parameters."""

    def computed(y_true: Any, y_pred: Any, *, sample_weight: Any = None, pos_label: Any = None):
        metric = getattr(rf.metrics, name)
        return metric(y_true, y_pred, sample_weight=sample_weight, pos_label=pos_label)

    return computed


def gap(own: str | None, quantities: tuple[str, ...], kind: str) -> Callable[..., float]:
    """A difference or ratio, by the function of that name or from values by group."""

    def computed(
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        method: str | None = "between_groups",
        sample_weight: Any = None,
        agg: str = "worst_case",
    ):
        arrays = {"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight}
        if own and method != "to_overall" and agg == "worst_case":
            return getattr(rf.metrics, own)(**arrays, sensitive_features=sensitive_features)
        gaps = []
        for name in quantities:
            ours, turned = QUANTITIES[name]
            by_group = getattr(rf.metrics, f"{ours}_by_group")
            values = [*by_group(**arrays, sensitive_features=sensitive_features).values()]
            overall = getattr(rf.metrics, ours)(**arrays) if method == "to_overall" else None
            values, overall = ((1 - np.array(v) if turned else v) for v in (values, overall or 0.0))
            gaps.append(_gap(np.array(values, float), overall, kind, method))
        worst = np.min if kind == "ratio" else np.max
        return float(np.mean(gaps) if agg == "mean" else worst(gaps))

    return computed


def _gap(values: np.ndarray, overall: float, kind: str, method: str | None) -> float:
    if kind in WORST:
        return float(WORST[kind](values))
    if method != "to_overall":
        least, most = values.min(), values.max()
        return float(most - least if kind == "difference" else least / most)
    if kind == "difference":
        return float(np.abs(values - overall).max())
    return float(np.minimum(values / overall, overall / values).min())


def own_name(quantity_name: str, kind: str) -> str | None:
    """The name of a derived metric here; None where it is computed from values by group."""
    ours, turned = QUANTITIES[quantity_name]
    if turned:
        return None
    return f"worst_group_{ours}" if kind in WORST else f"{ours}_{kind}"


def not_offered(name: str) -> Callable[..., float]:
    def refused(*_arrays: Any, **_options: Any):
        raise NotOffered(name)

    return refused


def replacements() -> dict[str, Callable[..., float]]:
    """Functions by the names of fairlearn that they replace."""
    made = {name: quantity(name) for name in BASE}
    for notion, quantities in NOTIONS.items():
        for kind in ("difference", "ratio"):
            made[f"{notion}_{kind}"] = gap(f"{notion}_{kind}", quantities, kind)
    for name in fairlearn.metrics._generated_metric_dict:
        kind = next(kind for kind in ("difference", "ratio", *WORST) if name.endswith(kind))
        of = name.removesuffix(f"_{kind}")
        known = of in QUANTITIES
        made[name] = gap(own_name(of, kind), (of,), kind) if known else not_offered(name)
    return made | {name: not_offered(name) for name in ("count", "mean_prediction")}


def pytest_configure() -> None:
    for name, function in replacements().items():
        setattr(fairlearn.metrics, name, function)
