"""ACS by state: golden counts, an independent reading, and made-up files that are wrong."""

import csv
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from robust_fairness.bench.datasets.fetch import dataset_files
from robust_fairness.bench.datasets.tables import acs
from robust_fairness.bench.datasets.tables.acs import (
    CODES,
    FIELDS,
    FIPS,
    GROUPED_CODES,
    OPTIONAL_CODES,
    TASKS,
    YEAR,
    Acs,
    AcsStates,
    archive,
    column,
    member,
)
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from robust_fairness.core.samples import Samples
from tests.datasets import images
from tests.datasets.loading import Change, one_line, require_equal

GOLDEN = json.loads((Path(__file__).parent / "natural_golden.json").read_text())["acs"]


def load(files: Files, **options: object) -> Samples:
    return Acs(Acs.Parameters(**options)).load(files, 1)


def official(shared_data: Path, state: str) -> pd.DataFrame:
    """All columns of a state, read with pandas alone."""
    with zipfile.ZipFile(shared_data / archive(state)) as members:
        content = members.read(f"psam_p{FIPS[state]:02}.csv")
    return pd.read_csv(io.BytesIO(content), low_memory=False)


@pytest.mark.parametrize("task", TASKS)
def test_counts_are_the_golden_ones(shared_data: Path, task: str) -> None:
    samples = load(Files(shared_data), task=task)
    table = samples.attributes.assign(positive=samples.y)
    codes = {str(name): str(code) for code, name in enumerate(table["race_full"].cat.categories, 1)}
    sexes = {"male": "1", "female": "2"}
    for state, golden in GOLDEN[f"ACS{task}"].items():
        rows = table[table["state"] == state]
        by_sex = rows.groupby(rows["sex"].astype(str).map(sexes))["positive"]
        by_race = rows.groupby(rows["race_full"].astype(str).map(codes))["positive"]
        assert len(rows) == golden["rows"]
        assert rows["positive"].sum() == golden["positives"]
        assert by_sex.size().to_dict() == golden["by_sex"]
        assert by_sex.sum().to_dict() == golden["positives_by_sex"]
        assert by_race.size().to_dict() == golden["by_rac1p"]
        assert by_race.sum().to_dict() == golden["positives_by_rac1p"]
        assert (rows["race"] == "White").sum() == golden["by_rac1p"]["1"]


def test_rows_agree_with_an_independent_reading(shared_data: Path) -> None:
    raw = official(shared_data, "SD")
    kept = (raw["AGEP"] > 16) & (raw["PINCP"] > 100) & (raw["WKHP"] > 0) & (raw["PWGTP"] >= 1)
    expected = raw[kept]
    samples = load(Files(shared_data), states=["SD"], sensitive=["sex", "race"])
    np.testing.assert_array_equal(samples.id, expected.index)
    np.testing.assert_array_equal(samples.y, expected["PINCP"] > 50_000)
    x = pd.DataFrame(samples.x, columns=samples.features)
    for name in ("AGEP", "SCHL", "WKHP"):
        np.testing.assert_array_equal(x[name], expected[name])
    for name in ("COW", "MAR", "RELP", "SEX", "RAC1P"):
        np.testing.assert_array_equal(
            x.filter(like=f"{name}=").idxmax(axis=1),
            name + "=" + expected[name].astype(int).astype(str),
        )
    part = samples.splits["split_0"].astype(str)
    assert part.groupby(expected["SERIALNO"].to_numpy()).nunique().max() == 1
    assert expected["SERIALNO"].nunique() == GOLDEN["ACSIncome"]["SD"]["households"]


DICTIONARIES = (2017, 2018, 2019, 2021)


def dictionary(shared_data: Path, year: int) -> dict[str, list[tuple[str, str]]]:
    """First code and label of all values of the Census Bureau's data dictionary, by column."""
    lines = Files(shared_data).text(f"acs_2018/PUMS_Data_Dictionary_{year}.csv").splitlines()
    values: dict[str, list[tuple[str, str]]] = {}
    for kind, name, *row in csv.reader(lines):
        if kind == "VAL":
            values.setdefault(name, []).append((row[2], row[4]))
    return values


@pytest.mark.parametrize("year", DICTIONARIES)
def test_occupations_are_grouped_as_in_the_data_dictionary(shared_data: Path, year: int) -> None:
    first = GROUPED_CODES["OCCP"]
    codes = [row for row in dictionary(shared_data, year)["OCCP"] if row[0] != "bbbb"]
    assert len(codes) > 470
    for code, label in codes:
        group = max((name for name in first if first[name] <= int(code)), key=first.__getitem__)
        prefix = label.split("-")[0]
        assert prefix == group or prefix not in first  # three labels lack their prefix


@pytest.mark.parametrize("year", DICTIONARIES)
def test_codes_are_those_of_the_data_dictionary(shared_data: Path, year: int) -> None:
    """Of the columns of a year, by their names of that year."""
    values = dictionary(shared_data, year)
    features = {name for task in TASKS.values() for name in task.of(year).features}
    assert len(features) == 27
    assert {column("ST", year), "PWGTP", "PUBCOV", *features} <= set(values)
    for name in features & (set(CODES) | set(OPTIONAL_CODES)):
        codes = {int(code) for code, _ in values[name] if not code.startswith("b")}
        allowed = set((CODES | OPTIONAL_CODES)[name])
        assert allowed - codes == ({8} if name == "ANC" and year in {2017, 2021} else set())
        assert codes <= allowed
        blank = any(code.startswith("b") for code, _ in values[name])
        assert blank == (name in OPTIONAL_CODES)
    for name in features & {"AGEP", "SCHL", "WKHP", "JWMNP", "POVPIP", "PINCP"}:
        codes = [int(code) for code, _ in values[name] if not code.startswith("b")]
        assert FIELDS[name].low <= min(codes)
        assert max(codes) <= FIELDS[name].high


def test_missing_values_are_categories_or_indicators(shared_data: Path) -> None:
    samples = load(Files(shared_data), task="TravelTime", states=["NE"])
    golden = GOLDEN["ACSTravelTime"]["NE"]["missing_features"]
    x = pd.DataFrame(samples.x, columns=samples.features)
    assert x["ESP=not applicable"].sum() == golden["ESP"]
    assert x["POVPIP=missing"].sum() == golden["POVPIP"]
    assert (x["POVPIP"][x["POVPIP=missing"] == 1] == 0).all()
    samples = load(Files(shared_data), task="Mobility", states=["NE"])
    golden = GOLDEN["ACSMobility"]["NE"]["missing_features"]
    x = pd.DataFrame(samples.x, columns=samples.features)
    for name in ("WKHP=missing", "JWMNP=missing", "COW=not applicable", "GCL=not applicable"):
        assert x[name].sum() == golden[name.partition("=")[0]]


def test_bundled_states_are_the_task_income(shared_data: Path, tmp_path: Path) -> None:
    options = {"drop": ["POBP"], "sensitive": ["sex", "race"]}
    expected = Acs(Acs.Parameters(**options)).load(Files(shared_data), 2)
    samples = AcsStates().load(dataset_files(tmp_path), 2)
    assert len(samples) == 58_406
    require_equal(samples, expected)
    np.testing.assert_array_equal(samples.units, expected.units)
    for name in ("columns", "classes", "sensitive", "domain"):
        assert getattr(samples, name) == getattr(expected, name)


def test_some_of_the_bundled_states(tmp_path: Path) -> None:
    samples = AcsStates(AcsStates.Parameters(states=["SD", "HI"])).load(dataset_files(tmp_path), 1)
    rows = samples.attributes["state"].value_counts()
    assert rows.to_dict() == {"SD": 4_899, "HI": 7_731}
    alone = AcsStates(AcsStates.Parameters(states=["SD"])).load(dataset_files(tmp_path), 1)
    assert (len(alone), alone.domain) == (4_899, "")


# Made-up files


def persons(state: str = "SD", rows: int = 400, year: int = YEAR) -> pd.DataFrame:
    rng = np.random.default_rng(FIPS[state])
    names = {column(name, year) for name in FIELDS.keys() - {"RELSHIPP", "JWTRNS", "STATE"}}
    table = pd.DataFrame(
        {
            name: rng.integers(max(0, int(field.low)), int(min(field.high, 100_000)) + 1, rows)
            for name, field in FIELDS.items()
            if name in names
        }
    )
    before = f"{year}HU" if year >= 2018 else f"{year}" if year == 2017 else ""
    serial = [f"{before}{number:07}" for number in rng.integers(0, rows // 2, rows)]
    place = {column("ST", year): FIPS[state]}
    return table.assign(SERIALNO=serial, ANC=1, OTHER="x", **place)


def write(
    root: Path, table: pd.DataFrame, state: str = "SD", inside: str = "", year: int = YEAR
) -> Files:
    members = {inside or member(state, year): table.to_csv(index=False)}
    content = images.packed(members | {"ACS2018_PUMS_README.pdf": b""})
    images.write(root, {archive(state, year): content})
    return Files(root)


@pytest.mark.parametrize(
    ("year", "name", "relation", "travel", "place"),
    [
        (2014, "ss14psd.csv", "RELP", "JWTR", "ST"),
        (2016, "ss16psd.csv", "RELP", "JWTR", "ST"),
        (2017, "psam_p46.csv", "RELP", "JWTR", "ST"),
        (2019, "psam_p46.csv", "RELSHIPP", "JWTRNS", "ST"),
        (2022, "psam_p46.csv", "RELSHIPP", "JWTRNS", "ST"),
        (2023, "psam_p46.csv", "RELSHIPP", "JWTRNS", "STATE"),
    ],
)
def test_columns_of_other_years(
    tmp_path: Path, year: int, name: str, relation: str, travel: str, place: str
) -> None:
    table = persons(rows=1500, year=year)
    assert {relation, travel, place} <= set(table)
    assert not {"RELP", "RELSHIPP", "JWTR", "JWTRNS", "ST", "STATE"} - {
        relation, travel, place,
    } & set(table)  # fmt: skip
    files = write(tmp_path, table, inside=name, year=year)
    for task in TASKS:
        samples = load(files, states=["SD"], year=year, task=task)
        assert list(samples.sources)[0] == f"acs_{year}/csv_psd.zip"
        columns = set(samples.columns)
        assert columns == set(TASKS[task].of(year).features) | {
            f"{name}=missing" for name in TASKS[task].incomplete
        }
    samples = load(files, states=["SD"], year=year, task="TravelTime", drop=[relation])
    assert relation not in samples.columns
    x = pd.DataFrame(samples.x, columns=samples.features)
    codes = x.filter(like=f"{travel}=").idxmax(axis=1).str.partition("=")[2]
    np.testing.assert_array_equal(codes, table[travel][samples.id].astype(str))
    wrong = table.assign(**{place: 31})
    with pytest.raises(InputError, match=rf"row 1, column {place}: '31', allowed: 46"):
        load(write(tmp_path, wrong, inside=name, year=year), states=["SD"], year=year)


def test_weights_are_an_attribute_on_demand(shared_data: Path, tmp_path: Path) -> None:
    """Never a feature, never sensitive: the population that the records stand for."""
    samples = load(Files(shared_data), states=["VT"], weights=True)
    raw = official(shared_data, "VT")
    np.testing.assert_array_equal(samples.attributes["PWGTP"], raw["PWGTP"][samples.id])
    assert "PWGTP" not in samples.columns
    assert "PWGTP" not in load(Files(shared_data), states=["VT"]).attributes
    bundled = AcsStates(AcsStates.Parameters(states=["SD"], weights=True)).load(
        dataset_files(tmp_path), 1
    )
    raw = official(shared_data, "SD")
    kept = (raw["AGEP"] > 16) & (raw["PINCP"] > 100) & (raw["WKHP"] > 0)
    np.testing.assert_array_equal(bundled.attributes["PWGTP"], raw["PWGTP"][kept])


@pytest.mark.parametrize("task", TASKS)
def test_two_states_of_made_up_records(tmp_path: Path, task: str) -> None:
    write(tmp_path, persons("SD"))
    files = write(tmp_path, persons("NE"), "NE")
    samples = load(files, task=task, states=["NE", "SD"], sensitive=["race", "age"])
    assert list(samples.attributes["state"].cat.categories) == ["NE", "SD"]
    assert samples.attributes["state"].nunique() == 2
    assert np.isfinite(samples.x).all()
    assert not {"ST", "PUMA", "POWPUMA"} & {name.partition("=")[0] for name in samples.features}
    assert list(samples.sources) == [archive("NE"), archive("SD")]
    assert Acs(Acs.Parameters(states=["NE", "TX"])).missing_files(files) == [archive("TX")]


def test_threshold_and_columns_to_drop(tmp_path: Path) -> None:
    table = persons()
    files = write(tmp_path, table)
    samples = load(
        files, states=["SD"], threshold=56_000, drop=["POBP"], drop_sensitive=True,
    )  # fmt: skip
    np.testing.assert_array_equal(samples.y, table["PINCP"][samples.id] > 56_000)
    assert samples.classes == ("at most 56000", "above 56000")
    assert not {"POBP", "SEX"} & {name.partition("=")[0] for name in samples.features}


def test_files_are_parsed_once_until_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acs._records.cache_clear()
    calls = []
    parse = acs.read_cells
    monkeypatch.setattr(acs, "read_cells", lambda *parts: calls.append(parts) or parse(*parts))
    table = persons()
    first = load(write(tmp_path, table), states=["SD"])
    again = load(Files(tmp_path), states=["SD"])
    np.testing.assert_array_equal(first.x, again.x)
    assert first.sources == again.sources
    other = load(write(tmp_path, table.assign(WKHP=30)), states=["SD"])
    assert (other.x[:, other.features.index("WKHP")] == 30).all()
    assert len(calls) == 2


def test_unpacked_file_is_read_as_well(tmp_path: Path) -> None:
    packed = load(write(tmp_path, persons()), states=["SD"])
    (tmp_path / archive("SD")).unlink()
    persons().to_csv(tmp_path / "acs_2018" / "psam_p46.csv", index=False)
    unpacked = load(Files(tmp_path), states=["SD"])
    np.testing.assert_array_equal(packed.x, unpacked.x)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.rename(columns={"RELP": "RELSHIPP"}), r"unknown column 'RELP'"),
        (lambda t: t.assign(SERIALNO="2017000000016"), r"row 1, .*'20170.*', allowed: .*2018"),
        (lambda t: t.assign(ST=31), r"row 1, column ST: '31', allowed: 46 \(SD\)"),
        (lambda t: t.assign(SEX=3), r"row 1, column SEX: '3', allowed: .* 1 or more, 2 or less"),
        (lambda t: t.assign(RELP=""), r"row 1, column RELP: '', allowed: .* 0 or more, 17 or less"),
    ],
)  # fmt: skip
def test_wrong_columns_and_cells_are_one_line(tmp_path: Path, change: Change, message: str) -> None:
    with one_line(rf"^acs_2018/csv_psd\.zip.*{message}"):
        load(write(tmp_path, change(persons())), states=["SD"])


def test_code_between_the_allowed_ones_is_refused(tmp_path: Path) -> None:
    files = write(tmp_path, persons().assign(ANC=5))
    with pytest.raises(InputError, match=r"^column ANC: code 5, allowed: 1, 2, 3, 4, 8$"):
        load(files, task="PublicCoverage", states=["SD"])


def test_wrong_archives_are_one_line(tmp_path: Path) -> None:
    files = write(tmp_path, persons(), inside="psam_p31.csv")
    path = tmp_path / archive("SD")
    whole = path.read_bytes()
    wrong = {
        r"contains psam_p31\.csv, .*expected a zip file with psam_p46\.csv": whole,
        r"corrupted zip file": whole[: len(whole) // 2],
    }
    for message, content in wrong.items():
        path.write_bytes(content)
        with one_line(message):
            load(files, states=["SD"])
