"""Schemas: cells become typed columns, and the first that does not fit is told in one line."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_fairness.auditing.read.schemas import Category, Number, validated
from robust_fairness.core.errors import InputError

FIELDS = {
    "age": Number(18, 96, whole=True),
    "wage": Number(missing=("?", "")),
    "sex": Category({"1": "male", "2": "female", "3": "male"}),
}


def cells(**columns: list[str]) -> pd.DataFrame:
    whole = {"age": ["20", "30"], "wage": ["1e3", "?"], "sex": ["3", "2"]}
    return pd.DataFrame(whole | columns, dtype="category")


def test_cells_become_numbers_and_categories() -> None:
    table = validated(cells(other=["x", "x"]), FIELDS, "toy.csv")
    assert list(table) == list(FIELDS)
    assert list(table.index) == [0, 1]
    assert table["age"].tolist() == [20.0, 30.0]
    np.testing.assert_array_equal(table["wage"], [1000.0, np.nan])
    assert table["sex"].tolist() == ["male", "female"]
    assert list(table["sex"].cat.categories) == ["male", "female"]


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("age", "17", "'17', allowed: a finite whole number, 18 or more, 96 or less"),
        ("age", "20.5", "'20.5', allowed: a finite whole number, 18 or more, 96 or less"),
        ("age", "", "'', allowed: a finite whole number, 18 or more, 96 or less"),
        *(
            ("wage", cell, f"{cell!r}, allowed: a finite number or '?' or ''")
            for cell in ("NaN", "-inf", "1e999", "4O", "0x", "inf", "1_000")
        ),
        ("sex", "4", "unknown category '4'. Allowed: 1, 2, 3"),
        ("sex", "", "unknown category ''. Allowed: 1, 2, 3"),
    ],
)
def test_cell_that_does_not_fit_is_named(column: str, cell: str, message: str) -> None:
    table = cells(**{column: [cells()[column][0], cell]})
    with pytest.raises(InputError) as error:
        validated(table, FIELDS, "toy.csv")
    assert str(error.value) == f"toy.csv, row 2, column {column}: {message}"


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=1))
def test_first_failure_is_that_of_the_first_field_and_its_lowest_row(
    wrong: list[tuple[int, int]],
) -> None:
    table = pd.concat([cells().astype(object)] * 5, ignore_index=True)
    for row, column in wrong:
        table.loc[row, list(FIELDS)[column]] = "x"
    column, row = min((column, row) for row, column in wrong)
    with pytest.raises(InputError, match=f"row {row + 1}, column {list(FIELDS)[column]}: "):
        validated(table.astype("category"), FIELDS, "toy.csv")


@pytest.mark.parametrize(
    ("field", "allowed"),
    [
        (Number(), "a finite number"),
        (Number(0), "a finite number, 0 or more"),
        (Number(high=2.5), "a finite number, 2.5 or less"),
        (Number(whole=True), "a finite whole number"),
        (Number(-1, 1), "a finite number, -1 or more, 1 or less"),
    ],
)
def test_problem_says_what_is_allowed(field: Number, allowed: str) -> None:
    assert field.problem("x") == f"'x', allowed: {allowed}"


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_printed_numbers_are_read_back(values: list[float]) -> None:
    table = pd.DataFrame({"wage": [repr(value) for value in values]}, dtype="category")
    read = validated(table, {"wage": Number()}, "toy.csv")
    np.testing.assert_allclose(read["wage"], np.array(values), rtol=1e-15)
