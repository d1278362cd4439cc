"""CSV files inside zip files."""

import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath

import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.files import Files

LARGEST = 2**30  # bytes of an uncompressed file; the largest state of the ACS has a quarter of it
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError)


def read_archive(
    files: Files, archive: str, member: str, columns: Sequence[str], rows: int | None = None
) -> pd.DataFrame:
    """Some columns of a CSV file in a zip file, every cell a string, indexed by line number.

    Where only the CSV file exists, unpacked in the folder of the zip file, it is read instead.
    ``rows`` is the documented number of rows.
    """
    place = f"{archive}, {member}"
    unpacked = PurePosixPath(archive).parent.joinpath(member).as_posix()
    if files.has(unpacked) and not files.has(archive):
        content = io.BytesIO(files.content(unpacked))
    else:
        found = unzipped(files.content(archive), archive, member)
        files.sources[unpacked] = hashlib.sha256(found).hexdigest()
        content = io.BytesIO(found)
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
            return members.read(member)
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
