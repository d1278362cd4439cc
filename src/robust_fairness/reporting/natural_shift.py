"""Views of natural shift: what changes where a model is used in domains it was not trained on."""

import numpy as np
import pandas as pd

from robust_fairness.inference.estimate import LEVEL
from robust_fairness.reporting.effective_robustness import fitted_line, within
from robust_fairness.reporting.figures import FAIRNESS, QUALITY
from robust_fairness.reporting.gaps import at_equal_sizes, signed_differences
from robust_fairness.reporting.natural_figures import (
    KEYS,
    better_higher,
    draw_curves,
    draw_matrix,
    draw_scatter,
)
from robust_fairness.reporting.ranks import compared
from robust_fairness.reporting.results import FACET, UNSHIFTED, Results
from robust_fairness.reporting.statistics import (
    OverDomains,
    adjusted,
    detectable,
    needed_domains,
    over_domains,
    with_intervals,
)
from robust_fairness.reporting.views import Section, View, published

MEASURES = (
    *QUALITY, *FAIRNESS, "demographic_parity_difference", "equalized_odds_difference", "roc_auc",
    "balanced_accuracy",
)  # fmt: skip
TRAINING = [*KEYS, "method", "trained_on"]
FEWEST_METHODS = 3  # of a line that one of them is compared with
UNTIL = "trained_until"  # facet of designs with ordered domains: the last one trained on
COLUMNS = 3  # that are shown of every domain


def matrix(results: Results) -> pd.DataFrame:
    """Every measure by the domains trained on and the domain tested on.

    Columns data, attribute, metric, method, trained_on, tested_on, ours (mean over seeds), std,
    seeds, n (test rows), at_home (mean on test rows of the domains trained on), n_at_home, change.
    """
    rows = _outside(results)
    if rows.empty:
        return rows
    found = rows.groupby([*TRAINING, "tested_on"], as_index=False, sort=False).agg(
        ours=("value", "mean"), std=("value", "std"), seeds=("value", "count"),
        n=("n", "median"), at_home=("at_home", "mean"), n_at_home=("n_at_home", "median"),
        change=("change", "mean"),
    )  # fmt: skip
    return found


def changes(results: Results) -> pd.DataFrame:
    """How each measure changes between domains, by method: the answer, one line each.

    ``change`` is out of distribution minus in distribution, the mean over sources and targets,
    with an interval that resamples domains. ``p`` is that of ``over_domains``, ``p_holm`` adjusted
    for all lines; ``smallest_p`` is the least that this number of domains can give,
    ``needed_domains`` the number from which the adjusted one can be significant, ``detectable`` the
    change that a t-test with the error of the interval would find in 80 % of cases.
    """
    found, cells = [], matrix(results)
    if cells.empty:
        return cells
    for names, rows in cells.groupby([*KEYS, "method"], sort=False):
        table = rows.pivot_table(index="trained_on", columns="tested_on", values="change")
        interval = over_domains(table)
        targets = table.mean()
        worse = str((targets if better_higher(names[2]) else -targets).idxmin())
        found.append(
            {
                **dict(zip([*KEYS, "method"], names, strict=True)),
                "at_home": rows["at_home"].mean(),
                "elsewhere": rows["ours"].mean(),
                "change": interval.mean,
                "low": interval.low,
                "high": interval.high,
                "mean_absolute": float(np.nanmean(np.abs(table.to_numpy()))),
                "worst_domain": worse,
                "worst_change": targets[worse],
                "domains": interval.n,
                "p": interval.p,
                "smallest_p": 2.0 ** (1 - interval.n),
                "detectable": detectable(interval.error, interval.n),
            }
        )
    answer = _concluded(pd.DataFrame(found), "change", ("falls", "rises"))
    first = [*KEYS, "method", "says", "change", "low", "high"]
    return answer[[*first, *answer.columns.difference(first, sort=False)]]


def against_erm(results: Results) -> pd.DataFrame:
    """Which methods keep a measure better than ``erm``: their changes, paired over domains.

    ``difference`` is the mean over sources and targets of a method's value minus that of ``erm``,
    on the same rows and seeds, with an interval that resamples domains; best first.
    """
    rows, found = matrix(results), []
    keys = [*KEYS, "trained_on", "tested_on"]
    if rows.empty or not {"erm"} < set(rows["method"]):
        return pd.DataFrame()
    plain = rows[rows["method"] == "erm"][[*keys, "ours", "change"]]
    both = rows[rows["method"] != "erm"].merge(plain, on=keys, suffixes=("", "_erm"))
    both = both.assign(
        elsewhere=both["ours"] - both["ours_erm"], kept=both["change"] - both["change_erm"]
    )
    for names, part in both.groupby([*KEYS, "method"], sort=False):
        interval = over_pairs(part, "elsewhere")
        found.append(
            {
                **dict(zip([*KEYS, "method"], names, strict=True)),
                "difference": interval.mean, "low": interval.low, "high": interval.high,
                "change_minus_erm": part["kept"].mean(), "domains": interval.n,
                "p": interval.p,
            }
        )  # fmt: skip
    tests = pd.DataFrame(found)
    higher = tests["metric"].map(better_higher).to_numpy()
    order = tests["difference"].where(~higher, -tests["difference"])
    tests = _concluded(tests.assign(order=order), "difference", ("lower", "higher"))
    return tests.sort_values([*KEYS, "order"], kind="stable").drop(columns="order")


def diagnoses(results: Results) -> pd.DataFrame:
    """What the changes of the first seed are due to, in every domain, the largest change first."""
    rows = results.with_facets(results.diagnosis, ["data", "trained_on"], {"data": "dataset"})
    rows = rows.assign(change=rows["elsewhere"] - rows["at_home"])
    parts = ["due_to_x", "due_to_y_given_x", "due_to_mix"]
    shown = [
        "data", "trained_on", "domain", "method", "attribute", "metric", "at_home", "elsewhere",
        "change", *parts, "left_out", "auc", "effective_home", "effective_away", "little_overlap",
    ]  # fmt: skip
    return rows.sort_values("change", key=abs, ascending=False, ignore_index=True)[shown]


def gaps(results: Results) -> pd.DataFrame:
    """Signed differences between groups and their change, and gaps at equal numbers of rows.

    ``change`` is that of the signed difference, second group minus first, which small test sets do
    not bias; its interval resamples domains and ``p`` is that of ``over_domains``. ``gap_at_home``
    and ``gap_elsewhere`` are absolute values as test sets of the smaller size would give them, see
    ``gaps.at_equal_sizes``, ``gap_change`` their difference; ``plain_change`` is that of the
    absolute values as they are. ``n_at_home`` and ``n_elsewhere`` are the rows of the smaller group
    (of the class that the rate is of), the median over domains.
    """
    if results.by_domain.empty:
        return pd.DataFrame()
    rows = signed_differences(pd.concat([results.metrics, results.by_domain]))
    home = rows[(rows["shift"] == UNSHIFTED) & (rows["domain"] == "")]
    keys = ["dataset", "method", "trial", "seed", "attribute", "metric", "groups"]
    values = ["value", "variance", "n"]
    both = rows[rows["shift"] != UNSHIFTED].merge(
        home[[*keys, *values]], on=keys, suffixes=("", "_home")
    )
    if both.empty:
        return both
    variances = both["variance_home"].to_numpy(), both["variance"].to_numpy()
    first, second = at_equal_sizes(
        both["value_home"].to_numpy(), both["value"].to_numpy(), variances
    )
    both = both.assign(
        tested_on=both["domain"],
        change=both["value"] - both["value_home"],
        gap_at_home=first,
        gap_elsewhere=second,
        gap_change=second - first,
        plain_change=both["value"].abs() - both["value_home"].abs(),
    )
    both = results.with_facets(both, ["data", "trained_on"], {"data": "dataset"})
    numbers = [
        "value_home", "value", "n_home", "n", "change", "gap_at_home", "gap_elsewhere",
        "gap_change", "plain_change",
    ]  # fmt: skip
    cells = both.groupby([*TRAINING, "groups", "tested_on"], as_index=False, sort=False)[
        numbers
    ].mean()
    found = []
    for names, part in cells.groupby([*KEYS, "method", "groups"], sort=False):
        signed, gap = over_pairs(part, "change"), over_pairs(part, "gap_change")
        found.append(
            {
                **dict(zip([*KEYS, "method", "groups"], names, strict=True)),
                "at_home": part["value_home"].mean(), "elsewhere": part["value"].mean(),
                "change": signed.mean, "low": signed.low, "high": signed.high,
                "gap_at_home": part["gap_at_home"].mean(),
                "gap_elsewhere": part["gap_elsewhere"].mean(),
                "gap_change": gap.mean, "gap_low": gap.low, "gap_high": gap.high,
                "plain_change": part["plain_change"].mean(),
                "n_at_home": part["n_home"].median(), "n_elsewhere": part["n"].median(),
                "domains": signed.n,
                "p": signed.p,
            }
        )  # fmt: skip
    return _concluded(pd.DataFrame(found), "change", ("falls", "rises"))


def robustness(results: Results) -> pd.DataFrame:
    """Effective robustness: scores elsewhere minus what the other methods' line predicts.

    The line is fitted on all other methods, with one slope and an intercept for each pair of
    domains, on the probit scale for proportions and on the raw one for gaps. The mean over pairs
    has an interval that resamples domains; best first. Two other methods at least are needed.
    """
    rows, found = matrix(results), []
    if rows.empty:
        return rows
    rows = rows.dropna(subset=["ours", "at_home"])
    for names, part in rows.groupby(KEYS, sort=False):
        probit = better_higher(names[2])
        pairs = part.groupby(["trained_on", "tested_on"], sort=False).ngroup().to_numpy()
        x, y = part["at_home"].to_numpy(), part["ours"].to_numpy()
        if probit:
            x, y = within(x, part["n_at_home"].to_numpy()), within(y, part["n"].to_numpy())
        for method in part["method"].unique():
            own = (part["method"] == method).to_numpy()
            kept = own & np.isin(pairs, pairs[~own])
            if not kept.any() or part["method"][~own].nunique() < FEWEST_METHODS - 1:
                continue
            line = fitted_line(x[~own], y[~own], pairs[~own], probit)
            above = part["ours"][kept] - line.at(x[kept], pairs[kept])
            interval = over_pairs(part[kept].assign(above=above), "above")
            found.append(
                {
                    **dict(zip(KEYS, names, strict=True)),
                    "method": method, "effective_robustness": interval.mean,
                    "low": interval.low, "high": interval.high, "slope": line.slope,
                    "at_home": x[kept].mean(), "elsewhere": y[kept].mean(),
                    "domains": interval.n,
                    "better": -interval.mean if probit else interval.mean,
                }
            )  # fmt: skip
    if not found:
        return pd.DataFrame()
    return pd.DataFrame(found).sort_values([*KEYS, "better"], kind="stable").drop(columns="better")


def curves(results: Results) -> pd.DataFrame:
    """Scores over ordered domains: the matrix with the distance from the last one trained on.

    ``trained_until`` is that domain, ``lag`` how many domains later the test rows are.
    """
    cells, column = results.cells, FACET + UNTIL
    rows = matrix(results)
    if rows.empty or column not in cells:
        return pd.DataFrame()
    ordered = cells[cells[column].notna() & (cells[column] != "")]
    starts = ordered.rename(
        columns={FACET + "data": "data", FACET + "trained_on": "trained_on", column: UNTIL}
    )[["data", "trained_on", UNTIL]].drop_duplicates()
    found = rows.merge(starts, on=["data", "trained_on"])
    if found.empty:
        return pd.DataFrame()
    parts = []
    for data, own in found.groupby("data", sort=False):
        # every domain but the last one is the end of a training
        names = dict.fromkeys([*starts[UNTIL][starts["data"] == data], *own["tested_on"]])
        place = {name: number for number, name in enumerate(names)}
        lag = own["tested_on"].map(place) - own[UNTIL].map(place)
        parts.append(own.assign(lag=lag))
    return pd.concat(parts).sort_values(
        [*KEYS, "method", UNTIL, "lag"], kind="stable", ignore_index=True
    )


def shares(results: Results) -> pd.DataFrame:
    """Label shift and group shift: the largest change of a share first, tested (Holm)."""
    rows = results.with_facets(results.shares, ["data", "trained_on"], {"data": "dataset"})
    rows = _concluded(rows, "change", ("falls", "rises")).drop(columns="needed_domains")
    shown = [
        "data", "trained_on", "domain", "attribute", "group", "label", "says", "at_home",
        "elsewhere", "change", "low", "high", "estimated", "rows_home", "rows_away", "p", "p_holm",
    ]  # fmt: skip
    return rows.sort_values("change", key=abs, ascending=False, ignore_index=True)[shown]


def domain_columns(results: Results) -> pd.DataFrame:
    """How far each domain differs in all columns, and the columns that tell it best."""
    # a domain is compared once for all methods, whose facets of domains are the same
    methods = results.cells.drop_duplicates("dataset").set_index("dataset")["method"]
    rows = results.domain_columns.assign(method=results.domain_columns["dataset"].map(methods))
    rows = results.with_facets(rows, ["data", "trained_on"], {"data": "dataset"})
    shown = [
        "data", "trained_on", "domain", "column", "auc", "names_domain", "p", "effective_home",
        "effective_away",
    ]  # fmt: skip
    rows = rows.assign(column=rows["column"].replace("", "all columns"))
    place = rows.groupby(["dataset", "domain"], sort=False).cumcount()
    return rows[(place <= COLUMNS) | rows["names_domain"]][shown].reset_index(drop=True)


def found_regions(results: Results) -> pd.DataFrame:
    """Where in the features a score, or a gap, changes: by the end of the interval nearer to 0."""
    rows = results.with_facets(results.regions, ["data", "trained_on"], {"data": "dataset"})
    known = (rows["low"] > 0) | (rows["high"] < 0)
    direction = np.where(rows["change"] < 0, "falls", "rises")
    shown = [
        "data", "trained_on", "domain", "method", "attribute", "metric", "conditions", "says",
        "at_home", "elsewhere", "change", "low", "high", "rows_home", "rows_away",
    ]  # fmt: skip
    rows = rows.assign(
        says=np.where(known, direction, "cannot tell"),
        least=rows[["low", "high"]].abs().min(axis=1),
    )
    rows["least"] = rows["least"].where(known, -rows["least"])
    return rows.sort_values("least", ascending=False, ignore_index=True)[shown]


def tableshift(results: Results) -> pd.DataFrame:
    """Accuracies that TableShift published beside ours, in and out of distribution.

    Datasets whose facet ``benchmark`` names the published ones are shown. Published intervals are
    those of Clopper and Pearson for one model, ours Student's over seeds.
    """
    theirs = published("tableshift")
    both = pd.concat([results.metrics[results.metrics["domain"] == ""], results.by_domain])
    both = both[(both["metric"] == "accuracy") & (both["group"] == "")]
    both = results.with_facets(
        both[both["shift"].isin(theirs["shift"])], ["benchmark", "algorithm"]
    )
    known = both["benchmark"].isin(theirs["dataset"])
    is_single = (both["shift"] == UNSHIFTED) & (both["domain"] != "")
    keys = ["benchmark", "dataset", "method", "algorithm", "shift"]
    ours = with_intervals(both[known & ~is_single].dropna(subset="value"), "value", keys)
    renamed = theirs.rename(
        columns={
            "dataset": "benchmark", "method": "algorithm", "field": "estimator",
            "value": "published", "low": "published low", "high": "published high",
        }
    )  # fmt: skip
    joined = ours.merge(renamed.drop(columns=["view", "metric", "note"]), on=keys[:1] + keys[3:])
    return joined.assign(
        overlap=(joined["low"] <= joined["published high"])
        & (joined["published low"] <= joined["high"])
    ).drop(columns=["benchmark", "algorithm"])


def over_pairs(rows: pd.DataFrame, value: str) -> OverDomains:
    """Mean of a column over sources and targets, with an interval that resamples domains."""
    return over_domains(rows.pivot_table(index="trained_on", columns="tested_on", values=value))


def _outside(results: Results) -> pd.DataFrame:
    """Scores of rows of other domains with the one at home, of one trial and one attribute."""
    alone = results.by_domain
    if alone.empty:
        return pd.DataFrame()
    overall = results.metrics[results.metrics["dataset"].isin(alone["dataset"])]
    overall = overall[overall["shift"] == UNSHIFTED]
    other = alone[alone["shift"] != UNSHIFTED]
    keys = ["dataset", "method", "trial", "seed", "attribute", "metric"]
    found = []
    for name in MEASURES:
        home = compared(overall, name).rename(columns={"value": "at_home", "n": "n_at_home"})
        both = compared(other, name).merge(home[[*keys, "at_home", "n_at_home"]], on=keys)
        found.append(both.assign(change=both["value"] - both["at_home"]))
    rows = pd.concat(found).rename(columns={"domain": "tested_on"})
    return results.with_facets(rows, ["data", "trained_on"], {"data": "dataset"})


def _concluded(tests: pd.DataFrame, effect: str, words: tuple[str, str]) -> pd.DataFrame:
    """Tests with p-values adjusted for their number (Holm), and what each one says."""
    p_holm = adjusted(tests["p"])
    direction = np.where(tests[effect] < 0, *words)
    return tests.assign(
        p_holm=p_holm,
        says=np.where(p_holm < LEVEL, direction, "cannot tell"),
        needed_domains=needed_domains(int(p_holm.count()), LEVEL),
    )


VIEWS = (
    View("natural_changes", changes),
    View("natural_gaps", gaps),
    View("natural_against_erm", against_erm),
    View("natural_robustness", robustness),
    View("natural_matrix", matrix, draw_matrix),
    View("natural_curves", curves, draw_curves),
    View("natural_scatter", matrix, draw_scatter),
    View("natural_columns", domain_columns, needs=("domain_columns",)),
    View("natural_shares", shares, needs=("shares",)),
    View("natural_diagnosis", diagnoses, needs=("diagnosis",)),
    View("natural_regions", found_regions, needs=("regions",)),
    View("natural_tableshift", tableshift),
)
SECTION = Section("Natural shift", VIEWS)
