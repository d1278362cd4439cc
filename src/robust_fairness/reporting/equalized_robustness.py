"""Views and claims of "Equalized Robustness" (anonymous, under review for ICLR 2022)."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from robust_fairness.core.intervals import Interval
from robust_fairness.reporting import claims as claimed
from robust_fairness.reporting.results import UNSHIFTED, Results, where
from robust_fairness.reporting.statistics import rank_correlation, verdict
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
    """What the paper claims in 5.2."""
    metrics = ["delta_eo", *ROBUSTNESS]
    rows = where(results.scores, metric=metrics, trial="default", group="")
    found: list[dict] = []
    for dataset, attribute in SENSITIVE.items():
        own = where(rows, dataset=dataset, attribute=["", attribute])
        found += _of_dataset(own, dataset) if len(own) else ()
    return claimed.table(found)


def _of_dataset(rows: pd.DataFrame, dataset: str) -> Iterator[dict]:
    """The claims on one dataset."""
    delta_eo, unshifted = where(rows, metric="delta_eo"), where(rows, shift=UNSHIFTED)
    shifted = rows[rows["shift"] != UNSHIFTED][["shift", "severity"]]
    test_sets = sorted(set(shifted.itertuples(index=False, name=None)))
    claim = "1: shift jeopardises fairness"
    for method, (shift, severity) in product(FAIR_METHODS, test_sets):
        own = where(delta_eo, method=method)
        ordering = f"{method}: Delta-EO unshifted < under {shift} {severity:g}"
        places = {"shift": (UNSHIFTED, shift), "severity": (0.0, severity)}
        yield claimed.compared(own, claim, dataset, ordering, **places)
    claim = "2: CUMA is the fairest under shift"
    for other, (shift, severity) in product(OTHERS, [(UNSHIFTED, 0.0), *test_sets]):
        own = where(delta_eo, shift=shift, severity=severity)
        place = "unshifted" if shift == UNSHIFTED else f"under {shift} {severity:g}"
        ordering = f"Delta-EO {place}: cuma < {other}"
        yield claimed.compared(own, claim, dataset, ordering, method=("cuma", other))
    claim = "2: CUMA has the lowest Delta-ER"
    for other, metric in product(OTHERS, ROBUSTNESS):
        own, ordering = where(unshifted, metric=metric), f"{metric}: cuma < {other}"
        yield claimed.compared(own, claim, dataset, ordering, method=("cuma", other))
    claim = "3: Delta-ER predicts fairness under shift"
    for shift, severity in test_sets:
        both = (
            where(unshifted, metric="delta_er"),
            where(delta_eo, shift=shift, severity=severity),
        )
        found = _correlation(*both)
        said = verdict(replace(found, low=-found.high, high=-found.low))  # claimed: above 0
        place = f"under {shift} {severity:g}"
        ordering = f"rank correlation of Delta-ER with Delta-EO {place} > 0"
        yield claimed.row(claim, dataset, ordering, found, said)


def _correlation(one: pd.DataFrame, other: pd.DataFrame) -> Interval:
    """Rank correlation of the values of two sets of rows over methods and seeds."""
    pairs = []
    for method in ("erm", *FAIR_METHODS):
        both = [claimed.by_seed(rows, method=method) for rows in (one, other)]
        pairs.append(pd.concat(both, axis=1).dropna().to_numpy())
    return rank_correlation(*np.concatenate(pairs).T)


SECTION = Section("Equalized Robustness", VIEWS, claims)
