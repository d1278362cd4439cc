"""Income in eight states, from the American Community Survey 2018; bundled with the package.

``docs/acs_states.py`` makes the file from the Census Bureau's archives that ``acs`` reads.
"""

import io
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pandas as pd
from pydantic import Field

from robust_fairness.datasets.base import EACH_ONCE, TableDataset, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.tables._tables import only_of, two_categories
from robust_fairness.datasets.tables.acs import (
    FEATURE_COLUMNS,
    STATES,
    TASKS,
    PersonParameters,
    typed_persons,
)

BUNDLED = Path(__file__).parent
FILE = "acs_states.parquet"
INCOME = TASKS["Income"]
LABEL = "above_50000"


class AcsStates(TableDataset):
    """The rows, features, attributes and households of ``acs`` for Income in its default states.

    ``id`` is the number of the row in the bundled file, from 0.

    Source: US Census Bureau, American Community Survey 2018, 1-Year Public Use Microdata Sample;
    task of F. Ding et al., "Retiring Adult: New Datasets for Fair Machine Learning", NeurIPS 2021.
    """

    class Parameters(PersonParameters):
        """Parameters of Income in eight states; the place of birth is left out by default."""

        states: Annotated[
            tuple[str, ...], only_of("state", STATES), EACH_ONCE, Field(min_length=1)
        ] = STATES
        drop: Annotated[tuple[str, ...], only_of("feature", INCOME.features)] = ("POBP",)
        sensitive: tuple[Literal["sex", "race", "race_full", "age"], ...] = ("sex", "race")

    feature_columns: ClassVar = FEATURE_COLUMNS

    def read(self, files: Files, splits: int) -> TypedTable:
        states = self.parameters.states
        content = Files(BUNDLED, files.sources).content(FILE)
        table = pd.read_parquet(io.BytesIO(content))
        table = table[table["state"].isin(states)].astype({"AGEP": "float64"})  # as in ``acs``
        target = two_categories(table[LABEL], ("at most 50000", "above 50000"))
        return typed_persons(table, target, table["household"], INCOME, self.parameters)
