"""How the tests load datasets, and what is equal to what."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from robust_fairness.bench.datasets.fetch import command
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from robust_fairness.core.registry import find
from robust_fairness.core.samples import Samples


def load(name: str, root: Path, splits: int = 1, **options: object) -> Samples:
    """The samples of a dataset whose raw files are below ``root``."""
    plugin = find("dataset", name)
    return plugin(plugin.Parameters.model_validate(options)).load(
        Files(root, download=command), splits
    )


def require_equal(samples: Samples, expected: Samples) -> None:
    """Check features and their names, labels, attributes and splits."""
    assert samples.features == expected.features
    np.testing.assert_array_equal(samples.x, expected.x)
    np.testing.assert_array_equal(samples.y, expected.y)
    pd.testing.assert_frame_equal(samples.attributes, expected.attributes)
    pd.testing.assert_frame_equal(samples.splits, expected.splits)


@contextmanager
def one_line(message: str) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """Expect an error of one line that has this pattern."""
    with pytest.raises(InputError, match=message) as error:
        yield error
    assert "\n" not in str(error.value)


Change = Callable[[pd.DataFrame], pd.DataFrame]


def cell(column: str, value: object, row: int) -> Change:
    """Another value of a cell of a table; ``row`` counts from 1."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        table = table.astype({column: object})
        table.loc[row - 1, column] = value
        return table

    return change
