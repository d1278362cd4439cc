"""German credit: 1,000 loans of a bank in southern Germany, 1973 to 1975 (Hofmann 1994)."""

from pathlib import Path
from typing import Any, ClassVar, Literal

import pandas as pd

from robust_fairness.datasets.base import TableDataset, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import Category, Field, Number, validated
from robust_fairness.datasets.raw.text import read_csv, read_table
from robust_fairness.datasets.tables._tables import FaircoccoParameters

SOUTH_GERMAN = "german_credit/SouthGermanCredit.asc"
STATLOG = "german_credit/german.data"
STATLOG_CSV = "german_credit/german.csv"  # the same rows with commas and a header
ROWS = 1000
TARGET = "credit_risk"
# One row per field in the order of the files: its names in the headers of the South German file
# and of german.csv, and its first and last code; Statlog puts letters before most codes.
_CODEBOOK = pd.read_csv(
    Path(__file__).with_name("german.csv"), index_col="name", dtype=str, keep_default_na=False
)
CODEBOOK: dict[Any, Any] = _CODEBOOK.to_dict("index")
FIELDS = tuple(CODEBOOK)
GERMAN_NAMES, STATLOG_NAMES = tuple(_CODEBOOK["south_german"]), tuple(_CODEBOOK["statlog"])
NUMBERS: dict[str, Field] = {
    "duration": Number(1, 120, whole=True),  # months
    "amount": Number(1, whole=True),  # Deutsche Mark
    "age": Number(18, 120, whole=True),
}
CLASSES = {"south_german": {"0": "bad", "1": "good"}, "statlog": {"2": "bad", "1": "good"}}
# Attributes by the codes of two fields, in their order.
FOREIGN = ("foreign", "not foreign")
SEXES = {
    "south_german": ("male", "female or single male", "male", "female"),
    "statlog": ("male", "female", "male", "male"),
}


class German(TableDataset):
    """Twenty facts about a borrower and a loan, and whether the contract was complied with.

    Duration, amount and age are numbers; the other seventeen are categories in the codes of the
    file. Class 0 is ``bad`` (300 rows; the sample holds far more of them than the bank had). The
    source's table counts 1,700 rows; its text, and the file, 1,000.

    One code of ``personal_status_sex`` stands for women who are not single *and* for single men, so
    that the attribute ``sex`` of ``south_german`` has a third category (310 rows). The codebook of
    ``statlog`` calls all 310 women and nobody a single woman, which is wrong. It also exchanges who
    is foreign: 37 rows are, and it says 963.

    Source: "FairCOCCO", B.1.2 and Table 7; codes of U. Groemping, "South German Credit Data:
    Correcting a Widely Used Data Set", Beuth University of Applied Sciences Berlin (2019).
    """

    class Parameters(FaircoccoParameters):
        """Parameters of German credit.

        Attributes:
            coding: ``south_german``, corrected from the original documents (Groemping 2019), as
                the name in the source has it, or ``statlog``, whose codebook exchanges the meaning
                of many codes.
        """

        coding: Literal["south_german", "statlog"] = "south_german"
        sensitive: tuple[Literal["foreign_worker", "sex", "age"], ...] = ("foreign_worker",)

    feature_columns: ClassVar = {"sex": ("personal_status_sex",)}

    def required_files(self) -> tuple[str, ...]:
        return (SOUTH_GERMAN if self.parameters.coding == "south_german" else STATLOG,)

    def missing_files(self, files: Files) -> list[str]:
        """The data file, unless its copy with commas is available."""
        copied = self.parameters.coding == "statlog" and files.available(STATLOG_CSV)
        return [] if copied else super().missing_files(files)

    def read(self, files: Files, splits: int) -> TypedTable:
        coding = self.parameters.coding
        name, cells = _south_german(files) if coding == "south_german" else _statlog(files)
        table = validated(cells, _fields(coding), name).reset_index(drop=True)
        files.note_values(f"german_credit/{coding}", table)
        foreign = _renamed(table["foreign_worker"], FOREIGN)
        sex = _renamed(table["personal_status_sex"], SEXES[coding])
        return TypedTable(
            target=table.pop(TARGET),
            attributes={"foreign_worker": foreign, "sex": sex, "age": table["age"]},
            features=table,
        )


def _south_german(files: Files) -> tuple[str, pd.DataFrame]:
    """Name and cells of the corrected file, whose header is German or translated."""
    header = files.text(SOUTH_GERMAN).partition("\n")[0].split()
    names = GERMAN_NAMES if GERMAN_NAMES[0] in header else FIELDS
    cells = read_csv(files, SOUTH_GERMAN, names, ROWS, delimiter=" ")
    return SOUTH_GERMAN, cells.set_axis(list(FIELDS), axis="columns")


def _statlog(files: Files) -> tuple[str, pd.DataFrame]:
    """Name and cells of the older file, or of its copy with commas where only that exists."""
    if files.has(STATLOG_CSV) and not files.has(STATLOG):
        cells = read_csv(files, STATLOG_CSV, STATLOG_NAMES, ROWS)
        return STATLOG_CSV, cells.set_axis(list(FIELDS), axis="columns")
    return STATLOG, read_table(files, STATLOG, FIELDS, ROWS, delimiter=" ")


def _fields(coding: str) -> dict[str, Field]:
    """What the columns may hold, the target last."""
    return {
        name: NUMBERS[name] if name in NUMBERS else Category(_codes(name, coding))
        for name in FIELDS[:-1]
    } | {TARGET: Category(CLASSES[coding])}


def _codes(name: str, coding: str) -> tuple[str, ...]:
    """Codes of a categorical field, in the order of their numbers."""
    field = CODEBOOK[name]
    letters = field["letters"] if coding == "statlog" else ""
    return tuple(f"{letters}{code}" for code in range(int(field["first"]), int(field["last"]) + 1))


def _renamed(codes: pd.Series, names: tuple[str, ...]) -> pd.Series:
    """Categories with other names, of which several may be equal."""
    kind = pd.CategoricalDtype(list(dict.fromkeys(names)))
    return codes.map(dict(zip(codes.cat.categories, names, strict=True))).astype(kind)
