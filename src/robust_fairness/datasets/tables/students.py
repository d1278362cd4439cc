"""Student performance: final grades at two Portuguese schools (Cortez and Silva 2008)."""

from typing import Literal

from robust_fairness.datasets.base import TableDataset, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import codebook, validated
from robust_fairness.datasets.raw.text import read_csv
from robust_fairness.datasets.tables._tables import FaircoccoParameters

DATA = {"portuguese": "student/student-por.csv", "maths": "student/student-mat.csv"}
ROWS = {"portuguese": 649, "maths": 395}
TARGET = "G3"
PAST = ("G1", "G2")
FIELDS = codebook(__file__)


class Students(TableDataset):
    """Thirty facts about a student and two earlier grades, and the final grade.

    The outcome is ``G3``, from 0 to 20, as in the file. Of the 33 columns that the
    source counts 32 are features. Attributes are ``age`` in years (15 to 22, continuous) and
    ``sex``.

    Source: "FairCOCCO", B.1.2 and Table 7.
    """

    class Parameters(FaircoccoParameters):
        """Parameters of student performance.

        Attributes:
            subject: the course: Portuguese (649 students), as in the source, or maths (395, of
                whom 382 take both courses).
            past_grades: keep the grades of the first and second period among the features, as in
                the source; with them the final grade is nearly known.
        """

        subject: Literal["portuguese", "maths"] = "portuguese"
        past_grades: bool = True
        sensitive: tuple[Literal["age", "sex"], ...] = ("age", "sex")

    def required_files(self) -> tuple[str, ...]:
        return (DATA[self.parameters.subject],)

    def read(self, files: Files, splits: int) -> TypedTable:
        subject = self.parameters.subject
        cells = read_csv(files, DATA[subject], list(FIELDS), ROWS[subject], delimiter=";")
        table = validated(cells, FIELDS, DATA[subject]).reset_index(drop=True)
        grade = table.pop(TARGET)
        dropped = () if self.parameters.past_grades else PAST
        return TypedTable(
            features=table.drop(columns=list(dropped)),
            target=grade,
            attributes={"age": table["age"], "sex": table["sex"]},
        )
