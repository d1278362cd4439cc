"""Views and measured effects of "Equalized Robustness" (anonymous, under review for ICLR 2022)."""

import numpy as np
import pandas as pd

from robust_fairness.report.claims.row_variances import with_row_variances
from robust_fairness.report.results import UNSHIFTED, Results, where
from robust_fairness.report.statistics import over_seeds
from robust_fairness.report.views import About, joined_published, published

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
METHODS = ("erm", *FAIR_METHODS)
FEWEST_SEEDS = 3  # of a correlation
DEFAULT_ALPHA = 1.0
CURVATURE = "curvature_by_group"
LOWEST_ACCURACY = 0.7  # of the area of a trade-off: the most frequent class of C&C
ABOUT = About(PAPER, SENSITIVE)


def measured(results: Results) -> pd.DataFrame:
    """What claims are about: scores of the sensitive attribute, with derived quantities.

    ``rank_correlation``: Spearman's, of Delta-ER without shift and Delta-EO on a test set, over the
    four methods, by seed. ``trade_off_area``: of accuracy above ``LOWEST_ACCURACY`` and Delta-EO
    below 1 that the trials of a method with other alpha dominate, by seed and test set.
    ``curvature_log_ratio``: logarithm of the minority's mean loss curvature over the majority's.
    """
    names = ["accuracy", "delta_eo", "delta_er"]
    rows = of_studies(results, where(results.scores, metric=names))
    rows = with_row_variances(rows, results)
    curved = curvatures(results).assign(metric="curvature_log_ratio", group="", shift=UNSHIFTED)
    curved = curved.assign(value=np.log(curved["minority"] / curved["majority"]))
    parts = [rows, _rank_correlations(rows), _areas(results, rows), curved]
    return pd.concat(parts, ignore_index=True)


def curvatures(results: Results) -> pd.DataFrame:
    """Mean loss curvature of the smallest and of the largest group of test rows, by replica (1).

    Columns dataset, method, trial, seed, minority, majority.
    """
    rows = of_studies(results, where(results.unshifted, metric=CURVATURE))
    sizes = rows.groupby(["dataset", "group"])["n"].transform("mean")
    rows = rows.assign(size=sizes).sort_values("size", kind="stable")
    by_replica = rows.groupby(["dataset", "method", "trial", "seed"], sort=False)["value"]
    ends = by_replica.agg(
        minority=lambda values: values.iloc[0], majority=lambda values: values.iloc[-1]
    )
    return ends.reset_index()


def minority_curvature(results: Results) -> pd.DataFrame:
    """Means of ``curvatures`` over seeds, and in how many of them the minority's is larger."""
    rows = curvatures(results)
    rows = rows.assign(larger=rows["minority"] > rows["majority"])
    by_trial = rows.groupby(["dataset", "method", "trial"], sort=False)
    means = by_trial[["minority", "majority"]].agg(["mean", "std"])
    means.columns = pd.Index(["minority", "minority std", "majority", "majority std"])
    return means.assign(larger=by_trial["larger"].sum(), seeds=by_trial.size()).reset_index()


def _rank_correlations(rows: pd.DataFrame) -> pd.DataFrame:
    """Rank correlations over the four methods, by dataset, seed and test set."""
    rows = where(rows, trial="default", group="", method=METHODS)
    robust = where(rows, metric="delta_er", shift=UNSHIFTED)
    keys = ["dataset", "seed"]
    wide = robust.pivot_table(index=keys, columns="method", values="value")
    fair = where(rows, metric="delta_eo").pivot_table(
        index=[*keys, "shift", "severity"], columns="method", values="value"
    )
    robust_ranks, fair_ranks = (frame.dropna().rank(axis=1) for frame in (wide, fair))
    if min(robust_ranks.shape[1], fair_ranks.shape[1]) < len(METHODS):
        return pd.DataFrame()
    places = fair_ranks.index.to_frame()[keys]
    pairs = robust_ranks.reindex(pd.MultiIndex.from_frame(places)).set_axis(fair_ranks.index)
    values = pairs.corrwith(fair_ranks, axis=1).rename("value").reset_index()
    return values.assign(metric="rank_correlation", trial="default", group="", method="")


def _areas(results: Results, rows: pd.DataFrame) -> pd.DataFrame:
    """Areas that the trials dominate, by dataset, method, seed and test set."""
    rows = where(rows, metric=["accuracy", "delta_eo"], method=FAIR_METHODS, group="")
    rows = results.with_hparams(rows, ["alpha"])
    keys = ["dataset", "method", "seed", "shift", "severity"]
    wide = rows.pivot_table(index=[*keys, "trial"], columns="metric", values="value")
    result = [
        [*names, area_dominated(part["accuracy"].to_numpy(), part["delta_eo"].to_numpy())]
        for names, part in wide.groupby(level=keys)
        if len(part) > 1
    ]
    areas = pd.DataFrame(result, columns=[*keys, "value"])
    return areas.assign(metric="trade_off_area", trial="default", group="")


def area_dominated(accuracy: np.ndarray, gap: np.ndarray) -> float:
    """Area of accuracy above ``LOWEST_ACCURACY`` and gap below 1 that points dominate.

    >>> area_dominated(np.array([0.9, 0.8]), np.array([0.5, 0.0])).__round__(3)
    0.15
    """
    order = np.argsort(-accuracy)
    least = np.minimum.accumulate(gap[order])
    widths = -np.diff(np.append(accuracy[order], LOWEST_ACCURACY).clip(LOWEST_ACCURACY))
    return float((widths * (1 - least).clip(0)).sum())


def of_studies(results: Results, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the sensitive attribute of the paper's datasets, or of forms of them, as ``study``.

    A dataset whose facet ``study`` names one of the paper has its rows in another form, such as
    with decorrelated features.
    """
    rows = results.with_facets(rows, ["study"], {"study": "dataset"})
    mask = rows["attribute"] == rows["study"].map(SENSITIVE)
    return rows[rows["study"].isin(SENSITIVE) & (mask | (rows["attribute"] == ""))]


def _by_method(rows: pd.DataFrame, shift: str, severity: float) -> list[pd.DataFrame]:
    """Delta-ER and Delta-EO on a test set, seeds by methods, of the seeds that all methods have."""
    rows = where(rows, method=METHODS)
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
        shifted = item[item["shift"] != UNSHIFTED][["shift", "severity"]]
        for shift, severity in sorted({*shifted.itertuples(index=False, name=None)}):
            robustness, fairness = _by_method(item, shift, severity)
            place = {"dataset": dataset, "shift": shift, "severity": severity}
            result += [
                {
                    **place,
                    "method": method,
                    "rank correlation": robustness[method].rank().corr(fairness[method].rank()),
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
