"""Communities and Crime: violent crime in 1,994 US communities (Redmond and Baveja 2002)."""

from typing import Any, ClassVar, Literal

from pydantic import PositiveInt

from robust_fairness.datasets.base import TableDataset, TableParameters, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import codebook, validated
from robust_fairness.datasets.raw.text import read_table
from robust_fairness.datasets.tables._tables import TopShareParameters, top_share
from robust_fairness.samples.splits import Fraction

DATA = "communities_crime/communities.data"
ROWS = 1994
TARGET = "ViolentCrimesPerPop"
SENSITIVE = ("racepctblack", "FemalePctDiv")
ETHNICITIES = ("racePctWhite", "racePctAsian", "racePctHisp")  # beside racepctblack
NOT_PREDICTIVE = 5  # where the community is, and a fold number
FIELDS: dict[str, Any] = codebook(__file__)


class Communities(TableDataset):
    """Ninety-nine numbers from 0 to 1 of each community, and its violent crime.

    Fields 1 to 5 (where the community is) and every field that lacks a value for some community
    (``OtherPerCap`` for one, 22 on the police for 1,675) are left out, so that nothing has to be
    imputed. Class 0 and group 0 are the top 30 %.

    Source: "Equalized Robustness" (under review, ICLR 2022), 5.1 and footnote 4; "FairCOCCO",
    B.1.2 and Table 7.
    """

    class Parameters(TableParameters, TopShareParameters):
        """Parameters of Communities and Crime.

        Attributes:
            target: violent crime, cut at its top share, or ``ViolentCrimesPerPop`` itself
                (FairCOCCO, B.1.2).
            sensitive: names ``..._group`` are cut at the top share like the target, the others are
                numbers. FairCOCCO takes four ethnic proportions together (its tables; its text
                names three of them, without ``racePctHisp``).
            domain: ``state`` makes the state the domain, by its FIPS code; it is no feature.
            train_rows: 1,500 of 1,994 in the source, validation included.
        """

        target: Literal["binary", "continuous"] = "binary"
        sensitive: tuple[
            Literal[
                "racepctblack_group",
                "FemalePctDiv_group",
                "racepctblack",
                "FemalePctDiv",
                "racePctWhite",
                "racePctAsian",
                "racePctHisp",
            ],
            ...,
        ] = ("racepctblack_group",)
        domain: Literal["", "state"] = ""
        train_rows: PositiveInt | Fraction = 1500

    raw_files = (DATA,)
    feature_columns: ClassVar = {f"{name}_group": (name,) for name in SENSITIVE}

    def read(self, files: Files, splits: int) -> TypedTable:
        parameters = self.parameters
        predictive = list(FIELDS.items())[NOT_PREDICTIVE:]
        complete = {name: field for name, field in predictive if not field.missing}
        cells = read_table(files, DATA, list(FIELDS), ROWS)
        table = validated(cells, complete, DATA).reset_index(drop=True)
        crime = table.pop(TARGET)
        domains = {"state": cells["state"].reset_index(drop=True).astype("category")}
        groups = {f"{name}_group": top_share(table[name], DATA, parameters) for name in SENSITIVE}
        others = [name for name in ETHNICITIES if name in parameters.sensitive]
        return TypedTable(
            features=table,
            target=top_share(crime, DATA, parameters) if parameters.target == "binary" else crime,
            attributes=groups
            | {name: table[name] for name in (*SENSITIVE, *others)}
            | (domains if parameters.domain else {}),
            domain=parameters.domain,
        )
