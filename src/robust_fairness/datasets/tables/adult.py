"""Adult: income above 50,000 dollars in the US census of 1994 (Kohavi 1996)."""

import re
from typing import Literal

import pandas as pd
from pydantic import PositiveInt

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.base import TableDataset
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.tables._tables import (
    categories,
    numbers,
    one_hot,
    read_table,
    to_samples,
)
from robust_fairness.samples import Samples
from robust_fairness.samples.splits import Fraction, SplitParameters

CODEBOOK = "adult/adult.names"
ROWS = {"adult/adult.data": 32_561, "adult/adult.test": 16_281}  # adult.names
ATTRIBUTES = ("sex", "race", "age")
FIELDS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country",
)  # fmt: skip
CLASSES = ("<=50K", ">50K")
MISSING = "?"
WITH_MISSING = ("workclass", "occupation", "native-country")


class Parameters(SplitParameters, extra="forbid", frozen=True):
    """Parameters of Adult.

    Attributes:
        missing: ``keep`` all 48,842 rows, an unknown value being a category of its own (as
            "Equalized Robustness" counts them), or ``drop`` rows with one, which leaves 45,222.
        drop: columns left out of the features, such as ``fnlwgt`` (the census weight of the row)
            or ``education-num`` (the order of ``education``). None by default: the source names
            none, and all columns together give the 108 features usual in the field.
        sensitive: attributes that methods mitigate.
        drop_sensitive: leave the columns of the sensitive attributes out of the features.
        train_rows: 30,000 of 48,842 in the source, validation included.
    """

    missing: Literal["keep", "drop"] = "keep"
    drop: tuple[Literal["fnlwgt", "education-num"], ...] = ()
    sensitive: tuple[Literal["sex", "race", "age"], ...] = ("sex",)
    drop_sensitive: bool = False
    train_rows: PositiveInt | Fraction = 30_000


def load(parameters: Parameters, files: Files, splits: int) -> Samples:
    """Both official files as one table, numbers first and categories one-hot.

    Class 0 is ``<=50K``. Attributes are ``sex`` and ``race`` (categories) and ``age`` in years.

    Args:
        parameters: treatment of missing values, features, sensitive attributes and splits.
        files: where ``adult.data``, ``adult.test`` and ``adult.names`` are found.
        splits: number of named splits.

    Source: "Equalized Robustness" (under review, ICLR 2022), 5.1.

    Raises:
        InputError: a file is missing or damaged, a cell holds what the codebook does not know, or
            a part of a split lacks rows or a class.
    """
    codebook = _codebook(files)
    table = pd.concat([_read(name, files, codebook) for name in ROWS], ignore_index=True)
    if parameters.missing == "drop":
        table = _drop_missing(table, codebook)
    label = table.pop("label")
    attributes = {name: table[name] for name in ATTRIBUTES}
    dropped = {*parameters.drop, *(parameters.sensitive if parameters.drop_sensitive else ())}
    return to_samples(
        features=one_hot(table.drop(columns=dropped)),
        target=label,
        attributes=attributes,
        sensitive=parameters.sensitive,
        parameters=parameters,
        splits=splits,
        sources=files.sources,
    )


def _codebook(files: Files) -> dict[str, tuple[str, ...]]:
    """Categories of every field in the order of the file; none for a number."""
    lines = re.findall(r"^([\w-]+): (.+)\.$", files.text(CODEBOOK), re.MULTILINE)
    codebook = {
        name: () if values == "continuous" else tuple(values.split(", ")) for name, values in lines
    }
    if tuple(codebook) != FIELDS:
        raise InputError(
            f"{CODEBOOK}: describes {', '.join(codebook) or 'nothing'}; "
            f"expected {', '.join(FIELDS)}"
        )
    return codebook


def _read(name: str, files: Files, codebook: dict[str, tuple[str, ...]]) -> pd.DataFrame:
    """One file with typed columns, the label last."""
    table = read_table(files, name, [*codebook, "label"], ROWS[name])
    # Labels of adult.test end in a full stop, those of adult.data do not.
    table["label"] = table["label"].str.removesuffix(".")
    allowed = {**codebook, "label": CLASSES}
    for column in WITH_MISSING:
        allowed[column] = (*codebook[column], MISSING)
    return pd.DataFrame(
        {
            column: categories(table[column], name, values)
            if values
            else numbers(table[column], name)
            for column, values in allowed.items()
        }
    )


def _drop_missing(table: pd.DataFrame, codebook: dict[str, tuple[str, ...]]) -> pd.DataFrame:
    """Rows whose values are all known; ``?`` is no category any more."""
    known = table[(table[list(WITH_MISSING)] != MISSING).all(axis=1)]
    return known.assign(
        **{name: known[name].cat.set_categories(list(codebook[name])) for name in WITH_MISSING}
    )


class Adult(TableDataset):
    """``load`` with parameters."""

    Parameters = Parameters

    def load(self, files: Files, splits: int) -> Samples:
        """The samples."""
        return load(self.parameters, files, splits)
