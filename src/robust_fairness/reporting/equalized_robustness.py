"""Views and claims of "Equalized Robustness" (anonymous, under review for ICLR 2022)."""

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from robust_fairness.reporting import claims as claimed
from robust_fairness.reporting.results import UNSHIFTED, Results, where
from robust_fairness.reporting.statistics import rank_correlation
from robust_fairness.reporting.views import Section, View, beside_published, subgroups

PAPER = "equalized_robustness"
SENSITIVE = {
    "communities_race": "racepctblack_group",
    "communities_divorce": "FemalePctDiv_group",
    "adult": "sex",
    "diabetes": "sex",
    "celeba_chubby": "Chubby",
    "celeba_eyeglasses": "Eyeglasses",
}
FAIR_METHODS = ("adv_debias", "laftr", "cuma")
OTHERS = ("erm", "adv_debias", "laftr")
ROBUSTNESS = ("delta_er", "delta_er_one_shot")
VIEWS = (
    *(View(f"table_{n}", partial(beside_published, PAPER, f"table_{n}")) for n in range(1, 10)),
    View("cells_celeba_chubby", partial(subgroups, "celeba_chubby", "Chubby")),
    View("cells_celeba_eyeglasses", partial(subgroups, "celeba_eyeglasses", "Eyeglasses")),
)


def claims(results: Results) -> pd.DataFrame:
    """What the paper claims in 5.2, each with our paired difference and a verdict.

    A difference is first minus second, and the claim that it is negative: ``holds`` if the whole
    95 % interval is below 0, ``does not hold`` if it is above, ``inconclusive`` if it includes 0,
    without correction for multiple comparisons.
    """
    metrics = ["delta_eo", *ROBUSTNESS]
    rows = where(results.scores, metric=metrics, trial="default", group="")
    found: list[dict] = []
    for dataset, attribute in SENSITIVE.items():
        own = where(rows, dataset=dataset, attribute=["", attribute])
        found += _of_dataset(own, dataset) if len(own) else ()
    return claimed.table(found)


def _of_dataset(rows: pd.DataFrame, dataset: str) -> Iterator[dict]:
    """The claims on one dataset."""
    shifted = rows[rows["shift"] != UNSHIFTED][["shift", "severity"]]
    test_sets = sorted(set(shifted.itertuples(index=False, name=None)))
    unshifted, *others = [
        {"metric": "delta_eo", "shift": shift, "severity": severity}
        for shift, severity in [(UNSHIFTED, 0.0), *test_sets]
    ]
    for method, place in product(FAIR_METHODS, others):
        own, claim = where(rows, method=method), "1: shift jeopardises fairness"
        ordering = f"{method}: Delta-EO unshifted < {_where(place)}"
        yield claimed.compared(own, claim, dataset, ordering, unshifted, place)
    robustness = [{**unshifted, "metric": metric} for metric in ROBUSTNESS]
    compared = [
        ("2: CUMA is the fairest under shift", [unshifted, *others]),
        ("2: CUMA has the lowest Delta-ER", robustness),
    ]
    for claim, places in compared:
        for other, place in product(OTHERS, places):
            what = f"Delta-EO {_where(place)}" if place["metric"] == "delta_eo" else place["metric"]
            pair = [{"method": "cuma"}, {"method": other}]
            own = where(rows, **place)
            yield claimed.compared(own, claim, dataset, f"{what}: cuma < {other}", *pair)
    for place in others:
        yield _correlation(rows, dataset, unshifted, place)


def _where(place: dict) -> str:
    shift, severity = place["shift"], place["severity"]
    return "unshifted" if shift == UNSHIFTED else f"under {shift} {severity:g}"


def _correlation(rows: pd.DataFrame, dataset: str, unshifted: dict, shifted: dict) -> dict:
    """Third claim: the smaller Delta-ER, the smaller Delta-EO on perturbed rows."""
    pairs = []
    for method in ("erm", *FAIR_METHODS):
        places = ({**unshifted, "metric": "delta_er"}, shifted)
        both = [claimed.by_seed(rows, **place, method=method) for place in places]
        pairs.append(pd.concat(both, axis=1).dropna().to_numpy())
    robustness, fairness = np.concatenate(pairs).T
    found = rank_correlation(robustness, fairness)
    verdict = "not run" if found.n == 0 else "inconclusive"
    if found.low > 0:
        verdict = "holds"
    elif found.high < 0:
        verdict = "does not hold"
    ordering = f"rank correlation of Delta-ER with Delta-EO {_where(shifted)} > 0"
    claim = "3: Delta-ER predicts fairness under shift"
    return claimed.row(claim, dataset, ordering, found, verdict)


SECTION = Section("Equalized Robustness", VIEWS, claims)
