"""scikit-learn's rules for estimators, with the argument that an estimator of ``rf`` needs."""

import re

import numpy as np
import pandas as pd
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import _num_samples, has_fit_parameter

from tests.test_project import ROOT


def documented(page: str) -> list[tuple[str, str]]:
    """The failing checks in the table of a page, and the next column of it."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"^\| `(check_\w+)` \| (.+?) \|", text, re.MULTILINE)


def with_argument(original, argument):
    """The class with an argument of ``fit`` filled in, since the checks do not know it."""

    def fit(self, X, y, sample_weight=None):
        arguments = {} if sample_weight is None else {"sample_weight": sample_weight}
        if argument == "X_target":
            arguments[argument] = X
        elif argument:
            arguments[argument] = halves_of_classes(X, y)
        return original.fit(self, X, y, **arguments)

    def without_weights(self, X, y):
        return fit(self, X, y)

    takes = has_fit_parameter(original(), "sample_weight")
    space = {"fit": fit if takes else without_weights, "__module__": __name__}
    name = original.__name__
    globals()[name] = type(name, (original,), space)  # where copies by pickle look for it
    return globals()[name]


def halves_of_classes(x, y):
    """Every second row of each class, or every second row where y has another length."""
    labels = np.asarray(y, dtype=object).ravel()
    if len(labels) != _num_samples(x):
        return np.arange(_num_samples(x)) % 2
    codes = pd.factorize(labels)[0]
    return pd.Series(codes).groupby(codes).cumcount().to_numpy() % 2


def failed(model, least):
    """The checks that fail, with their errors; at least so many pass."""
    checks = check_estimator(model, on_fail=None, on_skip=None)
    assert sum(item["status"] == "passed" for item in checks) >= least
    return {item["check_name"]: item["exception"] for item in checks if item["status"] == "failed"}
