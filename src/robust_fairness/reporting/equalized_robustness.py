"""Views and claims of "Equalized Robustness" (anonymous, under review for ICLR 2022)."""

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from robust_fairness.reporting import claims as claimed
from robust_fairness.reporting.statistics import distinct, rank_correlation
from robust_fairness.reporting.views import View, beside_published, cells

PAPER = "equalized_robustness"
TITLE = "Equalized Robustness"
SENSITIVE = {
    "communities_race": "racepctblack_group",
    "communities_divorce": "FemalePctDiv_group",
    "adult": "sex",
    "diabetes": "sex",
    "celeba_chubby": "Chubby",
    "celeba_eyeglasses": "Eyeglasses",
}
FAIR_METHODS = ("adv_debias", "laftr", "cuma")
CLAIMED = ("delta_eo", "delta_er", "delta_er_one_shot")
OTHERS = ("erm", "adv_debias", "laftr")

TABLES = {
    "table_1": "Table 1: Communities and Crime, racepctblack, noise of deviation 0.03",
    "table_2": "Table 2: Communities and Crime, FemalePctDiv, noise of deviation 0.03",
    "table_3": "Table 3: Adult, sex, noise of deviation 0.03",
    "table_4": "Table 4: CelebA, Chubby, Gaussian noise of deviation 0.08, impulses 0.03",
    "table_5": "Table 5: CelebA, Eyeglasses, the same noise",
    "table_6": "Table 6: Delta-ER by kernel widths, Communities and Crime, racepctblack",
    "table_7": "Table 7: ablation of alpha, gamma and h, Communities and Crime, racepctblack",
    "table_8": "Table 8: Communities and Crime, racepctblack, noise of deviation 0.06",
    "table_9": "Table 9: Communities and Crime, FemalePctDiv, noise of deviation 0.06",
}
VIEWS = [
    View(view, title, partial(beside_published, PAPER, view)) for view, title in TABLES.items()
] + [
    View(
        f"cells_{dataset}",
        f"Rows behind Tables 4 and 5: test rows by {attribute} and attractiveness",
        partial(cells, dataset=dataset, attribute=attribute),
    )
    for dataset, attribute in (("celeba_chubby", "Chubby"), ("celeba_eyeglasses", "Eyeglasses"))
]


Values = Mapping[tuple[str, str, str, float], pd.Series]


def by_seed(metrics: pd.DataFrame, dataset: str) -> Values:
    """Values of default trials by seed, for the dataset's sensitive attribute.

    Args:
        metrics: rows of the tidy table.
        dataset: name of the dataset.

    Returns:
        By method, metric, shift and severity; empty where there is none.
    """
    rows = metrics[
        (metrics["dataset"] == dataset)
        & (metrics["trial"] == "default")
        & metrics["attribute"].isin(["", SENSITIVE[dataset]])
        & (metrics["group"] == "")
    ].set_index("seed")
    groups = rows.groupby(["method", "metric", "shift", "severity"])["value"]
    return defaultdict(lambda: rows["value"].iloc[:0], iter(groups))


def claims(metrics: pd.DataFrame) -> pd.DataFrame:
    """What the paper claims in 5.2, each with our paired difference and a verdict.

    A difference is first minus second, and the claim that it is negative: ``holds`` where the
    whole 95 % interval is below 0, ``does not hold`` where it is above, ``not resolved`` where
    it includes 0. No correction for many comparisons is made; the intervals are each its own.
    """
    # a large grid has few rows of these
    metrics = distinct(
        metrics[metrics["dataset"].isin(SENSITIVE) & metrics["metric"].isin(CLAIMED)]
    )
    datasets = [name for name in SENSITIVE if (metrics["dataset"] == name).any()]
    shifted = metrics[metrics["shift"] != "none"][["dataset", "shift", "severity"]]
    rows: list[dict] = []
    for dataset in datasets:
        test_sets = sorted(
            set(shifted[shifted["dataset"] == dataset].itertuples(index=False, name=None))
        )
        places = [("none", 0.0), *((shift, severity) for _, shift, severity in test_sets)]
        values = by_seed(metrics, dataset)
        for method, (shift, severity) in product(FAIR_METHODS, places[1:]):
            rows.append(
                claimed.difference(
                    "1: shift jeopardises fairness",
                    dataset,
                    f"{method}: Delta-EO unshifted < under {shift} {severity:g}",
                    values[method, "delta_eo", "none", 0.0],
                    values[method, "delta_eo", shift, severity],
                )
            )
        for other, (shift, severity) in product(OTHERS, places):
            where = "unshifted" if shift == "none" else f"under {shift} {severity:g}"
            rows.append(
                claimed.difference(
                    "2: CUMA is the fairest under shift",
                    dataset,
                    f"Delta-EO {where}: cuma < {other}",
                    values["cuma", "delta_eo", shift, severity],
                    values[other, "delta_eo", shift, severity],
                )
            )
        for other, metric in product(OTHERS, ("delta_er", "delta_er_one_shot")):
            rows.append(
                claimed.difference(
                    "2: CUMA has the lowest Delta-ER",
                    dataset,
                    f"{metric}: cuma < {other}",
                    values["cuma", metric, "none", 0.0],
                    values[other, metric, "none", 0.0],
                )
            )
        rows += [_correlation(values, dataset, *place) for place in places[1:]]
    return claimed.table(rows)


def _correlation(values: Values, dataset: str, shift: str, severity: float) -> dict:
    """Third claim: the smaller Delta-ER, the smaller Delta-EO on perturbed rows."""
    robustness, fairness = [], []
    for method in ("erm", *FAIR_METHODS):
        pair = pd.concat(
            [
                values[method, "delta_er", "none", 0.0],
                values[method, "delta_eo", shift, severity],
            ],
            axis=1,
        ).dropna()
        robustness.append(pair.iloc[:, 0].to_numpy())
        fairness.append(pair.iloc[:, 1].to_numpy())
    found = rank_correlation(np.concatenate(robustness), np.concatenate(fairness))
    said = "not run" if found.n == 0 else "not resolved"
    if found.low > 0:
        said = "holds"
    elif found.high < 0:
        said = "does not hold"
    ordering = f"rank correlation of Delta-ER with Delta-EO under {shift} {severity:g} > 0"
    return claimed.row("3: Delta-ER tells fairness under shift", dataset, ordering, found, said)
