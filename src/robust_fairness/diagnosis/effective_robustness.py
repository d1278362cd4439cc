"""Effective robustness: whether a method does better elsewhere than its score at home predicts."""

import numpy as np
from scipy import stats


def effective_robustness(
    at_home: np.ndarray, elsewhere: np.ndarray, rows: tuple[int, int], baseline: np.ndarray
) -> tuple[np.ndarray, float, float]:
    r"""Accuracy elsewhere minus what the line of the baselines predicts.

    .. math:: \Phi^{-1}(a_{ood}) = b\,\Phi^{-1}(a_{id}) + c

    is fitted on the baselines by least squares. Source: Taori et al. (2020, arXiv 2007.00644) and
    Miller et al. (2021, arXiv 2107.04649).

    Args:
        at_home: accuracy in distribution of every model ``[n]``.
        elsewhere: accuracy out of distribution ``[n]``.
        rows: numbers of test rows at home and elsewhere; accuracies are kept half a row away from
            0 and 1.
        baseline: the models that the line is fitted on, bool ``[n]``, two or more.

    Returns:
        The effective robustness of every model ``[n]``, the slope b and the intercept c.
    """
    x, y = (
        stats.norm.ppf(np.clip(values, 0.5 / n, 1 - 0.5 / n))
        for values, n in zip((at_home, elsewhere), rows, strict=True)
    )
    slope, intercept = np.polyfit(x[baseline], y[baseline], 1)
    return elsewhere - stats.norm.cdf(slope * x + intercept), float(slope), float(intercept)
