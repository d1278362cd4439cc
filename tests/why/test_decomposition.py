"""Where a change comes from, against populations of which every part is known, by simulation."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import robust_fairness as rf
from robust_fairness.auditing.why.decomposition import DecomposedChange, ScoredDomains, changes
from robust_fairness.auditing.why.domains import Columns, ComparedRows
from robust_fairness.bench.diagnosis import diagnose
from robust_fairness.bench.training.records import Prediction
from robust_fairness.core.samples import Samples

# P(group, x) and P(y=1 | group, x); the model decides by group and x.
SEEN = np.array([[0.3, 0.18, 0.12], [0.12, 0.16, 0.12]])
LIKELY = np.array([[0.2, 0.4, 0.7], [0.1, 0.6, 0.9]])
HOME = np.stack([SEEN * (1 - LIKELY), SEEN * LIKELY], -1)  # P(group, x, y)
DECIDED = np.array([[0, 1, 1], [0, 1, 1]])  # by group and x
RETRAINED = np.array([[0, 0, 1], [1, 1, 1]])


def other_labels(joint: np.ndarray) -> np.ndarray:
    """The classes of the same x are less certain in the second group."""
    seen, moved = joint.sum(-1), np.array([[0.2, 0.4, 0.7], [0.5, 0.5, 0.5]])
    return np.stack([seen * (1 - moved), seen * moved], -1)


def other_x(joint: np.ndarray) -> np.ndarray:
    """More rows of the last x; labels given x and shares of groups are the same."""
    moved = joint * np.array([0.4, 1, 2.5])[:, None]
    return moved * (joint.sum((1, 2)) / moved.sum((1, 2)))[:, None, None]


def other_classes(joint: np.ndarray) -> np.ndarray:
    """Label shift: class 1 is more frequent, rows of a class are the same: X and Y given X move."""
    return joint / joint.sum((0, 1)) * [0.3, 0.7]


def other_groups(joint: np.ndarray) -> np.ndarray:
    """More rows of the second group."""
    return joint / joint.sum((1, 2), keepdims=True) * np.array([0.25, 0.75])[:, None, None]


SHIFTS = {
    "none": (),
    "another model": (),
    "covariate shift": (other_x,),
    "concept shift": (other_labels,),
    "label shift": (other_classes,),
    "mix of groups": (other_groups,),
    "x and model": (other_x,),
    "labels and model": (other_labels,),
    "all together": (other_x, other_labels, other_groups),
    "all and model": (other_x, other_labels, other_groups),
}
PARTS = ("mix", "x", "y_given_x", "prediction", "whole")


def shifted(shift: str) -> np.ndarray:
    joint = HOME
    for move in SHIFTS[shift]:
        joint = move(joint)
    return joint


def decided_in(shift: str) -> np.ndarray:
    return RETRAINED if "model" in shift else DECIDED


def truth(
    home: np.ndarray, away: np.ndarray, decided: np.ndarray = DECIDED
) -> dict[tuple[str, str], float]:
    """The parts of the accuracy by group, and of the differences of rates, group 1 less group 0."""
    p, t = home.sum(-1), away.sum(-1)
    s = p * t / (p + t)
    likely = [joint[..., 1] / joint.sum(-1) for joint in (home, away)]
    before, after = (likely[0], DECIDED), (likely[1], decided)
    five = ((p, *before), (s, *before), (s, likely[1], DECIDED), (s, *after), (t, *after))

    def accuracy(seen: np.ndarray, y: np.ndarray, d: np.ndarray) -> float:
        right = (seen * np.where(d, y, 1 - y)).sum(1) / seen.sum(1)
        return float(right @ p.sum(1))

    def rate(among: tuple[float, float]):
        def difference(seen: np.ndarray, y: np.ndarray, d: np.ndarray) -> float:
            rows = seen * (among[0] * (1 - y) + among[1] * y)
            rates = (rows * d).sum(1) / rows.sum(1)
            return float(rates[1] - rates[0])

        return difference

    true = {}
    for metric, value in {
        "accuracy": accuracy,
        "selection_rate": rate((1, 1)),
        "true_positive_rate": rate((0, 1)),
        "false_positive_rate": rate((1, 0)),
    }.items():
        values = [value(*of) for of in five]
        elsewhere = values[4]
        if metric == "accuracy":
            elsewhere = float((t * np.where(decided, likely[1], 1 - likely[1])).sum())
            true[metric, "mix"] = elsewhere - values[4]
        true[metric, "x"] = values[1] - values[0] + values[4] - values[3]
        true[metric, "y_given_x"] = values[2] - values[1]
        true[metric, "prediction"] = values[3] - values[2]
        true[metric, "whole"] = elsewhere - values[0]
    return true


def drawn(
    rng: np.random.Generator, rows: int, away: np.ndarray, model: np.ndarray = DECIDED
) -> ScoredDomains:
    """Rows of home and as many of another population; x has noise, and a category has no effect."""
    cells = np.concatenate([rng.choice(12, rows, p=joint.ravel()) for joint in (HOME, away)])
    group, x, y = np.unravel_index(cells, HOME.shape)
    columns = Columns(
        np.column_stack([x + rng.random(2 * rows), rng.integers(0, 3, 2 * rows), group]).astype(
            np.float32
        ),
        ("x", "colour", "sex"),
        np.array([False, True, True]),
    )
    domains = ComparedRows(
        np.repeat([False, True], rows), columns, np.arange(2 * rows), np.ones(2 * rows)
    )
    decided = np.where(domains.away, model[group, x], DECIDED[group, x]).astype(float)
    return ScoredDomains(domains, "accuracy", y.astype(float), decided, decided)


def parts_of(change: DecomposedChange) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Value and ends of every part, of group 1 less group 0."""
    sign = -1 if change.groups == (0, 1) else 1
    found = {}
    for name in PARTS:
        part = getattr(change, name)
        if part is not None:
            low, high = sorted((sign * part.low, sign * part.high))
            found[change.metric, name] = (sign * part.change, low, high)
    return found


def simulated(shift: str, draws: int, rows: int) -> pd.DataFrame:
    """Bias, spread, mean half-width and coverage of every part over independent draws."""
    away, model, records = shifted(shift), decided_in(shift), []
    true = truth(HOME, away, model)
    for seed in range(draws):
        scored = drawn(np.random.default_rng(seed), rows, away, model)
        sex = scored.domains.columns.values[:, 2].astype(int)
        for change in changes(scored, {"sex": (sex, ("f", "m"))}):
            if change.attribute:
                for key, (value, low, high) in parts_of(change).items():
                    covered = low - 1e-12 <= true[key] <= high + 1e-12
                    records.append((*key, value - true[key], (high - low) / 2, covered))
    table = pd.DataFrame(records, columns=["metric", "part", "error", "half", "covered"])
    return table.groupby(["metric", "part"], sort=False).agg(
        bias=("error", "mean"), sd=("error", "std"), half=("half", "mean"),
        covered=("covered", "mean"),
    )  # fmt: skip


@pytest.mark.parametrize("shift", ["covariate shift", "label shift", "all and model"])
def test_parts_are_those_of_the_population(shift: str) -> None:
    """Over 3 draws no part is off by more than four standard errors; most intervals cover."""
    table = simulated(shift, draws=3, rows=800)
    assert len(table) == 17
    assert (table["bias"].abs() <= 4 * table["half"] / 1.96 / np.sqrt(3) + 1e-12).all()
    assert table["covered"].mean() >= 0.85


@pytest.mark.slow
@pytest.mark.parametrize("shift", SHIFTS)
def test_intervals_of_the_parts_cover(shift: str) -> None:
    """Of 200 draws: three standard errors below 94 %; a bias is at most a fifth of a half-width."""
    table = simulated(shift, draws=200, rows=1000)
    print(f"\n{shift}\n{table.round(4)}")
    assert (table["covered"] >= 0.94 - 3 * np.sqrt(0.94 * 0.06 / 200)).all()
    assert (table["bias"].abs() <= 0.2 * table["half"] + 1e-12).all()


def test_parts_add_up_and_labels_are_no_part_of_decisions() -> None:
    scored = drawn(np.random.default_rng(0), 1000, shifted("all together"), RETRAINED)
    sex = scored.domains.columns.values[:, 2].astype(int)
    found = {
        (change.attribute, change.metric): change
        for change in changes(scored, {"sex": (sex, ("f", "m"))})
    }
    assert len(found) == 5
    for change in found.values():
        every = (change.mix, change.x, change.y_given_x, change.prediction)
        parts = [part.change for part in every if part]
        assert sum(parts) == pytest.approx(change.whole.change, abs=1e-11)
        assert change.whole.change == pytest.approx(change.away - change.at_home, abs=1e-11)
    assert found["sex", "selection_rate"].y_given_x == (0, 0, 0)
    right = scored.positive == scored.y
    away = scored.domains.away
    assert found["", "accuracy"].at_home == pytest.approx(right[~away].mean())
    assert found["", "accuracy"].away == pytest.approx(right[away].mean())


def test_a_copy_of_every_row_in_its_unit_changes_no_interval() -> None:
    """And as rows of their own, copies narrow the interval by the square root of 2."""
    one = drawn(np.random.default_rng(1), 600, shifted("none"))

    def width(unit: np.ndarray) -> float:
        domains = ComparedRows(
            np.tile(one.domains.away, 2),
            one.domains.columns.take(np.tile(np.arange(1200), 2)),
            unit,
            np.ones(2400),
        )
        two = replace(
            one, domains=domains, y=np.tile(one.y, 2), prediction=np.tile(one.prediction, 2),
            positive=np.tile(one.positive, 2),
        )  # fmt: skip
        whole = next(changes(two, {})).whole
        return whole.high - whole.low

    alone = next(changes(one, {})).whole
    assert width(np.tile(np.arange(1200), 2)) == pytest.approx(alone.high - alone.low)
    ratio = (alone.high - alone.low) / width(np.arange(2400))
    assert ratio == pytest.approx(np.sqrt(2), rel=1e-3)


def test_a_squared_error_is_taken_apart() -> None:
    """With noise of variance 1 at home and 4 elsewhere, and x moved: +3 is due to Y given X."""
    rng = np.random.default_rng(2)
    away = np.repeat([False, True], 1500)
    x = rng.normal(0.7 * away, 1)
    error = rng.normal(0, np.where(away, 2, 1)) ** 2
    columns = Columns(x[:, None].astype(np.float32), ("x",), np.array([False]))
    domains = ComparedRows(away, columns, np.arange(3000), np.ones(3000))
    (change,) = changes(ScoredDomains(domains, "mean_squared_error", error, 2 * x), {})
    assert change.y_given_x.low < 3 < change.y_given_x.high
    assert change.x.low < 0 < change.x.high
    assert change.prediction is None  # an error is of outcome and prediction together
    assert change.at_home == pytest.approx(error[~away].mean())


def test_a_run_and_an_audit_with_home_as_reference_give_the_same_parts() -> None:
    scored = drawn(np.random.default_rng(3), 600, shifted("all together"))
    away, values = scored.domains.away, scored.domains.columns.values
    probability = 0.2 + 0.35 * np.floor(values[:, 0])
    sex = pd.Categorical.from_codes(values[:, 2].astype(int), ["f", "m"])
    table = pd.DataFrame(
        {"x": values[:, 0], "colour": values[:, 1], "sex": sex, "y": scored.y.astype(int),
         "p": probability}
    )  # fmt: skip
    audit = rf.audit(
        table[away], y_true="y", y_pred="p", sensitive_features=["sex"],
        reference=table[~away].reset_index(drop=True), features=["x", "colour"],
    )  # fmt: skip
    samples = Samples(
        x=values[:, :2],
        y=table["y"].to_numpy(),
        attributes=pd.DataFrame(
            {"sex": sex, "place": pd.Categorical.from_codes(away * 1, ["north", "south"])}
        ),
        id=np.arange(len(away)),
        splits=pd.DataFrame({"split_0": np.where(away, "ood_test", "test")}),
        features=("x", "colour"),
        classes=("0", "1"),
        sensitive=("sex",),
        domain="place",
    )
    logits = np.column_stack([np.zeros(len(away)), np.log(probability / (1 - probability))])
    predictions = [
        Prediction("default", 0, "split_0", "", part, of_part, logits[of_part].astype(np.float64))
        for part, of_part in (("test", np.flatnonzero(~away)), ("ood_test", np.flatnonzero(away)))
    ]
    run = diagnose("one", samples, {"erm": predictions})["diagnosis"]
    why = audit.why.rows.query("part not in ['share', 'region', 'column']").set_index(
        ["attribute", "metric", "of", "part"]
    )
    assert len(run) == 5
    columns = {
        "change": "all", "due_to_x": "X", "due_to_y_given_x": "Y given X",
        "due_to_prediction": "prediction given X", "due_to_mix": "group mix",
    }  # fmt: skip
    for row in run.to_dict("records"):
        for column, part in columns.items():
            key = (row["attribute"], row["metric"], row["of"], part)
            if part == "group mix" and key not in why.index:
                assert np.isnan(row[column])
                continue
            ours = [row[column], row[f"{column}_low"], row[f"{column}_high"]]
            assert ours == pytest.approx(why.loc[key, ["change", "low", "high"]].tolist(), abs=1e-9)
