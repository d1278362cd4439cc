"""Law school: who passed the bar, of the class that began in 1991 (Wightman 1998).

The file is the public ``law_school_clean.csv`` of Le Quy et al. (2022), A survey on datasets for
fairness-aware machine learning.
"""

from typing import Literal

from robust_fairness.datasets.base import TableDataset, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import codebook, validated
from robust_fairness.datasets.raw.text import read_csv
from robust_fairness.datasets.tables._tables import FaircoccoParameters, two_categories

DATA = "law_school/law_school_clean.csv"
ROWS = 20_798
TARGET = "pass_bar"
SEXES = ("female", "male")
CLASSES = ("failed", "passed")
ATTRIBUTES = ("male", "race")
FIELDS = codebook(__file__)


class LawSchool(TableDataset):
    """Grades, test score, income and school of a student, and whether the bar was passed.

    Of the 12 columns 11 are features: nine numbers, then ``male`` and ``race``. Class 0 is
    ``failed``. Attributes are ``male`` (female, male) and ``race`` (Non-White, White).

    Source: "FairCOCCO", Table 7.
    """

    class Parameters(FaircoccoParameters):
        """``domain: tier`` makes the tier of the school the domain, which is then no feature."""

        domain: Literal["", "tier"] = ""
        sensitive: tuple[Literal["male", "race"], ...] = ("male", "race")

    raw_files = (DATA,)

    def read(self, files: Files, splits: int) -> TypedTable:
        cells = read_csv(files, DATA, list(FIELDS), ROWS)
        table = validated(cells, FIELDS, DATA).reset_index(drop=True)
        files.note_values(DATA, table)
        table["male"] = two_categories(table["male"] == 1, SEXES)
        passed = two_categories(table.pop(TARGET) == 1, CLASSES)
        attributes = {name: table[name] for name in ATTRIBUTES}
        if self.parameters.domain:
            attributes["tier"] = table.pop("tier").astype(int).astype(str).astype("category")
        return TypedTable(table, passed, attributes, domain=self.parameters.domain)
