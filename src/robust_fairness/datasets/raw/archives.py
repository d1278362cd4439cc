"""CSV files inside zip files."""

import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.files import BLOCK, Files

LARGEST = 2**30  # bytes of an uncompressed file; the largest state of the ACS has a quarter of it
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError)


@dataclass(frozen=True)
class Packed:
    """A CSV file in a zip file, or unpacked beside it; equal content is equal.

    Attributes:
        archive: path of the zip file below the data root.
        member: path of the CSV file in it.
        sha256: checksum of the bytes.
        is_zip: whether they are those of the zip file.
        content: the bytes.
    """

    archive: str
    member: str
    sha256: str
    is_zip: bool
    content: bytes = field(compare=False, repr=False)

    @property
    def place(self) -> str:
        """Both paths, for messages."""
        return f"{self.archive}, {self.member}"

    @property
    def text(self) -> bytes:
        """The CSV file."""
        if self.is_zip:
            return unzipped(self.content, self.archive, self.member)
        return self.content


def packed(files: Files, archive: str, member: str) -> Packed:
    """The zip file or, where only that exists, the CSV file unpacked in its folder."""
    unpacked = PurePosixPath(archive).parent.joinpath(member).as_posix()
    is_zip = files.has(archive) or not files.has(unpacked)
    name = archive if is_zip else unpacked
    content = files.content(name)
    return Packed(archive, member, files.sources[name], is_zip, content)


def read_archive(
    files: Files, archive: str, member: str, columns: Sequence[str], rows: int | None = None
) -> pd.DataFrame:
    """Some columns of a CSV file in a zip file, see ``parsed``; its checksum is noted."""
    found = packed(files, archive, member)
    text = found.text
    if found.is_zip:
        inside = PurePosixPath(archive).parent.joinpath(member).as_posix()
        files.sources[inside] = hashlib.sha256(text).hexdigest()
    return parsed(text, found.place, columns, rows)


def parsed(
    text: bytes, place: str, columns: Sequence[str], rows: int | None = None
) -> pd.DataFrame:
    """Some columns of a CSV file, every cell a string, indexed by line number.

    ``place`` names the file in messages, ``rows`` is the documented number of rows.
    """
    content = io.BytesIO(text)
    with _readable(place):
        header = pd.read_csv(content, nrows=0).columns
    missing = [column for column in columns if column not in header]
    if missing:
        raise InputError(
            f"{place}: no column {', '.join(missing)}; expected the file of the documented year, "
            f"with {', '.join(columns)}"
        )
    content.seek(0)
    with _readable(place):
        table = pd.read_csv(content, usecols=list(columns), dtype=str, na_filter=False)
    if rows is not None and len(table) != rows:
        raise InputError(f"{place}: {len(table)} rows, expected {rows}")
    table.index = pd.RangeIndex(2, len(table) + 2)
    return table[list(columns)]


def unzipped(content: bytes, archive: str, member: str) -> bytes:
    """Bytes of a file in a zip file."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as members:
            if member not in members.namelist():
                found = ", ".join(members.namelist()) or "nothing"
                raise InputError(f"{archive}: contains {found}; expected a zip file with {member}")
            size = members.getinfo(member).file_size
            if size > LARGEST:
                raise InputError(
                    f"{archive}: {member} has {size} bytes uncompressed, allowed: up to {LARGEST}"
                )
            with members.open(member) as file:  # in blocks: the stated size may be wrong
                return b"".join(iter(lambda: file.read(BLOCK), b""))
    except DAMAGE as error:
        raise InputError(f"{archive}: corrupted zip file: {error}") from error


@contextmanager
def _readable(place: str) -> Iterator[None]:
    """Turns an error of the CSV parser into one line."""
    try:
        yield
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise InputError(f"{place}: not a CSV file: {reason}") from error
