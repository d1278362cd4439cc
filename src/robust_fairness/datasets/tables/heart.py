"""Heart disease of 920 patients at four hospitals (Detrano et al. 1989), bundled with the package.

Works offline; licence and investigators are named in ``heart_disease/ATTRIBUTION.md``.
"""

from pathlib import Path
from typing import Any, ClassVar, Literal

import pandas as pd

from robust_fairness.datasets.base import TableDataset, TableParameters, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import codebook, validated
from robust_fairness.datasets.raw.text import read_table
from robust_fairness.datasets.tables._tables import MISSING, coded, two_categories, with_indicators

BUNDLED = Path(__file__).parent  # the files are below it as they are below a data root
HOSPITALS = {"cleveland": 303, "hungarian": 294, "switzerland": 123, "va": 200}  # rows
FIELDS: dict[str, Any] = codebook(__file__)
SEXES = {0: "female", 1: "male"}
OLDER = 55
AGE_GROUPS = ("age under 55", "age 55 or over")
# measured at all hospitals; the others are missing in a third to two thirds of the rows
COMMON = ("age", "sex", "cp", "trestbps", "restecg", "thalach", "exang", "oldpeak")
ALL = tuple(name for name in FIELDS if name != "num")
# numbers of which cells may be missing
NUMBERS: tuple[str, ...] = ("trestbps", "chol", "thalach", "oldpeak")
CODES = {
    "cp": {1: "typical angina", 2: "atypical angina", 3: "non-anginal pain", 4: "asymptomatic"},
    "fbs": {0: "up to 120", 1: "over 120"},
    "restecg": {0: "normal", 1: "ST-T abnormality", 2: "hypertrophy"},
    "exang": {0: "no", 1: "yes"},
    "slope": {1: "up", 2: "flat", 3: "down"},
    "ca": {number: str(number) for number in range(4)},
    "thal": {3: "normal", 6: "fixed defect", 7: "reversible defect"},
}


class Heart(TableDataset):
    """Patients with the attributes sex, age_group, age and hospital; the class is num > 0.

    A serum cholesterol or a resting blood pressure of 0 is a missing value. ``id`` counts the
    rows of the four files in the order of ``HOSPITALS``, from 0.

    Source: R. Detrano et al., American Journal of Cardiology 64 (1989).
    """

    class Parameters(TableParameters):
        """Parameters of the heart disease data.

        Attributes:
            features: ``common``: the eight columns that all hospitals measured; ``all``: thirteen,
                of which fbs, chol, slope, ca and thal are missing at whole hospitals.
            incomplete: rows with a missing feature: ``keep`` them, with 0 and an indicator column
                for numbers and the category ``missing`` for codes, or ``drop`` them.
        """

        features: Literal["common", "all"] = "common"
        incomplete: Literal["keep", "drop"] = "keep"
        sensitive: tuple[Literal["sex", "age_group", "age"], ...] = ("sex",)

    feature_columns: ClassVar = {"age_group": ("age",)}

    def read(self, files: Files, splits: int) -> TypedTable:
        parameters = self.parameters
        table = patients(Files(BUNDLED, files.sources))
        names = COMMON if parameters.features == "common" else ALL
        incomplete, missing = NUMBERS, MISSING
        if parameters.incomplete == "drop":
            table = table.dropna(subset=list(names))
            incomplete, missing = (), ""
        features = pd.DataFrame({name: _feature(table[name], missing) for name in names})
        return TypedTable(
            features=with_indicators(features, incomplete),
            target=two_categories(table["num"] > 0, ("no disease", "disease")),
            attributes={
                "sex": coded(table["sex"], SEXES),
                "age_group": two_categories(table["age"] >= OLDER, AGE_GROUPS),
                "age": table["age"],
                "hospital": table["hospital"],
            },
            domain="hospital",
        )


def patients(files: Files) -> pd.DataFrame:
    """All patients, typed; missing values are NaN."""
    tables = []
    for hospital, rows in HOSPITALS.items():
        name = f"heart_disease/processed.{hospital}.data"
        table = validated(read_table(files, name, list(FIELDS), rows), FIELDS, name)
        tables.append(table.assign(hospital=hospital))
    table = pd.concat(tables, ignore_index=True)
    measured = table[["trestbps", "chol"]]
    return table.assign(
        **measured.where(measured > 0),
        hospital=table["hospital"].astype(pd.CategoricalDtype(list(HOSPITALS))),
    )


def _feature(values: pd.Series, missing: str) -> pd.Series:
    """A column as a feature: numbers as they are, codes as categories."""
    name = str(values.name)
    if name not in CODES:
        return values
    return coded(values, CODES[name], missing if FIELDS[name].missing else "")
