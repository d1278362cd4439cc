"""The sources of FairCOCCO's Table 7: real files, small ones of the same form, and damaged ones."""

import csv
import io
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find, names
from robust_fairness.datasets.base import Dataset
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import Category
from robust_fairness.datasets.tables import communities, compas, drugs, german, students
from robust_fairness.samples import Samples

SOURCES = (compas, drugs, german, students)
SMALL = 60  # rows of a small file

Table = dict[str, list[str]]


def parts(samples: Samples, split: str) -> tuple[int, ...]:
    return tuple(len(samples.rows(split, part)) for part in ("train", "val", "test"))


def kind_of(source: ModuleType) -> type[Dataset]:
    """The dataset of a file."""
    return find("dataset", source.__name__.rpartition(".")[2])


def load(source: ModuleType, root: Path, splits: int = 1, **options: object) -> Samples:
    kind = kind_of(source)
    return kind(kind.Parameters(**options)).load(Files(root), splits)


def require_features(samples: Samples, frame: pd.DataFrame) -> None:
    """The features are the frame's columns as they are, or one-hot."""
    for column, values in zip(samples.features, samples.x.T, strict=True):
        name, _, category = column.partition("=")
        expected = frame[name].astype(str) == category if category else frame[name]
        np.testing.assert_array_equal(values, expected.astype(np.float32), err_msg=column)


def test_sources_are_found_by_name() -> None:
    assert {"compas", "drugs", "german", "students"} <= set(names("dataset"))


@pytest.mark.parametrize(
    ("source", "text"),
    [(compas, "c_charge_desc"), (drugs, "id"), (german, "purpose"), (students, "reason")],
)
def test_unknown_parameters_and_attributes_that_are_text_are_refused(
    source: ModuleType, text: str
) -> None:
    with pytest.raises(ValidationError, match="extra_forbidden"):
        kind_of(source).Parameters(sensitif=["sex"])
    with pytest.raises(ValidationError, match="literal_error"):
        kind_of(source).Parameters(sensitive=[text])


@pytest.mark.parametrize(
    ("source", "rows"), [(compas, 6172), (drugs, 1877), (german, 1000), (students, 649)]
)
def test_ten_splits_are_60_20_20(shared_data: Path, source: ModuleType, rows: int) -> None:
    samples = load(source, shared_data, splits=10)
    assert len(samples) == rows
    assert samples.split_names == [f"split_{k}" for k in range(10)]
    for split in samples.split_names:
        np.testing.assert_allclose(parts(samples, split), np.array([0.6, 0.2, 0.2]) * rows, atol=1)
    assert len({tuple(samples.rows(split, "test")) for split in samples.split_names}) == 10


# COMPAS


def compas_frame(shared_data: Path) -> pd.DataFrame:
    """ProPublica's five filters, by pandas."""
    (path,) = (shared_data / "compas").glob("compas-scores-two-years.csv*")
    return pd.read_csv(
        path, keep_default_na=False, na_values={"days_b_screening_arrest": ""}
    ).query(
        "-30 <= days_b_screening_arrest <= 30 and is_recid != -1 and c_charge_degree != 'O' "
        "and score_text != 'N/A'"
    )


@pytest.mark.parametrize(
    ("target", "positive"), [("is_violent_recid", 692), ("two_year_recid", 2809)]
)
def test_compas_agrees_with_an_independent_reading(
    shared_data: Path, target: str, positive: int
) -> None:
    samples = load(compas, shared_data, target=target)
    frame = compas_frame(shared_data)
    assert len(samples) == len(frame) == 6172
    assert samples.y.sum() == positive
    np.testing.assert_array_equal(samples.y, frame[target])
    np.testing.assert_array_equal(samples.id, frame.index)
    assert {name.partition("=")[0] for name in samples.features} == {*compas.FEATURES}
    assert len(compas.FEATURES) == 10
    require_features(samples, frame)
    assert samples.sensitive == ("race",)
    white = frame["race"] == "Caucasian"
    assert (samples.attributes["race"] == "Caucasian").tolist() == white.tolist()
    assert samples.attributes["race"].value_counts().to_dict() == {
        "Non-Caucasian": 4069,
        "Caucasian": 2103,
    }
    for name, column in [("race_full", "race"), ("sex", "sex"), ("age", "age")]:
        assert samples.attributes[name].tolist() == frame[column].tolist()


def test_compas_keeps_those_who_were_followed_for_two_years(shared_data: Path) -> None:
    frame = compas_frame(shared_data)
    early = frame[pd.to_datetime(frame["compas_screening_date"]) < "2014-04-01"]
    samples = load(compas, shared_data, target="two_year_recid", followed=True)
    np.testing.assert_array_equal(samples.id, early.index)
    assert samples.y.mean() == pytest.approx(0.365, abs=0.015)
    assert frame["two_year_recid"].drop(early.index).mean() > 0.98
    assert samples.domain == "" and "quarter" not in samples.attributes


def test_no_feature_of_compas_is_an_outcome_or_a_score_unless_asked_for(shared_data: Path) -> None:
    plain = load(compas, shared_data)
    assert not [name for name in plain.features if "recid" in name or "score" in name]
    scored = load(compas, shared_data, scores=True)
    assert set(scored.features) - set(plain.features) == {"decile_score", "v_decile_score"}
    require_features(scored, compas_frame(shared_data))


def test_sensitive_columns_of_compas_leave_with_all_that_tells_them(shared_data: Path) -> None:
    samples = load(compas, shared_data, sensitive=("race", "age"), drop_sensitive=True)
    left = {name.partition("=")[0] for name in samples.features}
    assert left == {*compas.FEATURES} - {"race", "age", "age_cat"}


# German credit


def test_south_german_agrees_with_an_independent_reading(shared_data: Path) -> None:
    samples = load(german, shared_data)
    frame = pd.read_csv(shared_data / german.SOUTH_GERMAN, sep=" ")
    assert samples.classes == ("bad", "good")
    np.testing.assert_array_equal(samples.y, frame["credit_risk"])
    assert np.bincount(samples.y).tolist() == [300, 700]
    require_features(samples, frame)
    assert len({name.partition("=")[0] for name in samples.features}) == 20
    foreign = samples.attributes["foreign_worker"] == "foreign"
    np.testing.assert_array_equal(foreign, frame["foreign_worker"] == 1)
    assert foreign.sum() == 37
    told = frame["personal_status_sex"].map({1: "male", 3: "male", 4: "female"})
    sex = samples.attributes["sex"].astype("object")
    assert sex.tolist() == told.fillna("female or single male").tolist()
    assert samples.attributes["age"].tolist() == frame["age"].tolist()


def test_statlog_agrees_with_an_independent_reading(shared_data: Path) -> None:
    samples = load(german, shared_data, coding="statlog")
    frame = pd.read_csv(shared_data / german.STATLOG_CSV)
    frame.columns = pd.Index(german.FIELDS)
    np.testing.assert_array_equal(samples.y, 2 - frame["credit_risk"])
    require_features(samples, frame)
    assert len({name.partition("=")[0] for name in samples.features}) == 20
    foreign = samples.attributes["foreign_worker"] == "foreign"
    np.testing.assert_array_equal(foreign, frame["foreign_worker"] == "A201")
    assert foreign.sum() == 963  # as its codebook has it, the other way round
    female = samples.attributes["sex"] == "female"
    np.testing.assert_array_equal(female, frame["personal_status_sex"] == "A92")


def test_both_codings_tell_of_the_same_loans(shared_data: Path) -> None:
    south, statlog = (
        load(german, shared_data, coding=coding) for coding in ("south_german", "statlog")
    )
    loans = [
        pd.Series(list(map(tuple, np.c_[samples.x[:, :3], samples.y]))).value_counts()
        for samples in (south, statlog)
    ]
    common = loans[0].to_frame("south").join(loans[1].rename("statlog"), how="inner").min(axis=1)
    assert common.sum() == 990
    groups = [set(s.attributes["foreign_worker"].value_counts()) for s in (south, statlog)]
    assert groups[0] == groups[1] == {37, 963}


def test_official_forms_of_german_credit_give_the_same_samples(
    shared_data: Path, tmp_path: Path
) -> None:
    files = Files(shared_data)
    folder = tmp_path / "german_credit"
    folder.mkdir()
    _, _, rows = files.text(german.SOUTH_GERMAN).partition("\n")
    (tmp_path / german.SOUTH_GERMAN).write_text(" ".join(german.GERMAN_NAMES) + "\n" + rows)
    _, _, rows = files.text(german.STATLOG_CSV).partition("\n")
    (tmp_path / german.STATLOG).write_text(rows.replace(",", " "))
    for coding in ("south_german", "statlog"):
        official = load(german, tmp_path, coding=coding)
        copy = load(german, shared_data, coding=coding)
        assert official.features == copy.features
        np.testing.assert_array_equal(official.x, copy.x)
        np.testing.assert_array_equal(official.y, copy.y)
        pd.testing.assert_frame_equal(official.attributes, copy.attributes)


def test_missing_statlog_names_the_file_that_can_be_fetched(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"german\.data is missing.*fetch german_statlog"):
        load(german, tmp_path, coding="statlog")


# Drug consumption


def drugs_frame(shared_data: Path) -> pd.DataFrame:
    (path,) = (shared_data / "drug_consumption").glob("drug_consumption.data*")
    columns = ["id", *drugs.FEATURES, *drugs.DRUGS.split()]
    return pd.read_csv(path, header=None, names=columns).query("semer == 'CL0'")


def test_drugs_agree_with_an_independent_reading(shared_data: Path) -> None:
    samples = load(drugs, shared_data)
    frame = drugs_frame(shared_data)
    assert len(samples) == len(frame) == 1877
    assert samples.classes == ("never used", "used")
    np.testing.assert_array_equal(samples.y, frame["heroin"] != "CL0")
    assert round(1 - samples.y.mean(), 3) == 0.852
    np.testing.assert_array_equal(samples.id, frame.index)
    assert samples.features == tuple(name for name in drugs.FEATURES if name != "ethnicity")
    assert len(samples.features) == 11
    require_features(samples, frame)
    white = samples.attributes["ethnicity"] == "White"
    np.testing.assert_array_equal(white, frame["ethnicity"] == -0.31685)
    assert white.sum() == 1715


def test_groups_of_drugs_have_the_counts_of_their_page(shared_data: Path) -> None:
    frame = pd.read_csv(
        next((shared_data / "drug_consumption").glob("drug_consumption.data*")),
        header=None,
        dtype=str,
    )
    # counts of all 1,885 rows, as the page of the dataset at UCI gives them
    ages = [643, 481, 356, 294, 93, 18]
    ethnicities = {
        "White": 1720,
        "Asian": 26,
        "Black": 33,
        "Mixed-Black/Asian": 3,
        "Mixed-White/Asian": 20,
        "Mixed-White/Black": 20,
        "Other": 63,
    }
    assert frame[1].map(drugs.AGES).value_counts()[list(drugs.AGES.values())].tolist() == ages
    assert frame[2].map(drugs.GENDERS).value_counts().to_dict() == {"male": 943, "female": 942}
    assert frame[5].map(drugs.ETHNICITIES).value_counts().to_dict() == ethnicities
    samples = load(drugs, shared_data, sensitive=("age", "gender", "ethnicity"))
    assert len(samples.features) == 9
    assert samples.attributes["gender"].value_counts().to_dict() == {"male": 940, "female": 937}


# Student performance


@pytest.mark.parametrize(("subject", "rows"), [("portuguese", 649), ("maths", 395)])
def test_students_agree_with_an_independent_reading(
    shared_data: Path, subject: str, rows: int
) -> None:
    samples = load(students, shared_data, subject=subject)
    frame = pd.read_csv(shared_data / students.DATA[subject], sep=";")
    assert len(samples) == len(frame) == rows
    assert samples.classes == ()
    np.testing.assert_array_equal(samples.y, frame["G3"].astype(np.float32))
    require_features(samples, frame)
    columns = {name.partition("=")[0] for name in samples.features}
    assert columns == set(frame) - {"G3"}
    assert samples.sensitive == ("age", "sex")
    assert samples.attributes["age"].dtype == np.float64
    for name in ("age", "sex"):
        assert samples.attributes[name].tolist() == frame[name].tolist()


def test_past_grades_of_students_leave_on_demand(shared_data: Path) -> None:
    every = load(students, shared_data)
    without = load(students, shared_data, past_grades=False)
    assert set(every.features) - set(without.features) == {"G1", "G2"}


# Communities as numbers


def test_continuous_communities_agree_with_an_independent_reading(shared_data: Path) -> None:
    ethnicities = ("racepctblack", "racePctWhite", "racePctAsian", "racePctHisp")
    samples = load(communities, shared_data, target="continuous", sensitive=ethnicities)
    (path,) = (shared_data / "communities_crime").glob("communities.data*")
    fields = list(communities.FIELDS)
    frame = pd.read_csv(path, header=None, names=fields, na_values="?")
    assert samples.classes == ()
    np.testing.assert_array_equal(samples.y, frame["ViolentCrimesPerPop"].astype(np.float32))
    assert samples.sensitive == ethnicities
    for name in ethnicities:
        np.testing.assert_array_equal(samples.attributes[name], frame[name])
    require_features(samples, frame)
    dropped = load(
        communities, shared_data, target="continuous", sensitive=ethnicities, drop_sensitive=True
    )
    assert set(samples.features) - set(dropped.features) == set(ethnicities)


def test_binary_communities_have_the_attributes_they_always_had(shared_data: Path) -> None:
    samples = load(communities, shared_data)
    both = ["racepctblack", "FemalePctDiv"]
    assert list(samples.attributes) == [*(f"{name}_group" for name in both), *both]
    assert samples.classes == ("top 30 %", "rest")


# Small files of the same form


def repeated(*values: str) -> list[str]:
    return list(islice(cycle(values), SMALL))


def small_compas() -> Table:
    table = {name: repeated("0", "1", "2") for name in (*compas.FEATURES, *compas.SCORES)}
    return table | {
        "name": repeated('doe, "jo"', "ann"),
        "sex": repeated("Male", "Female"),
        "age": repeated("18", "30", "60"),
        "age_cat": repeated("Less than 25", "25 - 45", "Greater than 45"),
        "race": repeated("Caucasian", "Asian", "Other", "Caucasian", "Hispanic"),
        "c_charge_degree": ["O", *repeated("F", "M")[1:]],
        "days_b_screening_arrest": ["0", "", "31", "-31", *repeated("30", "-30", "-1")[4:]],
        "is_recid": [*repeated("0", "1")[:-1], "-1"],
        "score_text": [*repeated("Low", "High")[:-2], "N/A", "Low"],
        "is_violent_recid": repeated("0", "0", "1"),
        "two_year_recid": repeated("0", "1"),
    }


def small_german() -> Table:
    numbers = {"duration": ("4", "72"), "amount": ("250", "18424"), "age": ("19", "75")}
    return {
        name: repeated(*numbers.get(name, ("1", "2")))
        if name != german.TARGET
        else repeated("0", "1", "1")
        for name in german.FIELDS
    }


def small_drugs() -> Table:
    return {
        "id": [str(k) for k in range(SMALL)],
        **{name: repeated("0.12345", "-1.5") for name in drugs.FEATURES},
        "age": repeated(*drugs.AGES),
        "gender": repeated(*drugs.GENDERS),
        "ethnicity": repeated(*drugs.ETHNICITIES),
        **{name: repeated(*drugs.USE) for name in drugs.DRUGS.split()},
        "heroin": repeated("CL0", "CL0", "CL1"),
        "semer": ["CL3", "CL1", *repeated("CL0")[2:]],
    }


def small_students() -> Table:
    return {
        name: repeated(*field.names) if isinstance(field, Category) else repeated("4", "3")
        for name, field in students.FIELDS.items()
    } | {"age": repeated("15", "17", "22"), "G3": repeated("0", "12", "20")}


FORMS = {
    "compas": (compas, small_compas, compas.DATA, ",", True),
    "german": (german, small_german, german.SOUTH_GERMAN, " ", True),
    "drugs": (drugs, small_drugs, drugs.DATA, ",", False),
    "students": (students, small_students, students.DATA["portuguese"], ";", True),
}
LEFT = {"compas": 54, "german": SMALL, "drugs": SMALL - 2, "students": SMALL}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Samples]:
    """Load a small file of a source after a change of its table."""
    monkeypatch.setattr(compas, "ROWS", SMALL)
    monkeypatch.setattr(compas, "FILTERED", LEFT["compas"])
    monkeypatch.setattr(drugs, "ROWS", SMALL)
    monkeypatch.setattr(drugs, "HONEST", LEFT["drugs"])
    monkeypatch.setattr(german, "ROWS", SMALL)
    monkeypatch.setitem(students.ROWS, "portuguese", SMALL)

    def loaded(form: str, change: Callable[[Table], object] = dict, **options: object) -> Samples:
        source, table_of, name, delimiter, header = FORMS[form]
        table = table_of()
        change(table)
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=delimiter)
        writer.writerows(
            ([list(table)] if header else []) + list(zip(*table.values(), strict=True))
        )
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.getvalue(), newline="")
        return load(source, tmp_path, **options)

    return loaded


@pytest.mark.parametrize("form", FORMS)
def test_small_file_is_read_whole(small: Callable[..., Samples], form: str) -> None:
    samples = small(form)
    assert len(samples) == LEFT[form]
    assert np.isfinite(samples.x).all()
    assert next(iter(samples.sources)) == FORMS[form][2]


def test_filters_of_compas_leave_out_the_rows_they_name(small: Callable[..., Samples]) -> None:
    left_out = set(range(SMALL)) - set(small("compas").id.tolist())
    assert left_out == {0, 1, 2, 3, SMALL - 2, SMALL - 1}


def set_cell(column: str, row: int, cell: str) -> Callable[[Table], object]:
    return lambda table: table[column].__setitem__(row, cell)


def shorten(table: Table) -> None:
    for cells in table.values():
        cells.pop()


@pytest.mark.parametrize(
    ("form", "change", "message"),
    [
        (
            "compas",
            set_cell("race", 3, "Caucasain"),
            r"two-years\.csv, line 5, column race: unknown category 'Caucasain': .*'Caucasian'",
        ),
        (
            "compas",
            set_cell("race", 3, 'says "none", or other'),
            r"line 5, column race: unknown category 'says \"none\", or other'",
        ),
        ("compas", set_cell("age", 9, "nan"), r"line 11, column age: 'nan', .* from 18 to 120"),
        ("compas", set_cell("age", 9, "20.5"), r"line 11, column age: '20\.5', .* whole number"),
        ("compas", set_cell("is_violent_recid", 0, ""), r"line 2, column is_violent_recid: "),
        ("compas", set_cell("score_text", 5, "N/A"), r"53 rows after the filters .* expected 54"),
        ("compas", lambda t: t.pop("race"), r"two-years\.csv: unknown column 'race'"),
        ("compas", shorten, r"two-years\.csv: 59 rows, expected 60"),
        ("german", set_cell("status", 0, "5"), r"line 2, column status: .*'5'.*: 1, 2, 3, 4$"),
        ("german", set_cell("amount", 0, "?"), r"line 2, column amount: '\?', .* 1 or more$"),
        ("german", lambda t: t.pop("age"), r"SouthGermanCredit\.asc: unknown column 'age'"),
        ("german", shorten, r"SouthGermanCredit\.asc: 59 rows, expected 60"),
        (
            "german",
            lambda t: t.update(foreign_worker=["2"] * SMALL),
            r"foreign_worker: every row has the value not foreign;",
        ),
        ("drugs", set_cell("heroin", 8, "CL7"), r"line 9, column heroin: .*'CL7'"),
        ("drugs", set_cell("ethnicity", 8, "White"), r"line 9, column ethnicity: .*'White'"),
        ("drugs", set_cell("nscore", 8, "much"), r"line 9, column nscore: 'much', .* -5 to 5"),
        ("drugs", set_cell("semer", 8, "CL1"), r"57 rows after .* Semeron, expected 58"),
        ("drugs", lambda t: t.pop("id"), r"drug_consumption\.data, line 1: 31 fields, expected 32"),
        ("drugs", shorten, r"drug_consumption\.data: 59 rows, expected 60"),
        ("students", set_cell("G3", 0, "21"), r"line 2, column G3: '21', .* from 0 to 20"),
        ("students", set_cell("Mjob", 0, "nurse; ward 2"), r"line 2, column Mjob: .*'nurse; ward"),
        ("students", lambda t: t.pop("G3"), r"student-por\.csv: unknown column 'G3'"),
        ("students", shorten, r"student-por\.csv: 59 rows, expected 60"),
    ],
)
def test_damaged_file_is_one_line_that_names_file_and_field(
    small: Callable[..., Samples], form: str, change: Callable[[Table], object], message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        small(form, change)
    assert "\n" not in str(error.value)
