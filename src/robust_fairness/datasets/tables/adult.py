"""Adult: income above 50,000 dollars in the US census of 1994 (Kohavi 1996)."""

import re
from typing import Literal

import pandas as pd
from pydantic import PositiveInt

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.base import TableDataset, TableParameters, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.schemas import Category, Field, Number, validated
from robust_fairness.datasets.raw.text import read_table
from robust_fairness.samples.splits import Fraction, official_splits

CODEBOOK = "adult/adult.names"
FIRST = "adult/adult.data"
ROWS = {FIRST: 32_561, "adult/adult.test": 16_281}  # adult.names
ATTRIBUTES = ("sex", "race", "age")
FIELDS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country",
)  # fmt: skip
CLASSES = ("<=50K", ">50K")
MISSING = "?"
WITH_MISSING = ("workclass", "occupation", "native-country")


class Adult(TableDataset):
    """Both official files as one table.

    Class 0 is ``<=50K``. Attributes are ``sex`` and ``race`` (categories) and ``age`` in years.

    Source: "Equalized Robustness" (under review, ICLR 2022), 5.1.
    """

    class Parameters(TableParameters):
        """Parameters of Adult.

        Attributes:
            missing: ``keep`` all 48,842 rows, an unknown value being a category of its own (as
                "Equalized Robustness" counts them), or ``drop`` rows with one, which leaves 45,222.
            drop: columns left out of the features, such as ``fnlwgt`` (the census weight of the
                row). None by default: all columns give the 108 features usual in the field.
            split: ``random``, or ``official``: all seeds share the test file, and only validation
                rows are drawn.
            train_rows: 30,000 of 48,842 in the source, validation included; the official split has
                its own size.
        """

        missing: Literal["keep", "drop"] = "keep"
        drop: tuple[Literal["fnlwgt", "education-num"], ...] = ()
        sensitive: tuple[Literal["sex", "race", "age"], ...] = ("sex",)
        split: Literal["random", "official"] = "random"
        train_rows: PositiveInt | Fraction = 30_000

    raw_files = (CODEBOOK, *ROWS)

    def read(self, files: Files, splits: int) -> TypedTable:
        codebook = _codebook(files)
        table = pd.concat([_read(name, files, codebook) for name in ROWS], ignore_index=True)
        if self.parameters.missing == "drop":
            table = table[(table[list(WITH_MISSING)] != MISSING).all(axis=1)].copy()
            for name in WITH_MISSING:
                table[name] = table[name].cat.set_categories(list(codebook[name]))
        first = int((table.index < ROWS[FIRST]).sum())  # rows of the training file
        is_official = self.parameters.split == "official"
        return TypedTable(
            target=table.pop("label"),
            features=table.drop(columns=list(self.parameters.drop)),
            attributes={name: table[name] for name in ATTRIBUTES},
            splits=official_splits(first, len(table) - first, splits, self.parameters)
            if is_official
            else None,
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
    fields: dict[str, Field] = {
        column: Category(values) if values else Number() for column, values in codebook.items()
    }
    fields |= {column: Category((*codebook[column], MISSING)) for column in WITH_MISSING}
    cells = read_table(files, name, [*codebook, "label"], ROWS[name])
    # labels of adult.test end in a full stop, those of adult.data do not
    cells["label"] = cells["label"].str.removesuffix(".")
    return validated(cells, fields | {"label": Category(CLASSES)}, name)
