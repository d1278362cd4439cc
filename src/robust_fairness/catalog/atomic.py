"""Versioned files of Kedro that are saved atomically, on this machine or elsewhere."""

import os
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from kedro.io import AbstractVersionedDataset, DatasetError, Version

from robust_fairness.catalog._remote import Remote, protocol_of
from robust_fairness.core.errors import first_line
from robust_fairness.core.files import atomic_path, sha256_of


class AtomicDataset(AbstractVersionedDataset[Any, Any]):
    """A file with Kedro's versions, saved atomically.

    Kedro's own savers leave a truncated file behind a failed save, which then counts as the
    newest version. ``sha256`` is the checksum of the file that was saved last.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Kedro wraps an inherited ``__init__`` again in every subclass; one wrapper is enough."""
        inherited = "__init__" not in vars(cls)
        super().__init_subclass__(**options)
        if inherited:
            del cls.__init__

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
        options = {"credentials": credentials, "fs_args": fs_args}
        self._options = {name: value for name, value in options.items() if value}
        self._remote: Remote | None = None
        if protocol_of(filepath) == "file":
            super().__init__(PurePosixPath(filepath.removeprefix("file://")), version)
            return
        self._remote = Remote(protocol_of(filepath), {**(fs_args or {}), **(credentials or {})})
        super().__init__(
            self._remote.path(filepath), version, self._remote.exists, self._remote.glob
        )

    @abstractmethod
    def read(self, path: Path) -> Any:
        """Content of the file; any error of a library is reported as a corrupted file."""

    @abstractmethod
    def write(self, data: Any, path: Path) -> None:
        """Write the content to ``path``."""

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of its file system."""
        return dict(self._options)

    @property
    def place(self) -> str:
        """Path or URL of the version to load."""
        return self._shown(self._get_load_path())

    @contextmanager
    def local(self) -> Iterator[Path]:
        """The version to load as a file of this machine: itself, or a copy for the block."""
        path = self._get_load_path()
        if self._remote is None:
            yield Path(path)
        else:
            with self._remote.fetched(path) as copy:
                yield copy

    def load(self) -> Any:
        place = self.place
        if not self._exists():
            raise DatasetError(f"{place}: no such file")
        with self.local() as path:
            try:
                return self.read(path)
            except Exception as error:
                first = first_line(error).replace(str(path), place)
                named = first.startswith(f"{place}: ")
                raise DatasetError(
                    first if named else f"{place}: corrupted file ({first})"
                ) from error

    def save(self, data: Any) -> None:
        """Write to a temporary file and rename it, or write here and upload."""
        path = self._get_save_path()
        remote = self._remote
        with atomic_path(Path(path)) if remote is None else remote.written(path) as temporary:
            self.write(data, temporary)
            self.sha256 = sha256_of(temporary)

    def remove(self) -> None:
        """Delete the version to load."""
        if self._remote is None:
            Path(self._get_load_path()).unlink()
        else:
            self._remote.remove(self._get_load_path())

    def _shown(self, path: PurePosixPath) -> str:
        return str(path) if self._remote is None else self._remote.url(path)

    def _get_versions(self) -> list[str]:
        """Newest file first; Kedro sorts by name, but users may choose run ids."""
        found = super()._get_versions()
        if self._remote is not None:
            return self._remote.newest_first(found)
        return sorted(found, key=os.path.getmtime, reverse=True)

    def _init_config(self) -> dict[str, Any]:
        """The configuration of this dataset; Kedro's own method fails for subclasses."""
        kind = type(self)
        configuration: dict[str, Any] = {
            "type": f"{kind.__module__}.{kind.__name__}",
            "filepath": self._shown(self._filepath),
            **self._options,
        }
        return configuration | ({"versioned": True} if self._version else {})

    def _exists(self) -> bool:
        path = self._get_load_path()
        return Path(path).exists() if self._remote is None else self._remote.exists(str(path))

    def _describe(self) -> dict[str, Any]:
        return {"filepath": self._shown(self._filepath), "version": self._version}
