"""Write the tables of docs/audit.md from label_free.csv and iowa.csv.

    python -m studies.audit.tables [iowa]

With ``iowa`` the second file is made first. It is a monthly audit over real years: a model of 2010
and the prison releases of 2011 to 2014 in Iowa.

The first file has estimates without labels and the truth: a scikit-learn model of every state in
every other one, with half of the people of a state to train it and the others as the reference
(``docs/label_free.py`` at commit d1b68cc).

Estimates are compared with those whose reference rows are weighted by the density ratio of the rows
now and then (PAPE, first published as M-CBPE: Bialek et al., arXiv 2401.08348), from a classifier
that tells both apart by the score and the groups, or by all features of the model and the groups.

Hypotheses, written before the run over the 56 pairs of states:

1. Weights by score and group change the mean error of accuracy by less than .002: isotonic
   regression is local in the score, so that a function of it hardly matters.
2. Weights by all features reduce the mean error of accuracy, by less than half: they repair a
   calibration that depends on features, not a change of Y given X.
3. With them more than 40 of 56 estimates of accuracy are still too high.
4. The mean error of the equalized odds difference falls by less than .005, because weights cost
   rows and calibrators of groups repair most of what they could.

A control with a covariate shift alone, written before its run: a quarter of the rows of a state is
the reference, and rows of another quarter are drawn with probabilities that grow with age and fall
with schooling. Hypothesis 5: weights by all features reduce the mean error of accuracy there by at
least a third. (That run left 2 % of effective rows; the control with a quarter of the strength was
added after it.)
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from robust_fairness.core.numbers import estimate
from tools.pages import DOCS, ROOT, STUDIES, Page

SIMULATED = ROOT / "benchmarks" / "results" / "simulated"
IN_STATES = (
    "accuracy", "true_positive_rate", "equal_opportunity_difference", "equalized_odds_difference",
)  # fmt: skip
LABEL_FREE, IOWA = (STUDIES / "audit" / f"{name}.csv" for name in ("label_free", "iowa"))
SHOWN = "NE"  # the state whose table is shown with intervals
METRICS = ("accuracy", "equalized_odds_difference")
PAIRS, CONTROL = "another state", "same state, drawn by age and schooling"
DESIGNS = (CONTROL, f"{CONTROL}, a quarter as strongly")
GUESSES = {
    "at_home": "unchanged since the reference",
    "estimated": "estimate",
    "weighted_by_score": "estimate, weighted by score and group",
    "weighted_by_features": "estimate, weighted by all features",
}
TRAINED, REFERENCE = "2010", "2011"
ATTRIBUTES = ("sex", "race")
THRESHOLD = 0.3  # share of people of 2010 who returned, in tenths
COLUMNS = ["year", "part", "attribute", "metric", "of", "value", "low", "high", "note"]
YEARS = {  # titles of the values of a year
    "accuracy": ("", "accuracy"),
    "flagged": ("", "selection_rate"),
    "area under the curve": ("", "roc_auc"),
    "gap, sex": ("sex", "equalized_odds_difference"),
}
PARTS = {
    "all": "change", "X": "X", "Y given X": "Y given X", "prediction given X": "prediction given X",
}  # fmt: skip
CHANGES = (("", "accuracy"), ("sex", "true_positive_rate"), ("sex", "false_positive_rate"))


def label_free() -> pd.DataFrame:
    """Estimates and true values."""
    return pd.read_csv(LABEL_FREE)


def by_state() -> pd.DataFrame:
    """Estimate with its interval and truth in every state, of the model of one state."""
    rows = label_free().query("trained_in == @SHOWN and design == @PAIRS").set_index("state")
    columns = {}
    for metric in METRICS:
        numbers = rows[rows["metric"] == metric][["estimated", "low", "high", "true"]]
        text = numbers.map("{:.3f}".format)
        columns[f"{metric}, estimated"] = text["estimated"] + (
            " (" + text["low"] + " to " + text["high"] + ")"
        )
        columns["true" if metric == "accuracy" else "true "] = text["true"]
    return pd.DataFrame(columns).reset_index()


def errors() -> pd.DataFrame:
    """Errors over all pairs of states, of every estimate and of assuming no change."""
    return pd.DataFrame(
        {"value": metric, "guess": guess, **_errors(PAIRS, metric, name)}
        for metric in METRICS
        for name, guess in GUESSES.items()
    )


def control() -> pd.DataFrame:
    """The same of accuracy where only the features shift."""
    rows = label_free().groupby("design")["effective_share"].mean()
    return pd.DataFrame(
        {
            "rows now": design,
            "guess": guess,
            **_errors(design, "accuracy", name),
            "effective rows": f"{rows[design]:.0%}" if name == "weighted_by_features" else "",
        }
        for design in DESIGNS
        for name, guess in GUESSES.items()
    )


def _errors(design: str, metric: str, name: str) -> dict[str, str]:
    rows = label_free().query("design == @design and metric == @metric")
    error = rows[name] - rows["true"]
    return {
        "mean error": f"{error.abs().mean():.3f}", "largest error": f"{error.abs().max():.3f}",
        "too high": f"{(error > 0).sum()} of {len(error)}",
    }  # fmt: skip


def iowa() -> pd.DataFrame:
    """What the audit says of each year: values, the monitor, and why they changed since 2011.

    Boosted trees of scikit-learn with their defaults, trained on all releases of 2010; sex and race
    are no features. Only values of groups are kept, no row of a person.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    import robust_fairness as rf
    from robust_fairness.auditing.command import Monitored, TableFile, audit_file
    from robust_fairness.auditing.predictions import Options

    samples = rf.load("iowa_recidivism")
    year = samples.attributes["year"].astype(str).to_numpy()
    model = HistGradientBoostingClassifier(random_state=0)
    model.fit(samples.x[year == TRAINED], samples.y[year == TRAINED])
    x = pd.DataFrame(samples.x, columns=samples.features)
    features = {
        column: x.filter(regex=f"^{column}=").idxmax(axis=1).str.partition("=")[2]
        for column in dict.fromkeys(name.partition("=")[0] for name in samples.features)
    }
    table = pd.DataFrame(features).assign(
        year=year, y=samples.y, p=model.predict_proba(samples.x)[:, 1],
        **{name: samples.attributes[name] for name in ATTRIBUTES},
    )  # fmt: skip
    table = table[table["year"] != TRAINED].rename(columns={"age": "age_band"})
    names = [name if name != "age" else "age_band" for name in features]
    rows_of_years: list[dict[str, object]] = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.csv"
        table.sort_values("year").to_csv(path, index=False)
        options = Options("y", "p", list(ATTRIBUTES), threshold=THRESHOLD)
        monitor = audit_file(TableFile(path), options, monitored=Monitored("year")).monitor
    assert monitor is not None
    rows_of_years += [
        {"year": row["period"], "part": "monitor", "attribute": row["attribute"],
         "metric": row["metric"], "value": row["value"], "low": row["low"], "high": row["high"],
         "note": f"{row['evidence']:.3g} of {row['limit']:.0f}"}
        for row in monitor.to_frame().to_dict("records")
    ]  # fmt: skip
    rows_of_years += [
        {"year": year[-1], "part": "said", "note": text} for text, _ in monitor.sentences()
    ]
    then = table[table["year"] == REFERENCE]
    for name in sorted({*year} - {TRAINED}):
        now = table[table["year"] == name]
        audit = rf.audit(
            now, y_true="y", y_pred="p", sensitive_features=list(ATTRIBUTES), threshold=THRESHOLD,
            metrics=["accuracy", "selection_rate", "roc_auc", "equalized_odds_difference"],
            features=names if name != REFERENCE else (),
            reference=then if name != REFERENCE else None,
        )  # fmt: skip
        rows = audit.rows[(audit.rows["group"] == "") & audit.rows["value"].notna()]
        rows_of_years += [
            {"year": name, "part": "value", **row}
            for row in rows[["attribute", "metric", "value", "low", "high"]].to_dict("records")
        ]
        if audit.why is not None:
            kept = audit.why.rows.assign(value=audit.why.rows["change"], year=name)
            kept["value"] = kept["value"].fillna(kept["auc"])
            rows_of_years += kept[COLUMNS[:-1]].to_dict("records")
            rows_of_years += [
                {"year": name, "part": "said", "note": t} for t in audit.why.sentences()
            ]
    return pd.DataFrame(rows_of_years, columns=COLUMNS)


def iowa_values(*parts: str) -> pd.DataFrame:
    """The values of some parts, with each estimate and its interval as ``text``."""
    numbers = {name: [""] for name in ("value", "low", "high")}
    rows = pd.read_csv(IOWA, dtype={"year": str}, keep_default_na=False, na_values=numbers)
    rows = rows[rows["part"].isin(parts)]
    sign = "" if parts == ("value",) else "+"
    ends = zip(rows["value"], rows["low"], rows["high"], strict=True)
    return rows.assign(text=[estimate(*values, sign) for values in ends])


def years() -> pd.DataFrame:
    """Accuracy, area under the curve and gaps of every year."""
    wide = iowa_values("value").pivot(
        index="year", columns=["attribute", "metric"], values="text"
    )[[*YEARS.values()]]  # fmt: skip
    gap = iowa_values("monitor").query(
        "attribute == 'sex' and metric == 'equalized_odds_difference'"
    )
    evidence = gap.set_index("year")["note"].mask(
        lambda notes: notes.index == REFERENCE, "reference"
    )
    return wide.set_axis([*YEARS], axis=1).assign(**{"evidence of growth": evidence}).reset_index()


def reasons() -> pd.DataFrame:
    """Changes from 2011 to the last year of accuracy and of the gaps in rates, and their parts."""
    shown = pd.DataFrame(CHANGES, columns=["attribute", "metric"]).reset_index(names="order")
    rows = iowa_values(*PARTS).query("year == year.max()").merge(shown)
    of = rows["of"].map(lambda groups: f", {groups}" if groups else "")
    rows = rows.assign(what=rows["metric"].str.replace("_", " ") + of)
    wide = rows.pivot(index=["order", "what"], columns="part", values="text")
    wide = wide[[*PARTS]].rename(columns=PARTS).rename_axis(["order", "value"])
    return wide.reset_index().drop(columns="order")


def simulated(name: str) -> pd.DataFrame:
    """What a benchmark simulated, in a table."""
    return pd.DataFrame(json.loads((SIMULATED / f"{name}.json").read_text())["rows"])


def few_labels() -> pd.DataFrame:
    """What ``benchmarks/few_labels.py`` simulated, by scores, number of labels and value."""
    rows = simulated("few_labels")
    return rows[rows["scores"].notna()].drop(columns="narrower in")[
        ["scores", "labels", "value", "tables", "coverage", "shown", "width", "labels alone"]
    ]


def few_labels_in_states() -> pd.DataFrame:
    """The same in states of the American Community Survey; the values that audits begin with."""
    rows = simulated("few_labels")
    rows = rows[rows["scores"].isna() & rows["value"].isin(IN_STATES)]
    rows = rows.drop(columns=["scores", "tables"])
    return rows.assign(value=rows["value"].str.replace("_", " "))


def subgroups() -> pd.DataFrame:
    """What ``benchmarks/subgroups.py`` simulated."""
    rows = simulated("subgroups")
    return rows.assign(rows=rows["rows"].map("{:,}".format))


TABLES = {"by_state": by_state, "errors": errors, "control": control, "iowa_years": years,
          "iowa_reasons": reasons, "few_labels": few_labels,
          "few_labels_in_states": few_labels_in_states, "subgroups": subgroups}  # fmt: skip
PAGES = [Page(DOCS / "audit.md", TABLES)]

if __name__ == "__main__":
    if sys.argv[1:] == ["iowa"]:
        iowa().to_csv(IOWA, index=False, float_format="%.5f")
    for page in PAGES:
        page.write()
