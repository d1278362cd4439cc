"""Files of other file systems of fsspec, such as buckets."""

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

import fsspec

from robust_fairness.core.errors import InputError, unknown_name

# Stores whose uploads are atomic.
OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "oss", "hf"}


def protocol_of(filepath: str) -> str:
    """``s3`` of ``s3://bucket/key``; ``file`` for a path of this machine."""
    protocol, divider, _ = filepath.partition("://")
    return protocol if divider else "file"


class Remote:
    """A file system that fsspec knows."""

    def __init__(self, protocol: str, options: dict[str, Any]) -> None:
        self.protocol = protocol
        if protocol not in fsspec.available_protocols():
            raise unknown_name("protocol", protocol, fsspec.available_protocols())
        try:
            # other processes write as well, so listings are not cached
            self.system = fsspec.filesystem(protocol, use_listings_cache=False, **options)
        except (ImportError, TypeError, ValueError) as error:
            raise InputError(f"{protocol}://: {error}") from error

    def path(self, filepath: str) -> PurePosixPath:
        return PurePosixPath(self.system._strip_protocol(filepath))

    def url(self, path: PurePosixPath) -> str:
        url: str = self.system.unstrip_protocol(str(path))
        return url

    def exists(self, path: str) -> bool:
        found: bool = self.system.exists(path)
        return found

    def glob(self, pattern: str) -> list[str]:
        found: list[str] = self.system.glob(pattern)
        return found

    def newest_first(self, paths: list[str]) -> list[str]:
        """The paths by the time of their last change."""
        return sorted(paths, key=self.system.modified, reverse=True)

    @contextmanager
    def fetched(self, path: PurePosixPath) -> Iterator[Path]:
        """A temporary local copy; what is mapped within the block stays readable after it."""
        with tempfile.TemporaryDirectory(prefix="robust_fairness_") as folder:
            copy = Path(folder) / path.name
            self.system.get_file(str(path), str(copy))
            yield copy

    @contextmanager
    def written(self, path: PurePosixPath) -> Iterator[Path]:
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

    def remove(self, path: PurePosixPath) -> None:
        self.system.rm_file(str(path))
