"""Texts that may mean a missing value and are groups or classes."""

from robust_fairness.auditing.predictions import Predictions
from robust_fairness.datasets.raw.columns import MARKS


def marks_of_missing(predictions: Predictions) -> list[str]:
    """A line per column in which a text such as NA is a group or a class, and what to do."""
    samples = predictions.samples
    attributes = samples.attributes.select_dtypes("category").items()
    columns = {f"{name}: group": {*values.dropna()} for name, values in attributes}
    columns["target: class"] = {*samples.classes}
    return [
        f"{column} {mark!r}; if it means missing: --missing {mark!r} (in Python: None)"
        for column, values in columns.items()
        for mark in MARKS
        if mark in values
    ]
