"""Raw files: where they are found, and what is said when they are missing or damaged."""

import gzip
import hashlib
from pathlib import Path

import pytest

from robust_fairness.bench.datasets.fetch import command
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files, default_root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "adult").mkdir()
    return tmp_path


def test_plain_and_gzipped_file_are_the_same_source(root: Path) -> None:
    content = "39, State-gov\r\nMale\n"
    plain, zipped = Files(root), Files(root)
    (root / "adult" / "adult.data.gz").write_bytes(gzip.compress(content.encode()))
    assert zipped.text("adult/adult.data") == "39, State-gov\nMale\n"
    (root / "adult" / "adult.data").write_bytes(content.encode())
    assert plain.text("adult/adult.data") == "39, State-gov\nMale\n"
    assert plain.sources == zipped.sources
    assert plain.sources == {"adult/adult.data": hashlib.sha256(content.encode()).hexdigest()}


def test_missing_file_says_which_file_where_and_the_command_that_downloads_it(root: Path) -> None:
    with pytest.raises(InputError) as error:
        Files(root, download=command).text("adult/adult.data")
    message = str(error.value)
    assert "\n" not in message
    assert str(root / "adult" / "adult.data") in message
    assert "`robust-fairness fetch adult`" in message
    assert "ROBUST_FAIRNESS_DATA" in message
    with pytest.raises(InputError, match=r"Put it into") as error:
        Files(root, download=command).text("adult/notes.txt")
    assert "fetch" not in str(error.value)


def test_gzip_truncated_or_garbled_anywhere_is_one_line_that_names_the_file(root: Path) -> None:
    content = gzip.compress(b"39, State-gov, 77516\n" * 100)
    for length in range(len(content)):
        (root / "adult" / "adult.data.gz").write_bytes(content[:length])
        files = Files(root)
        if length == 0:  # an empty file is an empty gzip file: the row count tells
            assert files.text("adult/adult.data") == ""
            continue
        with pytest.raises(InputError, match=r"adult\.data\.gz: corrupted or truncated gzip file"):
            files.text("adult/adult.data")
        assert files.sources == {}
    for position in (0, 12, len(content) - 6):
        garbled = bytearray(content)
        garbled[position] ^= 0xFF
        (root / "adult" / "adult.data.gz").write_bytes(bytes(garbled))
        with pytest.raises(InputError, match=r"corrupted or truncated gzip file"):
            Files(root).text("adult/adult.data")


def test_file_that_may_not_be_read_is_an_input_error(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    (root / "adult" / "adult.data").touch()
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(InputError, match=r"adult\.data: cannot be read: Permission denied"):
        Files(root).text("adult/adult.data")


def test_undecodable_byte_is_named_with_its_line(root: Path) -> None:
    (root / "adult" / "adult.data").write_bytes(b"39\n40\n4\xff\n")
    with pytest.raises(InputError, match=r"adult/adult\.data, line 3: byte 0xff"):
        Files(root).text("adult/adult.data")


def test_environment_variable_names_the_data_root(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROBUST_FAIRNESS_DATA", raising=False)
    assert default_root() == tmp_path / "data" / "01_raw"
    monkeypatch.setenv("ROBUST_FAIRNESS_DATA", str(tmp_path / "elsewhere"))
    assert default_root() == tmp_path / "elsewhere"
