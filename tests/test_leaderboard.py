"""The leaderboard: submitted predictions, scored again."""

import numpy as np
import pandas as pd
import pytest

from tests.test_documents import DOCUMENTS, module


@pytest.fixture(scope="module")
def made():
    return module(DOCUMENTS / "leaderboard.py")


@pytest.fixture(scope="module")
def scores(made) -> pd.DataFrame:
    return made.all_scores()


def test_every_submission_is_listed(made, scores):
    assert {path.stem for path in made.FOLDER.glob("*.csv")} == set(scores["name"])


def test_gaps_are_those_of_true_positive_rates_by_hand(made, scores):
    """In every hospital, from the labels of the dataset."""
    samples, _ = made.problem()
    rows = samples.attributes.assign(y=samples.y, id=samples.id).query("y == 1")
    for name in set(scores["name"]):
        sent = rows.merge(pd.read_csv(made.FOLDER / f"{name}.csv"), on="id")
        rates = sent.groupby(["hospital", "age_group"], observed=True)["probability"].mean()
        gaps = rates.unstack().diff(axis=1).iloc[:, -1].abs().drop("cleveland")
        gaps_of_name = scores[(scores["name"] == name) & (scores["metric"] == made.GAP)]
        np.testing.assert_allclose(gaps_of_name.set_index("hospital")["value"], gaps)


def test_trivial_predictions_come_last_without_rank(made, scores):
    """Whatever their gap is."""
    first = scores["name"] == scores["name"].iloc[0]
    changed = scores.assign(trivial=first, value=scores["value"].mask(first, 0.0))
    ranks = made.ranking(changed)
    assert ranks["rank"].tolist() == ["1", "2", "3", "trivial"]
    assert ranks["submission"].iloc[-1] == f"`{scores['name'].iloc[0]}`"
