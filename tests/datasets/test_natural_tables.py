"""Hospital readmission, OULAD and heart disease: golden counts and an independent reading."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import Category, Number
from robust_fairness.datasets.tables import oulad, readmission
from robust_fairness.datasets.tables.heart import BUNDLED, HOSPITALS, Heart
from robust_fairness.datasets.tables.oulad import Oulad
from robust_fairness.datasets.tables.readmission import ARCHIVE, MEMBER, Readmission
from robust_fairness.samples import Samples

GOLDEN = json.loads((Path(__file__).parent / "natural_golden.json").read_text())
COUNTS = [name for name, field in readmission.FIELDS.items() if isinstance(field, Number)][1:]
Change = Callable[[pd.DataFrame], pd.DataFrame]


def counts(samples: Samples, *names: str) -> dict[str, dict[str, int]]:
    """Rows and positives of every combination of categories, as in the golden file."""
    columns = [samples.attributes[name].astype(str) for name in names]
    keys = columns[0].str.cat(columns[1:], sep=" ")
    positives = pd.Series(samples.y).groupby(keys).agg(["size", "sum"])
    return {
        str(key): {"rows": int(rows), "positives": int(positive)}
        for key, rows, positive in positives.itertuples()
    }


def units_are_in_one_part(samples: Samples, units: pd.Series) -> bool:
    part = samples.splits["split_0"].astype(str)
    return bool((part.groupby(units.to_numpy()).nunique() == 1).all())


# Hospital readmission


@pytest.fixture(scope="module")
def encounters(shared_data: Path) -> pd.DataFrame:
    """The published file, read with pandas alone."""
    with zipfile.ZipFile(shared_data / ARCHIVE) as members:
        return pd.read_csv(io.BytesIO(members.read(MEMBER)), dtype=str, keep_default_na=False)


def test_readmission_has_the_golden_counts(shared_data: Path, encounters: pd.DataFrame) -> None:
    golden = GOLDEN["readmission"]
    samples = Readmission().load(Files(shared_data), 1)
    assert (len(samples), samples.y.sum()) == (golden["rows"], golden["positives"])
    assert counts(samples, "admission_source_id") == golden["admission_source"]
    assert samples.attributes["race_full"].value_counts().to_dict() == golden["race"]
    assert (samples.attributes["gender"] == "Male").sum() == golden["gender"]["Male"]
    expected = encounters[encounters["race"] != "?"]
    np.testing.assert_array_equal(samples.id, expected.index)
    assert units_are_in_one_part(samples, expected["patient_nbr"])
    assert expected["patient_nbr"].nunique() == golden["patients"]
    x = pd.DataFrame(samples.x, columns=samples.features)
    for name in COUNTS:
        np.testing.assert_array_equal(x[name], expected[name].astype(int))
    for name, cell in (("insulin", "Steady"), ("diag_1", "428"), ("A1Cresult", ">8")):
        np.testing.assert_array_equal(x[f"{name}={cell}"], expected[name] == cell)
    np.testing.assert_array_equal(x["payer_code=missing"], expected["payer_code"] == "?")
    shares = expected["diag_2"].map(expected["diag_2"].value_counts(normalize=True))
    np.testing.assert_array_equal(x["diag_2=infrequent"], shares < 0.01)
    columns = {name.partition("=")[0] for name in samples.features}
    assert len(columns) == 46
    assert not {"admission_source_id", "patient_nbr", "encounter_id", "readmitted"} & columns


def test_readmission_variants_have_the_golden_counts(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = GOLDEN["readmission"]
    table = readmission.encounters(Files(shared_data))
    monkeypatch.setattr(readmission, "encounters", lambda _: table)

    def load(**options: object) -> Samples:
        return Readmission(Readmission.Parameters(**options)).load(Files(shared_data), 1)

    first = load(encounters="first", unit="encounter")
    assert len(first) == golden["first_encounter_only"]["rows"]
    assert first.y.sum() == golden["first_encounter_only"]["positives"]
    alive = load(died="drop", target="early", sensitive=["gender"], drop_sensitive=True)
    assert len(alive) == golden["rows"] - golden["discharged_dead_or_hospice"]["rows"]
    assert not [name for name in alive.features if name.startswith("gender")]
    assert load(target="early").y.sum() == golden["lt30_positives"]


def made_up_encounters(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = {
        name: rng.choice(list(field.names), rows)
        for name, field in readmission.FIELDS.items()
        if isinstance(field, Category)
    }
    table |= {name: rng.integers(0, 20, rows) for name in COUNTS}
    table |= {name: rng.choice(["a", "b", "?"], rows) for name in readmission.TEXT}
    return pd.DataFrame(table).assign(patient_nbr=rng.integers(0, rows // 2, rows))


def packed(root: Path, table: pd.DataFrame, member: str = MEMBER) -> Files:
    path = root / ARCHIVE
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as members:
        members.writestr(member, table.to_csv(index=False))
    return Files(root)


def test_made_up_encounters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readmission, "ROWS", 300)
    table = made_up_encounters()
    samples = Readmission().load(packed(tmp_path, table), 2)
    known = table[table["race"] != "?"]
    np.testing.assert_array_equal(samples.y, known["readmitted"] != "NO")
    assert np.isfinite(samples.x).all()
    assert units_are_in_one_part(samples, known["patient_nbr"])
    assert Readmission().missing_files(Files(tmp_path / "empty")) == [
        "diabetes_130/dataset_diabetes"
    ]
    assert Readmission().missing_files(Files(tmp_path)) == []


@pytest.mark.parametrize(
    ("change", "member", "message"),
    [
        (lambda t: t.drop(columns="insulin"), MEMBER, r"no column insulin; expected "),
        (lambda t: t[1:], MEMBER, r"299 rows, expected 300"),
        (lambda t: t.assign(race="red"), MEMBER, r"line 2, column race: unknown category 'red'"),
        (lambda t: t, "other.csv", r"contains other\.csv; expected a zip file with dataset_d"),
    ],
)  # fmt: skip
def test_wrong_encounters_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Change, member: str, message: str
) -> None:
    monkeypatch.setattr(readmission, "ROWS", 300)
    with pytest.raises(InputError, match=message) as error:
        Readmission().load(packed(tmp_path, change(made_up_encounters()), member), 1)
    assert "\n" not in str(error.value)


# OULAD


def test_oulad_has_the_golden_counts(shared_data: Path) -> None:
    golden = GOLDEN["oulad"]
    samples = Oulad().load(Files(shared_data), 1)
    assert (len(samples), samples.y.sum()) == (golden["rows"], golden["positives"])
    by = golden["by"]
    by["imd_band"]["10-20%"] = by["imd_band"].pop("20-Oct")
    for name in ("gender", "age_band", "imd_band", "region"):
        assert counts(samples, name) == by[name]
    assert counts(samples, "presentation") == by["code_presentation"]
    assert counts(samples, "module") == by["code_module"]
    assert counts(samples, "module", "presentation") == golden["module_presentation"]
    assert counts(samples, "presentation", "gender") == golden["presentation_by_gender"]
    raw = pd.read_csv(shared_data / "oulad/studentInfo.csv.gz", keep_default_na=False)
    assert units_are_in_one_part(samples, raw["id_student"])
    assert raw["id_student"].nunique() == golden["students"]
    x = pd.DataFrame(samples.x, columns=samples.features)
    for name in ("studied_credits", "num_of_prev_attempts"):
        np.testing.assert_array_equal(x[name], raw[name])
    np.testing.assert_array_equal(x["disability=yes"], raw["disability"] == "Y")
    np.testing.assert_array_equal(x["imd_band=10-20%"], raw["imd_band"] == "20-Oct")


@pytest.mark.parametrize("domain", oulad.DOMAINS)
def test_domain_column_is_no_feature(shared_data: Path, domain: str) -> None:
    parameters = Oulad.Parameters(domain=domain, withdrawn="drop", sensitive=["disability"])
    samples = Oulad(parameters).load(Files(shared_data), 1)
    assert len(samples) == 22_437
    assert samples.y.sum() == GOLDEN["oulad"]["positives"]
    columns = {name.partition("=")[0] for name in samples.features}
    assert {*oulad.DOMAINS.values()} - columns == {oulad.DOMAINS[domain]}


def test_made_up_students(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oulad, "ROWS", 200)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            name: rng.choice(list(field.names), 200)
            if isinstance(field, Category)
            else rng.integers(0, 20, 200)
            for name, field in oulad.FIELDS.items()
        }
    )
    (tmp_path / "oulad").mkdir()
    path = tmp_path / oulad.DATA
    table.to_csv(path, index=False)
    samples = Oulad().load(Files(tmp_path), 1)
    deprived = table["imd_band"].isin(["10-20", "20-Oct", "10-20%"])
    np.testing.assert_array_equal(samples.attributes["imd_band"] == "10-20%", deprived)
    table.rename(columns={"imd_band": "imd"}).to_csv(path, index=False)
    with pytest.raises(InputError, match=r"studentInfo\.csv: unknown column 'imd_band'"):
        Oulad().load(Files(tmp_path), 1)


# Heart disease


def raw_patients() -> pd.DataFrame:
    tables = [
        pd.read_csv(BUNDLED / f"heart_disease/processed.{name}.data", header=None, na_values="?")
        for name in HOSPITALS
    ]
    return pd.concat(tables, keys=HOSPITALS, names=["hospital"]).reset_index("hospital")


def test_bundled_files_are_the_official_ones(tmp_path: Path) -> None:
    """SHA-256 of copies in several repositories, the Hungarian one of its restored file."""
    checksums = {
        "cleveland": "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8",
        "hungarian": "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796",
        "switzerland": "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314",
        "va": "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f",
    }
    sources = Heart().load(Files(tmp_path), 1).sources
    assert sources == {
        f"heart_disease/processed.{name}.data": sha256 for name, sha256 in checksums.items()
    }


def test_heart_has_the_golden_counts_without_any_raw_file(tmp_path: Path) -> None:
    samples = Heart().load(Files(tmp_path), 2)
    golden = GOLDEN["heart"]
    assert Heart().missing_files(Files(tmp_path)) == []
    assert len(samples) == golden["all"]["rows"] == 920
    by_sex = counts(samples, "hospital", "sex")
    for hospital in HOSPITALS:
        expected = golden[hospital]
        found = counts(samples, "hospital")[hospital]
        assert found == {key: expected[key] for key in ("rows", "positives")}
        for sex, both in expected["by_sex"].items():
            assert by_sex[f"{hospital} {sex}"] == both
        older = samples.attributes["age_group"] == "age 55 or over"
        of_hospital = samples.attributes["hospital"] == hospital
        assert (older & of_hospital).sum() == expected["age"]["rows_from_55"]
    raw = raw_patients()
    x = pd.DataFrame(samples.x, columns=samples.features)
    for number, name in {0: "age", 1: "sex", 7: "thalach", 9: "oldpeak"}.items():
        np.testing.assert_array_equal(x[name], raw[number].fillna(0).astype(np.float32))
    for name, missing in {"thalach": 55, "trestbps": 60, "oldpeak": 62}.items():
        assert x[f"{name}=missing"].sum() == missing
        assert (x[name][x[f"{name}=missing"] == 1] == 0).all()


def test_rows_of_heart_with_missing_cells_can_be_dropped(tmp_path: Path) -> None:
    raw = raw_patients()
    raw[[3, 4]] = raw[[3, 4]].mask(raw[[3, 4]] == 0)
    options = {"common": [0, 1, 2, 3, 6, 7, 8, 9], "all": list(range(13))}
    for features, columns in options.items():
        parameters = Heart.Parameters(features=features, incomplete="drop")
        samples = Heart(parameters).load(Files(tmp_path), 1)
        np.testing.assert_array_equal(samples.id, np.flatnonzero(raw[columns].notna().all(axis=1)))
        assert not [name for name in samples.features if name.endswith("=missing")]


def test_all_features_of_heart(tmp_path: Path) -> None:
    parameters = Heart.Parameters(features="all", sensitive=["age_group"], drop_sensitive=True)
    samples = Heart(parameters).load(Files(tmp_path), 1)
    x = pd.DataFrame(samples.x, columns=samples.features)
    assert "age" not in x
    assert "age_group" in samples.attributes
    assert x["chol=missing"].sum() == 23 + 123 + 7 + 49
    assert x["ca=missing"].sum() == 4 + 291 + 118 + 198


@pytest.mark.parametrize("dataset", [Heart, Oulad, Readmission])
def test_unknown_parameters_are_refused(dataset: type) -> None:
    with pytest.raises(ValidationError, match="extra_forbidden"):
        dataset.Parameters(sensitif=["sex"])
    with pytest.raises(ValidationError, match="literal_error"):
        dataset.Parameters(sensitive=["shoe size"])
