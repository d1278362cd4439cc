"""COMPAS: recidivism within two years of 6,172 defendants in Florida (Angwin et al. 2016)."""

from typing import ClassVar, Literal

import pandas as pd

from robust_fairness.datasets.base import TableDataset, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import codebook, validated
from robust_fairness.datasets.raw.text import read_csv
from robust_fairness.datasets.tables._tables import (
    FaircoccoParameters,
    require_rows,
    two_categories,
)

DATA = "compas/compas-scores-two-years.csv"
ROWS = 7214
FILTERED = 6172  # rows that ProPublica's filters leave
DAYS = 30  # longest time between arrest and screening, either way
FIELDS = codebook(__file__)
SCORES = ("decile_score", "v_decile_score")
TARGETS = ("is_violent_recid", "two_year_recid")
FEATURES = [name for name in FIELDS if name not in (*SCORES, *TARGETS, "is_recid", "score_text")]


class Compas(TableDataset):
    """What was known of a defendant when COMPAS was filled in, and recidivism afterwards.

    ProPublica's filters keep rows screened within 30 days of the arrest, with a known outcome, an
    ordinary charge and a score: 6,172 of 7,214. The source counts ten features without naming them;
    these are what the file has on the defendant and the case at the time of the screening. Left out
    are names, dates, the free text of the charge, times in jail (which reach past the screening),
    everything about later offences, and COMPAS's own scores unless ``scores`` is set.
    Class 0 is no recidivism.

    Source: "FairCOCCO", B.1.2 and Table 7; filters of J. Larson et al., "How We Analyzed the
    COMPAS Recidivism Algorithm", ProPublica (2016).
    """

    class Parameters(FaircoccoParameters):
        """Parameters of COMPAS.

        Attributes:
            target: a violent offence after the screening, as in the source, or any within two
                years.
            scores: add COMPAS's own ``decile_score`` and ``v_decile_score`` to the features.
            sensitive: ``race`` is Caucasian or not, ``race_full`` has six categories.
        """

        target: Literal["is_violent_recid", "two_year_recid"] = "is_violent_recid"
        scores: bool = False
        sensitive: tuple[Literal["race", "race_full", "sex", "age"], ...] = ("race",)

    raw_files = (DATA,)
    feature_columns: ClassVar = {"race_full": ("race",), "age": ("age", "age_cat")}

    def read(self, files: Files, splits: int) -> TypedTable:
        cells = read_csv(files, DATA, list(FIELDS), ROWS)
        table = _filtered(validated(cells, FIELDS, DATA).reset_index(drop=True))
        return TypedTable(
            features=table[[*FEATURES, *(SCORES if self.parameters.scores else ())]],
            target=table[self.parameters.target],
            attributes={
                "race": two_categories(
                    table["race"] != "Caucasian", ("Caucasian", "Non-Caucasian")
                ),
                "race_full": table["race"],
                "sex": table["sex"],
                "age": table["age"],
            },
        )


def _filtered(table: pd.DataFrame) -> pd.DataFrame:
    """Rows that pass the filters; an ordinary charge is a felony or a misdemeanour."""
    kept = table[
        table["days_b_screening_arrest"].between(-DAYS, DAYS)
        & (table["is_recid"] != "-1")
        & (table["c_charge_degree"] != "O")
        & (table["score_text"] != "N/A")
    ]
    require_rows(kept, FILTERED, DATA, "the filters of ProPublica")
    return kept.assign(c_charge_degree=kept["c_charge_degree"].cat.set_categories(["F", "M"]))
