"""Hospital readmission of diabetes patients at 130 US hospitals, 1999 to 2008 (Strack et al. 2014).

Rows, target and domain are those of TableShift (Gardner et al. 2023).
"""

from typing import ClassVar, Literal

import pandas as pd

from robust_fairness.datasets.base import TableDataset, TableParameters, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.archives import read_archive
from robust_fairness.datasets.raw.schemas import codebook, validated
from robust_fairness.datasets.tables._tables import MISSING, frequent, two_categories
from robust_fairness.samples.splits import Fraction

FOLDER = "diabetes_130/dataset_diabetes"
ARCHIVE = f"{FOLDER}.zip"
MEMBER = "dataset_diabetes/diabetic_data.csv"
ROWS = 101_766
UNKNOWN = "?"
RACES = ("AfricanAmerican", "Asian", "Caucasian", "Hispanic", "Other")
DEATH_OR_HOSPICE = ("11", "13", "14", "19", "20", "21")
FIELDS = codebook(__file__)
DRUGS = [name for name, field in FIELDS.items() if field == FIELDS["insulin"]]
# long lists of codes: taken as they are
TEXT = (
    "weight", "admission_type_id", "discharge_disposition_id", "payer_code", "medical_specialty",
    "diag_1", "diag_2", "diag_3",
)  # fmt: skip
NOT_FEATURES = ("patient_nbr", "admission_source_id", "readmitted")
RARE = 0.01
CLASSES = ("not readmitted", "readmitted")


class Readmission(TableDataset):
    """Encounters of patients whose race is known: 99,493 of 101,766 rows, 46 columns as features.

    Drug doses, diagnoses and other codes below 1 % of the rows are merged into ``infrequent``, as
    in TableShift (on all rows, not on training rows); a missing cell is a category.
    Attributes are race, race_full, gender (Male or other), age in decades, and the domain
    admission_source_id, which is no feature.

    Source: J. Gardner, Z. Popovic and L. Schmidt, "Benchmarking Distribution Shift in Tabular Data
    with TableShift", NeurIPS 2023; ``datasets/diabetes_readmission.py`` of its code.
    """

    class Parameters(TableParameters):
        """Parameters of hospital readmission.

        Attributes:
            target: ``any`` readmission, as in TableShift, or one within 30 days (``early``).
            unit: what is split. ``patient``: no patient is in two parts; ``encounter``: row by
                row, as in TableShift, where 9,233 patients are in several parts.
            encounters: ``all``, or the ``first`` one of each patient in the file.
            died: keep encounters that ended in death or hospice care, as in TableShift, or drop
                them.
            sensitive: ``race`` is Caucasian or other, ``race_full`` has five categories.
        """

        target: Literal["any", "early"] = "any"
        unit: Literal["patient", "encounter"] = "patient"
        encounters: Literal["all", "first"] = "all"
        died: Literal["keep", "drop"] = "keep"
        sensitive: tuple[Literal["race", "race_full", "gender", "age"], ...] = ("race",)
        train_rows: Fraction = 0.8

    raw_files = (FOLDER,)  # the zip file, or the folder in it
    feature_columns: ClassVar = {"race_full": ("race",)}

    def read(self, files: Files, splits: int) -> TypedTable:
        parameters = self.parameters
        table = encounters(files)
        if parameters.encounters == "first":
            table = table.drop_duplicates("patient_nbr")
        if parameters.died == "drop":
            table = table[~table["discharge_disposition_id"].isin(DEATH_OR_HOSPICE)]
        readmitted = table["readmitted"].isin(
            ["<30", ">30"] if parameters.target == "any" else ["<30"]
        )
        features = {name: _feature(table[name]) for name in table if name not in NOT_FEATURES}
        units = table["patient_nbr"] if parameters.unit == "patient" else table.index.to_series()
        return TypedTable(
            features=pd.DataFrame(features),
            target=two_categories(readmitted, CLASSES),
            attributes={
                "race": two_categories(table["race"] != "Caucasian", ("Caucasian", "other")),
                "race_full": table["race"],
                "gender": two_categories(table["gender"] != "Male", ("Male", "other")),
                "age": table["age"],
                "admission_source_id": table["admission_source_id"],
            },
            domain="admission_source_id",
            units=units,
        )


def encounters(files: Files) -> pd.DataFrame:
    """The encounters of patients whose race is known, typed, indexed by row number from 0."""
    cells = read_archive(files, ARCHIVE, MEMBER, [*FIELDS, *TEXT], ROWS)
    table = validated(cells, FIELDS, ARCHIVE)
    table[list(TEXT)] = cells[list(TEXT)].replace(UNKNOWN, MISSING)
    known = table.reset_index(drop=True).query("race != @UNKNOWN")
    return known.assign(race=known["race"].cat.set_categories(list(RACES)))


def _feature(values: pd.Series) -> pd.Series:
    """A column as a feature: rare categories of drugs and of long lists of codes are merged."""
    if values.name in (*DRUGS, *TEXT):
        return frequent(values, RARE)
    return values
