"""Two runs side by side."""

import numpy as np
import pytest

from robust_fairness.reporting import Results, comparison
from robust_fairness.reporting.matrix import differences, matrices, verdict
from tests.reporting.test_report import made_up


def test_differences_of_runs_are_paired_by_seed():
    """A second run whose gap grows by 8 points more under one of two shifts, for one method."""
    first, second = made_up(), made_up()
    shifted = (second["shift"] == "gaussian_noise") & (second["method"] == "cuma")
    gap = shifted & (second["metric"] == "delta_eo")
    noise = np.random.default_rng(1).normal(0, 0.001, gap.sum())
    second.loc[gap, "value"] += 0.08 + noise
    runs = Results(first), Results(second[second["method"] != "laftr"])
    found = differences(*runs)["delta_eo"].set_index(["method", "shift"])
    assert sorted({method for method, _ in found.index}) == ["adv_debias", "cuma", "erm"]
    line = found.loc[("cuma", "gaussian_noise")]
    assert line["change"] == pytest.approx(0.08 + noise.mean())
    assert line["state"] == "grew"
    assert (found["change"].drop(("cuma", "gaussian_noise")) == 0).all()
    page = comparison(*runs, ("a", "b"))
    for name, run in zip("ab", runs, strict=True):
        answer = verdict(matrices(run)["delta_eo"], "delta_eo").split(":")[0]
        assert f"<strong>Run {name}:</strong> {answer}:" in page
    assert page.count('class="c5"><span') == 1
