"""Why values changed between two periods: the parts of a change, and what differs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from robust_fairness.core.numbers import estimate

# A row per change ("all") and its parts, share of a group or class, region, and column.
WHY = {
    "part": "str", "attribute": "str", "metric": "str", "of": "str", "then": "float64",
    "now": "float64", "change": "float64", "low": "float64", "high": "float64",
    "then_n": "int64", "now_n": "int64", "auc": "float64",
}  # fmt: skip
ALL, MIX, X, Y_GIVEN_X = "all", "group mix", "X", "Y given X"
PREDICTION = "prediction given X"
PARTS = (MIX, X, Y_GIVEN_X, PREDICTION)
OF_SHARE, REGION, COLUMN = "share", "region", "column"


@dataclass(frozen=True)
class Why:
    """The changes of one model between two periods, taken apart.

    Attributes:
        rows: with the columns ``WHY``.
        left_out: columns that name the period and are no part of X.
        auc: how well X and the groups tell the periods apart; 0.5 if not at all.
        effective: share of the rows of both periods that the common part of them rests on.
        little_overlap: whether that is too little to separate X from what differs given X.
    """

    rows: pd.DataFrame
    left_out: tuple[str, ...]
    auc: float
    effective: tuple[float, float]
    little_overlap: bool

    def to_frame(self) -> pd.DataFrame:
        """Parts, shares, regions and columns, with the columns ``WHY``."""
        return self.rows.copy()

    def changes(self) -> list[dict[str, Any]]:
        """Every change that was taken apart, with its parts by name and its first region."""
        taken_apart = []
        for _, rows in self.rows[self.rows["metric"] != ""].groupby(
            ["attribute", "metric"], sort=False
        ):
            parts = {row["part"]: row for row in _records(rows)[::-1]}
            if ALL in parts:
                taken_apart.append(
                    {**parts[ALL], "parts": parts, "region": parts.get(REGION)}
                    | {"significant": _excludes_0(parts[ALL])}
                )
        return taken_apart

    def of(self, part: str) -> list[dict[str, Any]]:
        """The shares, regions or columns."""
        return _records(self.rows[self.rows["part"] == part])

    def sentences(self) -> list[str]:
        """A line per change whose interval excludes 0, and a line on what limits them.

        Accuracy is told by attribute only where another mix of its groups changed it.
        """
        lines = [
            _sentence(change)
            for change in self.changes()
            if change["significant"]
            and (MIX not in change["parts"] or _excludes_0(change["parts"][MIX]))
        ]
        if not lines:
            lines = ["no change of accuracy or of a gap excludes 0"]
        differs = "differs so much" if self.little_overlap else "overlaps"
        lines.append(
            f"X {differs} (AUC {self.auc:.2f}){' that' if self.little_overlap else ':'} what is "
            f"compared given X rests on {min(self.effective):.0%} of the rows"
        )
        if self.left_out:
            lines.append(f"left out of X, since they name the period: {', '.join(self.left_out)}")
        return lines


def _excludes_0(row: Mapping[Any, Any]) -> bool:
    return bool(row["low"] > 0 or row["high"] < 0)


def name_of(change: Mapping[str, Any]) -> str:
    """What changed, such as ``sex: true positive rate, male less female``."""
    metric = change["metric"].replace("_", " ")
    where = f"{change['attribute']}: " if change["attribute"] else ""
    return f"{where}{metric}{', ' + change['of'] if change['of'] else ''}"


def _sentence(change: Mapping[str, Any]) -> str:
    parts = [
        f"{name} {estimate(part['change'], part['low'], part['high'], '+')}"
        for name, part in change["parts"].items()
        if name in PARTS and part["low"] < part["high"]
    ]
    whole = estimate(change["change"], change["low"], change["high"], "+")
    return f"{name_of(change)} changed by {whole}: {', '.join(parts[::-1])}"


def _records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in rows.to_dict("records")]
