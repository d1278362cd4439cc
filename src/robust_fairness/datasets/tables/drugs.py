"""Drug consumption: who ever used heroin, of 1,877 respondents (Fehrman et al. 2017)."""

from typing import Literal

from robust_fairness.datasets.base import TableDataset, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import Category, Field, Number, validated
from robust_fairness.datasets.raw.text import read_table
from robust_fairness.datasets.tables._tables import FaircoccoParameters, require_rows

DATA = "drug_consumption/drug_consumption.data"
ROWS = 1885
HONEST = 1877  # rows of those who do not claim to have used Semeron, which does not exist
NEVER = "CL0"
DRUGS = """
    alcohol amphet amyl benzos caff cannabis choc coke crack ecstasy heroin ketamine legalh lsd
    meth mushrooms nicotine semer vsa
"""
USE = tuple(f"CL{k}" for k in range(7))  # never, over a decade ago, ..., in the last day
# The file holds the numbers by which its authors quantified the answers.
AGES = {
    "-0.95197": "18-24",
    "-0.07854": "25-34",
    "0.49788": "35-44",
    "1.09449": "45-54",
    "1.82213": "55-64",
    "2.59171": "65+",
}
GENDERS = {"0.48246": "female", "-0.48246": "male"}
ETHNICITIES = {
    "-0.31685": "White",
    "-0.50212": "Asian",
    "-1.10702": "Black",
    "1.90725": "Mixed-Black/Asian",
    "0.12600": "Mixed-White/Asian",
    "-0.22166": "Mixed-White/Black",
    "0.11440": "Other",
}
GROUPS: dict[str, Field] = {
    "age": Category(AGES),
    "gender": Category(GENDERS),
    "ethnicity": Category(
        {code: "White" if name == "White" else "other" for code, name in ETHNICITIES.items()}
    ),
}
FEATURES = (
    "age", "gender", "education", "country", "ethnicity", "nscore", "escore", "oscore", "ascore",
    "cscore", "impulsive", "ss",
)  # fmt: skip
OUTCOMES: dict[str, Field] = {
    "heroin": Category({use: "never used" if use == NEVER else "used" for use in USE}),
    "semer": Category(USE),
}


class Drugs(TableDataset):
    """Personality and demography of the respondents, and whether they ever used heroin.

    The features are numbers as they are in the file: age, gender, education, country and
    ethnicity as its authors quantified them, five traits, impulsiveness and sensation seeking. The
    eight who claim to have used Semeron, a drug that does not exist, are left out. "Used" includes
    over a decade ago. Class 0 is ``never used``. Attributes are categories: two of ``ethnicity``,
    two of ``gender``, six ranges of ``age``.

    Source: "FairCOCCO", B.1.2 and Table 7; the meaning of the numbers is that of the dataset's
    page at UCI.
    """

    class Parameters(FaircoccoParameters):
        """Parameters of the drug consumption data.

        Attributes:
            sensitive: ``ethnicity`` (White or other) in the tables of the source, all three in
                Figure 4.
            drop_sensitive: the source counts 11 features: the file has 12 with ethnicity.
        """

        sensitive: tuple[Literal["ethnicity", "gender", "age"], ...] = ("ethnicity",)
        drop_sensitive: bool = True

    raw_files = (DATA,)

    def read(self, files: Files, splits: int) -> TypedTable:
        cells = read_table(files, DATA, ["id", *FEATURES, *DRUGS.split()], ROWS)
        numbers = dict.fromkeys(FEATURES, Number(-5, 5))  # quantified to a variance of about 1
        outcomes, groups, features = (
            validated(cells, fields, DATA).reset_index(drop=True)
            for fields in (OUTCOMES, GROUPS, numbers)
        )
        honest = outcomes["semer"] == NEVER
        require_rows(features[honest], HONEST, DATA, "leaving out who claims to use Semeron")
        return TypedTable(
            features=features[honest],
            target=outcomes.loc[honest, "heroin"],
            attributes={name: groups.loc[honest, name] for name in GROUPS},
        )
