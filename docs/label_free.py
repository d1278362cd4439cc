"""Estimates without labels against the truth: a scikit-learn model in states it was not trained in.

python docs/label_free.py scores    # trains in every state; writes results/label_free.csv
python docs/label_free.py           # writes the tables of audit.md from that file

Estimates are compared with those whose reference rows are weighted by the density ratio of the rows
now and then (PAPE, first published as M-CBPE: Bialek et al., arXiv 2401.08348), from a classifier
that tells both apart by the score and the groups, or by all features of the model and the groups.

Hypotheses, written before the run over the 56 pairs of states:

1. Weights by score and group change the mean error of accuracy by less than .002: isotonic
   regression is local in the score, so that a function of it hardly matters.
2. Weights by all features reduce the mean error of accuracy, by less than half: they repair a
   calibration that depends on features, not a change of Y given X.
3. With them more than 40 of 56 estimates of accuracy are still too high.
4. The mean error of the equalized odds difference falls by less than .005, because weights cost
   rows and calibrators of groups repair most of what they could.

A control with a covariate shift alone, written before its run: a quarter of the rows of a state is
the reference, and rows of another quarter are drawn with probabilities that grow with age and fall
with schooling. Hypothesis 5: weights by all features reduce the mean error of accuracy there by at
least a third.
"""

import sys
from functools import partial

import numpy as np
import pandas as pd
from pages import DOCS, RESULTS, Page

SCORES = RESULTS / "label_free.csv"
SHOWN = "NE"  # the state whose table is shown with intervals
METRICS = {
    "accuracy": ("", "", "accuracy"),
    "equalized_odds_difference": ("sex", "", "equalized_odds_difference"),
}


def scores() -> pd.DataFrame:
    """Estimated and true values of a classifier of every state in every other state.

    Half of the people of a state train it, the others are the reference.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    import robust_fairness as rf
    from robust_fairness.auditing.estimates import Reference, Scored, estimate, needs_calibration
    from robust_fairness.auditing.estimates import values as estimated
    from robust_fairness.samples import groups_of

    samples = rf.load("acs_income")
    states = samples.attributes["state"].astype(str).to_numpy()
    groups = groups_of(samples.attributes, ("sex",))
    found = []
    for home in np.unique(states):
        own = np.random.default_rng(0).permutation(np.flatnonzero(states == home))
        train, held_out = np.array_split(own, 2)
        model = HistGradientBoostingClassifier(random_state=0)
        model.fit(samples.x[train], samples.y[train])
        score = model.predict_proba(samples.x)[:, 1]
        every = Scored(score, score >= 0.5, {"sex": groups})
        reference = Reference(every.take(held_out), samples.y[held_out])
        calibrate = needs_calibration(reference.y, reference.rows.score)
        at_home = _true(reference.y, reference.rows)
        for state in np.unique(states[states != home]):
            rows = np.flatnonzero(states == state)
            now = every.take(rows)
            told, known = estimated(now, reference, calibrate), _true(samples.y[rows], now)
            intervals = estimate(now, reference, state, 30) if home == SHOWN else None
            for metric, key in METRICS.items():
                low, high = _interval(intervals, key)
                found.append(
                    {
                        "trained_in": home, "state": state, "metric": metric,
                        "at_home": at_home[metric], "estimated": told[key], "low": low,
                        "high": high, "true": known[metric],
                    }
                )  # fmt: skip
    return pd.DataFrame(found)


def _true(y: np.ndarray, rows: "Scored") -> dict[str, float]:  # noqa: F821
    from robust_fairness import metrics

    sex, predicted = rows.groups["sex"].index, rows.positive.astype(int)
    gap = metrics.equalized_odds_difference(y, predicted, sensitive_features=sex)
    return {"accuracy": metrics.accuracy(y, predicted), "equalized_odds_difference": gap}


def _interval(rows: pd.DataFrame | None, key: tuple[str, str, str]) -> tuple[float, float]:
    if rows is None:
        return np.nan, np.nan
    own = rows.set_index(["attribute", "group", "metric"]).loc[key]
    return own["low"], own["high"]


def by_state(found: pd.DataFrame) -> pd.DataFrame:
    """Estimate with its interval and truth in every state, of the model of one state."""
    rows = found[found["trained_in"] == SHOWN]
    columns = {"state": rows["state"].unique()}
    for metric in METRICS:
        own = rows[rows["metric"] == metric]
        interval = own["low"].map("({:.3f} to ".format) + own["high"].map("{:.3f})".format)
        columns[f"{metric}, estimated"] = (own["estimated"].map("{:.3f} ".format) + interval).array
        columns["true" if metric == "accuracy" else "true "] = (
            own["true"].map("{:.3f}".format).array
        )
    return pd.DataFrame(columns)


def errors(found: pd.DataFrame) -> pd.DataFrame:
    """Mean and largest absolute error over all pairs of states, and those of assuming no change."""
    rows = []
    for metric in METRICS:
        own = found[found["metric"] == metric]
        for name in ("estimated", "at_home"):
            error = (own[name] - own["true"]).abs()
            worst = own.loc[error.idxmax()]
            rows.append(
                {
                    "value": metric,
                    "guess": "estimate" if name == "estimated" else "unchanged since the reference",
                    "mean error": f"{error.mean():.3f}", "largest error": f"{error.max():.3f}",
                    "at": f"trained in {worst['trained_in']}, used in {worst['state']}",
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


PAGES = [
    Page(DOCS / "audit.md", {"by_state": by_state, "errors": errors}, partial(pd.read_csv, SCORES))
]

if __name__ == "__main__":
    if sys.argv[1:] == ["scores"]:
        scores().to_csv(SCORES, index=False, float_format="%.5f")
    for page in PAGES:
        page.write()
