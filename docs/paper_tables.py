"""Write the generated tables of a paper's results page from the scores that lie beside it.

    python docs/paper_tables.py [PAPER --runs RUN ...]

With runs of ``conf/paper`` or ``conf/reduced``, their scores of the paper's measures, cells and
splits are put there first, in place of earlier ones of the same cells. A table is that of the
report's view of this name, with our mean and standard deviation over seeds and the published
number in brackets, or ``claims``: how many statements of the paper hold.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from pages import RESULTS, Page, plain

from robust_fairness.catalog.files import TableDataset
from robust_fairness.core import tables
from robust_fairness.reporting import (
    Results,
    bias_mitigation,
    bias_variables,
    claims,
    equalized_robustness,
    fair_metric_learning,
    kernel_fairness,
    latent_shift,
)
from robust_fairness.reporting.results import UNSHIFTED, where
from robust_fairness.reporting.statistics import over_seeds
from robust_fairness.reporting.views import Section, View, published
from robust_fairness.runs import provenance

VALUES = ("value", "n", "variance", "covariance", "note")
# Tables of a run, and the columns that tell rows apart.
BESIDE = {
    "metrics": [name for name in tables.METRICS if name not in VALUES],
    "cells": ["dataset", "method"],
    "splits": list(tables.SPLITS),
    "trials": ["dataset", "method", "trial"],
}
MEASURED = {
    "distances": ["dataset", "shift", "severity", "space"],
    "generator_quality": ["dataset", "shift", "severity", "classifier"],
}
PLACE = ("dataset", "method", "trial")


@dataclass(frozen=True)
class Paper:
    """The results page of a paper.

    Attributes:
        section: the views and claims of the paper.
        views: those that are tables of the page.
        further: other tables of the page, by name.
        metrics: measures that its tables need and the paper has not.
        by_group: measures whose values by group are kept; of the others only those of all rows.
        tables: of its runs, and the columns that tell rows apart.
        unit: what its numbers are multiplied by.
        digits: decimal places.
        of_claims: its tables of claims.
        claims_by: what the statements of the table of claims are counted by.
    """

    paper: str
    section: Section
    views: tuple[str, ...]
    further: Mapping[str, Callable[[Results], pd.DataFrame]] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    by_group: tuple[str, ...] = ()
    tables: Mapping[str, list[str]] = field(default_factory=lambda: BESIDE)
    unit: float = 1
    digits: int = 3
    of_claims: tuple[str, ...] = ("claims",)
    claims_by: tuple[str, ...] = ("claim", "dataset")

    def beside(self, name: str) -> Path:
        """The file of a table of the runs."""
        return RESULTS / f"{self.paper}_{name}.parquet"

    def results(self) -> Results:
        """The scores beside the page."""
        found = {name: pd.read_parquet(self.beside(name)) for name in self.tables}
        return Results.of(found.pop("metrics"), **found)

    @property
    def page(self) -> Page:
        """The page with its tables."""
        made: dict[str, Callable[[Results], pd.DataFrame]] = {
            view.id: partial(self.table, view)
            for view in self.section.views
            if view.id in self.views
        }
        of_page = cache(self.section.claims)
        made |= self.further
        of_claims = {
            "claims": lambda results: verdicts(of_page(results), self.claims_by),
            "significant": lambda results: significant(of_page(results)),
        }
        made |= {name: of_claims[name] for name in self.of_claims}
        return Page(RESULTS / f"{self.paper}.md", made, self.results)

    def table(self, view: View, results: Results) -> pd.DataFrame:
        """Measures across; data, methods and trials down, where there are several."""
        rows = view.rows(results).query("seeds > 0")
        across = rows["metric"].str.cat(_shift(rows))
        cells = rows.assign(across=across, cell=[self.cell(one) for _, one in rows.iterrows()])
        down = [name for name in PLACE if cells[name].nunique() > 1]
        wide = cells.pivot(index=down, columns="across", values="cell")
        order = cells[down].drop_duplicates()
        return order.merge(wide[across.drop_duplicates()].reset_index())

    def cell(self, row: pd.Series) -> str:
        """Mean, deviation and, in brackets, the published number."""
        own, spread, theirs = (
            f"{row[name] * self.unit:.{self.digits}f}" for name in ("ours", "std", "published")
        )
        return f"{own} ± {spread}" + ("" if np.isnan(row["published"]) else f" ({theirs})")


def _shift(rows: pd.DataFrame) -> pd.Series:
    """The shift of every row as the end of a title."""
    if "shift" not in rows:
        return pd.Series("", rows.index)
    named = ", " + rows["shift"] + " " + rows["severity"].map("{:g}".format)
    return named.mask(rows["shift"] == UNSHIFTED, "")


def verdicts(claims: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Numbers of statements by claim, and dataset, that hold, and that are reversed, after Holm.

    In brackets those with a false discovery rate of 5 %. ``detectable`` is the median over the
    statements.
    """
    found = []
    run = claims[claims["verdict"] != "not run"]
    for place, part in run.groupby(list(by), sort=False):
        counts = {
            title: f"{(part['verdict'] == text).sum()} ({(part['verdict (FDR)'] == text).sum()})"
            for title, text in {"hold": "holds", "reversed": "does not hold"}.items()
        }
        least = part["detectable"].median()
        found.append({**dict(zip(by, place, strict=True)), "statements": len(part), **counts,
                      "detectable": "" if np.isnan(least) else f"{least:.3f}"})  # fmt: skip
    return pd.DataFrame(found).rename(columns={"dataset": "data"})


def significant(claims: pd.DataFrame) -> pd.DataFrame:
    """Statements that are significant with a false discovery rate of 5 %, and p after Holm."""
    found = claims[claims["verdict (FDR)"].isin(["holds", "does not hold"])]
    numbers = found[["ours", "low", "high"]].map("{:.3f}".format)
    shown = found[["dataset", "ordering"]].rename(columns={"dataset": "data"})
    shown["difference"] = numbers["ours"] + " (" + numbers["low"] + " to " + numbers["high"] + ")"
    shown["verdict"] = found["verdict (FDR)"]
    return shown.assign(**{"p (Holm)": found["p (Holm)"].map("{:.3f}".format)})


def trade_off(results: Results) -> pd.DataFrame:
    """Figure 3: accuracy and Delta-EO in percent by the weight of the adversary, unshifted."""
    rows = where(equalized_robustness.figure_3(results), shift=UNSHIFTED)
    cells = (100 * rows["accuracy"]).map("{:.1f}".format)
    cells += ", " + (100 * rows["delta_eo"]).map("{:.1f}".format)
    wide = rows.assign(cell=cells).pivot(index="method", columns="alpha", values="cell")
    return wide.rename(columns="alpha {:g}".format).reset_index()


NUMBERS = {name: kernel_fairness.SENSITIVE[name] for name in kernel_fairness.REGRESSION}
CLASSES = {
    name: attribute for name, attribute in kernel_fairness.SENSITIVE.items() if name not in NUMBERS
}
LINEAR = {f"{name}_linear": attribute for name, attribute in kernel_fairness.TRADE_OFF.items()}
SEARCHED = {f"{name}_searched": attribute for name, attribute in kernel_fairness.TRADE_OFF.items()}
QUALITY = ("accuracy", "constant_accuracy", "balanced_accuracy", "roc_auc")
ERROR = "unexplained_variance"
TESTED = ("score", "p")
BESIDE_OURS = ("table_9", "table_10", "table_11", "table_12")
OF_TRIAL = ["dataset", "penalised", "method", "metric"]
SHORT = {
    "constant_accuracy": "a constant",
    "balanced_accuracy": "balanced",
    "roc_auc": "AUROC",
    ERROR: "unexplained variance",
}


def fairest(
    attributes: Mapping[str, str], measures: Sequence[str], results: Results
) -> pd.DataFrame:
    """Measures, score and p of data sets by the attribute that is penalised, the fairest trials.

    Those of every split with 97 % of the best accuracy, or 75 % of the error; of plain training the
    best. The gap is the disparate impact or Delta-EO. Without notions that were not run.
    """
    found = []
    for notion in kernel_fairness.NOTIONS:
        names = _names(notion)
        rows = where(kernel_fairness.selected(results, notion), dataset=attributes, group="")
        own = rows["attribute"] == rows["dataset"].map(attributes)
        rows = rows[(own | (rows["attribute"] == "")) & rows["metric"].isin([*measures, *names])]
        rows = rows.assign(metric=rows["metric"].replace(names), penalised=notion)
        run = rows.groupby("dataset")["method"].transform("nunique") > 1
        found.append(over_seeds(rows[run], OF_TRIAL))
    beside = pd.concat(found).merge(_printed(attributes), how="left", on=OF_TRIAL)
    wide = _beside_printed(beside).pivot(index=OF_TRIAL[:-1], columns="metric", values="cell")
    wide = wide.reindex(columns=[*measures, *TESTED]).fillna("")
    return wide.rename(columns=SHORT).reset_index()


def _names(notion: str) -> dict[str, str]:
    """What tables call the measures of a notion."""
    names = {kernel_fairness.SCORES[notion]: "score", kernel_fairness.P_VALUES[notion]: "p"}
    return names | ({kernel_fairness.GAPS[notion]: "gap"} if notion in kernel_fairness.GAPS else {})


def _printed(attributes: Mapping[str, str]) -> pd.DataFrame:
    """The numbers of Tables 9 to 12; impacts above 1 as their inverse."""
    theirs = where(published(kernel_fairness.PAPER), view=BESIDE_OURS)
    theirs = theirs.replace({"dataset": {"adult_complete": "adult_official"}})
    theirs = theirs[theirs["attribute"].isin(["", *attributes.values()])]
    folded = kernel_fairness.folded(theirs.rename(columns={"value": "published"}))
    names = dict.fromkeys(kernel_fairness.SCORES.values(), "score")
    names |= {"mean_squared_error": ERROR, "disparate_impact": "gap"}
    theirs = theirs.assign(
        published=folded.fillna(theirs["value"]), metric=theirs["metric"].replace(names)
    )
    theirs = theirs.rename(columns={"notion": "penalised"})
    return theirs[[*OF_TRIAL, "published"]].drop_duplicates(OF_TRIAL)


def _beside_printed(found: pd.DataFrame) -> pd.DataFrame:
    """With a column ``cell``: as ``_spread``, with the published number and missing splits."""
    found = _spread(found)
    printed = found["published"].map(" ({:.2f})".format).where(found["published"].notna(), "")
    all_splits = found.groupby(OF_TRIAL[:1])["seeds"].transform("max")
    fewer = ", " + found["seeds"].astype(str) + " of " + all_splits.astype(str)
    cells = found["cell"].str.removesuffix(" ± nan") + printed
    cells += fewer.where(found["seeds"] < all_splits, "")
    cells = cells.where(found["seeds"] > 0, "–" + printed)
    return found.assign(cell=cells.str.replace(" ± ", "±"))


def weights(results: Results) -> pd.DataFrame:
    """Table 13, and linear models: accuracy, score and splits where p is below 5 % by weight."""
    found = kernel_fairness.table_13(results, {**kernel_fairness.TRADE_OFF, **LINEAR})
    measures = [
        _names(notion).get(metric, metric)
        for notion, metric in zip(found["notion"], found["metric"], strict=True)
    ]
    found = _spread(found).assign(measure=measures, accuracy=found["ours"].map("{:.3f}".format))
    found["rejected"] = found["rejected"].map("{:.0f}".format)
    keys = ["dataset", "notion", "weight"]
    shown = {"accuracy": "accuracy", "score": "cell", "p": "rejected"}
    parts = [
        found[found["measure"] == measure].set_index(keys)[column]
        for measure, column in shown.items()
    ]
    cells = pd.concat(parts, axis=1).agg("; ".join, axis=1)
    return cells.unstack("weight", "").rename(columns="weight {:g}".format).reset_index()


GENERATED = {
    "digits_extend": "first run",
    "digits_extend_direction_1": "another direction",
    "digits_extend_generator_1": "another generator",
    "digits_overlap": "first run",
    "digits_overlap_direction_1": "another direction",
    "digits_overlap_generator_1": "another generator",
    "digits_overlap_large": "twice as many training images",
    "digits_overlap_full": "training images of the whole space",
    "digits_truncation": "first run",
    "digits_truncation_generator_1": "another generator",
}
REFERENCE = "(reference classifier)"


def accuracies(shift: str, results: Results) -> pd.DataFrame:
    """Accuracy in percent by severity, also of the classifier of real images."""
    own = where(latent_shift.accuracies(results), shift=shift).drop(columns="severity")
    own = own.rename(columns={"position": "severity"})
    own = own.dropna(subset="severity")
    places = own[["dataset", "severity"]].drop_duplicates()
    reference = where(results.generator_quality, shift=[shift, UNSHIFTED]).merge(places)
    both = pd.concat([own, reference.assign(method=REFERENCE)])
    keys = ["dataset", "method"]
    wide = both.pivot_table("accuracy", keys, "severity", sort=False).sort_index(axis=1)
    shown = (100 * wide).map("{:.1f}".format).replace("nan", "")
    return _in_words(shown.rename(columns="{:g}".format).reset_index())


def robustness(results: Results) -> pd.DataFrame:
    """Slopes of the accuracy in points by degree, or by .1 of R, and net of the reference."""
    lines = where(latent_shift.slopes(results), dataset=GENERATED)
    axis = lines["shift"].map(latent_shift.AXES)
    found = []
    for title, form in {"slope": axis, "net slope": axis + latent_shift.NET}.items():
        found.append(lines[lines["against"] == form].assign(form=title))
    rows = pd.concat(found)
    unit = np.where(rows["shift"] == latent_shift.TRUNCATION, 10, 100)
    numbers = rows[["slope", "low", "high"]].mul(unit, axis=0).map("{:.2f}".format)
    cells = numbers["slope"] + " (" + numbers["low"] + " to " + numbers["high"] + ")"
    rows = rows.assign(cell=cells.str.replace(" (nan to nan)", "", regex=False))
    keys = ["dataset", "shift", "method"]
    wide = rows.set_index([*keys, "form"])["cell"].unstack(sort=False)  # noqa: PD010
    return _in_words(wide.reset_index())


def linearity(results: Results) -> pd.DataFrame:
    """R squared of the lines through all cells of a shift, in functions of the distance."""
    rows = where(latent_shift.linearity(results), dataset=GENERATED)
    keys = ["dataset", "shift", "augmentation", "space"]
    wide = rows.pivot_table("R squared", keys, "linear in", sort=False).map("{:.3f}".format)
    return _in_words(wide.reset_index())


def _in_words(rows: pd.DataFrame) -> pd.DataFrame:
    """In the order of ``GENERATED``, with its words."""
    order = rows["dataset"].map([*GENERATED].index)
    rows = rows.iloc[np.argsort(order, kind="stable")]
    return rows.rename(columns={"dataset": "data"}).replace({"data": GENERATED})


RARE = {"digits_balanced": "balanced", "digits_imbalanced": "rare"}
MORE = {"digits_more_balanced": "balanced", "digits_more_imbalanced": "rare"}
GAPS = ("recall_at", "nmi", "u_kl", "accuracy", "macro_precision", "macro_recall")
FORMS = {
    "correlation with lightness": "{:.2f}",
    "median difference of cheeks": "{:.1f}",
    "intraclass correlation": "{:.2f}",
    "deviation within people": "{:.1f}",
}
RULES = {
    ("none", "lowest"): "one classifier",
    ("oversampling", "lowest"): "oversampling",
    ("domain_independent", "lowest"): "domain-independent, lowest logit",
    ("domain_independent", "no_probability"): "domain-independent, no probability",
}


def rare_classes(data: Mapping[str, str], results: Results) -> pd.DataFrame:
    """Majority minus minority by training loss, and the accuracy of all rows."""
    names = {f"{one}_majority_gap": one for one in GAPS} | {"accuracy": "overall accuracy"}
    rows = where(results.unshifted, dataset=data, metric=names, trial="default")
    found = over_seeds(rows, ["method", "dataset", "metric"])
    wide = _spread(found).pivot(index=["method", "dataset"], columns="metric", values="cell")
    return wide[[*names]].rename(columns=names).reset_index().replace({"dataset": data})


COLOURS = {
    "accuracy": "accuracy",
    "recall_at": "recall@1",
    "nmi": "NMI",
    "worst_group_recall_at": "recall@1 of the worst colour",
    "recall_at_worst_gap": "gap of recall@1",
    "nmi_worst_gap": "gap of NMI",
    "accuracy_worst_gap": "gap of accuracy",
}


def rare_colour(results: Results) -> pd.DataFrame:
    """Digits of six colours, of which some are rare, by loss and weights of PARADE."""
    rows = where(results.unshifted, dataset="coloured_digits", metric=COLOURS, group="")
    usual = {"classifier": "logistic_regression", "rebalancing": "none"}
    rows = results.with_hparams(rows, ["alpha", "rho", *usual])
    others = rows[[*usual]].astype(object).fillna(usual)
    keys = ["method", "alpha", "rho"]
    rows = rows[(others == pd.Series(usual)).all(axis=1)].astype(dict.fromkeys(keys, object))
    rows = rows.fillna(dict.fromkeys(keys, ""))
    found = _spread(over_seeds(rows, [*keys, "metric"]))
    wide = found.pivot(index=keys, columns="metric", values="cell")[[*COLOURS]]
    return wide.rename(columns=COLOURS).reset_index()


def rebalanced(results: Results) -> pd.DataFrame:
    """Accuracy, and majority minus minority of it, by how the classifier was rebalanced."""
    metrics = {"accuracy": "accuracy", "accuracy_majority_gap": "gap"}
    rows = where(results.unshifted, dataset="digits_imbalanced", metric=metrics)
    rows = results.with_hparams(rows, ["rebalancing", "absent_classes"])
    usual = {"rebalancing": "none", "absent_classes": "lowest"}
    rows = rows.astype(dict.fromkeys(usual, object)).fillna(usual)
    rule = [*zip(rows["rebalancing"], rows["absent_classes"], strict=True)]
    rows = rows.assign(rule=pd.Series(rule, rows.index).map(RULES))
    found = _spread(over_seeds(rows, ["method", "rule", "metric"]))
    wide = found.pivot(index="method", columns=["rule", "metric"], values="cell").dropna()
    order = [(rule, metric) for rule in RULES.values() for metric in metrics]
    named = [f"{rule}: {metrics[metric]}" for rule, metric in order]
    return wide[order].set_axis(named, axis=1).reset_index()


def skin_tones(results: Results) -> pd.DataFrame:
    """Shares of the categories in percent, and what the angle follows.

    Not of a run: faces were measured once.
    """
    rows = pd.read_csv(RESULTS / "fair_metric_learning_skin_tone.csv")
    shares = ["I", "II", "III", "IV", "V", "VI"]
    shown = rows.assign(**(100 * rows[shares]).map("{:.1f}".format))
    for name, form in FORMS.items():
        shown[name] = rows[name].map(form.format)
    return shown.replace({"encoding": {"cielab": "CIELAB", "eight_bits": "8 bits"}})


def _spread(found: pd.DataFrame) -> pd.DataFrame:
    """With a column ``cell``: mean and standard deviation over seeds."""
    cells = found["ours"].map("{:.3f}".format) + " ± " + found["std"].map("{:.3f}".format)
    return found.assign(cell=cells)


CHANGED = {
    "biased_mnist_formulas": "none",
    "biased_mnist_as_published": "list of positions",
    "biased_mnist_factors_1": "draw of the factors",
    "biased_mnist_factors_2": "draw of the factors, another",
}
GIVEN = "distractor_shape"
MAJORITY_MINUS_MINORITY = "majority_minority_difference"
COLUMNS = {
    "unbiased_accuracy": "unbiased accuracy",
    "majority_minority_difference": "majority minus minority, distractor shape",
    "mean_majority_minority_difference": "mean over variables",
}
UNBIASED = {"unbiased_accuracy": "unbiased accuracy"}


def ablations(results: Results) -> pd.DataFrame:
    """Biased MNIST with one change at a time, in percent and points."""
    rows = where(results.unshifted, dataset=CHANGED, metric=COLUMNS, attribute=["", GIVEN])
    found = _in_percent(over_seeds(rows, ["dataset", "method", "metric"]))
    wide = found.pivot(index=["dataset", "method"], columns="metric", values="cell")
    wide = wide.loc[list(CHANGED), list(COLUMNS)].rename(columns=COLUMNS).reset_index()
    return wide.rename(columns={"dataset": "change"}).replace({"change": CHANGED})


def by_variable(results: Results) -> pd.DataFrame:
    """Majority minus minority of every bias variable for the standard model, in points."""
    rows = where(results.unshifted, dataset=CHANGED, method="erm", metric=MAJORITY_MINUS_MINORITY)
    found = _in_percent(over_seeds(rows, ["dataset", "attribute"]))
    wide = found.pivot(index="attribute", columns="dataset", values="cell")
    wide = wide[[name for name in CHANGED if name in wide]].rename(columns=CHANGED)
    return wide.rename_axis("variable").reset_index()


def given_to_lnl(results: Results) -> pd.DataFrame:
    """LNL at its own learning rate by the variable that it is given, in percent and points."""
    rows = where(results.unshifted, dataset="biased_mnist_lnl", metric=COLUMNS)
    rows = bias_variables.with_variables(results, rows, default="distractor_color")
    rows = rows[(rows["attribute"] == "") | (rows["attribute"] == rows["explicit"])]
    found = _in_percent(over_seeds(rows, ["explicit", "metric"]))
    wide = found.pivot(index="explicit", columns="metric", values="cell")[[*COLUMNS]]
    titles = ["unbiased accuracy", "majority minus minority, given", "mean over variables"]
    return wide.set_axis(titles, axis=1).rename_axis("given").reset_index()


PRECISIONS = {
    "biased_mnist_tuned": ("Biased MNIST", "float32"),
    "biased_mnist_bfloat16": ("Biased MNIST", "bfloat16"),
    "celeba_hair": ("CelebA, hair colour", "float32"),
    "celeba_hair_bfloat16": ("CelebA, hair colour", "bfloat16"),
}


SIZES = {
    "biased_mnist_tuned": "24 pixels, 20,000 images, 8 epochs",
    "biased_mnist_larger": "48 pixels, 50,000 images, 10 epochs",
}


def sizes(results: Results) -> pd.DataFrame:
    """Unbiased accuracy in percent at two sizes, of the methods that were trained at both."""
    rows = where(results.unshifted, dataset=SIZES, metric=UNBIASED)
    found = _in_percent(over_seeds(rows, ["dataset", "method"]))
    wide = found.pivot(index="method", columns="dataset", values="cell")[[*SIZES]].dropna()
    return wide.rename(columns=SIZES).reset_index()


def precisions(results: Results) -> pd.DataFrame:
    """Unbiased accuracy in percent of plain training in both precisions."""
    rows = where(results.unshifted, dataset=PRECISIONS, method="erm", metric=UNBIASED)
    cells = _in_percent(over_seeds(rows, ["dataset"])).set_index("dataset")["cell"]
    titles = ["data", "precision", "unbiased accuracy"]
    return pd.DataFrame(
        [(*named, cells[dataset]) for dataset, named in PRECISIONS.items()], columns=titles
    )


TRIED, TUNED = "biased_mnist_tuning", "biased_mnist_tuned"


def tuning(results: Results) -> pd.DataFrame:
    """Unbiased accuracy in percent on the unbiased validation rows, by trial."""
    rows = where(results.trials, dataset=TRIED)
    shown = rows["trial"] + ": " + (100 * rows["score"]).map("{:.1f}".format)
    number = rows.groupby("method").cumcount()
    cells = rows.assign(cell=shown.mask(number == 0, shown.str.removeprefix("default: ")))
    wide = cells.assign(number=number).pivot(index="method", columns="number", values="cell")
    named = ["setting of the tables below", "another rate", "another value"]
    wide = wide.set_axis(named, axis=1).assign(selected=best_trials(results))
    return wide.loc[rows["method"].unique()].reset_index()


def best_trials(results: Results) -> pd.Series:
    """The trial with the best score on validation rows, by method."""
    rows = where(results.trials, dataset=TRIED).set_index("method")
    best = rows.groupby(level=0, sort=False)["score"].transform("max") == rows["score"]
    return rows.loc[best, "trial"]


def against_erm(dataset: str, columns: Mapping[str, str], results: Results) -> pd.DataFrame:
    """Methods against the standard model, in percent and points: unbiased accuracy comes first."""
    rows = where(results.unshifted, dataset=dataset, metric=columns, attribute=["", GIVEN])
    found = _in_percent(over_seeds(rows, ["method", "metric"]))
    wide = found.pivot(index="method", columns="metric", values="cell")
    wide = wide.loc[rows["method"].unique(), [*columns]].rename(columns=columns)
    tests = bias_mitigation.against_the_standard_model(results, dataset).set_index("ordering")
    points = (100 * tests[["ours", "low", "high"]]).map("{:+.1f}".format)
    tested = {
        "minus erm": points["ours"],
        "95 %": points["low"] + " to " + points["high"],
        "p (Holm)": tests["p (Holm)"].map(plain),
        "detectable": (100 * tests["detectable"]).map(partial(plain, digits=1)),
    }
    for place, (name, values) in enumerate(tested.items(), start=1):
        wide.insert(place, name, values)
    wide = wide.fillna("")
    return wide.loc[:, (wide != "").any()].reset_index()  # without tests that were not made


def celeba_subgroups(results: Results) -> pd.DataFrame:
    """Table A3: accuracy of the subgroups in percent, the published one in brackets."""
    rows = bias_mitigation.table_a3(results)
    theirs = (100 * rows["published"]).map(" ({:.1f})".format)
    cells = _in_percent(rows).assign(theirs=theirs)
    cells["group"] += " (" + cells["rows"].astype(str) + " rows)"
    cells["cell"] += cells["theirs"]
    order = cells["method"].unique()
    return cells.pivot(index="method", columns="group", values="cell").loc[order].reset_index()


def _in_percent(found: pd.DataFrame) -> pd.DataFrame:
    """With a column ``cell``: mean and, of several seeds, standard deviation, in percent."""
    means, spreads = ((100 * found[one]).map("{:.1f}".format) for one in ("ours", "std"))
    return found.assign(cell=(means + " ± " + spreads).str.removesuffix(" ± nan"))


PAPERS = {
    one.paper: one
    for one in (
        Paper(
            equalized_robustness.PAPER,
            equalized_robustness.SECTION,
            ("table_1", "table_2", "table_3", "table_6", "table_7", "table_8", "table_9"),
            {"trade_off": trade_off},
            metrics=("delta_er_one_shot",),
            unit=100,
            digits=1,
        ),
        Paper(
            bias_variables.PAPER,
            bias_mitigation.SECTION,
            (),
            {
                "tuning": tuning,
                "tuned": partial(against_erm, TUNED, COLUMNS),
                "ablations": ablations,
                "by_variable": by_variable,
                "given_to_lnl": given_to_lnl,
                "precisions": precisions,
                "sizes": sizes,
                "celeba": partial(against_erm, bias_mitigation.CELEBA, UNBIASED),
                "table_a3": celeba_subgroups,
            },
            tuple(COLUMNS),
            ("accuracy_by_subgroup",),
            of_claims=(),
        ),
        Paper(
            kernel_fairness.PAPER,
            kernel_fairness.SECTION,
            (),
            {
                "classes": partial(fairest, CLASSES, (*QUALITY, "gap")),
                "searched": partial(fairest, SEARCHED, (*QUALITY, "gap")),
                "numbers": partial(fairest, NUMBERS, (ERROR,)),
                "weights": weights,
            },
            (*QUALITY, ERROR, "delta_eo", "faircocco_eo", *kernel_fairness.P_VALUES.values()),
            of_claims=("claims", "significant"),
            claims_by=("claim",),
        ),
        Paper(
            fair_metric_learning.PAPER,
            fair_metric_learning.SECTION,
            (),
            {
                "rare_classes": partial(rare_classes, RARE),
                "rare_classes_more_rows": partial(rare_classes, MORE),
                "rare_colour": rare_colour,
                "rebalanced": rebalanced,
                "skin_tones": skin_tones,
            },
            ("accuracy", *COLOURS, *(f"{one}_majority_gap" for one in GAPS)),
        ),
        Paper(
            latent_shift.PAPER,
            latent_shift.SECTION,
            (),
            {
                **{shift: partial(accuracies, shift) for shift in latent_shift.AXES},
                "robustness": robustness,
                "linearity": linearity,
            },
            ("accuracy",),
            tables=BESIDE | MEASURED,
        ),
    )
}


@cache
def every_claim() -> pd.DataFrame:
    """The verdict on every claim of ``claims.yml``, a row each."""
    rows = []
    for name, listed in yaml.safe_load((RESULTS / "claims.yml").read_text()).items():
        paper = PAPERS[name]
        results = paper.results()
        statements = [paper.section.claims(results)]
        if name == bias_variables.PAPER:
            statements.append(bias_mitigation.against_the_standard_model(results, TUNED))
        found = claims.summary(pd.concat(statements), listed)
        rows.append(found.assign(paper=f"[{name}]({name}.md)"))
    table = pd.concat(rows)
    counts = table[["statements", "hold", "reversed"]]
    return table[["paper", "claim", "verdict"]].assign(
        **counts.map(partial(plain, digits=0)), detectable=table["detectable"].map(plain)
    )


def by_paper() -> pd.DataFrame:
    """Numbers of claims by verdict, and of their statements, by paper."""
    table = every_claim()
    verdicts = pd.crosstab(table["paper"], table["verdict"].str.partition(":")[0])
    counts = table[["statements", "hold", "reversed"]].apply(pd.to_numeric)
    found = verdicts.join(counts.groupby(table["paper"]).sum().astype(int))
    return found.loc[table["paper"].unique()].reset_index()


PAGES = [one.page for one in PAPERS.values()]
PAGES.append(Page(RESULTS / "claims.md", {"by_paper": by_paper, "every_claim": every_claim}))


def fetch(page: Paper, run_ids: list[str]) -> None:
    """Put what a page needs of runs beside it, in place of earlier scores of the same cells.

    Of cells that several runs have, those of the first run are taken.
    """
    for name, keys in page.tables.items():
        runs = pd.concat([provenance.load(one, name, TableDataset) for one in run_ids])
        found = _with_others(runs.drop_duplicates(keys), page.beside(name))
        if name == "metrics":
            needed = {*published(page.paper)["metric"], *page.metrics}
            kept = (found["group"] == "") | found["metric"].isin(page.by_group)
            found = found[found["metric"].isin(needed) & kept]
        found.to_parquet(page.beside(name), index=False, compression="zstd")


def _with_others(found: pd.DataFrame, path: Path) -> pd.DataFrame:
    """With the rows of a file, if it exists, of other cells."""
    if not path.exists():
        return found
    earlier = pd.read_parquet(path)
    cell = [name for name in ("dataset", "method") if name in found]
    again = earlier.set_index(cell).index.isin(found.set_index(cell).index)
    return pd.concat([earlier[~again], found], ignore_index=True)


def main() -> None:
    """Write the pages."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paper", nargs="?", choices=[*PAPERS])
    parser.add_argument("--runs", nargs="+", help="take scores, cells and splits of these runs")
    arguments = parser.parse_args()
    if arguments.runs:
        fetch(PAPERS[arguments.paper], arguments.runs)
    for page in PAGES:
        page.write()


if __name__ == "__main__":
    main()
