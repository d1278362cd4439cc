"""Columns read in blocks: the cells of the file, bounded memory, and limits."""

import gzip
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from robust_fairness.auditing.read import reading as module
from robust_fairness.auditing.read.reading import read_cells, read_columns
from robust_fairness.core import raw_files as _files
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from tests.datasets.loading import one_line

GIGABYTE = 2**30


def mixed(rows: int = 3000) -> pd.DataFrame:
    """Text, numbers and gaps, with delimiters, quotes and line ends within cells."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "kind": rng.choice(["a, b", 'c "d"', "e\nf", "", "?"], rows),
            "score": rng.random(rows),
            "code": rng.integers(0, 3, rows),
            "whole": np.where(rng.random(rows) < 0.1, np.nan, rng.integers(0, 9999, rows)),
            "other": rng.choice(["x", "y"], rows),
        }
    )


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
@pytest.mark.parametrize("texts", [50, 10_000])
def test_cells_are_those_of_the_file(
    tmp_path: Path, name: str, texts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For all sizes of blocks, and whether numbers are kept as text or not."""
    monkeypatch.setattr(module, "BLOCK_ROWS", 97)
    monkeypatch.setattr(module, "MOST_TEXTS", texts)
    frame = mixed()
    path = tmp_path / name
    if name.endswith("parquet"):
        frame.to_parquet(path, row_group_size=97)
    else:
        frame.to_csv(path, index=False)
    wanted, missing = ["score", "kind", "whole", "code"], ("", "?")
    files = Files(tmp_path)
    table = read_columns(files, name, wanted, missing=missing)
    assert list(table) == wanted
    expected = frame["kind"].mask(frame["kind"].isin(missing))
    assert table["kind"].astype(object).equals(expected.astype(object))
    assert files.sources == {name: hashlib.sha256(Files(tmp_path).content(name)).hexdigest()}
    for column in ("score", "whole", "code"):
        values = table[column].astype(object).astype(float)
        np.testing.assert_array_equal(values, frame[column])
    if texts == 50:
        assert table["score"].dtype == np.float64
        if not name.endswith("parquet"):
            kept = read_columns(files, name, ["score"], text=["score"])["score"]
            assert kept.astype(str).tolist() == frame["score"].astype(str).tolist()
    assert isinstance(table["kind"].dtype, pd.CategoricalDtype)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"t\.csv: is empty, allowed: a header and rows"),
        (b"a,b\n", r"t\.csv: has no rows"),
        (b"a,c\n1,2\n", r"unknown column 'b': did you mean|Allowed: a, c"),
        (b"a,b\n1,2\n1\n", r"t\.csv, line 3: 1 fields, expected 2"),
        (b"a,b\n1,2,3\n4,5\n", r"t\.csv, line 2: 3 fields, expected 2"),
        (b'a,b\n"1\n0",2\n\n1\n', r"t\.csv, line 5: 1 fields, expected 2"),
        (b'a,b\n1,"2"3\n', r"t\.csv, line 2: ',' expected after"),
        (b'a,b\n1,"2\n' + 5000 * b"1,2\n", r"t\.csv, line 2: a quote is not closed"),
        (b'a,b\n1,"2\n' + 50000 * b"1,2\n", r"t\.csv, line 2: a quote is not closed"),
        (b'a,b\n1,2\n1,"2', r"t\.csv, line 3: a quote is not closed"),
        (b"a,b\n1,\x81\n", r"t\.csv, line 2: byte 0x81 is not UTF-8"),
        (b"a,b\n" + 5000 * b"1,2\n" + b"1,\x81\n", r"line 5002: byte 0x81 is not UTF-8"),
        (b"PAR1", r"t\.csv: is a Parquet file, which does not match"),
        (b"a,b\n" + b"".join(b"%d,x%d\n" % (k, k) for k in range(80)), r"column b: more than 50 .*"
         r"'x0' is not a finite number, allowed: numbers, or at most 100 categories"),
        (b"a,b\n" + b"".join(b"0,%d\n" % k for k in range(900)) + b"0,inf\n", r"column b: .*'inf'"),
    ],
)  # fmt: skip
def test_damaged_files_are_one_line(
    tmp_path: Path, content: bytes, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK_ROWS", 97)
    monkeypatch.setattr(module, "MOST_TEXTS", 50)
    for name, packed in (("t.csv", content), ("t.csv.gz", gzip.compress(content))):
        (tmp_path / name).write_bytes(packed)
        with one_line(message.replace(r"t\.csv", r"t\.csv(\.gz)?")):
            read_columns(Files(tmp_path), name, ["a", "b"])
    if not re.search("no rows|Parquet|column b", message):  # what only users' tables must not have
        with pytest.raises(InputError, match=message):
            read_cells([content], "t.csv", ["a", "b"])


def test_too_many_rows_or_bytes_are_refused_with_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = mixed(500)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(module, "MOST_ROWS", 400)
    for name in ("t.csv", "t.parquet"):
        with pytest.raises(InputError, match=rf"{name}: .*500|400.* rows, allowed: .* 400 rows"):
            read_columns(Files(tmp_path), name, ["kind"])
    monkeypatch.setattr(_files, "MOST_BYTES", (tmp_path / "t.csv").stat().st_size - 1)
    with pytest.raises(InputError, match=r"t\.csv\.gz: .* GiB or more, allowed: up to"):
        read_columns(Files(tmp_path), "t.csv.gz", ["kind"])


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path, form: str) -> None:
    """Files with holes: of that size, and without content that could be read."""
    path = tmp_path / f"huge.{form}"
    path.touch()
    os.truncate(path, 9 * GIGABYTE)
    with pytest.raises(InputError, match=rf"huge\.{form}: 9\.0 GiB or more, allowed: up to 8 GiB"):
        read_columns(Files(tmp_path), path.name, ["y"])


def test_what_is_small_packed_and_huge_unpacked_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the bytes that memory would hold."""
    for reader in (_files, module):
        monkeypatch.setattr(reader, "MOST_BYTES", 300_000)
    frame = pd.DataFrame({"a": np.arange(50_000), "b": "text"})
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    frame.to_parquet(tmp_path / "t.parquet", use_dictionary=["b"])
    for name in ("t.csv.gz", "t.parquet"):
        with pytest.raises(InputError, match=rf"{name}: .* GiB.*, allowed: .* uncompressed"):
            read_columns(Files(tmp_path), name)
    assert len(read_columns(Files(tmp_path), "t.parquet", ["b"])) == 50_000


READS = """
import resource, sys
from pathlib import Path
from robust_fairness.core.raw_files import Files
from robust_fairness.auditing.read.reading import read_columns

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
import pandas
path = Path(sys.argv[1])
table = read_columns(Files(path.parent), path.name, ["y", "p", "sex"])
assert len(table) == int(sys.argv[2]), len(table)
assert table["sex"].value_counts().to_dict() == {"f": len(table) // 2, "m": len(table) // 2}
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(peak * 1024)
"""


def run_reads(path: Path, rows: int, before: str = "") -> str:
    """What a process that reads a file of some rows prints."""
    done = subprocess.run(
        [sys.executable, "-c", before + READS, str(path), str(rows)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_memory_does_not_grow_with_what_is_not_asked_for(tmp_path: Path) -> None:
    """A file of 300 MB takes at most half of that beyond what one of a block takes."""
    line = "yes,{:.4f},{}," + "x" * 1500 + "\n"
    block = "".join(line.format(k / 1000, "fm"[k % 2]) for k in range(1000))
    peaks = []
    for blocks in (1, 200):
        path = tmp_path / f"{blocks}.csv"
        with path.open("w") as file:
            file.write("y,p,sex,note\n")
            for _ in range(blocks):
                file.write(block)
        peaks.append(int(run_reads(path, 1000 * blocks)))
        path.unlink() if blocks == 1 else None
    assert path.stat().st_size > 300e6
    assert peaks[1] - peaks[0] < 150e6  # some 100 MB are buffers of blocks, whatever the size


def test_a_csv_file_is_read_without_pyarrow(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("y,p,sex\n1,2,f\n1,2,m\n")
    run_reads(tmp_path / "t.csv", 2, "import sys; sys.modules['pyarrow'] = None\n")


def test_nested_columns_of_parquet_are_refused_in_one_line(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [[1], [2, 3]], "c": [{"x": 1}, {"x": 2}]})
    frame.to_parquet(tmp_path / "t.parquet")
    for columns, kind in ((["a", "b"], "b: .*list<"), (["c"], "c: .*struct<"), (None, "list<")):
        with pytest.raises(
            InputError, match=rf"t\.parquet, column .*{kind}.*, allowed: text, numbers"
        ):
            read_columns(Files(tmp_path), "t.parquet", columns)
    assert read_columns(Files(tmp_path), "t.parquet", ["a"])["a"].tolist() == [1, 2]
