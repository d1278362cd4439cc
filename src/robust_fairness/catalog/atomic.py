"""Versioned files of Kedro that are saved atomically, on this machine or elsewhere."""

import tempfile
import uuid
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, no_type_check

import fsspec
from kedro.io import AbstractVersionedDataset, DatasetError, Version

from robust_fairness.core.errors import InputError, first_line, unknown_name
from robust_fairness.core.files import atomic_path, sha256_of

LOCAL = "file"
# Stores whose uploads are atomic.
OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "oss", "hf"}


class AtomicDataset(AbstractVersionedDataset[Any, Any]):
    """A file with Kedro's versions, saved atomically.

    Kedro's own savers leave a truncated file behind a failed save, which then counts as the
    newest version. ``sha256`` is the checksum of the file that was saved last.
    """

    filepath: str
    protocol: str
    system: Any
    sha256: str

    def __init_subclass__(cls, **options: Any) -> None:
        """Kedro wraps an inherited ``__init__`` again in every subclass; one wrapper is enough."""
        inherited = "__init__" not in vars(cls)
        super().__init_subclass__(**options)
        if inherited:
            del cls.__init__

    @no_type_check  # the tests' type checker hides the signature that Kedro records arguments by
    def __init__(
        self,
        *,
        filepath: str,
        version: Version | None = None,
        credentials: dict[str, Any] | None = None,
        fs_args: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self.metadata = metadata
        self.sha256 = ""
        protocol, divider, path = filepath.partition("://")
        self.protocol = protocol if divider else LOCAL
        if self.protocol not in fsspec.available_protocols():
            raise unknown_name("protocol", self.protocol, fsspec.available_protocols())
        options = {**(fs_args or {}), **(credentials or {})}
        try:
            # other processes write as well, so listings are not cached
            self.system = fsspec.filesystem(self.protocol, use_listings_cache=False, **options)
        except (ImportError, TypeError, ValueError) as error:
            raise InputError(f"{self.protocol}://: {error}") from error
        if self.protocol == LOCAL:
            inside = PurePosixPath(path if divider else filepath)
            super().__init__(inside, version)
        else:
            inside = PurePosixPath(self.system._strip_protocol(filepath))
            super().__init__(inside, version, self.system.exists, self.system.glob)
        self.filepath = self._shown(inside)

    @abstractmethod
    def read(self, path: Path) -> Any:
        """Content of the file; any error of a library is reported as a corrupted file."""

    @abstractmethod
    def write(self, data: Any, path: Path) -> None:
        """Write the content to ``path``."""

    @property
    def place(self) -> str:
        """Path or URL of the version to load."""
        return self._shown(self._get_load_path())

    @contextmanager
    def local(self) -> Iterator[Path]:
        """The version to load as a file of this machine: itself, or a copy for the block.

        What is memory-mapped within the block stays readable after it.
        """
        path = self._get_load_path()
        if self.protocol == LOCAL:
            yield Path(path)
            return
        with tempfile.TemporaryDirectory(prefix="robust_fairness_") as folder:
            copy = Path(folder) / path.name
            self.system.get_file(str(path), str(copy))
            yield copy

    def load(self) -> Any:
        place = self.place
        if not self._exists():
            raise DatasetError(f"{place}: no such file")
        with self.local() as path:
            try:
                return self.read(path)
            except MemoryError:
                raise DatasetError(f"{place}: not enough memory to read it") from None
            except Exception as error:
                first = first_line(error).replace(str(path), place)
                named = first.startswith(f"{place}: ")
                raise DatasetError(
                    first if named else f"{place}: corrupted file ({first})"
                ) from error

    def save(self, data: Any) -> None:
        """Write to a temporary file and rename it, or write here and upload."""
        path = self._get_save_path()
        with (
            atomic_path(Path(path)) if self.protocol == LOCAL else self._uploaded(path)
        ) as temporary:
            self.write(data, temporary)
            self.sha256 = sha256_of(temporary)

    @contextmanager
    def _uploaded(self, path: PurePosixPath) -> Iterator[Path]:
        """A local path, uploaded atomically when the block ends without error."""
        with tempfile.TemporaryDirectory(prefix="robust_fairness_") as folder:
            copy = Path(folder) / path.name
            yield copy
            if self.protocol in OBJECT_STORES:
                self.system.put_file(str(copy), str(path))
                return
            temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
            self.system.makedirs(str(path.parent), exist_ok=True)
            try:
                self.system.put_file(str(copy), str(temporary))
                self.system.mv(str(temporary), str(path))
            finally:
                with suppress(FileNotFoundError):
                    self.system.rm_file(str(temporary))

    def remove(self) -> None:
        """Delete the version to load."""
        self.system.rm_file(str(self._get_load_path()))

    def resolve_load_version(self) -> str | None:
        """The given version, or that of the newest file; Kedro's own is the last by name."""
        if self._version and not self._version.load:
            newest = max(self.list_versions(), key=self.system.modified, default=None)
            if newest is not None:
                return PurePosixPath(newest).parent.name
        version: str | None = super().resolve_load_version()
        return version

    def _shown(self, path: PurePosixPath) -> str:
        return str(path) if self.protocol == LOCAL else self.system.unstrip_protocol(str(path))

    def _exists(self) -> bool:
        exists: bool = self.system.exists(str(self._get_load_path()))
        return exists

    def _describe(self) -> dict[str, Any]:
        return {"filepath": self.filepath, "version": self._version}
