"""Tables: strict reading, categories, thresholds and what becomes samples."""

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import OneHotEncoder

from robust_fairness.auditing.read.reading import read_cells
from robust_fairness.auditing.read.schemas import Category, Field, validated
from robust_fairness.bench.datasets.base import TableDataset, TableParameters, TypedTable, one_hot
from robust_fairness.bench.datasets.tables._tables import TopShareParameters, top_share
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from tests.datasets.loading import one_line


def table(text: str, rows: int) -> pd.DataFrame:
    return read_cells([text.encode()], "toy.data", header=["age", "sex"], rows=rows)


def test_comments_empty_lines_and_spaces_are_skipped() -> None:
    read = table("|comment\n39, Male\n\n40, Female\n\n", 2)
    assert read.to_dict("index") == {
        0: {"age": "39", "sex": "Male"},
        1: {"age": "40", "sex": "Female"},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("39, Male\n40\n", r"toy\.data, line 2: 1 fields, expected 2"),
        ("39, Male\n40, Female, x\n", r"toy\.data, line 2: 3 fields, expected 2"),
        ("39, Male\n", r"toy\.data: 1 rows, expected 2; the file may be incomplete"),
        ("39, Male\n40, Fe\rmale\n", r"toy\.data, line 3: 1 fields"),
        ("", r"toy\.data: 0 rows, expected 2"),
    ],
)
def test_garbled_table_is_one_line_that_names_file_and_line(text: str, message: str) -> None:
    with one_line(message):
        table(text, 2)


def typed(column: pd.Series, field: Field) -> pd.Series:
    return validated(column.astype("category").to_frame(), {column.name: field}, "toy.data")[
        column.name
    ]


@given(st.lists(st.sampled_from("abc"), min_size=1))
def test_one_hot_agrees_with_scikit_learn_whatever_rows_there_are(cells: list[str]) -> None:
    order = ["c", "a", "b", "never seen"]
    column = typed(pd.Series(cells, name="kind"), Category(tuple(order)))
    encoded = one_hot(pd.DataFrame({"kind": column, "age": np.arange(len(cells), dtype=float)}))
    encoder = OneHotEncoder(categories=[order], sparse_output=False)
    assert list(encoded) == ["age", *(f"kind={name}" for name in order)]
    np.testing.assert_array_equal(
        encoded.drop(columns="age"), encoder.fit_transform(np.array(cells, dtype=object)[:, None])
    )


values = st.lists(st.integers(0, 5), min_size=2, max_size=40).filter(lambda v: len(set(v)) > 1)
values = values.map(lambda v: pd.Series(v, dtype="float64"))
shares = st.floats(0.05, 0.95)


@given(values, shares)
def test_ties_by_rank_give_the_exact_share_of_the_largest(values: pd.Series, share: float) -> None:
    top = top_share(values, "toy.data", TopShareParameters(share=share)).cat.codes == 0
    assert top.sum() == max(1, round(share * len(values)))
    assert values[top].min() >= values[~top].max() or top.all()


@given(values, shares)
def test_ties_at_the_threshold_stay_together(values: pd.Series, share: float) -> None:
    together = (
        top_share(values, "toy.data", TopShareParameters(share=share, ties="threshold")).cat.codes
        == 0
    )
    by_rank = top_share(values, "toy.data", TopShareParameters(share=share)).cat.codes == 0
    assert set(values[together]).isdisjoint(values[~together])
    assert together[by_rank].all()
    assert set(values[together]) == set(values[by_rank])


@given(values)
def test_top_class_exchanges_the_numbers_and_not_the_names(values: pd.Series) -> None:
    first = top_share(values, "toy.data", TopShareParameters(top_class=0))
    second = top_share(values, "toy.data", TopShareParameters(top_class=1))
    assert list(first.cat.categories) == ["top 30 %", "rest"]
    assert list(second.cat.categories) == ["rest", "top 30 %"]
    assert first.tolist() == second.tolist()


@pytest.mark.parametrize("ties", ["rank", "threshold"])
def test_constant_numbers_have_no_top_share(ties: str) -> None:
    values = pd.Series([0.2] * 10, name="share of divorces")
    with pytest.raises(
        InputError, match=r"toy\.data: share of divorces: every row has the value 0\.2;"
    ):
        top_share(values, "toy.data", TopShareParameters(ties=ties))


class Toy(TableDataset):
    Parameters = TableParameters

    def __init__(self, target: list[str], sex: list[str], first: int = 0, step: int = 1) -> None:
        super().__init__(TableParameters(sensitive=("sex",), train_rows=0.5, val_fraction=0.5))
        rows = pd.RangeIndex(first, first + step * len(target), step)
        self.table = TypedTable(
            features=pd.DataFrame({"age": np.arange(len(rows), dtype=float)}, index=rows),
            target=pd.Series(pd.Categorical(target), index=rows, name="income"),
            attributes={"sex": pd.Series(pd.Categorical(sex))},
        )

    def read(self, files: Files, splits: int) -> TypedTable:
        files.sources["toy.data"] = "0" * 64
        return self.table


@pytest.mark.parametrize(
    ("target", "sex", "message"),
    [
        (["low"] * 40, ["m", "f"] * 20, r"toy\.data: target: every row has the value low;"),
        (["low", "high"] * 20, ["m"] * 40, r"toy\.data: sex: every row has the value m;"),
        (["low"] * 39 + ["high"], ["m", "f"] * 20, r"split_0: its \w+ part has no row of class"),
    ],
)
def test_single_valued_columns_and_missing_classes_are_refused(
    tmp_path: Path, target: list[str], sex: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Toy(target, sex).load(Files(tmp_path), 1)


def test_samples_keep_the_row_numbers_of_the_table(tmp_path: Path) -> None:
    toy = Toy(["low", "high"] * 20, ["m", "m", "f", "f"] * 10, first=100, step=2)
    samples = toy.load(Files(tmp_path), 1)
    assert samples.id.tolist() == list(range(100, 180, 2))
    assert samples.y.tolist() == [1, 0] * 20
    assert samples.classes == ("high", "low")
    assert samples.attributes["sex"].tolist() == ["m", "m", "f", "f"] * 10


def csv_table(text: str, rows: int | None, *columns: str) -> pd.DataFrame:
    return read_cells([text.encode()], "toy.csv", columns, rows=rows)


def test_quoted_cells_keep_delimiters_quotes_spaces_and_line_ends() -> None:
    text = 'id,name,age\r\n1,"O\'Hara, ""Jo""\r\nAnn",20\r\n\r\n2, ,\r\n'
    assert csv_table(text, 2, "age", "name").to_dict("index") == {
        0: {"age": "20", "name": 'O\'Hara, "Jo"\r\nAnn'},
        1: {"age": "", "name": " "},
    }


@given(
    st.lists(
        st.tuples(*[st.text(st.characters(codec="utf-8", exclude_characters="\r"))] * 2), min_size=1
    )
)
def test_what_the_standard_writer_writes_is_read_back(cells: list[tuple[str, str]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([("first", "second"), *cells])
    read = csv_table(text.getvalue(), len(cells), "first", "second")
    assert list(read.itertuples(index=False, name=None)) == cells


def test_the_first_of_repeated_columns_is_read_and_rows_may_be_of_any_number() -> None:
    read = csv_table("a,b,a\n1,2,3\n4,5,6\n", None, "a", "b")
    assert read.to_dict("list") == {"a": ["1", "4"], "b": ["2", "5"]}
    read = read_cells([b'\n"id, or number";age\n1;2\n3;4\n'], "toy.csv", delimiter=";")
    assert read.to_dict("list") == {"id, or number": ["1", "3"], "age": ["2", "4"]}
