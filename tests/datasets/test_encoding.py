"""Rows of a raw table become the features that training had."""

import io

import numpy as np
import pandas as pd
import pytest

from robust_fairness.bench.datasets.encoding import columns_of, encoded
from robust_fairness.bench.datasets.fetch import dataset_files
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find
from tests.datasets import loading

OWN = {"file": "own.csv", "target": "y", "positive": "yes", "sensitive": ["sex"]}
OWN |= {"incomplete": "impute", "types": {"code": "category"}}


def table(rows: int = 90) -> pd.DataFrame:
    """Numbers, whole numbers, codes, text and missing cells of each."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "income": rng.normal(30, 5, rows).round(2),
            "age": rng.integers(18, 80, rows),
            "code": rng.choice([1, 2, 10], rows),
            "job": rng.choice(["clerk", "=SUM(a)", "Größe, 2"], rows),
            "sex": rng.choice(["f", "m"], rows),
            "known": rng.choice(["True", "False"], rows),
            "visits": rng.integers(0, 4, rows),
            "y": rng.choice(["yes", "no"], rows),
        }
    )
    frame = frame.astype({"visits": "Int64", "code": "Int64"})
    for place, name in enumerate(("income", "job", "visits", "code")):
        frame[name] = frame[name].mask(rng.random(rows) < 0.1 + place / 50)
    return frame


def as_it_is(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


def read_again(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(frame.to_csv(index=False)))


def as_text(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(frame.to_csv(index=False)), dtype=str)


FORMS = {
    "as trained": as_it_is,
    "read_csv": read_again,
    "text": as_text,
    "nullable": lambda frame: read_again(frame).convert_dtypes(),
    "pyarrow": lambda frame: read_again(frame).convert_dtypes(dtype_backend="pyarrow"),
    "float32": lambda frame: read_again(frame).astype({"income": "float32", "age": "float32"}),
    "objects": lambda frame: read_again(frame).astype(object),
    "small integers": lambda frame: read_again(frame).astype({"age": "int8"}),
    "categories": lambda frame: read_again(frame).astype({"job": "category", "code": "category"}),
    "other order": lambda frame: read_again(frame)[sorted(frame, reverse=True)],
    "a single row": lambda frame: read_again(frame).iloc[[0]],
    "other index": lambda frame: read_again(frame).set_axis(range(7, 7 + len(frame))),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    root = tmp_path_factory.mktemp("raw")
    table().to_csv(root / "own.csv", index=False)
    return loading.load("table", root, splits=1, **OWN)


@pytest.mark.parametrize("form", FORMS)
def test_features_of_a_table_are_those_of_training_bit_by_bit(trained, form):
    rows = FORMS[form](table())
    made = encoded(rows, columns_of(trained), trained.features)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, trained.x[: len(rows)])


def test_columns_are_those_of_the_table(trained):
    columns = {column.name: column for column in columns_of(trained)}
    assert [*columns] == ["income", "age", "visits", "code", "job", "sex", "known"]
    assert columns["code"].categories == ("1", "2", "10", "missing")
    assert [name for name in columns if columns[name].missing is not None] == ["income", "visits"]


@pytest.mark.parametrize(
    ("name", "row", "value", "message"),
    [
        ("age", 3, None, "row 3, column age: missing, allowed: a finite number"),
        ("age", 2, "old", "row 2, column age: 'old', allowed: a finite number"),
        ("income", 1, 1e300, "row 1, column income: 1e+300, allowed: a finite number"),
        ("income", 0, np.inf, "row 0, column income: inf, allowed: a finite number"),
        ("job", 4, "boss", "row 4, column job: 'boss', allowed: =SUM(a), Größe, 2, clerk, missing"),
        ("code", 4, 3, "row 4, column code: 3, allowed: 1, 2, 10, missing"),
        ("sex", 5, None, "row 5, column sex: missing, allowed: f, m"),
    ],
)
def test_a_cell_that_training_had_not_is_refused(trained, name, row, value, message):
    rows = table().astype(object)
    rows.loc[row, name] = value
    with pytest.raises(InputError) as error:
        encoded(rows, columns_of(trained), trained.features)
    assert str(error.value) == message


@pytest.mark.parametrize("name", ["diabetes", "acs_states"])
def test_bundled_tables_have_columns_of_their_own(name):
    """A frame of columns, made of features by numpy, gives the features."""
    dataset = find("dataset", name)
    samples = dataset(dataset.Parameters()).load(dataset_files(), 1)
    columns = columns_of(samples)
    rows = {}
    for column in columns:
        places = [k for k, of in enumerate(samples.columns) if of == column.name]
        values = samples.x[:500, places]
        if column.categories:
            rows[column.name] = np.array(column.categories, dtype=object)[values.argmax(1)]
        else:
            rows[column.name] = values[:, 0].astype(np.float64)
    frame = pd.DataFrame(rows)
    frame = frame.replace("not applicable", None)
    np.testing.assert_array_equal(encoded(frame, columns, samples.features), samples.x[:500])
