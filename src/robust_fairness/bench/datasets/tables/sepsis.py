"""Sepsis: trajectories of intensive care and what clinicians did (FairCOCCO, B.2).

The data are MIMIC-III (Johnson et al. 2016), which nobody may hand on: whoever has signed
PhysioNet's agreement extracts the cohort of Komorowski et al. (2018) and writes it in the format
that ``docs/data/tables.md`` describes, with the columns that ``public.yml`` declares.
"""

import logging
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field as Limits

from robust_fairness.auditing.read.reading import read_cells
from robust_fairness.auditing.read.schemas import Category, Field, Number, validated
from robust_fairness.bench.datasets.base import TypedTable
from robust_fairness.bench.datasets.tables._tables import FaircoccoParameters, only_of
from robust_fairness.bench.datasets.tables.public import PublicTable, declared
from robust_fairness.bench.samples.splits import Fraction
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files

logger = logging.getLogger(__name__)

DATA = "sepsis/trajectories.csv"
DOSES = ("iv_fluid", "vasopressor_max")
FEATURES = tuple(declared("sepsis").columns)[2 : -len(DOSES)]  # after patient and window
STATIC = ("gender", "re_admission")
CLASSES = ("no treatment", "treatment")
# Raghu et al. (2017): C_0, C_1, C_2
STAYS_ILL, WORSENS, LACTATE_RISES = -0.025, -0.125, -2.0
AGE_TOLERANCE = 1  # years: age at admission, or at the beginning of the stay, rounded or not
# Tables of MIMIC-III as PhysioNet hands them out, open demo or full.
PATIENTS, STAYS = "PATIENTS.csv", "ICUSTAYS.csv"
# The birth of patients older than 89 is moved to 300 years before their first admission, so that
# nobody can be identified by age; the median of their ages is documented.
OLD, OLDEST = 89, 91.4
SHIFTED = 150.0  # years: above every real age, below every shifted one
YEAR = np.timedelta64(31_557_600, "s")  # 365.25 days
KEY = Number(0, 2**53, whole=True)


class Sepsis(PublicTable):
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

        trajectories: tuple[str, ...] = Limits((DATA,), min_length=1)
        outcome: Literal["cited", "as_printed"] = "cited"
        demographics: str | None = None
        drop: Annotated[tuple[str, ...], only_of("feature", lambda: FEATURES)] = ()
        sensitive: tuple[Literal["gender", "age"], ...] = ("gender",)
        train_rows: Fraction = 0.8

    def required_files(self) -> tuple[str, ...]:
        folder = self.parameters.demographics
        tables = () if folder is None else (f"{folder}/{PATIENTS}", f"{folder}/{STAYS}")
        return (*self.parameters.trajectories, *tables)

    def read(self, files: Files, splits: int) -> TypedTable:
        parameters = self.parameters
        fields = declared(self.name).fields
        parts = []
        for name in parameters.trajectories:
            part = validated(read_cells(files.blocks(name), name, list(fields)), fields, name)
            parts.append(part.assign(file=name, row=part.index + 1))
        table = pd.concat(parts, ignore_index=True)
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


def _require_whole_trajectories(table: pd.DataFrame) -> None:
    """Each patient is in one place, window after window, and does not change."""
    before = table.shift()
    same = (table["patient"] == before["patient"]) & (table["file"] == before["file"])
    first = table.drop_duplicates("patient").set_index("patient").loc[table["patient"]]
    known = {"other_file": first["file"].array, "other_row": first["row"].array}
    _refuse(
        table.assign(**known), ~same & table["patient"].duplicated(), "patient",
        "{patient:.0f} again, after {other_file}, row {other_row}; allowed: all windows of a "
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
    stays = icu_stays(files, folder)
    allowed = f"{{patient:.0f}}, allowed: an icustay_id of {folder}/{STAYS}"
    _refuse(table, ~table["patient"].isin(stays.index), "patient", allowed)
    stay = stays.loc[table["patient"].astype("int64")]
    both = table.assign(official_gender=stay["gender"].array, official_age=stay["age"].array)
    source = f"as in {folder}/{PATIENTS}"
    differs = both["gender"].astype("object") != both["official_gender"]
    _refuse(both, differs, "gender", f"{{gender!r}}, allowed: {{official_gender!r}}, {source}")
    # the true age of the oldest is not known
    old = (both["official_age"] == OLDEST) & (both["age"] >= OLD)
    far = (both["age"] - both["official_age"]).abs() > AGE_TOLERANCE
    within = f"{{age:g}}, allowed: within {AGE_TOLERANCE} year of {{official_age:.1f}}, {source}"
    _refuse(both, far & ~old, "age", within)
    return stay["subject_id"].to_numpy()


def _refuse(table: pd.DataFrame, wrong: pd.Series, column: str, problem: str) -> None:
    """Report the first wrong row; ``problem`` is a format string of its cells."""
    for row in table[wrong].head(1).to_dict("records"):
        cells = {str(name): cell for name, cell in row.items()}
        raise InputError(
            f"{cells['file']}, row {cells['row']}, column {column}: {problem.format(**cells)}"
        )


def icu_stays(files: Files, folder: str) -> pd.DataFrame:
    """Patient, gender and age of every ICU stay, from ``PATIENTS.csv`` and ``ICUSTAYS.csv``.

    Headers may be in capitals (full database) or not (demo).

    Returns:
        ``subject_id``, ``gender`` (F or M) and ``age`` (years at the beginning of the stay, 91.4
        where the birth is shifted), indexed by ``icustay_id``, int64.
    """
    name = f"{folder}/{STAYS}"
    table = _table(files, name, {"icustay_id": KEY, "subject_id": KEY}, "intime")
    fields: dict[str, Field | None] = {"subject_id": KEY, "gender": Category(("F", "M"))}
    patients = _table(files, f"{folder}/{PATIENTS}", fields, "dob").set_index("subject_id")
    known = f"{{subject_id:.0f}} is not a subject_id of {folder}/{PATIENTS}"
    _refuse(table, ~table["subject_id"].isin(patients.index), "subject_id", known)
    patient = patients.loc[table["subject_id"]]
    years = (table["intime"].to_numpy() - patient["dob"].to_numpy()) / YEAR
    return pd.DataFrame(
        {
            "subject_id": table["subject_id"].to_numpy(np.int64),
            "gender": patient["gender"].to_numpy(object),
            "age": np.where(years > SHIFTED, OLDEST, years),
        },
        index=pd.Index(table["icustay_id"].astype("int64"), name="icustay_id"),
    )


def _table(files: Files, name: str, fields: dict[str, Field | None], moment: str) -> pd.DataFrame:
    """Some columns of an official table by their names in small letters, the first one a key."""
    cells = read_cells(files.blocks(name), name).rename(columns=str.lower)
    table = validated(cells, {**fields, moment: None}, name)
    table = table.assign(file=name, row=table.index + 1)
    key = next(iter(fields))
    _refuse(table, table[key].duplicated(), key, f"{{{key}:.0f}} occurs twice")
    dates = pd.to_datetime(table[moment], format="ISO8601", errors="coerce")
    example = f"{{{moment}!r}} is not a date such as 2101-10-20 19:08:00"
    _refuse(table, dates.isna(), moment, example)
    # in seconds: differences in nanoseconds cannot hold the 300 years of a shifted birth
    return table.assign(**{moment: dates.to_numpy("datetime64[s]")})
