"""Write the tables of results/cross.md from the scores and splits that lie beside it.

    python docs/cross_tables.py [--run RUN]

With RUN, of ``kedro run --env=cross``, its scores and splits are put there first. The tables are
the views of ``reporting.agreement``.
"""

import argparse

import pandas as pd
from pages import RESULTS, Page, rounded

from robust_fairness.catalog.files import TableDataset
from robust_fairness.reporting import Results, agreement
from robust_fairness.runs import provenance

SCORES, SPLITS = (RESULTS / f"cross_{name}.parquet" for name in ("scores", "splits"))
TABLES = {view.id: rounded(view.rows) for view in agreement.VIEWS}


def results() -> Results:
    """The scores and splits beside the page."""
    return Results(pd.read_parquet(SCORES), splits=pd.read_parquet(SPLITS))


PAGES = [Page(RESULTS / "cross.md", TABLES, results)]


def fetch(run_id: str) -> None:
    """Put the scores of a run that the page needs, and its splits, beside the page."""
    metrics = provenance.load(run_id, "metrics", TableDataset)
    needed = metrics["metric"].isin(agreement.MEASURES) & (metrics["group"] == "")
    metrics[needed].to_parquet(SCORES, index=False, compression="zstd")
    provenance.load(run_id, "splits", TableDataset).to_parquet(SPLITS, index=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--run", help="take scores and splits of this run first")
    run = parser.parse_args().run
    if run:
        fetch(run)
    for page in PAGES:
        page.write()
