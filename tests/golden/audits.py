"""Random tables, and what ``rf.audit`` says of them."""

from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import robust_fairness as rf
from robust_fairness.auditing.audit import Audit
from robust_fairness.auditing.gates import Rule

SEED = 2026
MANY = 180  # rows, of which halves have subgroups
RULES: tuple[Rule, ...] = ("estimate", "evidence", "doubt")
TARGETS = (
    "decisions", "decisions", "probabilities", "scores", "classes", "class probabilities", "numbers"
)  # fmt: skip
CLASSES = ("high", "low", "middle")
SITES, RACES = ("north", "south", "west"), ("a", "b", "c", "d", "e")
GATES = (
    "demographic_parity_difference>0.1", "equalized_odds_difference[sex]>0.2",
    "equal_opportunity_difference>=0.3", "accuracy_by_group<0.6", "accuracy<0.7",
)  # fmt: skip
GATES_OF_CLASSES = ("accuracy_by_group[race]<0.5", "accuracy<0.7", "worst_group_accuracy<0.4")
GATES_OF_NUMBERS = ("mean_error_difference>0.2", "mean_squared_error_by_group[sex]>1.1")
GATES_OF_CHANGES = ("change(accuracy)<-0.02", "change(demographic_parity_difference[race])>0.05")


@dataclass(frozen=True)
class Case:
    """A random table, perhaps an earlier one, the options of its audit, and gates."""

    table: pd.DataFrame
    options: dict[str, Any]
    gates: list[str] = field(default_factory=list)

    def audit(self) -> Audit:
        """The audit of the table."""
        return rf.audit(self.table, **self.options)


def case(number: int) -> Case:
    """The case of that number, the same in every process."""
    rng = np.random.default_rng([SEED, number])
    target = str(rng.choice(TARGETS))
    rows = int(rng.integers(80, 300))
    table = people(rng, rows, target)
    options: dict[str, Any] = {
        "y_true": "y", "y_pred": "p", "sensitive_features": ["sex", "race"],
    }  # fmt: skip
    if target == "class probabilities":
        options["y_pred"] = [f"p_{name}" for name in CLASSES]
    if target == "scores":
        options |= {"prediction_is": "score", "threshold": 0.25}
    if target == "numbers":
        options["continuous"] = True
    binary = target in ("decisions", "probabilities", "scores")
    options |= of_rows(rng, table, target)
    if rng.random() < 0.15:
        options["metrics"] = "all"
    if rng.random() < 0.25:
        options["intersections"] = True
    elif rng.random() < 0.3:
        options["sensitive_features"] = ["sex", "race", "age"]
        options["bins"] = {"age": 3 if rng.random() < 0.5 else [30, 60]}
    if rng.random() < 0.2 and options.get("labels") != "some":
        options["control_features"] = ["site"]
    if rng.random() < 0.2:
        options["small"] = 15
    if rng.random() < 0.1:
        options["suppress"] = 12
    gates = [*GATES] if binary else [*GATES_OF_CLASSES]
    if target == "numbers":
        gates = [*GATES_OF_NUMBERS]
    if rng.random() < 0.3:
        options["reference"] = earlier = people(rng, int(rng.integers(80, 300)), target)
        of_rows(rng, earlier, "")
        gates += GATES_OF_CHANGES if binary else []
    return Case(table, options, gates)


def people(rng: np.random.Generator, rows: int, target: str) -> pd.DataFrame:
    """People of some groups with a target and predictions, with some values missing."""
    sex = rng.choice(["f", "m"], rows, p=[0.4, 0.6])
    race = rng.choice(RACES, rows, p=[0.5, 0.25, 0.15, 0.07, 0.03])
    size = rng.normal(0, 1, 2)
    truth = rng.normal(size=rows) + 0.3 * size[0] * (sex == "m") + 0.3 * (race == "b")
    seen = truth + rng.normal(0, 1, rows) + 0.3 * size[1] * (sex == "m")
    table = pd.DataFrame(
        {
            "sex": sex, "race": race, "age": rng.integers(18, 90, rows),
            "site": rng.choice(SITES, rows), "y": (truth > 0).astype(int),
        }
    )  # fmt: skip
    if target == "decisions":
        table["p"] = (seen > 0).astype(int)
    elif target == "probabilities":
        table["p"] = (1 / (1 + np.exp(-seen))).round(3)
    elif target == "scores":
        table["p"] = seen.round(3)
    elif target == "numbers":
        table["y"], table["p"] = truth.round(3), (0.5 * seen).round(3)
    else:
        table["y"] = np.array(CLASSES)[np.digitize(truth, [-0.5, 0.5])]
        table["p"] = np.array(CLASSES)[np.digitize(seen, [-0.5, 0.5])]
        shares = np.exp(np.stack([0.5 * seen, -0.5 * seen, np.zeros(rows)]))
        for name, share in zip(CLASSES, shares / shares.sum(0), strict=True):
            table[f"p_{name}"] = share
    if rng.random() < 0.3:
        table["race"] = table["race"].mask(rng.random(rows) < 0.05)
    return table


def of_rows(rng: np.random.Generator, table: pd.DataFrame, target: str) -> dict[str, Any]:
    """Options that read columns of weights, units, labels and memberships, which are added."""
    rows = len(table)
    table["weight"] = rng.lognormal(0, 0.5, rows).round(3)
    table["household"] = rng.integers(0, rows // 3, rows)
    replicates = [f"weight_{number}" for number in range(8)]
    for name in replicates:
        table[name] = (table["weight"] * rng.choice([0.5, 1.5], rows)).round(4)
    shares = rng.integers(0, 100, (rows, 2))
    table["q_x"], table["q_y"] = shares.min(1) / 100, np.ptp(shares, axis=1) / 100
    table["q_z"] = 1 - shares.max(1) / 100
    choices: list[dict[str, Any]] = [{}, {"sample_weight": "weight"}]
    if target != "numbers":
        choices += [
            {"unit": "household"},
            {"sample_weight": "weight", "replicate_weights": replicates},
            {"membership": {"ethnicity": ["q_x", "q_y", "q_z"]}},
        ]
        choices += [{"search": True}] if rows > MANY else []
    if target in ("probabilities", "scores"):
        choices += [{"labels": "none"}, {"labels": "some"}]
    chosen = choices[int(rng.integers(len(choices)))]
    if chosen.get("labels") == "some":
        table["y"] = table["y"].mask(rng.random(rows) < 0.5)
    return chosen


@cache
def audited(number: int) -> Audit:
    """The audit of a case, once."""
    return case(number).audit()


def values(numbers: range) -> pd.DataFrame:
    """Every value with its bounds."""
    columns = ["attribute", "group", "metric", "value", "low", "high", "lowest", "highest", "n"]
    return pd.concat([audited(number).rows[columns].assign(case=number) for number in numbers])


def changes(numbers: range) -> pd.DataFrame:
    """Every change since the earlier table."""
    columns = ["attribute", "group", "metric", "change", "low", "high", "p", "state"]
    frames = {number: audited(number).changed for number in numbers}
    return pd.concat(
        [rows[columns].assign(case=number) for number, rows in frames.items() if rows is not None]
    )


def verdicts(numbers: range) -> pd.DataFrame:
    """The verdict of every gate by rule."""
    return pd.DataFrame(
        {
            "case": number, "rule": rule, "gate": judgement.gate.text,
            "attribute": judgement.row.attribute, "group": judgement.row.group,
            "verdict": judgement.verdict,
        }
        for number in numbers
        for rule in RULES
        for judgement in audited(number).judged(case(number).gates, rule).judgements
    )  # fmt: skip


def power(numbers: range) -> pd.DataFrame:
    """The smallest gaps and changes that the rows show."""
    return pd.DataFrame(
        {"case": number, **asdict(power)} for number in numbers for power in audited(number).power
    )


def worst(numbers: range) -> pd.DataFrame:
    """The worst subgroup of every rate."""
    return pd.DataFrame(
        {"case": number, **asdict(worst)} for number in numbers for worst in audited(number).worst
    )


def within(numbers: range) -> pd.DataFrame:
    """Differences of groups that are others within strata."""
    found = [(number, between) for number in numbers for between in audited(number).between]
    return pd.DataFrame(
        {
            "case": number, "attribute": between.attribute, "metric": between.metric,
            "rate": between.rate, "first": between.groups[0], "second": between.groups[1],
            "overall": between.overall, "within": between.within, "known": between.known,
        }
        for number, between in found
    )  # fmt: skip
