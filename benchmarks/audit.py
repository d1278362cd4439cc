"""The audit of a large table: processor seconds and peak memory of the command as people run it.

A made-up table with four attributes (three of text, one number cut into groups), class and
probability, beside other columns that no audit asks for, is written as CSV and as Parquet; each is
audited in a process of its own, of which the system tells the largest resident set.

    python benchmarks/audit.py --rows 10000000 --forms parquet

A process inherits the peak of the one that starts it, so that this one stays small: another one
writes the tables.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FORMS = ("csv", "csv.gz", "parquet")
TARGET_SECONDS, TARGET_BYTES = 60, 1e9  # of ten million rows from Parquet
BLOCK = 1_000_000
COMMAND = (
    "--target=repaid", "--positive=yes", "--prediction=score", "--attributes=sex,region,job,age",
    "--bins=age=30,50,70",
)  # fmt: skip


def write(path: Path, rows: int, others: int) -> None:
    """Write the table block by block.

    Args:
        path: where; ``.csv``, ``.csv.gz`` or ``.parquet``.
        rows: how many.
        others: how many columns of text that the audit does not ask for.
    """
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv, parquet

    texts = {
        "sex": ["female", "male"],
        "region": [f"region {k}" for k in range(8)],
        "job": [f"occupation {k}" for k in range(20)],
        **{f"note_{k}": [f"remark {k} of many words" for k in range(1000)] for k in range(others)},
    }
    random = np.random.default_rng(0)
    writer = None
    for start in range(0, rows, BLOCK):
        n = min(BLOCK, rows - start)
        chosen = {name: random.integers(0, len(some), n) for name, some in texts.items()}
        score = random.beta(2, 2 + 0.2 * chosen["sex"])
        columns = {
            name: pa.array(texts[name]).take(pa.array(codes)) for name, codes in chosen.items()
        }
        repaid = np.where(random.random(n) < score, "yes", "no")
        columns |= {
            "age": pa.array(random.integers(18, 90, n)),
            "repaid": pa.array(repaid),
            "score": pa.array(score),
        }
        table = pa.table(columns)
        if writer is None:
            makes = parquet.ParquetWriter if path.suffix == ".parquet" else csv.CSVWriter
            sink = pa.output_stream(str(path))  # compresses by the name
            writer = makes(sink, table.schema)
        writer.write_table(table)
    writer.close()
    sink.close()


def measured(words: list[str]) -> tuple[float, float, int]:
    """Wall seconds, processor seconds and largest resident set in bytes of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{words[-1]}: exit status {process.returncode}")
    seconds = used.ru_utime + used.ru_stime
    return time.perf_counter() - start, seconds, used.ru_maxrss * 1024


def main() -> None:
    """Write the tables, audit them and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--others", type=int, default=4, help="columns that are not asked for")
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=["csv", "parquet"])
    parser.add_argument("--compare", action="store_true", help="against a reference as long")
    parser.add_argument("--write", type=Path, help="write this table and no more")
    options = parser.parse_args()
    if options.write:
        write(options.write, options.rows, options.others)
        return
    audit = [sys.executable, "-m", "robust_fairness", "audit"]
    load = "/".join(f"{average:.1f}" for average in os.getloadavg())
    print(f"{options.rows:,} rows; {os.cpu_count()} cores, load {load} before")
    _, seconds, peak = measured([*audit, "--help"])
    print(f"the command's help alone: {seconds:.1f} s of a processor, {peak / 1e9:.2f} GB")
    with tempfile.TemporaryDirectory() as folder:
        for form in options.forms:
            path = Path(folder) / f"loans.{form}"
            sizes = [f"--rows={options.rows}", f"--others={options.others}"]
            subprocess.run([sys.executable, __file__, f"--write={path}", *sizes], check=True)
            words = [*audit, str(path), *COMMAND, f"--output={folder}"]
            if options.compare:
                reference = path.rename(path.with_name(f"reference.{form}"))
                subprocess.run([sys.executable, __file__, f"--write={path}", *sizes], check=True)
                words.append(f"--reference={reference}")
            wall, seconds, peak = measured(words)
            print(
                f"{form}, {path.stat().st_size / 1e6:.0f} MB: {seconds:.1f} s of a processor, "
                f"{wall:.1f} s on the clock, at most {peak / 1e9:.2f} GB of memory "
                f"(ten million rows from Parquet: at most {TARGET_SECONDS} s and "
                f"{TARGET_BYTES / 1e9:g} GB)"
            )
            path.unlink()


if __name__ == "__main__":
    main()
