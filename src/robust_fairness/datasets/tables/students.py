"""Student performance: final grades at two Portuguese schools (Cortez and Silva 2008)."""

from typing import Literal

from robust_fairness.datasets.base import TableDataset
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.tables._schemas import Category, Field, Number, validated
from robust_fairness.datasets.tables._tables import one_hot, read_csv, to_samples
from robust_fairness.samples import Samples
from robust_fairness.samples.splits import Fraction, SplitParameters

DATA = {"portuguese": "student/student-por.csv", "maths": "student/student-mat.csv"}
ROWS = {"portuguese": 649, "maths": 395}
TARGET = "G3"
PAST = ("G1", "G2")
JOBS = ("teacher", "health", "services", "at_home", "other")
ANSWER = Category(("yes", "no"))
SCALE = Number(1, 5, whole=True)
GRADE = Number(0, 20, whole=True)
FIELDS: dict[str, Field] = {
    "school": Category(("GP", "MS")),
    "sex": Category(("F", "M")),
    "age": Number(15, 22, whole=True),
    "address": Category(("U", "R")),
    "famsize": Category(("LE3", "GT3")),
    "Pstatus": Category(("T", "A")),
    "Medu": Number(0, 4, whole=True),
    "Fedu": Number(0, 4, whole=True),
    "Mjob": Category(JOBS),
    "Fjob": Category(JOBS),
    "reason": Category(("home", "reputation", "course", "other")),
    "guardian": Category(("mother", "father", "other")),
    "traveltime": Number(1, 4, whole=True),
    "studytime": Number(1, 4, whole=True),
    "failures": Number(0, 4, whole=True),
    **dict.fromkeys(
        (
            "schoolsup", "famsup", "paid", "activities", "nursery", "higher", "internet",
            "romantic",
        ),
        ANSWER,
    ),
    **dict.fromkeys(("famrel", "freetime", "goout", "Dalc", "Walc", "health"), SCALE),
    "absences": Number(0, 93, whole=True),
    **dict.fromkeys((*PAST, TARGET), GRADE),
}  # fmt: skip


class Parameters(SplitParameters, extra="forbid", frozen=True):
    """Parameters of student performance.

    Attributes:
        subject: the course: Portuguese (649 students), as in the source, or maths (395, of whom
            382 take both courses).
        past_grades: keep the grades of the first and second period among the features. The source
            has "past academic information" there; with them the final grade is nearly known.
        sensitive: attributes that methods mitigate.
        drop_sensitive: leave the columns of the sensitive attributes out of the features.
        val_fraction: the source splits 60 / 20 / 20.
    """

    subject: Literal["portuguese", "maths"] = "portuguese"
    past_grades: bool = True
    sensitive: tuple[Literal["age", "sex"], ...] = ("age", "sex")
    drop_sensitive: bool = False
    val_fraction: Fraction = 0.25


def load(parameters: Parameters, files: Files, splits: int) -> Samples:
    """Thirty facts about a student and two earlier grades, and the final grade.

    The outcome is ``G3``, from 0 to 20, as it stands in the file. Of the 33 columns that the source
    counts 32 are features, numbers first and categories one-hot. Attributes are ``age`` in years
    (15 to 22, continuous) and ``sex``.

    Args:
        parameters: subject, features, sensitive attributes and splits.
        files: where ``student-por.csv`` or ``student-mat.csv`` is found.
        splits: number of named splits.

    Source: "FairCOCCO", B.1.2 and Table 7.

    Raises:
        InputError: the file is missing or damaged, a cell holds what the codebook does not know,
            or a part of a split lacks rows.
    """
    name = DATA[parameters.subject]
    cells = read_csv(files, name, list(FIELDS), ROWS[parameters.subject], delimiter=";")
    table = validated(cells, FIELDS, name).reset_index(drop=True)
    grade = table.pop(TARGET)
    dropped = {
        *(() if parameters.past_grades else PAST),
        *(parameters.sensitive if parameters.drop_sensitive else ()),
    }
    return to_samples(
        features=one_hot(table.drop(columns=dropped)),
        target=grade,
        attributes={"age": table["age"], "sex": table["sex"]},
        sensitive=parameters.sensitive,
        parameters=parameters,
        splits=splits,
        sources=files.sources,
    )


class Students(TableDataset):
    """``load`` with parameters."""

    Parameters = Parameters

    def load(self, files: Files, splits: int) -> Samples:
        """The samples."""
        return load(self.parameters, files, splits)
