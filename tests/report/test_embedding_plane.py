"""Embeddings of validation rows in the plane."""

import numpy as np
import pandas as pd
import pytest

from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.bench.training.records import Prediction
from robust_fairness.catalog.schemas import Schema
from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.core.samples import Samples
from robust_fairness.pipelines.evaluation.nodes import draw
from robust_fairness.report import embedding_plane as module
from robust_fairness.report.embedding_plane import in_plane, planes, sampled, selected

ROWS = 48


def make(sensitive: tuple[str, ...] = ("color", "age")) -> Samples:
    """Samples of two classes and, by colour, three groups; one colour is missing."""
    colours = np.array(["red", "green", "blue"], dtype=object)[np.arange(ROWS) % 3]
    colours[5] = None
    return Samples(
        x=np.zeros((ROWS, 2), np.float32),
        y=np.arange(ROWS) % 2,
        attributes=pd.DataFrame(
            {
                "color": pd.Categorical(colours),
                "age": np.linspace(0, 1, ROWS),
            }
        ),
        split_attributes={
            name: pd.DataFrame({"class_size": pd.Categorical(sizes)})
            for name, sizes in {
                "s": ["majority", "minority"] * (ROWS // 2),
                "t": ["minority"] * ROWS,
            }.items()
        },
        id=np.arange(ROWS),
        splits=pd.DataFrame({name: pd.Categorical(["val"] * ROWS) for name in ("s", "t")}),
        classes=("a", "b"),
        sensitive=sensitive,
    )


def clusters(labels: np.ndarray, seed: int = 0) -> np.ndarray:
    """Points near a corner each, far from those of other labels."""
    noise = np.random.default_rng(seed).normal(0, 0.01, (len(labels), 8))
    return (np.eye(8)[labels] + noise).astype(np.float32)


def neighbours_agree(points: np.ndarray, labels: np.ndarray) -> float:
    """Share of points whose nearest other point has their label."""
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    return float(np.mean(labels[distances.argmin(1)] == labels))


def test_rows_close_in_a_space_are_close_in_its_plane():
    """Classes in one, colours in the other; every point stands once a space and attribute."""
    samples = make()
    rows = np.arange(ROWS)[::-1]
    values = {
        "embedding": clusters(samples.y[rows]),
        "attribute_embedding": clusters(rows % 3, 1),
        "curvature": np.ones(ROWS),
    }
    table = planes("d", "parade", samples, 7, rows, values)
    Schema("planes").validate(table)
    assert set(table["attribute"]) == {"color"}  # a number is no colour of a figure
    assert table.groupby("space")["row"].apply(sorted).tolist() == [list(range(ROWS))] * 2
    assert (table["dataset"] + "." + table["method"]).unique().tolist() == ["d.parade"]
    assert set(table["seed"]) == {7}
    for space, labels in (("embedding", "label"), ("attribute_embedding", "group")):
        plane = table[(table["space"] == space) & (table["group"] != "")]
        points = plane[["x", "y"]].to_numpy()
        assert neighbours_agree(points, plane[labels].to_numpy()) == 1
    told = table.drop_duplicates("row").set_index("row")
    assert [told.loc[row, "label"] for row in (0, 1)] == ["a", "b"]
    assert [told.loc[row, "group"] for row in (3, 4, 5)] == ["red", "green", ""]


def test_attributes_of_the_split_are_taken_each_with_all_points():
    samples = make(("color", "class_size")).of_split("s")
    rows = np.arange(10, 30)
    table = planes("d", "m", samples, 0, rows, {"embedding": clusters(rows % 2)})
    assert len(table) == 2 * 20
    wide = table.pivot_table(index="row", columns="attribute", values="group", aggfunc="first")
    assert wide.loc[10].to_dict() == {"color": "green", "class_size": "majority"}
    positions = table.groupby("row")[["x", "y"]].nunique()
    assert (positions == 1).all(axis=None)


def test_rows_without_an_attribute_have_one_point():
    table = planes("d", "m", make(("age",)), 0, np.arange(6), {"embedding": clusters(np.arange(6))})
    assert table[["attribute", "group"]].drop_duplicates().to_numpy().tolist() == [["", ""]]
    assert len(table) == 6


def test_many_rows_are_drawn_from_and_always_the_same(monkeypatch):
    """Whatever the order of labels, and the same rows in both spaces."""
    monkeypatch.setattr(module, "MOST_POINTS", 20)
    values = {"embedding": clusters(np.arange(ROWS) % 2), "attribute_embedding": np.eye(ROWS)}
    first, second = (planes("d", "m", make(), 0, np.arange(ROWS), values) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)
    by_space = first.groupby("space")["row"].apply(list)
    assert len(by_space["embedding"]) == 20
    assert by_space["embedding"] == by_space["attribute_embedding"]
    assert len(set(sampled(ROWS))) == 20
    assert sampled(20).tolist() == list(range(20))


@pytest.mark.parametrize("n", [4, 5])
@pytest.mark.parametrize("dimensions", [1, 3])
def test_few_rows_and_one_dimension_have_a_plane(n, dimensions):
    points = np.random.default_rng(0).normal(size=(n, dimensions)).astype(np.float32)
    plane = in_plane(points)
    assert plane.shape == (n, 2)
    assert np.isfinite(plane).all()
    assert len(np.unique(plane, axis=0)) == n


def test_equal_points_lie_at_the_origin():
    """A collapsed embedding is shown as one, without a warning."""
    assert not in_plane(np.full((9, 4), 0.5, np.float32)).any()


@pytest.mark.parametrize(
    ("values", "n", "message"),
    [
        ({"curvature": np.ones(6)}, 6, "embedding_planes: d.m has no embedding of validation"),
        ({"embedding": np.eye(3)}, 3, "d.m has 3 validation rows, allowed: at least 4"),
        ({"embedding": np.full((6, 2), np.nan)}, 6, "d.m has values in its embedding that are"),
    ],
)
def test_what_has_no_plane_is_one_line(values, n, message):
    with pytest.raises(InputError, match=message) as told:
        planes("d", "m", make(), 0, np.arange(n), values)
    assert "\n" not in str(told.value)


def selection(*rows: tuple[str, str, int]) -> pd.DataFrame:
    fields = ("selection", "trial", "seed")
    return tables.table(
        tables.SELECTION, [dict(zip(fields, values, strict=True), score=0.5) for values in rows]
    )


def test_the_replica_is_that_of_the_first_criterion():
    both = selection(
        ("every", "default", 0),
        ("worst_group_nmi", "alpha=1", 3),
        ("worst_group_nmi", "alpha=1", 1),
    )
    assert selected(both) == ("alpha=1", 1)
    assert selected(both[:1]) == ("default", 0)


def prediction(trial: str, seed: int, part: str = "val") -> Prediction:
    rows = np.arange(seed, seed + 8)
    return Prediction(
        trial=trial, seed=seed, split="s", test_set="", part=part, rows=rows,
        outputs=np.zeros((8, 2), np.float32), values={"embedding": clusters(rows % 2)},
    )  # fmt: skip


def test_the_node_draws_the_selected_replica_on_its_validation_rows():
    cell = Cell.model_validate(
        {
            "dataset": "d", "label": "own-name", "method": "erm", "network": "mlp", "seeds": [0, 1],
        }
    )  # fmt: skip
    rows = [
        prediction("default", 0),
        prediction("alpha=1", 0),
        prediction("alpha=1", 1, "unbiased_val"),
        prediction("alpha=1", 1),
    ]
    made = draw(make(("class_size",)), rows, selection(("nmi", "alpha=1", 1)), cell)
    assert set(made["method"]) == {"own-name"}
    assert made["row"].tolist() == list(range(1, 9))
    assert made["group"].tolist() == ["minority", "majority"] * 4
