"""Views and claims of "Control+Shift", shifts of known strength from a latent space.

Friedman and Chowers. A dataset belongs here if it has test sets of a latent shift. Cells are
labelled by their network, with the ending ``_randaugment`` where training rows are augmented.
Datasets ending in ``_large`` have twice the training rows, those in ``_full`` training rows of the
whole latent space; both have the test sets of the dataset without the ending.

Strengths are angles in degrees or the radius R. The unshifted test set is at angle 0, where the
training set is; a training set of the whole latent space has no angle, and the R of a training set
is not in the table of scores, so that these lines rest on shifted test sets alone.
"""

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from robust_fairness.core.intervals import mean_interval, wilson_interval
from robust_fairness.metrics import robustness_slope
from robust_fairness.rendering.figures import COLOURS, by_column
from robust_fairness.reporting import claims as claimed
from robust_fairness.reporting.statistics import distinct
from robust_fairness.reporting.views import View, published

PAPER = "latent_shift"
TITLE = "Control+Shift"
EXTEND, OVERLAP, TRUNCATION = "extend", "overlap", "truncation"
STRENGTHS = {EXTEND: "angle", OVERLAP: "angle", TRUNCATION: "R"}
AUGMENTED = "_randaugment"
LARGE, FULL = "_large", "_full"
TRAINING_SETS = {LARGE: "twice as large", FULL: "full support"}
STANDARD = "standard"
WITH, WITHOUT = "with augmentation", "without augmentation"
# Weak to strong, and what Figure 5 compares them with (4.2.3).
WEAKER_BIASES = ("rbf_svm", "mlp_mixer", "vision_transformer")
STRONGEST_BIAS = "resnet20"
NOT_RUN = "not run"
CELL = ["dataset", "shift", "method", "network", "augmentation"]
CURVE = [*CELL, "seed"]
SLOPE = ["slope", "low", "high", "intercept", "R squared", "points", "units", "note"]


def accuracies(metrics: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of every replica on every test set of a latent shift, and on the unshifted one.

    Columns dataset, shift, method, network, augmentation, seed, severity (of the shift), position
    (where the test set stands on the axis of the strength; missing for an unshifted set that has
    no place there), accuracy, unshifted, change. The unshifted set stands among the test sets of
    every shift, with a missing severity.
    """
    rows = distinct(metrics)
    rows = rows[
        (rows["metric"] == "accuracy")
        & (rows["attribute"] == "")
        & (rows["group"] == "")
        & (rows["trial"] == "default")
        & rows["value"].notna()
    ]
    replica = ["dataset", "method", "network", "seed"]
    unshifted = rows[rows["shift"] == "none"][[*replica, "value"]]
    shifted = rows[rows["shift"].isin(STRENGTHS)][[*replica, "shift", "severity", "value"]]
    shifted = shifted.merge(unshifted.rename(columns={"value": "unshifted"}), on=replica)
    shifted["position"] = shifted["severity"]
    at_zero = pd.Series(
        [has_place(*pair) for pair in zip(shifted["dataset"], shifted["shift"], strict=True)],
        shifted.index,
        dtype=bool,
    )
    origins = shifted.drop_duplicates([*replica, "shift"]).assign(severity=np.nan)
    origins["value"] = origins["unshifted"]
    origins["position"] = np.where(at_zero[origins.index], 0.0, np.nan)
    # a test set at angle 0 is the unshifted one again
    found = pd.concat([origins, shifted[~(at_zero & (shifted["severity"] == 0))]])
    change = robustness_slope.change_of_accuracy(
        found["value"].to_numpy(), found["unshifted"].to_numpy()
    )
    augmented = found["method"].str.endswith(AUGMENTED)
    found = found.rename(columns={"value": "accuracy"}).assign(
        change=change, augmentation=np.where(augmented, WITH, WITHOUT)
    )
    columns = [*CURVE, "severity", "position", "accuracy", "unshifted", "change"]
    return found.sort_values([*CURVE, "position"], kind="stable", ignore_index=True)[columns]


def has_place(dataset: str, shift: str) -> bool:
    """Whether the unshifted test set stands at strength 0 of the shift."""
    return STRENGTHS[shift] == "angle" and not dataset.endswith(FULL)


def summarised(rows: pd.DataFrame, of: str, keys: list[str]) -> pd.DataFrame:
    """Mean over seeds with its interval (Student's t): the keys, ours, low, high, seeds."""
    found = []
    for names, part in rows.groupby(keys, sort=False, dropna=False):
        interval = mean_interval(part[of].to_numpy())
        found.append([*names, interval.mean, interval.low, interval.high, interval.n])
    numbers = {"ours": "float64", "low": "float64", "high": "float64", "seeds": "int64"}
    kinds = {**rows.dtypes[keys], **numbers}  # also where there is no row
    return pd.DataFrame(found, columns=list(kinds)).astype(kinds)


def curves(rows: pd.DataFrame, of: str) -> pd.DataFrame:
    """A row for every point of every curve, in order of the strength; see ``summarised``."""
    rows = rows[rows["position"].notna()].drop(columns="severity")
    return summarised(rows.rename(columns={"position": "severity"}), of, [*CELL, "severity"])


def strongest(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the strongest test set of every dataset and shift."""
    largest = rows.groupby(["dataset", "shift"])["severity"].transform("max")
    return rows[rows["severity"] == largest]


def of_standard(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of datasets that have neither twice the training rows nor all latent space."""
    return rows[~rows["dataset"].str.endswith((LARGE, FULL))]


def figure_1(metrics: pd.DataFrame) -> pd.DataFrame:
    """Accuracy on the strongest shifted set and on the unshifted one, a row a cell and shift."""
    rows = strongest(accuracies(metrics))
    keys = [*CELL, "severity"]
    shifted = summarised(rows, "accuracy", keys).rename(columns={"ours": "shifted"})
    means = rows.groupby(keys, as_index=False, sort=False)["unshifted"].mean()
    return shifted.merge(means, on=keys)[
        [*keys, "unshifted", "shifted", "low", "high", "seeds"]
    ].reset_index(drop=True)


def draw_figure_1(rows: pd.DataFrame) -> go.Figure:
    """A point a cell; on the dotted line nothing is lost."""
    figure = px.scatter(
        _panelled(rows), x="unshifted", y="shifted", facet_col="panel", facet_col_wrap=3,
        hover_name="method", hover_data=["severity", "seeds"], **_bars(rows, "shifted"),
        **by_column("augmentation"),
    )  # fmt: skip
    ends = [float(rows[["unshifted", "shifted"]].min().min()), 1.0]
    for x, y in dict.fromkeys((trace.xaxis, trace.yaxis) for trace in figure.data):
        line = {"dash": "dot", "color": "grey"}
        figure.add_scatter(
            x=ends, y=ends, mode="lines", line=line, showlegend=False, xaxis=x, yaxis=y
        )
    return _titled(figure, "Accuracy under the strongest shift against unshifted accuracy", rows)


def figure_3(metrics: pd.DataFrame) -> pd.DataFrame:
    """Accuracy by strength of the shift, all datasets of the standard training set."""
    return curves(of_standard(accuracies(metrics)), "accuracy")


def draw_figure_3(rows: pd.DataFrame) -> go.Figure:
    """A panel a dataset and shift, a line a network, dashed where it is augmented."""
    return _lines(rows, "Accuracy by strength of the shift", line_dash="augmentation")


def figure_4(metrics: pd.DataFrame) -> pd.DataFrame:
    """Accuracy by angle of the extend shift, of networks with and without augmentation."""
    rows = of_standard(accuracies(metrics))
    rows = paired(rows[rows["shift"] == EXTEND])
    return curves(rows, "accuracy")


def paired(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of cells that exist with and without augmentation on a dataset."""
    plain = rows["method"].str.removesuffix(AUGMENTED)
    both = rows.groupby([rows["dataset"], plain])["augmentation"].transform("nunique")
    return rows[both > 1]


def draw_figure_4(rows: pd.DataFrame) -> go.Figure:
    """A panel without and one with augmentation for every dataset."""
    shown = rows.assign(
        method=rows["method"].str.removesuffix(AUGMENTED),
        panel=rows["dataset"] + ", " + rows["augmentation"],
    )
    return _lines(shown.sort_values("panel", kind="stable"), "Accuracy by angle (extend)")


def drop(metrics: pd.DataFrame) -> pd.DataFrame:
    """Delta-accuracy at the largest angle of extend; the paper's number is of augmented cells."""
    rows = strongest(of_standard(accuracies(metrics)).query("shift == @EXTEND"))
    ours = summarised(rows, "change", [*CELL, "severity"])
    theirs = published(PAPER).query("view == 'drop'")
    augmented = ours["augmentation"] == WITH
    value, note = float(theirs["value"].item()), str(theirs["note"].item())
    return ours.assign(
        published=np.where(augmented, value, np.nan), note=np.where(augmented, note, "")
    )


def slope_by_accuracy(rows: pd.DataFrame) -> pd.DataFrame:
    """Robustness slope against the strength, and unshifted accuracy, of every cell."""
    found = []
    for names, part in rows.groupby(CELL, sort=False):
        placed = part[part["position"].notna()]
        line = slope_of(placed, "position", "seed")
        accuracy = part.drop_duplicates("seed")["unshifted"].mean()
        found.append([*names, accuracy, line["slope"], line["low"], line["high"], line["units"]])
    columns = [*CELL, "unshifted", "slope", "low", "high", "seeds"]
    return pd.DataFrame(found, columns=columns)


def slope_of(rows: pd.DataFrame, strength: str, unit: str) -> dict:
    """Least-squares line of Delta-accuracy by a strength: ``SLOPE``."""
    found = robustness_slope.fit(
        rows[strength].to_numpy(), rows["change"].to_numpy(), rows[unit].to_numpy()
    )
    values = (found.slope, found.low, found.high, found.intercept, found.r_squared)
    return dict(zip(SLOPE, (*values, found.points, found.units, found.note), strict=True))


def figure_4_slopes(metrics: pd.DataFrame) -> pd.DataFrame:
    """Slope against test accuracy of the cells of Figure 4."""
    rows = of_standard(accuracies(metrics))
    return slope_by_accuracy(paired(rows[rows["shift"] == EXTEND]))


def draw_slopes(rows: pd.DataFrame) -> go.Figure:
    """A point a cell."""
    figure = px.scatter(
        _panelled(rows), x="unshifted", y="slope", facet_col="panel", facet_col_wrap=3,
        hover_name="method", hover_data=["seeds"], **_bars(rows, "slope"),
        **by_column("augmentation"),
    )  # fmt: skip
    return _titled(figure, "Robustness slope against test accuracy", rows)


def by_training_set(metrics: pd.DataFrame) -> pd.DataFrame:
    """Rows of the overlap shift of plain cells that were trained on several training sets.

    With the dataset's name without its ending, and a column ``training set``.
    """
    rows = accuracies(metrics)
    rows = rows[(rows["shift"] == OVERLAP) & (rows["augmentation"] == WITHOUT)]
    ending = rows["dataset"].str.extract(f"({LARGE}|{FULL})$")[0]
    rows = rows.assign(
        **{"training set": ending.map(TRAINING_SETS).fillna(STANDARD)},
        dataset=rows["dataset"].str.replace(f"({LARGE}|{FULL})$", "", regex=True),
    )
    several = rows.groupby(["dataset", "method"])["training set"].transform("nunique")
    return rows[several > 1]


def figure_5_training_sets(metrics: pd.DataFrame) -> pd.DataFrame:
    """Delta-accuracy by angle of overlap, for the sizes and supports of the training set."""
    rows = by_training_set(metrics)
    rows = rows[rows["position"].notna()].drop(columns="severity")
    keys = ["dataset", "method", "network", "training set", "severity"]
    return summarised(rows.rename(columns={"position": "severity"}), "change", keys)


def draw_figure_5_training_sets(rows: pd.DataFrame) -> go.Figure:
    """A panel a dataset and network, a line a training set."""
    shown = rows.assign(panel=rows["dataset"] + ", " + rows["method"])
    return _lines(shown, "Delta-accuracy by angle (overlap) and training set", "training set")


def figure_5_biases(metrics: pd.DataFrame) -> pd.DataFrame:
    """Delta-accuracy by angle of overlap, plain cells with the standard training set."""
    rows = of_standard(accuracies(metrics))
    return curves(rows[(rows["shift"] == OVERLAP) & (rows["augmentation"] == WITHOUT)], "change")


def draw_figure_5_biases(rows: pd.DataFrame) -> go.Figure:
    """A line a network."""
    return _lines(rows, "Delta-accuracy by angle (overlap) and network")


def figure_5_slopes(metrics: pd.DataFrame) -> pd.DataFrame:
    """Slope against test accuracy of the cells of the other two parts of Figure 5."""
    rows = accuracies(metrics)
    plain = rows[(rows["shift"] == OVERLAP) & (rows["augmentation"] == WITHOUT)]
    ending = plain["dataset"].str.endswith((LARGE, FULL))
    several = by_training_set(metrics)[["dataset", "method"]].drop_duplicates()
    known = set(several.itertuples(index=False, name=None))
    base = plain["dataset"].str.replace(f"({LARGE}|{FULL})$", "", regex=True)
    compared = [pair in known for pair in zip(base, plain["method"], strict=True)]
    return slope_by_accuracy(plain[~ending | np.array(compared, dtype=bool)])


def with_distances(metrics: pd.DataFrame, distances: pd.DataFrame) -> pd.DataFrame:
    """Accuracies with columns ``space`` and ``distance``, a row for every space.

    Test sets without a distance are left out.
    """
    rows = accuracies(metrics)
    shifted = distances[distances["shift"] != "none"]
    origin = distances[distances["shift"] == "none"].drop(columns=["shift", "severity"])
    keys = ["dataset", "shift", "severity"]
    at_origin = rows["severity"].isna()
    joined = pd.concat(
        [
            rows[at_origin].merge(origin, on="dataset"),
            rows[~at_origin].merge(shifted, on=keys),
        ],
        ignore_index=True,
    )
    return joined.rename(columns={"value": "distance"}).drop(columns="n")


def figure_6(metrics: pd.DataFrame, distances: pd.DataFrame) -> pd.DataFrame:
    """Delta-accuracy and 1-NN distance of every cell and test set, and the line through them.

    A line goes through all cells with, or without, augmentation of a dataset and shift.
    """
    rows = of_standard(with_distances(metrics, distances))
    keys = [*CELL, "space", "severity", "distance"]
    points = summarised(rows, "change", keys)
    of_line = ["dataset", "shift", "space", "augmentation"]
    lines = pooled(rows)[[*of_line, "slope", "intercept"]]
    points = points.merge(lines, how="left", on=of_line)
    fitted = points["intercept"] + points["slope"] * points["distance"]
    points = points.drop(columns=["slope", "intercept"]).assign(fitted=fitted)
    return points.sort_values([*of_line, "distance"], kind="stable", ignore_index=True)


def pooled(rows: pd.DataFrame) -> pd.DataFrame:
    """Lines of Figure 6: through the rows of all cells of a dataset, shift and space."""
    keys = ["dataset", "shift", "space", "augmentation"]
    found = [
        {**dict(zip(keys, names, strict=True)), **slope_of(part, "distance", "method")}
        for names, part in rows.groupby(keys, sort=False)
    ]
    return pd.DataFrame(found, columns=[*keys, *SLOPE])


def draw_figure_6(rows: pd.DataFrame) -> go.Figure:
    """Circles and a solid line without augmentation, crosses and a dashed one with it."""
    rows = _panelled(rows).assign(panel=lambda all_of: all_of["panel"] + ", " + all_of["space"])
    looks = {
        "color": "augmentation",
        "color_discrete_map": {WITHOUT: COLOURS[0], WITH: COLOURS[1]},
        "facet_col": "panel",
        "facet_col_wrap": 3,
    }
    figure = px.scatter(
        rows, x="distance", y="ours", symbol="augmentation", hover_name="method",
        hover_data=["severity", "seeds"], symbol_map={WITHOUT: "circle", WITH: "x"}, **looks,
    )  # fmt: skip
    lines = px.line(
        rows, x="distance", y="fitted", line_dash="augmentation",
        line_dash_map={WITHOUT: "solid", WITH: "dash"}, **looks,
    )  # fmt: skip
    figure.add_traces([trace.update(showlegend=False) for trace in lines.data])
    figure.update_xaxes(matches=None, showticklabels=True)
    return _titled(figure, "Delta-accuracy against 1-NN distance", rows)


def slopes(metrics: pd.DataFrame, distances: pd.DataFrame) -> pd.DataFrame:
    """Every line: of every cell against the strength and each distance, and those of Figure 6."""
    measured = with_distances(metrics, distances)
    found = []
    for names, part in accuracies(metrics).groupby(CELL, sort=False):
        cell = dict(zip(CELL, names, strict=True))
        own = measured[(measured[CELL] == list(names)).all(axis=1)]
        placed = part[part["position"].notna()]
        against = STRENGTHS[str(cell["shift"])]
        found.append({**cell, "against": against, **slope_of(placed, "position", "seed")})
        for space, points in own.groupby("space", sort=False):
            line = slope_of(points, "distance", "seed")
            found.append({**cell, "against": f"1-NN distance, {space}", **line})
        if own.empty:
            missing = {"points": 0, "units": 0, "note": NOT_RUN}
            found.append({**cell, "against": "1-NN distance", **missing})
    lines = pooled(of_standard(measured))
    lines = lines.assign(method="all together", network="", against="1-NN distance, ")
    lines["against"] += lines["space"]
    columns = [*CELL, "against", *SLOPE]
    parts = [pd.DataFrame(found, columns=columns), lines[columns]]
    return pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)


def distances_of_test_sets(metrics: pd.DataFrame, distances: pd.DataFrame) -> pd.DataFrame:
    """Test sets of latent shifts with their 1-NN distance, less that of the unshifted one too."""
    rows = metrics[metrics["shift"].isin(STRENGTHS)]
    keys = ["dataset", "shift", "severity"]
    own = metrics[metrics["dataset"].isin(rows["dataset"]) & (metrics["shift"] == "none")]
    sets = pd.concat([own, rows])[keys].drop_duplicates()
    origin = distances[distances["shift"] == "none"][["dataset", "space", "value"]]
    found = sets.merge(distances, how="left", on=keys).merge(
        origin.rename(columns={"value": "origin"}), how="left", on=["dataset", "space"]
    )
    found = found.rename(columns={"value": "1-NN distance", "n": "rows"})
    return found.assign(
        **{"above the unshifted set": found["1-NN distance"] - found["origin"]},
        space=found["space"].fillna(""),
        rows=found["rows"].fillna(0).astype(int),
        note=np.where(found["1-NN distance"].isna(), NOT_RUN, ""),
    )[[*keys, "space", "1-NN distance", "above the unshifted set", "rows", "note"]].sort_values(
        ["dataset", "space", "shift", "severity"], kind="stable", ignore_index=True
    )


def quality(metrics: pd.DataFrame, generator_quality: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of classifiers of real rows on generated ones, with Wilson's interval."""
    del metrics  # a generator has none
    low, high = wilson_interval(
        generator_quality["accuracy"].to_numpy(), generator_quality["rows"].to_numpy()
    )
    shown = generator_quality.assign(low=low, high=high).rename(
        columns={
            "rows": "generated rows",
            "accuracy": "accuracy on generated rows",
            "real_rows": "real test rows",
            "real_accuracy": "accuracy on real test rows",
        }
    )
    columns = ["generator", "classifier", "generated rows", "accuracy on generated rows"]
    return shown[[*columns, "low", "high", "real test rows", "accuracy on real test rows"]]


def _panelled(rows: pd.DataFrame) -> pd.DataFrame:
    """With a column ``panel``: the dataset, and the shift with what its strength is."""
    if "panel" in rows:
        return rows
    strength = rows["shift"].map(STRENGTHS)
    return rows.assign(panel=rows["dataset"] + ", " + rows["shift"] + " (" + strength + ")")


def _lines(
    rows: pd.DataFrame, title: str, colour: str = "method", line_dash: str | None = None
) -> go.Figure:
    """Panels of lines with the intervals over seeds as bars."""
    rows = _panelled(rows)
    figure = px.line(
        rows, x="severity", y="ours", facet_col="panel", facet_col_wrap=3, markers=True,
        line_dash=line_dash, hover_data=["seeds"], **_bars(rows, "ours"), **by_column(colour),
    )  # fmt: skip
    figure.update_xaxes(matches=None, showticklabels=True)
    return _titled(figure, title, rows)


def _bars(rows: pd.DataFrame, middle: str) -> dict:
    """Distances from the middle to both ends of the interval, for bars; none where missing."""
    return {
        "error_y": (rows["high"] - rows[middle]).to_numpy(),
        "error_y_minus": (rows[middle] - rows["low"]).to_numpy(),
    }


def _titled(figure: go.Figure, title: str, rows: pd.DataFrame) -> go.Figure:
    figure.for_each_annotation(lambda one: one.update(text=one.text.removeprefix("panel=")))
    panels = _panelled(rows)["panel"].nunique()
    return figure.update_layout(
        title=title, template="plotly_white", height=120 + 320 * -(-panels // 3)
    )


VIEWS = [
    View(
        "latent_figure_1",
        "Figure 1, left: accuracy on the shifted against that on the unshifted test set",
        figure_1,
        draw_figure_1,
        note="The paper shows one shifted set of extend without naming its angle; here it is the "
        "strongest of every shift. Bars are 95 % intervals over seeds (Student's t).",
    ),
    View(
        "latent_figure_3",
        "Figure 3: accuracy by strength of the shift",
        figure_3,
        draw_figure_3,
        note="The paper: no network is robust to any of the shifts, and truncation seems to have "
        "the strongest effect (4.1). Angles in degrees. Bars are 95 % intervals over seeds.",
    ),
    View(
        "latent_figure_4",
        "Figure 4: extend, without and with augmentation",
        figure_4,
        draw_figure_4,
        note="The paper: for all networks augmentation raised the baseline accuracy and slowed "
        "the decline (4.2.1).",
    ),
    View(
        "latent_figure_4_slopes",
        "Figure 4, right: robustness slope against test accuracy",
        figure_4_slopes,
        draw_slopes,
        note="The paper: the slope of all networks rose with augmentation (4.2.1). Slopes are "
        "per degree; bars are bootstrap intervals over seeds.",
    ),
    View("latent_drop", "Delta-accuracy at the largest angle of extend", drop),
    View(
        "latent_figure_5_training_sets",
        "Figure 5, left: size and support of the training set",
        figure_5_training_sets,
        draw_figure_5_training_sets,
        note="The paper: ResNet20 on twice as many rows has basically the same robustness, on "
        "all of latent space it is completely robust (4.2.2).",
    ),
    View(
        "latent_figure_5_biases",
        "Figure 5, centre: inductive biases",
        figure_5_biases,
        draw_figure_5_biases,
        note="The paper: a strong inductive bias is crucial; weak to strong are RBF-SVM, "
        "MLP-Mixer, ViT and ResNet20 (4.2.3).",
    ),
    View(
        "latent_figure_5_slopes",
        "Figure 5, right: robustness slope against test accuracy",
        figure_5_slopes,
        draw_slopes,
        note="Slopes are per degree; bars are bootstrap intervals over seeds.",
    ),
    View(
        "latent_figure_6",
        "Figure 6: Delta-accuracy against 1-NN distance",
        figure_6,
        draw_figure_6,
        needs=("distances",),
        note="The paper: Delta-accuracy is mostly linear in the 1-NN distance, and the slope is "
        "smaller with augmentation (4.3).",
    ),
    View(
        "latent_slopes",
        "Robustness slopes",
        slopes,
        needs=("distances",),
        note="Least squares with intercept. Intervals are of a bootstrap that draws whole seeds, "
        "or whole networks for the lines through all of them; with three of them they reach from "
        "the lowest to the highest, which is too narrow for 95 %. The unshifted set is a point "
        "of the line wherever its place is known.",
    ),
    View(
        "latent_test_sets",
        "1-NN distance of the test sets to the training set (Eq. 3)",
        distances_of_test_sets,
        needs=("distances",),
        note="Pixels are in [0, 1]. The unshifted set's own distance is the origin.",
    ),
    View(
        "latent_quality",
        "Quality of the generator: classifiers trained on real rows",
        quality,
        needs=("generator_quality",),
    ),
]


def claims(metrics: pd.DataFrame) -> pd.DataFrame:
    """What the paper says in section 4, each as an ordering first < second.

    ``holds`` where the whole 95 % interval of first minus second, paired over seeds, is below 0.
    No correction for many comparisons is made; the intervals are each their own. That the size
    of the training set does *not* matter is no ordering: that its support matters more is.
    """
    rows = accuracies(metrics)
    lines = by_seed(rows)
    standard, augmented = of_standard(rows), paired(of_standard(rows))
    found = []
    for names, part in strongest(standard).groupby(CELL, sort=False):
        dataset, shift, method = map(str, names[:3])
        ordering = f"accuracy of {method}: {shift} {part['severity'].iloc[0]:g} < unshifted"
        accuracy = part.set_index("seed")
        found.append(
            claimed.difference(
                "1: no network is robust",
                dataset,
                ordering,
                accuracy["accuracy"],
                accuracy["unshifted"],
            )
        )
    found += _augmentation(augmented, lines)
    found += _training_sets(by_training_set(metrics), lines)
    found += _biases(standard, lines)
    return claimed.table(found)


def by_seed(rows: pd.DataFrame) -> dict[tuple[str, str, str], pd.Series]:
    """Slopes against the strength by seed, by dataset, shift and method."""
    found: dict[tuple[str, str, str], pd.Series] = {}
    for names, part in rows[rows["position"].notna()].groupby(CELL, sort=False):
        values = {
            seed: slope_of(curve, "position", "seed")["slope"]
            for seed, curve in part.groupby("seed")
        }
        dataset, shift, method = map(str, names[:3])
        found[dataset, shift, method] = pd.Series(values, dtype=float)
    return found


def _augmentation(rows: pd.DataFrame, lines: dict[tuple[str, str, str], pd.Series]) -> list[dict]:
    """Augmentation raises the accuracy and the slope (4.2.1)."""
    found = []
    plain = rows[rows["augmentation"] == WITHOUT]
    for names, part in plain.groupby(["dataset", "shift", "method"], sort=False):
        dataset, shift, method = map(str, names)
        other = rows[(rows["dataset"] == dataset) & (rows["method"] == method + AUGMENTED)]
        accuracy = [one.groupby("seed")["unshifted"].first() for one in (part, other)]
        claim, ordering = "2: augmentation raises", f"{method} < {method}{AUGMENTED}"
        found += [
            claimed.difference(
                f"{claim} the accuracy", dataset, f"unshifted accuracy: {ordering}", *accuracy
            ),
            claimed.difference(
                f"{claim} the slope",
                dataset,
                f"slope under {shift}: {ordering}",
                *(lines[dataset, shift, name] for name in (method, method + AUGMENTED)),
            ),
        ]
    return found


def _training_sets(rows: pd.DataFrame, lines: dict[tuple[str, str, str], pd.Series]) -> list[dict]:
    """The support of the training set makes robust, more than its size (4.2.2)."""
    found = []
    for names, _ in rows.groupby(["dataset", "method"], sort=False):
        dataset, method = map(str, names)
        slope = {
            ending: lines.get((dataset + ending, OVERLAP, method)) for ending in ("", LARGE, FULL)
        }
        for less, said in (("", STANDARD), (LARGE, TRAINING_SETS[LARGE])):
            first, second = slope[less], slope[FULL]
            if first is not None and second is not None:
                ordering = f"slope of {method}: {said} < {TRAINING_SETS[FULL]}"
                claim = "3: the support of the training set makes robust"
                found.append(claimed.difference(claim, dataset, ordering, first, second))
    return found


def _biases(rows: pd.DataFrame, lines: dict[tuple[str, str, str], pd.Series]) -> list[dict]:
    """Networks of weaker inductive biases have lower slopes (4.2.3)."""
    found = []
    for dataset in dict.fromkeys(rows[rows["shift"] == OVERLAP]["dataset"]):
        second = lines.get((dataset, OVERLAP, STRONGEST_BIAS))
        for method in WEAKER_BIASES:
            first = lines.get((dataset, OVERLAP, method))
            if first is not None and second is not None:
                ordering = f"slope: {method} < {STRONGEST_BIAS}"
                claim = "4: a stronger inductive bias makes robust"
                found.append(claimed.difference(claim, dataset, ordering, first, second))
    return found
