"""Versioned files of Kedro that are saved atomically."""

import os
from abc import abstractmethod
from pathlib import Path, PurePosixPath
from typing import Any

from kedro.io import AbstractVersionedDataset, DatasetError, Version

from robust_fairness.writing import written_aside


class AtomicDataset(AbstractVersionedDataset[Any, Any]):
    """A local file with Kedro's versions, saved atomically.

    Kedro's own savers leave a truncated file behind a failed save, which then counts as the
    newest version.

    Args:
        filepath: path of the file.
        version: version to load and save; None for a file without versions.
        metadata: ignored; Kedro-Viz reads it.
    """

    def __init__(
        self,
        *,
        filepath: str,
        version: Version | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self.metadata = metadata
        super().__init__(PurePosixPath(filepath), version)

    @abstractmethod
    def read(self, path: Path) -> Any:
        """Content of the file; any error of a library is reported as a corrupted file."""

    @abstractmethod
    def write(self, data: Any, path: Path) -> None:
        """Write the content to ``path``."""

    def load(self) -> Any:
        """Content of the version to load.

        Raises:
            DatasetError: the file is missing or corrupted; the message names it.
        """
        path = Path(self._get_load_path())
        if not path.exists():
            raise DatasetError(f"{path}: no such file")
        try:
            return self.read(path)
        except Exception as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            named = first.startswith(f"{path}: ")
            raise DatasetError(first if named else f"{path}: corrupted file ({first})") from error

    def save(self, data: Any) -> None:
        """Write aside, flush to the disk, rename."""
        with written_aside(Path(self._get_save_path())) as aside:
            self.write(data, aside)

    def _get_versions(self) -> list[str]:
        """Newest file first; Kedro goes by name, which tells nothing where run ids are given."""
        return sorted(super()._get_versions(), key=os.path.getmtime, reverse=True)

    def _init_config(self) -> dict[str, Any]:
        """What makes this dataset again elsewhere; Kedro's own fails for classes that inherit."""
        kind = type(self)
        configuration: dict[str, Any] = {
            "type": f"{kind.__module__}.{kind.__name__}",
            "filepath": str(self._filepath),
        }
        return configuration | ({"versioned": True} if self._version else {})

    def _exists(self) -> bool:
        return Path(self._get_load_path()).exists()

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._filepath), "version": self._version}
