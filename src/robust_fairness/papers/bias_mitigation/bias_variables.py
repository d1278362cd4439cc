"""Methods of the study of bias mitigation by the bias variables that they are given."""

import pandas as pd

from robust_fairness.report.results import Results

PAPER = "bias_mitigation"
STANDARD = "erm"
IMPLICIT = ("lff", "spectral_decoupling")
EXPLICIT = ("group_upweighting", "group_dro", "rubi", "lnl", "irmv1")
GROUP_AWARE = (*EXPLICIT, "adv_debias", "laftr", "cuma")


def with_variables(
    results: Results, rows: pd.DataFrame, default: str, hparams: tuple[str, ...] = ()
) -> pd.DataFrame:
    """Rows of the trials that change only the bias variables given to a method, with these."""
    result = results.with_hparams(rows, ["explicit", *hparams])
    aware = result["method"].isin(GROUP_AWARE)
    explicit = result["explicit"].astype(object).fillna(default).where(aware, "")
    return result.assign(explicit=explicit)
