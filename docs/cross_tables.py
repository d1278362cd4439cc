"""Write the tables of results/cross.md from the scores and splits that lie beside it.

    python docs/cross_tables.py [--run RUN]

With RUN, of ``kedro run --env=cross``, its scores and splits are put there first. What stands in
the page between the two comments of a table is replaced; the words are written by hand.
"""

import argparse
import re
from functools import partial
from pathlib import Path

import pandas as pd

from robust_fairness.catalog.files import TableDataset
from robust_fairness.core import tables
from robust_fairness.reporting import agreement, ranks
from robust_fairness.runs import provenance

RESULTS = Path(__file__).resolve().parent / "results"
PAGE, SCORES, SPLITS = (
    RESULTS / name for name in ("cross.md", "cross_scores.parquet", "cross_splits.parquet")
)
NAMES = {
    "worst_group_accuracy": "worst group",
    "delta_eo": "ΔEO",
    "faircocco_eo": "FairCOCCO",
    "delta_er": "Delta-ER",
    **{f"mean_accuracy_at(alpha={alpha})": f"Acc({alpha})" for alpha in (-1, 0, 1)},
}
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(\n<!-- end -->)", re.DOTALL)


def shown(name: str) -> str:
    """A measure as the page calls it."""
    measure = name.removesuffix(agreement.SHIFTED)
    return NAMES.get(measure, measure) + name[len(measure) :]


def number(value: float, form: str = ".2f") -> str:
    """A number, or nothing where it is missing."""
    return "" if pd.isna(value) else format(value, form)


def interval(row: pd.Series) -> str:
    """Kendall's tau with its interval."""
    return f"{row['tau']:.2f} ({row['low']:.2f} to {row['high']:.2f})"


def kept(metrics: pd.DataFrame) -> pd.DataFrame:
    """What shifts leave of the fairness that methods gain."""
    found = agreement.kept(metrics)
    return found.assign(
        metric=found["metric"].map(shown),
        severity=found["severity"].map("{:g}".format),
        **{"share left": found["share left"].map(number)},
    )


def survival(metrics: pd.DataFrame) -> pd.DataFrame:
    """What every shift does to every measure, over datasets."""
    rows = agreement.survival(metrics)
    rows["total"] = rows["change for the worse"] * rows["methods"]
    found = rows.groupby(["metric", "shift", "severity"], sort=False, as_index=False).agg(
        datasets=("dataset", "size"),
        pairs=("methods", "sum"),
        tau=("tau", "mean"),
        total=("total", "sum"),
        worse=("worse", "sum"),
        better=("better", "sum"),
    )
    change = (found["total"] / found["pairs"]).map("{:+.3f}".format)
    found.insert(6, "change for the worse", change)
    return found.drop(columns="total").assign(
        metric=found["metric"].map(shown),
        severity=found["severity"].map("{:g}".format),
        tau=found["tau"].map(number),
    )


def measures(metrics: pd.DataFrame) -> pd.DataFrame:
    """Taus between measures on unshifted rows, the lower half of a square."""
    rows = agreement.kendall_over_datasets(metrics)
    return _square(rows[~_shifted(rows["first"]) & ~_shifted(rows["second"])])


def forecasts(metrics: pd.DataFrame) -> pd.DataFrame:
    """Taus between measures on unshifted rows and under shift."""
    rows = agreement.kendall_over_datasets(metrics)
    turned = rows.rename(columns={"first": "second", "second": "first"})
    both = pd.concat([rows, turned])
    both = both[~_shifted(both["first"]) & _shifted(both["second"])]
    asked = (*agreement.COMPARED, "mean_accuracy_at(alpha=0)")
    return _square(both, [name + agreement.SHIFTED for name in asked])


def _shifted(names: pd.Series) -> pd.Series:
    return names.str.endswith(agreement.SHIFTED)


def _square(rows: pd.DataFrame, columns: list[str] | None = None) -> pd.DataFrame:
    """Taus of the second measure by the first, or the reverse where that is no half of a square."""
    across, down = ("first", "second") if columns is None else ("second", "first")
    cells = rows.assign(cell=rows.apply(interval, axis=1))
    wide = cells.pivot(index=down, columns=across, values="cell")
    order = [name for name in agreement.MEASURES if name in wide.index]
    wide = wide.loc[order, columns or [name for name in agreement.MEASURES if name in wide]]
    return wide.fillna("").rename(index=shown, columns=shown).rename_axis(index="").reset_index()


def proposed(metrics: pd.DataFrame) -> pd.DataFrame:
    """The papers' own measures, dataset by dataset."""
    rows = agreement.kendall_of_proposed(metrics)
    rows["pair"] = rows["first"].map(shown) + ", " + rows["second"].map(shown)
    rows["cell"] = rows.apply(interval, axis=1)
    wide = rows.pivot(index="dataset", columns="pair", values="cell")
    methods = rows.groupby("dataset")["n"].max()
    order = [list(dict.fromkeys(rows[name])) for name in ("dataset", "pair")]
    return wide.loc[order[0], order[1]].fillna("").assign(methods=methods).reset_index()


def winners(metrics: pd.DataFrame, tested: str = "unshifted") -> pd.DataFrame:
    """Better and worse than plain training, of so many test sets; fairer where."""
    rows = agreement.winners(metrics)
    rows = rows[rows["tested"] == tested]
    counts = rows[["better", "worse", "tests"]].astype(str)
    cells = rows.assign(cell=counts["better"] + " / " + counts["worse"] + " of " + counts["tests"])
    wide = cells.pivot(index="method", columns="metric", values="cell")
    where = rows[rows["metric"] == "delta_eo"].set_index("method")["better on"]
    methods, measured = list(dict.fromkeys(rows["method"])), list(agreement.COMPARED)
    found = wide.loc[methods, measured].rename(columns=shown)
    return found.assign(**{"fairer (ΔEO) on": where}).fillna("").reset_index()


def average_ranks(metrics: pd.DataFrame) -> pd.DataFrame:
    """Average ranks of the methods, the fairest first."""
    found = {
        shown(name) + (", shifted" if shifted else ""): ranks.comparison_of(metrics, name, shifted)
        for name in agreement.COMPARED
        for shifted in (False, True)
    }
    wide = pd.DataFrame({title: one.ranks.map("{:.1f}".format) for title, one in found.items()})
    order = found["ΔEO"].ranks.index
    return wide.reindex([*order, *wide.index.difference(order)]).reset_index(names="method")


def friedman(metrics: pd.DataFrame) -> pd.DataFrame:
    """Whether average ranks differ, unshifted."""
    rows = []
    for name in agreement.COMPARED:
        one = ranks.comparison_of(metrics, name, shifted=False)
        assert one.test is not None
        rows.append(
            {
                "measure": shown(name),
                "datasets": len(one.datasets),
                "methods": len(one.ranks),
                "p": f"{one.test.p:.0e}",
                "critical difference": number(one.critical_difference, ".1f"),
            }
        )
    return pd.DataFrame(rows)


def sizes(metrics: pd.DataFrame, splits: pd.DataFrame) -> pd.DataFrame:
    """How seeds split the rows."""
    found = agreement.sizes_of_splits(metrics, splits)
    whole = {name: found[name].map("{:,.0f}".format) for name in ("trained on", "tested")}
    parts = {name: found[name].map(number) for name in ("reused", "ratio")}
    return found.assign(**whole, **parts)


def certainty(metrics: pd.DataFrame, splits: pd.DataFrame) -> pd.DataFrame:
    """What stays certain where seeds share rows."""
    found = agreement.certainty(metrics, splits)
    return found.assign(metric=found["metric"].map(shown))


OF_METRICS = {
    "kept": kept,
    "survival": survival,
    "measures": measures,
    "forecasts": forecasts,
    "proposed": proposed,
    "winners": winners,
    "winners_shifted": partial(winners, tested="under shift"),
    "ranks": average_ranks,
    "friedman": friedman,
}
OF_SPLITS = {"sizes": sizes, "certainty": certainty}


def written(page: str, metrics: pd.DataFrame, splits: pd.DataFrame) -> str:
    """The page with its tables made anew.

    Args:
        page: Markdown with a pair of comments for every table.
        metrics: rows of the tidy table.
        splits: ``tables.SPLITS``.
    """
    found = {name: make(metrics) for name, make in OF_METRICS.items()}
    found |= {name: make(metrics, splits) for name, make in OF_SPLITS.items()}
    return BLOCK.sub(lambda block: block[1] + tables.markdown(found[block[2]]) + block[3], page)


def fetch(run_id: str) -> None:
    """Put the scores of a run that the page needs, and its splits, beside the page."""
    metrics = provenance.load(run_id, "metrics", TableDataset)
    needed = metrics["metric"].isin(agreement.MEASURES) & (metrics["group"] == "")
    metrics[needed].to_parquet(SCORES, index=False, compression="zstd")
    names = [f"{name}_splits" for name in metrics["dataset"].unique()]
    splits = pd.concat([provenance.load(run_id, name, TableDataset) for name in names])
    splits.to_parquet(SPLITS, index=False)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--run", help="take scores and splits of this run first")
    run_id = parser.parse_args().run
    if run_id:
        fetch(run_id)
    page = written(PAGE.read_text(), pd.read_parquet(SCORES), pd.read_parquet(SPLITS))
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
