"""KDD census income: income above 50,000 dollars in surveys of 1994 and 1995 (Lane and Kohavi).

What is known of the fields comes from the codebook ``census-income.names`` of the UCI repository.
"""

from typing import Annotated, ClassVar, Literal

import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.base import TableDataset, TableParameters, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import Category, Field, Number, validated
from robust_fairness.datasets.raw.text import read_table
from robust_fairness.datasets.tables._tables import only_of, two_categories
from robust_fairness.samples.splits import Fraction, official_splits

TRAINING, TEST = "kdd_census/census-income.data", "kdd_census/census-income.test"
ROWS = {TRAINING: 199_523, TEST: 99_762}
WEIGHT = "instance weight"
TARGET = "label"
AMOUNT = Number(0)
RACES = (
    "White", "Black", "Other", "Amer Indian Aleut or Eskimo", "Asian or Pacific Islander",
)  # fmt: skip
# The fields of a line. A number stands for a category of which the codebook counts so many in
# census-income.data, "Not in universe" and "?" among them.
COLUMNS: dict[str, Field | int] = {
    "age": Number(0, 120, whole=True),
    "class of worker": 9,
    "detailed industry recode": 52,
    "detailed occupation recode": 47,
    "education": 17,
    "wage per hour": AMOUNT,
    "enroll in edu inst last wk": 3,
    "marital stat": 7,
    "major industry code": 24,
    "major occupation code": 15,
    "race": Category(RACES),
    "hispanic origin": 10,
    "sex": Category(("Female", "Male")),
    "member of a labor union": 3,
    "reason for unemployment": 6,
    "full or part time employment stat": 8,
    "capital gains": AMOUNT,
    "capital losses": AMOUNT,
    "dividends from stocks": AMOUNT,
    "tax filer stat": 6,
    "region of previous residence": 6,
    "state of previous residence": 51,
    "detailed household and family stat": 38,
    "detailed household summary in household": 8,
    WEIGHT: AMOUNT,
    "migration code-change in msa": 10,
    "migration code-change in reg": 9,
    "migration code-move within reg": 10,
    "live in this house 1 year ago": 3,
    "migration prev res in sunbelt": 4,
    "num persons worked for employer": Number(0, 6, whole=True),
    "family members under 18": 5,
    "country of birth father": 43,
    "country of birth mother": 43,
    "country of birth self": 43,
    "citizenship": 5,
    "own business or self employed": 3,
    "fill inc questionnaire for veteran's admin": 3,
    "veterans benefits": 3,
    "weeks worked in year": Number(0, 52, whole=True),
    "year": 2,
    TARGET: Category({"- 50000.": "<=50K", "50000+.": ">50K"}),
}
FEATURES = tuple(name for name in COLUMNS if name not in (WEIGHT, TARGET))


class KddCensus(TableDataset):
    """Forty facts about a person, and the person's income.

    Class 0 is ``<=50K``. Attributes are ``sex``, ``race`` (White, other), ``race_full`` and
    ``age`` in years. The instance weight is no feature, as the codebook demands. The categories
    are those of ``census-income.data``, sorted; the codebook says how many there are.

    Source: "FairCOCCO", Table 7.
    """

    class Parameters(TableParameters):
        """Parameters of the KDD census data.

        Attributes:
            split: ``official``: all seeds share the test file, and only validation rows are drawn,
                as the source has it for data with a test set of their own; ``random``: both files
                are one table, split at random.
            drop: columns left out of the features; the two detailed recodes, the state and the
                three countries of birth make more than half of them.
            sensitive: attributes that methods mitigate; ``race`` is White or other,
                ``race_full`` has the five categories of the file.
            train_rows: of the random split; the official one has its own size.
            val_fraction: the source splits 60 / 20 / 20.
        """

        split: Literal["official", "random"] = "official"
        drop: Annotated[tuple[str, ...], only_of("feature", FEATURES)] = ()
        sensitive: tuple[Literal["sex", "race", "age", "race_full"], ...] = ("sex", "race", "age")
        val_fraction: Fraction = 0.25

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
    fields = {name: field for name, field in COLUMNS.items() if not isinstance(field, int)}
    tables = []
    for name, rows in ROWS.items():
        cells = read_table(files, name, list(COLUMNS), rows)
        for column, count in COLUMNS.items():
            if isinstance(count, int) and name == TRAINING:
                fields[column] = _categories(cells[column], count)
        typed = validated(cells, fields, name)
        tables.append(typed[[*FEATURES, TARGET]])
    return pd.concat(tables, ignore_index=True)


def _categories(cells: pd.Series, count: int) -> Category:
    """The categories that occur, sorted."""
    rows = cells.value_counts()
    if len(rows) < count:
        raise InputError(
            f"{TRAINING}, column {cells.name}: {len(rows)} categories, allowed: {count}"
        )
    if len(rows) > count:
        rarest = rows.index[-1]
        line = cells.index[cells == rarest][0]
        raise InputError(
            f"{TRAINING}, line {line}, column {cells.name}: {rarest!r} is the rarest of "
            f"{len(rows)} categories, allowed: {count}"
        )
    return Category(tuple(sorted(map(str, rows.index))))
