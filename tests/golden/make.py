"""Write the goldens: numbers of this version, which later versions are compared with.

    python -m tests.golden.make [TABLE ...]

Goldens are a net that shows what a change of the code changes. They are no oracle: that a number is
here does not make it right, which is what the other tests are for. They are numbers and verdicts,
and words in the tables of results; ``compare`` compares texts and pages of two checkouts. Every
file of goldens is written by this script, from inputs that seeded generators of numpy make and from
the scores that ``studies`` stores. A commit that changes a cell names the reason in its message.
"""

import sys

from tests.golden.answers import FOLDER, GOLDENS


def main(*names: str) -> None:
    """Write a Parquet file per table of goldens, or only those named, and say how large each is."""
    for name in names or GOLDENS:
        path, golden = FOLDER / f"{name}.parquet", GOLDENS[name]
        table = golden.made(golden.cases).reset_index()
        table.to_parquet(path, index=False, compression="zstd", compression_level=19)
        print(f"{name}: {len(table):,} rows, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
