"""Sepsis: outcome, action and order of made-up trajectories, and real tables of the MIMIC demo."""

import gzip
import logging
import math
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from robust_fairness.bench.datasets.tables import sepsis
from robust_fairness.bench.datasets.tables.public import declared
from robust_fairness.bench.datasets.tables.sepsis import DATA, FEATURES
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from robust_fairness.core.samples import Samples
from tests.datasets import loading
from tests.datasets.loading import Change, one_line, require_equal

DEMO = "mimic3_demo"
FIELDS = declared("sepsis").fields


def cohort(patients: int = 30, seed: int = 0) -> pd.DataFrame:
    """Made-up trajectories of 1 to 6 windows in the form of the real ones."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, patients)
    number = np.repeat(np.arange(patients), lengths)
    rows = len(number)
    table = pd.DataFrame(rng.normal(100, 20, (rows, len(FIELDS))), columns=list(FIELDS))
    return table.assign(
        patient=200_000 + 7 * rng.permutation(patients)[number],
        window=np.concatenate([np.arange(1, length + 1) for length in lengths]),
        gender=np.where(rng.random(patients) < 0.5, "F", "M")[number],
        age=rng.uniform(18, 91, patients).round(1)[number],
        re_admission=rng.integers(0, 2, patients)[number],
        glasgow_coma_scale=rng.integers(3, 16, rows),
        sofa=rng.integers(0, 4, rows),
        sirs=rng.integers(0, 5, rows),
        arterial_lactate=rng.gamma(2, 1, rows).round(2),
        mechanical_ventilation=rng.integers(0, 2, rows),
        iv_fluid=rng.choice([0.0, 50.0], rows),
        vasopressor_max=rng.choice([0.0, 0.0, 0.2], rows),
    )


def write(root: Path, table: pd.DataFrame, name: str = DATA) -> Files:
    (root / name).parent.mkdir(exist_ok=True)
    table.to_csv(root / name, index=False)
    return Files(root)


def load(root: Path, table: pd.DataFrame, splits: int = 1, **options: object) -> Samples:
    return loading.load("sepsis", write(root, table).root, splits, **options)


def trajectories(table: pd.DataFrame) -> list[pd.DataFrame]:
    return [windows for _, windows in table.groupby("patient", sort=False)]


def expected_outcomes(table: pd.DataFrame, as_printed: bool) -> list[float]:
    """The formula in words, a window at a time."""
    outcomes = []
    for windows in trajectories(table):
        states = windows[["sofa", "arterial_lactate"]].to_dict("records")
        for now, following in zip(states, states[1:], strict=False):
            value = 0.0
            if following["sofa"] == now["sofa"] and following["sofa"] > 0:
                value -= 0.025
            subtracted = states[-1] if as_printed else now
            value -= 0.125 * (following["sofa"] - subtracted["sofa"])
            value -= 2 * math.tanh(following["arterial_lactate"] - now["arterial_lactate"])
            outcomes.append(value)
    return outcomes


def test_there_are_forty_five_features_of_table_eight() -> None:
    assert len(FEATURES) == len(set(FEATURES)) == 45
    assert len(set(FIELDS)) == len(FIELDS) == 49


@pytest.mark.parametrize("kind", ["cited", "as_printed"])
def test_outcome_is_the_formula_of_the_paper(tmp_path: Path, kind: str) -> None:
    table = cohort(60)
    samples = load(tmp_path, table, outcome=kind)
    expected = expected_outcomes(table, as_printed=kind == "as_printed")
    np.testing.assert_allclose(samples.attributes["outcome"], expected, rtol=0, atol=1e-12)
    assert samples.attributes["outcome"].dtype == "float64"


def test_outcome_of_three_windows_by_hand() -> None:
    table = pd.DataFrame(
        {"patient": [1, 1, 1, 1], "sofa": [3, 3, 5, 0], "arterial_lactate": [1.0, 1.0, 1.5, 1.5]}
    )
    worse = -2 * math.tanh(0.5)
    np.testing.assert_allclose(
        sepsis.outcome(table, "cited"), [-0.025, -0.25 + worse, 0.625, np.nan]
    )
    np.testing.assert_allclose(
        sepsis.outcome(table, "as_printed"), [-0.025 - 0.375, -0.625 + worse, 0, np.nan]
    )


def test_rows_are_all_windows_but_the_last_and_keep_their_values(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = cohort()
    caplog.set_level(logging.INFO)
    samples = load(tmp_path, table)
    kept = table[table["patient"].duplicated(keep="last")]
    assert samples.id.tolist() == kept.index.tolist()
    assert samples.features == FEATURES
    numeric = kept[list(FEATURES)].assign(gender=(kept["gender"] == "M").astype(int))
    np.testing.assert_array_equal(samples.x, numeric.astype(np.float32))
    assert samples.classes == ("no treatment", "treatment")
    treated = [
        fluid > 0 or dose > 0 for fluid, dose in kept[["iv_fluid", "vasopressor_max"]].values
    ]
    assert samples.y.tolist() == treated
    assert samples.attributes["gender"].tolist() == kept["gender"].tolist()
    assert list(samples.attributes["gender"].cat.categories) == ["F", "M"]
    np.testing.assert_array_equal(samples.attributes["age"], kept["age"])
    assert samples.sensitive == ("gender",)
    left_out = len(table) - len(kept)
    assert left_out == 30
    assert f"{left_out} of {len(table)} windows left out" in caplog.text
    assert list(samples.sources) == [DATA]
    np.testing.assert_array_equal(samples.units, pd.factorize(kept["patient"])[0])
    assert not load(tmp_path, table, splits=2).splits.T.duplicated().any()


def test_several_files_are_one_cohort(tmp_path: Path) -> None:
    table = cohort()
    whole = load(tmp_path, table)
    half = table["patient"].isin(table["patient"].unique()[:15])
    names = ("sepsis/first.csv", "sepsis/second.csv")
    write(tmp_path, table[half], names[0])
    files = write(tmp_path, table[~half], names[1])
    parts = loading.load("sepsis", files.root, trajectories=names)
    require_equal(parts, whole)
    assert list(parts.sources) == list(names)


def test_features_that_tell_the_action_can_be_dropped(tmp_path: Path) -> None:
    samples = load(
        tmp_path, cohort(), drop=["fluid_intake_4h"], sensitive=["gender", "age"],
        drop_sensitive=True,
    )  # fmt: skip
    gone = {"fluid_intake_4h", "gender", "age"}
    assert samples.features == tuple(name for name in FEATURES if name not in gone)


cell = partial(loading.cell, row=3)


def steady() -> pd.DataFrame:
    """Two patients of three windows each, in lines 2 to 7."""
    table = cohort(6).iloc[[0] * 6].reset_index(drop=True)
    return table.assign(
        patient=[11, 11, 11, 12, 12, 12], window=[1, 2, 3, 5, 6, 7], gender="F", re_admission=0
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (cell("window", 2), r"row 3, column window: 2, allowed: 3, .* none twice"),
        (cell("window", 4), r"row 3, column window: 4, allowed: 3, .* none missing"),
        (lambda t: t.iloc[[0, 2, 1, 3, 4, 5]], r"row 2, column window: 3, allowed: 2, "),
        (lambda t: t.iloc[[0, 1, 3, 4, 5, 2]],
         r"row 6, column patient: 11 again, after sepsis/trajectories.csv, row 1; allowed: "),
        (cell("gender", "M"), r"row 3, column gender: M after F, allowed: one value"),
        (cell("re_admission", 1), r"row 3, column re_admission: 1.0 after 0.0, allowed: one"),
        (cell("gender", "1"), r"row 3, column gender: unknown category '1'\. Allowed: F, M"),
        (cell("patient", "a7"), r"row 3, column patient: 'a7', allowed: a finite whole number"),
        (cell("potassium", "nan"), r"row 3, column potassium: 'nan', allowed: a finite number"),
        (cell("potassium", ""), r"row 3, column potassium: '', allowed: a finite number"),
        (cell("arterial_lactate", "inf"), r"row 3, column arterial_lactate: 'inf', allowed: "),
        (cell("sofa", 25), r"row 3, column sofa: '25', allowed: a finite whole .*, 24 or less"),
        (cell("iv_fluid", -1), r"row 3, column iv_fluid: '-1', allowed: .* 0 or more"),
        (cell("age", 300.2), r"row 3, column age: '300.2', allowed: .* 0 or more, 120 or less"),
        (lambda t: t.drop(columns="sirs"), r": unknown column 'sirs'"),
        (lambda t: t.iloc[[0, 3]], r": no patient has two windows"),
        (lambda t: t.iloc[:0], r": no patient has two windows"),
    ],
)  # fmt: skip
def test_damaged_trajectories_are_one_line_that_names_file_and_field(
    tmp_path: Path, change: Change, message: str
) -> None:
    with one_line(rf"^sepsis/trajectories\.csv.*{message}"):
        load(tmp_path, change(steady()))


def test_patient_in_two_files_is_refused(tmp_path: Path) -> None:
    table = steady()
    names = ("sepsis/first.csv", "sepsis/second.csv")
    write(tmp_path, table.iloc[:4], names[0])
    files = write(tmp_path, table.iloc[4:], names[1])
    message = r"second\.csv, row 1, column patient: 12 again, after sepsis/first\.csv, row 4;"
    with pytest.raises(InputError, match=message):
        loading.load("sepsis", files.root, trajectories=names)


# MIMIC-III demo


def test_stays_of_the_demo_agree_with_an_independent_reading(shared_data: Path) -> None:
    stays = sepsis.icu_stays(Files(shared_data), DEMO)
    frame = pd.read_csv(shared_data / DEMO / "ICUSTAYS.csv").merge(
        pd.read_csv(shared_data / DEMO / "PATIENTS.csv"), on="subject_id"
    )
    frame = frame.set_index("icustay_id").loc[stays.index]
    assert len(stays) == 136
    assert stays["gender"].tolist() == frame["gender"].tolist()
    assert stays["subject_id"].tolist() == frame["subject_id"].tolist()
    years = frame["intime"].str[:4].astype(int) - frame["dob"].str[:4].astype(int)
    birthday = frame["intime"].str[5:10] >= frame["dob"].str[5:10]
    whole_years = years - ~birthday
    shifted = whole_years > 200
    assert shifted.sum() == 9
    assert (stays["age"][shifted] == 91.4).all()
    assert (stays["age"][~shifted] - whole_years[~shifted]).between(-0.01, 1.01).all()
    assert stays["age"].between(15, 91.4).all()


def of_the_demo(stays: pd.DataFrame) -> pd.DataFrame:
    """Made-up trajectories of the real stays of the demo, with their real gender and age."""
    table = cohort(len(stays))
    number = table["patient"].map({p: k for k, p in enumerate(table["patient"].unique())})
    table["patient"] = stays.index.to_numpy()[number]
    return table.assign(
        gender=stays["gender"].to_numpy()[number], age=stays["age"].to_numpy()[number].round(1)
    )


@pytest.fixture
def demo(shared_data: Path, tmp_path: Path) -> Path:
    """Copy of the two tables of the demo."""
    (tmp_path / DEMO).mkdir()
    for name in ("PATIENTS.csv", "ICUSTAYS.csv"):
        (tmp_path / DEMO / name).write_text(Files(shared_data).text(f"{DEMO}/{name}"))
    return tmp_path


def test_stays_of_one_person_are_in_one_part(demo: Path) -> None:
    stays = sepsis.icu_stays(Files(demo), DEMO)
    table = of_the_demo(stays)
    samples = load(demo, table, splits=4, demographics=DEMO)
    person = stays["subject_id"].loc[table["patient"].to_numpy()[samples.id]].to_numpy()
    stay = table["patient"].to_numpy()[samples.id]
    assert pd.Series(stay).groupby(person).nunique().max() > 1
    for split in samples.split_names:
        assert (samples.splits[split].astype(str).groupby(person).nunique() == 1).all()
    assert list(samples.sources) == [DATA, f"{DEMO}/ICUSTAYS.csv", f"{DEMO}/PATIENTS.csv"]
    assert len(load(demo, table)) == len(samples)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.assign(gender=t["gender"].map({"F": "M", "M": "F"})),
         r"row 1, column gender: 'M', allowed: 'F', as in mimic3_demo/PATIENTS\.csv"),
        (lambda t: t.assign(age=t["age"].where(t.index > 0, t["age"] - 1.5)),
         r"row 1, column age: [\d.]+, allowed: within 1 year of [\d.]+, as in mimic3_demo/"),
        (lambda t: t.assign(patient=t["patient"] + 1),
         r"row \d+, column patient: \d+, allowed: an icustay_id of mimic3_demo/ICUSTAYS\.csv"),
    ],
)  # fmt: skip
def test_cohort_that_disagrees_with_the_tables_of_mimic_is_refused(
    demo: Path, change: Change, message: str
) -> None:
    table = of_the_demo(sepsis.icu_stays(Files(demo), DEMO))
    with pytest.raises(InputError, match=message):
        load(demo, change(table), demographics=DEMO)


def test_oldest_patients_may_have_any_age_from_89(demo: Path) -> None:
    table = of_the_demo(sepsis.icu_stays(Files(demo), DEMO))
    oldest = table["age"] == 91.4
    assert oldest.any()
    for age in (89.0, 95.0):
        load(demo, table.assign(age=table["age"].mask(oldest, age)), demographics=DEMO)
    with pytest.raises(InputError, match=r"column age: 85, allowed: within 1 year of 91\.4"):
        load(demo, table.assign(age=table["age"].mask(oldest, 85)), demographics=DEMO)


def test_tables_of_the_full_database_have_capitals_and_gzip(demo: Path) -> None:
    expected = sepsis.icu_stays(Files(demo), DEMO)
    for name in ("PATIENTS.csv", "ICUSTAYS.csv"):
        path = demo / DEMO / name
        head, _, rest = path.read_text().partition("\n")
        quoted = ",".join(f'"{column.upper()}"' for column in head.split(","))
        path.with_suffix(".csv.gz").write_bytes(gzip.compress(f"{quoted}\n{rest}".encode()))
        path.unlink()
    pd.testing.assert_frame_equal(sepsis.icu_stays(Files(demo), DEMO), expected)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("PATIENTS.csv", "2094-03-05 00:00:00", "yesterday",
         r"PATIENTS\.csv, row 1, column dob: 'yesterday' is not a date"),
        ("PATIENTS.csv", "2094-03-05 00:00:00", "", r"row 1, column dob: '' is not a date"),
        ("PATIENTS.csv", ",F,", ",female,", r"row 1, column gender: unknown category 'female'"),
        ("PATIENTS.csv", "10006", "10011", r"row 2, column subject_id: 10011 occurs"),
        ("PATIENTS.csv", "10006", "10005",
         r"ICUSTAYS\.csv, row 1, column subject_id: 10006 is not a subject_id of mimic3_demo/"),
        ("ICUSTAYS.csv", "intime", "in_time", r"ICUSTAYS\.csv: unknown column 'intime': did you"),
    ],
)  # fmt: skip
def test_damaged_tables_of_mimic_are_one_line(
    demo: Path, name: str, old: str, new: str, message: str
) -> None:
    path = demo / DEMO / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with one_line(message):
        sepsis.icu_stays(Files(demo), DEMO)
