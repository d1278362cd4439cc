"""The trainings of the study of natural shift: counts against scores of the library's functions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import yaml

import robust_fairness as rf
from robust_fairness.bench import training
from robust_fairness.bench.samples.domains import hold_out_domains
from studies.natural_shift import answers
from studies.natural_shift import train as study
from tests.project import ROOT

LOAD = {"name": "heart", "sensitive": ["age_group"], "train_rows": 0.5, "val_fraction": 0.4}
RATES = [{"learning_rate": 0.3}]
GRID = {
    "selections": ["accuracy", "delta_eo subject to 0.9 of the best accuracy"],
    "protocol": {"batch_size": 64},
    "methods": {
        "erm": {"network": "linear", "trials": RATES, "thresholds": {"fairer": 1.0}},
        "importance_weighting": {"network": "linear"},
        "plain": {"method": "erm", "network": "linear", "thresholds": {"few": 0.02}},
    },
    "data": {
        "hearts": {
            "load": LOAD,
            "domains": ["cleveland", "hungarian", "va"],
            "groups": ["age_group"],
            "epochs": 3,
            "refits": 2,
        }
    },
}
KEYS = ["trained_on", "method", "trial", "seed", "part", "tested_on"]


@pytest.fixture(scope="module")
def before():
    return rf.load(splits=study.SPLITS, **LOAD)


@pytest.fixture(scope="module")
def whole(before):
    return study.equal_sizes(before)


@pytest.fixture(scope="module")
def inside(whole):
    test = ["hungarian", "va"]
    return hold_out_domains(whole, train=["cleveland"], test=test, rows="test")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The command for some methods and refits, twice over; the counts of models of Cleveland."""
    folder = tmp_path_factory.mktemp("counts")
    (folder / "grid.yml").write_text(yaml.safe_dump(GRID))
    always = ["--data", "hearts", "--grid", str(folder / "grid.yml"), "--counts", str(folder)]

    def train(*words: str) -> pd.DataFrame:
        study.main([*always, *words])
        return pd.read_parquet(folder / "hearts" / "hearts_cleveland.parquet")

    train.folder = folder
    return train


@pytest.fixture(scope="module")
def counts(run):
    return run("--methods", "erm")


def test_parts_of_a_domain_have_equal_sizes_in_all_splits(before, whole):
    """Rows are only left out, and none of the smallest part."""
    domain = whole.attributes[whole.domain]
    sizes, old = (
        pd.concat([pd.crosstab(domain, of.splits[name]).stack() for name in of.splits], axis=1)
        for of in (whole, before)
    )
    assert sizes.eq(old.min(axis=1), axis=0).all(axis=None)
    kept = whole.splits.notna()
    assert (whole.splits.astype(object) == before.splits.astype(object))[kept].sum(
        axis=None
    ) == kept.sum(axis=None)


def test_rows_without_a_group_are_in_no_part(whole):
    attributes = whole.attributes.copy()
    attributes.loc[attributes.index[:7], whole.sensitive[0]] = None
    splits = study.equal_sizes(replace(whole, attributes=attributes)).splits
    assert splits.iloc[:7].isna().all(axis=None) and splits.iloc[7:].notna().any(axis=None)


@pytest.mark.parametrize("label", ["erm", "fairer"])
def test_counts_give_the_scores_of_the_library(run, counts, inside, label):
    """Trials are chosen by the first refit before post-processing; accuracy of every domain."""
    plain = study.cell_of(GRID, "hearts", "erm", range(2))
    cell = plain if label == "erm" else study.with_thresholds(plain, label)
    with study.not_kept():
        models, validation, _, _ = training.train(inside, plain)
    first = [part for part in validation if part.seed == 0]
    chosen = training.select(inside, first, plain)
    both = pd.concat([chosen.assign(seed=seed) for seed in (0, 1)], ignore_index=True)
    predictions = training.predict(inside, models, both, cell, {})
    wanted = training.evaluate(inside, predictions, both, cell, {})
    wanted = wanted[(wanted["group"] == "") & (wanted["domain"] != "")]
    totals = pd.read_parquet(run.folder / "hearts_rows.parquet")
    assert set(totals["domain"]) == {"cleveland", "hungarian", "va"}  # not switzerland
    tested = counts[(counts["method"] == label) & (counts["part"] != "val")]
    rows = tested.merge(totals, left_on=["tested_on", "seed"], right_on=["domain", "seed"])
    n = sum(rows[f"rows_{k}"] for k in range(8))
    right = sum(rows[f"positive_{k}"] for k in range(4, 8))  # of class 1
    right += sum(rows[f"rows_{k}"] - rows[f"positive_{k}"] for k in range(4))
    accuracies = rows.assign(right=right / n, selection=rows["selections"].str.split("; "))
    accuracies = accuracies.explode("selection")
    compared = accuracies.merge(wanted, on=["trial", "seed", "selection", "domain"])
    assert len(compared) == len(accuracies) == len(wanted) == 2 * 2 * 3
    assert compared["right"].to_numpy() == pytest.approx(compared["value"].to_numpy(), abs=1e-4)


def test_later_refits_go_on_with_the_trial_of_the_first(counts, tmp_path, monkeypatch):
    """One refit, then the other; what is done is not trained again."""
    always = ["--data", "hearts", "--methods", "erm", "--counts", str(tmp_path)]
    (tmp_path / "grid.yml").write_text(yaml.safe_dump(GRID))
    always += ["--grid", str(tmp_path / "grid.yml")]
    place = tmp_path / "hearts" / "hearts_cleveland.parquet"
    study.main([*always, "--refits", "1"])
    assert set(pd.read_parquet(place)["seed"]) == {0}
    study.main(always)
    again = pd.read_parquet(place)
    pair = counts.merge(again, on=KEYS, suffixes=("", "_again"))
    assert len(pair) == len(again) == len(counts)
    for name in (name for name in counts if name.startswith("positive")):
        assert pair[name].to_numpy() == pytest.approx(pair[f"{name}_again"].to_numpy(), abs=0.01)
    monkeypatch.setattr(study, "block", None)
    study.main(always)


def test_a_rule_that_cannot_be_fitted_is_left_out_and_not_tried_again(run, counts, capsys):
    """Two percent of the validation rows lack a class of a group; plain training goes on."""
    made = run("--methods", "plain", "--refits", "1")
    assert set(made["method"]) == {"erm", "fairer", "plain"}
    out = capsys.readouterr().out
    assert (
        "few: left out, hearts.few: trial default: postprocessing equalized_odds: val rows" in out
    )
    assert len(run("--methods", "plain", "--refits", "1")) == len(made)
    assert capsys.readouterr().out == ""


def test_methods_that_read_other_domains_are_tested_on_other_rows(whole, inside):
    seen = study.adapting(inside, whole)
    for split in inside.split_names:
        read_rows, tested = seen.out_of_distribution_rows(split), inside.rows(split, "ood_test")
        assert len(read_rows) and len(tested)
        assert not set(read_rows) & set(tested)
        assert set(whole.attributes[whole.domain].iloc[read_rows]) == {"hungarian", "va"}
        for part in ("train", "val", "test"):
            assert (seen.rows(split, part) == inside.rows(split, part)).all()


def test_a_rule_can_have_a_share_of_the_validation_rows(inside):
    few = study.thinned(inside, 0.25)
    for split in inside.split_names:
        rows, kept = inside.rows(split, "val"), few.rows(split, "val")
        assert len(kept) == round(0.25 * len(rows)) and set(kept) <= set(rows)
        assert (few.rows(split, "train") == inside.rows(split, "train")).all()
    whole = study.thinned(inside, 1.0)
    assert np.array_equal(whole.rows("split_0", "val"), inside.rows("split_0", "val"))


def test_the_grid_names_what_there_is():
    """Every method of the grid is a cell with four trials, and every question has its methods."""
    grid = yaml.safe_load((ROOT / "studies" / "natural_shift" / "grid.yml").read_text())
    cells = [study.cell_of(grid, "income_40", name, range(10)) for name in grid["methods"]]
    assert {cell.budget for cell in cells} == {4}
    rules = {name for of in grid["methods"].values() for name in of.get("thresholds", ())}
    needed = {name for of in answers.FAMILIES.values() for pair in of.items() for name in pair}
    assert needed | {*answers.QUARTER.values()} <= {cell.label for cell in cells} | rules
