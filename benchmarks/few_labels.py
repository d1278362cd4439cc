"""Audits of a few labels: coverage of intervals and their widths, by simulation and in states.

Simulated tables have 20,000 rows of two groups (30 % are of the second one). The scores of the
unlabelled rows are calibrated, calibrated in neither group, the wrong way round, random, classes
alone, or nearly the labels; labelled rows are drawn at random, or by a plan from calibrated scores.
Counted is how often the interval contains the value of the population.

In states of the American Community Survey boosted trees are trained on half of the people of a
state and audited in every other one, by sex, with the labels of 100, 300 or 1,000 people; counted
is how often the interval contains the value of all labels. Gaps with a rate of fewer than eight
rows have no interval and are left out; the column ``shown`` has the share of the others.

Written before the run: coverage is at least .94 for every number of labels, and intervals are
narrower than those of the labelled rows alone, or the audit says that the score does not help.

    python benchmarks/few_labels.py --tables 1000 --draws 50
    python benchmarks/few_labels.py --chosen 300

The second one chooses labels at random, with known probabilities, and by score and by class without
a word, in three states, and counts how often the audit warns of it (docs/tables).

In the stored results classes, scores that are nearly the labels, and plans have 300 tables.
"""

import argparse
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _results import FOLDER, Row, rounded, save

import robust_fairness as rf
from robust_fairness.auditing.door import check
from robust_fairness.auditing.few_labels import planned
from robust_fairness.auditing.labelled import label_selection
from robust_fairness.auditing.predictions import Options
from robust_fairness.metrics import find_metric
from robust_fairness.numbers import intervals
from robust_fairness.numbers.counts import Counts
from robust_fairness.numbers.estimate import wilson_interval
from robust_fairness.numbers.groups import Groups
from robust_fairness.numbers.intervals import ALL_VALUES, Compared
from robust_fairness.numbers.partly import partly_labelled

ROWS, POPULATION, RARE = 20_000, 2_000_000, 0.3
BASE = np.array([0.4, 0.25])  # median probability of a class in both groups
LABELS = (100, 300, 1000)
SCORES = (
    "calibrated", "calibrated in no group", "the wrong way round", "random", "classes",
    "nearly the labels",
)  # fmt: skip
METRICS = (
    "accuracy", "true_positive_rate", "worst_group_accuracy", "equal_opportunity_difference",
    "equalized_odds_difference", "delta_eo",
)  # fmt: skip
CLASSES = ("0", "1")
CHOSEN = ("accuracy", "true_positive_rate", "equalized_odds_difference")
HOME, AWAY = "NE", ("NM", "WV", "HI")  # of chosen labels
TABLES = Path(__file__).resolve().parents[1] / "docs" / "tables"
Table = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def drawn(kind: str, rows: int, random: np.random.Generator) -> Table:
    """Groups, classes, decisions and scores."""
    group = (random.random(rows) < RARE).astype(int)
    logit = np.log(BASE / (1 - BASE))[group] + 1.5 * random.normal(size=rows)
    p = 1 / (1 + np.exp(-logit))
    y = (random.random(rows) < p).astype(int)
    score = {
        "calibrated": p,
        "calibrated in no group": 1 / (1 + np.exp(-2 * logit + 0.5 - 1.5 * group)),
        "the wrong way round": 1 - p,
        "random": random.random(rows),
        "classes": (p >= 0.5) * 1.0,
        "nearly the labels": np.where(random.random(rows) < 0.03, 1 - y, y) * 0.98 + 0.01,
    }[kind]
    return group, y, (score >= 0.5).astype(int), score


def both(
    table: Table, known: np.ndarray, probability: np.ndarray | None = None
) -> tuple[Counts, Counts]:
    """Counts of all rows, of which some have labels, and of the labelled ones alone."""
    group, y, decision, score = table
    groups, shares = Groups.named(group, ("a", "b")), np.stack([1 - score, score], 1)
    some = partly_labelled(groups, y, decision, CLASSES, known, shares, None, probability)
    there = np.flatnonzero(known)
    weight = None if probability is None else 1 / probability[there]
    return some, Counts.of(groups.take(there), y[there], decision[there], CLASSES, weight)


def values(counts: Counts) -> dict[str, tuple[float, float, float]]:
    """Value, lower and upper bound of every metric; NaN bounds where no interval is shown."""
    made = {}
    for name in METRICS:
        metric = find_metric(name)
        if metric.aggregation or metric.is_measure:
            made[name] = of_gap(intervals.compared(metric, counts))
            continue
        means = counts.everyone.values(metric.definition)
        value, (low, high) = means.value, wilson_interval(means.value, means.effective)
        made[name] = (value[0], low[0], high[0])
    return made


def of_gap(compared: Compared | None) -> tuple[float, float, float]:
    """Value and bounds of a gap."""
    if compared is None:
        return np.nan, np.nan, np.nan
    value = float(compared.gap.of(compared.rates.mean)[0])
    bound = compared.bound()
    ends = (np.nan, np.nan) if bound.interval == ALL_VALUES else (bound.low, bound.high)
    return (1 - value if compared.turned else value, *ends)


def compared(
    true: dict[str, tuple], pairs: list[tuple[Counts, Counts]], found: dict[str, list] | None = None
) -> dict[str, list]:
    """By metric, for every table: whether it is covered, and both widths; NaN without any."""
    found = {name: [] for name in METRICS} if found is None else found
    for pair in pairs:
        some, alone = (values(counts) for counts in pair)
        for name in METRICS:
            (_, low, high), (_, least, most) = some[name], alone[name]
            covered = low <= true[name][0] <= high if np.isfinite(low) else np.nan
            found[name].append((covered, high - low, most - least))
    return found


def summary(found: np.ndarray) -> Row:
    """Coverage and widths of tables ``[tables, 3]``; widths where both have an interval."""
    shown = np.isfinite(found[:, 0])
    wide = np.isfinite(found[:, 1:]).all(1)
    with_scores, alone = found[wide, 1:].mean(0) if wide.any() else (np.nan, np.nan)
    return {
        "tables": len(found), "coverage": rounded(found[shown, 0].mean()),
        "shown": rounded(shown.mean()), "width": rounded(with_scores),
        "labels alone": rounded(alone),
    }  # fmt: skip


def simulated(tables: int) -> Iterator[Row]:
    """Rows by score, number of labels and metric."""
    for kind in (*SCORES, "a plan"):
        of_scores = "calibrated" if kind == "a plan" else kind
        group, y, decision, _ = drawn(of_scores, POPULATION, np.random.default_rng(0))
        true = values(Counts.of(Groups.named(group, ("a", "b")), y, decision, CLASSES))
        for labels in LABELS:
            found: dict[str, list] = {name: [] for name in METRICS}
            for seed in range(tables):
                random = np.random.default_rng([seed, labels])
                table = drawn(of_scores, ROWS, random)
                probability, known = None, np.zeros(ROWS, bool)
                if kind == "a plan":
                    known, probability = chosen(table, labels, seed)
                else:
                    known[random.choice(ROWS, labels, replace=False)] = True
                compared(true, [both(table, known, probability)], found)
            for name in METRICS:
                yield {"scores": kind, "labels": labels, "value": name,
                       **summary(np.array(found[name], float))}  # fmt: skip
            print(kind, labels, flush=True)


def chosen(table: Table, labels: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a plan and their probabilities; rows are in random order anyway."""
    frame = pd.DataFrame({"group": np.array(["a", "b"])[table[0]], "p": table[3]})
    options = Options(None, "p", ["group"])
    rows = planned(check(frame, options), options, labels, draws=0, seed=seed).rows
    known, probability = np.zeros(ROWS, bool), np.ones(ROWS)
    known[rows["row"] - 1] = True
    probability[rows["row"] - 1] = rows["label_probability"]
    return known, probability


def audited_states(
    homes: Collection[str] = (), aways: Collection[str] = ()
) -> Iterator[tuple[str, str, Table]]:
    """Of ordered pairs of states, all by default: their names and the table of the second one."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    samples = rf.load("acs_states")
    states = samples.attributes["state"].astype(str).to_numpy()
    sex = (samples.attributes["sex"].astype(str) == "male").to_numpy().astype(int)
    x = samples.arrays["x"]
    for home in homes or np.unique(states):
        own = np.random.default_rng(0).permutation(np.flatnonzero(states == home))
        train = own[: len(own) // 2]
        model = HistGradientBoostingClassifier(random_state=0).fit(x[train], samples.y[train])
        for away in aways or np.unique(states[states != home]):
            rows = np.flatnonzero(states == away)
            score = model.predict_proba(x[rows])[:, 1]
            yield home, away, (sex[rows], samples.y[rows], (score >= 0.5).astype(int), score)


def in_states(draws: int) -> Iterator[Row]:
    """Rows by number of labels and metric, over the ordered pairs of states."""
    found: dict[tuple[int, str], list] = {}
    for home, away, table in audited_states():
        groups = Groups.named(table[0], ("a", "b"))
        true = values(Counts.of(groups, table[1], table[2], CLASSES))
        for labels in LABELS:
            pairs = []
            for draw in range(draws):
                known = np.zeros(len(table[0]), bool)
                random = np.random.default_rng([draw, labels])
                known[random.choice(len(known), labels, replace=False)] = True
                pairs.append(both(table, known))
            for name, many in compared(true, pairs).items():
                found.setdefault((labels, name), []).append(many)
        print(home, away, flush=True)
    for (labels, name), pairs_of_states in found.items():
        each = np.array(pairs_of_states, float)  # [pairs, draws, 3]
        known = np.isfinite(each[..., 1:]).all(-1, keepdims=True)
        widths = np.where(known, each[..., 1:], 0).sum(1) / known.sum(1)
        yield {
            "labels": labels, "value": name, **summary(each.reshape(-1, 3)),
            "narrower in": f"{(widths[:, 0] < widths[:, 1]).sum()} of {len(each)} pairs",
        }  # fmt: skip


def chosen_in_states(draws: int) -> Iterator[Row]:
    """Rows by state, number of labels and how these were chosen: coverage, and warnings."""
    for home, away, table in audited_states([HOME], AWAY):
        group, y, decision, score = table
        true = values(Counts.of(Groups.named(group, ("a", "b")), y, decision, CLASSES))
        frame = pd.DataFrame({"sex": np.array(["a", "b"])[group], "p": score, "y": y * 1.0})
        frame.loc[0, "y"] = np.nan
        predictions = check(frame, Options("y", "p", ["sex"], labels="some"))
        # the probabilities of a row, up to a factor, and whether the audit is told them
        choices = {
            "at random": (np.ones(len(y)), False), "by sex, known": (1.0 + 2 * group, True),
            "by score": (0.1 + score, False), "by class": (1.0 + 3 * y, False),
        }  # fmt: skip
        for labels in LABELS:
            for choice, (size, told) in choices.items():
                chance = np.minimum(1, labels * size / size.sum())
                covered: dict[str, list] = {name: [] for name in CHOSEN}
                warned = 0
                for draw in range(draws):
                    known = np.random.default_rng([draw, labels]).random(len(y)) < chance
                    probability = chance if told else None
                    made = values(both(table, known, probability)[0])
                    for name in CHOSEN:
                        _, low, high = made[name]
                        if np.isfinite(low):
                            covered[name].append(low <= true[name][0] <= high)
                    some = replace(predictions, known=known, label_probability=probability)
                    warned += bool(label_selection(some))
                shares = {name: np.mean(part) if part else np.nan for name, part in covered.items()}
                yield {
                    "state": away, "labels": labels, "chosen": choice, "draws": draws,
                    **{name: rounded(share) for name, share in shares.items()},
                    "warned": rounded(warned / draws),
                }  # fmt: skip
        print(home, away, flush=True)


def main() -> None:
    """Simulate, then read the states."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--chosen", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.chosen:
        rows = pd.DataFrame(chosen_in_states(arguments.chosen))
        print(rows.to_string())
        rows.to_csv(TABLES / "chosen_labels.csv", index=False)
        return
    rows: list[Any] = [*in_states(arguments.draws), *simulated(arguments.tables)]
    save(__file__, vars(arguments), rows, FOLDER / "simulated")


if __name__ == "__main__":
    main()
