"""What several tables share: checks, codes and missing cells as features, top shares."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import AfterValidator, BaseModel

from robust_fairness.auditing.read.columns import require_two_values
from robust_fairness.bench.datasets.base import MISSING, TableParameters
from robust_fairness.bench.samples.splits import Fraction
from robust_fairness.core.errors import InputError, unknown_name

INFREQUENT = "infrequent"


def require_rows(table: pd.DataFrame, rows: int, file: str, filters: str) -> None:
    """Check how many rows some filters have left."""
    if len(table) != rows:
        raise InputError(f"{file}: {len(table)} rows after {filters}, expected {rows}")


def only_of(kind: str, allowed: Callable[[], Collection[str]]) -> AfterValidator:
    """Check of a parameter that lists names, to annotate ``tuple[str, ...]`` with."""

    def check(names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in allowed():
                raise ValueError(str(unknown_name(kind, name, allowed())))
        return names

    return AfterValidator(check)


class FaircoccoParameters(TableParameters):
    """Parameters of tables that FairCOCCO splits 60 / 20 / 20."""

    val_fraction: Fraction = 0.25


class TopShareParameters(BaseModel, extra="forbid", frozen=True):
    """How numbers become two categories: the top share and the rest.

    Attributes:
        share: the top share.
        ties: values equal to the threshold. ``rank``: the first of them in the file are top, so
            that the share is exact, as in the source's footnote; ``threshold``: all are top.
        top_class: number of the top category: 0 as in the source's footnote, or 1.
    """

    share: Fraction = 0.3
    ties: Literal["rank", "threshold"] = "rank"
    top_class: Literal[0, 1] = 0


def top_share(values: pd.Series, file: str, parameters: TopShareParameters) -> pd.Series:
    """Which values are among the largest, as categories such as ``top 30 %`` and ``rest``.

    Source: "Equalized Robustness" (under review, ICLR 2022), 5.1 and footnote 4.
    """
    require_two_values(values, f"{file}: {values.name}")
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


def coded(codes: pd.Series, names: Mapping[Any, str], missing: str = "") -> pd.Series:
    """Codes as categories in the order of ``names``, and ``missing`` unless it is empty.

    Codes are numbers, or categories all of which have a name; ``names`` may have further ones.
    """
    if isinstance(codes.dtype, pd.CategoricalDtype):
        names = {code: names[code] for code in codes.cat.categories}
    kinds = [*dict.fromkeys(names.values()), *([missing] if missing else [])]
    values = codes.map(dict(names)).astype("object")
    if missing:
        values = values.where(codes.notna(), missing)
    for code in codes[values.isna()]:
        raise InputError(
            f"column {codes.name}: code {code:g}, allowed: {', '.join(map(str, names))}"
        )
    return values.astype(pd.CategoricalDtype(kinds))


def two_categories(second: pd.Series, names: tuple[str, str]) -> pd.Series:
    """Truth values as two categories: the first name where false, the second where true."""
    codes = second.to_numpy(np.int8)
    return pd.Series(pd.Categorical.from_codes(codes, pd.Index(names)), second.index)


def without(values: pd.Series, category: str) -> pd.Series:
    """The values with one category fewer, whose rows have no value, in the same order."""
    return values.cat.set_categories(values.cat.categories.drop(category))


def grouped(codes: pd.Series, first: Mapping[str, int], missing: str) -> pd.Series:
    """Numeric codes as categories of consecutive codes, then one of missing cells.

    ``first`` has the smallest code of each category, ascending.
    """
    kinds = [*first, missing]
    index = np.searchsorted(list(first.values()), codes.to_numpy(), side="right") - 1
    index[codes.isna()] = len(first)
    return pd.Series(
        pd.Categorical.from_codes(index, pd.Index(kinds)), codes.index, name=codes.name
    )


def with_indicators(table: pd.DataFrame, incomplete: Iterable[str]) -> pd.DataFrame:
    """The table with 0 for missing numbers and one 0/1 column ``name=missing`` per such column.

    The indicators of ``incomplete`` columns exist whether or not a cell is missing.
    """
    names = [name for name in incomplete if name in table]
    indicators = table[names].isna().astype("uint8").add_suffix(f"={MISSING}")
    filled = pd.concat([table.fillna(dict.fromkeys(names, 0)), indicators], axis="columns")
    for name in filled.columns[filled.isna().any()]:
        raise InputError(f"column {name}: {filled[name].isna().sum()} cells are missing")
    return filled


def frequent(values: pd.Series, share: float) -> pd.Series:
    """Categories with those below ``share`` of the rows merged into ``infrequent``, the last."""
    codes, names = pd.factorize(values, sort=True)
    kept = np.bincount(codes, minlength=len(names)) >= share * len(values)
    index = np.where(kept, kept.cumsum() - 1, kept.sum())[codes]
    kinds = pd.Index([*names[kept], *([] if kept.all() else [INFREQUENT])])
    return pd.Series(pd.Categorical.from_codes(index, kinds), values.index, name=values.name)
