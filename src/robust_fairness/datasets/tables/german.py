"""German credit: 1,000 loans of a bank in southern Germany, 1973 to 1975 (Hofmann 1994)."""

from typing import ClassVar, Literal

import pandas as pd

from robust_fairness.datasets.base import TableDataset, TableParameters, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import Category, Field, Number, validated
from robust_fairness.datasets.raw.text import read_csv, read_table
from robust_fairness.samples.splits import Fraction

SOUTH_GERMAN = "german_credit/SouthGermanCredit.asc"
STATLOG = "german_credit/german.data"
STATLOG_CSV = "german_credit/german.csv"  # the same rows with commas and a header
ROWS = 1000
TARGET = "credit_risk"
FIELDS = (
    "status", "duration", "credit_history", "purpose", "amount", "savings", "employment_duration",
    "installment_rate", "personal_status_sex", "other_debtors", "present_residence", "property",
    "age", "other_installment_plans", "housing", "number_credits", "job", "people_liable",
    "telephone", "foreign_worker", TARGET,
)  # fmt: skip
# The same fields, as the official file of the South German coding calls them ...
GERMAN_NAMES = (
    "laufkont", "laufzeit", "moral", "verw", "hoehe", "sparkont", "beszeit", "rate", "famges",
    "buerge", "wohnzeit", "verm", "alter", "weitkred", "wohn", "bishkred", "beruf", "pers",
    "telef", "gastarb", "kredit",
)  # fmt: skip
# ... and as the header of german.csv does.
STATLOG_NAMES = (
    "status", "month", "credit_history", "purpose", "credit_amount", "savings", "employment",
    "investment_as_income_percentage", "personal_status", "other_debtors", "residence_since",
    "property", "age", "installment_plans", "housing", "number_of_credits", "skill_level",
    "people_liable_for", "telephone", "foreign_worker", "credit",
)  # fmt: skip
NUMBERS: dict[str, Field] = {
    "duration": Number(1, 120, whole=True),  # months
    "amount": Number(1, whole=True),  # Deutsche Mark
    "age": Number(18, 120, whole=True),
}
# Codes of the other features: numbers in the South German coding, "A11", "A12", ... in Statlog's,
# which has no letters for four fields.
CODES = {
    "status": range(1, 5),
    "credit_history": range(5),
    "purpose": range(11),
    "savings": range(1, 6),
    "employment_duration": range(1, 6),
    "installment_rate": range(1, 5),
    "personal_status_sex": range(1, 5),
    "other_debtors": range(1, 4),
    "present_residence": range(1, 5),
    "property": range(1, 5),
    "other_installment_plans": range(1, 4),
    "housing": range(1, 4),
    "number_credits": range(1, 5),
    "job": range(1, 5),
    "people_liable": range(1, 3),
    "telephone": range(1, 3),
    "foreign_worker": range(1, 3),
}
STATLOG_LETTERS = {
    "status": "A1",
    "credit_history": "A3",
    "purpose": "A4",
    "savings": "A6",
    "employment_duration": "A7",
    "personal_status_sex": "A9",
    "other_debtors": "A10",
    "property": "A12",
    "other_installment_plans": "A14",
    "housing": "A15",
    "job": "A17",
    "telephone": "A19",
    "foreign_worker": "A20",
}
CLASSES = {"south_german": {"0": "bad", "1": "good"}, "statlog": {"2": "bad", "1": "good"}}
# What the codes of two fields, in their order, tell of two attributes.
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

    Attributes are ``foreign_worker``, ``age`` in years and ``sex`` as far as the file has it: one
    code of ``personal_status_sex`` stands for women who are not single *and* for single men, so
    that ``south_german`` has a third category (310 rows) between ``male`` and ``female``. The
    codebook of ``statlog`` calls all 310 women and nobody a single woman, which is wrong. It also
    exchanges who is foreign: 37 rows are, and it says 963.

    Source: "FairCOCCO", B.1.2 and Table 7; codes of U. Groemping, "South German Credit Data:
    Correcting a Widely Used Data Set", Beuth University of Applied Sciences Berlin (2019).
    """

    class Parameters(TableParameters):
        """Parameters of German credit.

        Attributes:
            coding: ``south_german``, corrected from the original documents (Groemping 2019), as the
                name in the source has it, or ``statlog``, the older one, whose codebook exchanges
                the meaning of many codes.
            val_fraction: the source splits 60 / 20 / 20.
        """

        coding: Literal["south_german", "statlog"] = "south_german"
        sensitive: tuple[Literal["foreign_worker", "sex", "age"], ...] = ("foreign_worker",)
        val_fraction: Fraction = 0.25

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
        groups: dict[str, Field] = {
            "foreign_worker": _named("foreign_worker", coding, FOREIGN),
            "personal_status_sex": _named("personal_status_sex", coding, SEXES[coding]),
            "age": NUMBERS["age"],
        }
        typed = validated(cells, groups, name).reset_index(drop=True)
        return TypedTable(
            target=table.pop(TARGET),
            features=table,
            attributes={
                "foreign_worker": typed["foreign_worker"],
                "sex": typed["personal_status_sex"],
                "age": typed["age"],
            },
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
    letters = STATLOG_LETTERS.get(name, "") if coding == "statlog" else ""
    return tuple(f"{letters}{number}" for number in CODES[name])


def _named(name: str, coding: str, names: tuple[str, ...]) -> Category:
    """A field whose codes have names."""
    return Category(dict(zip(_codes(name, coding), names, strict=True)))
