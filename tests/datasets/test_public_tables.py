"""Public tables: real files read independently, made-up files of the same form, damaged files."""

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes

from robust_fairness.auditing.read.schemas import Category, Number
from robust_fairness.bench.datasets.fetch import dataset_files
from robust_fairness.bench.datasets.tables import public
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from robust_fairness.core.registry import find
from robust_fairness.core.samples import Samples
from tests.datasets.images import packed, write
from tests.datasets.loading import Change, cell, load, one_line, require_equal

GOLDEN = json.loads((Path(__file__).parent / "natural_golden.json").read_text())
DECLARED = {
    name: public.declared(name)
    for name in (
        "adult", "communities", "compas", "credit_card", "drugs", "german", "heart",
        "iowa_recidivism", "kdd_census", "law_school", "oulad", "readmission", "students",
    )
}  # fmt: skip
FILES = {name: list(table.files) for name, table in DECLARED.items()}
COLUMNS = {name: list(table.columns) for name, table in DECLARED.items()}
DRUGS = {name: of.codes for name, of in DECLARED["drugs"].attributes.items()}
MEMBER = public.Readmission.member
SMALL = 240  # rows of a made-up file


def parts(samples: Samples, split: str) -> tuple[int, ...]:
    return tuple(len(samples.rows(split, part)) for part in ("train", "val", "test"))


def columns_of(samples: Samples) -> set[str]:
    return {name.partition("=")[0] for name in samples.features}


def features_agree(samples: Samples, raw: pd.DataFrame) -> None:
    """Every feature is its column, or tells whether the column holds its category."""
    for name, values in zip(samples.features, samples.x.T, strict=True):
        column, _, category = name.partition("=")
        expected = raw[column].astype(str) == category if category else raw[column].astype(float)
        np.testing.assert_array_equal(values, expected.astype(np.float32), err_msg=name)


def attributes_agree(samples: Samples, raw: pd.DataFrame, **columns: str) -> None:
    for name, column in columns.items():
        assert samples.attributes[name].tolist() == raw[column].tolist(), name


def units_are_in_one_part(samples: Samples, units: pd.Series) -> bool:
    part = samples.splits["split_0"].astype(str)
    return bool((part.groupby(units.to_numpy()).nunique() == 1).all())


def counts(samples: Samples, *names: str) -> dict[str, dict[str, int]]:
    """Rows and positives of every combination of categories, as in the golden file."""
    columns = [samples.attributes[name].astype(str) for name in names]
    keys = columns[0].str.cat(columns[1:], sep=" ")
    positives = pd.Series(samples.y).groupby(keys).agg(["size", "sum"])
    return {
        str(key): {"rows": int(rows), "positives": int(positive)}
        for key, rows, positive in positives.itertuples()
    }


def real(root: Path, name: str, file: int = 0, **options: object) -> pd.DataFrame:
    """A real file, read by pandas alone."""
    path = next(root.glob(f"{FILES[name][file]}*"))
    header = {} if DECLARED[name].header else {"header": None, "names": COLUMNS[name]}
    return pd.read_csv(path, **{"skipinitialspace": True, **header, **options})


# Diabetes


def test_diabetes_keeps_the_values_of_scikit_learn(tmp_path: Path) -> None:
    samples = load("diabetes", tmp_path, target="continuous")
    original = load_diabetes(scaled=False)
    np.testing.assert_array_equal(samples.x, original.data.astype(np.float32))
    np.testing.assert_array_equal(samples.y, original.target.astype(np.float32))
    assert samples.features == tuple(original.feature_names)
    assert samples.classes == ()
    assert list(samples.sources) == ["scikit-learn/diabetes"]


def test_diabetes_classes_and_groups(tmp_path: Path) -> None:
    samples = load("diabetes", tmp_path)
    progression = load_diabetes(scaled=False).target
    top = samples.y == samples.classes.index("top 30 %")
    assert top.sum() == round(0.3 * 442)
    assert progression[top].min() >= progression[~top].max()
    assert samples.sensitive == ("sex",)
    age = samples.attributes["age"]
    older = samples.attributes["age_group"] == "age over 50"
    assert (older == (age > age.median())).all()
    sex = samples.attributes["sex"].map({"sex 1": 1.0, "sex 2": 2.0}).astype(float)
    np.testing.assert_array_equal(sex, samples.x[:, samples.features.index("sex")])
    dropped = load("diabetes", tmp_path, sensitive=("sex", "age_group"), drop_sensitive=True)
    assert dropped.features == ("bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")


# Real files, each read independently


class Reading(NamedTuple):
    """What the samples of a real file must be.

    Attributes:
        frame: the rows that are kept, by their number in the files, read by pandas alone.
        y: the target of every row.
        attributes: the column that an attribute is, or its values.
        left_out: columns that are no features.
        classes: none of a number.
        positives: published number of rows of the second class.
    """

    name: str
    frame: Callable[[Path], pd.DataFrame]
    y: Callable[[pd.DataFrame], object]
    attributes: dict[str, str | Callable[[pd.DataFrame], object]]
    left_out: set[str]
    classes: tuple[str, ...]
    positives: int | None = None
    options: dict[str, object] = {}


def adult(root: Path) -> pd.DataFrame:
    return pd.concat([real(root, "adult"), real(root, "adult", 1, skiprows=1)], ignore_index=True)


def compas(root: Path) -> pd.DataFrame:
    """ProPublica's five filters."""
    missing = {"days_b_screening_arrest": ""}
    return real(root, "compas", keep_default_na=False, na_values=missing).query(
        "-30 <= days_b_screening_arrest <= 30 and is_recid != -1 and c_charge_degree != 'O' "
        "and score_text != 'N/A'"
    )


def credit_card(root: Path) -> pd.DataFrame:
    table = real(root, "credit_card", dtype=dict.fromkeys(CARD, str))
    return table.assign(**{name: table[name].map(codes) for name, codes in CARD.items()})


def law_school(root: Path) -> pd.DataFrame:
    table = real(root, "law_school")
    return table.assign(male=table["male"].map({0: "female", 1: "male"}))


def where(column: str, value: object, names: tuple[str, str]) -> Callable[[pd.DataFrame], object]:
    """The first name where a column has a value, else the second."""
    return lambda frame: np.where(frame[column] == value, *names)


CARD = {name: DECLARED["credit_card"].columns[name]["codes"] for name in ("EDUCATION", "MARRIAGE")}
CARD["SEX"] = {"1": "male", "2": "female"}
SCORES = {"decile_score", "v_decile_score"}
OF_COMPAS = {
    "race": where("race", "Caucasian", ("Caucasian", "Non-Caucasian")),
    "race_full": "race", "sex": "sex", "age": "age",
}  # fmt: skip
COMPAS_FEATURES = {
    "sex", "age", "age_cat", "race", "juv_fel_count", "juv_misd_count", "juv_other_count",
    "priors_count", "c_charge_degree", "days_b_screening_arrest",
}  # fmt: skip
NO_FEATURES = set(COLUMNS["compas"]) - COMPAS_FEATURES
FOREIGN = ("foreign", "not foreign")
SEX_OF_CODE = {1: "male", 2: "female or single male", 3: "male", 4: "female"}
ETHNICITIES = ("racepctblack", "racePctWhite", "racePctAsian", "racePctHisp")
READINGS = [
    Reading(
        "adult", adult, lambda t: t["label"].str.startswith(">50K"),
        {name: name for name in ("sex", "race", "age")}, {"label"}, ("<=50K", ">50K"), 11_687,
    ),
    Reading(
        "communities", lambda root: real(root, "communities", na_values="?"),
        lambda t: t["ViolentCrimesPerPop"], {name: name for name in ETHNICITIES},
        {*DECLARED["communities"].unread, "state", "ViolentCrimesPerPop"}, (),
        options={"target": "continuous", "sensitive": ETHNICITIES},
    ),
    *(
        Reading(
            "compas", compas, lambda t, target=target: t[target], OF_COMPAS, NO_FEATURES - more,
            classes, positives, {"target": target, "followed": False, "scores": bool(more)},
        )
        for target, classes, positives, more in (
            ("is_violent_recid", ("no violent recidivism", "violent recidivism"), 692, set()),
            ("two_year_recid", ("no recidivism", "recidivism"), 2809, SCORES),
        )
    ),
    Reading(
        "credit_card", credit_card, lambda t: t["default payment"],
        {name: name for name in (*CARD, "AGE")}, {"default payment"}, ("paid", "default"), 6636,
        {"undocumented": "own"},
    ),
    Reading(
        "drugs", lambda root: real(root, "drugs").query("semer == 'CL0'"),
        lambda t: t["heroin"] != "CL0",
        {"ethnicity": where("ethnicity", -0.31685, ("White", "other")),
         "gender": where("gender", 0.48246, ("female", "male"))},
        {*COLUMNS["drugs"][13:], "id", "ethnicity"}, ("never used", "used"), 277,
    ),
    Reading(
        "german", lambda root: real(root, "german", sep=" "), lambda t: t["credit_risk"],
        {"foreign_worker": where("foreign_worker", 1, FOREIGN), "age": "age",
         "sex": lambda t: t["personal_status_sex"].map(SEX_OF_CODE)},
        {"credit_risk"}, ("bad", "good"), 700,
    ),
    Reading(
        "german", lambda root: real(root, "german", 2).set_axis(COLUMNS["german"], axis="columns"),
        lambda t: 2 - t["credit_risk"],
        {"foreign_worker": where("foreign_worker", "A201", FOREIGN), "age": "age",
         "sex": where("personal_status_sex", "A92", ("female", "male"))},
        {"credit_risk"}, ("bad", "good"), 700, {"coding": "statlog"},
    ),
    Reading(
        "law_school", law_school, lambda t: t["pass_bar"], {"male": "male", "race": "race"},
        {"pass_bar"}, ("failed", "passed"), 18_505,
    ),
    *(
        Reading(
            "students", lambda root, file=file: real(root, "students", file, sep=";"),
            lambda t: t["G3"], {"age": "age", "sex": "sex"}, {"G3"}, (),
            options={"subject": subject},
        )
        for file, subject in enumerate(("portuguese", "maths"))
    ),
]  # fmt: skip


@pytest.mark.parametrize("reading", READINGS, ids=lambda of: f"{of.name}{of.options}")
def test_tables_agree_with_independent_readings(shared_data: Path, reading: Reading) -> None:
    samples = load(reading.name, shared_data, **reading.options)
    frame = reading.frame(shared_data)
    np.testing.assert_array_equal(samples.id, frame.index)
    assert samples.classes == reading.classes
    np.testing.assert_array_equal(samples.y, np.asarray(reading.y(frame), np.float32))
    assert reading.positives in (None, samples.y.sum())
    assert columns_of(samples) == {*frame} & {*COLUMNS[reading.name]} - reading.left_out
    features_agree(samples, frame)
    for name, column in reading.attributes.items():
        expected = frame[column] if isinstance(column, str) else column(frame)
        assert samples.attributes[name].tolist() == list(expected), name


@pytest.mark.parametrize(
    ("name", "options", "sensitive", "gone"),
    [
        ("communities", READINGS[1].options, ETHNICITIES, set(ETHNICITIES)),
        ("communities", {"sensitive": ["FemalePctDiv_group"]}, ("FemalePctDiv_group",),
         {"FemalePctDiv"}),
        ("compas", {}, ("race",), {"race"}),
        ("compas", {"sensitive": ["race_full", "age"]}, ("race_full", "age"),
         {"race", "age", "age_cat"}),
        ("credit_card", {}, ("SEX", "MARRIAGE", "EDUCATION"), {"SEX", "MARRIAGE", "EDUCATION"}),
        ("drugs", {"sensitive": ["age", "gender", "ethnicity"]}, ("age", "gender", "ethnicity"),
         {"age", "gender", "ethnicity"}),
        ("german", {"sensitive": ["sex"]}, ("sex",), {"personal_status_sex"}),
        ("law_school", {"sensitive": ["race"]}, ("race",), {"race"}),
        ("law_school", {"domain": "tier"}, ("male", "race"), {"male", "race", "tier"}),
        ("students", {}, ("age", "sex"), {"age", "sex"}),
        ("students", {"past_grades": False, "sensitive": ["sex"]}, ("sex",), {"sex", "G1", "G2"}),
    ],
)  # fmt: skip
def test_columns_that_reveal_a_sensitive_attribute_can_be_left_out(
    shared_data: Path, name: str, options: dict, sensitive: tuple[str, ...], gone: set[str]
) -> None:
    target = {"target": options["target"]} if "target" in options else {}
    whole = load(name, shared_data, **target, drop_sensitive=False)
    samples = load(name, shared_data, drop_sensitive=True, **options)
    assert samples.sensitive == sensitive
    assert columns_of(whole) - columns_of(samples) == gone


@pytest.mark.parametrize(
    ("name", "rows", "sizes"),
    [
        ("compas", 5297, (0.6, 0.2, 0.2)), ("drugs", 1877, (0.6, 0.2, 0.2)),
        ("german", 1000, (0.6, 0.2, 0.2)), ("students", 649, (0.6, 0.2, 0.2)),
        ("law_school", 20_798, (0.6, 0.2, 0.2)), ("credit_card", 30_000, (0.6, 0.2, 0.2)),
        ("adult", 48_842, (24_000 / 48_842, 6_000 / 48_842, 18_842 / 48_842)),
        ("communities", 1994, (1200 / 1994, 300 / 1994, 494 / 1994)),
    ],
)  # fmt: skip
def test_splits_have_the_sizes_of_the_source(
    shared_data: Path, name: str, rows: int, sizes: tuple[float, ...]
) -> None:
    samples = load(name, shared_data, splits=3)
    assert samples.split_names == ["split_0", "split_1", "split_2"]
    for split in samples.split_names:
        np.testing.assert_allclose(parts(samples, split), np.array(sizes) * rows, atol=1)
    assert len({tuple(samples.rows(split, "test")) for split in samples.split_names}) == 3


def test_adult_has_the_categories_and_counts_of_its_codebook(shared_data: Path) -> None:
    codebook = Files(shared_data).text("adult/adult.names")
    (instances,) = re.findall(r"\| (\d+) instances,", codebook)
    (share,) = re.findall(r"'>50K'  : ([\d.]+)%", codebook)
    samples = load("adult", shared_data)
    assert samples.x.shape == (int(instances), 108)
    assert round(100 * samples.y.mean(), 2) == float(share)
    written = dict(re.findall(r"^([\w-]+): (.+)\.$", codebook, re.MULTILINE))
    assert [*written] == COLUMNS["adult"][:-1]
    for name, categories in written.items():
        listed = [kind for kind in DECLARED["adult"].columns[name] or ["continuous"] if kind != "?"]
        assert listed == categories.split(", ")


def test_adult_without_unknown_values_has_the_counts_of_its_codebook(shared_data: Path) -> None:
    whole = load("adult", shared_data)
    samples = load("adult", shared_data, missing="drop", drop=("fnlwgt",))
    codebook = Files(shared_data).text("adult/adult.names")
    (rows,) = re.findall(r"\| (\d+) if instances with unknown", codebook)
    (share,) = re.findall(r"'>50K'  : .*/ ([\d.]+)%", codebook)
    assert len(samples) == int(rows) == 45_222
    official = load(
        "adult", shared_data, splits=2, missing="drop", split="official", val_fraction=0.25
    )
    for split in official.splits:
        tested = (official.splits[split] == "test").to_numpy()
        assert np.array_equal(tested, official.id >= 32_561) and tested.sum() == 15_060
    assert not official.splits["split_0"].equals(official.splits["split_1"])
    assert round(100 * samples.y.mean(), 2) == float(share)
    kept = [name for name in whole.features if name != "fnlwgt" and name[-2:] != "=?"]
    assert list(samples.features) == kept
    columns = [whole.features.index(name) for name in kept]
    np.testing.assert_array_equal(samples.x, whole.x[samples.id][:, columns])


def test_communities_agree_with_an_independent_reading(shared_data: Path) -> None:
    codebook = Files(shared_data).text("communities_crime/communities.names")
    assert COLUMNS["communities"] == re.findall(r"^@attribute (\w+) ", codebook, re.MULTILINE)
    missing = dict(re.findall(r"^(\w+)(?: -?[\d.]+){7} (\d+)$", codebook, re.MULTILINE))
    incomplete = {name for name, rows in missing.items() if rows != "0"}
    assert {*DECLARED["communities"].unread} == incomplete | {*COLUMNS["communities"][1:5]}
    frame = real(shared_data, "communities", na_values="?")
    numeric = frame.iloc[:, 5:].dropna(axis="columns")
    for options in ({}, {"ties": "threshold", "sensitive": ["FemalePctDiv_group"]}):
        samples = load("communities", shared_data, **options)
        assert samples.x.shape == (1994, 99)
        np.testing.assert_array_equal(samples.x, numeric.iloc[:, :-1].astype(np.float32))
        assert samples.classes == ("top 30 %", "rest")
        both = ["racepctblack", "FemalePctDiv"]
        assert list(samples.attributes) == [*(f"{name}_group" for name in both), *both]
        assert samples.sensitive == (*options.get("sensitive", ["racepctblack_group"]),)
        top = samples.y == 0
        crime = numeric["ViolentCrimesPerPop"]
        assert crime[top].min() >= crime[~top].max()
        for name in both:
            group, values = samples.attributes[f"{name}_group"], samples.attributes[name]
            np.testing.assert_array_equal(values, frame[name])
            assert list(group.cat.categories) == ["top 30 %", "rest"]
            high = group == "top 30 %"
            assert values[high].min() >= values[~high].max()
            if options:  # ties stay together
                assert (high == (values >= values[high].min())).all()
                assert 0.3 < top.mean() < 0.31
            else:
                assert high.sum() == top.sum() == round(0.3 * 1994)


def test_compas_keeps_those_who_were_followed_for_two_years(shared_data: Path) -> None:
    frame = compas(shared_data)
    early = frame[pd.to_datetime(frame["compas_screening_date"]) < "2014-04-01"]
    samples = load("compas", shared_data, target="two_year_recid")
    np.testing.assert_array_equal(samples.id, early.index)
    assert samples.y.mean() == pytest.approx(0.365, abs=0.015)
    assert frame["two_year_recid"].drop(early.index).mean() > 0.98
    assert samples.domain == "" and "quarter" not in samples.attributes


def test_official_forms_of_german_credit_give_the_same_samples(
    shared_data: Path, tmp_path: Path
) -> None:
    corrected, older, copy = FILES["german"]
    (tmp_path / corrected).parent.mkdir()
    names = " ".join(names[0] for names in DECLARED["german"].columns.values())
    rows = {file: Files(shared_data).text(file).partition("\n")[2] for file in (corrected, copy)}
    (tmp_path / corrected).write_text(f"{names}\n{rows[corrected]}")
    (tmp_path / older).write_text(rows[copy].replace(",", " "))
    for coding in ("south_german", "statlog"):
        available = load("german", shared_data, coding=coding)
        require_equal(load("german", tmp_path, coding=coding), available)


def test_groups_of_drugs_have_the_counts_of_their_page(shared_data: Path) -> None:
    """Counts of all 1,885 rows, as the page of the dataset at UCI gives them."""
    frame = real(shared_data, "drugs")
    counts = {name: frame[name].map(DRUGS[name]).value_counts().to_dict() for name in DRUGS}
    ages = dict(zip(DRUGS["age"].values(), [643, 481, 356, 294, 93, 18], strict=True))
    ethnicities = {"White": 1720, "other": 26 + 33 + 3 + 20 + 20 + 63}
    genders = {"male": 943, "female": 942}
    assert counts == {"age": ages, "gender": genders, "ethnicity": ethnicities}


def test_readmission_has_the_golden_counts(shared_data: Path) -> None:
    golden = GOLDEN["readmission"]
    samples = load("readmission", shared_data)
    with zipfile.ZipFile(shared_data / FILES["readmission"][0]) as members:
        frame = pd.read_csv(io.BytesIO(members.read(MEMBER)), dtype=str, keep_default_na=False)
    assert (len(samples), samples.y.sum()) == (golden["rows"], golden["positives"])
    assert counts(samples, "admission_source_id") == golden["admission_source"]
    assert samples.attributes["race_full"].value_counts().to_dict() == golden["race"]
    assert (samples.attributes["gender"] == "Male").sum() == golden["gender"]["Male"]
    expected = frame[frame["race"] != "?"]
    np.testing.assert_array_equal(samples.id, expected.index)
    assert units_are_in_one_part(samples, expected["patient_nbr"])
    assert expected["patient_nbr"].nunique() == golden["patients"]
    x = pd.DataFrame(samples.x, columns=samples.features)
    numbers = [name for name, kind in DECLARED["readmission"].columns.items() if kind is None]
    for name in numbers[1:]:
        np.testing.assert_array_equal(x[name], expected[name].astype(int))
    for name, value in (("insulin", "Steady"), ("diag_1", "428"), ("A1Cresult", ">8")):
        np.testing.assert_array_equal(x[f"{name}={value}"], expected[name] == value)
    np.testing.assert_array_equal(x["payer_code=missing"], expected["payer_code"] == "?")
    shares = expected["diag_2"].map(expected["diag_2"].value_counts(normalize=True))
    np.testing.assert_array_equal(x["diag_2=infrequent"], shares < 0.01)
    assert len(columns_of(samples)) == 46
    left_out = {"admission_source_id", "patient_nbr", "encounter_id", "readmitted"}
    assert not left_out & columns_of(samples)


def test_readmission_variants_have_the_golden_counts(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = GOLDEN["readmission"]
    cells = public.Readmission().typed(Files(shared_data), FILES["readmission"][0])
    monkeypatch.setattr(public.Readmission, "typed", lambda *_: cells)
    first = load("readmission", shared_data, encounters="first", unit="encounter")
    assert len(first) == golden["first_encounter_only"]["rows"]
    assert first.y.sum() == golden["first_encounter_only"]["positives"]
    options = {"target": "early", "sensitive": ["gender"], "drop_sensitive": True}
    alive = load("readmission", shared_data, died="drop", **options)
    assert len(alive) == golden["rows"] - golden["discharged_dead_or_hospice"]["rows"]
    assert "gender" not in columns_of(alive)
    assert load("readmission", shared_data, target="early").y.sum() == golden["lt30_positives"]


def test_oulad_has_the_golden_counts(shared_data: Path) -> None:
    golden = GOLDEN["oulad"]
    samples = load("oulad", shared_data)
    assert (len(samples), samples.y.sum()) == (golden["rows"], golden["positives"])
    by = golden["by"] | {"presentation": golden["by"]["code_presentation"]}
    by |= {"module": by["code_module"], "imd_band": {**by["imd_band"]}}
    by["imd_band"]["10-20%"] = by["imd_band"].pop("20-Oct")
    for name in ("gender", "age_band", "imd_band", "region", "presentation", "module"):
        assert counts(samples, name) == by[name]
    assert counts(samples, "module", "presentation") == golden["module_presentation"]
    assert counts(samples, "presentation", "gender") == golden["presentation_by_gender"]
    frame = real(shared_data, "oulad", keep_default_na=False)
    assert units_are_in_one_part(samples, frame["id_student"])
    assert frame["id_student"].nunique() == golden["students"]
    x = pd.DataFrame(samples.x, columns=samples.features)
    for name in ("studied_credits", "num_of_prev_attempts"):
        np.testing.assert_array_equal(x[name], frame[name])
    np.testing.assert_array_equal(x["disability=yes"], frame["disability"] == "Y")
    np.testing.assert_array_equal(x["imd_band=10-20%"], frame["imd_band"] == "20-Oct")


@pytest.mark.parametrize("domain", ["presentation", "module", "region"])
def test_domain_column_of_oulad_is_no_feature(shared_data: Path, domain: str) -> None:
    samples = load("oulad", shared_data, domain=domain, withdrawn="drop", sensitive=["disability"])
    assert len(samples) == 22_437
    assert samples.y.sum() == GOLDEN["oulad"]["positives"]
    names = {"presentation": "code_presentation", "module": "code_module", "region": "region"}
    assert {*names.values()} - columns_of(samples) == {names[domain]}


def test_iowa_agrees_with_an_independent_reading(shared_data: Path) -> None:
    samples = load("iowa_recidivism", shared_data)
    frame = real(shared_data, "iowa_recidivism", keep_default_na=False)
    np.testing.assert_array_equal(samples.y, frame["Recidivism - Return to Prison"] == "Yes")
    assert samples.y.sum() == 7027
    year = samples.attributes["year"].astype(str)
    assert year.value_counts().sort_index().tolist() == [3716, 3917, 4740, 4687, 4586]
    assert year.tolist() == frame["Fiscal Year Released"].astype(str).tolist()
    assert columns_of(samples) == {*find("dataset", "iowa_recidivism").short.values()}
    race = samples.attributes["race"].astype(object).fillna("").to_numpy()
    cells = frame["Race - Ethnicity"]
    hispanic = cells.str.endswith("- Hispanic").to_numpy()
    np.testing.assert_array_equal(race == "Hispanic", hispanic)
    for name in ("White", "Black", "American Indian or Alaska Native", "Asian or Pacific Islander"):
        np.testing.assert_array_equal(race == name, cells.str.startswith(name) & ~hispanic)
    assert np.count_nonzero(race == "") == 35 and samples.attributes["sex"].isna().sum() == 3
    x = pd.DataFrame(samples.x, columns=samples.features)
    kinds = frame["Release Type"]
    parole = kinds.str.contains("Parole")
    np.testing.assert_array_equal(x["release_type=parole"], parole)
    np.testing.assert_array_equal(x["release_type=discharge"], kinds.str.startswith("Discharged"))
    np.testing.assert_array_equal(
        x["offense_class=enhanced felony"],
        frame["Convicting Offense Classification"].str.contains("Enhance"),
    )
    np.testing.assert_array_equal(x["target_population=yes"], frame.iloc[:, -1] == "Yes")


HOSPITALS = [file.split(".")[1] for file in FILES["heart"]]


BUNDLED = dataset_files(Path("nowhere")).bundled[0]


def raw_patients() -> pd.DataFrame:
    tables = [pd.read_csv(BUNDLED / file, header=None, na_values="?") for file in FILES["heart"]]
    return pd.concat(tables, keys=HOSPITALS, names=["hospital"]).reset_index("hospital")


@pytest.mark.parametrize("name", ["adult", "communities", "drugs", "german", "heart", "students"])
def test_bundled_files_are_the_official_ones_and_a_copy_of_the_user_wins(
    name: str, shared_data: Path, tmp_path: Path
) -> None:
    dataset, nothing = find("dataset", name)(), dataset_files(tmp_path)
    assert dataset.missing_files(nothing) == []
    bundled, expected = dataset.load(nothing, 2), dataset.load(dataset_files(shared_data), 2)
    require_equal(bundled, expected)
    assert bundled.sources == expected.sources
    assert dataset_files(shared_data).find(FILES[name][0]).is_relative_to(shared_data)
    write(tmp_path, {FILES[name][0]: b"not,a,table\n"})
    with pytest.raises(InputError):
        dataset.load(dataset_files(tmp_path), 1)


def test_heart_has_the_golden_counts(tmp_path: Path) -> None:
    samples = load("heart", BUNDLED)
    golden = GOLDEN["heart"]
    assert len(samples) == golden["all"]["rows"] == 920
    by_sex = counts(samples, "hospital", "sex")
    for hospital in HOSPITALS:
        expected = golden[hospital]
        of_hospital = counts(samples, "hospital")[hospital]
        assert of_hospital == {key: expected[key] for key in ("rows", "positives")}
        for sex, both in expected["by_sex"].items():
            assert by_sex[f"{hospital} {sex}"] == both
        older = samples.attributes["age_group"] == "age 55 or over"
        rows = samples.attributes["hospital"] == hospital
        assert (older & rows).sum() == expected["age"]["rows_from_55"]
    raw = raw_patients()
    x = pd.DataFrame(samples.x, columns=samples.features)
    for number, name in {0: "age", 1: "sex", 7: "thalach", 9: "oldpeak"}.items():
        np.testing.assert_array_equal(x[name], raw[number].fillna(0).astype(np.float32))
    for name, missing in {"thalach": 55, "trestbps": 60, "oldpeak": 62}.items():
        assert x[f"{name}=missing"].sum() == missing
        assert (x[name][x[f"{name}=missing"] == 1] == 0).all()


def test_features_of_heart_and_rows_with_missing_cells(tmp_path: Path) -> None:
    raw = raw_patients()
    raw[[3, 4]] = raw[[3, 4]].mask(raw[[3, 4]] == 0)
    options = {"common": [0, 1, 2, 3, 6, 7, 8, 9], "all": list(range(13))}
    for features, columns in options.items():
        samples = load("heart", BUNDLED, features=features, incomplete="drop")
        np.testing.assert_array_equal(samples.id, np.flatnonzero(raw[columns].notna().all(axis=1)))
        assert not [name for name in samples.features if name.endswith("=missing")]
    options = {"sensitive": ["age_group"], "drop_sensitive": True}
    samples = load("heart", BUNDLED, features="all", **options)
    x = pd.DataFrame(samples.x, columns=samples.features)
    assert "age" not in x
    assert "age_group" in samples.attributes
    assert x["chol=missing"].sum() == 23 + 123 + 7 + 49
    assert x["ca=missing"].sum() == 4 + 291 + 118 + 198


# Made-up files of the same form


def made(name: str, seed: int = 0) -> pd.DataFrame:
    """A made-up file: every category occurs; numbers are 0 to 19, and 0 or 1 where they must be."""
    rng = np.random.default_rng(seed)
    table: dict[str, object] = {}
    fields = {} if name == "german" else DECLARED[name].fields
    for column, written in DECLARED[name].columns.items():
        field = fields.get(column)
        if isinstance(written, int):
            options = ["?", "Not in universe", *(f"{column} {k}" for k in range(written))][:written]
        elif isinstance(field, Category):
            options = [*field.names]
        else:
            options = ["a", "b", "?"] if field is None else [*range(20)]
        codes = np.r_[np.arange(len(options)), rng.integers(0, len(options), SMALL)][:SMALL]
        table[column] = np.array(options, dtype=object)[codes]
    change = {
        "compas": {
            "compas_screening_date": "2013-05-01", "race": 40 * ["Other", "Asian", "Caucasian"] * 2,
            "c_charge_degree": ["O", *(SMALL - 1) * ["F"]],
            "is_recid": [*(SMALL - 1) * ["0"], "-1"],
            "days_b_screening_arrest": ["0", "", "31", "-31", *(SMALL - 4) * ["-30"]],
            "score_text": [*(SMALL - 2) * ["Low"], "N/A", "Low"],
        },
        "credit_card": {"default payment next month": rng.integers(0, 2, SMALL)},
        "drugs": {
            **{group: rng.choice([*names], SMALL) for group, names in DRUGS.items()},
            "semer": ["CL3", "CL1", *(SMALL - 2) * ["CL0"]],
        },
        "german": {
            **dict.fromkeys(COLUMNS["german"], SMALL // 2 * ["1", "2"]),
            "duration": 7, "amount": "250", "age": SMALL // 2 * [19, 75],
            "credit_risk": SMALL // 3 * ["0", "1", "1"],
        },
        "heart": {"sex": rng.integers(0, 2, SMALL), "age": SMALL // 2 * [40, 70]},
        "law_school": {"male": rng.integers(0, 2, SMALL), "pass_bar": rng.integers(0, 2, SMALL)},
    }  # fmt: skip
    return pd.DataFrame(table | change.get(name, {}), index=range(SMALL))


SEVERAL = ("adult", "kdd_census", "heart")  # whose files are one table
KEPT = {"compas": SMALL - 6, "drugs": SMALL - 2}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Samples]:
    """Load made-up files of a table, the last of them changed."""

    def loaded(
        name: str, change: Change = pd.DataFrame, file: int = -1, splits: int = 1, **options: object
    ) -> Samples:
        table = DECLARED[name]
        files = FILES[name] if name in SEVERAL else FILES[name][:1]
        rows = table.model_copy(
            update={"files": dict.fromkeys(FILES[name], SMALL), "kept": KEPT.get(name, 0)}
        )
        real_one = public.declared
        monkeypatch.setattr(public, "declared", lambda n: rows if n == name else real_one(n))
        for number, path in enumerate(files):
            cells = made(name, number)
            if number == file % len(files):
                cells = change(cells)
            delimiter = " " if name == "german" else table.delimiter
            text = cells.to_csv(sep=delimiter, header=table.header, index=False)
            content = text.encode()
            if path.endswith(".zip"):
                content = packed({MEMBER: content})
            write(tmp_path, {path: content})
        return load(name, tmp_path, splits, **options)

    return loaded


@pytest.mark.parametrize("name", DECLARED)
def test_made_up_file_is_read_whole(small: Callable[..., Samples], name: str) -> None:
    options = {"train_rows": 100} if name in ("adult", "communities") else {}
    samples = small(name, **options)
    files = len(FILES[name]) if name in SEVERAL else 1
    lost = (made(name)["race"] == "?").sum() if name == "readmission" else 0
    assert len(samples) == KEPT.get(name, SMALL * files - lost)
    assert np.isfinite(samples.x).all()


def test_order_of_columns_and_spelling_of_numbers_do_not_matter(
    small: Callable[..., Samples],
) -> None:
    law, card = small("law_school"), small("credit_card")
    table = made("law_school")
    written = {"male": table["male"].map("{:.2f}".format), "pass_bar": table["pass_bar"] + 0.0}
    for change in (lambda t: t[t.columns[::-1]], lambda t: t.assign(**written)):
        require_equal(small("law_school", change), law)
    for target in public.CreditCard.targets:
        names = {"default payment next month": target}
        change = lambda t, names=names: t.rename(columns=names).assign(ID=5).iloc[:, ::-1]  # noqa: E731
        require_equal(small("credit_card", change), card)


def test_undocumented_codes_of_credit_card_are_others_or_left_out(
    small: Callable[..., Samples],
) -> None:
    table = made("credit_card")
    raw = table.assign(**{name: table[name].map(codes) for name, codes in CARD.items()})
    joined, dropped = (small("credit_card", undocumented=each) for each in ("others", "drop"))
    others = raw.replace("undocumented", "others")
    attributes_agree(joined, others, EDUCATION="EDUCATION", MARRIAGE="MARRIAGE")
    documented = ["graduate school", "university", "high school", "others"]
    assert list(joined.attributes["EDUCATION"].cat.categories) == documented
    known = (raw[["EDUCATION", "MARRIAGE"]] != "undocumented").all(axis=1)
    assert dropped.id.tolist() == np.flatnonzero(known).tolist()
    np.testing.assert_array_equal(dropped.x, joined.x[known])
    assert dropped.features == joined.features


def test_census_agrees_with_an_independent_reading(small: Callable[..., Samples]) -> None:
    columns = DECLARED["kdd_census"].columns
    assert sum(DECLARED["kdd_census"].files.values()) == 299_285
    kinds = [kind for kind in columns.values() if isinstance(kind, int)]
    assert (len(columns), len(kinds)) == (42, 40 - 7 - 2)
    samples = small("kdd_census", splits=2)
    raw = pd.concat([made("kdd_census", seed) for seed in (0, 1)], ignore_index=True)
    features_agree(samples, raw)
    assert samples.x.shape == (2 * SMALL, 7 + sum(kinds) + 5 + 2)
    assert samples.x.dtype == np.float32
    assert not {"instance weight", "label"} & columns_of(samples)
    assert samples.classes == ("<=50K", ">50K")
    np.testing.assert_array_equal(samples.y, raw["label"] == "50000+.")
    assert samples.sensitive == ("sex", "race", "age")
    white = raw["race"] == "White"
    assert samples.attributes["race"].tolist() == np.where(white, "White", "other").tolist()
    attributes_agree(samples, raw, race_full="race", sex="sex", age="age")
    for split in ("split_0", "split_1"):
        assert parts(samples, split) == (180, 60, SMALL)
        assert samples.rows(split, "test").tolist() == list(range(SMALL, 2 * SMALL))
    assert set(samples.columns) == set(COLUMNS["kdd_census"]) - {"instance weight", "label"}
    backwards = small("kdd_census", lambda t: t[::-1], file=0)
    assert backwards.features == samples.features
    dropped = ("country of birth father", "detailed industry recode")
    fewer = small(
        "kdd_census", split="random", train_rows=0.5, drop=dropped,
        sensitive=["race_full", "sex"], drop_sensitive=True,
    )  # fmt: skip
    assert parts(fewer, "split_0") == (180, 60, SMALL)
    gone = (*dropped, "race", "sex")
    kept = [name for name in samples.features if name.partition("=")[0] not in gone]
    assert list(fewer.features) == kept


def test_encounters_may_be_a_zip_file_or_its_folder(
    small: Callable[..., Samples], tmp_path: Path
) -> None:
    small("readmission")
    dataset = find("dataset", "readmission")()
    folder = "diabetes_130/dataset_diabetes"
    assert dataset.missing_files(Files(tmp_path / "empty")) == [folder]
    assert dataset.missing_files(Files(tmp_path)) == []


# Damaged files


def without(column: str) -> Change:
    return lambda table: table.drop(columns=column)


FEWER: Change = lambda table: table[1:]  # noqa: E731


@pytest.mark.parametrize("name", DECLARED)
def test_a_lost_row_or_column_is_one_line_that_names_the_file(
    small: Callable[..., Samples], name: str
) -> None:
    if name not in ("iowa_recidivism", "oulad"):  # whose exports have other numbers of rows
        with pytest.raises(InputError, match=r": 239 rows, expected 240; the file may be incompl"):
            small(name, FEWER)
    column = next(iter(DECLARED[name].fields))
    header = rf"unknown column '{re.escape(column)}'"
    fields = rf"line 1: {len(COLUMNS[name]) - 1} fields, expected {len(COLUMNS[name])}"
    with pytest.raises(InputError, match=header if DECLARED[name].header else fields) as error:
        small(name, without(column))
    assert FILES[name][-1 if name in SEVERAL else 0] in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("adult", cell("workclass", "Privat", 7),
         r"adult\.test, row 7, column workclass: .*'Privat': did you mean 'Private'"),
        ("adult", cell("age", "nan", 9), r"adult\.test, row 9, column age: 'nan'"),
        ("communities", cell("population", "?", 4), r"row 4, column population: '\?', allowed: a "),
        ("communities", lambda t: t.assign(ViolentCrimesPerPop=0.2),
         r"communities\.data: ViolentCrimesPerPop: every row has the value 0\.2"),
        ("compas", cell("race", "Caucasain", 3),
         r"years\.csv, row 3, column race: unknown category 'Caucasain': .*'Caucasian'"),
        ("compas", cell("race", 'says "none", or other', 3),
         r"row 3, column race: unknown category 'says \"none\", or other'"),
        ("compas", cell("score_text", "N/A", 9), r"233 rows after the filters .* expected 234"),
        ("compas", cell("compas_screening_date", "May", 9),
         r"years\.csv, column compas_screening_date: not as the official .*May"),
        ("credit_card", cell("SEX", 0, 4), r"row 4, column SEX: .*category '0'\. Allowed: 1, 2"),
        ("credit_card", lambda t: t.rename(columns={"default payment next month": "Y"}),
         r"clients\.csv: 0 target columns; expected one of \('default payment next month'"),
        ("credit_card", lambda t: t.assign(**{"default payment": 0}),
         r"clients\.csv: 2 target columns"),
        ("credit_card", lambda t: t.set_axis([*(f"X{k}" for k in range(1, 24)), "Y"], axis=1),
         r"clients\.csv, line 1: the header is X1 to X23 and Y; .* second"),
        ("drugs", cell("heroin", "CL7", 8), r"row 8, column heroin: .*'CL7'"),
        ("drugs", cell("ethnicity", 0.5, 8), r"column ethnicity: code 0\.5, allowed: -0\.31685"),
        ("drugs", cell("semer", "CL1", 8), r"237 rows after .* Semeron, expected 238"),
        ("german", cell("status", "5", 2), r"row 2, column status: .*'5'.*: 1, 2, 3, 4$"),
        ("german", lambda t: t.assign(foreign_worker="2"),
         r"foreign_worker: every row has the value not foreign;"),
        ("heart", cell("cp", "5", 3), r"va\.data, row 3, column cp: .*'5'\. Allowed: 1, 2, 3, 4"),
        ("kdd_census", cell("education", "Bachelor", 61),
         r"test, row 61, column education: unknown category 'Bachelor'"),
        ("kdd_census", cell("race", "white", 10),
         r"test, row 10, column race: unknown category 'white': did"),
        (("kdd_census", 0), cell("education", "Bachelor", 61),
         r"data, row 61, column education: 'Bachelor' is the rarest of 18 .*, expected 17"),
        (("kdd_census", 0), lambda t: t.assign(year="94"),
         r"data, column year: 1 categories, expected 2"),
        (("kdd_census", 0), cell("age", "?", 9), r"data, row 9, column age: '\?', allowed: a fin"),
        ("iowa_recidivism", cell("Release Type", "x", 2), r"row 2, column Release Type: .*'x'"),
        ("law_school", cell("race", "white", 3), r"row 3, column race: .*'white': did you mean"),
        ("oulad", lambda t: t.rename(columns={"imd_band": "imd"}),
         r"studentInfo\.csv: unknown column 'imd_band'"),
        ("readmission", lambda t: t.assign(race="red"), r"row 1, column race: .*category 'red'"),
        ("students", cell("Mjob", "nurse; ward 2", 1), r"row 1, column Mjob: .*'nurse; ward"),
    ],
)  # fmt: skip
def test_damaged_file_is_one_line_that_names_file_and_field(
    small: Callable[..., Samples], name: str | tuple[str, int], change: Change, message: str
) -> None:
    name, file = (name, -1) if isinstance(name, str) else name
    with one_line(message):
        small(name, change, file)


def test_every_number_of_a_declared_table_is_a_number() -> None:
    """A column without a type is a number; a misspelt type would make it one."""
    for table in DECLARED.values():
        for written in () if table is DECLARED["german"] else table.columns.values():
            assert written is None or written == "text" or isinstance(written, int | list | dict)
        assert {*table.unread} <= {*table.columns}
    assert isinstance(DECLARED["heart"].fields["chol"], Number)
