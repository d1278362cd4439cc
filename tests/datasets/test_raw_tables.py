"""Tables and images that users bring: read by parameters alone, refused in one line."""

import gzip
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image

from robust_fairness.auditing.read import columns
from robust_fairness.auditing.read.reading import read_columns
from robust_fairness.bench.datasets.base import require_float32
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from tests.datasets import loading
from tests.datasets.images import encoded
from tests.datasets.loading import one_line

LOAN = {"file": "own/loans.csv", "target": "repaid", "positive": "yes", "sensitive": ["sex"]}
load = partial(loading.load, "table", splits=2, **LOAN)


def loans(rows: int = 60) -> pd.DataFrame:
    """Loans of twenty people."""
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "number": [f"loan {k}" for k in range(rows)],
            "person": rng.integers(0, 20, rows),
            "age": rng.integers(18, 80, rows),
            "income": rng.normal(30, 5, rows).round(2),
            "job": rng.choice(["none", "clerk, senior", 'called "boss"'], rows),
            "sex": rng.choice(["f", "m"], rows),
            "code": rng.choice([1, 2, 3], rows),
            "repaid": rng.choice(["yes", "no"], rows),
            "part": rng.permutation(np.repeat(["train", "val", "test"], rows // 3)),
        }
    )


def written(root: Path, frame: pd.DataFrame, name: str = "own/loans.csv") -> None:
    """Write a frame below the root in the format of its name."""
    path = root / name
    path.parent.mkdir(exist_ok=True)
    frame.to_parquet(path) if name.endswith("parquet") else frame.to_csv(path, index=False)


@pytest.mark.parametrize("name", ["own/loans.csv", "own/loans.csv.gz", "own/loans.parquet"])
def test_values_are_those_of_the_table_whatever_the_format(tmp_path: Path, name: str) -> None:
    frame = loans()
    written(tmp_path, frame, name)
    samples = load(
        tmp_path,
        file=name,
        id="number",
        unit="person",
        drop=["part"],
        sensitive=["sex", "age", "code"],
    )
    jobs = ['job=called "boss"', "job=clerk, senior", "job=none"]
    assert list(samples.features) == ["age", "income", "code", *jobs, "sex=f", "sex=m"]
    for feature, values in zip(samples.features, samples.x.T, strict=True):
        column, _, category = feature.partition("=")
        expected = frame[column] == category if category else frame[column]
        np.testing.assert_array_equal(values, expected.astype(np.float32))
    assert samples.classes == ("no", "yes")
    np.testing.assert_array_equal(samples.y, frame["repaid"] == "yes")
    assert samples.id.tolist() == frame["number"].tolist()
    assert samples.attributes["sex"].tolist() == frame["sex"].tolist()
    assert samples.attributes["age"].tolist() == frame["age"].tolist()
    assert samples.attributes["age"].dtype == np.float64
    assert samples.attributes["code"].astype(int).tolist() == frame["code"].tolist()
    assert list(samples.attributes["code"].cat.categories) == ["1", "2", "3"]
    assert list(samples.sources) == [name]


def test_no_unit_is_in_two_parts_and_every_split_is_its_own(tmp_path: Path) -> None:
    frame = loans(180)
    written(tmp_path, frame)
    samples = load(tmp_path, splits=3, unit="person", drop=["number"])
    for split in samples.split_names:
        parts = samples.splits[split].groupby(frame["person"], observed=True).nunique()
        assert (parts == 1).all()
    assert samples.split_names == ["split_0", "split_1", "split_2"]
    assert samples.splits.T.drop_duplicates().shape[0] == 3
    assert "person" not in samples.features


def test_a_column_gives_the_split(tmp_path: Path) -> None:
    frame = loans()
    written(tmp_path, frame)
    samples = load(tmp_path, split="part")
    assert samples.splits["split_0"].tolist() == frame["part"].tolist()
    assert samples.split_names == ["split_0"]
    assert not [name for name in samples.features if name.startswith("part")]


def test_several_values_are_positive_and_any_are_classes(tmp_path: Path) -> None:
    frame = loans()
    written(tmp_path, frame)
    several = load(tmp_path, target="code", positive=[2, 3], drop=["repaid"])
    assert several.classes == ("1", "2 or 3")
    np.testing.assert_array_equal(several.y, frame["code"] > 1)
    every = load(tmp_path, target="code", positive=[], outcome="classes")
    assert every.classes == ("1", "2", "3")
    np.testing.assert_array_equal(every.y, frame["code"] - 1)
    number = load(tmp_path, target="income", positive=[], outcome="continuous")
    np.testing.assert_array_equal(number.y, frame["income"].astype(np.float32))
    assert number.classes == ()


def test_bins_cut_at_the_points_given_or_into_equal_groups(tmp_path: Path) -> None:
    frame = loans()
    written(tmp_path, frame)
    cut = load(tmp_path, sensitive="age", bins={"age": [30, 60]}).attributes["age"]
    expected = np.select([frame["age"] < 30, frame["age"] < 60], [0, 1], 2)
    np.testing.assert_array_equal(cut.cat.codes, expected)
    assert list(cut.cat.categories) == ["age < 30", "30 <= age < 60", "age >= 60"]
    equal = load(tmp_path, sensitive="income", bins={"income": 3}).attributes["income"]
    assert equal.value_counts().tolist() == [20, 20, 20]


def test_rows_without_a_value_are_left_out_on_demand_and_attributes_may_miss(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    frame = loans().astype({"age": object})
    frame.loc[4, "age"], frame.loc[9, "repaid"], frame.loc[11, "sex"] = "?", None, None
    written(tmp_path, frame)
    options = {"missing": ["", "?"], "drop": ["part", "number"], "drop_sensitive": True}
    with pytest.raises(InputError, match=r"loans\.csv, row 5: age is missing; 2 rows lack"):
        load(tmp_path, **options)
    with caplog.at_level("INFO"):
        samples = load(tmp_path, incomplete="drop", **options)
    assert "2 of 60 rows left out" in caplog.text
    assert samples.id.tolist() == [k for k in range(60) if k not in (4, 9)]
    assert samples.attributes["sex"].isna().sum() == 1
    assert samples.attributes["sex"].isna()[samples.id == 11].all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "repayed"}, r"loans\.csv: unknown column 'repayed': did you mean 'repaid'"),
        ({"sensitive": ["sexe"]}, r"unknown column 'sexe': did you mean 'sex'"),
        ({"features": ["agee"]}, r"unknown column 'agee': did you mean 'age'"),
        ({"drop": ["agee"]}, r"unknown column 'agee': did you mean 'age'"),
        ({"features": ["repaid"]}, r"features: repaid is the target"),
        ({"types": {"agee": "number"}}, r"types: unknown column 'agee'"),
        ({"positive": "Yes"}, r"column repaid: unknown positive value 'Yes': did you mean 'yes'"),
        ({"positive": ["yes", "no"]}, r"column repaid: every value is positive"),
        ({"types": {"job": "number"}}, r"column job, row 1: '.*', allowed: a finite number"),
        ({"sensitive": ["number"]}, r"column number: 120 distinct values, .* at most 100 .* bins"),
        ({"split": "job"}, r"column job: unknown part"),
        ({"split": "part", "unit": "person"}, r"column part: person \d+ is in several parts"),
        ({"id": "person"}, r"column person: \d+ occurs in two rows"),
        ({"bins": {"sex": [1.0]}}, r"column sex, row 1: '[fm]', allowed: a finite number"),
        ({"sensitive": ["age"], "bins": {"age": [10]}}, r"bin age < 10 is empty"),
        ({"sensitive": ["age"], "bins": {"age": [40, 30]}}, r"must increase"),
        ({"file": "own/other.csv"}, r"own/other\.csv is missing"),
        ({"file": "own/loans.txt"}, r"own/loans\.txt: unknown format, allowed: \.csv"),
    ],
)
def test_wrong_parameters_are_one_line(
    tmp_path: Path, options: dict[str, object], message: str
) -> None:
    written(tmp_path, loans(120))
    with one_line(message):
        load(tmp_path, **{"drop": [] if "features" in options else ["number"], **options})


cell = partial(loading.cell, row=8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.rename(columns={"person": "age"}), r"several columns are named 'age'; names"),
        (lambda t: t.assign(sex="m"), r"column sex: every row has the value m"),
        (lambda t: t.assign(repaid="yes"), r"column repaid: every row has"),
        (cell("age", "nan"), r"column age: 59 cells are numbers and 1 are not, .*row 8"),
        (cell("age", "-1e39"), r"column age, row 8: .*1e.?39', allowed: .*float32"),
    ],
)
def test_damaged_files_are_one_line(tmp_path: Path, change, message: str) -> None:
    written(tmp_path, change(loans()))
    with one_line(message):
        load(tmp_path, drop=["number"])


def test_numbers_and_text_are_categories_where_that_is_declared(tmp_path: Path) -> None:
    written(tmp_path, cell("age", "nan")(loans()))
    assert "age=nan" in load(tmp_path, drop=["number"], types={"age": "category"}).features


def test_a_csv_file_under_the_name_of_parquet_is_refused(tmp_path: Path) -> None:
    written(tmp_path, loans())
    content = (tmp_path / "own" / "loans.csv").read_bytes()
    (tmp_path / "own" / "loans.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"loans\.parquet: is no Parquet file"):
        load(tmp_path, file="own/loans.parquet")
    (tmp_path / "own" / "loans.parquet").write_bytes(b"PAR1" + content)
    with pytest.raises(InputError, match=r"loans\.parquet: not a readable Parquet file"):
        load(tmp_path, file="own/loans.parquet")


def test_text_of_a_csv_file_is_taken_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "x.csv.gz").write_bytes(
        gzip.compress(b'\xef\xbb\xbfa;b\r\n NA;"x;\ny"\r\n\r\n;1\r\n')
    )
    table = read_columns(Files(tmp_path), "x.csv.gz", ["b", "a"], ";")
    assert list(table) == ["b", "a"]
    assert table["b"].tolist() == ["x;\ny", "1"]
    assert table["a"].tolist()[0] == " NA"
    assert table["a"].isna().tolist() == [False, True]


def test_categories_of_numbers_are_in_the_order_of_the_numbers() -> None:
    categories = columns.as_categories(pd.Series([10, 9, 2, 10]), "x")
    assert list(categories.cat.categories) == ["2", "9", "10"]
    assert categories.tolist() == ["10", "9", "2", "10"]
    text = columns.as_categories(pd.Series(["b", None, "a"]), "x")
    assert text.cat.codes.tolist() == [1, -1, 0]


def wide(text: str) -> str:
    """The text with its first letter as a full-width form of it."""
    return chr(ord(text[0]) + 0xFEE0) + text[1:]


@pytest.mark.parametrize("spelling", [str.upper, "{} ".format, "\u200b{}".format, wide])
@pytest.mark.parametrize(("column", "name"), [("sex", "f"), ("repaid", "no")])
def test_values_that_look_alike_are_refused_until_they_are_merged(
    tmp_path: Path, column: str, name: str, spelling: Callable[[str], str]
) -> None:
    """The message has the line that merges them."""
    frame = loans()
    changed = frame.index[frame[column] == name][:3]
    frame.loc[changed, column] = spelling(name)
    written(tmp_path, frame)
    with pytest.raises(InputError, match="differ only in case, blanks or invisible") as error:
        load(tmp_path, drop=["number"])
    assert f"column {column}: '{name}' ({(frame[column] == name).sum()} rows)" in str(error.value)
    assert "(3 rows) differ" in str(error.value)
    merged = yaml.safe_load("{" + str(error.value).split("in the table or by ")[1] + "}")
    samples = load(tmp_path, drop=["number"], **merged)
    written(tmp_path, loans())
    plain = load(tmp_path, drop=["number"])
    np.testing.assert_array_equal(samples.y, plain.y)
    assert samples.attributes["sex"].tolist() == plain.attributes["sex"].tolist()


def test_several_values_that_are_not_positive_have_to_be_named(tmp_path: Path) -> None:
    frame = loans()
    frame.loc[frame.index[:3], "repaid"] = "maybe"
    written(tmp_path, frame)
    no = (frame["repaid"] == "no").sum()
    message = rf"'maybe' \(3 rows\), 'no' \({no} rows\), allowed: every value in one of them"
    with pytest.raises(InputError, match=message):
        load(tmp_path, drop=["number"])
    with pytest.raises(InputError, match=r"neither positive nor negative: 'maybe' \(3 rows\)"):
        load(tmp_path, drop=["number"], negative="no")
    with pytest.raises(InputError, match="unknown negative value 'nein'"):
        load(tmp_path, drop=["number"], negative=["no", "maybe", "nein"])
    for negative in ("rest", ["no", "maybe"]):
        samples = load(tmp_path, drop=["number"], negative=negative)
        np.testing.assert_array_equal(samples.y, frame["repaid"] == "yes")


def test_numbers_with_a_unit_are_numbers_if_it_is_named(tmp_path: Path) -> None:
    frame = loans()
    written(tmp_path, frame.assign(age=frame["age"].astype(str) + " kg"))
    samples = load(tmp_path, drop=["number"], suffixes={"age": "kg"})
    written(tmp_path, frame)
    np.testing.assert_array_equal(samples.x, load(tmp_path, drop=["number"]).x)
    with pytest.raises(InputError, match="unknown column 'agee'"):
        load(tmp_path, drop=["number"], suffixes={"agee": "kg"})


# Images


FACES = {
    "file": "faces/list.csv", "images": "faces/files", "image": "name", "target": "smile",
    "positive": 1, "sensitive": ["skin"], "size": 6,
}  # fmt: skip


load_faces = partial(loading.load, "image_folder", splits=2, **FACES)


def faces(root: Path, rows: int = 30) -> pd.DataFrame:
    """Plain images, every second of them PNG, and their table."""
    rng = np.random.default_rng(0)
    (root / "faces" / "files").mkdir(parents=True)
    frame = pd.DataFrame(
        {
            "name": [f"{k}.{'png' if k % 2 else 'JPG'}" for k in range(rows)],
            "smile": rng.choice([0, 1], rows),
            "skin": rng.choice(["light", "dark"], rows),
            "tone": rng.random(rows),
            "part": rng.permutation(np.repeat(["train", "val", "test"], rows // 3)),
        }
    )
    for number, name in enumerate(frame["name"]):
        plain = Image.new("RGB", (12, 10), (8 * number, 50, 100))
        content = encoded(plain, "PNG" if number % 2 else "JPEG", quality=75)
        (root / "faces" / "files" / name).write_bytes(content)
    (root / "faces" / "files" / "notes.txt").write_text("no image")
    (root / "faces" / "files" / "another.png").write_bytes(
        encoded(Image.new("RGB", (12, 10)), "PNG")
    )
    frame.to_csv(root / "faces" / "list.csv", index=False)
    return frame


def test_every_row_has_its_own_image_and_attributes(tmp_path: Path) -> None:
    frame = faces(tmp_path)
    samples = load_faces(tmp_path, sensitive=["skin", "tone"], split="part")
    assert samples.x.shape == (30, 3, 6, 6)
    red = samples.x[:, 0].astype(int)
    assert abs(red - 8 * np.arange(30)[:, None, None]).max() < 6
    np.testing.assert_array_equal(red[1::2, 0, 0], 8 * np.arange(1, 30, 2))  # PNG loses nothing
    np.testing.assert_array_equal(samples.y, frame["smile"])
    assert samples.id.tolist() == frame["name"].tolist()
    assert samples.attributes["skin"].tolist() == frame["skin"].tolist()
    np.testing.assert_allclose(samples.attributes["tone"], frame["tone"])
    assert samples.splits["split_0"].tolist() == frame["part"].tolist()
    assert set(samples.sources) == {"faces/list.csv", "faces/files"}


def test_images_of_sixteen_bits_are_one_line(tmp_path: Path) -> None:
    faces(tmp_path)
    deep = Image.fromarray(np.full((9, 9), 40_000, np.uint16))
    (tmp_path / "faces" / "files" / "5.png").write_bytes(encoded(deep, "PNG"))
    with pytest.raises(InputError, match=r"image 5\.png \(row 5\): .* mode I;16, allowed: 8 bits"):
        load_faces(tmp_path)


def test_a_column_that_float32_would_blur_is_refused():
    """Seconds since 1970: within a minute refused, within a year, or as differences, not."""
    minute = np.arange(60.0)
    for values in (minute, 1_700_000_000 + minute * 5e5, np.full(60, 1e9), np.array([np.nan])):
        require_float32(values, "t.csv: opened")
    with pytest.raises(InputError, match="t.csv: opened: 1700000000 to 1700000059.*nearer to 0"):
        require_float32(1_700_000_000 + minute, "t.csv: opened")
