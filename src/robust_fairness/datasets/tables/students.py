"""Student performance: final grades at two Portuguese schools (Cortez and Silva 2008)."""

from typing import Literal

from robust_fairness.datasets.base import TableDataset, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import codebook, validated
from robust_fairness.datasets.raw.text import read_csv
from robust_fairness.datasets.tables._tables import FaircoccoParameters, two_categories

DATA = {"portuguese": "student/student-por.csv", "maths": "student/student-mat.csv"}
ROWS = {"portuguese": 649, "maths": 395}
TARGET = "G3"
PAST = ("G1", "G2")
PASSING = 10
CLASSES = ("failed", "passed")
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
            target: the final ``grade``, as in the source, or ``passed``, a grade from 10.
            past_grades: keep the grades of the first and second period among the features, as in
                the source; with them the final grade is nearly known.
            domain: ``school`` makes the school the domain, which is then no feature.
        """

        subject: Literal["portuguese", "maths"] = "portuguese"
        target: Literal["grade", "passed"] = "grade"
        past_grades: bool = True
        domain: Literal["", "school"] = ""
        sensitive: tuple[Literal["age", "sex"], ...] = ("age", "sex")

    def required_files(self) -> tuple[str, ...]:
        return (DATA[self.parameters.subject],)

    def read(self, files: Files, splits: int) -> TypedTable:
        parameters, subject = self.parameters, self.parameters.subject
        cells = read_csv(files, DATA[subject], list(FIELDS), ROWS[subject], delimiter=";")
        table = validated(cells, FIELDS, DATA[subject]).reset_index(drop=True)
        grade = table.pop(TARGET)
        dropped = () if parameters.past_grades else PAST
        attributes = {"age": table["age"], "sex": table["sex"]}
        if parameters.domain:
            attributes["school"] = table.pop("school")
        return TypedTable(
            features=table.drop(columns=list(dropped)),
            target=two_categories(grade >= PASSING, CLASSES)
            if parameters.target == "passed"
            else grade,
            attributes=attributes,
            domain=parameters.domain,
        )
