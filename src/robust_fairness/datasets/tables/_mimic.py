"""Tables of MIMIC-III as PhysioNet hands them out, open demo or full (Johnson et al. 2016)."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import Category, Field, Number, validated
from robust_fairness.datasets.raw.text import header, read_csv

PATIENTS = "PATIENTS.csv"
STAYS = "ICUSTAYS.csv"
GENDERS = ("F", "M")
# The birth of patients older than 89 is moved to 300 years before their first admission, so that
# nobody can be identified by age; the median of their ages is documented.
OLD, OLDEST = 89, 91.4
SHIFTED = 150.0  # years: above every real age, below every shifted one
YEAR = np.timedelta64(31_557_600, "s")  # 365.25 days

KEY = Number(0, 2**53, whole=True)


def stays(files: Files, folder: str) -> pd.DataFrame:
    """Patient, gender and age of every ICU stay, from ``PATIENTS.csv`` and ``ICUSTAYS.csv``.

    Headers may be in capitals (full database) or not (demo).

    Returns:
        ``subject_id``, ``gender`` (F or M) and ``age`` (years at the beginning of the stay, 91.4
        where the birth is shifted), indexed by ``icustay_id``, int64.
    """
    name = f"{folder}/{STAYS}"
    table = _table(files, name, {"icustay_id": KEY, "subject_id": KEY}, "intime")
    fields: dict[str, Field] = {"subject_id": KEY, "gender": Category(GENDERS)}
    patients = _table(files, f"{folder}/{PATIENTS}", fields, "dob").set_index("subject_id")
    for line, subject in table["subject_id"][~table["subject_id"].isin(patients.index)].items():
        raise InputError(
            f"{name}, line {line}, column subject_id: {subject:.0f} is not a subject_id of "
            f"{folder}/{PATIENTS}"
        )
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


def _table(files: Files, name: str, fields: Mapping[str, Field], moment: str) -> pd.DataFrame:
    """Some columns of an official table by their names in small letters, the first one a key."""
    spelling = {column.lower(): column for column in header(files, name)}
    columns = [*fields, moment]
    cells = read_csv(files, name, [spelling.get(column, column) for column in columns], None)
    cells.columns = pd.Index(columns)
    table = validated(cells, fields, name)
    key = columns[0]
    for line, cell in cells[key][table[key].duplicated()].items():
        raise InputError(f"{name}, line {line}, column {key}: {cell!r} occurs twice")
    return table.assign(**{moment: _moments(cells[moment], name)})


def _moments(cells: pd.Series, file: str) -> np.ndarray:
    """Dates in seconds: differences in nanoseconds cannot hold the 300 years of a shifted birth."""
    dates = pd.to_datetime(cells, format="ISO8601", errors="coerce")
    for line, cell in cells[dates.isna()].items():
        raise InputError(
            f"{file}, line {line}, column {cells.name}: {cell!r} is not a date such as "
            "2101-10-20 19:08:00"
        )
    return dates.to_numpy("datetime64[s]")
