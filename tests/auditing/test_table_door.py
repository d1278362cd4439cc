"""The door of tables: what people write is taken for what it is, or refused in one line."""

import io
from collections.abc import Callable

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import robust_fairness as rf
from robust_fairness.auditing.door import copied
from robust_fairness.cli.commands import cli
from robust_fairness.core.errors import InputError

RNG = np.random.default_rng(3)
ROWS = 900
SEX = np.where(RNG.random(ROWS) < 0.5, "f", "m")
Y = RNG.integers(0, 2, ROWS)
P = np.clip(0.3 + 0.3 * Y + 0.15 * (SEX == "m") + RNG.normal(0, 0.2, ROWS), 0, 1).round(4)
FRAME = pd.DataFrame({"sex": SEX, "y": Y, "p": P})
PARITY = "demographic_parity_difference"


def parity(groups: pd.Series, positive: np.ndarray) -> float:
    """The largest difference of selection rates, by pandas; rows without a group have none."""
    rates = pd.Series(positive, groups.index).groupby(groups).mean()
    return float(rates.max() - rates.min())


def gap(rows: pd.DataFrame, metric: str = PARITY) -> float:
    return float(rows.loc[(rows["metric"] == metric) & (rows["group"] == ""), "value"].item())


def audited(folder, frame: pd.DataFrame, *words: str, encoding: str = "utf-8", **form):
    """The command on a CSV file."""
    (folder / "t.csv").write_bytes(frame.to_csv(index=False, **form).encode(encoding))
    arguments = ["audit", str(folder / "t.csv"), "--target=y", "--prediction=p", "--force"]
    if not any(word.startswith("--attributes") for word in words):
        arguments.append("--attributes=sex")
    return CliRunner().invoke(cli, [*arguments, f"--output={folder}", *words])


def with_comma(values: pd.Series) -> pd.Series:
    return values.map(lambda value: f"{value:.4f}".replace(".", ","))


def percent(values: pd.Series) -> pd.Series:
    return values.map(lambda value: f"{100 * value:.2f} %".replace(".", ","))


BLANKS = FRAME.assign(sex=FRAME["sex"].mask(FRAME.index < 60, " ").mask(FRAME.index < 30, "\u00a0"))
DECIDED = FRAME.assign(p=np.where(P >= 0.5, "approve", "decline"))
BORN = pd.to_datetime("1950-01-01") + pd.to_timedelta(RNG.integers(0, 15_000, ROWS), "D")
# Midnight where people were born, which is another day in UTC.
IN_BERLIN = pd.Series(np.where(SEX == "m", "2000-01-01", "1999-12-31"))
UMLAUT = FRAME.assign(sex=np.where(SEX == "m", "männlich", "weiblich"))
MANY = pd.concat(
    [FRAME.assign(p=(P * 0.9 + k / 10**6).round(6)) for k in range(20)], ignore_index=True
)
# Table, options, groups with their true values by pandas, what is said.
TAKEN = {
    "decimal commas": (FRAME.assign(p=with_comma(FRAME["p"])), [], FRAME["sex"], "are read as 0."),
    "percent": (FRAME.assign(p=percent(FRAME["p"])), [], FRAME["sex"], " %' are read as 0."),
    "blanks": (BLANKS, [], FRAME["sex"].mask(FRAME.index < 60), "60 rows without a value"),
    "a placeholder": (
        FRAME.assign(sex=FRAME["sex"].mask(FRAME.index < 90, "-")), [],
        FRAME["sex"].mask(FRAME.index < 90, "-"),
        "hint: sex: '-' is a group of 90 rows; if it means a missing value: --missing -",
    ),
    "placeholders declared": (
        FRAME.assign(sex=FRAME["sex"].mask(FRAME.index < 90, "-").mask(FRAME.index < 9, "unknown")),
        ["--missing=-", "--missing", "unknown"], FRAME["sex"].mask(FRAME.index < 90),
        "90 rows without a value",
    ),
    "two spellings": (
        FRAME.assign(sex=FRAME["sex"].mask(FRAME.index < 200, "F")), [],
        FRAME["sex"].mask(FRAME.index < 200, "F"), "(200 rows)",
    ),
    "dates": (
        FRAME.assign(born=BORN.strftime("%Y-%m-%d")), ["--attributes=born"],
        pd.Series(BORN.year // 10), "divided into groups by decade",
    ),
    "dates in a zone": (
        FRAME.assign(born=IN_BERLIN + "T00:00:00+01:00"),
        ["--attributes=born", "--bins=born=year"], IN_BERLIN, "",
    ),
    "a control character": (
        FRAME.assign(sex=FRAME["sex"].mask(FRAME.index < 9, "f\0")), [],
        FRAME["sex"].mask(FRAME.index < 9, "f\0"), "are groups of their own",
    ),
    "dates with points": (
        FRAME.assign(born=BORN.strftime("%d.%m.%Y")), ["--attributes=born", "--bins=born=decade"],
        pd.Series(BORN.year // 10), "",
    ),
    "a quotation mark without its end": (
        FRAME.assign(sex=FRAME["sex"].mask(FRAME.index < 9, "f,1,0.3\nm,1,0.4")), [],
        FRAME["sex"].mask(FRAME.index < 9, "x"), "in a CSV file a quotation mark may lack its end",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_what_people_write_is_taken_for_what_it_is(tmp_path, name: str) -> None:
    frame, words, groups, said = TAKEN[name]
    done = audited(tmp_path, frame, *words)
    assert done.exit_code == 0, done.output
    assert said in done.output
    value = gap(pd.read_csv(tmp_path / "t_audit.csv", keep_default_na=False))
    assert value == pytest.approx(parity(groups, P >= 0.5))


COPIES = "rows with the same score have the same target far more often"
SOME = FRAME.assign(y=FRAME["y"].mask(FRAME.index % 3 > 0))
TIED = FRAME.assign(p=FRAME["p"].round(2))
LARGE = FRAME.sample(30_000, replace=True, random_state=0, ignore_index=True)
LARGE["p"] = np.random.default_rng(0).random(len(LARGE))
LARGE["y"] = np.random.default_rng(1).random(len(LARGE)) < LARGE["p"]
LINKED = pd.concat([FRAME.assign(home=range(ROWS))] * 2)
# Tables, options, whether their rows look like copies.
COPIED = {
    "as they are": (FRAME, [], False),
    "all twice": (pd.concat([FRAME] * 2), [], True),
    "all ten times": (pd.concat([FRAME] * 10), [], True),
    "a tenth twice, shuffled": (
        pd.concat([FRAME, FRAME[:90]]).sample(frac=1, random_state=0), [], True,
    ),
    "many as they are": (LARGE, ["--positive=True"], False),
    "many, a tenth twice": (pd.concat([LARGE, LARGE[::10]]), ["--positive=True"], True),
    "linked by a unit": (LINKED, ["--unit=home"], False),
    "scores that are equal by nature": (TIED, [], False),
    "these twice": (pd.concat([TIED] * 2), [], False),
    "some labels": (pd.concat([SOME] * 2), ["--labels=some"], False),
    "no labels": (pd.concat([FRAME] * 2), ["--labels=none"], False),
    "classes": (pd.concat([FRAME.assign(p=np.where(P >= 0.5, 1, 0))] * 2), [], False),
}  # fmt: skip


@pytest.mark.parametrize("name", COPIED)
def test_copies_of_rows_are_hinted_at(tmp_path, name: str) -> None:
    frame, words, alike = COPIED[name]
    done = audited(tmp_path, frame, *words)
    assert done.exit_code == 0, done.output
    assert (COPIES in done.output) == alike


@pytest.mark.parametrize("features", [3, 30])
@pytest.mark.parametrize(
    "model",
    [LogisticRegression(max_iter=5000), DecisionTreeClassifier(max_depth=4, random_state=0),
     RandomForestClassifier(5, random_state=0), KNeighborsClassifier()],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_equal_scores_of_models_are_no_copies(model, features: int) -> None:
    """Of rounded measurements, which many rows share; each row twice, where scores differ, is."""
    data = load_breast_cancer()
    x = np.round(data.data[:, :features] / data.data[:, :features].std(0) * 2)
    score = model.fit(x[::2], data.target[::2]).predict_proba(x)[:, 1]
    assert not copied(score, data.target)
    if len(np.unique(score)) > 0.9 * len(score):
        assert copied(np.tile(score, 2), np.tile(data.target, 2))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp1252", "latin1", "utf-16", "utf-16-le"])
def test_encodings_are_found_out_and_said(tmp_path, encoding: str) -> None:
    done = audited(tmp_path, UMLAUT, encoding=encoding, sep=";")
    assert done.exit_code == 0, done.output
    assert ("read as" in done.output) == (encoding != "utf-8-sig")
    rows = pd.read_csv(tmp_path / "t_audit.csv", keep_default_na=False)
    assert gap(rows) == pytest.approx(parity(FRAME["sex"], P >= 0.5))
    assert "männlich" in {*rows["group"]}
    declared = audited(tmp_path, UMLAUT, f"--encoding={encoding}", encoding=encoding, sep=";")
    assert declared.exit_code == 0 and "read as" not in declared.output


def test_many_numbers_with_commas_in_a_file_are_those_with_points(tmp_path) -> None:
    frame = MANY.assign(p=MANY["p"].map(lambda value: f"{value:.6f}".replace(".", ",")))
    assert frame["p"].nunique() > 10_000
    done = audited(tmp_path, frame, sep=";")
    assert "are read as" in done.output
    rows = pd.read_csv(tmp_path / "t_audit.csv", keep_default_na=False)
    assert gap(rows) == pytest.approx(parity(MANY["sex"], MANY["p"].round(6) >= 0.5))


REFUSED: dict[str, tuple[Callable[[], pd.DataFrame], list[str], str]] = {
    "decisions": (lambda: DECIDED, [], "values approve and decline, the target has 0 and 1; "
                  "declare which of them is the positive prediction (--positive-prediction)"),
    "no such decision": (lambda: DECIDED, ["--positive-prediction=aprove"], "did you mean"),
    "thousands": (
        lambda: FRAME.assign(w=[f"{k % 7 + 1},{k % 900 + 100}" for k in range(ROWS)]),
        ["--weight=w"], "may separate decimals or thousands",
    ),
    "thousands with points": (
        lambda: FRAME.assign(
            p=with_comma(FRAME["p"]), w=[f"{k % 7 + 1}.{k % 900 + 100}" for k in range(ROWS)]
        ),
        ["--weight=w"], "column p has decimal commas; declare the decimal separator",
    ),
    "many thousands with points, and a blank": (
        lambda: MANY.assign(
            p=with_comma(MANY["p"]),
            w=[" ", *(f"{k // 900 + 1}.{k % 900 + 100}" for k in range(1, len(MANY)))],
        ),
        ["--weight=w"], "column p has decimal commas; declare the decimal separator",
    ),
    "thousands with points beside many commas": (
        lambda: MANY.assign(
            p=MANY["p"].map(lambda value: f"{value:.6f}".replace(".", ",")), w="1.250"
        ),
        ["--weight=w"], "column p has decimal commas; declare the decimal separator",
    ),
    "encoding": (lambda: FRAME, ["--encoding=klingon"], "encoding: 'klingon', allowed"),
    "bins of dates": (lambda: FRAME.assign(a=np.arange(ROWS)), ["--attributes=a", "--bins=a=year"],
                      "need a column of dates"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_be_two_things_is_one_line(tmp_path, name: str) -> None:
    frame, words, message = REFUSED[name]
    done = audited(tmp_path, frame(), *words)
    assert done.exit_code == 2
    assert message in done.output
    assert done.output.count("\n") == 1


@pytest.mark.parametrize(
    ("separator", "words"),
    [(",", ["--decimal=."]), (".", ["--decimal=,"]), (" ", []), ("\u00a0", ["--decimal=,"])],
)
def test_thousands_are_read_as_declared(tmp_path, separator: str, words: list[str]) -> None:
    weight = np.arange(ROWS) % 900 + 1000
    frame = FRAME.assign(w=[f"{number:,}".replace(",", separator) for number in weight])
    assert audited(tmp_path, frame, "--weight=w", *words).exit_code == 0
    rows = pd.read_csv(tmp_path / "t_audit.csv", keep_default_na=False)
    rates = [np.average(P[group == SEX] >= 0.5, weights=weight[group == SEX]) for group in "fm"]
    assert gap(rows) == pytest.approx(abs(rates[0] - rates[1]))


OPTIONS = [
    ({"missing": "unknown"}, ""), ({"missing": ["unknown", 7]}, ""), ({"missing": "no"}, "all"),
    ({"neg_labels": "rest", "pos_label": 1}, "all"), ({"positive_prediction": 1}, "all"),
    ({"types": {"sex": "text"}}, "types: sex is 'text', allowed: number or category"),
    ({"decimal": ";"}, "decimal: ';', allowed: ., ,"), ({"small": -1}, "small: -1, allowed"),
    ({"intersections": "no"}, "intersections: 'no', allowed: True, False"),
    ({"suppress": 2.5}, "suppress: 2.5, allowed: a whole number"),
    ({"threshold": "0.5"}, "threshold: '0.5', allowed: a number"),
    ({"prediction_is": "proba"}, "prediction_is: 'proba', allowed: auto, class"),
    ({"labels": "few"}, "labels: 'few', allowed: all, some, none"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "said"), OPTIONS, ids=str)
def test_options_in_python_are_what_they_say_or_refused(options, said: str) -> None:
    """Of a text of missing values its letters were groups that disappeared."""
    frame = FRAME.assign(sex=np.where(FRAME.index < 90, "unknown", np.where(SEX == "m", "n", "o")))
    frame = frame.assign(p=(P >= 0.5).astype(int))
    given = {"y_true": "y", "y_pred": "p", "sensitive_features": ["sex"], **options}
    if said not in ("", "all"):
        with pytest.raises(InputError) as error:
            rf.audit(frame, **given)
        assert said in str(error.value)
        return
    groups = frame["sex"].where((frame["sex"] != "unknown") | (said != ""))
    audit = rf.audit(frame, **given)
    assert {*audit.by_group.index} == {*groups.dropna()}
    assert gap(audit.to_frame()) == pytest.approx(parity(groups, P >= 0.5))


CODES = 2**60 + np.where(SEX == "m", 1, 2)


@pytest.mark.parametrize("form", ["parquet", "polars", "arrow", "pandas"])
def test_whole_numbers_stay_exact_beside_missing_ones(tmp_path, form: str) -> None:
    """Codes that float64 does not tell apart, one of them missing."""
    site = pd.array([None, *CODES[1:]], dtype="Int64")
    frame = FRAME.assign(sex=site)
    truth = parity(FRAME["sex"].where(FRAME.index > 0), P >= 0.5)
    if form == "parquet":
        frame.to_parquet(tmp_path / "t.parquet")
        words = ["audit", str(tmp_path / "t.parquet"), "--target=y", "--prediction=p"]
        done = CliRunner().invoke(cli, [*words, "--attributes=sex", f"--output={tmp_path}"])
        assert done.exit_code == 0, done.output
        assert gap(pd.read_csv(tmp_path / "t_audit.csv", keep_default_na=False)) == (
            pytest.approx(truth)
        )
        return
    arrow = pa.Table.from_pandas(frame)
    table = {"polars": polars.from_arrow, "arrow": lambda some: some, "pandas": lambda _: frame}
    done = rf.audit(table[form](arrow), y_true="y", y_pred="p", sensitive_features=["sex"])
    assert gap(done.to_frame()) == pytest.approx(truth)
    assert {*done.by_group.index} == {*map(str, CODES)}


def test_an_attribute_without_groups_fails_the_gates_that_name_none(tmp_path) -> None:
    race = np.resize(np.arange(1, 16), ROWS)
    frame = FRAME.assign(race=race)
    gate = f"--fail-if={PARITY}>0.9"
    done = audited(tmp_path, frame, "--attributes=race,sex", gate)
    assert done.exit_code == 1
    assert "race is taken for a number and has no groups; allowed: --category race" in done.stderr
    for words in (["--category=race"], ["--number=race"], ["--bins=race=5,10"]):
        assert audited(tmp_path, frame, "--attributes=race,sex", gate, *words).exit_code == 0
    assert (
        audited(tmp_path, frame, "--attributes=race,sex", "--fail-if=accuracy<0.1").exit_code == 0
    )
    audit = rf.audit(frame, y_true="y", y_pred="p", sensitive_features=["race", "sex"])
    assert any("types={'race': 'category'}" in remark for remark in audit.remarks)
    assert len(audit.failures(f"{PARITY}>0.9")) == 1
    categories = rf.audit(frame, y_true="y", y_pred="p", sensitive_features=["race"],
                          types={"race": "category"})  # fmt: skip
    assert gap(categories.to_frame()) == pytest.approx(parity(pd.Series(race), P >= 0.5))


@pytest.mark.parametrize("labels", [[], ["--labels=none"]])
@pytest.mark.parametrize(
    ("now", "then", "message"),
    [
        (("1.0", "2.0"), ("1", "2"), ""), (("01", "02"), ("1", "2"), "'01', "),
        (("F", "M"), ("f", "m"), "'F', "), (("f ", "m"), ("f", "m"), "'f ', "),
        (("f", "m"), ("f", "m"), ""),
    ],
)  # fmt: skip
def test_spellings_of_two_tables_are_one_or_refused(tmp_path, labels, now, then, message) -> None:
    frame = FRAME.assign(sex=np.where(SEX == "f", *then))
    frame.to_csv(tmp_path / "then.csv", index=False)
    current = FRAME.assign(sex=np.where(SEX == "f", *now))
    done = audited(tmp_path, current, f"--reference={tmp_path / 'then.csv'}", *labels)
    assert done.exit_code == (2 if message else 0), done.output
    if message:
        assert f"t.csv, column sex, has {message}then.csv, column sex, has" in done.output
        assert done.output.count("\n") == 1
        return
    rows = pd.read_csv(tmp_path / "t_changes.csv", keep_default_na=False)
    row = rows[(rows["metric"] == PARITY) & (rows["group"] == "")].iloc[0]
    assert float(row["change"]) == pytest.approx(0.0, abs=1e-9)


def test_empty_text_is_no_group_and_never_all_rows() -> None:
    frame = FRAME.assign(sex=FRAME["sex"].mask(FRAME.index < 7, ""), p=(P >= 0.5).astype(int))
    read = pd.read_csv(io.StringIO(frame.to_csv(index=False)), keep_default_na=False)
    audit = rf.audit(read, y_true="y", y_pred="p", sensitive_features=["sex"], suppress=20)
    assert not any("_by_group" in name for name in audit.metrics())
    assert {*audit.by_group.index} == {"f", "m"}


def test_decisions_need_no_labels() -> None:
    audit = rf.audit(DECIDED, y_pred="p", sensitive_features=["sex"], positive_prediction="approve")
    assert gap(audit.to_frame()) == pytest.approx(parity(FRAME["sex"], P >= 0.5))


def month(spell: dict[str, str], when: object, grown: float = 0.0, seed: int = 0, rows: int = 2000):
    """Decisions of a month, in which the gap of selection rates may be larger."""
    rng = np.random.default_rng(seed)
    sex, y = rng.choice([*spell], rows), rng.integers(0, 2, rows)
    rate = np.where(y, 0.7, 0.3) + np.where(sex == max(spell), grown, 0.0)
    decided = (rng.random(rows) < rate).astype(int)
    return pd.DataFrame({"sex": [spell[name] for name in sex], "y": y, "p": decided, "t": when})


PLAIN = {"1": "1", "2": "2"}
FIT = {
    # Later month, status, what is said.
    "the same": (month(PLAIN, 2, seed=1), 0, "monitor: no alarm"),
    "grown": (month(PLAIN, 2, 0.3, seed=1), 1, "alarm in 2"),
    "codes as floats": (month({"1": "1.0", "2": "2.0"}, 2, 0.3, seed=1), 1, "alarm in 2"),
    "leading zeros": (
        month({"1": "01", "2": "02"}, 2, 0.3, seed=1), 2,
        "the table, column sex, has '01', s.json, attribute sex, has '1'; allowed: one spelling",
    ),
    "other groups": (
        month({"1": "m", "2": "n"}, 2, 0.3, seed=1), 1,
        "sex is not followed: the reference has too few rows of m, n; make the state again",
    ),
    "a new group": (
        pd.concat([month(PLAIN, 2, seed=1), month({"3": "3"}, 2, rows=100)]), 1,
        "the reference has too few rows of 3",
    ),
    "a new small group": (
        pd.concat([month(PLAIN, 2, seed=1), month({"3": "3"}, 2, rows=9)]), 0, "no alarm",
    ),
    "one group": (
        pd.concat([month({"1": "1"}, 2, seed=1), month({"3": "3"}, 2, rows=9)]), 1,
        "fewer than two of its groups have rows in 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FIT)
def test_a_monitor_follows_or_fails(tmp_path, name: str) -> None:
    later, status, said = FIT[name]
    words = ["--period=t", f"--state={tmp_path / 's.json'}", "--fail-on-growth"]
    assert audited(tmp_path, month(PLAIN, 1), *words).exit_code == 0
    before = (tmp_path / "s.json").read_bytes()
    done = audited(tmp_path, later, *words)
    assert done.exit_code == status, done.output
    assert said in done.output.replace(f"{tmp_path}/", "")
    assert ("no alarm" in done.output) == (status == 0)
    assert ((tmp_path / "s.json").read_bytes() == before) == (status == 2)


@pytest.mark.parametrize(
    ("first", "then", "kinds"),
    [
        ("2024Q4", "Q1 2025", ("quarter", "quarter")), ("spring", "summer", ("name", "name")),
        ("v1.9", "v1.10", ("numbered", "numbered")),
    ],
)  # fmt: skip
def test_periods_go_on_in_their_order(tmp_path, first, then, kinds) -> None:
    words = ["--period=t", f"--state={tmp_path / 's.json'}", "--fail-on-growth"]
    assert audited(tmp_path, month(PLAIN, first), *words).exit_code == 0
    assert audited(tmp_path, month(PLAIN, then, 0.3, seed=1), *words).exit_code == 1
    earlier = audited(tmp_path, month(PLAIN, f"{first} "), *words)  # the same rows again
    assert earlier.exit_code == 1, earlier.output
    other = audited(tmp_path, month(PLAIN, first.upper().replace("Q4", "Q3"), seed=2), *words)
    assert other.exit_code == 2 and other.output.count("\n") == 1


def test_newest_first_is_oldest_first(tmp_path) -> None:
    parts = [month(PLAIN, f"2024Q{k}", 0.3 * (k == 4), seed=k) for k in range(1, 5)]
    words = ["--period=t", "--fail-on-growth"]
    said = [audited(tmp_path, pd.concat(order), *words) for order in (parts, parts[::-1])]
    assert [done.exit_code for done in said] == [1, 1]
    assert said[0].output == said[1].output
    assert "2024Q4 against 2024Q1 to 2024Q3" in said[0].output
    assert audited(tmp_path, pd.concat(parts), *words, "--by=quarter").output == said[0].output


def test_groups_without_labels_are_one_line_where_values_are_estimated(tmp_path) -> None:
    FRAME.to_csv(tmp_path / "then.csv", index=False)
    now = FRAME.assign(sex=np.where(FRAME.index < 50, "x", FRAME["sex"])).drop(columns="y")
    done = audited(tmp_path, now, "--labels=none", f"--reference={tmp_path / 'then.csv'}")
    assert done.exit_code == 2
    assert "t.csv: group 'x' of sex has no labels in then.csv" in done.output
