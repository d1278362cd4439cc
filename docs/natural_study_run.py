"""Train the cells of ``conf/study`` one by one, and keep their rates by group.

    python docs/natural_study_run.py FOLDER [DATASET ...]

FOLDER gets a table for each cell, and the decompositions of some cells last. Cells whose
table is there are left out, so the command can be stopped and repeated. The functions are those of
the pipeline's nodes, so that ``robust-fairness run --env=study`` trains the same models; here
post-processing shares the training of its classifier, and only what the page needs is computed.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from kedro.framework.startup import bootstrap_project

ROOT = Path(__file__).resolve().parents[1]
bootstrap_project(ROOT)

from robust_fairness import diagnosis, training  # noqa: E402
from robust_fairness.core.errors import InputError  # noqa: E402
from robust_fairness.diagnosis.decomposition import (  # noqa: E402
    Weighted,
    rate_difference,
    weighted_mean,
)
from robust_fairness.diagnosis.pairs import compared  # noqa: E402
from robust_fairness.experiment.experiment import Cell, Dataset  # noqa: E402
from robust_fairness.metrics import robustness  # noqa: E402
from robust_fairness.pipelines.ingestion.pipeline import ingest  # noqa: E402
from robust_fairness.pipelines.shifts.pipeline import shift  # noqa: E402
from robust_fairness.runs.configuration import ConfigLoader  # noqa: E402
from robust_fairness.samples import Samples  # noqa: E402
from robust_fairness.samples.domains import rows_by_domain  # noqa: E402
from robust_fairness.settings import CONFIG_LOADER_ARGS  # noqa: E402
from robust_fairness.training import decisions, prediction  # noqa: E402
from robust_fairness.training.records import Prediction  # noqa: E402

DECOMPOSED = ("erm", "boosted_trees", "boosted_trees_equalized_odds")
HOME = ""  # the domain of test rows of the domains that are trained on


def grid() -> list[Dataset]:
    """The datasets of the study."""
    options = CONFIG_LOADER_ARGS | {"default_run_env": "base"}
    return list(ConfigLoader(str(ROOT / "conf"), "study", **options).validated_experiment.datasets)


def trainings(dataset: Dataset) -> list[list[Cell]]:
    """Cells that differ only in their post-processing, together."""
    found: dict[str, list[Cell]] = {}
    for cell in dataset.cells:
        trained = [(one.seed, one.method, one.network, one.protocol) for one in cell.replicas()]
        found.setdefault(repr(trained), []).append(cell)
    return list(found.values())


def rates(one: Prediction, samples: Samples) -> dict[str, float]:
    """Accuracy and, for the two groups, true and false positive rates with their numbers of rows.

    Group 0 is the first category of the sensitive attribute. Random decisions count as expected.
    """
    label = samples.y[one.rows]
    group = samples.attributes[samples.sensitive[0]].cat.codes.to_numpy()[one.rows]
    found = {"accuracy": np.where(label == 1, one.positive, 1 - one.positive).mean()}
    for name, of_class in {"tpr": 1, "fpr": 0}.items():
        for number in (0, 1):
            kept = (label == of_class) & (group == number)
            found[f"{name}_{number}"] = one.positive[kept].mean() if kept.any() else np.nan
            found[f"{name}_rows_{number}"] = kept.sum()
    return found


def scored(
    cell: Cell, samples: Samples, test_sets: dict[str, Samples], found: list[Prediction]
) -> Iterator[dict[str, object]]:
    """A row per replica and test set; Delta-ER at home, of networks."""
    shifts = {"": ("none", 0.0), **cell.test_sets}
    for one in found:
        shifted, severity = shifts[one.test_set]
        where = {"method": cell.label, "seed": one.seed, "shift": shifted, "severity": severity}
        rows = test_sets[one.test_set]
        if one.part == "test":
            yield {**where, "tested_on": HOME, "rows": len(one.rows), **rates(one, rows),
                   "delta_er": delta_er(one, rows)}  # fmt: skip
        else:
            for domain, kept in rows_by_domain(samples, one.rows).items():
                alone = one.take(kept)
                yield {**where, "shift": "domain", "tested_on": domain, "rows": len(alone.rows),
                       **rates(alone, samples), "delta_er": np.nan}  # fmt: skip


def delta_er(one: Prediction, samples: Samples) -> float:
    """Delta-ER of unshifted rows; missing for models without a curvature."""
    if one.test_set or "curvature" not in one.values:
        return np.nan
    group = samples.attributes[samples.sensitive[0]].iloc[one.rows]
    score = robustness.delta_er(one.values["curvature"], sensitive_features=group)
    return np.nan if score.value is None else float(score.value)


def run(dataset: Dataset, folder: Path) -> None:
    """Train what is missing of a dataset."""
    due = [
        cells
        for cells in trainings(dataset)
        if not all((folder / f"{cell.name}.parquet").exists() for cell in cells)
    ]
    if not due:
        return
    samples, _ = ingest(dataset)
    test_sets = {"": samples} | {one.name: shift(samples, one) for one in dataset.test_sets}
    for cells in due:
        plain = cells[0].model_copy(update={"postprocessing": None})
        try:
            fitted = training.train(samples, plain)[0]
        except InputError as error:
            print(error, flush=True)
            continue
        found = prediction.predict(samples, fitted, plain, test_sets)
        found += prediction.predict(samples, fitted, plain, {"": samples}, "ood_test")
        for cell in cells:
            decided = decisions.decided(samples, fitted, cell, test_sets, found)
            rows = pd.DataFrame(scored(cell, samples, test_sets, decided))
            if cell.label in DECOMPOSED:
                first = [one for one in decided if not one.test_set and one.seed == 0]
                arrays = {f"{one.part}_rows": one.rows for one in first}
                arrays |= {f"{one.part}_positive": one.positive for one in first}
                np.savez(folder / f"{cell.name}.npz", **arrays)
            rows = rows.assign(**{name: cell.facets[name] for name in ("data", "trained_on")})
            rows.to_parquet(folder / f"{cell.name}.part")
            (folder / f"{cell.name}.part").rename(folder / f"{cell.name}.parquet")
            print(cell.name, flush=True)


def decompose(dataset: Dataset, folder: Path) -> None:
    """Decompose the changes of signed gaps and of accuracy, of the first seed."""
    to = folder / f"{dataset.name}.csv"
    cells = [cell for cell in dataset.cells if cell.label in DECOMPOSED]
    if to.exists() or not cells:
        return
    samples, _ = ingest(dataset)
    arrays = {cell.label: np.load(folder / f"{cell.name}.npz") for cell in cells}
    first = arrays[cells[0].label]  # all cells are tested on the same rows
    at_home, found = first["test_rows"], []
    for domain, kept in rows_by_domain(samples, first["ood_test_rows"]).items():
        elsewhere = first["ood_test_rows"][kept]
        shared = compared(samples, at_home, elsewhere).shared
        for cell in cells:
            where = {name: cell.facets[name] for name in ("data", "trained_on")}
            where |= {"domain": domain, "method": cell.label, "auc": shared.auc}
            own = arrays[cell.label]
            before = scores_of(samples, at_home, own["test_positive"])
            after = scores_of(samples, elsewhere, own["ood_test_positive"][kept])
            for metric in before:
                one = diagnosis.decompose(before[metric], after[metric], shared)
                found.append(
                    {**where, "metric": metric, "at_home": one.at_home, "elsewhere": one.elsewhere,
                     "due_to_x": one.due_to_x, "due_to_y_given_x": one.due_to_y_given_x}
                )  # fmt: skip
    pd.DataFrame(found).to_csv(to, index=False, float_format="%.6g")
    print(to.name, flush=True)


def scores_of(samples: Samples, rows: np.ndarray, positive: np.ndarray) -> dict[str, Weighted]:
    """Accuracy and the signed differences of the two rates on some rows."""
    label = samples.y[rows]
    second = samples.attributes[samples.sensitive[0]].cat.codes.to_numpy()[rows] == 1
    right = np.where(label == 1, positive, 1 - positive)
    return {
        "accuracy": weighted_mean(right),
        "tpr": rate_difference(positive, second, label == 1),
        "fpr": rate_difference(positive, second, label == 0),
    }


if __name__ == "__main__":
    to, names = Path(sys.argv[1]), sys.argv[2:]
    to.mkdir(parents=True, exist_ok=True)
    found = {one.name: one for one in grid()}
    for name in names or found:
        run(found[name], to)
    for name in names or found:
        decompose(found[name], to)
