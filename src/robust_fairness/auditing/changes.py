"""Changes of an audit's values between two periods, each with its interval."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.auditing.metric_names import CORRECTED, P_VALUES, SHARE
from robust_fairness.auditing.naming import option
from robust_fairness.auditing.predictions import Predictions
from robust_fairness.auditing.read.columns import require_same_spelling
from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.numbers.intervals import Compared, difference_of
from robust_fairness.numbers.verdicts import judged

CHANGES = {
    "attribute": "str", "group": "str", "metric": "str",
    "then": "float64", "then_low": "float64", "then_high": "float64", "then_n": "int64",
    "now": "float64", "now_low": "float64", "now_high": "float64", "now_n": "int64",
    "change": "float64", "low": "float64", "high": "float64", "note": "str",
    "state": "str", "p": "float64",
}  # fmt: skip
KEYS = ["attribute", "group", "metric"]
MIX = "accuracy_due_to_mix"
RATE = "accuracy_by_group"


def require_comparable(now: Predictions, then: Predictions, names: tuple[str, str]) -> None:
    """Check that two tables have the same classes, kinds of predictions and types of attributes.

    Args:
        now: the current predictions.
        then: the earlier ones.
        names: names of both tables, for the message.
    """
    facts = [
        ("classes", *(", ".join(period.samples.classes) for period in (now, then))),
        ("predictions of kind", now.kind, then.kind),
        *(
            (f"{name} as", *(_kind(period.samples.attributes[name]) for period in (now, then)))
            for name in now.samples.attributes
        ),
    ]
    for what, current, earlier in facts:
        if current != earlier:
            raise InputError(
                f"{names[0]} has {what} {current}, {names[1]} has {earlier}; allowed: the same in "
                f"both (see {option('pos_label')}, {option('prediction_is')}, {option('types')})"
            )
    for column in now.groups_by_column:
        here, there = (period.groups_by_column[column] for period in (now, then))
        require_same_spelling(here, there, [f"{name}, column {column}," for name in names])


def _kind(values: pd.Series) -> str:
    return "category" if isinstance(values.dtype, pd.CategoricalDtype) else "number"


def tested_changes(
    now: Mapping[tuple[str, str], Compared],
    then: Mapping[tuple[str, str], Compared],
    shown: Iterable[str],
) -> pd.DataFrame:
    """Changes of the gaps that two periods compare, with verdicts, by attribute and metric.

    All changes that a reader sees first are one family, adjusted by Holm; those of any other gap
    are a family of their own.

    Args:
        now: what gaps compare, by attribute and metric.
        then: in the earlier period.
        shown: metrics of the gaps that are shown first, see ``who.gap_names``.

    Returns:
        The columns ``VERDICTS`` and ``without``, the groups that are not known.
    """
    tests = [
        made.assign(attribute=attribute, metric=metric)
        for (attribute, metric), gap in now.items()
        if (attribute, metric) in then
        and (made := gap.tests_from(then[attribute, metric])) is not None
    ]
    if not tests:
        return pd.DataFrame()
    table = pd.concat(tests, ignore_index=True)
    others = table["metric"].mask(table["metric"].isin(list(shown)))
    families = table.groupby(others, sort=False, dropna=False)
    return pd.concat([judged(family) for _, family in families]).set_index(["attribute", "metric"])


def changes(
    now: pd.DataFrame, then: pd.DataFrame, of_gaps: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Every value then and now, and its change, now less then.

    Changes of gaps have the intervals of ``of_gaps`` where they are known; others are made from the
    two separate intervals: by ``difference_of`` for rates, by ``change_of`` between groups. Values
    without an interval have none of their change either, and p-values are left out. A group of one
    period only has no change; gaps of an attribute with other groups then and now say so.
    Where a group is not known in a period, the change is that of the other groups, which the note
    says, and its upper bound the largest possible one. ``accuracy_due_to_mix`` is the part of the
    change of accuracy that is due to the mix of the groups of each attribute (``due_to_mix``).

    Args:
        now: rows of an audit of the current period, with the columns ``AUDIT``.
        then: rows of an audit of the earlier period.
        of_gaps: what ``tested_changes`` knows of gaps; others have no verdict.

    Returns:
        One row per value, with the columns ``CHANGES``.
    """
    both = joined(_kept(now), _kept(then), ("_now", "_then"))
    current, earlier = (
        tuple(both[f"{part}_{period}"].to_numpy() for part in ("value", "low", "high"))
        for period in ("now", "then")
    )
    gaps = (both["group"] == "") & (both["attribute"] != "")
    low, high = np.where(gaps, change_of(current, earlier), difference_of(current, earlier))
    table = both[KEYS].assign(
        then=earlier[0], then_low=earlier[1], then_high=earlier[2], then_n=both["n_then"].fillna(0),
        now=current[0], now_low=current[1], now_high=current[2], now_n=both["n_now"].fillna(0),
        change=current[0] - earlier[0], low=low, high=high, note=_notes(both), state="", p=np.nan,
    )  # fmt: skip
    if of_gaps is not None and len(of_gaps):
        known = of_gaps.reindex(pd.MultiIndex.from_frame(table[["attribute", "metric"]]))
        known = known.set_axis(table.index).where(gaps)
        known["without"] = known["without"].fillna("")
        some = known["without"] != ""
        table["change"] = table["change"].mask(some, known["change"])
        table.loc[some, "note"] += ("; without " + known["without"])[some]
        table["note"] = table["note"].str.removeprefix("; ")
        for name in ("low", "high", "state", "p"):
            table[name] = known[name].fillna(table[name])
    rows: list[dict[Any, Any]] = table.to_dict("records")
    return tables.table(CHANGES, [*rows, *_mix_rows(table)])


def change_of(now: Iterable[Any], then: Iterable[Any]) -> tuple[Any, Any]:
    """Interval of the change of a gap, a ratio or a worst group, from the two separate intervals.

    The square-and-add rule takes estimates to be unbiased. An absolute gap near 0 is biased upwards
    and a ratio near 1 downwards; where an interval ends there, the bound of the change on that side
    is the difference of the two bounds, which holds whenever both of them do.

    Args:
        now: estimates with their lower and upper bounds, ``[...]`` each.
        then: the earlier ones.
    """
    least, most = difference_of(now, then)
    (_, low, high), (_, low_then, high_then) = now, then
    least = np.where(_at_end(low, high_then), low - high_then, least)
    most = np.where(_at_end(low_then, high), high - low_then, most)
    return least, most


def _at_end(low: Any, high: Any) -> Any:
    """Whether a lower bound is 0, or an upper one 1."""
    return (np.asarray(low) <= 0) | (np.asarray(high) >= 1)


def _kept(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of metrics that apply, without p-values."""
    return rows[rows["applies"] & ~rows["metric"].isin([*P_VALUES, *CORRECTED.values()])]


def joined(
    first: pd.DataFrame, second: pd.DataFrame, suffixes: tuple[str, str] = ("", "_change")
) -> pd.DataFrame:
    """The rows of two tables by attribute, group and metric, in the order of the first one."""
    keys = pd.concat([first[KEYS], second[KEYS]], ignore_index=True).drop_duplicates()
    return keys.merge(
        first.merge(second, on=KEYS, how="outer", suffixes=suffixes), on=KEYS, how="left"
    )


def _notes(both: pd.DataFrame) -> list[str]:
    """What has no counterpart: groups of one period, and gaps of other groups."""
    shares = both[both["metric"] == SHARE]
    only = {
        "only in the current period": shares[shares["n_then"].isna()],
        "only in the earlier period": shares[shares["n_now"].isna()],
    }
    told: dict[str, list[str]] = {}
    of_group: dict[tuple[str, str], str] = {}
    for where, rows in only.items():
        for attribute, group in zip(rows["attribute"], rows["group"], strict=True):
            told.setdefault(attribute, []).append(f"{group} {where}")
            of_group[attribute, group] = where
    return [
        of_group.get((attribute, group), "") if group else "; ".join(told.get(attribute, ()))
        for attribute, group in zip(both["attribute"], both["group"], strict=True)
    ]


def _mix_rows(compared: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The change of accuracy that is due to the mix of the groups of each attribute."""
    for attribute, rows in compared[compared["metric"] == SHARE].groupby("attribute", sort=False):
        rates = compared[(compared["metric"] == RATE) & (compared["attribute"] == attribute)]
        both = rows.merge(rates, on="group", suffixes=("_share", "_rate"))
        if len(both):
            part = due_to_mix(
                *(both[f"{period}_share"].to_numpy() for period in ("now", "then")),
                *(both[f"{period}_rate"].to_numpy() for period in ("now", "then")),
            )
            yield {
                "attribute": attribute, "group": "", "metric": MIX, "change": part,
                "now_n": int(both["now_n_rate"].sum()), "then_n": int(both["then_n_rate"].sum()),
            }  # fmt: skip


def due_to_mix(
    shares_now: np.ndarray, shares_then: np.ndarray, now: np.ndarray, then: np.ndarray
) -> float:
    r"""Part of the change of a mean that is due to other shares of the groups.

    With shares :math:`p_a` then and :math:`t_a` now of group a and means m,

    .. math:: m_T - m_P = \sum_a p_a (m_{T,a} - m_{P,a}) + \sum_a (t_a - p_a) m_{T,a}

    of which this is the second sum. A group of one period only (NaN in the other one) belongs to
    the mix.

    Args:
        shares_now: shares of the groups now ``[groups]``.
        shares_then: shares of the groups then.
        now: means of the groups now.
        then: means of the groups then.
    """
    mean = np.where(np.isnan(now), then, now)
    return float(np.sum((np.nan_to_num(shares_now) - np.nan_to_num(shares_then)) * mean))
