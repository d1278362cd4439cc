"""Bombs and damaged files under a limit of memory: one line each, nothing written."""

import gzip
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from robust_fairness.bench.experiment.yaml_source import parse
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import unpack, unzipped
from robust_fairness.runs import provenance
from robust_fairness.runs.configuration import ConfigLoader
from tests.faults.counting import report, silent_flips

GIGABYTE = 2**30
HEADER = b"y,p,g\n"


def zeros(path: Path, size: int) -> None:
    with path.open("wb") as file:
        for _ in range(size // 2**20):
            file.write(b"0" * 2**20)


def long_cell(path: Path) -> None:
    path.write_bytes(HEADER + b"1,0," + b"a" * 2**26 + b"\n")


def packed(path: Path) -> None:
    """A file of 2.4 GB when it is unpacked, in parts that are packed alike."""
    block = gzip.compress((b"1,0," + b"a" * 2**12 + b"\n") * 2**8)
    path.write_bytes(gzip.compress(HEADER) + block * (9 * 2**8))


def wide(path: Path) -> None:
    """A Parquet file of a few kilobytes whose columns would take 16 GiB."""
    cells = pa.array(np.zeros(10_000_000, np.int8)).cast(pa.float64())
    names = ["y", "p", "g", *(f"c{number}" for number in range(3))]
    parquet.write_table(pa.table(dict.fromkeys(names, cells)), path)


def long_binary(path: Path) -> None:
    cells = pa.array([b"x" * 2**20]).dictionary_encode()
    rows = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10**6, np.int32)), cells.dictionary)
    parquet.write_table(pa.table({"y": [0, 1] * 500_000, "p": [0, 1] * 500_000, "g": rows}), path)


BOMBS = {"cell.csv": long_cell, "packed.csv.gz": packed, "wide.parquet": wide,
         "binary.parquet": long_binary}  # fmt: skip
# Audits a table under a limit of address space; the last line is the most that was taken.
AUDIT = """
import atexit, re, resource, runpy, sys
table, limit = sys.argv[1], int(sys.argv[2])
status = "/proc/self/status"
atexit.register(lambda: print(re.search(r"VmPeak:\\s+(\\d+)", open(status).read())[1]))
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
sys.argv = ["", "audit", table, "--target=y", "--prediction=p", "--attributes=g", "--force"]
runpy.run_module("robust_fairness", run_name="__main__")
"""


def audit(folder: Path, name: str, limit: int) -> tuple[int, str, int]:
    """Exit status of an audit, what it says, and the bytes of address space that it took."""
    done = subprocess.run(
        [sys.executable, "-c", AUDIT, name, str(limit)], cwd=folder, capture_output=True,
        text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    *said, kilobytes = done.stdout.splitlines(keepends=True)
    return done.returncode, done.stderr + "".join(said), 1024 * int(kilobytes)


@pytest.fixture(scope="module")
def taken(tmp_path_factory) -> dict[str, int]:
    """What an audit of four rows takes, by the form of the file."""
    folder = tmp_path_factory.mktemp("few")
    rows = pd.DataFrame({"y": [1, 0, 1, 0], "p": [0, 0, 1, 1], "g": ["a", "b", "a", "b"]})
    rows.to_csv(folder / "rows.csv", index=False)
    rows.to_csv(folder / "rows.csv.gz", index=False)
    rows.to_parquet(folder / "rows.parquet")
    results = {path.suffix: audit(folder, path.name, 2**40) for path in folder.iterdir()}
    assert {status for status, *_ in results.values()} == {0}
    return {suffix: size for suffix, (*_, size) in results.items()}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_in_one_line(tmp_path, taken, name):
    """With a gigabyte of address space beyond what an audit of four rows takes."""
    BOMBS[name](tmp_path / name)
    few = taken[Path(name).suffix]
    status, said, _ = audit(tmp_path, name, few + 10**9)
    assert status == 2 and said.count("\n") == 1 and said.startswith("Error: "), said
    assert [path.name for path in tmp_path.iterdir()] == [name]
    report(f"bomb {name} with {(few + 10**9) / GIGABYTE:.2f} GiB", 1, 1, 0)


def test_archives_are_measured_before_they_are_unpacked(tmp_path):
    zeros(tmp_path / "zeros", 65 * 2**20)
    with zipfile.ZipFile(tmp_path / "conf.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(tmp_path / "zeros", "conf/base/catalog.yml")
    with tarfile.open(tmp_path / "conf.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "zeros", "conf/base/catalog.yml")
    for name in ("conf.zip", "conf.tar.gz"):
        with pytest.raises(InputError, match=rf"{name}: 0.1 GiB or more, allowed: up to 0.0625"):
            unpack(tmp_path / name, tmp_path / "made")
        assert not (tmp_path / "made").exists()
    with pytest.raises(InputError, match=r"x.zip, conf/base/catalog.yml: 0.1 GiB or more"):
        unzipped((tmp_path / "conf.zip").read_bytes(), "x.zip", "conf/base/catalog.yml")


@pytest.mark.parametrize("source", ["s3://bucket/conf", "https://a.b/conf.zip", "nowhere/here"])
def test_a_configuration_that_cannot_be_read_is_refused(source):
    with pytest.raises(InputError, match=f"configuration '{source}', allowed: a folder"):
        ConfigLoader(source)


@pytest.mark.parametrize("folder", ["a?c", "a%20d", "a[b]", "{f}", "a*"])
def test_a_folder_of_a_project_with_another_meaning_is_refused(tmp_path, folder):
    (tmp_path / folder / "conf").mkdir(parents=True)
    with pytest.raises(InputError, match="in its path"):
        ConfigLoader(tmp_path / folder / "conf")


def test_whole_numbers_of_configurations_have_64_bits():
    with pytest.raises(InputError, match=r"a.yml:2: a whole number of 31 digits, allowed: 64 bits"):
        parse("a: 9223372036854775807\nb: 1000000000000000000000000000000", "a.yml")


def test_a_header_of_20_000_columns_is_read(tmp_path):
    names = [f"gene_{number:05d}" for number in range(20_000)]
    frame = pd.DataFrame(np.ones((60, len(names)), int), columns=names)
    frame = frame.assign(y=[0, 1] * 30, p=[0, 0, 1] * 20, g=["m", "f"] * 30)
    frame.to_csv(tmp_path / "t.csv", index=False)
    from robust_fairness.auditing.read.reading import read_columns
    from robust_fairness.core.raw_files import Files

    table = read_columns(Files(tmp_path), "t.csv", ["y"], None)
    assert table["y"].tolist() == ["0", "1"] * 30


@pytest.mark.parametrize("flips", [20, pytest.param(40, marks=pytest.mark.slow)])
def test_a_flipped_bit_of_a_manifest_is_named(tmp_path, monkeypatch, flips):
    monkeypatch.chdir(tmp_path)
    provenance.write_manifest({"run_id": "one", "state": "finished", "started": "now",
                               "outputs": {"metrics": {"path": "a", "sha256": "b"}}})  # fmt: skip
    path = provenance.manifest_path("one")

    def read(content: bytes) -> dict:
        path.write_bytes(content)
        return provenance.read_manifest(path)

    assert silent_flips(path.read_bytes(), flips, read, str(path)) == 0
