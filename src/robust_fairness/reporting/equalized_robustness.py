"""Views and claims of "Equalized Robustness" (anonymous, under review for ICLR 2022)."""

from collections.abc import Iterator
from itertools import product

import pandas as pd

from robust_fairness.reporting import claims as claimed
from robust_fairness.reporting.results import UNSHIFTED, Results, where
from robust_fairness.reporting.statistics import over_seeds, rank_correlations
from robust_fairness.reporting.views import joined_published, published

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
FEWEST_SEEDS = 3  # of a correlation
DEFAULT_ALPHA = 1.0
CORRELATIONS = ("over methods and seeds", "within methods")
OVER = "methods and seeds"


def claims(results: Results) -> pd.DataFrame:
    """What the paper claims in 5.2, of every dataset and each of its forms of whitening."""
    rows = of_studies(results, where(results.scores, metric=["delta_eo", *ROBUSTNESS]))
    rows = where(rows, trial="default", group="")
    result: list[claimed.Claim] = []
    for dataset, item in rows.groupby("dataset", sort=False):
        result += _of_dataset(item, str(dataset))
    return claimed.table(result, results)


def of_studies(results: Results, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the sensitive attribute of the paper's datasets, or of forms of them, as ``study``.

    A dataset whose facet ``study`` names one of the paper has its rows in another form, such as
    with decorrelated features.
    """
    rows = results.with_facets(rows, ["study"], {"study": "dataset"})
    mask = rows["attribute"] == rows["study"].map(SENSITIVE)
    return rows[rows["study"].isin(SENSITIVE) & (mask | (rows["attribute"] == ""))]


def _of_dataset(rows: pd.DataFrame, dataset: str) -> Iterator[claimed.Claim]:
    """The claims on one dataset."""
    delta_eo, unshifted = where(rows, metric="delta_eo"), where(rows, shift=UNSHIFTED)
    test_sets = _test_sets(rows)
    claim = "1: shift jeopardises fairness"
    for method, (shift, severity) in product(FAIR_METHODS, test_sets):
        subset = where(delta_eo, method=method)
        ordering = f"{method}: Delta-EO unshifted < under {shift} {severity:g}"
        places = {"shift": (UNSHIFTED, shift), "severity": (0.0, severity)}
        yield claimed.compared(subset, claim, dataset, ordering, **places)
    claim = "2: CUMA is the fairest under shift"
    for other, (shift, severity) in product(OTHERS, [(UNSHIFTED, 0.0), *test_sets]):
        subset = where(delta_eo, shift=shift, severity=severity)
        place = "unshifted" if shift == UNSHIFTED else f"under {shift} {severity:g}"
        ordering = f"Delta-EO {place}: cuma < {other}"
        yield claimed.compared(subset, claim, dataset, ordering, method=("cuma", other))
    claim = "2: CUMA has the lowest Delta-ER"
    for other, metric in product(OTHERS, ROBUSTNESS):
        subset, ordering = where(unshifted, metric=metric), f"{metric}: cuma < {other}"
        yield claimed.compared(subset, claim, dataset, ordering, method=("cuma", other))
    claim = "3: Delta-ER predicts fairness under shift"
    for shift, severity in test_sets:
        tables = _by_method(rows, shift, severity)
        if min(map(len, tables)) < FEWEST_SEEDS:
            continue
        for what, item in zip(CORRELATIONS, rank_correlations(*tables), strict=True):
            ordering = f"0 < rank correlation {what}: under {shift} {severity:g}"
            yield claimed.Claim(
                claim, dataset, ordering, item, (dataset,), min(tables[0].shape), OVER, sign=1
            )


def _test_sets(rows: pd.DataFrame) -> list[tuple[str, float]]:
    """Shift and severity of the shifted test sets."""
    shifted = rows[rows["shift"] != UNSHIFTED][["shift", "severity"]]
    return sorted(set(shifted.itertuples(index=False, name=None)))


def _by_method(rows: pd.DataFrame, shift: str, severity: float) -> list[pd.DataFrame]:
    """Delta-ER and Delta-EO on a test set, seeds by methods, of the seeds that all methods have."""
    rows = where(rows, method=["erm", *FAIR_METHODS])
    both = [
        where(rows, metric="delta_er", shift=UNSHIFTED),
        where(rows, metric="delta_eo", shift=shift, severity=severity),
    ]
    wide = [item.pivot_table(index="seed", columns="method", values="value") for item in both]
    robustness, fairness = (frame.dropna() for frame in wide)
    return list(robustness.align(fairness, join="inner"))


def correlations(results: Results) -> pd.DataFrame:
    """Spearman's rank correlation of Delta-ER with Delta-EO under shift, by method over seeds."""
    rows = of_studies(results, where(results.scores, metric=["delta_eo", "delta_er"]))
    rows = where(rows, trial="default", group="")
    result = []
    for dataset, item in rows.groupby("dataset", sort=False):
        for shift, severity in _test_sets(item):
            robustness, fairness = _by_method(item, shift, severity)
            place = {"dataset": dataset, "shift": shift, "severity": severity}
            result += [
                {
                    **place,
                    "method": method,
                    "rank correlation": robustness[method].corr(
                        fairness[method], method="spearman"
                    ),
                    "seeds": len(robustness),
                }
                for method in robustness
                if len(robustness) >= FEWEST_SEEDS
            ]
    return pd.DataFrame(result)


def beside_studies(view: str, results: Results) -> pd.DataFrame:
    """The published numbers of a table beside ours, with each form of whitening that was run."""
    theirs = where(published(PAPER), view=view).rename(columns={"dataset": "study"})
    keys = ["dataset", "whitening"]
    rows = where(of_studies(results, results.scores), study=theirs["study"])
    rows = results.with_facets(rows, ["whitening"])
    forms = rows[["study", *keys]].drop_duplicates()
    place = [*keys, "study", "method", "trial", "shift", "severity", "attribute", "group", "metric"]
    ours = over_seeds(where(rows, metric=theirs["metric"]), place)
    joined = joined_published(theirs.merge(forms, on="study"), ours, place)
    shown = ["published", "published std", "ours", "std", "seeds", "note"]
    return joined[[*(name for name in place if name != "study"), *shown]]


def figure_3(results: Results) -> pd.DataFrame:
    """Accuracy and Delta-EO by the weight alpha of the adversary, on every test set (B)."""
    rows = of_studies(results, where(results.scores, metric=["accuracy", "delta_eo"], group=""))
    rows = results.with_hparams(where(rows, method=FAIR_METHODS), ["alpha"])
    rows = rows.assign(alpha=rows["alpha"].astype(float).fillna(DEFAULT_ALPHA))
    several = rows.groupby(["dataset", "method"])["alpha"].transform("nunique")
    keys = ["dataset", "method", "shift", "severity", "alpha"]
    wide = over_seeds(rows[several > 1], [*keys, "metric"]).pivot_table(
        index=keys, columns="metric", values="ours", sort=False
    )
    return wide.reset_index().rename_axis(columns=None)
