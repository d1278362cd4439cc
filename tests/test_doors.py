"""Kinds of fault by doors: every cell is right, or one line that says where and what is allowed.

A kind is a row of ``KINDS``: what a user gives, and either the plain arrays that it means or the
text of the refusal. A door is a row of ``DOORS``: its answer, and the true one by numpy. A kind is
tried at every door but those that it names as ``other``, each of which has a text of its own.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from io import StringIO
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from click.testing import CliRunner
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import robust_fairness as rf
from robust_fairness.cli.commands import cli
from robust_fairness.core.errors import InputError
from robust_fairness.runs import evaluator

ROWS = 160
RNG = np.random.default_rng(0)
Y = np.tile([0, 1], ROWS // 2)
SEX = np.repeat(["f", "m"], ROWS // 2)
P = np.where(RNG.random(ROWS) < 0.2 + 0.3 * (SEX == "m") + 0.3 * Y, 1, 0)
WEIGHT = RNG.integers(1, 4, ROWS).astype(float)
X = np.stack([P + RNG.normal(size=ROWS), RNG.normal(size=ROWS)], axis=1)
TURNED = np.arange(ROWS)[::-1]
NAMED_ROWS = pd.Index([f"row {row}" for row in range(ROWS)])


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


PLAIN = {"X": X, "y": Y, "p": P, "groups": SEX, "weight": WEIGHT}


def with_cell(values: Any, cell: Any, kind: Any = object) -> np.ndarray:
    """The values with one that is wrong, in row 3."""
    changed = np.array(values, dtype=kind)
    changed[3] = cell
    return changed


BIG = np.where(SEX == "f", 2**60, 2**60 + 1)
MASK = np.arange(ROWS) == 3
SCIKIT_LEARNS = ("Thresholds", "estimator")  # doors with its messages
NO_NUMBERS = dict.fromkeys(SCIKIT_LEARNS, "(?i)nan|infinity|negative")
ONE_COLUMN = dict.fromkeys(SCIKIT_LEARNS, "must be 1D")
NO_LABEL = dict.fromkeys(SCIKIT_LEARNS, "Unknown label type|NaN") | {"audit": "row 4: no target"}
POSITIVE = {"metrics": "pos_label", "audit": "pos_label"}  # where 5 is no 1
# This estimator does not read groups.
LEFT_OUT: dict[str, Any] = {
    "refusal": "missing", "other": {"audit": "", "estimator": ""}, "without": ("audit",),
}  # fmt: skip
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
        {"groups": pd.Series(SEX, [0] * ROWS), "weight": pd.Series(WEIGHT, [0] * ROWS)}
    ),
    "index of some": Kind({"groups": pd.Series(SEX, TURNED), "weight": pd.Series(WEIGHT, TURNED)}),
    "tensors": Kind(
        {"p": torch.tensor(P.astype(float), requires_grad=True), "groups": torch.tensor(SEX == "m"),
         "weight": torch.tensor(WEIGHT, dtype=torch.bfloat16)},
    ),
    "sparse weights": Kind({"weight": pd.Series(pd.arrays.SparseArray(WEIGHT))}),
    "turned index": Kind(
        {"weight": pd.Series(WEIGHT, TURNED), "groups": pd.Series(SEX)}, "indices of .* differ"
    ),
    "turned labels": Kind(
        {"y": pd.Series(Y, TURNED), "groups": pd.Series(SEX)}, "indices of .* differ"
    ),
    "overlapping index": Kind(
        {"y": pd.Series(Y), "groups": pd.Series(SEX, range(3, ROWS + 3))}, "indices of .* differ"
    ),
    "disjoint index": Kind(
        {"y": pd.Series(Y, NAMED_ROWS), "groups": pd.Series(SEX, NAMED_ROWS + "x")},
        "indices of .* differ",
    ),
    "labels as categories": Kind({"y": pd.Categorical(Y), "p": pd.Series(P, dtype="category")}),
    "labels as floats": Kind({"y": Y.astype(float), "p": P.astype(float)}),
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
        {"audit": "row 4: no target", **dict.fromkeys(SCIKIT_LEARNS, "y has masked.* row 3")},
    ),
    "masked predictions": Kind(
        {"p": np.ma.array(P, mask=MASK)}, "y_pred has missing values, first in row 3",
        other={"audit": "row 4: no prediction", **dict.fromkeys(SCIKIT_LEARNS, "")},
    ),
    "masked weights": Kind({"weight": np.ma.array(WEIGHT, mask=MASK)}, "weight"),
    "masked groups": Kind(
        {"groups": np.ma.array(SEX, mask=MASK)}, "missing|masked.*row 3", without=("audit",),
        other={"audit": ""},
    ),
    "masked nowhere": Kind({"p": np.ma.array(P), "weight": np.ma.array(WEIGHT, mask=False)}),
    "sum of weights infinite": Kind(
        {"weight": np.full(ROWS, 1e308)}, "weight.* a finite sum",
        other={"audit": "at most 3.4e"},
    ),
    "classes 2 and 5": Kind({"y": np.where(Y, 5, 2), "p": np.where(P, 5, 2)}, other=POSITIVE),
    "text labels": Kind({"y": np.where(Y, "yes", "no"), "p": np.where(P, "yes", "no")}),
    "object": Kind({"weight": WEIGHT.astype(object), "groups": SEX.astype(object)}),
    "weights as a column": Kind({"weight": WEIGHT[:, None]}, "one value per row", ONE_COLUMN),
    "groups as a column": Kind({"groups": SEX[:, None]}),
    "groups as a frame": Kind({"groups": pd.DataFrame({"sex": SEX}, TURNED)}),
    "groups by name": Kind({"groups": {"sex": pa.array(SEX.tolist())}}),
    "labels missing": Kind({"y": with_cell(Y, None)}, "missing.*row 3", NO_LABEL),
    "labels NaN": Kind({"y": with_cell(Y, np.nan, float)}, "missing.*row 3", NO_LABEL),
    "sparse features": Kind({"X": pd.DataFrame(X).astype(pd.SparseDtype(float))}),
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
        np.asarray(given["X"])[:, 0],
        given["y"],
        sensitive_features=given["groups"],
        sample_weight=given["weight"],
    )  # fmt: skip
    return np.concatenate([np.ravel(cut) for cut in model.thresholds_]).tolist()


def by_estimator(given: dict[str, Any]) -> list[float]:
    model = rf.Erm(network="boosted_trees", random_state=0)
    model.fit(
        given["X"], given["y"], sensitive_features=given["groups"], sample_weight=given["weight"]
    )
    return model.predict_proba(given["X"])[:5, 1].tolist()


@dataclass(frozen=True)
class Door:
    """An answer of what a user gives, and the true one of plain arrays."""

    answer: Callable[[dict[str, Any]], list[float]]
    truth: Callable[[dict[str, Any]], list[float]]


DOORS = {
    "metrics": Door(by_metrics, rates),
    "audit": Door(by_audit, rates),
    "Thresholds": Door(by_thresholds, by_thresholds),
    "estimator": Door(by_estimator, by_estimator),
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


SCORE = np.where(P == 1, 0.7, 0.3)
YEARS = RNG.integers(1950, 1990, ROWS)
TABLE = pd.DataFrame({"g": SEX, "y": Y, "p": P, "w": WEIGHT})
FEW = np.arange(ROWS) < 20  # noqa: PLR2004


@dataclass(frozen=True)
class TableKind:
    """Columns of a table beside those of ``TABLE``, options, and what they mean.

    ``groups`` are the names of the groups of the rows, None of those in none; by default those of
    ``TABLE``. ``refusal`` is the text of the refusal, "" for none.
    """

    columns: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    groups: Any = None
    refusal: str = ""


def written(values: np.ndarray, form: str) -> list[str]:
    return [form.format(value).replace(".", ",") for value in values]


CODED = np.where(SEX == "f", "1", "2")
TABLE_KINDS = {
    "plain": TableKind({}),
    "decimal commas": TableKind({"p": written(SCORE, "{:.4f}")}),
    "percent signs": TableKind({"p": written(100 * SCORE, "{:.2f} %")}),
    "a point for thousands": TableKind(
        {"w": [f"1.{number:03.0f}" for number in WEIGHT], "p": written(SCORE, "{:.4f}")},
        refusal="may separate decimals or thousands",
    ),
    "a point for decimals, declared": TableKind({"p": SCORE.astype(str)}, {"decimal": "."}),
    "scores": TableKind({"p": SCORE}),
    "scores of float32": TableKind({"p": SCORE.astype(np.float32)}),
    "a placeholder": TableKind(
        {"g": np.where(FEW, "-", SEX)}, groups=np.where(FEW, "-", SEX)
    ),
    "a placeholder declared": TableKind(
        {"g": np.where(FEW, "-", SEX)}, {"missing": ["-"]}, np.where(FEW, None, SEX)
    ),
    "blanks": TableKind(
        {"g": np.where(FEW, np.where(Y == 1, " ", "\u00a0"), SEX)},
        groups=np.where(FEW, None, SEX),
    ),
    "codes beside a missing one": TableKind(
        {"g": np.where(FEW, np.nan, CODED.astype(float))}, groups=np.where(FEW, None, CODED)
    ),
    "codes with decimals": TableKind(
        {"g": np.where(FEW, np.char.add(CODED, ".0"), CODED)}, groups=CODED
    ),
    "leading zeros": TableKind({"g": np.char.add("0", CODED)}, groups=np.char.add("0", CODED)),
    "many codes": TableKind(
        {"g": np.arange(ROWS) % 16}, {"types": {"g": "category"}},
        (np.arange(ROWS) % 16).astype(str),
    ),
    "bins": TableKind(
        {"g": YEARS}, {"bins": {"g": (1970,)}},
        np.where(YEARS < 1970, "g < 1970", "g >= 1970"),  # noqa: PLR2004
    ),
    "dates": TableKind(
        {"g": [f"{year}-07-14" for year in YEARS]}, groups=[f"{y // 10 * 10}s" for y in YEARS]
    ),
    "dates with points": TableKind(
        {"g": [f"14.07.{year}" for year in YEARS]}, groups=[f"{y // 10 * 10}s" for y in YEARS]
    ),
    "decisions": TableKind(
        {"p": np.where(P == 1, "approve", "decline")}, {"positive_prediction": "approve"}
    ),
    "decisions undeclared": TableKind(
        {"p": np.where(P == 1, "approve", "decline")}, refusal="which of them is the positive"
    ),
    "yes and no": TableKind(
        {"y": np.where(Y == 1, "yes", "no"), "p": np.where(P == 1, "Yes", "No")}
    ),
    "truth values": TableKind({"y": Y == 1, "p": P == 1}),
    "-1 and 1": TableKind({"y": 2 * Y - 1, "p": 2 * P - 1}),
    "codes and truth values": TableKind({"p": P == 1}),
    "a label missing": TableKind({"y": np.where(FEW, np.nan, Y)}, refusal="row 1: no target"),
    "a prediction missing": TableKind({"p": np.where(FEW, np.nan, P)}, refusal="row 1: no pred"),
    "a weight missing": TableKind({"w": np.where(FEW, np.nan, WEIGHT)}, refusal="column w, row 1"),
    "a constant group": TableKind({"g": "f"}, refusal="every row has the value f"),
}  # fmt: skip
ROLES = {"y_true": "y", "y_pred": "p", "sensitive_features": ["g"], "sample_weight": "w"}


def shares(rows: pd.DataFrame, column: str = "value") -> dict[str, float]:
    """Selection rates by group of an audit's rows or changes."""
    of_groups = rows[(rows["metric"] == "selection_rate_by_group") & (rows["attribute"] == "g")]
    return dict(zip(of_groups["group"].astype(str), of_groups[column].astype(float), strict=True))


def written(table: Any) -> pd.DataFrame:
    """A table of an audit as CSV, where a quotation mark keeps '-' from being a formula."""
    rows = pd.read_csv(table, keep_default_na=False)
    return rows.assign(group=rows["group"].str.removeprefix("'"))


def command(*words: str) -> None:
    done = CliRunner().invoke(cli, ["audit", *words, "--force"])
    if done.exit_code:
        assert done.exit_code == 2 and done.output.count("\n") == 1, done.output  # noqa: PLR2004
        raise InputError(done.output)


def by_command(table: pd.DataFrame, options: dict[str, Any], parquet: bool, periods=()) -> Any:
    """The command on a file, or on one per period with a state."""
    words = ["--target=y", "--prediction=p", "--attributes=g", "--weight=w"]
    words += [f"--missing={text}" for text in options.get("missing", ())]
    words += [f"--category={name}" for name in options.get("types", ())]
    words += [f"--bins={k}={','.join(map(str, v))}," for k, v in options.get("bins", {}).items()]
    for name, option in (
        ("positive_prediction", "--positive-prediction"),
        ("decimal", "--decimal"),
    ):
        words += [f"{option}={options[name]}"] if name in options else []
    for period in periods or (None,):
        rows = table if period is None else table.assign(t=period)
        name = "t.parquet" if parquet else "t.csv"
        rows.to_parquet(name) if parquet else rows.to_csv(name, index=False)
        command(name, *words, *([] if period is None else ["--period=t", "--state=s.json"]))
    return shares(written("t_audit.csv"))


def by_evaluator(table: pd.DataFrame, options: dict[str, Any]) -> dict[str, float]:
    """MLflow's evaluator, whose run is not kept."""
    dataset = SimpleNamespace(
        features_data=table[["g", "w"]], labels_data=table["y"].to_numpy(),
        predictions_data=table["p"].to_numpy(), name="data",
    )  # fmt: skip
    done = evaluator.Evaluator().evaluate(
        model_type="classifier", dataset=dataset, run_id="1",
        evaluator_config={"sensitive_features": ["g"], "sample_weight": "w", **options},
    )  # fmt: skip
    return shares(written(StringIO(done.artifacts[f"{evaluator.FOLDER}/audit.csv"].content)))


TABLE_DOORS: dict[str, Callable[[pd.DataFrame, dict[str, Any]], dict[str, float]]] = {
    "a frame of pandas": lambda table, how: shares(rf.audit(table, **ROLES, **how).to_frame()),
    "a frame of polars": lambda table, how: shares(
        rf.audit(pl.from_pandas(table), **ROLES, **how).to_frame()
    ),
    "columns by name": lambda table, how: shares(
        rf.audit({name: table[name].to_numpy() for name in table}, **ROLES, **how).to_frame()
    ),
    "a reference": lambda table, how: shares(
        rf.audit(table, reference=table, **ROLES, **how).changed, "then"
    ),
    "CSV": lambda table, how: by_command(table, how, parquet=False),
    "Parquet": lambda table, how: by_command(table, how, parquet=True),
    "MLflow": by_evaluator,
}


@pytest.fixture
def nothing_logged(monkeypatch, tmp_path) -> None:
    client = SimpleNamespace(log_text=lambda *_: None)
    monkeypatch.setattr(evaluator.mlflow, "log_metrics", lambda *_, **__: None)
    monkeypatch.setattr(evaluator.mlflow, "MlflowClient", lambda: client)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("nothing_logged")
@pytest.mark.parametrize("door", [*TABLE_DOORS, "a state"])
@pytest.mark.parametrize("kind", TABLE_KINDS)
def test_every_table_is_read_as_what_it_means_or_refused(kind, door):
    row = TABLE_KINDS[kind]
    table = TABLE.assign(**row.columns)
    groups = pd.Series(SEX if row.groups is None else row.groups)
    expected = {
        str(group): np.average(P[groups == group], weights=WEIGHT[groups == group])
        for group in groups.dropna().unique()
    }
    if door == "a state":
        if kind.startswith("dates"):
            row = replace(row, refusal="bins of g: quantiles and spans of dates change")
        answer = partial(by_command, table, row.options, False, (1, 2))
    else:
        answer = partial(TABLE_DOORS[door], table, row.options)
    if row.refusal:
        with pytest.raises(InputError, match=row.refusal) as error:
            answer()
        assert "\n" not in str(error.value).strip()
    else:
        assert answer() == pytest.approx(expected, rel=1e-9)


def random_table(seed: int) -> dict[str, Any]:
    """Plain arrays of a random size, with groups of numbers or text, and scores."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(24, 80))
    groups = rng.integers(0, rng.integers(2, 5), rows)
    groups[:2] = 0, 1
    y, p = rng.integers(0, 2, (2, rows))
    y[:2], p[:2] = (0, 1), (0, 1)
    names = np.array(["a", "b", "c", "d"]) if rng.random() < 0.5 else np.array([3, 7, 2**60, 2**61])
    weight = rng.integers(1, 5, rows).astype(float) if rng.random() < 0.5 else np.ones(rows)
    score = rng.integers(0, 9, rows) + 2 * y
    return {"y": y, "p": p, "groups": names[groups], "weight": weight, "score": score}


def in_another_form(plain: dict[str, Any], seed: int) -> dict[str, Any]:
    """The same values, each in a random type of array."""
    rng = np.random.default_rng(seed)
    forms = [np.asarray, list, pd.Series, pl.Series, lambda values: pa.array(values.tolist())]
    return {name: forms[rng.integers(len(forms))](values) for name, values in plain.items()}


def most_accurate(plain: dict[str, Any]) -> list[float] | str:
    """Weight of rows that the best threshold of each group decides rightly, by trying them all.

    "refused" where a group has no row of a class.
    """
    best = []
    for group in np.unique(plain["groups"]):
        y, score, weight = (plain[name][plain["groups"] == group] for name in
                            ("y", "score", "weight"))  # fmt: skip
        if np.bincount(y, minlength=2).min() < 1:
            return "refused"
        right = [weight[(score >= cut) == y].sum() for cut in [*np.unique(score), np.inf]]
        best.append(float(max(right)))
    return best


def decided_rightly(given: dict[str, Any], plain: dict[str, Any]) -> list[float] | str:
    """The same of ``Thresholds`` whose rates may differ as they like."""
    model = rf.Thresholds(constraint="demographic_parity", tolerance=1, confidence=None)
    try:
        model.fit(given["score"], given["y"], sensitive_features=given["groups"],
                  sample_weight=given["weight"])  # fmt: skip
    except ValueError as error:
        assert "at least 1 are needed" in str(error)
        return "refused"
    shares = model.predict_proba(given["score"], sensitive_features=given["groups"])
    right = shares[np.arange(len(plain["y"])), plain["y"]] * plain["weight"]
    return [float(right[plain["groups"] == group].sum()) for group in np.unique(plain["groups"])]


def require_the_same_answers(seeds: range) -> None:
    for seed in seeds:
        plain = random_table(seed)
        given = in_another_form(plain, seed)
        for door in ("metrics", "audit"):
            assert DOORS[door].answer(given) == pytest.approx(rates(plain), abs=1e-12), (seed, door)
        right, truth = decided_rightly(given, plain), most_accurate(plain)
        assert right == (truth if truth == "refused" else pytest.approx(truth, rel=1e-9)), seed


def test_random_tables_have_the_same_answer_at_every_door():
    require_the_same_answers(range(100))


@pytest.mark.slow
def test_many_random_tables_have_the_same_answer_at_every_door():
    require_the_same_answers(range(100, 3100))


ERRORS = {
    "mean_absolute_error": lambda y, p: np.abs(p - y).mean(),
    "mean_squared_error": lambda y, p: ((p - y) ** 2).mean(),
    "mean_error": lambda y, p: (p - y).mean(),
    "mean_prediction": lambda y, p: p.mean(),
}


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint64, np.float16, object])
@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_small_types_are_those_of_float64(name, kind):
    y, p = (values.astype(kind) for values in np.random.default_rng(0).integers(0, 128, (2, 50)))
    truth = ERRORS[name](y.astype(np.float64), p.astype(np.float64))
    assert getattr(rf.metrics, name)(y, p) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("classes", [np.array([2, 5]), np.array(["no", "yes"])])
def test_classes_of_training_have_the_codes_of_those_here(classes):
    """Of a constant that the training rows decide, and of subgroups weighted by their shares."""
    here, there = np.tile([0, 0, 1], 40), np.tile([1, 1, 0], 20)
    sex, right = np.tile(["f", "m"], 60), np.arange(120) % 7 > 0
    y, p = classes[here], classes[np.where(right, here, 1 - here)]
    training = {"y_train": classes[there], "sensitive_features_train": np.tile(["f", "m"], 30)}
    constant = rf.metrics.constant_accuracy(y, y, y_train=classes[there])
    assert constant == pytest.approx((here == 1).mean())
    groups = [(here == label) & (sex == name) for label in (0, 1) for name in ("f", "m")]
    truth = np.mean([right[rows].mean() for rows in groups])
    assert rf.metrics.accuracy_at(y, p, sensitive_features=sex, **training) == pytest.approx(truth)


@pytest.mark.parametrize("network", ["boosted_trees", "logistic_regression", None])
def test_features_far_from_zero_keep_their_values(network):
    """Seconds since 1970 within a minute, which float32 would not tell apart."""
    seconds = 1_700_000_000.0 + np.random.default_rng(0).integers(0, 60, 400)
    y = (seconds > np.median(seconds)).astype(int)
    features = np.column_stack([seconds, np.full(400, 1e9), np.arange(400.0)])
    model = rf.Erm(network=network, epochs=None if network else 60, random_state=0)
    model.fit(features, y)
    assert (model.predict(features) == y).mean() > 0.97
    assert model.origin_.tolist() == [seconds.min(), 0, 0]


def test_gaps_of_decisions_need_no_target():
    table = pd.DataFrame({"sex": SEX, "p": P})
    done = rf.audit(table, y_pred="p", sensitive_features=["sex"])
    means = table.groupby("sex")["p"].mean()
    assert done.by_group["selection_rate"]["value"].to_dict() == means.to_dict()
    gap, share = (of.loc["selection_rate", "value"] for of in (done.difference(), done.ratio()))
    assert (gap, share) == pytest.approx((means.max() - means.min(), means.min() / means.max()))


@pytest.mark.parametrize(
    "model", [rf.Thresholds(LogisticRegression()), rf.Thresholds(), rf.Erm(epochs=1)]
)
def test_a_column_of_text_is_named(model):
    features = pd.DataFrame({"city": np.where(Y, "north", "south")})
    with pytest.raises(ValueError, match="no numbers: city; allowed") as error:
        model.fit(features, Y, sensitive_features=SEX)
    assert "\n" not in str(error.value)


def test_weights_of_a_pipeline_reach_its_last_step_with_metadata_routing():
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    model = rf.Thresholds(pipeline, confidence=None, random_state=0)
    given = {"sensitive_features": SEX, "sample_weight": WEIGHT}
    plain = model.fit(X, Y, **given).thresholds_
    with config_context(enable_metadata_routing=True):
        routed = clone(model).fit(X, Y, **given).thresholds_
    assert np.concatenate(routed) == pytest.approx(np.concatenate(plain))
