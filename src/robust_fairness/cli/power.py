"""What a run will be able to tell about gaps between groups, foretold from numbers of rows."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.experiment.experiment import DatasetConfig
from robust_fairness.inference.gaps import linear_gap
from robust_fairness.inference.power import detectable
from robust_fairness.samples import Samples
from robust_fairness.samples.groups import groups_of

BINARY = 2  # classes of which a gap in equalised odds is foretold
COLUMNS = ["data", "dataset", "attribute", "domain", "change", "limit", "rows"]


@dataclass(frozen=True)
class RowCounts:
    """Rows by class and group at home and in a domain that is not trained on.

    Attributes:
        data: the table that ``dataset`` trains on a part of.
        models: cells that are tested there.
        labels: names of the rates' rows, class by group.
        home: ``[labels]``.
        away: ``[labels]``.
    """

    data: str
    dataset: str
    attribute: str
    domain: str
    models: int
    labels: tuple[str, ...]
    home: np.ndarray
    away: np.ndarray


def counts(samples: Samples, dataset: DatasetConfig) -> Iterator[RowCounts]:
    """Numbers of rows of the first split for every sensitive attribute and domain."""
    if len(samples.classes) != BINARY or not samples.domain:
        return
    split = samples.split_names[0]
    samples = samples.of_split(split)
    domains = samples.attributes[samples.domain].astype(str).to_numpy()
    home, away = samples.rows(split, "test"), samples.rows(split, "ood_test")
    for attribute in samples.sensitive:
        try:
            groups = groups_of(samples.attributes, [attribute])
        except InputError:  # continuous: it defines no groups
            continue
        used = np.flatnonzero(groups.counts)
        if len(used) < BINARY:
            continue
        labels = tuple(f"{groups.names[g]}, {c}" for c in samples.classes[::-1] for g in used)

        codes = samples.y * len(groups.names) + groups.index
        cells = [c * len(groups.names) + g for c in (1, 0) for g in used]
        for name in sorted(set(domains[away])):
            ends = [
                np.array([(codes[rows[groups.index[rows] >= 0]] == cell).sum() for cell in cells])
                for rows in (home, away[domains[away] == name])
            ]
            place = (dataset.base, dataset.name, attribute, name)
            yield RowCounts(*place, len(dataset.cells), labels, *ends)


def foretold(every: list[RowCounts]) -> pd.DataFrame:
    """The smallest change of the equalized odds difference that would be found.

    Returns:
        ``COLUMNS``, a row per dataset, attribute and domain: the change (NaN: not estimable), and
        the rows that limit it with their number. All of a run's tests are one family.
    """
    tests = sum(row.models for row in every)
    rows = []
    for row in every:
        form = linear_gap("largest", len(row.labels) // BINARY, BINARY)
        change, limit = detectable(row.home[None], row.away[None], form, tests)
        at_home = limit[0] < len(row.labels)
        of = row.labels[limit[0] % len(row.labels)]
        number = np.concatenate([row.home, row.away])[limit[0]]
        shown = {name: value for name, value in asdict(row).items() if name in COLUMNS}
        rows.append(
            shown
            | {"change": change[0], "limit": f"{of}{' at home' if at_home else ''}", "rows": number}
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def sentences(rows: pd.DataFrame) -> Iterator[str]:
    """A sentence for every table and attribute."""
    for (data, attribute), part in rows.groupby(["data", "attribute"], sort=False):
        known = part.dropna(subset="change").sort_values("change")
        text = f"{data}, {attribute}: "
        if len(known):
            best, worst = known.iloc[0], known.iloc[-1]
            text += f"a change of {_points(best)} points would be found in {best['domain']}"
            if len(known) > 1:
                text += f", one of {_points(worst)} in {worst['domain']}"
            text += f" (limited by {worst['rows']:,} rows: {worst['limit']})"
        hopeless = part[part["change"].isna()]
        if len(hopeless):
            listed = [
                f"{row['domain']} ({row['rows']} rows: {row['limit']})"
                for row in hopeless.to_dict("records")
            ]
            text += (
                f"{'; ' if len(known) else ''}not estimable in {', '.join(listed)}: merge levels"
            )
        yield text + "."


def _points(row: pd.Series) -> str:
    return f"{100 * row['change']:.0f}"
