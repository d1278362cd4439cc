"""COMPAS: recidivism within two years of 6,172 defendants in Florida (Angwin et al. 2016)."""

from typing import ClassVar, Literal

import pandas as pd

from robust_fairness.core.errors import InputError
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
DATE = "compas_screening_date"
QUARTERS = ("2013Q1", "2013Q2", "2013Q3", "2013Q4", "2014Q1")
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
            domain: ``quarter`` makes the quarter of the screening the domain, from 2013Q1 to
                2014Q1. Later rows are left out: two years after them are not in the data, so that
                nearly all of them are positive (M. Barenstein, arXiv 1906.04711).
            followed: keep only screenings of these quarters, without making them domains.
            scores: add COMPAS's own ``decile_score`` and ``v_decile_score`` to the features.
            sensitive: ``race`` is Caucasian or not, ``race_full`` has six categories.
        """

        target: Literal["is_violent_recid", "two_year_recid"] = "is_violent_recid"
        domain: Literal["", "quarter"] = ""
        followed: bool = False
        scores: bool = False
        sensitive: tuple[Literal["race", "race_full", "sex", "age"], ...] = ("race",)

    raw_files = (DATA,)
    feature_columns: ClassVar = {"race_full": ("race",), "age": ("age", "age_cat")}

    def read(self, files: Files, splits: int) -> TypedTable:
        domain = self.parameters.domain
        dated = self.parameters.followed or bool(domain)
        cells = read_csv(files, DATA, [*FIELDS, DATE] if dated else list(FIELDS), ROWS)
        table = validated(cells, FIELDS, DATA)
        if dated:
            table = table.assign(quarter=_quarters(cells[DATE]))
        table = _filtered(table.reset_index(drop=True))
        if dated:
            table = table[table["quarter"].notna()]
        attributes = {
            "race": two_categories(table["race"] != "Caucasian", ("Caucasian", "Non-Caucasian")),
            "race_full": table["race"],
            "sex": table["sex"],
            "age": table["age"],
        }
        return TypedTable(
            features=table[[*FEATURES, *(SCORES if self.parameters.scores else ())]],
            target=table[self.parameters.target],
            attributes=attributes | {name: table[name] for name in filter(None, [domain])},
            domain=domain,
        )


def _quarters(dates: pd.Series) -> pd.Series:
    """The quarters that are domains, such as 2013Q1; missing in the others."""
    try:
        days = pd.to_datetime(dates, format="%Y-%m-%d")
    except ValueError as error:
        raise InputError(f"{DATA}, column {DATE}: {error}, allowed: days") from None
    quarters = days.dt.to_period("Q").astype(str)
    known = quarters.where(quarters.isin(QUARTERS))
    return known.astype(pd.CategoricalDtype(list(QUARTERS)))


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
