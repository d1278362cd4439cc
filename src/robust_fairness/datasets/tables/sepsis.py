"""Sepsis: trajectories of intensive care and what clinicians did (FairCOCCO, B.2).

The data are MIMIC-III (Johnson et al. 2016), which nobody may hand on: whoever has signed
PhysioNet's agreement extracts the cohort of Komorowski et al. (2018) and writes it in the format
of ``sepsis.yml`` that ``docs/data/tables.md`` describes.
"""

import logging
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.base import TableDataset, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import codebook, validated
from robust_fairness.datasets.raw.text import read_csv
from robust_fairness.datasets.tables import _mimic
from robust_fairness.datasets.tables._tables import FaircoccoParameters, only_of
from robust_fairness.samples.splits import Fraction

logger = logging.getLogger(__name__)

DATA = "sepsis/trajectories.csv"
DOSES = ("iv_fluid", "vasopressor_max")
FIELDS = codebook(__file__)
FEATURES = tuple(FIELDS)[2 : -len(DOSES)]  # after patient and window
STATIC = ("gender", "re_admission")
CLASSES = ("no treatment", "treatment")
# Raghu et al. (2017): C_0, C_1, C_2
STAYS_ILL, WORSENS, LACTATE_RISES = -0.025, -0.125, -2.0
AGE_TOLERANCE = 1  # years: age at admission, or at the beginning of the stay, rounded or not


class Sepsis(TableDataset):
    """States of 4 hours and whether the clinicians treated: behavioural cloning of their policy.

    A row is a window; class 1 is the action ``treatment``, IV fluid or a vasopressor or both.
    ``outcome`` is the treatment outcome that equalised odds conditions on (never a feature). The
    last window of a patient has no next one and so no outcome: it is left out. ``id`` is the number
    of the row in all files, from 0.

    Source: FairCOCCO, B.2 and Table 8.
    """

    class Parameters(FaircoccoParameters):
        """Parameters of the sepsis trajectories.

        Attributes:
            trajectories: the files, by their paths below the data root; one patient is in one file.
            outcome: second term of the treatment outcome. ``cited``: the change of SOFA to the next
                window, as in Raghu et al. (2017), whom FairCOCCO cites. ``as_printed``: the next
                SOFA less the one of the last window (T), as B.2 prints it.
            demographics: folder of PATIENTS.csv and ICUSTAYS.csv of MIMIC-III, open demo or full.
                If given, ``patient`` is an ICU stay, its gender and age have to agree with those
                tables, and all stays of a person are in one part.
            drop: features left out. ``fluid_intake_4h`` reveals the action in the same window.
            train_rows: fraction of the patients for training, validation included (60-20-20 in the
                source).
        """

        trajectories: tuple[str, ...] = Field((DATA,), min_length=1)
        outcome: Literal["cited", "as_printed"] = "cited"
        demographics: str | None = None
        drop: Annotated[tuple[str, ...], only_of("feature", FEATURES)] = ()
        sensitive: tuple[Literal["gender", "age"], ...] = ("gender",)
        train_rows: Fraction = 0.8

    def required_files(self) -> tuple[str, ...]:
        folder = self.parameters.demographics
        tables = (
            () if folder is None else (f"{folder}/{_mimic.PATIENTS}", f"{folder}/{_mimic.STAYS}")
        )
        return (*self.parameters.trajectories, *tables)

    def read(self, files: Files, splits: int) -> TypedTable:
        parameters = self.parameters
        table = pd.concat(
            [_read(name, files) for name in parameters.trajectories], ignore_index=True
        )
        _require_whole_trajectories(table)
        table["person"] = table["patient"]
        if parameters.demographics is not None:
            table["person"] = _persons(table, files, parameters.demographics)
        table["outcome"] = outcome(table, parameters.outcome)
        complete = table[table["outcome"].notna()]
        if complete.empty:
            where = ", ".join(parameters.trajectories)
            raise InputError(f"{where}: no patient has two windows, so no window has an outcome")
        logger.info(
            "sepsis: %d of %d windows left out: the last of each of %d patients has no outcome",
            len(table) - len(complete), len(table), table["patient"].nunique(),
        )  # fmt: skip
        treated = (complete[list(DOSES)] > 0).any(axis=1)
        features = complete[list(FEATURES)].assign(gender=complete["gender"].cat.codes)
        return TypedTable(
            features=features.drop(columns=list(parameters.drop)),
            target=pd.Series(pd.Categorical.from_codes(treated.astype(int), pd.Index(CLASSES))),
            attributes={name: complete[name] for name in ("gender", "age", "outcome")},
            units=complete["person"],
            conditioning="outcome",
        )


def outcome(table: pd.DataFrame, second_term: Literal["cited", "as_printed"]) -> pd.Series:
    """Treatment outcome of every window; missing in the last window of a patient.

    .. math:: Y_t = -.025 [s_{t+1} = s_t, s_{t+1} > 0] - .125 (s_{t+1} - s') - 2 tanh(l_{t+1} - l_t)

    where s is SOFA, l the arterial lactate, and s' the SOFA of t (``cited``) or of the patient's
    last window (``as_printed``). The print lost the form of the indicator; it is that of the
    cited reward.

    Source: FairCOCCO, B.2; Raghu et al. 2017, "Deep reinforcement learning for sepsis treatment".
    """
    patients = table.groupby("patient", sort=False)
    following = patients[["sofa", "arterial_lactate"]].shift(-1)
    sofa = following["sofa"]
    ill_as_before = (sofa == table["sofa"]) & (sofa > 0)
    reference = table["sofa"] if second_term == "cited" else patients["sofa"].transform("last")
    return (
        STAYS_ILL * ill_as_before
        + WORSENS * (sofa - reference)
        + LACTATE_RISES * np.tanh(following["arterial_lactate"] - table["arterial_lactate"])
    )


def _read(name: str, files: Files) -> pd.DataFrame:
    """One file with typed columns, and where each of its rows stands."""
    table = validated(read_csv(files, name, list(FIELDS), rows=None), FIELDS, name)
    return table.assign(file=name, line=table.index)


def _require_whole_trajectories(table: pd.DataFrame) -> None:
    """Each patient is in one place, window after window, and does not change."""
    before = table.shift()
    same = (table["patient"] == before["patient"]) & (table["file"] == before["file"])
    first = table.drop_duplicates("patient").set_index("patient").loc[table["patient"]]
    known = {"other_file": first["file"].array, "other_line": first["line"].array}
    _refuse(
        table.assign(**known), ~same & table["patient"].duplicated(), "patient",
        "{patient:.0f} again, after {other_file}, line {other_line}; allowed: all windows of a "
        "patient in one block of one file",
    )  # fmt: skip
    expected = before["window"] + 1
    _refuse(
        table.assign(expected=expected), same & (table["window"] != expected), "window",
        "{window:.0f}, allowed: {expected:.0f}, since windows of a patient are in order, none "
        "missing and none twice",
    )  # fmt: skip
    for name in STATIC:
        _refuse(
            table.assign(value=table[name], before=before[name]),
            same & (table[name] != before[name]), name,
            "{value} after {before}, allowed: one value in all windows of a patient",
        )  # fmt: skip


def _persons(table: pd.DataFrame, files: Files, folder: str) -> np.ndarray:
    """Whose stay each row is of, int64 ``[n]``, gender and age being those of that person."""
    stays = _mimic.stays(files, folder)
    allowed = f"{{patient:.0f}}, allowed: an icustay_id of {folder}/{_mimic.STAYS}"
    _refuse(table, ~table["patient"].isin(stays.index), "patient", allowed)
    stay = stays.loc[table["patient"].astype("int64")]
    both = table.assign(official_gender=stay["gender"].array, official_age=stay["age"].array)
    source = f"as in {folder}/{_mimic.PATIENTS}"
    differs = both["gender"].astype("object") != both["official_gender"]
    _refuse(both, differs, "gender", f"{{gender!r}}, allowed: {{official_gender!r}}, {source}")
    # the true age of the oldest is not known
    old = (both["official_age"] == _mimic.OLDEST) & (both["age"] >= _mimic.OLD)
    far = (both["age"] - both["official_age"]).abs() > AGE_TOLERANCE
    within = f"{{age:g}}, allowed: within {AGE_TOLERANCE} year of {{official_age:.1f}}, {source}"
    _refuse(both, far & ~old, "age", within)
    return stay["subject_id"].to_numpy()


def _refuse(table: pd.DataFrame, wrong: pd.Series, column: str, problem: str) -> None:
    """Report the first wrong row; ``problem`` is a format string of its cells."""
    for row in table[wrong].head(1).to_dict("records"):
        cells = {str(name): cell for name, cell in row.items()}
        raise InputError(
            f"{cells['file']}, line {cells['line']}, column {column}: {problem.format(**cells)}"
        )
