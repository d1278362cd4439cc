"""Tables of methods: their scores with differences to a baseline, and which trials are selected.

A score of a method is the mean over seeds of the scores of its trained models, also of gaps: the
mean of the gaps, not the gap of mean rates. The standard deviation is that over seeds.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from robust_fairness.core.errors import unknown_name
from robust_fairness.numbers.estimate import over_refits
from robust_fairness.numbers.verdicts import concluded
from robust_fairness.report.figures import FAIRNESS, QUALITY
from robust_fairness.report.results import CELL, UNSHIFTED, Results, where

PLAIN = "erm"
HOME, MEAN = "home", "mean under shift"
PLACE = ["dataset", "tested", "attribute"]
MEASURES = (*QUALITY, *FAIRNESS, "demographic_parity_difference", "equalized_odds_difference")
TESTED = ["difference", "low", "high", "p_holm"]
COLUMNS = [*PLACE, "metric", "method", "mean", "sd", "seeds", *TESTED, "says"]


def methods(
    results: Results,
    against: str = PLAIN,
    metrics: Sequence[str] = (),
    mean_under_shift: bool = False,
) -> pd.DataFrame:
    """Mean, standard deviation and difference to a baseline of the scores of every method.

    Args:
        results: the tables of a run.
        against: label of the baseline; a dataset without it has no differences.
        metrics: those that are shown, in this order; all if there are none.
        mean_under_shift: whether the mean over shifts, each at its largest severity, replaces the
            single shifted test sets.

    Returns:
        ``COLUMNS``, a row per dataset, test set, attribute, metric and method, of the trial that is
        shown. ``sd`` is missing for one seed. ``difference`` is paired over seeds, with an interval
        without adjustment and Holm's p-value over all differences of the metric; ``says`` is
        higher, lower, inconclusive or not tested: below five seeds, or without any variation.

    Raises:
        InputError: no cell has this label, or no score is of this metric.
    """
    rows = where(results.selected, group="")
    rows = rows[(rows["shift"] != UNSHIFTED) | (rows["domain"] == "")]
    known = {"method": rows["method"].unique(), "metric": rows["metric"].unique()}
    asked = {"method": [against] if against != PLAIN else [], "metric": metrics}
    for kind, names in asked.items():
        for name in names:
            if name not in known[kind]:
                raise unknown_name(kind, name, map(str, known[kind]))
    rows = rows.dropna(subset="value")
    if rows.empty:
        return pd.DataFrame(columns=COLUMNS)
    is_shifted = rows["shift"] != UNSHIFTED
    if mean_under_shift:
        # of the seeds that have a score on all shifted test sets
        shifted, home = rows[is_shifted], rows[~is_shifted].assign(tested=HOME)
        largest = shifted.groupby(["dataset", "shift"])["severity"].transform("max")
        keys = ["dataset", "attribute", "metric", "method", "seed"]
        scores = shifted[shifted["severity"] == largest].groupby(keys, sort=False)["value"]
        means = scores.agg(["mean", "size"]).reset_index()
        most = means.groupby(["dataset", "attribute", "metric"])["size"].transform("max")
        means = means[means["size"] == most].rename(columns={"mean": "value"})
        rows = pd.concat([home, means.assign(tested=MEAN)])
    else:
        severity = rows["severity"].map(" {:g}".format).where(rows["severity"] != 0, "")
        place = (rows["shift"] + severity).where(rows["domain"] == "", rows["domain"])
        rows = rows.assign(tested=place.where(is_shifted, HOME))
    rows = pd.concat([where(rows, metric=name) for name in (metrics or known["metric"])])
    result = _compared(rows, against, results.sizes_of_splits["ratio"])[COLUMNS]
    return result.sort_values(
        PLACE, key=lambda names: pd.factorize(names)[0], kind="stable", ignore_index=True
    )


def _compared(rows: pd.DataFrame, against: str, ratio: pd.Series) -> pd.DataFrame:
    """Scores by metric and method with their differences to the baseline, tested by metric."""
    by = ["metric", *PLACE, "method"]
    values = rows.groupby([*by, "seed"], sort=False)["value"].first().unstack("seed")
    values = values.reindex(pd.MultiIndex.from_frame(rows[by].drop_duplicates()))
    result = pd.DataFrame(
        {"mean": values.mean(axis=1), "sd": values.std(axis=1), "seeds": values.count(axis=1)}
    )
    plain = values.index.get_level_values("method") == against
    baseline, others = values[plain].droplevel("method"), values[~plain]
    places = pd.MultiIndex.from_frame(others.index.to_frame(index=False)[by[:-1]])
    differences = others.sub(baseline.reindex(places).to_numpy())
    differences = differences[differences.notna().any(axis=1)]
    tests = [_tested(part, ratio) for _, part in differences.groupby(level="metric", sort=False)]
    if not tests:
        return result.assign(**dict.fromkeys(TESTED, np.nan), says="").reset_index()
    return result.join(pd.concat(tests)).fillna({"says": ""}).reset_index()


def _tested(differences: pd.DataFrame, ratio: pd.Series) -> pd.DataFrame:
    """The columns ``TESTED`` and says of differences by seed, one family of tests."""
    shares = ratio.reindex(differences.index.get_level_values("dataset")).fillna(0.0)
    estimate = over_refits(differences.to_numpy(), shares.to_numpy(float))
    tests = concluded(estimate, differences.notna().sum(axis=1).to_numpy())
    says = np.select([tests["sign"] > 0, tests["sign"] < 0], ["higher", "lower"], "inconclusive")
    tests["says"] = np.where(tests["p"].isna(), "not tested", says)
    tests = tests.set_index(differences.index).rename(columns={"value": "difference"})
    return tests[[*TESTED, "says"]]


def shown(results: Results) -> pd.DataFrame:
    """What the page shows: measures of quality and fairness, at home and on average under shift."""
    known = set(results.selected["metric"])
    measures = [name for name in MEASURES if name in known]
    if not measures:
        return pd.DataFrame()
    return as_table(methods(results, metrics=measures, mean_under_shift=True))


def as_table(rows: pd.DataFrame, digits: int = 3) -> pd.DataFrame:
    """Rows of ``methods`` with methods as rows and metrics as columns, as text.

    A row per dataset, test set, attribute and method; scores of no attribute are repeated for each.
    A cell has the mean ± standard deviation over seeds and, in brackets, the difference to the
    baseline with its interval; * where it is significant.
    """
    overall, by_attribute = rows[rows["attribute"] == ""], rows[rows["attribute"] != ""]
    attributes = by_attribute[["dataset", "attribute"]].drop_duplicates()
    repeated = overall.drop(columns="attribute").merge(attributes, on="dataset", how="left")
    every = pd.concat([repeated.fillna({"attribute": ""}), by_attribute])
    keys = [*PLACE, "method"]
    places = (
        every[keys]
        .drop_duplicates()
        .sort_values(keys[:3], key=lambda names: pd.factorize(names)[0], kind="stable")
    )
    texts = []
    for row in every.to_dict("records"):
        text = f"{row['mean']:.{digits}f}"
        if np.isfinite(row["sd"]):
            text += f" ± {row['sd']:.{digits}f}"
        if np.isfinite(row["difference"]):
            ends = f", {row['low']:+.{digits}f} to {row['high']:+.{digits}f}"
            star = "*" if row["says"] in ("higher", "lower") else ""
            ends = "" if np.isnan(row["low"]) else ends
            text += f" ({row['difference']:+.{digits}f}{ends}){star}"
        texts.append(text)
    cells = every.assign(text=texts).set_index([*keys, "metric"])["text"]
    table = cells.unstack("metric")[list(dict.fromkeys(rows["metric"]))].reindex(
        pd.MultiIndex.from_frame(places)
    )
    return table.fillna("").rename_axis(columns=None).reset_index()


def selected_trials(results: Results) -> pd.DataFrame:
    """The trial that each criterion selects on validation rows, used or only compared."""
    used = results.choices["used"].map({True: "used", False: "compared"})
    return results.choices.assign(used=used)


def agreement(results: Results) -> pd.DataFrame:
    """In how many cells a criterion selects the trial that the first one used selects."""
    choices = results.choices
    first = choices[choices["used"]].drop_duplicates(CELL)[[*CELL, "trial"]]
    both = choices.merge(first, on=CELL, suffixes=("", " of the first"))
    same = both.assign(same=both["trial"] == both["trial of the first"])
    return same.groupby("criterion", as_index=False, sort=False).agg(
        cells=("same", "size"), same=("same", "sum")
    )


def budgets(results: Results) -> pd.DataFrame:
    """Trials of every cell, also as a share of the most of its dataset, and what its method saw."""
    trials = results.trials.assign(pruned=results.trials["state"] == "pruned")
    result = trials.groupby(CELL, as_index=False, sort=False).agg(
        trials=("trial", "size"), pruned=("pruned", "sum"), epochs=("epochs", "sum")
    )
    largest = result.groupby("dataset")["trials"].transform("max")
    result = results.with_facets(
        result.assign(share=result["trials"] / largest), ["algorithm", "sees"]
    )
    return result[[*CELL, "algorithm", "sees", "trials", "share", "pruned", "epochs"]]
