"""Weighted rates, differences and standard errors of twelve states, against other code.

``data/acs_weights.json`` was made with numpy and pandas alone from the public files of the ACS
2018; its first line says how. The files are not part of the repository.
"""

import json
import os
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

from robust_fairness.auditing.door import check
from robust_fairness.auditing.predictions import Options
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.rates import rates_of

EXPECTED = json.loads((Path(__file__).parent / "data" / "acs_weights.json").read_text())["states"]
FOLDER = Path(os.environ.get("ROBUST_FAIRNESS_DATA") or "data/01_raw", "acs_2018")
REPLICATES = [f"PWGTP{number}" for number in range(1, 81)]
READ = ["SERIALNO", "SEX", "SCHL", "PINCP", "AGEP", "WKHP", "PWGTP", *REPLICATES]
RATES = {"tpr": "true_positive_rate", "fpr": "false_positive_rate"}
OPTIONS = {"y_true": "y", "y_pred": "degree", "sensitive_features": ["SEX"]}
DESIGNS = {
    "se_replicates": Options(**OPTIONS, sample_weight="PWGTP", replicate_weights=REPLICATES),
    "se_households": Options(**OPTIONS, sample_weight="PWGTP", unit="SERIALNO"),
}


def people(state: str) -> pd.DataFrame:
    """The rows of the Income task with a bachelor's degree as the prediction."""
    path = FOLDER / f"csv_p{state.lower()}.zip"
    if not path.exists():
        pytest.skip(f"{path.name} of the ACS 2018 is not available")
    with ZipFile(path) as archive:
        (name,) = [member for member in archive.namelist() if member.endswith(".csv")]
        with archive.open(name) as file:
            table = pd.read_csv(file, usecols=READ)
    table = table[(table["AGEP"] > 16) & (table["PINCP"] > 100) & (table["WKHP"] > 0)]
    table = table[table["PWGTP"] >= 1].reset_index(drop=True)
    return table.assign(y=table["PINCP"] > 50_000, degree=table["SCHL"] >= 21)


@pytest.mark.parametrize("state", list(EXPECTED))
def test_weights_replicates_and_households_of_a_state_are_the_reference(state: str) -> None:
    table = people(state)
    assert len(table) == EXPECTED[state]["rows"]
    for design, options in DESIGNS.items():
        cells = check(table, options).counts["SEX"]
        assert cells.groups == ("1", "2")  # men, women
        for name, rate in RATES.items():
            expected = EXPECTED[state][name]
            means = cells.values(find_metric(rate).definition)
            assert means.value[::-1] == pytest.approx([expected["women"], expected["men"]])
            covariance = rates_of([means], np.array([True, True])).covariance[0]
            variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
            assert np.sqrt(variance) == pytest.approx(expected[design], rel=1e-9)
