"""Schemas: cells become typed columns, and the first that does not fit is told in one line."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.raw import schemas
from robust_fairness.datasets.raw.schemas import Category, Number, validated

FIELDS = {
    "age": Number(18, 96, whole=True),
    "wage": Number(missing=("?", "")),
    "sex": Category({"1": "male", "2": "female", "3": "male"}),
}


def cells(**columns: list[str]) -> pd.DataFrame:
    whole = {"age": ["20", "30"], "wage": ["1e3", "?"], "sex": ["3", "2"]}
    return pd.DataFrame(whole | columns, index=[4, 7], dtype="str")


def test_cells_become_numbers_and_categories() -> None:
    table = validated(cells().assign(other="x"), FIELDS, "toy.csv")
    assert list(table) == list(FIELDS)
    assert list(table.index) == [4, 7]
    assert table["age"].tolist() == [20.0, 30.0]
    np.testing.assert_array_equal(table["wage"], [1000.0, np.nan])
    assert table["sex"].tolist() == ["male", "female"]
    assert list(table["sex"].cat.categories) == ["male", "female"]


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("age", "17", "'17', allowed: a whole number from 18 to 96"),
        ("age", "20.5", "'20.5', allowed: a whole number from 18 to 96"),
        ("age", "", "'', allowed: a whole number from 18 to 96"),
        ("age", "?", "'?', allowed: a whole number from 18 to 96"),
        ("wage", "inf", "'inf', allowed: a finite number or '?' or ''"),
        ("wage", "nan", "'nan', allowed: a finite number or '?' or ''"),
        ("wage", "1_000", "'1_000', allowed: a finite number or '?' or ''"),
        ("sex", "4", "unknown category '4'. Allowed: 1, 2, 3"),
        ("sex", "", "unknown category ''. Allowed: 1, 2, 3"),
    ],
)
def test_cell_that_does_not_fit_is_named(column: str, cell: str, message: str) -> None:
    table = cells()
    table.loc[7, column] = cell
    with pytest.raises(InputError) as error:
        validated(table, FIELDS, "toy.csv")
    assert str(error.value) == f"toy.csv, line 7, column {column}: {message}"


@given(st.lists(st.sampled_from(["age", "wage", "sex"]), min_size=1), st.data())
def test_first_failure_is_that_of_the_lowest_line_and_the_first_field(
    columns: list[str], data: st.DataObject
) -> None:
    table = pd.concat([cells()] * 5, ignore_index=True)
    wrong = {(data.draw(st.integers(0, 9)), list(FIELDS).index(name)) for name in columns}
    for line, column in wrong:
        table.loc[line, list(FIELDS)[column]] = "x"
    line, column = min(wrong)
    with pytest.raises(InputError, match=f"line {line}, column {list(FIELDS)[column]}: "):
        validated(table, FIELDS, "toy.csv")


@pytest.mark.parametrize(
    ("field", "allowed"),
    [
        (Number(), "a finite number"),
        (Number(0), "a number, 0 or more"),
        (Number(high=2.5), "a number, 2.5 or less"),
        (Number(whole=True), "a whole number"),
        (Number(-1, 1), "a number from -1 to 1"),
    ],
)
def test_problem_says_what_is_allowed(field: Number, allowed: str) -> None:
    assert field.problem("x") == f"'x', allowed: {allowed}"


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_printed_numbers_are_read_back(values: list[float]) -> None:
    table = pd.DataFrame({"wage": [repr(value) for value in values]}, dtype="str")
    read = validated(table, {"wage": Number()}, "toy.csv")
    np.testing.assert_allclose(read["wage"], np.array(values), rtol=1e-15)


def test_missing_column_gives_the_nearest() -> None:
    table = cells().rename(columns={"wage": "wages"})
    with pytest.raises(InputError, match=r"^toy\.csv: unknown column 'wage': .*'wages'.* Allowed:"):
        validated(table, FIELDS, "toy.csv")


def test_pandera_is_imported_only_to_validate() -> None:
    code = f"import sys, {schemas.__name__}; assert 'pandera' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
