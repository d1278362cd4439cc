"""Limits of what compressed files become."""

import tarfile
import zipfile
import zlib
from pathlib import Path

from robust_fairness.core.errors import InputError

# Bytes of an uncompressed file: at most so many, and above the second number so many per byte.
MOST_BYTES, MOST_UNQUESTIONED, MOST_RATIO = 2**33, 2**26, 200
FEWER = "keep only the columns that are used, or a random sample of the rows"
# a RuntimeError is an encrypted member of a zip file, a NotImplementedError another compression
ZIP_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError)


def require_size(size: int, most: int, name: str) -> None:
    """Refuse content of more bytes, uncompressed, than are allowed."""
    if size > most:
        raise InputError(
            f"{name}: {size / 2**30:.1f} GiB or more, allowed: up to {most / 2**30:g} GiB "
            f"uncompressed; {FEWER}"
        )


def most_unpacked(stored: int) -> int:
    """The bytes that a file of so many compressed bytes may become."""
    return min(MOST_BYTES, max(MOST_UNQUESTIONED, MOST_RATIO * stored))


def member_of(archive: zipfile.ZipFile, name: str, place: str) -> bytes:
    """The content of a file in a zip file, which is no longer than its entry says.

    Raises:
        InputError: it is larger than allowed.
        KeyError: there is none.
    """
    entry = archive.getinfo(name)
    require_size(entry.file_size, most_unpacked(entry.compress_size), f"{place}, {name}")
    return archive.read(entry)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack the files and folders of a small tar or zip file into an empty folder.

    Raises:
        InputError: it is neither, becomes more than ``MOST_UNQUESTIONED`` bytes, or has links
            or files outside of it.
    """
    size = 0

    def require(name: str, is_plain: bool, bytes_of: int) -> None:
        nonlocal size
        if not is_plain or not (folder / name).resolve().is_relative_to(folder.resolve()):
            raise InputError(f"{archive}: {name}, allowed: files and folders inside of it")
        size += bytes_of
        require_size(size, MOST_UNQUESTIONED, str(archive))

    try:
        if tarfile.is_tarfile(archive):
            with tarfile.open(archive) as tar:
                for item in tar:
                    require(item.name, item.isfile() or item.isdir(), item.size)
                # which Python knows from 3.11.4 on
                tar.extraction_filter = getattr(tarfile, "data_filter", None)
                tar.extractall(folder)
        else:
            with zipfile.ZipFile(archive) as packed:
                for entry in packed.infolist():
                    require(entry.filename, True, entry.file_size)
                packed.extractall(folder)
    except (tarfile.TarError, *ZIP_DAMAGE) as error:
        raise InputError(f"{archive}: not a readable tar or zip archive") from error
