"""Open University Learning Analytics Dataset: who passes a module (Kuzilek et al. 2017)."""

from typing import Literal

from robust_fairness.datasets.base import TableDataset, TableParameters, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import Category, Field, Number, validated
from robust_fairness.datasets.raw.text import read_csv
from robust_fairness.datasets.tables._tables import MISSING, two_categories
from robust_fairness.samples.splits import Fraction, unit_splits

DATA = "oulad/studentInfo.csv"
ROWS = 32_593
TENTHS = [f"{low}-{low + 10}%" for low in range(0, 100, 10)]
FIELDS: dict[str, Field] = {
    "code_module": Category(("AAA", "BBB", "CCC", "DDD", "EEE", "FFF", "GGG")),
    "code_presentation": Category(("2013B", "2013J", "2014B", "2014J")),
    "id_student": Number(0, 2**53, whole=True),
    "gender": Category(("F", "M")),
    "region": Category(
        (
            "East Anglian Region", "East Midlands Region", "Ireland", "London Region",
            "North Region", "North Western Region", "Scotland", "South East Region",
            "South Region", "South West Region", "Wales", "West Midlands Region",
            "Yorkshire Region",
        )
    ),
    "highest_education": Category(
        (
            "No Formal quals", "Lower Than A Level", "A Level or Equivalent", "HE Qualification",
            "Post Graduate Qualification",
        )
    ),
    # 10-20 has no per cent sign in the official file, and spreadsheets turn it into a date
    "imd_band": Category(
        {band: band for band in TENTHS} | {"10-20": TENTHS[1], "20-Oct": TENTHS[1]}
        | {"": MISSING, "?": MISSING}
    ),
    "age_band": Category(("0-35", "35-55", "55<=")),
    "num_of_prev_attempts": Number(0, 20, whole=True),
    "studied_credits": Number(0, 1_000, whole=True),
    "disability": Category({"N": "no", "Y": "yes"}),
    "final_result": Category(("Withdrawn", "Fail", "Pass", "Distinction")),
}  # fmt: skip
DOMAINS = {"presentation": "code_presentation", "module": "code_module", "region": "region"}
ATTRIBUTES = ("gender", "disability", "age_band", "imd_band")
CLASSES = ("not passed", "passed")


class Oulad(TableDataset):
    """What is known of a student at the start of a module; passed is Pass or Distinction.

    Attributes are gender, disability, age_band, imd_band (deprivation of the neighbourhood in
    tenths, ``0-10%`` being the most deprived), presentation, module and region.

    Source: J. Kuzilek, M. Hlosta and Z. Zdrahal, Scientific Data 4 (2017).
    """

    class Parameters(TableParameters):
        """Parameters of OULAD.

        Attributes:
            domain: the domain column, which is left out of the features.
            withdrawn: students who withdraw are negative (``keep``) or left out (``drop``).
            train_rows: fraction of the students for training, validation included.
        """

        domain: Literal["presentation", "module", "region"] = "presentation"
        withdrawn: Literal["keep", "drop"] = "keep"
        sensitive: tuple[Literal["gender", "disability", "age_band", "imd_band"], ...] = ("gender",)
        train_rows: Fraction = 0.8

    raw_files = (DATA,)

    def read(self, files: Files, splits: int) -> TypedTable:
        parameters = self.parameters
        cells = read_csv(files, DATA, list(FIELDS), ROWS)
        table = validated(cells, FIELDS, DATA).reset_index(drop=True)
        if parameters.withdrawn == "drop":
            table = table[table["final_result"] != "Withdrawn"]
        passed = table["final_result"].isin(["Pass", "Distinction"])
        dropped = ["id_student", "final_result", DOMAINS[parameters.domain]]
        domains = {name: table[column] for name, column in DOMAINS.items()}
        return TypedTable(
            features=table.drop(columns=dropped),
            target=two_categories(passed, CLASSES),
            attributes={name: table[name] for name in ATTRIBUTES} | domains,
            splits=unit_splits(table["id_student"], splits, parameters),
        )
