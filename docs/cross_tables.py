"""Write the tables of results/cross.md from the scores and splits that lie beside it.

    python docs/cross_tables.py [--run RUN]

With RUN, of ``kedro run --env=cross``, its scores and splits are put there first.
"""

import argparse
from collections.abc import Callable
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
from pages import RESULTS, Page, intervals, plain

from robust_fairness.catalog.files import TableDataset
from robust_fairness.reporting import Results, agreement, ranks
from robust_fairness.reporting.agreement import under_shift
from robust_fairness.reporting.results import UNSHIFTED
from robust_fairness.reporting.statistics import kendall_tau
from robust_fairness.runs import provenance

SCORES, SPLITS = (RESULTS / f"cross_{name}.parquet" for name in ("scores", "splits"))
SHOWN = {
    "worst_group_accuracy": "worst group",
    "delta_eo": "ΔEO",
    "faircocco_eo": "FairCOCCO",
    "delta_er": "Delta-ER",
    **{f"mean_accuracy_at(alpha={alpha})": f"Acc({alpha})" for alpha in (-1, 0, 1)},
}
SEEDS_HALVED = 6
SHIFTED = {under_shift(name): name for name in agreement.MEASURES}
two = partial(plain, digits=2)
NAMES = SHOWN | {name: under_shift(SHOWN.get(of, of)) for name, of in SHIFTED.items()}


def shown(name: str) -> str:
    """The name of a measure on the page."""
    return NAMES.get(name, name)


def kept(results: Results) -> pd.DataFrame:
    """How much shifts leave of the fairness that methods gain."""
    found = agreement.kept(results)
    return found.assign(
        metric=found["metric"].map(shown),
        severity=found["severity"].map("{:g}".format),
        **{"share left": found["share left"].map(two)},
    )


def survival(results: Results) -> pd.DataFrame:
    """The effect of every shift on every measure, over datasets."""
    rows = agreement.survival(results)
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
        tau=found["tau"].map(two),
    )


def measures(results: Results) -> pd.DataFrame:
    """Taus between measures on unshifted rows, the lower half of a square."""
    rows = agreement.kendall_over_datasets(results)
    return _square(rows[~rows["first"].isin(SHIFTED) & ~rows["second"].isin(SHIFTED)])


def forecasts(results: Results) -> pd.DataFrame:
    """Taus between measures on unshifted rows and under shift."""
    rows = agreement.kendall_over_datasets(results)
    turned = rows.rename(columns={"first": "second", "second": "first"})
    both = pd.concat([rows, turned])
    both = both[~both["first"].isin(SHIFTED) & both["second"].isin(SHIFTED)]
    columns = (*agreement.COMPARED, "mean_accuracy_at(alpha=0)")
    return _square(both, [under_shift(name) for name in columns])


def _square(rows: pd.DataFrame, columns: list[str] | None = None) -> pd.DataFrame:
    """Taus of the second measure by the first, or the reverse if columns are named."""
    across, down = ("first", "second") if columns is None else ("second", "first")
    cells = rows.assign(cell=intervals(rows, "tau"))
    wide = cells.pivot(index=down, columns=across, values="cell")
    order = [name for name in agreement.MEASURES if name in wide.index]
    wide = wide.loc[order, columns or [name for name in agreement.MEASURES if name in wide]]
    return wide.fillna("").rename(index=shown, columns=shown).rename_axis(index="").reset_index()


def proposed(results: Results) -> pd.DataFrame:
    """The papers' own measures, dataset by dataset."""
    rows = agreement.kendall_of_proposed(results)
    rows["pair"] = rows["first"].map(shown) + ", " + rows["second"].map(shown)
    rows["cell"] = intervals(rows, "tau")
    wide = rows.pivot(index="dataset", columns="pair", values="cell")
    methods = rows.groupby("dataset")["n"].max()
    order = [list(dict.fromkeys(rows[name])) for name in ("dataset", "pair")]
    return wide.loc[order[0], order[1]].fillna("").assign(methods=methods).reset_index()


def winners(tested: str, results: Results) -> pd.DataFrame:
    """Numbers of test sets where methods are better and worse than plain training, and where."""
    rows = agreement.winners(results)
    rows = rows[rows["tested"] == tested]
    counts = rows[["better", "worse", "tests"]].astype(str)
    cells = rows.assign(cell=counts["better"] + " / " + counts["worse"] + " of " + counts["tests"])
    wide = cells.pivot(index="method", columns="metric", values="cell")
    where = rows[rows["metric"] == "delta_eo"].set_index("method")["better on"]
    methods, measured = list(dict.fromkeys(rows["method"])), list(agreement.COMPARED)
    found = wide.loc[methods, measured].rename(columns=shown)
    return found.assign(**{"fairer (ΔEO) on": where}).fillna("").reset_index()


def average_ranks(results: Results) -> pd.DataFrame:
    """Average ranks of the methods, the fairest first."""
    found = {
        shown(name) + (", shifted" if shifted else ""): ranks.comparison_of(
            results.metrics, name, shifted
        )
        for name in agreement.COMPARED
        for shifted in (False, True)
    }
    wide = pd.DataFrame({title: one.ranks.map("{:.1f}".format) for title, one in found.items()})
    order = found["ΔEO"].ranks.index
    return wide.reindex([*order, *wide.index.difference(order)]).reset_index(names="method")


def friedman(results: Results) -> pd.DataFrame:
    """Tests whether average ranks differ, unshifted."""
    rows = []
    for name in agreement.COMPARED:
        one = ranks.comparison_of(results.metrics, name, shifted=False)
        assert one.test is not None
        rows.append(
            {
                "measure": shown(name),
                "datasets": len(one.datasets),
                "methods": len(one.ranks),
                "p": f"{one.test.p:.0e}",
                "critical difference": plain(one.critical_difference, 1),
            }
        )
    return pd.DataFrame(rows)


def sizes(results: Results) -> pd.DataFrame:
    """How seeds split the rows."""
    found = agreement.sizes(results)
    whole = {name: found[name].map("{:,.0f}".format) for name in ("trained on", "tested")}
    parts = {name: found[name].map(two) for name in ("reused", "ratio")}
    return found.assign(**whole, **parts)


def certainty(results: Results) -> pd.DataFrame:
    """What stays significant if seeds share rows."""
    found = agreement.certainty(results)
    return found.assign(metric=found["metric"].map(shown))


def ceilings(results: Results) -> pd.DataFrame:
    """Tau of the rankings by ΔEO with and without noise, over the same seeds and disjoint ones.

    Of tables with at least six seeds. Disjoint are the first half of the seeds (without noise) and
    the second (with it), averaged over all such halves; without any shift it is the ceiling.
    """
    values = agreement.by_seed(results, "delta_eo").dropna(axis=1, how="all")
    found: dict[tuple[str, float], list[tuple[float, float]]] = {}
    for (dataset, shift, severity), shifted in values.groupby(level=agreement.PLACE):
        plain_values = values.xs((dataset, UNSHIFTED, 0), level=agreement.PLACE)
        with_shift = shifted.droplevel(agreement.PLACE)
        seeds = sorted(with_shift.index)
        if len(seeds) >= SEEDS_HALVED:
            halves = [
                tau_of(plain_values.loc[list(half)], with_shift.drop(index=list(half)))
                for half in combinations(seeds, len(seeds) // 2)
            ]
            same = tau_of(plain_values, with_shift)
            found.setdefault((shift, severity), []).append((same, np.mean(halves)))
    rows = [
        (shift, f"{severity:g}", len(taus), *map(two, np.mean(taus, axis=0)))
        for (shift, severity), taus in found.items()
    ]
    titles = ["shift", "severity", "datasets", "same seeds", "disjoint seeds"]
    return pd.DataFrame(rows, columns=titles)


def tau_of(first: pd.DataFrame, second: pd.DataFrame) -> float:
    """Kendall's tau of the means of methods over seeds."""
    return float(kendall_tau(first.mean().to_numpy()[None], second.mean().to_numpy()[None])[0])


TABLES: dict[str, Callable[[Results], pd.DataFrame]] = {
    "kept": kept,
    "survival": survival,
    "measures": measures,
    "forecasts": forecasts,
    "proposed": proposed,
    "winners": partial(winners, "unshifted"),
    "winners_shifted": partial(winners, "under shift"),
    "ranks": average_ranks,
    "friedman": friedman,
    "sizes": sizes,
    "certainty": certainty,
    "ceilings": ceilings,
}


def results() -> Results:
    """The scores and splits beside the page."""
    return Results(pd.read_parquet(SCORES), splits=pd.read_parquet(SPLITS))


PAGES = [Page(RESULTS / "cross.md", TABLES, results)]


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
    for page in PAGES:
        page.write()


if __name__ == "__main__":
    main()
