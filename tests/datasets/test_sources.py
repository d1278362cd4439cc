"""The sources on their real files: counts, shares, features, and damaged copies."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError
from sklearn.datasets import load_diabetes

from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import names
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.tables import adult, communities, diabetes
from robust_fairness.samples import Samples

ADULT = ("adult/adult.data", "adult/adult.test", "adult/adult.names")
COMMUNITIES = ("communities_crime/communities.data",)

Damage = Callable[[str], str]


def parts(samples: Samples, split: str) -> tuple[int, ...]:
    return tuple(len(samples.rows(split, part)) for part in ("train", "val", "test"))


@pytest.fixture
def damaged(shared_data: Path, tmp_path: Path) -> Callable[..., Files]:
    """Copy of raw files with some of them changed."""

    def copy(originals: tuple[str, ...], **changes: Damage) -> Files:
        for name in originals:
            text = Files(shared_data).text(name)
            target = tmp_path / name
            target.parent.mkdir(exist_ok=True)
            target.write_text(changes.get(target.suffix[1:], str)(text))
        return Files(tmp_path)

    return copy


def replace_line(number: int, old: str, new: str) -> Damage:
    def change(text: str) -> str:
        lines = text.split("\n")
        assert old in lines[number - 1]
        lines[number - 1] = lines[number - 1].replace(old, new, 1)
        return "\n".join(lines)

    return change


def test_sources_are_found_by_name() -> None:
    assert {"adult", "communities", "diabetes"} <= set(names("dataset"))


# Diabetes


def test_diabetes_keeps_the_values_of_scikit_learn(tmp_path: Path) -> None:
    samples = diabetes.Diabetes(diabetes.Diabetes.Parameters(target="continuous")).load(
        Files(tmp_path), 1
    )
    original = load_diabetes(scaled=False)
    np.testing.assert_array_equal(samples.x, original.data.astype(np.float32))
    np.testing.assert_array_equal(samples.y, original.target.astype(np.float32))
    assert samples.features == tuple(original.feature_names)
    assert samples.classes == ()


def test_diabetes_classes_and_groups(tmp_path: Path) -> None:
    samples = diabetes.Diabetes(diabetes.Diabetes.Parameters()).load(Files(tmp_path), 3)
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
    assert list(samples.sources) == ["scikit-learn/diabetes"]


def test_sensitive_columns_leave_the_features_on_demand(tmp_path: Path) -> None:
    parameters = diabetes.Diabetes.Parameters(sensitive=("sex", "age_group"), drop_sensitive=True)
    samples = diabetes.Diabetes(parameters).load(Files(tmp_path), 1)
    assert samples.features == ("bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")
    assert samples.x.shape == (442, 8)


@pytest.mark.parametrize("source", [adult.Adult, communities.Communities, diabetes.Diabetes])
def test_unknown_parameters_and_attributes_are_refused(source: object) -> None:
    with pytest.raises(ValidationError, match="extra_forbidden"):
        source.Parameters(sensitif=["sex"])
    with pytest.raises(ValidationError, match="literal_error"):
        source.Parameters(sensitive=["shoe size"])


# Adult


@pytest.fixture(scope="module")
def adult_samples(shared_data: Path) -> Samples:
    return adult.Adult(adult.Adult.Parameters()).load(Files(shared_data), 2)


def test_adult_has_the_counts_of_the_paper_and_of_its_codebook(
    adult_samples: Samples, shared_data: Path
) -> None:
    codebook = Files(shared_data).text("adult/adult.names")
    (instances,) = re.findall(r"\| (\d+) instances,", codebook)
    (share,) = re.findall(r"'>50K'  : ([\d.]+)%", codebook)
    assert len(adult_samples) == int(instances) == 48_842
    assert adult_samples.classes == ("<=50K", ">50K")
    assert round(100 * adult_samples.y.mean(), 2) == float(share)
    for split in ("split_0", "split_1"):
        assert parts(adult_samples, split) == (24_000, 6_000, 18_842)


def test_adult_agrees_with_an_independent_reading(
    adult_samples: Samples, shared_data: Path
) -> None:
    frame = pd.concat(
        pd.read_csv(
            next((shared_data / "adult").glob(f"{name}*")),
            header=None,
            names=[*adult.FIELDS, "label"],
            skipinitialspace=True,
            skiprows=skip,
        )
        for name, skip in [("adult.data", 0), ("adult.test", 1)]
    )
    assert len(adult_samples.features) == adult_samples.x.shape[1] == 108
    for column, values in zip(adult_samples.features, adult_samples.x.T, strict=True):
        name, _, category = column.partition("=")
        expected = frame[name] == category if category else frame[name]
        np.testing.assert_array_equal(values, expected.astype(np.float32))
    np.testing.assert_array_equal(adult_samples.y, frame["label"].str.startswith(">50K"))
    for name in ("sex", "race", "age"):
        assert adult_samples.attributes[name].tolist() == frame[name].tolist()


def test_adult_without_unknown_values_has_the_counts_of_its_codebook(
    adult_samples: Samples, shared_data: Path
) -> None:
    files = Files(shared_data)
    samples = adult.Adult(adult.Adult.Parameters(missing="drop", drop=("fnlwgt",))).load(files, 1)
    (rows,) = re.findall(r"\| (\d+) if instances with unknown", files.text("adult/adult.names"))
    (share,) = re.findall(r"'>50K'  : .*/ ([\d.]+)%", files.text("adult/adult.names"))
    assert len(samples) == int(rows) == 45_222
    options = {"missing": "drop", "split": "official", "val_fraction": 0.25}
    official = adult.Adult(adult.Adult.Parameters(**options)).load(files, 2)
    for split in official.splits:
        tested = (official.splits[split] == "test").to_numpy()
        assert np.array_equal(tested, official.id >= 32_561) and tested.sum() == 15_060
    assert not official.splits["split_0"].equals(official.splits["split_1"])
    assert round(100 * samples.y.mean(), 2) == float(share)
    kept = [name for name in adult_samples.features if name != "fnlwgt" and name[-2:] != "=?"]
    assert list(samples.features) == kept
    columns = [adult_samples.features.index(name) for name in kept]
    np.testing.assert_array_equal(samples.x, adult_samples.x[samples.id][:, columns])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"data": replace_line(7, "Private", "Privat")},
            r"adult\.data, line 7, column workclass: .*'Privat': did you mean 'Private'",
        ),
        ({"data": replace_line(9, "31", "nan")}, r"adult\.data, line 9, column age: 'nan'"),
        ({"data": replace_line(5, ", ", " ")}, r"adult\.data, line 5: 14 fields, expected 15"),
        ({"data": replace_line(5, "Black", "?")}, r"adult\.data, line 5, column race: .*'\?'"),
        ({"data": lambda text: text[: len(text) // 2]}, r"adult\.data.* expected "),
        ({"data": lambda text: text[: text.index("\n", 10**6) + 1]}, r"rows, expected 32561"),
        ({"names": lambda text: text[:-900]}, r"adult\.names: describes age, .*; expected age, "),
        ({"names": lambda _: ""}, r"adult\.names: describes nothing; expected age, "),
        (
            {
                "data": lambda text: text.replace("Female", "Male"),
                "test": lambda text: text.replace("Female", "Male"),
            },
            r"adult\.data.*: sex: every row has the value Male;",
        ),
    ],
)
def test_damaged_adult_is_one_line_that_names_file_and_field(
    damaged: Callable[..., Files], changes: dict[str, Damage], message: str
) -> None:
    files = damaged(ADULT, **changes)
    with pytest.raises(InputError, match=message) as error:
        adult.Adult(adult.Adult.Parameters()).load(files, 1)
    assert "\n" not in str(error.value)


# Communities and Crime


@pytest.fixture(scope="module")
def communities_samples(shared_data: Path) -> Samples:
    return communities.Communities(communities.Communities.Parameters()).load(Files(shared_data), 2)


def test_fields_of_communities_are_those_of_its_codebook(shared_data: Path) -> None:
    codebook = Files(shared_data).text("communities_crime/communities.names")
    fields = list(communities.FIELDS)
    assert fields == re.findall(r"^@attribute (\w+) ", codebook, re.MULTILINE)
    missing = dict(re.findall(r"^(\w+)(?: -?[\d.]+){7} (\d+)$", codebook, re.MULTILINE))
    incomplete = {name for name in fields[5:] if communities.FIELDS[name].missing}
    assert incomplete == {name for name, rows in missing.items() if rows != "0"}


def test_communities_agree_with_an_independent_reading(
    communities_samples: Samples, shared_data: Path
) -> None:
    frame = pd.read_csv(
        next((shared_data / "communities_crime").glob("communities.data*")),
        header=None,
        na_values="?",
    )
    numeric = frame.iloc[:, 5:].dropna(axis="columns")
    assert communities_samples.x.shape == (1994, 99)
    np.testing.assert_array_equal(communities_samples.x, numeric.iloc[:, :-1].astype(np.float32))
    top = communities_samples.y == 0
    assert top.sum() == round(0.3 * 1994)
    assert numeric.iloc[:, -1][top].min() >= numeric.iloc[:, -1][~top].max()
    assert parts(communities_samples, "split_1") == (1200, 300, 494)


def test_class_and_group_zero_of_communities_are_the_top_thirty_percent(
    communities_samples: Samples,
) -> None:
    assert communities_samples.classes == ("top 30 %", "rest")
    assert communities_samples.sensitive == ("racepctblack_group",)
    for name in ("racepctblack", "FemalePctDiv"):
        group = communities_samples.attributes[f"{name}_group"]
        values = communities_samples.attributes[name]
        column = communities_samples.x[:, communities_samples.features.index(name)]
        np.testing.assert_array_equal(values.astype(np.float32), column)
        assert list(group.cat.categories) == ["top 30 %", "rest"]
        assert round((group == "top 30 %").mean(), 3) == 0.3
        assert values[group == "top 30 %"].min() >= values[group == "rest"].max()


def test_ties_of_communities_stay_together_at_a_threshold(shared_data: Path) -> None:
    parameters = communities.Communities.Parameters(
        ties="threshold", sensitive=("FemalePctDiv_group",)
    )
    samples = communities.Communities(parameters).load(Files(shared_data), 1)
    for name in ("racepctblack", "FemalePctDiv"):
        top = samples.attributes[f"{name}_group"] == "top 30 %"
        values = samples.attributes[name]
        assert (top == (values >= values[top].min())).all()
    assert 0.3 < (samples.y == 0).mean() < 0.31
    assert samples.sensitive == ("FemalePctDiv_group",)


def last_field(value: str) -> Damage:
    return lambda text: re.sub(r",[^,\n]+$", f",{value}", text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            replace_line(4, ",0.", ",?"),
            r"line 4, column \w+: '\?\d+', .* from 0 to 1",
        ),
        (replace_line(1, "0.19", "1.9"), r"line 1, column population: '1\.9', .* from 0 to 1"),
        (replace_line(2, ",", ";"), r"communities\.data, line 2: 127 fields, expected 128"),
        (lambda text: text[: text.rindex("\n", 0, 10**6) + 1], r"rows, expected 1994"),
        (
            last_field("0.2"),
            r"ViolentCrimesPerPop: every row has the value 0\.2",
        ),
    ],
)
def test_damaged_communities_is_one_line_that_names_file_and_field(
    damaged: Callable[..., Files], change: Damage, message: str
) -> None:
    files = damaged(COMMUNITIES, data=change)
    with pytest.raises(InputError, match=message) as error:
        communities.Communities(communities.Communities.Parameters()).load(files, 1)
    assert "\n" not in str(error.value)


def test_class_missing_from_a_split_of_communities_is_refused(shared_data: Path) -> None:
    parameters = communities.Communities.Parameters(train_rows=2, val_fraction=0.5)
    with pytest.raises(InputError, match=r"split_0: its train part has no row of class"):
        communities.Communities(parameters).load(Files(shared_data), 1)


def test_truncated_gzip_of_a_source_is_refused(shared_data: Path, tmp_path: Path) -> None:
    content = gzip.compress(Files(shared_data).text(COMMUNITIES[0]).encode())
    target = tmp_path / f"{COMMUNITIES[0]}.gz"
    target.parent.mkdir()
    target.write_bytes(content[:-1000])
    with pytest.raises(InputError, match=r"communities\.data\.gz: corrupted or truncated gzip"):
        communities.Communities(communities.Communities.Parameters()).load(Files(tmp_path), 1)
