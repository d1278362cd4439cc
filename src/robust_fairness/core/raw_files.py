"""Raw data files: where they are found, how they are unpacked, and how bytes become text."""

import gzip
import hashlib
import io
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from robust_fairness.core.errors import InputError, first_line

if TYPE_CHECKING:
    import pandas as pd  # slow to import

ROOT_VARIABLE = "ROBUST_FAIRNESS_DATA"
BLOCK = 2**20  # bytes that are read at once of a file that is not held in memory
# Bytes of an uncompressed file: at most so many, and above the second number so many per byte.
MOST_BYTES, MOST_UNQUESTIONED, MOST_RATIO = 2**33, 2**26, 200
FEWER = "keep only the columns that are used, or a random sample of the rows"
# a RuntimeError is an encrypted member of a zip file, a NotImplementedError another compression
ZIP_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError)


def default_root() -> Path:
    """Folder of raw files: ``ROBUST_FAIRNESS_DATA`` if set, else ``data/01_raw``."""
    return Path(os.environ.get(ROOT_VARIABLE) or Path("data", "01_raw")).absolute()


def below_the_root(path: str) -> str:
    """The path of a file or folder below the data root.

    Raises:
        ValueError: it is absolute or leads out of the root.
    """
    parts = PurePosixPath(path)
    wrong = parts.is_absolute() or ".." in parts.parts or not parts.parts or "\\" in path
    if wrong or PureWindowsPath(path).drive:
        raise ValueError(
            f"allowed: a path below the data root without '..'; move or link it there, or set "
            f"{ROOT_VARIABLE} to its folder"
        )
    return path


def nothing_to_download(name: str) -> None:
    """The command that downloads a user's own file: there is none."""


RawPath = Annotated[str, AfterValidator(below_the_root)]  # below the data root


@dataclass(frozen=True)
class Files:
    """Raw files below the folder ``root``, plain or gzipped, and the checksums of those read.

    Make one for every dataset that is loaded: ``sources`` becomes ``Samples.sources``. It has the
    SHA-256 of the uncompressed bytes of every file read so far, by its path below ``root``, and
    that of the typed values of tables that are distributed in several forms. Files that are not
    below the root are taken from the folders ``bundled``. ``download`` returns the command that
    downloads a missing file, None if there is none.
    """

    root: Path
    sources: dict[str, str] = field(default_factory=dict)
    bundled: tuple[Path, ...] = ()
    download: Callable[[str], str | None] = nothing_to_download

    def text(self, name: str) -> str:
        r"""UTF-8 text of the file ``name`` or, where only that exists, of ``name.gz``.

        Lines end in ``\n``, however they end in the file.
        """
        content = self.content(name)
        try:
            return content.decode().replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise InputError(
                f"{name}, line {line}: byte 0x{content[error.start]:02x} is not UTF-8 text"
            ) from error

    def content(self, name: str) -> bytes:
        """Uncompressed bytes of the file ``name`` or, where only that exists, of ``name.gz``."""
        path = self.find(name)
        if path.suffix == ".gz":
            return b"".join(self.blocks(name))
        with _readable(path):
            content = path.read_bytes()
        self.note(name, content)
        return content

    def blocks(self, name: str) -> Iterator[bytes]:
        """Uncompressed bytes of a file that is too large for memory, in blocks.

        The checksum is recorded after the last block.
        """
        path = self.find(name)
        is_packed, digest, size = path.suffix == ".gz", hashlib.sha256(), 0
        with _readable(path), gzip.open(path) if is_packed else path.open("rb") as file:
            stored = path.stat().st_size
            packed = most_unpacked(stored)
            require_size(stored, MOST_BYTES, name)
            while block := file.read(BLOCK):
                size += len(block)
                require_size(size, packed if is_packed else MOST_BYTES, path.name)
                digest.update(block)
                yield block
        self.sources[name] = digest.hexdigest()

    def packed(self, archive: str, member: str) -> bytes:
        """Bytes of a zip file or, where only that exists, of its file unpacked beside it."""
        unpacked = PurePosixPath(archive).parent.joinpath(member).as_posix()
        return self.content(archive if self.has(archive) or not self.has(unpacked) else unpacked)

    def note(self, name: str, content: bytes) -> None:
        """Record the checksum of what was read."""
        self.sources[name] = hashlib.sha256(content).hexdigest()

    def note_values(self, name: str, table: "pd.DataFrame") -> None:
        """Record the checksum of a typed table as ``name (values)``, whatever its file's form."""
        text = table.to_csv(index=False, header=False, lineterminator="\n")
        self.note(f"{name} (values)", text.encode())

    def has(self, name: str) -> bool:
        """Whether the file ``name`` or ``name.gz`` is there."""
        return any(path.is_file() for path in self._places(name))

    def available(self, name: str) -> bool:
        """Whether the file or folder ``name`` exists, or a gzip or zip file of it."""
        return any(path.exists() for path in self._forms(name))

    def facts(self, name: str) -> tuple[int | None, str]:
        """Bytes on disk of a file or folder, None where it is missing, and the checksum of a file.

        A folder, or a zip file of it, has no checksum.
        """
        path = next((path for path in self._forms(name) if path.exists()), None)
        if path is None:
            return None, "missing"
        if self.has(name):
            for _ in self.blocks(name):  # after the last one the checksum is recorded
                pass
        files = (file for file in (path, *path.rglob("*")) if file.is_file())
        return sum(file.stat().st_size for file in files), self.sources.get(name, "")

    def find(self, name: str) -> Path:
        """Path of the file ``name`` or, where only that exists, of ``name.gz``."""
        for path in self._places(name):
            if path.is_file():
                return path
        raise InputError(
            f"{name} is missing: looked for {self.root / name}, plain or with .gz. "
            f"{self.remedy(name)}"
        )

    def remedy(self, name: str) -> str:
        """What makes a missing file or folder available, as a sentence."""
        command = self.download(name)
        download = f"Download it with `{command}`" if command else f"Put it into {self.root}"
        return f"{download}, or let {ROOT_VARIABLE} name the folder that holds it"

    def _forms(self, name: str) -> list[Path]:
        """Where a file or folder, or a gzip or zip file of it, may be."""
        plain = self.root / name
        return [*self._places(name), self.root / f"{name}.zip", plain.with_suffix(".zip")]

    def _places(self, name: str) -> list[Path]:
        folders = (self.root, *self.bundled)
        return [folder / file for folder in folders for file in (name, f"{name}.gz")]


def unzipped(content: bytes, archive: str, member: str) -> bytes:
    """Bytes of a file in a zip file; ``content`` itself where it is no zip file."""
    if not content.startswith(b"PK"):
        return content
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as members:
            if member not in members.namelist():
                names = ", ".join(members.namelist()) or "nothing"
                raise InputError(f"{archive}: contains {names}; expected a zip file with {member}")
            return member_of(members, member, archive)
    except ZIP_DAMAGE as error:
        raise InputError(f"{archive}: corrupted zip file: {error}") from error


@contextmanager
def as_official(name: str) -> Iterator[None]:
    """Report in one line what a library says of a file that differs from the official one."""
    try:
        yield
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(
            f"{name}: not as the official file, or too large for the memory"
        ) from error
    except Exception as error:  # readers raise what the bytes happen to lead to
        raise InputError(f"{name}: not as the official file: {first_line(error)}") from error


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Report a file that cannot be read or unpacked in one line."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: corrupted or truncated gzip file: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


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
