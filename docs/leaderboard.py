"""Write the tables of results/leaderboard.md from the predictions that were submitted.

    python docs/leaderboard.py            # score all submissions again
    python docs/leaderboard.py --runs ID  # take the predictions of a run's own methods first

A submission is a file ``results/leaderboard/<name>.csv``, as ``robust-fairness submit`` takes it,
and a line of ``results/leaderboard.csv``.
"""

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from pages import RESULTS, Page, intervals, main

from robust_fairness.auditing.trivial import trivial_predictor
from robust_fairness.experiment.experiment import Cell
from robust_fairness.library.auditing import Audit, audit
from robust_fairness.samples import Samples
from robust_fairness.samples.domains import rows_by_domain
from robust_fairness.training import submissions

ROOT = Path(__file__).resolve().parents[1]
FOLDER = RESULTS / "leaderboard"
LISTED = FOLDER.with_suffix(".csv")
DATASET = "heart_from_cleveland"
GAP, ACCURACY = "equal_opportunity_difference", "accuracy"


@cache
def problem() -> tuple[Samples, Cell]:
    """The samples of the leaderboard, and settings with the seed that it uses."""
    from robust_fairness.pipelines.ingestion.pipeline import ingest
    from robust_fairness.runs.configuration import ConfigLoader
    from robust_fairness.settings import CONFIG_LOADER_ARGS

    grid = {"grid": {"datasets": DATASET, "seeds": 1}}
    options = CONFIG_LOADER_ARGS | {"default_run_env": "base", "runtime_params": grid}
    (dataset,) = ConfigLoader(str(ROOT / "conf"), "natural", **options).selected_experiment.datasets
    return ingest(dataset), dataset.cells[0]


def scores(submitted: pd.DataFrame, samples: Samples, cell: Cell) -> pd.DataFrame:
    """Gap and accuracy of a submission in every hospital that is not trained on.

    Returns:
        Columns hospital, metric, value, low, high, n and trivial, whether the predictions of all
        these hospitals are constant or no better than chance.

    Raises:
        InputError: the predictions are not those of the exported rows.
    """
    predictions = submissions.imported(submitted, samples, cell, {})
    (away,) = [part for part in predictions if part.part == "ood_test"]
    rows = samples.attributes.iloc[away.rows].assign(
        y_true=samples.y[away.rows], y_pred=away.positive.astype(int)
    )
    trivial = bool(trivial_predictor(audited(rows, samples).predictions))
    parts = []
    for hospital, places in rows_by_domain(samples, away.rows).items():
        measured = audited(rows.iloc[places], samples).to_frame()
        measured = measured[measured["metric"].isin([GAP, ACCURACY]) & (measured["group"] == "")]
        parts.append(measured[["metric", "value", "low", "high", "n"]].assign(hospital=hospital))
    return pd.concat(parts, ignore_index=True).assign(trivial=trivial)


def audited(rows: pd.DataFrame, samples: Samples) -> Audit:
    """The audit of decisions, with its intervals."""
    names = {"y_true": "y_true", "y_pred": "y_pred", "sensitive_features": list(samples.sensitive)}
    return audit(rows, **names, metrics=[GAP, ACCURACY])


def all_scores() -> pd.DataFrame:
    """``scores`` of every submission, by its name, with what it sees and is."""
    samples, cell = problem()
    listed = pd.read_csv(LISTED, keep_default_na=False)
    parts = [
        scores(pd.read_csv(FOLDER / f"{name}.csv", dtype={"id": str}), samples, cell).assign(
            name=name
        )
        for name in listed["name"]
    ]
    return pd.concat(parts).merge(listed, on="name")


def ranking(scored: pd.DataFrame) -> pd.DataFrame:
    """Submissions by the gap of their worst hospital; trivial ones come last, without rank."""
    gaps = scored[scored["metric"] == GAP].sort_values("value", ascending=False)
    worst = gaps.drop_duplicates("name").sort_values(["trivial", "value"])
    accuracy = scored[scored["metric"] == ACCURACY].sort_values("value").drop_duplicates("name")
    accuracy = accuracy.set_index("name").loc[worst["name"]]
    rank = worst["value"].mask(worst["trivial"]).rank(method="min").map("{:.0f}".format)
    return pd.DataFrame(
        {
            "rank": rank.mask(worst["trivial"], "trivial"),
            "submission": "`" + worst["name"] + "`",
            "gap, worst hospital": intervals(worst, "value"),
            "at": worst["hospital"],
            "accuracy, worst hospital": intervals(accuracy, "value").to_numpy(),
            "sees": worst["sees"],
            "model": worst["model"],
        }
    )


def by_hospital(scored: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A measure by submission and hospital."""
    rows = scored[scored["metric"] == metric]
    rows = rows.assign(shown=intervals(rows, "value"), submission="`" + rows["name"] + "`")
    return rows.pivot(index="submission", columns="hospital", values="shown").reset_index()


PAGES = [
    Page(
        RESULTS / "leaderboard.md",
        {
            "ranking": ranking,
            "gaps": partial(by_hospital, metric=GAP),
            "accuracies": partial(by_hospital, metric=ACCURACY),
        },
        all_scores,
    )
]


def take(run_ids: Sequence[str]) -> None:
    """Write the predictions of a run as submissions, under the names of its methods.

    Randomised decisions, of post-processing, are drawn once.
    """
    from robust_fairness.catalog import names
    from robust_fairness.catalog.arrays import PredictionsDataset
    from robust_fairness.runs import provenance

    (run_id,) = run_ids
    samples, _ = problem()
    draws = np.random.default_rng(0)
    manifest = provenance.load_manifest(run_id)
    for cell in manifest["grid"]["cells"]:
        predictions = provenance.load(
            run_id, names.of_cell(cell, "predictions"), PredictionsDataset
        )
        parts = [
            pd.DataFrame(
                {
                    "split": part.split,
                    "test_set": submissions.PLAIN,
                    "id": samples.id[part.rows],
                    "probability": draws.random(len(part.rows)) < part.positive,
                }
            )
            for part in predictions
        ]
        place = FOLDER / f"{names.parse(f'{cell}.predictions').label}.csv"
        pd.concat(parts).astype({"probability": int}).to_csv(place, index=False)


if __name__ == "__main__":
    main(PAGES, take)
