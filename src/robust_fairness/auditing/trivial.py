"""Predictors that are fair by every difference because they predict nothing."""

import numpy as np

from robust_fairness.auditing.predictions import Predictions
from robust_fairness.core.numbers import CONSTANT
from robust_fairness.metrics import Undefined
from robust_fairness.metrics.macro_averages import balanced_accuracy


def trivial_predictor(predictions: Predictions) -> str:
    """A warning where the classes are predicted as a constant or by chance; "" otherwise."""
    classes = predictions.samples.classes
    if not classes:
        return ""
    shares = np.bincount(predictions.prediction, minlength=len(classes)) / len(predictions.samples)
    most = int(shares.argmax())
    if shares[most] > CONSTANT:
        return (
            f"{shares[most]:.1%} of the rows are predicted as class {classes[most]}. A constant "
            "predictor has no difference between groups, so that gates on differences say nothing."
        )
    if not predictions.labelled:
        return ""
    try:
        balanced = balanced_accuracy(predictions.samples.y, predictions.prediction)
    except Undefined:
        return ""
    if balanced <= 1 / len(classes):
        return (
            f"Balanced accuracy is {balanced:.3f}, not above chance ({1 / len(classes):.3g}): "
            "gates on differences say nothing of such a predictor."
        )
    return ""
