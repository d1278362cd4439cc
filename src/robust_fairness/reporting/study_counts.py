"""The counts of the study of natural shift: its folder, and what the counts answer.

A folder of each base dataset has a file of each dataset; beside it are the numbers of its rows.
"""

from pathlib import Path

import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.core.files import atomic_path
from robust_fairness.reporting import study, study_predictions

KEYS = ["trained_on", "method", "trial", "seed", "part", "tested_on"]


def counts_path(folder: Path, base: str, further: str | None = None) -> Path:
    """The folder of the counts of a base dataset, or of those in a further domain."""
    return folder / (f"{base}_in_{further}" if further else base)


def rows_path(counts: Path) -> Path:
    """The file of the numbers of rows that belong to counts."""
    return counts.with_name(f"{counts.name}_rows.parquet")


def counts_in(path: Path, dataset: str = "*") -> pd.DataFrame:
    """The counts of the blocks that are done, of one dataset or of all."""
    files = sorted(path.glob(f"{dataset}.parquet"))
    if files:
        return pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
    return pd.DataFrame(columns=["trained_on", "method", "seed", "trial", "selections"])


def add(path: Path, dataset: str, counts: pd.DataFrame) -> None:
    """Put counts of a block into the file of its dataset, in place of earlier ones."""
    known = pd.concat([counts_in(path, dataset), counts], ignore_index=True)
    write(path / f"{dataset}.parquet", known.drop_duplicates(KEYS, keep="last"))


def write(path: Path, table: pd.DataFrame) -> None:
    """Write counts, or numbers of rows, atomically."""
    floats = [str(name) for name in table if table[name].dtype.kind == "f"]
    with atomic_path(path) as temporary:
        table.to_parquet(
            temporary,
            index=False,
            compression="zstd",
            use_dictionary=[str(name) for name in table if name not in floats],
            column_encoding=dict.fromkeys(floats, "BYTE_STREAM_SPLIT"),  # two thirds of the size
        )


def answered(folder: Path, base: str, rows: int | None = None, further: str | None = None) -> str:
    """The tables of ``reporting.study``, or what its questions wait for."""
    scores = study.scores(*_read(counts_path(folder, base)))
    waiting = study.missing(scores)
    if waiting:
        return f"{base}: no verdict before these methods are complete: {', '.join(waiting)}"
    if further:
        shown = [
            study_predictions.scored(scores, *_read(counts_path(folder, base, further)), further)
        ]
    else:
        made = (
            study.answers, study.kept, study.promised, study.dominated, study.movement_forecasts,
            study_predictions.variances, study_predictions.shares_kept, study_predictions.frontiers,
        )  # fmt: skip
        shown = [make(scores) for make in made] + [study_predictions.predictions(scores, rows)]
    return "\n\n".join(table.round(4).to_csv(index=False) for table in shown)


def _read(path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    counts = counts_in(path)
    if counts.empty:
        raise InputError(f"{path}: missing, train it first")
    return counts, pd.read_parquet(rows_path(path))
