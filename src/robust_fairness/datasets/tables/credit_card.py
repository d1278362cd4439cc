"""Credit card clients in Taiwan in 2005, and who did not pay the next bill (Yeh and Lien 2009)."""

from typing import Literal

import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.base import TableDataset, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import Category, codebook, validated
from robust_fairness.datasets.raw.text import header, read_csv
from robust_fairness.datasets.tables._tables import FaircoccoParameters

DATA = "credit_card/default_of_credit_card_clients.csv"
ROWS = 30_000
# UCI's own name of the last column, and those of two public exports
TARGETS = ("default payment next month", "default payment", "default.payment.next.month")
UNDOCUMENTED = "undocumented"
ATTRIBUTES = ("SEX", "MARRIAGE", "EDUCATION", "AGE")
FIELDS = codebook(__file__)
PAID = Category({"0": "paid", "1": "default"})


class CreditCard(TableDataset):
    """Credit limit, half a year of bills and payments, and whether the next month is a default.

    Of the 24 columns 23 are features. Class 0 is ``paid``. Attributes are ``SEX``, ``MARRIAGE``,
    ``EDUCATION`` (categories) and ``AGE`` in years. The table is UCI's spreadsheet exported as
    CSV with its second header row, with or without the column ``ID``.

    Source: "FairCOCCO", Table 7.
    """

    class Parameters(FaircoccoParameters):
        """Parameters of the credit card clients.

        Attributes:
            undocumented: the codes 0, 5 and 6 of ``EDUCATION`` and 0 of ``MARRIAGE`` join the
                documented category ``others``, are a category of their ``own``, which may be too
                small for rates, or their rows are left out (``drop``).
        """

        undocumented: Literal["others", "own", "drop"] = "others"
        sensitive: tuple[Literal["SEX", "MARRIAGE", "EDUCATION", "AGE"], ...] = (
            "SEX",
            "MARRIAGE",
            "EDUCATION",
        )

    raw_files = (DATA,)

    def read(self, files: Files, splits: int) -> TypedTable:
        target = _target(files)
        fields = {**FIELDS, target: PAID}
        table = validated(read_csv(files, DATA, list(fields), ROWS), fields, DATA)
        files.note_values(DATA, table)
        table = _documented(table.reset_index(drop=True), self.parameters.undocumented)
        paid = table.pop(target)
        return TypedTable(table, paid, {name: table[name] for name in ATTRIBUTES})


def _target(files: Files) -> str:
    """Name of the target in the file's header."""
    columns = header(files, DATA)
    if "X1" in columns:
        raise InputError(
            f"{DATA}, line 1: the header is X1 to X23 and Y; the only header must be the second "
            "one of the spreadsheet (LIMIT_BAL, SEX, ...): delete this line, or rename the columns"
        )
    found = [name for name in TARGETS if name in columns]
    if len(found) != 1:
        raise InputError(f"{DATA}: {len(found)} target columns; expected one of {TARGETS}")
    return found[0]


def _documented(table: pd.DataFrame, treatment: Literal["others", "own", "drop"]) -> pd.DataFrame:
    """The table with its undocumented codes merged, kept or left out."""
    names = ["EDUCATION", "MARRIAGE"]
    if treatment == "own":
        return table
    if treatment == "drop":
        table = table[(table[names] != UNDOCUMENTED).all(axis=1)]
    documented = {}
    for name in names:
        kind = pd.CategoricalDtype([c for c in table[name].cat.categories if c != UNDOCUMENTED])
        cells = table[name].astype("object").replace(UNDOCUMENTED, "others")
        documented[name] = cells.astype(kind)
    return table.assign(**documented)
