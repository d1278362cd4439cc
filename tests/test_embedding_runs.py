"""Whole runs of fair metric learning: to the report, killed and completed, on awkward pictures."""

import io
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from robust_fairness.bench.training.records import Fitted, Prediction
from robust_fairness.catalog.arrays import ModelsDataset, PredictionsDataset, SamplesDataset
from robust_fairness.core.samples import Samples
from tests.datasets.test_lfw import COLUMNS, kumar
from tests.project import Project
from tests.test_runs import SMOKE, contents, manifest

CRITERION = "worst_group_recall_at"
PARADE_TRIALS = [{"alpha": 0.9, "rho": 300.0}, {"rho": 0.0}, {"classifier": "k_means"}]
REPRESENTATION = {"recall_at", "nmi", "u_kl", "positive_alignment", "negative_alignment"}
GROUPS = {"recall_at_by_group", "nmi_by_group", "u_kl_by_group", CRITERION, "u_kl_worst_gap"}
DOWNSTREAM = {"accuracy", "delta_eo", "faircocco_eo", "accuracy_at", "macro_precision"}


def configure(project: Project, datasets: dict, seeds: int = 1) -> None:
    """Make these datasets the whole of the smoke grid, and their training short."""
    (project.root / "conf" / "smoke" / "experiment.yml").unlink()
    project.configure("smoke/experiment.yml", {"seeds": seeds, "datasets": datasets})
    project.configure(
        "smoke/parameters.yml", {"protocols": {"digits_metric_learning": {"epochs": 2}}}
    )


def embedded(methods: dict, **fields: object) -> dict:
    """Settings of a dataset of embeddings of digits."""
    return {
        "protocol": "digits_metric_learning",
        "network": "digits_embedding",
        "methods": methods,
        **fields,
    }


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project after a run on digits in colours, and on digits of which some are rare."""
    made = Project.copied_to(tmp_path_factory.mktemp("project"))
    coloured = embedded(
        {
            "margin_distance": {"trials": [{"classifier": "random_forest"}]},
            "parade": {"settings": {"rho": 10}, "trials": PARADE_TRIALS},
        },
        embedding_planes=["margin_distance", "parade"],
        selections=[CRITERION, "every"],
        metrics=sorted(REPRESENTATION | GROUPS | DOWNSTREAM),
        shifts={"gaussian_noise": [0.3]},
    )
    rare = embedded(
        {"margin_distance": {}},
        metrics=["accuracy_by_group", "recall_at_by_group", "macro_recall_by_group"],
    )
    configure(made, {"coloured_digits": coloured, "digits_imbalanced": rare}, seeds=2)
    made.kedro(*SMOKE, "--run-id", "one")
    return made


def samples_of(project: Project, dataset: str) -> Samples:
    """The dataset as the run saved it."""
    path = project.file(f"{dataset}/samples.safetensors", "one")
    return SamplesDataset(filepath=str(path)).load()


def predictions_of(project: Project, cell: str, kind: str = "predictions") -> list[Prediction]:
    """Predictions that the run saved, of test rows or (``validation``) of validation rows."""
    path = project.file(f"{cell}/{kind}.safetensors", "one")
    return PredictionsDataset(filepath=str(path)).load()


def fitted_of(project: Project, cell: str) -> list[Fitted]:
    """The models that the run saved."""
    return ModelsDataset(filepath=str(project.file(f"{cell}/models.safetensors", "one"))).load()


def hits_of(embedding: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whether the nearest other row is of the same class, one row after the other: bool ``[n]``."""
    x = embedding.astype(np.float64)
    hits = []
    for row in range(len(x)):
        distance = np.linalg.norm(x - x[row], axis=1)
        distance[row] = np.inf
        hits.append(y[distance.argmin()] == y[row])
    return np.array(hits)


def test_a_run_ends_in_a_report_with_both_spaces_in_the_plane(project):
    """The plane of PARADE has two spaces, that of plain metric learning one."""
    planes = pd.read_parquet(project.file("08_reporting/planes.parquet", "one"))
    spaces = {method: set(rows["space"]) for method, rows in planes.groupby("method")}
    assert spaces == {
        "margin_distance": {"embedding"},
        "parade": {"embedding", "attribute_embedding"},
    }
    samples = samples_of(project, "coloured_digits")
    assert set(planes["seed"]) == {0}
    for _, rows in planes.groupby(["method", "space"]):
        assert set(rows["row"]) == set(samples.rows("split_0", "val"))
        assert rows["group"].tolist() == samples.attributes["color"].iloc[rows["row"]].tolist()
        assert rows[["x", "y"]].std().min() > 0
    page = project.file("report.html", "one").read_text()
    assert "Embeddings of the other datasets" in page
    assert "attribute_embedding" in page
    assert manifest(project, "one")["state"] == "finished"


def test_embeddings_and_their_classifiers_are_in_one_table_under_noise_too(project):
    """Every metric of every trial, with a value; noise changes what is measured."""
    metrics = project.metrics("one").query("dataset == 'coloured_digits' and selection == 'every'")
    assert set(metrics["network"]) == {"embedding of resnet20"}
    trials = {"default", "classifier=random_forest", "classifier=k_means"}
    trials |= {"alpha=0.9,rho=300.0", "rho=0.0"}
    assert set(metrics["trial"]) == trials
    keys = ["method", "trial", "seed"]
    for _, rows in metrics.groupby([*keys, "shift"]):
        assert set(rows["metric"]) == REPRESENTATION | GROUPS | DOWNSTREAM
    colors = {"red", "orange", "yellow", "green", "blue", "purple"}
    assert set(metrics.query("metric == 'nmi_by_group'")["group"]) == colors
    needed = metrics[metrics["metric"].isin([*REPRESENTATION, "faircocco_eo", "accuracy_at"])]
    assert needed["value"].notna().all()
    assert metrics.query("metric == 'delta_eo'")["note"].notna().all()
    at = {
        name: rows.set_index([*keys, "shift"])["value"] for name, rows in needed.groupby("metric")
    }
    for name in ("recall_at", "u_kl", "faircocco_eo"):
        by_shift = at[name].unstack("shift")
        assert (by_shift["none"] != by_shift["gaussian_noise"]).all(), name


def test_trials_of_a_classifier_share_their_embedding(project):
    """Recall is the same number, accuracy is not."""
    metrics = project.metrics("one").query("selection == 'every' and method == 'margin_distance'")
    rows = metrics.query("dataset == 'coloured_digits' and shift == 'none' and group == ''")
    value = rows.pivot_table("value", "trial", ["seed", "metric"])
    for seed in (0, 1):
        assert value[seed, "recall_at"].nunique() == value[seed, "nmi"].nunique() == 1
        assert value[seed, "accuracy"].nunique() == 2


def test_worst_group_chooses_the_trial_that_its_validation_embeddings_choose(project):
    """By brute force from the predictions that were saved; the first of equal trials."""
    samples = samples_of(project, "coloured_digits")
    colors = samples.attributes["color"].to_numpy()
    worst: dict[str, dict[int, float]] = {}
    for prediction in predictions_of(project, "parade", "validation"):
        assert prediction.part == "val"
        assert prediction.rows.tolist() == samples.rows(prediction.split, "val").tolist()
        hits = hits_of(prediction.values["embedding"], samples.y[prediction.rows])
        by_color = pd.Series(hits).groupby(colors[prediction.rows]).mean()
        worst.setdefault(prediction.trial, {})[prediction.seed] = by_color.min()
    means = pd.DataFrame(worst).mean()
    assert means.nunique() > 1
    chosen = pd.read_parquet(project.file("parade/selection.parquet", "one"))
    chosen = chosen[chosen["selection"] == CRITERION]
    assert set(chosen["trial"]) == {means.idxmax()}
    for row in chosen.itertuples():
        assert row.score == pytest.approx(worst[row.trial][row.seed], abs=1e-12)
    metrics = project.metrics("one").query("method == 'parade' and selection == @CRITERION")
    assert set(metrics["trial"]) == {means.idxmax()}


def test_the_saved_model_of_parade_has_no_attribute_head(project):
    """Its tensors are those of plain metric learning, one projection among them."""
    plain = {
        fitted.trial: fitted for fitted in fitted_of(project, "coloured_digits/margin_distance")
    }
    shapes = {name: array.shape for name, array in plain["default"].state.items()}
    for fitted in fitted_of(project, "coloured_digits/parade"):
        if fitted.trial != "classifier=k_means":
            assert {name: array.shape for name, array in fitted.state.items()} == shapes
        assert sum("projection" in name for name in fitted.state) == 2
        assert not any("attribute" in name or "adversar" in name for name in fitted.state)


def test_class_sizes_are_those_of_each_replicas_own_split(project):
    """The classes that are cut are found again by counting, and other ones in either split."""
    samples = samples_of(project, "digits_imbalanced")
    metrics = project.metrics("one").query("dataset == 'digits_imbalanced'")
    assert set(metrics["attribute"]) == {"class_size"}
    rare: dict[int, set[int]] = {}
    for prediction in predictions_of(project, "digits_imbalanced/margin_distance"):
        counts = np.bincount(samples.y[samples.rows(prediction.split, "train")], minlength=10)
        few = np.sort(np.argsort(counts)[:4])
        assert 4 * counts[few].max() < np.delete(counts, few).min()
        rare[prediction.seed] = set(few)
        y = samples.y[prediction.rows]
        minority, right = np.isin(y, few), prediction.outputs.argmax(1) == y
        rows = metrics[metrics["seed"] == prediction.seed].set_index(["metric", "group"])
        for group, members in (("minority", minority), ("majority", ~minority)):
            row = rows.loc[("accuracy_by_group", group)]
            assert row["n"] == members.sum()
            assert row["value"] == pytest.approx(right[members].mean(), abs=1e-12)
            hits = prediction.values["same_class_rank"] == 1
            recall = rows.loc[("recall_at_by_group", group), "value"]
            assert recall == pytest.approx(hits[members].mean(), abs=1e-12)
    assert rare[0] != rare[1]


def test_killed_while_it_trains_it_is_completed_with_the_same_bits(tmp_path):
    """The draws of miners, batches and the adversary go on where they were."""
    project = Project.copied_to(tmp_path)
    cells = {"margin_distance": {}, "parade": {"settings": {"rho": 10}}}
    configure(project, {"coloured_digits": embedded(cells, metrics=["accuracy", "recall_at"])})
    protocol = {"digits_metric_learning": {"epochs": 6, "checkpoint_seconds": 0}}
    project.configure("smoke/parameters.yml", {"protocols": protocol})
    project.kedro(*SMOKE, "--run-id", "whole")
    child = project.start(*SMOKE, "--run-id", "killed")
    deadline = time.monotonic() + 240
    checkpoints = project.root / "data" / "checkpoints"
    while not list(checkpoints.glob("coloured_digits.parade/*/state.safetensors")):
        assert time.monotonic() < deadline and child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert not list((project.root / "data").rglob("parade/models.safetensors/killed/*"))
    project.kedro(*SMOKE, "--run-id", "killed", "--only-missing-outputs")
    assert contents(project, "killed") == contents(project, "whole")
    assert not list(checkpoints.rglob("*.safetensors"))


PEOPLE = {"Ann_A": 6, "Bob_B": 7, "Cid_C": 5, "Dan_D": 1}  # Dan is the only one of his race
RACES = {"Ann_A": "White", "Bob_B": "Black", "Cid_C": "White", "Dan_D": "Asian"}
NAMES = [f"{who}/{who}_{n:04}.jpg" for who, count in PEOPLE.items() for n in range(1, count + 1)]


def write_faces(root: Path) -> None:
    """Grey pictures of 9 x 7 pixels in the layout of LFW; a file of races, one of others' races."""
    rng = np.random.default_rng(0)
    for name in NAMES:
        darkest = 60 * list(PEOPLE).index(name.partition("/")[0])
        grey = rng.integers(darkest, darkest + 70, (7, 9)).astype(np.uint8)
        path = root / "lfw" / "lfw-deepfunneled" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = io.BytesIO()
        Image.fromarray(grey, "L").save(content, "JPEG")
        path.write_bytes(content.getvalue())
    scores = [[1.5 if column == RACES[name[:5]] else -1.5 for column in COLUMNS] for name in NAMES]
    (root / "lfw" / "lfw_attributes.txt").write_text(kumar(NAMES, scores))
    others = [name.replace("_A", "_Z") for name in NAMES]
    (root / "lfw" / "others.txt").write_text(kumar(others, scores))


def test_awkward_images_run_through_and_those_that_do_not_match_fail_alone(tmp_path):
    """Tiny grey images, a class and a race that occur once; an attribute file of others."""
    project = Project.copied_to(tmp_path)
    write_faces(tmp_path / "raw")
    faces = {"source": "lfw", "size": 8, "val_fraction": 0.4}
    project.configure(
        "base/parameters.yml",
        {"datasets": {"faces": faces, "strangers": {**faces, "attributes": "lfw/others.txt"}}},
    )
    quantities = ["accuracy", "recall_at", "recall_at_by_group", "u_kl_by_group", "u_kl_worst_gap"]
    rebalanced = [{"rebalancing": "oversampling"}, {"rebalancing": "domain_independent"}]
    cells = {"margin_distance": {"trials": rebalanced}, "parade": {"settings": {"rho": 10}}}
    settings = embedded(
        cells, metrics=quantities, selections=["every"], embedding_planes=["parade"]
    )
    configure(project, {"faces": settings, "strangers": settings})
    words = (*SMOKE, "--run-id", "one")
    said = project.kedro(*words, status=1, ROBUST_FAIRNESS_DATA=str(tmp_path / "raw"))
    assert "lfw/lfw-deepfunneled: 6 images in lfw/others.txt are missing, first" in said
    assert "Traceback" not in said
    metrics = project.metrics("one")
    assert set(metrics["dataset"]) == {"faces"}
    assert set(metrics["method"]) == {"margin_distance", "parade"}
    assert set(metrics["group"]) == {"", "Asian", "Black", "White"}
    empty = metrics[metrics["value"].isna()]
    assert set(empty["group"]) == {"Asian"}  # its only image trains
    assert (empty["n"] == 0).all()
    assert empty["note"].str.contains("no rows").all()
    samples = samples_of(project, "faces")
    assert samples.x.shape[1:] == (3, 8, 8)
    assert (samples.x == samples.x[:, :1]).all()
    only = samples.classes.index("Dan_D")
    assert samples.splits["split_0"][samples.y == only].tolist() == ["train"]
    assert "failed</td>" in project.file("report.html", "one").read_text()
