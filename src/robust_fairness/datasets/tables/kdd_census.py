"""KDD census income: income above 50,000 dollars in surveys of 1994 and 1995 (Lane and Kohavi).

What is known of the fields comes from the codebook ``census-income.names`` of the UCI repository.
"""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.base import TableDataset, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import Category, Field, Number, validated
from robust_fairness.datasets.raw.text import read_table
from robust_fairness.datasets.tables._tables import FaircoccoParameters, only_of, two_categories
from robust_fairness.samples.splits import official_splits

TRAINING, TEST = "kdd_census/census-income.data", "kdd_census/census-income.test"
ROWS = {TRAINING: 199_523, TEST: 99_762}
WEIGHT = "instance weight"
TARGET = "label"
AMOUNT = Number(0)
RACES = (
    "White", "Black", "Other", "Amer Indian Aleut or Eskimo", "Asian or Pacific Islander",
)  # fmt: skip
KNOWN: dict[str, Field] = {
    "age": Number(0, 120, whole=True),
    "race": Category(RACES),
    "sex": Category(("Female", "Male")),
    "num persons worked for employer": Number(0, 6, whole=True),
    "weeks worked in year": Number(0, 52, whole=True),
    TARGET: Category({"- 50000.": "<=50K", "50000+.": ">50K"}),
}
# The fields of a line, with the number of categories that the codebook counts in
# census-income.data, "Not in universe" and "?" among them; those without are known or amounts.
_FIELDS = pd.read_csv(Path(__file__).with_name("kdd_census.csv"), index_col="name")["categories"]
COUNTS = {str(name): int(count) for name, count in _FIELDS.dropna().items()}
COLUMNS = tuple(_FIELDS.index)
FEATURES = tuple(name for name in COLUMNS if name not in (WEIGHT, TARGET))


class KddCensus(TableDataset):
    """Forty facts about a person, and the person's income; class 0 is ``<=50K``.

    The instance weight is no feature, as the codebook demands. The categories are those of
    ``census-income.data``, sorted; the codebook says how many there are.

    Source: "FairCOCCO", Table 7.
    """

    class Parameters(FaircoccoParameters):
        """Parameters of the KDD census data.

        Attributes:
            split: ``official``: all seeds share the test file, and only validation rows are drawn,
                as in the source; ``random``: both files are one table, split at random.
            drop: columns left out of the features; the two detailed recodes, the state and the
                three countries of birth make more than half of them.
            sensitive: ``race`` is White or other, ``race_full`` has the five categories of the
                file.
            train_rows: of the random split; the official one has its own size.
        """

        split: Literal["official", "random"] = "official"
        drop: Annotated[tuple[str, ...], only_of("feature", FEATURES)] = ()
        sensitive: tuple[Literal["sex", "race", "age", "race_full"], ...] = ("sex", "race", "age")

    raw_files = tuple(ROWS)
    feature_columns: ClassVar = {"race_full": ("race",)}

    def read(self, files: Files, splits: int) -> TypedTable:
        table = _read(files)
        official = self.parameters.split == "official"
        return TypedTable(
            target=table.pop(TARGET),
            features=table.drop(columns=list(self.parameters.drop)),
            attributes={
                "sex": table["sex"],
                "race": two_categories(table["race"] != "White", ("White", "other")),
                "race_full": table["race"],
                "age": table["age"],
            },
            splits=official_splits(ROWS[TRAINING], ROWS[TEST], splits, self.parameters)
            if official
            else None,
        )


def _read(files: Files) -> pd.DataFrame:
    """Both files as one table of features and label, typed."""
    fields = {name: KNOWN.get(name, AMOUNT) for name in COLUMNS}
    tables = []
    for name, rows in ROWS.items():
        cells = read_table(files, name, COLUMNS, rows)
        if name == TRAINING:
            fields |= {name: _categories(cells[name], count) for name, count in COUNTS.items()}
        typed = validated(cells, fields, name)
        tables.append(typed[[*FEATURES, TARGET]])
    return pd.concat(tables, ignore_index=True)


def _categories(cells: pd.Series, count: int) -> Category:
    """The categories that occur, sorted."""
    rows = cells.value_counts()
    if len(rows) < count:
        raise InputError(
            f"{TRAINING}, column {cells.name}: {len(rows)} categories, expected {count}"
        )
    if len(rows) > count:
        rarest = rows.index[-1]
        line = cells.index[cells == rarest][0]
        raise InputError(
            f"{TRAINING}, line {line}, column {cells.name}: {rarest!r} is the rarest of "
            f"{len(rows)} categories, expected {count}"
        )
    return Category(tuple(sorted(map(str, rows.index))))
