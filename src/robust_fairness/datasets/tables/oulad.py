"""Open University Learning Analytics Dataset: who passes a module (Kuzilek et al. 2017)."""

from typing import Literal

from robust_fairness.datasets.base import TableDataset, TableParameters, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import codebook, validated
from robust_fairness.datasets.raw.text import read_csv
from robust_fairness.datasets.tables._tables import two_categories
from robust_fairness.samples.splits import Fraction

DATA = "oulad/studentInfo.csv"
ROWS = 32_593
FIELDS = codebook(__file__)
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
        files.note_values(DATA, table)
        if parameters.withdrawn == "drop":
            table = table[table["final_result"] != "Withdrawn"]
        passed = table["final_result"].isin(["Pass", "Distinction"])
        dropped = ["id_student", "final_result", DOMAINS[parameters.domain]]
        domains = {name: table[column] for name, column in DOMAINS.items()}
        return TypedTable(
            features=table.drop(columns=dropped),
            target=two_categories(passed, CLASSES),
            attributes={name: table[name] for name in ATTRIBUTES} | domains,
            domain=parameters.domain,
            units=table["id_student"],
        )
