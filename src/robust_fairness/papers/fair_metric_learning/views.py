"""Views and claims of "Is Fairness Only Metric Deep?", finDML and PARADE.

Dullerud et al., ICLR 2022. Cells are labelled by objective and miner (``margin_distance``), those
of PARADE ``parade`` (margin, distance-weighted), ``parade_triplet`` and ``parade_arcface``. Facets
of a dataset of manual imbalance: ``study``, its source; ``balance``, ``balanced`` for the control
and ``imbalanced``; ``percent`` of the rows of a class in the majority. Trials that change nothing
but ``classifier`` or ``rebalancing`` share one embedding; the default one is logistic regression on
the original balanced rows.

A gap is in the units of its quantity. Majority minus minority may have any sign, and for U_KL,
where lower is better, a positive gap means that the majority is worse.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from robust_fairness.core.numbers import exact
from robust_fairness.core.rendering.figures import WRAP, Panel, Trace, in_panel, panelled, style
from robust_fairness.report.claims.row_variances import with_row_variances
from robust_fairness.report.results import UNSHIFTED, Results, where, with_metrics
from robust_fairness.report.statistics import over_seeds
from robust_fairness.report.views import About, beside, joined_published, published, selected_beside

PAPER = "fair_metric_learning"
UPSTREAM = ("recall_at", "nmi", "u_kl")
DOWNSTREAM = ("macro_precision", "macro_recall", "accuracy")
KINDS = ("majority_gap", "worst_gap", "halves_gap", "light_dark_gap")
MAJORITY = KINDS[0]
CLASSIFIERS = {
    "logistic_regression": "logistic regression",
    "rbf_svm": "SVM",
    "random_forest": "random forest",
    "k_means": "k-means",
}
DEFAULT_CLASSIFIER = "logistic_regression"
TABLES_OF_SHARES = (3, 4, 5)
STUDIES = ("cub200", "cars196", "digits", "digits_more")
# How the gaps of a dataset with a sensitive attribute are measured (D.4), and which it is. The
# offline dataset is ours; its colours are compared as LFW's races are.
COLOUR, FACES, NAMES, OFFLINE = "cub200_color", "celeba_identity", "lfw", "coloured_digits"
ATTRIBUTES = {
    COLOUR: ("color", "halves_gap"),
    FACES: ("skin_tone", "light_dark_gap"),
    NAMES: ("race", "worst_gap"),
    OFFLINE: ("color", "worst_gap"),
}
PARTNERS = {
    "parade": "margin_distance",
    "parade_triplet": "triplet_distance",
    "parade_arcface": "arcface",
}
LIGHT, DARK, DARKEST = ("I", "II", "III"), ("IV", "V"), "VI"
WHITE = "White"
WITHOUT_DARKEST, AGAINST_WHITE = f"light_dark_gap_without_{DARKEST}", "white_gap"
FACTS = ["quantity", "aggregation"]  # of metrics
MOST_NAMED = 20  # colours that a legend names
NOT_KEYS = ("group", "value", "n", "variance", "covariance", "note")  # columns of metrics
ABOUT = About(PAPER, (*STUDIES, *ATTRIBUTES), ("planes",), quantities=UPSTREAM)


def gaps(results: Results) -> pd.DataFrame:
    """Unshifted gaps with the columns quantity and aggregation."""
    return where(with_metrics(results.unshifted, FACTS), aggregation=KINDS)


def classified(results: Results, rows: pd.DataFrame) -> pd.DataFrame:
    """Gaps of the embedding or of a classifier of it, with columns upstream and classifier."""
    rows = results.with_hparams(rows, ["classifier"])
    rows["classifier"] = rows["classifier"].astype(object).fillna(DEFAULT_CLASSIFIER)
    upstream = rows["quantity"].isin(UPSTREAM)
    return rows.assign(upstream=upstream)[
        rows["classifier"].isin(CLASSIFIERS) & (~upstream | (rows["trial"] == "default"))
    ]


def gaps_of_groups(
    rows: pd.DataFrame, attribute: str, name: str, gap: Callable[[Mapping], float]
) -> pd.DataFrame:
    """Gaps that no metric has, from the values of the groups.

    Args:
        rows: rows with the columns quantity and aggregation.
        attribute: the attribute of the groups.
        name: name of the gap, after that of the quantity.
        gap: function of values by group; missing if one of them is.
    """
    rows = where(rows, attribute=attribute, aggregation="by_group")
    keys = [column for column in rows if column not in NOT_KEYS]
    result = [
        [*names, gap(dict(zip(part["group"], part["value"], strict=True)))]
        for names, part in rows.groupby(keys, sort=False)
    ]
    made = pd.DataFrame(result, columns=[*keys, "value"]).assign(group="", n=0, note="")
    return made.assign(metric=made["quantity"] + "_" + name)


def without_darkest(values: Mapping) -> float:
    """Mean of I to III minus that of IV and V (Table 16)."""
    light, dark = ([values.get(name, np.nan) for name in names] for names in (LIGHT, DARK))
    return float(np.mean(light) - np.mean(dark))


def against_white(values: Mapping) -> float:
    """|White - mean of the other races|: what Table 19 prints."""
    others = [value for name, value in values.items() if name != WHITE]
    return float(abs(values.get(WHITE, np.nan) - np.mean(others))) if others else np.nan


def numbers(view: str, results: Results) -> pd.DataFrame:
    """The numbers of a table beside ours; gaps between races also as they were printed."""
    theirs = where(published(PAPER), view=view)
    rows = with_metrics(where(results.unshifted, dataset=theirs["dataset"]), FACTS)
    if rows.empty:
        return pd.DataFrame()
    again = with_metrics(where(theirs, dataset=NAMES), FACTS)
    again = where(again, aggregation="worst_gap")
    again = again.assign(
        metric=again["quantity"] + "_" + AGAINST_WHITE,
        note="the same number beside |White - mean of the others|",
    )
    made = [
        gaps_of_groups(rows, "skin_tone", WITHOUT_DARKEST, without_darkest),
        gaps_of_groups(rows, "race", AGAINST_WHITE, against_white),
    ]
    ours = pd.concat([rows, *(some for some in made if len(some))], ignore_index=True)
    return beside(pd.concat([theirs, again], ignore_index=True), ours)


def shares(view: str, results: Results) -> pd.DataFrame:
    """Tables 3 to 5: shares of the groups, of test rows beside ours.

    The table of scores has no training rows.
    """
    theirs = where(published(PAPER), view=view)
    keys = ["dataset", "attribute"]
    rows = where(results.unshifted, metric="accuracy_by_group")
    rows = rows.merge(theirs[keys].drop_duplicates(), on=keys)
    if rows.empty:
        return pd.DataFrame()
    rows = rows.drop_duplicates([*keys, "seed", "group"])
    share = rows["n"] / rows.groupby([*keys, "seed"])["n"].transform("sum")
    place = [*keys, "group", "metric"]
    ours = over_seeds(rows.assign(value=share, metric="test_share"), place)
    return joined_published(theirs, ours, place)[[*place, "published", "ours", "std", "seeds"]]


def table_22(results: Results) -> pd.DataFrame:
    """Attributes and their values, printed and found."""
    theirs = where(published(PAPER), view=[f"table_{number}" for number in TABLES_OF_SHARES])
    ours = where(with_metrics(results.metrics, FACTS), aggregation="by_group")
    published_groups, our_groups = (
        rows.groupby(["dataset", "attribute"], sort=False)["group"].agg(
            lambda names: ", ".join(names.unique())
        )
        for rows in (theirs, ours)
    )
    result = pd.DataFrame({"published": published_groups, "ours": our_groups})
    return result.reindex(published_groups.index).dropna().reset_index()


def class_sizes(results: Results) -> pd.DataFrame:
    """Figures 4 to 7: test rows of every class; columns dataset, class, rows."""
    datasets = published(PAPER)["dataset"].unique()
    rows = where(results.counts, dataset=datasets, attribute="", shift=UNSHIFTED, domain="")
    # the rows of one replica of each dataset
    first = ["dataset", "method", "trial", "seed"]
    rows = rows.merge(rows.drop_duplicates("dataset")[first], on=first)
    by_class = rows.groupby(["dataset", "class"], as_index=False, sort=False)
    return by_class.agg(rows=("n", "sum"))


def by_imbalance(results: Results) -> pd.DataFrame:
    """Gaps between majority and minority with the columns study and percent.

    With ``measured on``: the embedding, or a classifier of it.
    """
    rows = where(gaps(results), aggregation=MAJORITY, attribute="class_size")
    rows = results.with_facets(classified(results, rows), ["study", "percent"])
    measured = rows["classifier"].map(CLASSIFIERS).mask(rows["upstream"], "embedding")
    rows = rows.assign(**{"measured on": measured})[rows["percent"] != ""]
    return rows.astype({"percent": float})


def figure_by_imbalance(study: str, measured: Sequence[str], results: Results) -> pd.DataFrame:
    """Gaps by the share of the majority, of methods that were trained at several shares."""
    rows = where(by_imbalance(results), **{"study": study, "measured on": measured})
    several = rows.groupby(["study", "method"])["percent"].transform("nunique") > 1
    keys = ["study", "method", "measured on", "quantity", "percent"]
    return over_seeds(rows[several], keys).sort_values(keys, ignore_index=True)


def figure_12(results: Results) -> pd.DataFrame:
    """Overall value, gap and worst group of PARADE by alpha and rho."""
    rows = where(results.unshifted, method=PARTNERS, dataset=ATTRIBUTES, group="")
    rows = results.with_hparams(rows, ["alpha", "rho"]).dropna(subset=["alpha", "rho"])
    rows = where(with_metrics(rows, FACTS), quantity=UPSTREAM)
    shown = [
        (dataset, *item)
        for dataset, (attribute, kind) in ATTRIBUTES.items()
        for item in (
            ("overall", "", ""),
            ("gap", kind, attribute),
            ("worst group", "worst_group", attribute),
        )
    ]
    columns = ["dataset", "what", "aggregation", "attribute"]
    rows = rows.merge(pd.DataFrame(shown, columns=columns))
    keys = ["dataset", "method", "quantity", "what", "alpha", "rho"]
    return over_seeds(rows, keys).sort_values(keys, kind="stable", ignore_index=True)


def draw_figure_12(rows: pd.DataFrame) -> go.Figure:
    """A grid per quantity and what it shows of it; each has its own colours."""
    panels, traces = [], []
    groups = rows.groupby(["dataset", "method", "quantity", "what"], sort=False)
    for place, (names, part) in enumerate(groups):
        grid = part.pivot_table(index="alpha", columns="rho", values="ours")
        trace = {
            "type": "heatmap",
            "z": grid.to_numpy(),
            "x": [*map(exact, grid.columns.to_numpy())],
            "y": [*map(exact, grid.index.to_numpy())],
            "colorscale": "Viridis",
            "showscale": False,
            "hovertemplate": "rho %{x}, alpha %{y}: %{z:.4f}<extra></extra>",
            "texttemplate": "%{z:.3g}",
        }
        panels.append(Panel(", ".join(map(str, names)), "rho", "alpha"))
        traces.append({**in_panel(trace, place), "showlegend": False})
    figure = panelled("PARADE by alpha and rho", panels, traces, WRAP)
    return figure.update_xaxes(type="category").update_yaxes(type="category")


def selected(results: Results) -> pd.DataFrame:
    """What each criterion selected from PARADE's grid, beside the published values."""
    rows = where(results.metrics, method=PARTNERS, dataset=ATTRIBUTES)
    theirs = where(published(PAPER), view="hyperparameters")
    theirs = theirs.assign(field=theirs["metric"], published=theirs["value"].map(exact))
    return selected_beside(theirs, rows, ["dataset", "method"]).fillna("")


def every_gap(results: Results) -> pd.DataFrame:
    """All gaps of all datasets, also those that the paper does not have."""
    rows = gaps(results)
    # accuracy and the like have gaps wherever anything is classified
    of_embeddings = where(rows, quantity=UPSTREAM)["dataset"]
    rows = where(rows, quantity=[*UPSTREAM, *DOWNSTREAM], dataset=of_embeddings)
    keys = ["dataset", "method", "trial", "attribute", "quantity", "aggregation", "metric"]
    result = over_seeds(rows, keys).drop(columns="metric")
    return result.rename(columns={"aggregation": "kind"})


def projected_points(datasets: Sequence[str], results: Results) -> pd.DataFrame:
    """Points of the projections of some datasets, of all others if none is named."""
    named = results.planes["dataset"].isin(datasets or (COLOUR, FACES, NAMES))
    return results.planes[named if datasets else ~named].reset_index(drop=True)


def draw_projections(rows: pd.DataFrame, by: str) -> go.Figure:
    """A row per cell, a column per space; a point per validation row, coloured by a column."""
    rows = rows.assign(cell=rows["dataset"] + ", " + rows["method"])
    if by == "group":
        rows = rows.assign(cell=rows["cell"] + ", " + rows["attribute"])
    else:
        rows = rows.drop_duplicates(["cell", "space", "row"])
    pairs = rows[["cell", "space"]].drop_duplicates()
    places = [*zip(pairs["cell"], pairs["space"], strict=True)]
    looks = {name: style(number) for number, name in enumerate(sorted(rows[by].unique()))}
    traces: dict[tuple[Any, ...], Trace] = {}
    for (cell, space, name), part in rows.groupby(["cell", "space", by]):
        said = part["label"].astype(str) + ", " + part["group"]
        points = {
            "x": part["x"], "y": part["y"], "text": said,
            "mode": "markers", "marker": {**looks[name], "size": 5},
            "name": str(name), "legendgroup": str(name), "hovertemplate": "%{text}",
        }  # fmt: skip
        trace = in_panel(points, places.index((cell, space)))
        traces[cell, space, name] = trace | {"showlegend": name not in {key[2] for key in traces}}
    what = "class" if by == "label" else "attribute"
    figure = panelled(
        f"Validation rows in two dimensions, coloured by {what}",
        [Panel(f"{cell}<br>{space}", "", "") for cell, space in places],
        [*traces.values()],
        rows["space"].nunique(),
    )
    figure.update_xaxes(showticklabels=False).update_yaxes(showticklabels=False)
    return figure.update_layout(showlegend=len(looks) <= MOST_NAMED)


def measured(results: Results) -> pd.DataFrame:
    """What claims are about: unshifted scores and gaps, with study, balance and percent."""
    rows = results.with_facets(results.unshifted, ["study", "balance", "percent"])
    rows = rows.assign(percent=pd.to_numeric(rows["percent"]))
    return with_row_variances(rows, results)
