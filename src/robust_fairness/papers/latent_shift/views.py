"""Views and claims of "Control+Shift", shifts of known severity from a latent space.

Friedman and Chowers. A dataset belongs here if it has test sets of a latent shift. Facets of a
dataset: ``study``, the dataset whose test sets it shares, and ``training_set``, ``large`` (twice as
many rows) or ``full`` (rows of the whole latent space) if it is not the standard one. Facets of a
cell: ``classifier`` and ``augmentation``.

Severities are angles in degrees or the radius R. The unshifted test set is at angle 0, where the
training set is; a training set of the whole latent space has no angle, and the R of a training set
is not in the table of scores, so that these lines rest on shifted test sets only.
"""

from collections.abc import Callable, Sequence
from dataclasses import astuple
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from robust_fairness.bench.maths import robustness_slope
from robust_fairness.core.rendering.figures import drawn
from robust_fairness.numbers.estimate import covariance_of_copies, small_covariance, wilson_interval
from robust_fairness.report.claims.row_variances import of_small
from robust_fairness.report.results import UNSHIFTED, Results, computed_once, where
from robust_fairness.report.statistics import with_intervals
from robust_fairness.report.views import About, published

PAPER = "latent_shift"
EXTEND, OVERLAP, TRUNCATION = "extend", "overlap", "truncation"
AXES = {EXTEND: "angle", OVERLAP: "angle", TRUNCATION: "R"}
ABOUT = About(tables=("generator_quality",), shifts=AXES)
LARGE, FULL = "large", "full"
TRAINING_SETS = {"": "standard", LARGE: "twice as large", FULL: "full support"}
WITH, WITHOUT = "with augmentation", "without augmentation"
NOT_RUN = "not run"
NET = ", net of the reference classifier"
LINEAR = "distance"
FUNCTIONS: dict[str, Callable[[pd.Series], pd.Series]] = {  # of the 1-NN distance
    LINEAR: lambda distance: distance,
    "its square": np.square,
    "its square root": np.sqrt,
    "its logarithm": np.log,
}
CELL = ["dataset", "shift", "method", "network", "augmentation"]
FACETS = ["study", "training_set", "classifier"]
LINE = ["dataset", "shift", "space", "augmentation"]  # of Figure 6
SLOPE = {
    **dict.fromkeys(("slope", "low", "high", "intercept", "R squared"), "float64"),
    **{"points": "int64", "units": "int64", "note": "str"},
}


@computed_once
def accuracies(results: Results) -> pd.DataFrame:
    """Accuracy of every replica on every test set of a latent shift and on the unshifted one.

    Columns: ``CELL``, ``FACETS``, seed, severity (of the shift), position (of the test set on the
    axis of the severity; missing for an unshifted set without a position), accuracy, unshifted,
    change, n. The unshifted set is among the test sets of every shift, with a missing severity.
    """
    rows = where(results.scores, metric="accuracy", attribute="", group="", trial="default")
    rows = rows[rows["value"].notna()]
    replica = ["dataset", "method", "network", "seed"]
    unshifted = where(rows, shift=UNSHIFTED)[[*replica, "value", "n"]]
    shifted = where(rows, shift=AXES)[[*replica, "shift", "severity", "value", "n"]]
    shifted = shifted.merge(
        unshifted.rename(columns={"value": "unshifted", "n": "n_unshifted"}), on=replica
    )
    otherwise = {"study": "dataset", "classifier": "method"}
    shifted = results.with_facets(shifted, [*FACETS, "augmentation"], otherwise)
    shifted["augmentation"] = np.where(shifted["augmentation"] == "", WITHOUT, WITH)
    at_zero = (shifted["shift"].map(AXES) == "angle") & (shifted["training_set"] != FULL)
    origins = shifted.drop_duplicates([*replica, "shift"])
    origins = origins.assign(
        severity=np.nan,
        value=origins["unshifted"],
        n=origins["n_unshifted"],
        position=np.where(at_zero[origins.index], 0.0, np.nan),
    )
    # a test set at angle 0 is the unshifted one again
    shifted = shifted[~(at_zero & (shifted["severity"] == 0))]
    result = pd.concat([origins, shifted.assign(position=shifted["severity"])])
    result = result.rename(columns={"value": "accuracy"})
    result["change"] = result["accuracy"] - result["unshifted"]  # Delta-accuracy (4.2)
    result = result.sort_values([*CELL, "seed", "position"], kind="stable", ignore_index=True)
    numbers = ["seed", "severity", "position", "accuracy", "unshifted", "change", "n"]
    return result[[*CELL, *FACETS, *numbers]]


def standard(results: Results, **values: str) -> pd.DataFrame:
    """Accuracies with the standard training set that have these values in their columns."""
    return where(accuracies(results), training_set="", **values)


def curves(rows: pd.DataFrame, value: str, keys: Sequence[str] = CELL) -> pd.DataFrame:
    """A row for every point of every curve, in order of the severity; see ``with_intervals``."""
    rows = rows[rows["position"].notna()].drop(columns="severity")
    return with_intervals(rows.rename(columns={"position": "severity"}), value, [*keys, "severity"])


def strongest(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the test set of the largest severity of every dataset and shift."""
    largest = rows.groupby(["dataset", "shift"])["severity"].transform("max")
    return rows[rows["severity"] == largest]


def figure_1(results: Results) -> pd.DataFrame:
    """Accuracy at the largest severity and on the unshifted set, one row per cell and shift."""
    rows = strongest(accuracies(results))
    keys = [*CELL, "severity"]
    shifted = with_intervals(rows, "accuracy", keys).rename(columns={"ours": "shifted"})
    means = rows.groupby(keys, as_index=False, sort=False)["unshifted"].mean()
    return shifted.merge(means, on=keys)


def draw_figure_1(rows: pd.DataFrame, **looks: Any) -> go.Figure:
    """A point per cell; on the dotted line nothing is lost."""
    title = "Accuracy at the largest severity against unshifted accuracy"
    figure = drawn(rows, title, **looks)
    ends = [float(rows[["unshifted", "shifted"]].min().min()), 1.0]
    for x, y in dict.fromkeys((trace.xaxis, trace.yaxis) for trace in figure.data):
        line = {"dash": "dot", "color": "grey"}
        figure.add_scatter(
            x=ends, y=ends, mode="lines", line=line, showlegend=False, xaxis=x, yaxis=y
        )
    return figure


def standard_curves(results: Results, value: str, **values: str) -> pd.DataFrame:
    """``curves`` of the cells with the standard training set."""
    return curves(standard(results, **values), value)


def figure_4(results: Results) -> pd.DataFrame:
    """Accuracy by angle of the extend shift, of classifiers with and without augmentation."""
    return curves(paired(standard(results, shift=EXTEND)), "accuracy", [*CELL, "classifier"])


def paired(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of classifiers that were trained with and without augmentation on a dataset."""
    both = rows.groupby(["dataset", "classifier"])["augmentation"].transform("nunique")
    return rows[both > 1]


def drop(results: Results) -> pd.DataFrame:
    """Delta-accuracy at the largest angle of extend; the paper's number is of augmented cells."""
    rows = strongest(standard(results, shift=EXTEND))
    ours = with_intervals(rows, "change", [*CELL, "severity"])
    theirs = where(published(PAPER), view="drop")
    augmented = ours["augmentation"] == WITH
    value, note = float(theirs["value"].item()), str(theirs["note"].item())
    return ours.assign(
        published=np.where(augmented, value, np.nan), note=np.where(augmented, note, "")
    )


def slope_by_accuracy(rows: pd.DataFrame) -> pd.DataFrame:
    """Robustness slope against the severity, and unshifted accuracy, of every cell."""
    result = fitted(rows, CELL)[[*CELL, "slope", "low", "high", "units"]]
    means = with_intervals(rows.drop_duplicates([*CELL, "seed"]), "unshifted", CELL)
    means = means[[*CELL, "ours"]].rename(columns={"ours": "unshifted"})
    return means.merge(result.rename(columns={"units": "seeds"}), on=CELL)


def fitted(
    rows: pd.DataFrame, keys: Sequence[str], position: str = "position", unit: str = "seed"
) -> pd.DataFrame:
    """Least-squares lines of Delta-accuracy by a position, by keys: columns keys and ``SLOPE``."""
    result = []
    for names, part in rows.groupby(list(keys), sort=False):
        known = part[part[position].notna()]
        columns = (known[name].to_numpy() for name in (position, "change", unit))
        result.append([*names, *astuple(robustness_slope.fit(*columns))])
    types = {**rows.dtypes[list(keys)], **SLOPE}  # also without rows
    return pd.DataFrame(result, columns=list(types)).astype(types)


def figure_4_slopes(results: Results) -> pd.DataFrame:
    """Slope against test accuracy of the cells of Figure 4."""
    return slope_by_accuracy(paired(standard(results, shift=EXTEND)))


def by_training_set(results: Results) -> pd.DataFrame:
    """Rows of the overlap shift of cells without augmentation that have several training sets."""
    rows = where(accuracies(results), shift=OVERLAP, augmentation=WITHOUT)
    several = rows.groupby(["study", "method"])["training_set"].transform("nunique")
    return rows[several > 1]


def figure_5_training_sets(results: Results) -> pd.DataFrame:
    """Delta-accuracy by angle of overlap, for the sizes and supports of the training set."""
    rows = by_training_set(results)
    rows = rows.assign(
        **{"dataset": rows["study"], "training set": rows["training_set"].map(TRAINING_SETS)}
    )
    return curves(rows, "change", ["dataset", "method", "network", "training set"])


def figure_5_slopes(results: Results) -> pd.DataFrame:
    """Slope against test accuracy of the cells of the other two parts of Figure 5."""
    further = by_training_set(results)
    usual = standard(results, shift=OVERLAP, augmentation=WITHOUT)
    rows = pd.concat([usual, further[further["training_set"] != ""]])
    return slope_by_accuracy(rows.sort_index())


def with_distances(results: Results) -> pd.DataFrame:
    """Accuracies with columns ``space`` and ``distance``, one row for every space.

    Test sets without a distance are left out.
    """
    rows, distances = accuracies(results), results.distances.drop(columns="n")
    unshifted = distances["shift"] == UNSHIFTED
    at_origin = rows["severity"].isna()
    joined = pd.concat(
        [
            rows[at_origin].merge(
                distances[unshifted].drop(columns=["shift", "severity"]), on="dataset"
            ),
            rows[~at_origin].merge(distances[~unshifted], on=["dataset", "shift", "severity"]),
        ],
        ignore_index=True,
    )
    return joined.rename(columns={"value": "distance"})


def figure_6(results: Results) -> pd.DataFrame:
    """Delta-accuracy and 1-NN distance of every cell and test set, and the line through them.

    A line is fitted to all cells with, or without, augmentation of a dataset and shift.
    """
    rows = where(with_distances(results), training_set="")
    points = with_intervals(rows, "change", [*CELL, "space", "severity", "distance"])
    pooled = fitted(rows, LINE, "distance", "method")[[*LINE, "slope", "intercept"]]
    points = points.merge(pooled, how="left", on=LINE)
    on_line = points["intercept"] + points["slope"] * points["distance"]
    points = points.drop(columns=["slope", "intercept"]).assign(fitted=on_line)
    return points.sort_values([*LINE, "distance"], kind="stable", ignore_index=True)


def draw_figure_6(rows: pd.DataFrame, **looks: Any) -> go.Figure:
    """Circles and a solid line without augmentation, crosses and a dashed one with it."""
    title = "Delta-accuracy against 1-NN distance"
    looks |= {"x": "distance", "category_orders": {"augmentation": [WITHOUT, WITH]}}
    figure = drawn(
        rows, title, "scatter", apart=True, hover_name="method", hover_data=["severity", "seeds"],
        symbol_sequence=["circle", "x"], **looks,
    )  # fmt: skip
    fits = drawn(
        rows.drop(columns=["low", "high"]), title, y="fitted", markers=False, symbol=None,
        line_dash="augmentation", line_dash_sequence=["solid", "dash"], **looks,
    )  # fmt: skip
    figure.add_traces([trace.update(showlegend=False) for trace in fits.data])
    return figure


def net_of_reference(results: Results, rows: pd.DataFrame) -> pd.DataFrame:
    """Accuracies with a change that leaves out what the reference classifier loses as well.

    That classifier is trained on real images: what it loses under a shift may be labels that the
    generated images do not show.
    """
    reference = results.generator_quality[["dataset", "shift", "severity", "accuracy", "rows"]]
    error = of_small(reference["accuracy"].to_numpy(), reference.pop("rows").to_numpy())
    reference = reference.assign(error=error)
    home = where(reference, shift=UNSHIFTED)[["dataset", "accuracy", "error"]]
    lost = reference.merge(home, on="dataset", suffixes=("", "_home"))
    lost = lost.assign(
        lost=lost["accuracy_home"] - lost["accuracy"],
        lost_variance=lost["error_home"] + lost["error"],
    )
    result = rows.merge(
        lost[["dataset", "shift", "severity", "lost", "lost_variance"]],
        how="left",
        on=["dataset", "shift", "severity"],
    )
    result["lost"] = result["lost"].mask(result["severity"].isna(), 0.0)
    result["change"] += result["lost"]
    return result[result["lost"].notna() & result["dataset"].isin(home["dataset"])]


def linearity(results: Results) -> pd.DataFrame:
    """R squared of the lines of Figure 6 in the distance and in other monotone functions of it.

    A curve that falls has a high R squared in many of them: only a difference speaks for one.
    """
    rows = where(with_distances(results), training_set="")
    result = []
    for name, function in FUNCTIONS.items():
        lines = fitted(rows.assign(distance=function(rows["distance"])), LINE, "distance", "method")
        result.append(
            lines.assign(**{"linear in": name})[[*LINE, "linear in", "R squared", "points"]]
        )
    return pd.concat(result, ignore_index=True).sort_values(LINE, kind="stable")


def slopes(results: Results) -> pd.DataFrame:
    """Every line: of every cell against the severity and each distance, and those of Figure 6.

    Against the severity also net of the reference classifier.
    """
    rows, measured = accuracies(results), with_distances(results)
    forms = {"": rows, NET: net_of_reference(results, rows)}
    lines = [fitted(form, CELL).assign(form=name) for name, form in forms.items()]
    by_severity = pd.concat(lines, ignore_index=True)
    by_severity["against"] = by_severity["shift"].map(AXES) + by_severity.pop("form")
    of_cells = fitted(measured, [*CELL, "space"], "distance")
    pooled = fitted(where(measured, training_set=""), LINE, "distance", "method")
    pooled = pooled.assign(method="all cells", network="")
    by_distance, pooled = (
        match.assign(against="1-NN distance, " + match["space"]) for match in (of_cells, pooled)
    )
    known = pd.MultiIndex.from_frame(measured[CELL])
    cells = by_severity[CELL].drop_duplicates()
    missing = cells[~pd.MultiIndex.from_frame(cells).isin(known)]
    missing = missing.assign(against="1-NN distance", points=0, units=0, note=NOT_RUN)
    cells = pd.concat([by_severity, by_distance, missing]).sort_values(CELL, kind="stable")
    columns = [*CELL, "against", *SLOPE]
    return pd.concat([cells, pooled], ignore_index=True)[columns]


def distances_of_test_sets(results: Results) -> pd.DataFrame:
    """1-NN distance of the test sets of latent shifts, also minus that of the unshifted one."""
    metrics, distances = results.metrics, results.distances
    rows = where(metrics, shift=AXES)
    keys = ["dataset", "shift", "severity"]
    subset = where(metrics, dataset=rows["dataset"], shift=UNSHIFTED)
    sets = pd.concat([subset, rows])[keys].drop_duplicates()
    origin = where(distances, shift=UNSHIFTED)[["dataset", "space", "value"]]
    result = sets.merge(distances, how="left", on=keys).merge(
        origin.rename(columns={"value": "origin"}), how="left", on=["dataset", "space"]
    )
    result = result.rename(columns={"value": "1-NN distance", "n": "rows"})
    return result.assign(
        **{"above the unshifted set": result["1-NN distance"] - result["origin"]},
        space=result["space"].fillna(""),
        rows=result["rows"].fillna(0).astype(int),
        note=np.where(result["1-NN distance"].isna(), NOT_RUN, ""),
    ).sort_values(["dataset", "space", "shift", "severity"], kind="stable", ignore_index=True)


def quality(results: Results) -> pd.DataFrame:
    """Accuracy of classifiers of real rows on generated rows, with Wilson's interval."""
    rows = results.generator_quality
    low, high = wilson_interval(rows["accuracy"].to_numpy(), rows["rows"].to_numpy())
    return rows.assign(low=low, high=high)


def measured(results: Results) -> pd.DataFrame:
    """What claims are about, by replica, without augmentation unless the method's name has it.

    ``unshifted``, the accuracy without shift; ``change_at_largest``, that at the largest severity
    minus it; ``net_change_at_largest``, plus what the classifier of real images loses; ``fall``,
    the slope by severity times the range of the severities; ``linearity`` of a dataset and shift by
    seed and space: R squared of the line through all classifiers without augmentation in the 1-NN
    distance minus the largest in another function of it.
    """
    rows = accuracies(results)
    rows = rows.assign(
        error=of_small(rows["accuracy"].to_numpy(), rows["n"].to_numpy()),
        by_row=_correct(results, rows),
    )
    origins = rows[rows["severity"].isna()]
    keys = ["dataset", "shift", "method", "seed"]
    changes = strongest(rows).merge(
        origins[[*keys, "error", "by_row"]], on=keys, suffixes=("", "_home")
    )
    together = small_covariance(
        changes["unshifted"], changes["accuracy"], _covariance(results, changes), changes["n"]
    )
    # rows of the reference classifier are not paired with those of others
    net = net_of_reference(results, changes.drop(columns=["by_row", "by_row_home"]))
    variance = net["error"] + net["error_home"] + net["lost_variance"]
    parts = [
        origins.drop_duplicates(["dataset", "method", "seed"]).assign(
            metric="unshifted", value=origins["accuracy"], variance=origins["error"]
        ),
        changes.assign(
            metric="change_at_largest",
            value=changes["change"],
            variance=changes["error"] + changes["error_home"] - 2 * np.nan_to_num(together),
            by_row=changes["by_row"] - changes["by_row_home"],
        ),
        net.assign(metric="net_change_at_largest", value=net["change"], variance=variance),
        _falls(rows, keys),
        _linearity_by_seed(results),
    ]
    return pd.concat(parts, ignore_index=True).assign(trial="default", group="")


def _correct(results: Results, rows: pd.DataFrame) -> pd.Series:
    """1.0 for every test row whose class is predicted, as arrays; missing where it is not known."""
    place = rows[["dataset", "method", "seed", "shift", "severity"]]
    home = place["severity"].isna()
    place = place.assign(shift=place["shift"].mask(home, UNSHIFTED)).fillna({"severity": 0.0})
    known = where(results.correct, trial="default").astype(place.dtypes)
    correct = place.merge(known, how="left")["correct"].set_axis(rows.index)
    return correct.map(lambda of_rows: np.asarray(of_rows, np.float64), na_action="ignore")


def _covariance(results: Results, rows: pd.DataFrame) -> np.ndarray:
    """Covariance of the accuracy with that of the same test rows before the shift, from counts."""
    keys = ["dataset", "method", "seed", "shift", "severity"]
    counts = where(results.counts, trial="default", attribute="", domain="")
    counts = counts[counts["before"] >= 0]
    codes = ["label", "before", "decision"]
    classes = int(counts[codes].to_numpy().max(initial=0)) + 1
    known = counts.groupby(keys, sort=False).ngroup()
    n = np.zeros((known.nunique(), 1, classes, classes, classes))
    np.add.at(n, (known, 0, *counts[codes].to_numpy().T), counts["n"])
    places = counts[keys].drop_duplicates()
    covariance = covariance_of_copies(n, np.eye(classes))[:, 0]
    return rows[keys].merge(places.assign(value=covariance), how="left")["value"].to_numpy()


def _falls(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """The slope of every replica times the range of the severities of its shift.

    Test sets have the same rows: their errors count as equal where weights have one sign, and are
    not set off against those of the other sign.
    """
    result = []
    for names, part in rows[rows["position"].notna()].groupby(list(keys), sort=False):
        position, least = part["position"].to_numpy(), part["severity"].min()
        span = part["severity"].max() - (0 if AXES[str(names[1])] == "angle" else least)
        weight = position - position.mean()
        weight = span * weight / (weight @ weight)
        error = weight * np.sqrt(part["error"].to_numpy())
        variance = error[error > 0].sum() ** 2 + error[error < 0].sum() ** 2
        by_row = reduce(add, map(mul, weight, part["by_row"]))
        result.append([*names, weight @ part["accuracy"].to_numpy(), variance, by_row])
    columns = [*keys, "value", "variance", "by_row"]
    return pd.DataFrame(result, columns=columns).assign(metric="fall")


def _linearity_by_seed(results: Results) -> pd.DataFrame:
    rows = where(with_distances(results), training_set="", augmentation=WITHOUT)
    keys = ["dataset", "shift", "space", "seed"]
    forms = [
        fitted(rows.assign(distance=function(rows["distance"])), keys, "distance", "method")
        .set_index(keys)["R squared"]
        .rename(name)
        for name, function in FUNCTIONS.items()
    ]
    wide = pd.concat(forms, axis=1)
    others = wide[[name for name in wide if name != LINEAR]].max(axis=1)
    value = (wide[LINEAR] - others).rename("value").reset_index()
    return value.assign(metric="linearity", method="", variance=np.nan)
