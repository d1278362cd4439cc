"""A monthly audit over real years: a model of 2010 and the prison releases of 2011 to 2014 in Iowa.

python docs/iowa_audit.py run    # trains on 2010 and audits; writes results/iowa_audit.csv
python docs/iowa_audit.py        # writes the tables of audit.md from that file
"""

import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from pages import DOCS, RESULTS, Page

from robust_fairness.auditing.digits import estimate

VALUES = RESULTS / "iowa_audit.csv"
TRAINED, REFERENCE = "2010", "2011"
ATTRIBUTES = ("sex", "race")
LEVELS = {"equalized_odds_difference": "gap of equalized odds"}
THRESHOLD = 0.3  # share of people of 2010 who returned, in tenths
COLUMNS = ["year", "part", "attribute", "metric", "of", "value", "low", "high", "note"]


def run() -> pd.DataFrame:
    """What the audit says of each year: values, the monitor, and why they changed since 2011.

    Boosted trees of scikit-learn with their defaults, trained on all releases of 2010; sex and race
    are no features. Only values of groups are kept, no row of a person.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    import robust_fairness as rf
    from robust_fairness.auditing import Options
    from robust_fairness.auditing.command import audit_file

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
    found: list[dict[str, object]] = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.csv"
        table.sort_values("year").to_csv(path, index=False)
        options = Options("y", "p", list(ATTRIBUTES), threshold=THRESHOLD)
        monitor = audit_file(path, options, period="year").monitor
    assert monitor is not None
    found += [
        {"year": row["period"], "part": "monitor", "attribute": row["attribute"],
         "metric": row["metric"], "value": row["value"], "low": row["low"], "high": row["high"],
         "note": f"{row['evidence']:.3g} of {row['limit']:.0f}"}
        for row in monitor.to_frame().to_dict("records")
    ]  # fmt: skip
    found += [{"year": year[-1], "part": "said", "note": text} for text, _ in monitor.sentences()]
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
        found += [
            {"year": name, "part": "value", **row}
            for row in rows[["attribute", "metric", "value", "low", "high"]].to_dict("records")
        ]
        if audit.why is not None:
            kept = audit.why.rows.assign(value=audit.why.rows["change"], year=name)
            kept["value"] = kept["value"].fillna(kept["auc"])
            found += kept[COLUMNS[:-1]].to_dict("records")
            found += [{"year": name, "part": "said", "note": t} for t in audit.why.sentences()]
    return pd.DataFrame(found, columns=COLUMNS)


def years(found: pd.DataFrame) -> pd.DataFrame:
    """Accuracy, area under the curve and gaps of every year."""
    rows = found[found["part"] == "value"]
    shown = {
        "accuracy": ("", "accuracy"), "flagged": ("", "selection_rate"),
        "area under the curve": ("", "roc_auc"), "gap, sex": ("sex", "equalized_odds_difference"),
    }  # fmt: skip
    made = []
    for year, own in rows.groupby("year"):
        line: dict[str, object] = {"year": year}
        for name, (attribute, metric) in shown.items():
            (value,) = own[(own["attribute"] == attribute) & (own["metric"] == metric)].to_dict(
                "records"
            )
            line[name] = estimate(value["value"], value["low"], value["high"])
        monitored = found[
            (found["part"] == "monitor") & (found["year"] == year) & (found["attribute"] == "sex")
            & (found["metric"] == "equalized_odds_difference")
        ]  # fmt: skip
        line["evidence of growth"] = "reference" if year == REFERENCE else monitored["note"].iloc[0]
        made.append(line)
    return pd.DataFrame(made)


def reasons(found: pd.DataFrame) -> pd.DataFrame:
    """Changes from 2011 to the last year of accuracy and of the gaps in rates, and their parts."""
    made = []
    parts = {"all": "change", "X": "X", "Y given X": "Y given X"}
    last = found[(found["year"] == found["year"].max()) & found["part"].isin(parts)]
    for attribute, metric in (("", "accuracy"), ("sex", "true_positive_rate"),
                              ("sex", "false_positive_rate")):  # fmt: skip
        rows = last[(last["attribute"] == attribute) & (last["metric"] == metric)]
        of = "".join(rows["of"].head(1))
        line = {"value": metric.replace("_", " ") + (f", {of}" if of else "")}
        for row in rows.to_dict("records"):
            line[parts[row["part"]]] = estimate(row["value"], row["low"], row["high"], "+")
        made.append(line)
    return pd.DataFrame(made)


PAGES = [
    Page(
        DOCS / "audit.md",
        {"iowa_years": years, "iowa_reasons": reasons},
        partial(pd.read_csv, VALUES, dtype={"year": str}, keep_default_na=False,
                na_values={name: [""] for name in ("value", "low", "high")}),
    )
]  # fmt: skip

if __name__ == "__main__":
    if sys.argv[1:] == ["run"]:
        run().to_csv(VALUES, index=False, float_format="%.5f")
    for page in PAGES:
        page.write()
