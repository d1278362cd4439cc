"""Communities and Crime: violent crime in 1,994 US communities (Redmond and Baveja 2002)."""

import re
from typing import Literal

import pandas as pd
from pydantic import PositiveInt

from robust_fairness.datasets._files import Files
from robust_fairness.datasets._splits import Fraction, SplitParameters
from robust_fairness.datasets._tables import (
    TopShareParameters,
    numbers,
    read_table,
    to_samples,
    top_share,
)
from robust_fairness.errors import InputError
from robust_fairness.samples import Samples

CODEBOOK = "communities_crime/communities.names"
DATA = "communities_crime/communities.data"
ROWS = 1994  # communities.names
FIELDS = 128  # communities.names
NOT_PREDICTIVE = 5  # state, county, community, communityname, fold
TARGET = "ViolentCrimesPerPop"
SENSITIVE = ("racepctblack", "FemalePctDiv")


class Parameters(SplitParameters, TopShareParameters, extra="forbid", frozen=True):
    """Parameters of Communities and Crime.

    Attributes:
        sensitive: attributes that methods mitigate: those of the name ``..._group`` are cut at
            the top share like the target, the others are the numbers themselves.
        drop_sensitive: leave the columns of the sensitive attributes out of the features.
        train_rows: 1,500 of 1,994 in the source, validation included.
    """

    sensitive: tuple[
        Literal["racepctblack_group", "FemalePctDiv_group", "racepctblack", "FemalePctDiv"], ...
    ] = ("racepctblack_group",)
    drop_sensitive: bool = False
    train_rows: PositiveInt | Fraction = 1500


def load(parameters: Parameters, files: Files, splits: int) -> Samples:
    """Ninety-nine numbers from 0 to 1 of each community, and its violent crime.

    Columns 1 to 5 (where the community is) and every column that lacks a value for some community
    according to the codebook (``OtherPerCap`` for one, 22 of the police for 1,675) are left out,
    so that nothing has to be imputed. Class 0 and group 0 are the top 30 %.

    Args:
        parameters: sensitive attributes, thresholds and splits.
        files: where ``communities.data`` and ``communities.names`` are found.
        splits: number of named splits.

    Source: "Equalized Robustness" (under review, ICLR 2022), 5.1 and footnote 4.

    Raises:
        InputError: a file is missing or damaged, a cell is no number from 0 to 1, or a part of a
            split lacks rows or a class.
    """
    missing = _codebook(files)
    cells = read_table(files, DATA, list(missing), ROWS)
    complete = [name for name, rows in missing.items() if rows == 0]
    table = pd.DataFrame({name: numbers(cells[name], DATA, within=(0, 1)) for name in complete})
    table = table.reset_index(drop=True)
    target = top_share(table.pop(TARGET), parameters)
    attributes = {f"{name}_group": top_share(table[name], parameters) for name in SENSITIVE}
    attributes |= {name: table[name] for name in SENSITIVE}
    dropped = {name.removesuffix("_group") for name in parameters.sensitive}
    return to_samples(
        features=table.drop(columns=dropped) if parameters.drop_sensitive else table,
        target=target,
        attributes=attributes,
        sensitive=parameters.sensitive,
        parameters=parameters,
        splits=splits,
        sources=files.sources,
    )


def _codebook(files: Files) -> dict[str, int | None]:
    """Communities without a value, by field in the order of the file; None for columns 1 to 5."""
    text = files.text(CODEBOOK)
    fields = re.findall(r"^@attribute (\w+) ", text, re.MULTILINE)
    # Min, Max, Mean, SD, Correl, Median, Mode and the number of missing values.
    missing = dict(re.findall(r"^(\w+)(?: -?[\d.]+){7} (\d+)$", text, re.MULTILINE))
    described = [name for name in fields if name in missing]
    if len(fields) != FIELDS or described != fields[NOT_PREDICTIVE:]:
        raise InputError(
            f"{CODEBOOK}: names {len(fields)} fields and has statistics of {len(described)}, "
            f"expected {FIELDS} and {FIELDS - NOT_PREDICTIVE}"
        )
    return {name: int(missing[name]) if name in missing else None for name in fields}
