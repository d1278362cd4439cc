"""Sources whose raw files are not at hand, on made-up files of the same form."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.base import Dataset
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import Category
from robust_fairness.datasets.tables import credit_card, kdd_census, law_school
from robust_fairness.samples import Samples

Change = Callable[[pd.DataFrame], pd.DataFrame]


def parts(samples: Samples, split: str) -> tuple[int, ...]:
    return tuple(len(samples.rows(split, part)) for part in ("train", "val", "test"))


def cell(row: int, column: str, value: object) -> Change:
    def change(table: pd.DataFrame) -> pd.DataFrame:
        table = table.astype({column: object})
        table.loc[row, column] = value
        return table

    return change


def features_agree(samples: Samples, raw: pd.DataFrame) -> None:
    """Every feature is its column, or tells whether the column holds its category."""
    for name, values in zip(samples.features, samples.x.T, strict=True):
        column, _, category = name.partition("=")
        expected = raw[column].astype(str) == category if category else raw[column].astype(float)
        np.testing.assert_array_equal(values, expected.astype(np.float32), err_msg=name)


# Law school


def law_table(rows: int = law_school.ROWS) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "decile1b": rng.integers(1, 11, rows).astype(float),
            "decile3": rng.integers(1, 11, rows).astype(float),
            "lsat": rng.integers(22, 97, rows) / 2,
            "ugpa": rng.uniform(1.5, 4, rows).round(1),
            "zfygpa": rng.normal(0, 1, rows).round(2),
            "zgpa": rng.normal(0, 1, rows).round(2),
            "fulltime": rng.choice([1.0, 2.0], rows),
            "fam_inc": rng.integers(1, 6, rows).astype(float),
            "male": rng.choice([0.0, 1.0], rows),
            "tier": rng.integers(1, 7, rows).astype(float),
            "race": rng.choice(["White", "Non-White"], rows),
            "pass_bar": rng.choice([0, 1], rows),
        }
    )


def load_law(root: Path, table: pd.DataFrame, **options: object) -> Samples:
    (root / "law_school").mkdir()
    table.to_csv(root / law_school.DATA, index=False)
    return law_school.LawSchool(law_school.LawSchool.Parameters(**options)).load(Files(root), 2)


def test_law_school_keeps_every_cell_whatever_the_order_of_columns(tmp_path: Path) -> None:
    table = law_table()
    samples = load_law(tmp_path, table[table.columns[::-1]])
    assert len(samples) == 20_798
    raw = table.assign(male=np.where(table["male"] == 1, "male", "female"))
    features_agree(samples, raw)
    numeric = [name for name in table if name not in ("male", "race", "pass_bar")]
    one_hot = ["male=female", "male=male", "race=Non-White", "race=White"]
    assert list(samples.features) == numeric + one_hot
    assert samples.classes == ("failed", "passed")
    np.testing.assert_array_equal(samples.y, table["pass_bar"])
    assert samples.sensitive == ("male", "race")
    assert samples.attributes["male"].tolist() == raw["male"].tolist()
    assert samples.attributes["race"].tolist() == table["race"].tolist()
    assert parts(samples, "split_1") == (12_478, 4_160, 4_160)


def test_law_school_reads_zeros_and_ones_however_they_are_written(tmp_path: Path) -> None:
    table = law_table()
    written = {"male": table["male"].map("{:.2f}".format), "pass_bar": table["pass_bar"] + 0.0}
    samples = load_law(tmp_path, table.assign(**written))
    np.testing.assert_array_equal(samples.y, table["pass_bar"])
    np.testing.assert_array_equal(samples.attributes["male"] == "male", table["male"] == 1)


def test_sensitive_columns_of_law_school_leave_the_features_on_demand(tmp_path: Path) -> None:
    samples = load_law(tmp_path, law_table(), sensitive=["race"], drop_sensitive=True)
    assert not [name for name in samples.features if name.startswith("race")]
    assert samples.x.shape[1] == 11


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t[:-1], r"clean\.csv: 20797 rows, expected 20798"),
        (lambda t: t.drop(columns="tier"), r"clean\.csv: unknown column 'tier'"),
        (cell(3, "race", "white"), r"line 5, column race: unknown category 'white': did you mean"),
        (cell(3, "race", "1"), r"line 5, column race: unknown category '1'\. Allowed: Non-White"),
        (cell(0, "tier", "7"), r"line 2, column tier: '7', allowed: a whole number from 1 to 6"),
        (cell(0, "male", "2"), r"line 2, column male: '2', allowed: a whole number from 0 to 1"),
        (cell(9, "lsat", ""), r"line 11, column lsat: '', allowed: a number from 10 to 48"),
        (cell(9, "lsat", 160), r"line 11, column lsat: '160', allowed: a number from 10 to 48"),
    ],
)
def test_damaged_law_school_is_one_line(tmp_path: Path, change: Change, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        load_law(tmp_path, change(law_table()))
    assert "\n" not in str(error.value)


# Credit card clients

EDUCATION = {1: "graduate school", 2: "university", 3: "high school", 4: "others"}
MARRIAGE = {1: "married", 2: "single", 3: "others"}


def credit_table(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    months = range(1, 7)
    return pd.DataFrame(
        {
            "ID": np.arange(1, rows + 1),
            "LIMIT_BAL": rng.integers(1, 80, rows) * 10_000,
            "SEX": rng.integers(1, 3, rows),
            "EDUCATION": rng.integers(0, 7, rows),
            "MARRIAGE": rng.integers(0, 4, rows),
            "AGE": rng.integers(21, 80, rows),
            **{f"PAY_{month}": rng.integers(-2, 9, rows) for month in (0, 2, 3, 4, 5, 6)},
            **{f"BILL_AMT{month}": rng.integers(-2_000, 500_000, rows) for month in months},
            **{f"PAY_AMT{month}": rng.integers(0, 90_000, rows) for month in months},
            "default payment next month": rng.integers(0, 2, rows),
        }
    )


@pytest.fixture
def few_clients(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(credit_card, "ROWS", 400)
    return 400


def load_credit(root: Path, table: pd.DataFrame, **options: object) -> Samples:
    (root / "credit_card").mkdir(exist_ok=True)
    table.to_csv(root / credit_card.DATA, index=False)
    return credit_card.CreditCard(credit_card.CreditCard.Parameters(**options)).load(Files(root), 1)


def test_credit_card_has_thirty_thousand_rows_and_keeps_every_cell(tmp_path: Path) -> None:
    table = credit_table(30_000)
    samples = load_credit(tmp_path, table, undocumented="own")
    assert samples.x.shape == (30_000, 20 + 2 + 5 + 4)
    features_agree(
        samples,
        table.assign(
            SEX=table["SEX"].map({1: "male", 2: "female"}),
            EDUCATION=table["EDUCATION"].map(EDUCATION).fillna("undocumented"),
            MARRIAGE=table["MARRIAGE"].map(MARRIAGE).fillna("undocumented"),
        ),
    )
    assert samples.classes == ("paid", "default")
    np.testing.assert_array_equal(samples.y, table["default payment next month"])
    np.testing.assert_array_equal(samples.attributes["AGE"], table["AGE"])
    assert samples.attributes["SEX"].tolist() == table["SEX"].map({1: "male", 2: "female"}).tolist()
    assert samples.sensitive == ("SEX", "MARRIAGE", "EDUCATION")
    assert parts(samples, "split_0") == (18_000, 6_000, 6_000)


@pytest.mark.parametrize("target", credit_card.TARGETS)
def test_credit_card_is_the_same_without_id_and_by_any_name_of_the_target(
    tmp_path: Path, few_clients: int, target: str
) -> None:
    table = credit_table(few_clients)
    whole = load_credit(tmp_path, table)
    renamed = table.drop(columns="ID").rename(columns={credit_card.TARGETS[0]: target})
    other = load_credit(tmp_path, renamed)
    np.testing.assert_array_equal(whole.x, other.x)
    np.testing.assert_array_equal(whole.y, other.y)
    assert whole.features == other.features
    assert "ID" not in whole.features


def test_undocumented_codes_join_others_or_go(tmp_path: Path, few_clients: int) -> None:
    table = credit_table(few_clients)
    joined = load_credit(tmp_path, table, undocumented="others")
    expected = table["EDUCATION"].map(EDUCATION).fillna("others")
    assert joined.attributes["EDUCATION"].tolist() == expected.tolist()
    assert joined.attributes["MARRIAGE"].tolist() == table["MARRIAGE"].map(MARRIAGE).fillna(
        "others"
    ).tolist()  # fmt: skip
    assert list(joined.attributes["EDUCATION"].cat.categories) == list(EDUCATION.values())
    known = table["EDUCATION"].isin(EDUCATION) & table["MARRIAGE"].isin(MARRIAGE)
    dropped = load_credit(tmp_path, table, undocumented="drop")
    assert dropped.id.tolist() == np.flatnonzero(known).tolist()
    np.testing.assert_array_equal(dropped.x, joined.x[known])
    assert dropped.features == joined.features


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (cell(4, "EDUCATION", 7), r"line 6, column EDUCATION: unknown category '7'"),
        (cell(4, "SEX", 0), r"line 6, column SEX: unknown category '0'\. Allowed: 1, 2"),
        (cell(4, "PAY_0", 10), r"line 6, column PAY_0: '10', allowed: a whole number from -2 to 9"),
        (cell(4, "PAY_AMT3", -1), r"line 6, column PAY_AMT3: '-1', allowed: a number, 0 or more"),
        (lambda t: t[1:], r"clients\.csv: 399 rows, expected 400"),
        (lambda t: t.drop(columns="AGE"), r"clients\.csv: unknown column 'AGE'"),
        (lambda t: t.rename(columns={"default payment next month": "Y"}),
         r"clients\.csv: 0 target columns; expected one of \('default payment next month'"),
        (lambda t: t.assign(**{"default payment": 0}), r"clients\.csv: 2 target columns"),
        (lambda t: t.set_axis(["", *(f"X{k}" for k in range(1, 24)), "Y"], axis=1),
         r"clients\.csv, line 1: the header is X1 to X23 and Y; .* second"),
    ],
)  # fmt: skip
def test_damaged_credit_card_is_one_line(
    tmp_path: Path, few_clients: int, change: Change, message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        load_credit(tmp_path, change(credit_table(few_clients)))
    assert "\n" not in str(error.value)


# KDD census

ROWS = {kdd_census.TRAINING: 400, kdd_census.TEST: 200}


def census_table(rows: int, seed: int) -> pd.DataFrame:
    """Rows whose open categories are as many as the codebook counts, the first rows having all."""
    rng = np.random.default_rng(seed)
    columns = {}
    for name in kdd_census.COLUMNS:
        count, field = kdd_census.COUNTS.get(name), kdd_census.KNOWN.get(name, kdd_census.AMOUNT)
        if count is not None:
            codes = np.concatenate([np.arange(count), rng.integers(0, count, rows - count)])
            values = np.array(["Not in universe", "?", *(f"{name} {k}" for k in range(count))])
            columns[name] = values[codes]
        elif isinstance(field, Category):
            columns[name] = rng.choice(list(field.names), rows)
        else:
            columns[name] = rng.integers(0, min(field.high, 90) + 1, rows)
    return pd.DataFrame(columns)


@pytest.fixture
def census(monkeypatch: pytest.MonkeyPatch) -> dict[str, pd.DataFrame]:
    """A small census: the two files as tables."""
    monkeypatch.setattr(kdd_census, "ROWS", ROWS)
    return {name: census_table(rows, seed) for seed, (name, rows) in enumerate(ROWS.items())}


def load_census(
    root: Path, tables: dict[str, pd.DataFrame], splits: int = 1, **options: object
) -> Samples:
    """Written as the official files are: a space after each comma, no header."""
    for name, table in tables.items():
        (root / name).parent.mkdir(exist_ok=True)
        lines = [", ".join(map(str, row)) for row in table.itertuples(index=False)]
        (root / name).write_text("\n".join(lines) + "\n")
    return kdd_census.KddCensus(kdd_census.KddCensus.Parameters(**options)).load(
        Files(root), splits
    )


def test_census_has_the_documented_numbers_of_rows_and_fields() -> None:
    assert sum(kdd_census.ROWS.values()) == 299_285
    assert len(kdd_census.COLUMNS) == 42
    assert len(kdd_census.FEATURES) == 40
    assert len(kdd_census.COUNTS) == 40 - 7 - 2


def test_census_agrees_with_an_independent_reading(
    tmp_path: Path, census: dict[str, pd.DataFrame]
) -> None:
    samples = load_census(tmp_path, census, splits=2)
    raw = pd.concat(
        pd.read_csv(
            tmp_path / name, header=None, names=list(kdd_census.COLUMNS), skipinitialspace=True,
            keep_default_na=False, dtype=str,
        )
        for name in ROWS
    ).reset_index(drop=True)  # fmt: skip
    features_agree(samples, raw)
    counts = kdd_census.COUNTS.values()
    assert samples.x.shape == (600, 7 + sum(counts) + 5 + 2)
    assert samples.x.dtype == np.float32
    assert not [name for name in samples.features if name.startswith(("instance", "label"))]
    assert samples.classes == ("<=50K", ">50K")
    np.testing.assert_array_equal(samples.y, raw["label"] == "50000+.")
    assert samples.sensitive == ("sex", "race", "age")
    white = raw["race"] == "White"
    assert samples.attributes["race"].tolist() == np.where(white, "White", "other").tolist()
    assert samples.attributes["race_full"].tolist() == raw["race"].tolist()
    assert samples.attributes["sex"].tolist() == raw["sex"].tolist()
    np.testing.assert_array_equal(samples.attributes["age"], raw["age"].astype(float))
    for split in ("split_0", "split_1"):
        assert parts(samples, split) == (300, 100, 200)
        assert samples.rows(split, "test").tolist() == list(range(400, 600))


def test_features_of_the_census_do_not_depend_on_the_order_of_rows(
    tmp_path: Path, census: dict[str, pd.DataFrame]
) -> None:
    samples = load_census(tmp_path, census)
    backwards = {name: table[::-1] for name, table in census.items()}
    assert load_census(tmp_path, backwards).features == samples.features


def test_census_can_be_split_at_random_and_with_fewer_columns(
    tmp_path: Path, census: dict[str, pd.DataFrame]
) -> None:
    whole = load_census(tmp_path, census)
    dropped = ("country of birth father", "detailed industry recode")
    samples = load_census(
        tmp_path, census, split="random", train_rows=0.5, drop=dropped,
        sensitive=["race_full", "sex"], drop_sensitive=True,
    )  # fmt: skip
    assert parts(samples, "split_0") == (225, 75, 300)
    gone = (*dropped, "race", "sex")
    kept = [name for name in whole.features if name.partition("=")[0] not in gone]
    assert list(samples.features) == kept
    with pytest.raises(ValidationError, match=r"unknown feature 'country': did you mean"):
        kdd_census.KddCensus.Parameters(drop=["country"])
    with pytest.raises(ValidationError, match="unknown feature 'instance weight'"):
        kdd_census.KddCensus.Parameters(drop=["instance weight"])


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        (0, lambda t: t[1:], r"income\.data: 399 rows, expected 400"),
        (1, lambda t: t[1:], r"income\.test: 199 rows, expected 200"),
        (1, lambda t: t.drop(columns="year"), r"income\.test, line 1: 41 fields, expected 42"),
        (0, cell(60, "education", "Bachelor"),
         r"line 61, column education: 'Bachelor' is the rarest of 18 categories, expected 17"),
        (0, lambda t: t.assign(year="94"), r"data, column year: 1 categories, expected 2"),
        (1, cell(60, "education", "Bachelor"),
         r"test, line 61, column education: unknown category 'Bachelor'"),
        (1, cell(9, "race", "white"), r"test, line 10, column race: unknown category 'white': did"),
        (0, cell(9, "label", "50000+"), r"data, line 10, column label: unknown category '50000\+'"),
        (0, cell(9, "age", "?"), r"data, line 10, column age: '\?', allowed: a whole number from"),
        (0, cell(9, "instance weight", "x"), r"line 10, column instance weight: 'x', allowed: "),
    ],
)  # fmt: skip
def test_damaged_census_is_one_line(
    tmp_path: Path, census: dict[str, pd.DataFrame], file: int, change: Change, message: str
) -> None:
    name = list(census)[file]
    with pytest.raises(InputError, match=message) as error:
        load_census(tmp_path, census | {name: change(census[name])})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("source", "file"),
    [(kdd_census.KddCensus, kdd_census.TRAINING), (credit_card.CreditCard, credit_card.DATA),
     (law_school.LawSchool, law_school.DATA)],
)  # fmt: skip
def test_missing_file_is_named_with_its_place(
    tmp_path: Path, source: type[Dataset], file: str
) -> None:
    with pytest.raises(InputError, match=rf"^{file} is missing: .*Put it into"):
        source().load(Files(tmp_path), 1)
    with pytest.raises(ValidationError):
        source.Parameters(sensitive=["shoe size"])
