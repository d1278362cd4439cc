"""The command ``study``: counts of blocks against scores of the pipeline's own functions."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from robust_fairness import training
from robust_fairness.cli.study import study
from robust_fairness.core.errors import InputError
from robust_fairness.pipelines.ingestion.pipeline import read, within_domains
from robust_fairness.reporting import study_counts
from robust_fairness.training import blocks
from tests.test_experiment import experiment

GRID = """
datasets:
  heart:
    seeds: 2
    network: linear
    protocol: short
    domains: {train: [cleveland, hungarian], test: [va], rows: test}
    selections: [accuracy, {objective: delta_eo, subject_to: {accuracy: 0.9}}]
    metrics: [accuracy]
    methods:
      erm: {trials: &rates [{learning_rate: 0.3}]}
      fairer: {method: erm, trials: *rates, postprocessing: equalized_odds}
      importance_weighting:
"""
PARAMETERS = """
datasets:
  heart: {sensitive: [age_group], train_rows: 0.5}
protocols:
  short: {epochs: 3, batch_size: 64}
"""
NOTHING = study_counts.counts_in(Path("missing"))


@pytest.fixture(scope="module")
def grid():
    (dataset,) = experiment(GRID, parameters=PARAMETERS, fully=True).datasets
    whole = blocks.equal_sizes(read(dataset.model_copy(update={"seeds": blocks.SPLITS})))
    return dataset, whole, within_domains(whole, dataset)


@pytest.fixture(scope="module")
def block(grid):
    dataset, whole, inside = grid
    (cells, seeds), _ = blocks.due(dataset, NOTHING)
    assert [cell.label for cell in cells] == ["erm", "fairer"]
    return blocks.run_block(inside, whole, cells, seeds, NOTHING)


def test_parts_of_a_domain_have_equal_sizes_in_all_splits(grid):
    """Rows are only left out, and none of the smallest part."""
    dataset, whole, _ = grid
    before = read(dataset.model_copy(update={"seeds": blocks.SPLITS}))
    domain = whole.attributes[whole.domain]
    sizes, old = (
        pd.concat([pd.crosstab(domain, of.splits[name]).stack() for name in of.splits], axis=1)
        for of in (whole, before)
    )
    assert sizes.eq(old.min(axis=1), axis=0).all(axis=None)
    kept = whole.splits.notna()
    assert (whole.splits[kept].astype(object) == before.splits[kept].astype(object))[kept].sum(
        axis=None
    ) == kept.sum(axis=None)


def test_rows_without_a_group_are_in_no_part(grid):
    _, whole, _ = grid
    attributes = whole.attributes.copy()
    attributes.loc[attributes.index[:7], whole.sensitive[0]] = None
    splits = blocks.equal_sizes(replace(whole, attributes=attributes)).splits
    assert splits.iloc[:7].isna().all(axis=None) and splits.iloc[7:].notna().any(axis=None)


@pytest.mark.parametrize("label", ["erm", "fairer"])
def test_counts_give_the_scores_of_the_pipeline(grid, block, label):
    """Trials are chosen by the first refit before post-processing; accuracy of every domain."""
    dataset, whole, inside = grid
    cells = {cell.label: cell for cell in dataset.cells}
    models, validation, _, _ = training.train(inside, cells["erm"])
    first = [part for part in validation if part.seed == 0]
    chosen = training.select(inside, first, cells["erm"])
    both = pd.concat([chosen.assign(seed=seed) for seed in (0, 1)], ignore_index=True)
    predictions = training.predict(inside, models, both, cells[label], {})
    wanted = training.evaluate(inside, predictions, both, cells[label], {})
    wanted = wanted[(wanted["group"] == "") & (wanted["domain"] != "")]
    totals = blocks.totals(whole, dataset)
    assert set(totals["domain"]) == {"cleveland", "hungarian", "va"}  # not switzerland
    tested = block[(block["method"] == label) & (block["part"] != "val")]
    rows = tested.merge(totals[totals["part"] == "test"], left_on=["tested_on", "seed"],
                        right_on=["domain", "seed"])  # fmt: skip
    n = sum(rows[f"rows_{k}"] for k in range(8))
    right = sum(rows[f"positive_{k}"] for k in range(4, 8))  # of class 1
    right += sum(rows[f"rows_{k}"] - rows[f"positive_{k}"] for k in range(4))
    accuracies = rows.assign(found=right / n, selection=rows["selections"].str.split("; "))
    accuracies = accuracies.explode("selection")
    compared = accuracies.merge(wanted, on=["trial", "seed", "selection", "domain"])
    assert len(compared) == len(accuracies) == len(wanted) == 2 * 2 * 3
    assert compared["found"].to_numpy() == pytest.approx(compared["value"].to_numpy(), abs=1e-4)


def test_a_later_block_goes_on_with_the_trial_of_the_first_refit(grid, block):
    dataset, whole, inside = grid
    done = block[block["seed"] == 0]
    ((cells, seeds), *_) = blocks.due(dataset, done)
    assert seeds == (1,)
    again = blocks.run_block(inside, whole, cells, seeds, done)
    keys = [name for name in study_counts.KEYS if name != "trained_on"]
    pair = block[block["seed"] == 1].merge(again, on=keys, suffixes=("", "_again"))
    assert len(pair) == len(again) == (block["seed"] == 1).sum()
    counts = [name for name in block if name.startswith("positive")]
    for name in counts:
        assert pair[name].to_numpy() == pytest.approx(pair[f"{name}_again"].to_numpy(), abs=0.01)
    assert [cell.label for cells, _ in blocks.due(dataset, block) for cell in cells] == [
        "importance_weighting"
    ]


def test_a_rule_that_cannot_be_fitted_is_left_out_and_not_tried_again(grid, caplog):
    """Four validation rows lack a class of a group; plain training goes on."""
    dataset, whole, inside = grid
    (cells, seeds), _ = blocks.due(dataset, NOTHING)
    few = cells[1].model_copy(update={"facets": {"validation": "0.04"}})
    made = blocks.run_block(inside, whole, [cells[0], few], seeds, NOTHING)
    assert set(made["method"]) == {"erm"}
    assert "fairer: left out, postprocessing equalized_odds: " in caplog.text
    assert [cell.label for cells, _ in blocks.due(dataset, made) for cell in cells] == [
        "importance_weighting"
    ]


def test_methods_that_read_other_domains_are_tested_on_other_rows(grid):
    _, whole, inside = grid
    seen = blocks.adapting(inside, whole)
    for split in inside.split_names:
        read_rows, tested = seen.out_of_distribution_rows(split), inside.rows(split, "ood_test")
        assert len(read_rows) and len(tested)
        assert not set(read_rows) & set(tested)
        assert set(whole.attributes[whole.domain].iloc[read_rows]) == {"va"}
        for part in ("train", "val", "test"):
            assert (seen.rows(split, part) == inside.rows(split, part)).all()


def test_a_rule_can_have_a_share_of_the_validation_rows(grid):
    *_, inside = grid
    few = blocks.thinned(inside, 0.25)
    for split in inside.split_names:
        rows, kept = inside.rows(split, "val"), few.rows(split, "val")
        assert len(kept) == round(0.25 * len(rows)) and set(kept) <= set(rows)
        assert (few.rows(split, "train") == inside.rows(split, "train")).all()
    assert np.array_equal(blocks.thinned(inside, 1.0).rows("split_0", "val"),
                          inside.rows("split_0", "val"))  # fmt: skip


def test_counts_are_read_as_they_were_written(block, tmp_path):
    """Those of a dataset, and of all of them."""
    for name in ("heart_a", "heart_b"):
        study_counts.write(tmp_path / f"{name}.parquet", block)
    pd.testing.assert_frame_equal(study_counts.counts_in(tmp_path, "heart_a"), block)
    assert len(study_counts.counts_in(tmp_path)) == 2 * len(block)


def test_answers_of_nothing_are_refused(tmp_path):
    made = CliRunner().invoke(study, [str(tmp_path), "--answers", "income_40"])
    assert made.exit_code == 1
    assert "income_40: missing, train it first" in made.output


def test_trainings_are_tested_in_a_further_domain(grid):
    dataset, *_ = grid
    further = blocks.tested_in(dataset, "switzerland")
    assert further.domains.train == dataset.domains.train
    assert further.domains.test == ("switzerland",)
    for known in ("va", "cleveland"):
        with pytest.raises(InputError, match=f"--further {known}: allowed: a domain that the grid"):
            blocks.tested_in(dataset, known)


def test_a_further_state_is_read_as_well():
    grid = """
datasets:
  income:
    {domains: {train: each, names: [HI, ME]}, network: linear, protocol: short, methods: {erm: }}
"""
    parameters = """
datasets: {income: {source: acs, task: Mobility, states: [HI, ME]}}
protocols: {short: {epochs: 1, batch_size: 8}}
"""
    first, _ = experiment(grid, parameters=parameters, fully=True).datasets
    further = blocks.tested_in(first, "DE")
    assert further.source.parameters.states == ("HI", "ME", "DE")
    assert further.source.parameters.task == "Mobility"
    with pytest.raises(InputError, match="--further XX: .*XX"):
        blocks.tested_in(first, "XX")
