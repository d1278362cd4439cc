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
least a third. (That run left 2 % of effective rows; the control with a quarter of the strength was
added after it.)
"""

import sys
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from pages import DOCS, RESULTS, Page

SCORES = RESULTS / "label_free.csv"
SHOWN = "NE"  # the state whose table is shown with intervals
METRICS = {
    "accuracy": ("", "", "accuracy"),
    "equalized_odds_difference": ("sex", "", "equalized_odds_difference"),
}
PAIRS, CONTROL = "another state", "same state, drawn by age and schooling"
STRENGTHS = {1.0: CONTROL, 0.25: f"{CONTROL}, a quarter as strongly"}
DRAWS = 5
GUESSES = {
    "at_home": "unchanged since the reference",
    "estimated": "estimate",
    "weighted_by_score": "estimate, weighted by score and group",
    "weighted_by_features": "estimate, weighted by all features",
}


class Model(NamedTuple):
    """A classifier of a state, its scores of all rows, and its held-out rows."""

    state: str
    held_out: np.ndarray
    rows: "Scored"  # noqa: F821


def scores() -> pd.DataFrame:
    """Estimated and true values of a classifier of every state in every other state.

    Half of the people of a state train it, the others are the reference.
    """
    import robust_fairness as rf
    from robust_fairness.samples import groups_of

    samples = rf.load("acs_income")
    states = samples.attributes["state"].astype(str).to_numpy()
    groups = groups_of(samples.attributes, ("sex",))
    found = []
    for home in np.unique(states):
        model = _model(samples, groups, np.flatnonzero(states == home), home)
        for state in np.unique(states[states != home]):
            rows = np.flatnonzero(states == state)
            found += _compared(samples, model, model.held_out, rows, state, PAIRS)
        reference, others = np.array_split(model.held_out, 2)
        away = _older_with_less_schooling(samples, states == home)[others]
        for strength, design in STRENGTHS.items():
            chance = np.exp(strength * away)
            for draw in range(DRAWS):
                generator = np.random.default_rng(draw)
                rows = generator.choice(others, len(others), p=chance / chance.sum())
                found += _compared(samples, model, reference, rows, home, design)
    return pd.DataFrame(found)


def _model(samples: "Samples", groups: "Groups", own: np.ndarray, home: str) -> Model:  # noqa: F821
    from sklearn.ensemble import HistGradientBoostingClassifier

    from robust_fairness.auditing.estimates import Scored

    train, held_out = np.array_split(np.random.default_rng(0).permutation(own), 2)
    model = HistGradientBoostingClassifier(random_state=0)
    model.fit(samples.x[train], samples.y[train])
    score = model.predict_proba(samples.x)[:, 1]
    return Model(home, held_out, Scored(score, score >= 0.5, {"sex": groups}))


def _older_with_less_schooling(samples: "Samples", own: np.ndarray) -> np.ndarray:  # noqa: F821
    """Standardised age less standardised schooling ``[n]``."""
    age, schooling = (samples.x[:, list(samples.features).index(name)] for name in ("AGEP", "SCHL"))
    return (age - age[own].mean()) / age[own].std() - (
        schooling - schooling[own].mean()
    ) / schooling[own].std()


def _compared(
    samples: "Samples",  # noqa: F821
    model: Model,
    labelled: np.ndarray,
    rows: np.ndarray,
    state: str,
    design: str,
) -> list[dict]:
    """Estimated and true values of some rows, with other rows as the reference."""
    from robust_fairness.auditing.estimates import Reference, estimate, needs_calibration, values
    from robust_fairness.metrics import find_metric

    reference = Reference(model.rows.take(labelled), samples.y[labelled])
    now, group = model.rows.take(rows), model.rows.groups["sex"].index[:, None]
    calibrate = needs_calibration(reference.y, reference.rows.score)
    told = values(now, reference, calibrate, [find_metric(metric) for metric in METRICS])
    weighted, kept = {}, {}
    for name, columns in (
        ("weighted_by_score", model.rows.score[:, None]), ("weighted_by_features", samples.x)
    ):  # fmt: skip
        x = np.concatenate([columns, group], axis=1)
        weight = density_ratio(x[labelled], x[rows])
        kept[name] = weight.sum() ** 2 / np.square(weight).sum() / len(weight)
        weighted[name] = _weighted_values(now, reference, weight)
    intervals = estimate(now, reference, state, [*METRICS], 30) if design == PAIRS else None
    at_home, known = _true(reference.y, reference.rows), _true(samples.y[rows], now)
    return [
        {
            "design": design, "trained_in": model.state, "state": state, "metric": metric,
            "at_home": at_home[metric], "estimated": told[key].value,
            **dict(zip(("low", "high"), _interval(intervals, key), strict=True)),
            **{name: found[metric] for name, found in weighted.items()},
            "effective_share": kept["weighted_by_features"], "true": known[metric],
        }
        for metric, key in METRICS.items()
    ]  # fmt: skip


def density_ratio(then: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Weights of earlier rows ``[n]``, proportional to their density now over that then."""
    from robust_fairness.diagnosis.domains import domain_probabilities

    elsewhere = np.repeat([False, True], [len(then), len(now)])
    pi = domain_probabilities(np.concatenate([then, now]), elsewhere)[~elsewhere]
    return pi / (1 - pi)


def _weighted_values(
    now: "Scored",  # noqa: F821
    reference: "Reference",  # noqa: F821
    weight: np.ndarray,
) -> dict[str, float]:
    """Estimates whose calibrators, of all rows and of every group, weight the reference."""
    from robust_fairness.auditing.cells import scores_of
    from robust_fairness.auditing.estimates import calibrated, expected_cells
    from robust_fairness.metrics import find_metric
    from robust_fairness.samples import Groups

    common = calibrated(reference.y, reference.rows.score, now.score, weight)
    everyone = Groups(np.zeros(len(common), np.int64), ("",))
    groups, before = now.groups["sex"], reference.rows.groups["sex"]
    own = np.empty_like(common)
    for code in range(len(groups.names)):
        then, here = before.index == code, groups.index == code
        own[here] = calibrated(
            reference.y[then], reference.rows.score[then], now.score[here], weight[then]
        )
    cells = (expected_cells(now, common, everyone), expected_cells(now, own, groups))
    return {
        metric: scores_of(find_metric(metric), of)[""].value or 0.0
        for metric, of in zip(METRICS, cells, strict=True)
    }


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
    rows = found[(found["trained_in"] == SHOWN) & (found["design"] == PAIRS)]
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
    """Errors over all pairs of states, of every estimate and of assuming no change."""
    pairs = found[found["design"] == PAIRS]
    return pd.DataFrame(
        {"value": metric, "guess": guess, **_errors(pairs, metric, name)}
        for metric in METRICS
        for name, guess in GUESSES.items()
    )


def control(found: pd.DataFrame) -> pd.DataFrame:
    """The same of accuracy where only the features shift."""
    return pd.DataFrame(
        {
            "rows now": design, "guess": guess,
            **_errors(found[found["design"] == design], "accuracy", name),
            "effective rows": ""
            if name != "weighted_by_features"
            else f"{found.loc[found['design'] == design, 'effective_share'].mean():.0%}",
        }
        for design in STRENGTHS.values()
        for name, guess in GUESSES.items()
    )  # fmt: skip


def _errors(rows: pd.DataFrame, metric: str, name: str) -> dict[str, str]:
    own = rows[rows["metric"] == metric]
    error = own[name] - own["true"]
    return {
        "mean error": f"{error.abs().mean():.3f}", "largest error": f"{error.abs().max():.3f}",
        "too high": f"{(error > 0).sum()} of {len(error)}",
    }  # fmt: skip


PAGES = [
    Page(
        DOCS / "audit.md",
        {"by_state": by_state, "errors": errors, "control": control},
        partial(pd.read_csv, SCORES),
    )
]

if __name__ == "__main__":
    if sys.argv[1:] == ["scores"]:
        scores().to_csv(SCORES, index=False, float_format="%.5f")
    for page in PAGES:
        page.write()
