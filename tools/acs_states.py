"""Make the bundled table of ``acs_states`` from the Census Bureau's archives.

The archives are those of ``robust-fairness fetch acs``:

    python -m tools.acs_states
"""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from robust_fairness.bench.datasets.fetch import DATA_PACKAGE
from robust_fairness.bench.datasets.tables.acs import (
    FILE,
    INCOME,
    LABEL,
    STATES,
    read_state,
    task_rows,
)
from robust_fairness.core.raw_files import Files, default_root


def extract(files: Files) -> pd.DataFrame:
    """The rows of Income in the eight states: features, weight, label, household and state.

    Households are numbered in the order of the archives.
    """
    persons = pd.concat([read_state(files, state, INCOME) for state in STATES], ignore_index=True)
    table = task_rows(persons, INCOME).reset_index(drop=True)
    return (
        table[[*INCOME.features, "PWGTP"]]
        .astype("int16")
        .assign(
            **{LABEL: table[INCOME.target] > INCOME.threshold},
            household=pd.factorize(table["SERIALNO"])[0].astype("int32"),
            state=pd.Categorical(table["state"], STATES),
        )
    )


def main() -> None:
    """Write the file."""
    table = pa.Table.from_pandas(extract(Files(default_root())), preserve_index=False)
    others = [name for name in table.column_names if name != "household"]
    pq.write_table(
        table,
        Path("bundled", DATA_PACKAGE, FILE),
        compression="zstd",
        use_dictionary=others,
        column_encoding={"household": "DELTA_BINARY_PACKED"},  # ascending
    )


if __name__ == "__main__":
    main()
