"""What several tables share: checks of their rows and parameters, thresholds at the top share."""

from collections.abc import Collection
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import AfterValidator, BaseModel

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.datasets.base import require_two_values
from robust_fairness.samples.splits import Fraction


def require_rows(table: pd.DataFrame, rows: int, file: str, filters: str) -> None:
    """Check how many rows some filters have left."""
    if len(table) != rows:
        raise InputError(f"{file}: {len(table)} rows after {filters}, expected {rows}")


def only_of(kind: str, allowed: Collection[str]) -> AfterValidator:
    """Check of a parameter that lists names, to annotate ``tuple[str, ...]`` with."""

    def check(names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in allowed:
                raise ValueError(str(unknown_name(kind, name, allowed)))
        return names

    return AfterValidator(check)


class TopShareParameters(BaseModel, extra="forbid", frozen=True):
    """How numbers become two categories: the top share and the rest.

    Attributes:
        share: the top share.
        ties: what becomes of values equal to the threshold. ``rank``: the first of them in the
            file are top, so that the share is exact, as the source's footnote has it.
            ``threshold``: all are top, so that equal values stay together and the share is larger.
        top_class: number of the top category: 0 as in the source's footnote, or 1.
    """

    share: Fraction = 0.3
    ties: Literal["rank", "threshold"] = "rank"
    top_class: Literal[0, 1] = 0


def top_share(values: pd.Series, file: str, parameters: TopShareParameters) -> pd.Series:
    """Which values are among the largest, as a categorical column.

    The categories are called ``top 30 %`` (for a share of 0.3) and ``rest``.

    Source: "Equalized Robustness" (under review, ICLR 2022), 5.1 and footnote 4.
    """
    require_two_values(values, file, str(values.name))
    count = max(1, round(parameters.share * len(values)))
    ranked = values.sort_values(ascending=False, kind="stable")
    if parameters.ties == "rank":
        top = values.index.isin(ranked.index[:count])
    else:
        top = (values >= ranked.iloc[count - 1]).to_numpy()
    names = [f"top {100 * parameters.share:g} %", "rest"]
    ordered = names if parameters.top_class == 0 else names[::-1]
    return pd.Series(
        pd.Categorical(np.where(top, *names), ordered), index=values.index, name=values.name
    )
