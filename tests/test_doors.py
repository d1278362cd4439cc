"""Kinds of fault by doors: every cell is right, or one line that says where and what is allowed.

A kind is a row of ``KINDS``: what a user gives, and either the plain arrays that it means or the
text of the refusal. A door is a row of ``DOORS``: its answer, and the true one by numpy. A kind is
tried at every door but those that it names as ``other``, each of which has a text of its own.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import robust_fairness as rf

ROWS = 160
RNG = np.random.default_rng(0)
Y = np.tile([0, 1], ROWS // 2)
SEX = np.repeat(["f", "m"], ROWS // 2)
P = np.where(RNG.random(ROWS) < 0.2 + 0.3 * (SEX == "m") + 0.3 * Y, 1, 0)
WEIGHT = RNG.integers(1, 4, ROWS).astype(float)
X = np.stack([P + RNG.normal(size=ROWS), RNG.normal(size=ROWS)], axis=1)
TURNED = np.arange(ROWS)[::-1]


@dataclass(frozen=True)
class Kind:
    """What a user gives beside the plain arrays, and the text of the refusal, "" for none.

    ``other`` has the text by door where it differs from ``refusal``. The answer of a door in
    ``without`` is that of the other rows, without row 3.
    """

    given: dict[str, Any]
    refusal: str = ""
    other: dict[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()


PLAIN = {"y": Y, "p": P, "groups": SEX, "weight": WEIGHT}


def with_cell(values: Any, cell: Any, kind: Any = object) -> np.ndarray:
    """The values with one that is wrong, in row 3."""
    changed = np.array(values, dtype=kind)
    changed[3] = cell
    return changed


BIG = np.where(SEX == "f", 2**60, 2**60 + 1)
MASK = np.arange(ROWS) == 3
NO_NUMBERS = {"Thresholds": "(?i)nan|infinity|negative"}
LEFT_OUT: dict[str, Any] = {"refusal": "missing", "other": {"audit": ""}, "without": ("audit",)}
KINDS: dict[str, Kind] = {
    "plain": Kind({}),
    "lists": Kind({name: values.tolist() for name, values in PLAIN.items()}),
    "uint8": Kind({"y": Y.astype(np.uint8), "p": P.astype(np.uint8)}),
    "int8": Kind({"y": Y.astype(np.int8), "p": P.astype(np.int8)}),
    "bool": Kind({"y": Y == 1, "p": P == 1}),
    "weights of uint8": Kind({"weight": WEIGHT.astype(np.uint8)}),
    "nullable without null": Kind({"y": pd.array(Y, dtype="Int64"), "p": pd.array(P, "Int64")}),
    "polars": Kind({"groups": pl.Series(SEX), "weight": pl.Series(WEIGHT)}),
    "Arrow": Kind({"groups": pa.array(SEX.tolist())}),
    "categories unused": Kind({"groups": pd.Categorical(SEX, ["a", "f", "m", "x"])}),
    "duplicate index": Kind(
        {"groups": pd.Series(SEX, [0] * ROWS), "weight": pd.Series(WEIGHT, [0] * ROWS)},
        other={"audit": "indices of .* differ"},
    ),
    "sparse weights": Kind({"weight": pd.Series(pd.arrays.SparseArray(WEIGHT))}),
    "turned index": Kind(
        {"weight": pd.Series(WEIGHT, TURNED), "groups": pd.Series(SEX)}, "indices of .* differ"
    ),
    "turned labels": Kind(
        {"y": pd.Series(Y, TURNED), "groups": pd.Series(SEX)}, "indices of .* differ"
    ),
    "fewer groups": Kind({"groups": SEX[1:]}, "differ in length"),
    "weight NaN": Kind({"weight": with_cell(WEIGHT, np.nan, float)}, "weight", NO_NUMBERS),
    "weight infinite": Kind({"weight": with_cell(WEIGHT, np.inf, float)}, "weight", NO_NUMBERS),
    "weight negative": Kind({"weight": with_cell(WEIGHT, -1, float)}, "weight", NO_NUMBERS),
    "group empty": Kind({"groups": with_cell(SEX, "")}, **LEFT_OUT),
    "group blank": Kind({"groups": with_cell(SEX, " ")}, **LEFT_OUT),
    "group of a no-break space": Kind({"groups": with_cell(SEX, "\xa0")}, **LEFT_OUT),
    "group missing": Kind({"groups": with_cell(SEX, None)}, **LEFT_OUT),
    "masked labels": Kind(
        {"y": np.ma.array(Y, mask=MASK)}, "y_true has missing values, first in row 3",
        other={"audit": "row 4: no target", "Thresholds": "y has masked values, first in row 3"},
    ),
    "masked predictions": Kind(
        {"p": np.ma.array(P, mask=MASK)}, "y_pred has missing values, first in row 3",
        other={"audit": "row 4: no prediction", "Thresholds": ""},
    ),
    "masked weights": Kind({"weight": np.ma.array(WEIGHT, mask=MASK)}, "weight"),
    "masked groups": Kind(
        {"groups": np.ma.array(SEX, mask=MASK)}, "missing", without=("audit",),
        other={"audit": "", "Thresholds": "sensitive_features has masked values, first in row 3"},
    ),
    "masked nowhere": Kind({"p": np.ma.array(P), "weight": np.ma.array(WEIGHT, mask=False)}),
    "sum of weights infinite": Kind(
        {"weight": np.full(ROWS, 1e308)}, "weight.* a finite sum",
        other={"audit": "at most 3.4e", "Thresholds": "weight.* a finite sum"},
    ),
    "codes above 2^53": Kind({"groups": BIG}),
    "codes above 2^53, one missing": Kind(
        {"groups": pl.Series([*BIG[:3].tolist(), None, *BIG[4:].tolist()])}, **LEFT_OUT
    ),
}  # fmt: skip


def by_metrics(given: dict[str, Any]) -> list[float]:
    rates = rf.metrics.selection_rate_by_group(
        given["y"], given["p"], sensitive_features=given["groups"], sample_weight=given["weight"]
    )
    return [rate for rate in rates.values() if not np.isnan(rate)]  # categories without rows


def by_audit(given: dict[str, Any]) -> list[float]:
    rows = rf.audit(
        y_true=given["y"], y_pred=given["p"], sensitive_features=given["groups"],
        sample_weight=given["weight"],
    ).to_frame()  # fmt: skip
    return rows.loc[rows["metric"] == "selection_rate_by_group", "value"].dropna().tolist()


def rates(plain: dict[str, Any]) -> list[float]:
    """Shares of decisions by group, in order of the groups."""
    return [
        float(np.average(plain["p"][rows], weights=plain["weight"][rows]))
        for rows in (plain["groups"] == group for group in np.unique(plain["groups"]))
    ]


def by_thresholds(given: dict[str, Any]) -> list[float]:
    model = rf.Thresholds(constraint="demographic_parity", confidence=None, random_state=0)
    model.fit(
        X[:, 0], given["y"], sensitive_features=given["groups"], sample_weight=given["weight"]
    )
    return np.concatenate([np.ravel(cut) for cut in model.thresholds_]).tolist()


@dataclass(frozen=True)
class Door:
    """An answer of what a user gives, and the true one of plain arrays."""

    answer: Callable[[dict[str, Any]], list[float]]
    truth: Callable[[dict[str, Any]], list[float]]


DOORS = {
    "metrics": Door(by_metrics, rates),
    "audit": Door(by_audit, rates),
    "Thresholds": Door(by_thresholds, by_thresholds),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_door_is_right_or_says_why(kind, door):
    row = KINDS[kind]
    refusal = row.other.get(door, row.refusal)
    plain = PLAIN
    if door in row.without:
        plain = {name: np.delete(values, 3) for name, values in PLAIN.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of constant predictions
        if refusal:
            with pytest.raises(ValueError, match=refusal) as error:
                DOORS[door].answer({**PLAIN, **row.given})
            assert "\n" not in str(error.value)
        else:
            answer = DOORS[door].answer({**PLAIN, **row.given})
            assert answer == pytest.approx(DOORS[door].truth(plain), rel=1e-9)


def random_table(seed: int) -> dict[str, Any]:
    """Plain arrays of a random size, with groups of numbers or text."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(8, 60))
    groups = rng.integers(0, rng.integers(2, 5), rows)
    groups[:2] = 0, 1
    y, p = rng.integers(0, 2, (2, rows))
    y[:2], p[:2] = (0, 1), (0, 1)
    names = np.array(["a", "b", "c", "d"]) if rng.random() < 0.5 else np.array([3, 7, 2**60, 2**61])
    weight = rng.integers(1, 5, rows).astype(float) if rng.random() < 0.5 else np.ones(rows)
    return {"y": y, "p": p, "groups": names[groups], "weight": weight}


def in_another_form(plain: dict[str, Any], seed: int) -> dict[str, Any]:
    """The same values, each in a random type of array."""
    rng = np.random.default_rng(seed)
    forms = [np.asarray, list, pd.Series, pl.Series, lambda values: pa.array(values.tolist())]
    return {name: forms[rng.integers(len(forms))](values) for name, values in plain.items()}


def require_the_same_answers(seeds: range) -> None:
    for seed in seeds:
        plain = random_table(seed)
        for door in ("metrics", "audit"):
            answer = DOORS[door].answer(in_another_form(plain, seed))
            assert answer == pytest.approx(rates(plain), abs=1e-12), (seed, door)


def test_random_tables_have_the_same_answer_at_every_door():
    require_the_same_answers(range(100))


@pytest.mark.slow
def test_many_random_tables_have_the_same_answer_at_every_door():
    require_the_same_answers(range(100, 3100))
