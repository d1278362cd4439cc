"""Views and claims of "Is Fairness Only Metric Deep?", finDML and PARADE.

Dullerud et al., ICLR 2022. Cells are labelled by objective and miner (``margin_distance``), those
of PARADE ``parade`` (margin, distance-weighted), ``parade_triplet`` and ``parade_arcface``; a
dataset of manual imbalance by its source and kind (``cars196_balanced``, ``cars196_imbalanced``,
``cars196_imbalanced_70`` for 70 % of the rows in the majority). Trials that change nothing but
``classifier`` or ``rebalancing`` share one embedding; the default one is logistic regression on
the original balanced rows.

A gap is in the units of its quantity. Majority minus minority may have any sign, and for U_KL,
where lower is better, a positive one says that the majority is worse.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from robust_fairness.rendering.figures import by_column
from robust_fairness.reporting import claims as claimed
from robust_fairness.reporting.statistics import distinct
from robust_fairness.reporting.views import View, beside, over_seeds, published

PAPER = "fair_metric_learning"
TITLE = "Fair deep metric learning: finDML and PARADE"
UPSTREAM = ("recall_at", "nmi", "u_kl")
DOWNSTREAM = ("macro_precision", "macro_recall", "accuracy")
BY_GROUP = "_by_group"
KINDS = ("majority", "worst", "halves", "light_dark")
GAP = re.compile(rf"(?P<quantity>\w+)_(?P<kind>{'|'.join(KINDS)})_gap(\(.*\))?")
CLASSIFIERS = {
    "default": "logistic regression",
    "classifier=rbf_svm": "SVM",
    "classifier=random_forest": "random forest",
    "classifier=k_means": "k-means",
}
FOREST = "classifier=random_forest"
STUDIES = ("cub200", "cars196", "digits")
BALANCED, IMBALANCED = "_balanced", "_imbalanced"
EQUAL = 50  # per cent of the rows in the majority of the balanced control
LEVEL = re.compile(rf"(?P<study>\w+?)({BALANCED}|{IMBALANCED}_(?P<percent>\d+))")
# How the gaps of a dataset with a sensitive attribute are measured (D.4), and which it is. The
# offline dataset is ours; its colours are compared as LFW's races are.
COLOUR, FACES, NAMES, OFFLINE = "cub200_color", "celeba_identity", "lfw", "coloured_digits"
ATTRIBUTES = {
    COLOUR: ("color", "halves"),
    FACES: ("skin_tone", "light_dark"),
    NAMES: ("race", "worst"),
    OFFLINE: ("color", "worst"),
}
PARTNERS = {
    "parade": "margin_distance",
    "parade_triplet": "triplet_distance",
    "parade_arcface": "arcface",
}
SINGLETONS = (NAMES, "recall_at")  # recall means nothing for classes of one row (footnote 2)
LIGHT, DARK, DARKEST = ("I", "II", "III"), ("IV", "V"), "VI"
WHITE = "White"
WITHOUT_DARKEST, AGAINST_WHITE = f"_light_dark_gap_without_{DARKEST}", "_white_gap"
GRID = re.compile(
    r"(?=.*\balpha=(?P<alpha>[^,]+))(?=.*\brho=(?P<rho>[^,]+))(alpha|rho)=[^,]+,(alpha|rho)=[^,]+"
)
SHOWN = ["ours", "deviation", "seeds"]
MOST_NAMED = 20  # colours that a legend names


def unshifted(metrics: pd.DataFrame) -> pd.DataFrame:
    """Rows of unshifted test sets, each once."""
    return distinct(metrics[metrics["shift"] == "none"])


def gaps(metrics: pd.DataFrame) -> pd.DataFrame:
    """Unshifted gaps with columns ``quantity`` and ``kind``."""
    rows = unshifted(metrics)
    parsed = rows["metric"].str.extract(f"^{GAP.pattern}$")[["quantity", "kind"]]
    return rows.assign(**parsed)[parsed["kind"].notna()]


def gaps_of_groups(
    metrics: pd.DataFrame, attribute: str, ending: str, of: Callable[[Mapping], float]
) -> pd.DataFrame:
    """Gaps that no metric has, from the values of the groups.

    Args:
        metrics: the table.
        attribute: whose groups.
        ending: of the names of the gaps.
        of: from values by group to the gap; missing where one is.
    """
    rows = unshifted(metrics)
    rows = rows[(rows["attribute"] == attribute) & rows["metric"].str.endswith(BY_GROUP)]
    keys = [name for name in rows if name not in ("group", "value", "n", "note")]
    found = [
        {
            **dict(zip(keys, names, strict=True)),
            "value": of(dict(zip(part["group"], part["value"], strict=True))),
        }
        for names, part in rows.groupby(keys, sort=False)
    ]
    made = pd.DataFrame(found, columns=[*keys, "value"]).assign(group="", n=0, note="")
    made["metric"] = made["metric"].str.removesuffix(BY_GROUP) + ending
    return made[list(metrics)].astype(metrics.dtypes.to_dict())


def without_darkest(values: Mapping) -> float:
    """Mean of I to III minus that of IV and V (Table 16)."""
    light, dark = ([values.get(name, np.nan) for name in names] for names in (LIGHT, DARK))
    return float(np.mean(light) - np.mean(dark))


def against_white(values: Mapping) -> float:
    """How far White is from the mean of the other races: what Table 19 prints."""
    others = [value for name, value in values.items() if name != WHITE]
    return float(abs(values.get(WHITE, np.nan) - np.mean(others))) if others else np.nan


def numbers(view: str, metrics: pd.DataFrame) -> pd.DataFrame:
    """The numbers of a table beside ours; gaps between races also as they were printed."""
    theirs = published(PAPER)
    theirs = theirs[theirs["view"] == view].drop(columns="view")
    metrics = metrics[metrics["dataset"].isin(theirs["dataset"])]
    if metrics.empty:
        return pd.DataFrame()
    of_names = (theirs["dataset"] == NAMES) & theirs["metric"].str.endswith("_worst_gap")
    again = theirs[of_names].assign(note="the same number beside |White - mean of the others|")
    again["metric"] = again["metric"].str.replace("_worst_gap", AGAINST_WHITE)
    made = [
        gaps_of_groups(metrics, "skin_tone", WITHOUT_DARKEST, without_darkest),
        gaps_of_groups(metrics, "race", AGAINST_WHITE, against_white),
    ]
    ours = pd.concat([metrics, *(some for some in made if len(some))], ignore_index=True)
    return beside(pd.concat([theirs, again], ignore_index=True), ours)


def shares(view: str, metrics: pd.DataFrame) -> pd.DataFrame:
    """Tables 3 to 5: shares of the groups, of test rows beside ours.

    The table of scores knows no training rows.
    """
    theirs = published(PAPER)
    theirs = theirs[theirs["view"] == view]
    keys = ["dataset", "attribute"]
    rows = unshifted(metrics)
    rows = rows[rows["metric"] == "accuracy_by_group"]
    rows = rows.merge(theirs[keys].drop_duplicates(), on=keys)
    if rows.empty:
        return pd.DataFrame()
    of_one = rows.drop_duplicates([*keys, "seed", "group"])
    share = of_one["n"] / of_one.groupby([*keys, "seed"])["n"].transform("sum")
    ours = over_seeds(of_one.assign(value=share, metric="test_share"), [*keys, "group", "metric"])
    joined = theirs.merge(ours, how="left", on=[*keys, "group", "metric"])
    joined["seeds"] = joined["seeds"].fillna(0).astype(int)
    columns = [*keys, "group", "metric", "published", *SHOWN]
    return joined.rename(columns={"value": "published"})[columns]


def table_22(metrics: pd.DataFrame) -> pd.DataFrame:
    """Attributes and their values, printed and found."""
    theirs = published(PAPER)
    theirs = theirs[theirs["view"].isin(["table_3", "table_4", "table_5"])]
    rows = metrics[metrics["metric"].str.endswith(BY_GROUP)]
    found = []
    for names, part in theirs.groupby(["dataset", "attribute"], sort=False):
        dataset, attribute = names
        own = rows[(rows["dataset"] == dataset) & (rows["attribute"] == attribute)]
        if len(own):
            values = [", ".join(dict.fromkeys(one["group"])) for one in (part, own)]
            found.append([dataset, attribute, *values])
    return pd.DataFrame(found, columns=["dataset", "attribute", "published", "ours"])


def class_sizes(metrics: pd.DataFrame) -> pd.DataFrame:
    """Figures 4 to 7: test rows of every class; columns dataset, class, rows."""
    datasets = published(PAPER)["dataset"].unique()
    rows = unshifted(metrics)
    rows = rows[(rows["metric"] == "accuracy_by_subgroup") & rows["dataset"].isin(datasets)]
    # one replica of each dataset counts its rows, once
    first = ["attribute", "method", "trial", "seed"]
    chosen = rows.drop_duplicates("dataset")[["dataset", *first]]
    rows = rows.merge(chosen, on=["dataset", *first])
    # "value & class"; no value of these attributes has that sign in its name
    named = rows["group"].str.extract(r"^.*? & (?P<name>.*)$")["name"]
    rows = rows.assign(**{"class": named, "rows": rows["n"]})
    return rows.groupby(["dataset", "class"], as_index=False, sort=False).agg(rows=("rows", "sum"))


def draw_class_sizes(rows: pd.DataFrame) -> go.Figure:
    """A histogram a dataset."""
    figure = px.histogram(rows, x="rows", facet_col="dataset", facet_col_wrap=2)
    figure.update_xaxes(matches=None, showticklabels=True)
    figure.update_yaxes(matches=None, showticklabels=True)
    return _titled(figure, "Classes by number of test rows")


def by_imbalance(metrics: pd.DataFrame) -> pd.DataFrame:
    """Gaps between majority and minority with columns ``study`` and ``percent``.

    With ``measured on``: the embedding, or a classifier of it.
    """
    rows = gaps(metrics)
    rows = rows[(rows["kind"] == "majority") & (rows["attribute"] == "class_size")]
    parsed = rows["dataset"].str.extract(f"^{LEVEL.pattern}$")[["study", "percent"]]
    upstream = rows["quantity"].isin(UPSTREAM)
    measured = rows["trial"].map(CLASSIFIERS).mask(upstream, "embedding")
    rows = rows.assign(
        study=parsed["study"],
        percent=parsed["percent"].astype(float).fillna(EQUAL),
        **{"measured on": measured},
    )
    kept = parsed["study"].notna() & measured.notna() & (~upstream | (rows["trial"] == "default"))
    return rows[kept]


def figure_by_imbalance(
    metrics: pd.DataFrame, studies: Sequence[str], measured: Sequence[str]
) -> pd.DataFrame:
    """Gaps by the share of the majority, of methods that were trained at several shares."""
    rows = by_imbalance(metrics)
    rows = rows[rows["study"].isin(studies) & rows["measured on"].isin(measured)]
    several = rows.groupby(["study", "method"])["percent"].transform("nunique") > 1
    rows = rows[several]
    found = over_seeds(rows, ["study", "method", "measured on", "quantity", "percent", "trial"])
    keys = ["study", "method", "measured on", "quantity"]
    return found.drop(columns="trial").sort_values([*keys, "percent"], ignore_index=True)


def draw_by_imbalance(rows: pd.DataFrame) -> go.Figure:
    """A panel a quantity and what it is measured on, a line a method."""
    shown = rows.assign(panel=rows["study"] + ", " + rows["measured on"] + ", " + rows["quantity"])
    figure = px.line(
        shown, x="percent", y="ours", error_y="deviation", facet_col="panel", facet_col_wrap=3,
        markers=True, hover_data=["seeds"], height=120 + 320 * -(-shown["panel"].nunique() // 3),
        **by_column("method"),
    )  # fmt: skip
    figure.update_yaxes(matches=None, showticklabels=True)
    return _titled(figure, "Majority minus minority by percentage of the majority")


def figure_12(metrics: pd.DataFrame) -> pd.DataFrame:
    """Overall value, gap and worst group of PARADE by alpha and rho."""
    rows = unshifted(metrics)
    rows = rows[rows["method"].isin(PARTNERS) & rows["dataset"].isin(ATTRIBUTES)]
    parsed = rows["trial"].str.extract(f"^{GRID.pattern}$")[["alpha", "rho"]].astype(float)
    rows = rows.assign(**parsed)[parsed["alpha"].notna()]
    found = []
    for dataset, (attribute, kind) in ATTRIBUTES.items():
        for quantity in UPSTREAM:
            shown = {
                "overall": (quantity, ""),
                "gap": (f"{quantity}_{kind}_gap", attribute),
                "worst group": (f"worst_group_{quantity}", attribute),
            }
            for what, (metric, of) in shown.items():
                own = rows[(rows["dataset"] == dataset) & (rows["metric"] == metric)]
                own = own[(own["attribute"] == of) & (own["group"] == "")]
                found.append(own.assign(quantity=quantity, what=what))
    keys = ["dataset", "method", "quantity", "what", "alpha", "rho", "trial"]
    means = over_seeds(pd.concat(found), keys).drop(columns="trial")
    return means.sort_values(keys[:-1], kind="stable", ignore_index=True)


def draw_figure_12(rows: pd.DataFrame) -> go.Figure:
    """A grid a quantity and what is shown of it; each has its own colours."""
    from plotly.subplots import make_subplots

    parts = list(rows.groupby(["dataset", "method", "quantity", "what"], sort=False))
    across, down = 3, -(-len(parts) // 3)
    titles = [", ".join(map(str, names)) for names, _ in parts]
    figure = make_subplots(down, across, subplot_titles=titles)
    for number, (_, part) in enumerate(parts):
        grid = part.pivot_table(index="alpha", columns="rho", values="ours")
        shown = go.Heatmap(
            z=grid.to_numpy(),
            x=[f"{rho:g}" for rho in grid.columns],
            y=[f"{alpha:g}" for alpha in grid.index],
            colorscale="Viridis",
            showscale=False,
            hovertemplate="rho %{x}, alpha %{y}: %{z:.4f}<extra></extra>",
            texttemplate="%{z:.3g}",
        )
        figure.add_trace(shown, number // across + 1, number % across + 1)
    figure.update_xaxes(type="category", title_text="rho")
    figure.update_yaxes(type="category", title_text="alpha")
    return _titled(figure, "PARADE by alpha and rho").update_layout(height=120 + 320 * down)


def choices(metrics: pd.DataFrame) -> pd.DataFrame:
    """What each criterion chose of PARADE's grid, beside the published values."""
    rows = metrics[(metrics["selection"] != "every") & metrics["method"].isin(PARTNERS)]
    chosen = rows[["dataset", "method", "selection", "trial"]].drop_duplicates()
    theirs = published(PAPER).query("view == 'hyperparameters'")
    shown = theirs.assign(published=theirs["metric"] + " = " + theirs["value"].map("{:g}".format))
    joined = shown.groupby(["dataset", "method"], as_index=False).agg(
        published=("published", ", ".join), note=("note", "first")
    )
    chosen = chosen[chosen["dataset"].isin(ATTRIBUTES)]
    return chosen.merge(joined, how="left", on=["dataset", "method"]).fillna("")


def every_gap(metrics: pd.DataFrame) -> pd.DataFrame:
    """All gaps of all datasets, also those that the paper has not."""
    rows = gaps(metrics)
    keys = ["dataset", "method", "trial", "attribute", "quantity", "kind"]
    known = rows["quantity"].isin([*UPSTREAM, *DOWNSTREAM])
    # accuracy and the like have gaps wherever anything is classified
    of_embeddings = rows["dataset"].isin(rows[rows["quantity"].isin(UPSTREAM)]["dataset"])
    return over_seeds(rows[known & of_embeddings], [*keys, "metric"]).drop(columns="metric")


def plane_points(
    metrics: pd.DataFrame, planes: pd.DataFrame, datasets: Sequence[str]
) -> pd.DataFrame:
    """Points of the planes of some datasets, of all others where none is named."""
    del metrics  # the planes have their own table
    named = planes["dataset"].isin(datasets or (COLOUR, FACES, NAMES))
    return planes[named if datasets else ~named].reset_index(drop=True)


def draw_planes(rows: pd.DataFrame, by: str) -> go.Figure:
    """A row a cell, a column a space; a point a validation row.

    Args:
        rows: ``tables.PLANES``.
        by: ``label`` for colours by class, ``group`` for colours by attribute.
    """
    cell = rows["dataset"] + ", " + rows["method"]
    if by == "group":
        shown = rows.assign(panel=cell + ", " + rows["attribute"])
    else:
        shown = rows.assign(panel=cell).drop_duplicates(["panel", "space", "row"])
    figure = px.scatter(
        shown.sort_values(by), x="x", y="y", facet_row="panel", facet_col="space",
        category_orders={"panel": list(shown["panel"].unique())}, hover_data=["label", "group"],
        height=120 + 420 * shown["panel"].nunique(), **by_column(by),
    )  # fmt: skip
    figure.update_xaxes(matches=None, showticklabels=False, title_text="")
    figure.update_yaxes(matches=None, showticklabels=False, title_text="")
    figure.update_traces(marker_size=5)
    # more than a legend can tell apart
    figure.update_layout(showlegend=shown[by].nunique() <= MOST_NAMED)
    what = "class" if by == "label" else "attribute"
    return _titled(figure, f"Validation rows in the plane, coloured by {what}")


def _titled(figure: go.Figure, title: str) -> go.Figure:
    figure.for_each_annotation(lambda one: one.update(text=one.text.partition("=")[2] or one.text))
    return figure.update_layout(title=title, template="plotly_white")


def _of_table(number: int, title: str, note: str = "") -> View:
    return View(
        f"dml_table_{number}",
        f"Table {number}: {title}",
        partial(numbers, f"table_{number}"),
        note=note,
    )


def _of_planes(name: str, title: str, datasets: tuple[str, ...]) -> list[View]:
    """Two views of the same points, coloured by class and by attribute."""
    return [
        View(
            f"dml_{name}_{column}",
            f"{title}, coloured by {what}",
            partial(plane_points, datasets=datasets),
            partial(draw_planes, by=column),
            needs=("planes",),
            note="Validation rows of the replica that the first criterion chose; t-SNE with a "
            "fixed seed. Distances between clusters mean nothing.",
        )
        for column, what in (("label", "class"), ("group", "attribute"))
    ]


RACES = (
    "The paper's text takes the worst group against each other one (D.4); the printed numbers of "
    "margin loss and PARADE are |White - mean of the others| of Table 20, but for one of twelve, "
    "also where White is best. Both stand here."
)
REPEATED = "The recall@1 of this gap table repeats the overall values of Table 6."
VIEWS = [
    _of_table(
        1,
        "gaps of CUB200 by class size",
        "The control's numbers differ from those of Table 10 for the same cells.",
    ),
    _of_table(2, "PARADE against the same loss alone", RACES),
    View("dml_table_3", "Table 3: bird colours of CUB200", partial(shares, "table_3")),
    View("dml_table_4", "Table 4: skin tones of CelebA", partial(shares, "table_4")),
    View("dml_table_5", "Table 5: races of LFW", partial(shares, "table_5")),
    _of_table(6, "overall results on CARS196"),
    _of_table(7, "gaps of CARS196 by class size", REPEATED),
    _of_table(8, "downstream mitigation on CARS196"),
    _of_table(9, "overall results on CUB200"),
    _of_table(10, "gaps of CUB200 by class size"),
    _of_table(11, "downstream mitigation on CUB200, class size"),
    _of_table(12, "downstream mitigation on CUB200, bird colour"),
    _of_table(13, "CUB200 by bird colour"),
    _of_table(14, "overall results on CelebA"),
    _of_table(15, "gaps of CelebA, light against dark skin"),
    _of_table(16, "gaps of CelebA without skin tone VI"),
    _of_table(17, "CelebA by skin tone"),
    _of_table(18, "overall results on LFW"),
    _of_table(19, "gaps of LFW by race", RACES),
    _of_table(20, "LFW by race"),
    _of_table(21, "downstream mitigation on LFW"),
    View("dml_table_22", "Table 22: attributes and their values", table_22),
    *_of_planes("figure_2", "Figure 2: both embeddings of CUB200", (COLOUR,)),
    View(
        "dml_figure_3",
        "Figure 3: gaps by imbalance, CARS196",
        partial(
            figure_by_imbalance,
            studies=("cars196",),
            measured=("embedding", CLASSIFIERS[FOREST]),
        ),
        draw_by_imbalance,
        note="The paper: gaps increase both upstream and downstream with more imbalance (6.2). "
        "It prints no numbers and does not name the loss.",
    ),
    View(
        "dml_figures_4_to_7",
        "Figures 4 to 7: test rows of the classes",
        class_sizes,
        draw_class_sizes,
        note="The table of scores knows no training rows.",
    ),
    View(
        "dml_figure_8",
        "Figure 8: gaps of classifiers by imbalance, CARS196",
        partial(
            figure_by_imbalance,
            studies=("cars196",),
            measured=tuple(CLASSIFIERS.values()),
        ),
        draw_by_imbalance,
    ),
    View(
        "dml_figure_9",
        "Figure 9: gaps of classifiers by imbalance, CUB200",
        partial(figure_by_imbalance, studies=("cub200",), measured=tuple(CLASSIFIERS.values())),
        draw_by_imbalance,
    ),
    View(
        "dml_imbalance_digits",
        "Gaps by imbalance, digits",
        partial(
            figure_by_imbalance,
            studies=("digits",),
            measured=("embedding", *CLASSIFIERS.values()),
        ),
        draw_by_imbalance,
    ),
    *_of_planes("figure_10", "Figure 10: both embeddings of CelebA", (FACES,)),
    *_of_planes("figure_11", "Figure 11: both embeddings of LFW", (NAMES,)),
    *_of_planes("planes", "Embeddings of the other datasets", ()),
    View(
        "dml_figure_12",
        "Figure 12: PARADE by alpha and rho",
        figure_12,
        draw_figure_12,
        note="The paper: alpha 0.1 and rho 500 is an optimal choice by recall@1 (C.5).",
    ),
    View(
        "dml_choices",
        "Hyperparameters of PARADE by criterion",
        choices,
        note="The paper chooses by the performance of the worst group (4, D.3).",
    ),
    View("dml_gaps", "Gaps of all datasets of metric learning", every_gap),
]


def claims(metrics: pd.DataFrame) -> pd.DataFrame:
    """What the paper says in section 6, each as an ordering first < second.

    ``holds`` where the whole 95 % interval of first minus second, paired over seeds, is below 0.
    No correction for many comparisons is made; the intervals are each their own. Cells that were
    not run are not claimed about.
    """
    found = gaps(metrics)
    rows = _imbalance(found) + _degree(by_imbalance(metrics)) + _parade(found)
    return claimed.table(rows + _cost(unshifted(metrics)))


def by_seed(rows: pd.DataFrame, **place: object) -> pd.Series:
    """Values by seed of the rows whose columns are so."""
    for column, value in place.items():
        rows = rows[rows[column] == value]
    return rows.set_index("seed")["value"].astype(float)


def _imbalance(rows: pd.DataFrame) -> list[dict]:
    """Imbalance widens gaps, of the embedding (6.1) and of what is fitted on it (6.2).

    Gaps are compared with their sign, as the paper does.
    """
    rows = rows[(rows["kind"] == "majority") & (rows["attribute"] == "class_size")]
    found = []
    for study in STUDIES:
        both = rows[rows["dataset"].isin([study + BALANCED, study + IMBALANCED])]
        for names, part in both.groupby(["method", "quantity", "metric", "trial"], sort=False):
            method, quantity, metric, trial = map(str, names)
            upstream = quantity in UPSTREAM
            known = upstream and trial == "default"
            known |= quantity in DOWNSTREAM and trial in CLASSIFIERS
            if not known or part["dataset"].nunique() < 2:  # noqa: PLR2004 - both datasets
                continue
            on = "" if upstream else f", {CLASSIFIERS[trial]}"
            claim = (
                "1: imbalance widens the gaps of the embedding"
                if upstream
                else "2: balanced data downstream do not remove the gaps"
            )
            first, second = (by_seed(part, dataset=study + one) for one in (BALANCED, IMBALANCED))
            ordering = f"{metric} of {method}{on}: balanced < imbalanced"
            found.append(claimed.difference(claim, study, ordering, first, second))
    return found


def _degree(rows: pd.DataFrame) -> list[dict]:
    """Gaps grow with imbalance (6.2, Figures 3, 8 and 9): their slope by seed is above 0."""
    found = []
    keys = ["study", "method", "measured on", "metric"]
    for names, part in rows.groupby(keys, sort=False):
        study, method, measured, metric = map(str, names)
        slopes = {}
        for seed, curve in part[part["value"].notna()].groupby("seed"):
            if curve["percent"].nunique() > 1:
                slopes[seed] = np.polyfit(curve["percent"], curve["value"], 1)[0]
        if slopes:
            second = pd.Series(slopes, dtype=float)
            ordering = f"{metric} of {method}, {measured}: 0 < slope per per cent of the majority"
            claim = "3: gaps grow with imbalance"
            found.append(claimed.difference(claim, study, ordering, second * 0, second))
    return found


def _parade(rows: pd.DataFrame) -> list[dict]:
    """PARADE reduces gaps (6.3)."""
    found = []
    for dataset, (attribute, kind) in ATTRIBUTES.items():
        own = rows[(rows["dataset"] == dataset) & (rows["attribute"] == attribute)]
        own = own[(own["kind"] == kind) & own["trial"].isin(CLASSIFIERS)]
        for names, part in own.groupby(["quantity", "metric", "trial"], sort=False):
            quantity, metric, trial = map(str, names)
            upstream = quantity in UPSTREAM
            if (upstream and trial != "default") or (dataset, quantity) == SINGLETONS:
                continue
            if quantity not in (*UPSTREAM, *DOWNSTREAM):
                continue
            on = "" if upstream else f", {CLASSIFIERS[trial]}"
            found += _pairs(part, "4: PARADE reduces gaps", dataset, f"{metric}{on}")
    return found


def _pairs(
    rows: pd.DataFrame, claim: str, dataset: str, what: str, lower: bool = True
) -> list[dict]:
    """PARADE below the same loss alone, wherever both were run; or above it."""
    found = []
    present = set(rows["method"])
    for method, partner in PARTNERS.items():
        if {method, partner} <= present:
            pair = (method, partner) if lower else (partner, method)
            first, second = (by_seed(rows, method=name) for name in pair)
            ordering = f"{what}: {pair[0]} < {pair[1]}"
            found.append(claimed.difference(claim, dataset, ordering, first, second))
    return found


def _cost(rows: pd.DataFrame) -> list[dict]:
    """PARADE costs a little overall (section 7)."""
    rows = rows[(rows["trial"] == "default") & (rows["group"] == "") & (rows["attribute"] == "")]
    found = []
    for dataset in ATTRIBUTES:
        for metric in ("recall_at", "nmi", "accuracy"):
            own = rows[(rows["dataset"] == dataset) & (rows["metric"] == metric)]
            if (dataset, metric) != SINGLETONS:
                found += _pairs(own, "5: PARADE costs overall performance", dataset, metric)
    return found
