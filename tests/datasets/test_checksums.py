"""Official files by their checksums: a swapped pair of rows or a changed byte is refused."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from robust_fairness.bench.datasets.fetch import dataset_files, official, require_official
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from robust_fairness.core.registry import find, names

# Official files of which no copy was available, or which a user chooses.
UNKNOWN = {"kdd_census", "sepsis", "table"}
# Loaders of files that are known by their values.
BY_VALUE = {
    "german_credit/SouthGermanCredit.asc": ("german", {}),
    "german_credit/german.csv": ("german", {"coding": "statlog"}),
    "credit_card/default_of_credit_card_clients.csv": ("credit_card", {}),
    "law_school/law_school_clean.csv": ("law_school", {}),
    "oulad/studentInfo.csv": ("oulad", {}),
}
FILES = sorted(name for name in official() if not name.endswith("(values)"))


def swapped(content: bytes) -> bytes:
    """The content with its third line exchanged with the next one that differs."""
    lines = content.splitlines(keepends=True)
    other = next(row for row in range(3, len(lines)) if lines[row] != lines[2])
    lines[2], lines[other] = lines[other], lines[2]
    return b"".join(lines)


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize("name", FILES)
def test_changed_file_is_not_official(name: str, shared_data: Path, tmp_path: Path) -> None:
    official_files = dataset_files(shared_data)
    if not official_files.has(name):
        pytest.skip(f"{name} is not available")
    content = official_files.content(name)
    changes = (
        [flipped] if name.endswith((".zip", ".mat", ".parquet", "ubyte")) else [flipped, swapped]
    )
    for change in changes:
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(change(content))
        files = Files(tmp_path)
        files.content(name)
        with pytest.raises(InputError, match=r"differs from the official file; .*, or pass --x$"):
            require_official(files.sources, "pass --x")


@pytest.mark.parametrize("name", BY_VALUE)
def test_changed_table_is_not_official(name: str, shared_data: Path, tmp_path: Path) -> None:
    loader, options = BY_VALUE[name]
    plugin = find("dataset", loader)
    dataset = plugin(plugin.Parameters(**options))
    whole = dataset.load(Files(shared_data), 1)
    require_official(whole.sources, "")
    target = tmp_path / f"{name}.gz"
    target.parent.mkdir(parents=True)
    target.write_bytes(gzip.compress(swapped(Files(shared_data).content(name)), 1))
    samples = dataset.load(Files(tmp_path), 1)
    assert not np.array_equal(samples.x, whole.x) or not np.array_equal(samples.y, whole.y)
    with pytest.raises(InputError, match=r"\(values\) differs from the official file; replace it"):
        require_official(samples.sources, "")


def test_every_table_has_a_checksum() -> None:
    known = {name.removesuffix(" (values)") for name in official()}
    known |= set(BY_VALUE) | {str(Path(name).parent) for name in known}
    for name in names("dataset"):
        plugin = find("dataset", name)
        if getattr(plugin, "data_kind", "") == "table" and name not in UNKNOWN:
            assert set(plugin().required_files()) <= known | {"german_credit/german.data"}
